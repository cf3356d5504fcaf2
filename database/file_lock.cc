#include "database/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::database {
namespace {

// The id that the holder wrote, for the message; empty where unreadable.
std::string Holder(int fd) {
  char buffer[32];
  const ssize_t n = pread(fd, buffer, sizeof(buffer), 0);
  std::string text(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "" : absl::StrCat(" (process ", text, ")");
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, Kind kind) {
  const bool exclusive = kind == Kind::kExclusive;
  const int fd =
      open(path.c_str(), (exclusive ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC,
           0644);
  if (fd < 0) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot open lock file ", path, ": ", strerror(error));
    if (error == ENOENT) return absl::NotFoundError(message);
    if (error == EACCES || error == EPERM || error == EROFS) {
      return absl::PermissionDeniedError(message);
    }
    return absl::UnavailableError(message);
  }
  FileLock lock(fd);
  int result;
  do {
    result = flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    return absl::UnavailableError(
        absl::StrCat("the database is being written by another process",
                     Holder(fd), ": it holds the lock on ", path));
  }
  if (exclusive) {
    // Only for the message above: losing it costs nothing.
    const std::string id = absl::StrCat(getpid(), "\n");
    if (ftruncate(fd, 0) == 0) {
      [[maybe_unused]] const ssize_t n = pwrite(fd, id.data(), id.size(), 0);
    }
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace tilefarm::database
