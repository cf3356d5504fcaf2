// One writer per file: an exclusive flock that ends with the process.
#ifndef TILEFARM_DATABASE_FILE_LOCK_H_
#define TILEFARM_DATABASE_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::database {

// Holds the lock until destroyed. Move-only.
class FileLock {
 public:
  enum class Kind { kShared, kExclusive };

  // Creates the lock file for kExclusive, which writes the process id into it;
  // kShared on a missing file is NotFound. Does not wait: Unavailable if
  // another open of the file (also by this process) holds the lock.
  static absl::StatusOr<FileLock> Acquire(const std::string& path, Kind kind);

  FileLock() = default;
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_FILE_LOCK_H_
