// A copy of a database beside its running server.
#ifndef TILEFARM_DATABASE_BACKUP_H_
#define TILEFARM_DATABASE_BACKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::database {

struct BackupFacts {
  int64_t bytes = 0;
  int64_t records = 0;
  int64_t jobs = 0;
};

// Writes the content of `from` at one moment to the new file `to` (mode 0600,
// one file, without a log). The server may keep writing; its write-ahead log
// grows meanwhile. The copy is read back and checked before it gets its name,
// and is durable on return. If anything fails, no file is left. NotFound: no
// database; AlreadyExists: `to` exists and is not changed; DataLoss: the
// database is corrupt; Unavailable: no room, or it cannot be written.
absl::StatusOr<BackupFacts> Backup(const std::string& from,
                                   const std::string& to);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_BACKUP_H_
