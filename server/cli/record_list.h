// `tune db list`: the tasks of a database, and which records are asked for.
#ifndef TILEFARM_SERVER_CLI_RECORD_LIST_H_
#define TILEFARM_SERVER_CLI_RECORD_LIST_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "database/record.h"
#include "server/cli/listing.h"

namespace tilefarm::cli {

// What is given must all hold.
struct RecordFilter {
  std::string workload;  // the start of its hash
  std::string target;    // a part of the target's key
  std::string device;    // a part of the device's name
  std::string status;    // "ok", "wrong_result", ...
  std::string since;     // a date, or a time in RFC 3339: not before it

  bool empty() const {
    return workload.empty() && target.empty() && device.empty() &&
           status.empty() && since.empty();
  }
  bool Takes(const database::Record& record) const;
};
// What is wrong with `since`; empty: nothing.
std::string CheckSince(const std::string& since);

// The records of a workload on a target.
struct RecordGroup {
  std::string workload, target;
  std::string function;  // of the program
  int64_t records = 0;
  int64_t ok = 0;
  double best_seconds = 0;  // of those that are ok; 0: none
  std::string latest;       // RFC 3339
};

// Collects groups. A value type.
class RecordGroups {
 public:
  void Add(const database::Record& record);
  // In order of workload and target unless `paging` says otherwise.
  std::vector<RecordGroup> Take(const Paging& paging) const;

 private:
  std::map<std::pair<std::string, std::string>, RecordGroup> groups_;
};

// The columns that Paging::sort may name.
inline constexpr const char* kGroupColumns[] = {"function", "target", "records",
                                                "best", "latest"};

std::string GroupsTable(const std::vector<RecordGroup>& groups);
// [{workload, target, function, records, ok, best_seconds, latest}]
nlohmann::ordered_json GroupsJson(const std::vector<RecordGroup>& groups);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_RECORD_LIST_H_
