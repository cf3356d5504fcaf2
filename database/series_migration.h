// Version 4 of the schema: the columns that many records share are rows of
// `series`, and the records of a series are indexed by their rank.
//
//   records (table)  ->  series + stored_records, and a view `records` with the
//                        columns that the table had
#ifndef TILEFARM_DATABASE_SERIES_MIGRATION_H_
#define TILEFARM_DATABASE_SERIES_MIGRATION_H_

#include "absl/status/status.h"
#include "database/sqlite.h"

namespace tilefarm::database {

// The new tables.
extern const char kSeriesTables[];
// Moves the content to them, removes the old tables, and makes the views.
absl::Status FillSeries(Connection& connection);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SERIES_MIGRATION_H_
