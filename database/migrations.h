// The schema, and the migrations of older files to it. docs/formats.md
// describes the tables.
#ifndef TILEFARM_DATABASE_MIGRATIONS_H_
#define TILEFARM_DATABASE_MIGRATIONS_H_

#include <span>
#include <string>

#include "absl/status/status.h"
#include "database/sqlite.h"

namespace tilefarm::database {

// SQL that takes a file of version `version - 1` to `version`. One that has
// been released is never edited: a change is a new entry.
struct Migration {
  int version;
  const char* sql;
  // Runs after `sql`, in the same transaction; for what SQL alone cannot do.
  absl::Status (*then)(Connection& connection) = nullptr;
};

// In order of version, without gaps, from 1.
std::span<const Migration> Migrations();
// The version this build writes: that of the last migration.
int SchemaVersion();

// The marker in the file's header, "TLFM".
inline constexpr int kApplicationId = 0x544c464d;

// Brings the file to the last of `migrations`, each in one transaction.
// InvalidArgument: a database of something else. FailedPrecondition: its
// schema is newer.
absl::Status Migrate(Connection& connection,
                     std::span<const Migration> migrations);

// The oldest schema that readers understand.
inline constexpr int kOldestReadable = 3;

// Whether a reader of this build understands the file: kOldestReadable to
// SchemaVersion(). Errors as above, and FailedPrecondition for older ones.
absl::Status CheckReadable(Connection& connection);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_MIGRATIONS_H_
