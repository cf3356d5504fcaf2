#include "database/sqlite_status.h"

#include <sqlite3.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tilefarm::database {
namespace {

absl::StatusCode CodeOf(int code) {
  // Extended codes that mean something else than their family.
  switch (code) {
    case SQLITE_IOERR_CORRUPTFS:
    case SQLITE_IOERR_DATA:
      return absl::StatusCode::kDataLoss;
    case SQLITE_IOERR_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return absl::StatusCode::kDataLoss;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_TOOBIG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status SqliteStatus(sqlite3* db, int code, std::string_view doing) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) {
    return absl::OkStatus();
  }
  // The connection's message belongs to its latest call only.
  const bool current =
      db != nullptr && (sqlite3_extended_errcode(db) & 0xff) == (code & 0xff);
  const char* text = current ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const char* advice = (code & 0xff) == SQLITE_FULL
                           ? "; free space on the file system of the database"
                           : "";
  return absl::Status(CodeOf(code),
                      absl::StrCat("cannot ", std::string(doing), ": ", text,
                                   " (SQLite ", code, ")", advice));
}

}  // namespace tilefarm::database
