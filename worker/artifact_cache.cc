#include "worker/artifact_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace tilefarm::worker {
namespace {

namespace fs = std::filesystem;

constexpr char kIncomplete[] = ".tmp";

// Names come from the wire.
bool IsDigest(const std::string& text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

absl::StatusOr<ArtifactCache::Bytes> ArtifactCache::Get(
    const std::string& sha256, const Fetch& fetch) {
  if (!IsDigest(sha256)) {
    return absl::InvalidArgumentError("an artifact is named by its SHA-256");
  }
  {
    MutexLock lock(mutex_);
    while (fetching_.contains(sha256)) fetched_.Wait(mutex_);
    if (Bytes bytes = InUse(sha256)) return bytes;
    fetching_[sha256] = true;
  }
  Bytes bytes = ReadFile(sha256);
  absl::Status status = absl::OkStatus();
  if (bytes == nullptr) {
    absl::StatusOr<std::string> fetched = fetch();
    status = fetched.status();
    if (fetched.ok() && Sha256Hex(*fetched) != sha256) {
      status = absl::DataLossError(
          absl::StrCat("the artifact that came is not ", sha256.substr(0, 12)));
    }
    if (status.ok()) {
      bytes = std::make_shared<const std::string>(*std::move(fetched));
      Keep(sha256, *bytes);
    }
  }
  MutexLock lock(mutex_);
  if (status.ok()) in_use_[sha256] = bytes;
  fetching_.erase(sha256);
  fetched_.NotifyAll();
  if (!status.ok()) return status;
  return bytes;
}

ArtifactCache::Bytes ArtifactCache::InUse(const std::string& sha256) {
  std::erase_if(in_use_, [](const auto& one) { return one.second.expired(); });
  const auto found = in_use_.find(sha256);
  return found == in_use_.end() ? nullptr : found->second.lock();
}

ArtifactCache::Bytes ArtifactCache::ReadFile(const std::string& sha256) const {
  if (directory_.empty()) return nullptr;
  const fs::path path = fs::path(directory_) / sha256;
  std::ifstream file(path, std::ios::binary);
  if (!file) return nullptr;
  auto bytes = std::make_shared<const std::string>(
      std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  std::error_code error;
  if (file.bad() || Sha256Hex(*bytes) != sha256) {
    Log(LogLevel::kWarning, "worker",
        absl::StrCat("a damaged artifact is removed: ", path.string()));
    fs::remove(path, error);
    return nullptr;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return bytes;
}

void ArtifactCache::Keep(const std::string& sha256,
                         const std::string& bytes) const {
  if (directory_.empty() || bytes.size() > most_bytes_) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  const fs::path path = fs::path(directory_) / sha256;
  const fs::path temporary = path.string() + kIncomplete;
  bool written = false;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    written = !file.fail();
  }
  if (written) fs::rename(temporary, path, error);
  if (!written || error) {
    Log(LogLevel::kWarning, "worker",
        absl::StrCat("an artifact cannot be kept in ", directory_,
                     "; it will be fetched again"));
    fs::remove(temporary, error);
    return;
  }
  DeleteOld();
}

void ArtifactCache::DeleteOld() const {
  struct File {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes = 0;
  };
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unreadable;
    File file = {it->last_write_time(unreadable), it->path(),
                 it->file_size(unreadable)};
    if (!unreadable) files.push_back(std::move(file));
  }
  // The latest first.
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return a.used != b.used ? a.used > b.used : a.path < b.path;
  });
  uint64_t total = 0;
  for (const File& file : files) {
    total += file.bytes;
    if (total > most_bytes_) fs::remove(file.path, error);
  }
}

}  // namespace tilefarm::worker
