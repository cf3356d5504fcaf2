// Takes records from JSON Lines into the database, checked.
#ifndef TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_
#define TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "database/store.h"

namespace tilefarm::jobs {

// Not thread-safe. Lines are stored in groups; Finish stores the last one.
class RecordImport {
 public:
  explicit RecordImport(database::Store& store) : store_(store) {}

  // InvalidArgument with the line's number: not a record, a program that does
  // not parse, or one that is not the workload it claims to be. What earlier
  // groups held is stored all the same.
  absl::Status Add(std::string_view line);
  absl::Status Finish();

  int64_t added() const { return added_; }
  int64_t known() const { return known_; }

 private:
  absl::Status Flush();
  absl::Status CheckWorkload(const database::Record& record);

  database::Store& store_;
  std::vector<database::Record> group_;
  std::map<std::string, std::string> hash_of_program_;
  int64_t line_ = 0;
  int64_t added_ = 0, known_ = 0;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_RECORD_IMPORT_H_
