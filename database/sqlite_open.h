// Opening a database file safely, as its writer or as a reader.
#ifndef TILEFARM_DATABASE_SQLITE_OPEN_H_
#define TILEFARM_DATABASE_SQLITE_OPEN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/file_lock.h"
#include "database/sqlite.h"

namespace tilefarm::database {

struct OpenFiles {
  FileLock lock;  // held by the writer
  // Null for readers. The only connection that writes or checkpoints.
  std::unique_ptr<Connection> writer;
  // Null for ":memory:", whose content only one connection can see.
  std::unique_ptr<Connection> reader;
};

// Takes FILE.lock, creates and migrates.
absl::StatusOr<OpenFiles> OpenForWriting(const std::string& path);

// Never creates, migrates or locks. If this user may not write to the folder,
// the database is read beside its running writer; without a running writer,
// from a copy in memory.
absl::StatusOr<OpenFiles> OpenForReading(const std::string& path);

// Adds the file's name to an error that is about its content.
absl::Status Named(const std::string& path, const absl::Status& status);
// In bytes; 0: there is no such file.
int64_t FileSize(const std::string& path);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SQLITE_OPEN_H_
