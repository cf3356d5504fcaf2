#include "worker/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tilefarm::worker {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigestBytes = 64;
constexpr char kSuffix[] = ".result";

// Names come from the wire: anything that is not plain becomes its hash.
std::string SafeName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(c) || c == '-';
                     });
  return plain ? name : Sha256Hex(name);
}

absl::Status WriteDurably(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".tmp";
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, temporary);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<size_t>(n);
  }
  const bool written = done == bytes.size() && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    const int why = written ? errno : error;
    unlink(temporary.c_str());
    return absl::ErrnoToStatus(why, path);
  }
  // The name is durable once its directory is.
  const int directory = open(fs::path(path).parent_path().c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  return absl::OkStatus();
}

std::optional<v1::Result> ReadResult(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)),
                          std::istreambuf_iterator<char>());
  if (bytes.size() < kDigestBytes) return std::nullopt;
  const std::string body = bytes.substr(kDigestBytes);
  v1::Result result;
  if (Sha256Hex(body) != bytes.substr(0, kDigestBytes) ||
      !result.ParseFromString(body)) {
    return std::nullopt;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(
    const std::string& directory) {
  std::error_code error;
  fs::create_directories(fs::path(directory) / "spool", error);
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot make ", directory));
  }
  const std::string lock_path = directory + "/lock";
  const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, lock_path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("another worker uses the state directory ", directory,
                     "; give this one its own with --state-dir or --name"));
  }
  std::unique_ptr<Spool> spool(new Spool(directory, fd));
  TF_RETURN_IF_ERROR(spool->Load());
  return spool;
}

Spool::~Spool() { close(lock_fd_); }

absl::Status Spool::Load() {
  MutexLock lock(mutex_);
  std::error_code error;
  for (const auto& database :
       fs::directory_iterator(fs::path(directory_) / "spool", error)) {
    for (const auto& file : fs::directory_iterator(database.path(), error)) {
      const std::string name = file.path().filename().string();
      uint64_t number = 0;
      if (file.path().extension() != kSuffix ||
          !absl::SimpleAtoi(name.substr(0, name.find('-')), &number)) {
        continue;
      }
      std::optional<v1::Result> result = ReadResult(file.path());
      if (!result.has_value()) {
        const std::string corrupt = file.path().string() + ".corrupt";
        Log(LogLevel::kError, "worker",
            absl::StrCat("damaged spooled result set aside as ", corrupt));
        rename(file.path().c_str(), corrupt.c_str());
        continue;
      }
      entries_[database.path().filename().string()][number] = {
          file.path().string(),
          std::make_shared<const v1::Result>(*std::move(result))};
      next_number_ = std::max(next_number_, number + 1);
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), directory_);
  return absl::OkStatus();
}

std::string Spool::DatabaseDirectory(const std::string& database_uuid) const {
  return absl::StrCat(directory_, "/spool/", SafeName(database_uuid));
}

absl::Status Spool::Put(const std::string& database_uuid,
                        const v1::Result& result) {
  uint64_t number;
  {
    MutexLock lock(mutex_);
    number = next_number_++;
  }
  const std::string directory = DatabaseDirectory(database_uuid);
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string path = absl::StrFormat(
      "%s/%012d-%s%s", directory, number, SafeName(result.lease_id()), kSuffix);
  const std::string body = result.SerializeAsString();
  const absl::Status status = WriteDurably(path, Sha256Hex(body) + body);
  MutexLock lock(mutex_);
  entries_[SafeName(database_uuid)][number] = {
      status.ok() ? path : "", std::make_shared<const v1::Result>(result)};
  return status;
}

void Spool::Acknowledge(const std::string& database_uuid,
                        const std::string& lease_id) {
  MutexLock lock(mutex_);
  auto& entries = entries_[SafeName(database_uuid)];
  for (auto it = entries.begin(); it != entries.end();) {
    if (it->second.result->lease_id() != lease_id) {
      ++it;
      continue;
    }
    // Where the system dies before this is durable, the result is sent once
    // more and acknowledged as superseded.
    if (!it->second.path.empty()) unlink(it->second.path.c_str());
    it = entries.erase(it);
  }
}

std::vector<std::shared_ptr<const v1::Result>> Spool::Pending(
    const std::string& database_uuid) const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const v1::Result>> pending;
  const auto it = entries_.find(SafeName(database_uuid));
  if (it == entries_.end()) return pending;
  for (const auto& [number, entry] : it->second) {
    pending.push_back(entry.result);
  }
  return pending;
}

}  // namespace tilefarm::worker
