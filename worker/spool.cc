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
constexpr char kTemporary[] = ".tmp";
// No result is larger, because messages have the same limit.
constexpr uintmax_t kMaxFileBytes = uintmax_t{64} << 20;
// Far beyond any real number of results.
constexpr uint64_t kMostNumber = uint64_t{1} << 62;
// Space for several more results.
constexpr size_t kProbeBytes = 64 << 10;

// Names come from the wire: those with unusual characters become their hash.
std::string SafeName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 64 &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(c) || c == '-';
                     });
  return plain ? name : Sha256Hex(name);
}

absl::Status WriteDurably(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + kTemporary;
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
  // The name is durable after its directory is synced.
  const int directory = open(fs::path(path).parent_path().c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
  return absl::OkStatus();
}

std::optional<v1::Result> ReadResult(const fs::path& path) {
  std::error_code error;
  if (fs::file_size(path, error) > kMaxFileBytes || error) return std::nullopt;
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

void Spool::LoadFile(const std::string& database, const fs::path& path) {
  const std::string name = path.filename().string();
  if (path.extension() == kTemporary) {
    unlink(path.c_str());  // a partial file of a worker that was killed
    return;
  }
  uint64_t number = 0;
  if (path.extension() != kSuffix ||
      !absl::SimpleAtoi(name.substr(0, name.find('-')), &number) ||
      number > kMostNumber || entries_[database].contains(number)) {
    return;  // not a file of ours
  }
  std::optional<v1::Result> result = ReadResult(path);
  if (!result.has_value()) {
    const std::string corrupt = path.string() + ".corrupt";
    Log(LogLevel::kError, "worker",
        absl::StrCat("damaged spooled result set aside as ", corrupt));
    rename(path.c_str(), corrupt.c_str());
    return;
  }
  entries_[database][number] = {
      path.string(), std::make_shared<const v1::Result>(*std::move(result))};
  next_number_ = std::max(next_number_, number + 1);
}

absl::Status Spool::Load() {
  MutexLock lock(mutex_);
  std::error_code error;
  for (const auto& database :
       fs::directory_iterator(fs::path(directory_) / "spool", error)) {
    std::error_code other;  // of a file that is not ours
    for (const auto& file : fs::directory_iterator(database.path(), other)) {
      LoadFile(database.path().filename().string(), file.path());
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), directory_);
  return absl::OkStatus();
}

// `database` is the name of its directory.
absl::Status Spool::WriteEntry(const std::string& database, uint64_t number,
                               const v1::Result& result,
                               std::string* path) const {
  const std::string directory = absl::StrCat(directory_, "/spool/", database);
  std::error_code error;
  fs::create_directories(directory, error);
  *path = absl::StrFormat("%s/%012d-%s%s", directory, number,
                          SafeName(result.lease_id()), kSuffix);
  const std::string body = result.SerializeAsString();
  return WriteDurably(*path, Sha256Hex(body) + body);
}

absl::Status Spool::Put(const std::string& database_uuid,
                        const v1::Result& result) {
  const std::string database = SafeName(database_uuid);
  uint64_t number;
  {
    MutexLock lock(mutex_);
    number = next_number_++;
  }
  std::string path;
  const absl::Status status = WriteEntry(database, number, result, &path);
  MutexLock lock(mutex_);
  if (!status.ok()) writable_ = false;
  entries_[database][number] = {status.ok() ? path : "",
                                std::make_shared<const v1::Result>(result)};
  return status;
}

bool Spool::writable() const {
  MutexLock lock(mutex_);
  return writable_;
}

absl::Status Spool::Retry() {
  struct Unwritten {
    std::string database;
    uint64_t number;
    std::shared_ptr<const v1::Result> result;
  };
  std::vector<Unwritten> unwritten;
  {
    MutexLock lock(mutex_);
    for (const auto& [database, entries] : entries_) {
      for (const auto& [number, entry] : entries) {
        if (entry.path.empty()) {
          unwritten.push_back({database, number, entry.result});
        }
      }
    }
  }
  for (const Unwritten& one : unwritten) {
    std::string path;
    TF_RETURN_IF_ERROR(
        WriteEntry(one.database, one.number, *one.result, &path));
    MutexLock lock(mutex_);
    auto& entries = entries_[one.database];
    const auto entry = entries.find(one.number);
    if (entry != entries.end()) {
      entry->second.path = path;
    } else {
      unlink(path.c_str());  // it was acknowledged meanwhile
    }
  }
  // The test file is larger than the space that one acknowledgement frees.
  const std::string probe = absl::StrCat(directory_, "/spool/probe");
  TF_RETURN_IF_ERROR(WriteDurably(probe, std::string(kProbeBytes, 'x')));
  unlink(probe.c_str());
  MutexLock lock(mutex_);
  writable_ = true;
  return absl::OkStatus();
}

std::vector<std::string> Spool::Acknowledge(const std::string& database_uuid,
                                            const std::string& lease_id) {
  MutexLock lock(mutex_);
  std::vector<std::string> candidates;
  auto& entries = entries_[SafeName(database_uuid)];
  for (auto it = entries.begin(); it != entries.end();) {
    if (it->second.result->lease_id() != lease_id) {
      ++it;
      continue;
    }
    // If the system crashes before this is durable, the result is sent again
    // and acknowledged as superseded.
    if (!it->second.path.empty()) unlink(it->second.path.c_str());
    candidates.push_back(it->second.result->candidate_id());
    it = entries.erase(it);
  }
  return candidates;
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
