// The one place where SQLite's result codes become absl::Status.
#ifndef TILEFARM_DATABASE_SQLITE_STATUS_H_
#define TILEFARM_DATABASE_SQLITE_STATUS_H_

#include <string_view>

#include "absl/status/status.h"

struct sqlite3;

namespace tilefarm::database {

// `db` may be null. `doing` names what failed: "open tune.db". OK for
// SQLITE_OK, SQLITE_ROW and SQLITE_DONE. Busy, locked, full disk and failed
// input or output are Unavailable, a damaged file is DataLoss, missing rights
// are PermissionDenied; anything else is Internal.
absl::Status SqliteStatus(sqlite3* db, int code, std::string_view doing);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SQLITE_STATUS_H_
