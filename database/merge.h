// Copies the records of databases into another one.
#ifndef TILEFARM_DATABASE_MERGE_H_
#define TILEFARM_DATABASE_MERGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::database {

struct MergeFacts {
  int64_t added = 0;
  // Of candidates that the output had already, from itself or from an earlier
  // source.
  int64_t known = 0;
  // Those of `known` that were measured on a device of another model than the
  // record that is kept: a database has one record of a candidate.
  int64_t other_model = 0;
};

// Adds every record of `from`, in their order, with its re-measurements, to the
// database `to`, which is made if it does not exist. Of several records of one
// candidate the first one is kept and the new re-measurements of all are added.
// Only records are copied; jobs, devices, cost models and tokens stay where
// they are. The sources are read only, and a server may be running on them.
//
// InvalidArgument: `to` is one of `from`. Otherwise as Store::Open and
// Store::AddRecords. If a merge into a new file fails, the file is removed. If
// one into an existing file fails, records that were added before stay; merging
// again adds the rest.
absl::StatusOr<MergeFacts> Merge(const std::vector<std::string>& from,
                                 const std::string& to);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_MERGE_H_
