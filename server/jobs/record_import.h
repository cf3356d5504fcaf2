// Imports records from JSON Lines into the database, with checks.
#ifndef TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_
#define TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "database/store.h"

namespace tilefarm::jobs {

// Not thread-safe. Lines are stored in groups of some thousands, each in one
// transaction; Finish stores the last group.
class RecordImport {
 public:
  explicit RecordImport(database::Store& store) : store_(store) {}

  // InvalidArgument with the line's number: not a record, a program that does
  // not parse, or a target that is not a key. Earlier groups stay stored.
  //
  // A program that is not the workload itself may be an algorithm variant of
  // it. The file cannot show that a rule of ours made it, so that it computes
  // the same: such a record is stored as not verified and is never the best.
  absl::Status Add(std::string_view line);
  // InvalidArgument where there were lines and none had a record. The export of
  // an empty database has no lines.
  absl::Status Finish();

  int64_t added() const { return added_; }
  int64_t known() const { return known_; }
  // Lines that were imported as variants.
  int64_t variants() const { return variants_; }

 private:
  absl::Status Flush();
  absl::Status Check(database::Record& record);
  absl::Status CheckTarget(const std::string& key);

  database::Store& store_;
  std::vector<database::Record> group_;
  size_t group_bytes_ = 0;  // of its lines
  std::unordered_map<std::string, std::string> hash_of_program_;
  std::string checked_target_;  // the latest one that was good
  int64_t line_ = 0;
  int64_t added_ = 0, known_ = 0, variants_ = 0;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_
