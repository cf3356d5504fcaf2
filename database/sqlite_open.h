// Opening a database file safely, as its writer or as a reader.
#ifndef TILEFARM_DATABASE_SQLITE_OPEN_H_
#define TILEFARM_DATABASE_SQLITE_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "database/file_lock.h"
#include "database/sqlite.h"

namespace tilefarm::database {

struct OpenFiles {
  FileLock lock;  // held by the writer
  // Null for readers. The only connection that writes or checkpoints.
  std::unique_ptr<Connection> writer;
  // Null for ":memory:", whose content one connection alone sees.
  std::unique_ptr<Connection> reader;
};

// Takes FILE.lock, creates and migrates.
absl::StatusOr<OpenFiles> OpenForWriting(const std::string& path);

// Never creates, migrates or locks. A database in a place where this user may
// not write is read beside its writer; where no writer runs, from a copy in
// memory.
absl::StatusOr<OpenFiles> OpenForReading(const std::string& path);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SQLITE_OPEN_H_
