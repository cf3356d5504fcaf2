// Decides about every record of a workload whether a lookup may use it.
// Private to database/.
#ifndef TILEFARM_DATABASE_EXAMINE_RECORDS_H_
#define TILEFARM_DATABASE_EXAMINE_RECORDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "database/explanation.h"
#include "database/sqlite.h"
#include "database/store.h"

namespace tilefarm::database {

// Every record of the workloads, in order of id within each. Fate::kSlower: it
// may be used; otherwise the first rule that excludes it. `select_record`: as
// SqliteStore::select_record.
absl::StatusOr<std::vector<Examined>> ExamineRecords(
    Connection& db, const char* select_record,
    const std::vector<int64_t>& workloads, const BestQuery& wanted);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_EXAMINE_RECORDS_H_
