#include "server/cli/record_list.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

// The name of the program's first function, without parsing all of it.
std::string FunctionOf(const std::string& program) {
  const size_t def = program.find("def ");
  if (def == std::string::npos) return "";
  const size_t end = program.find('(', def);
  return end == std::string::npos ? "" : program.substr(def + 4, end - def - 4);
}

bool Has(const std::string& text, const std::string& part) {
  return part.empty() || text.find(part) != std::string::npos;
}

// Unknown times come last.
double Known(double seconds) {
  return seconds > 0 ? seconds : std::numeric_limits<double>::infinity();
}

bool Less(const std::string& column, const RecordGroup& a,
          const RecordGroup& b) {
  if (column == "function") return a.function < b.function;
  if (column == "target") return a.target < b.target;
  if (column == "records") return a.records < b.records;
  if (column == "best") return Known(a.best_seconds) < Known(b.best_seconds);
  return a.latest < b.latest;
}

}  // namespace

bool RecordFilter::Takes(const database::Record& record) const {
  return record.workload_hash.rfind(workload, 0) == 0 &&
         Has(record.target, target) && Has(record.device, device) &&
         (status.empty() || database::StatusName(record.status) == status) &&
         // Times of one zone and format compare as texts.
         (since.empty() || record.recorded_at >= since);
}

std::string CheckSince(const std::string& since) {
  absl::Time time;
  std::string error;
  // Records have times in UTC, so that another zone would compare wrongly.
  if (absl::ParseTime("%Y-%m-%d", since, &time, &error) ||
      (absl::EndsWith(since, "Z") &&
       absl::ParseTime(absl::RFC3339_full, since, &time, &error))) {
    return "";
  }
  return absl::StrCat("'", since,
                      "' is neither a date (2026-01-31) nor a time in UTC "
                      "(2026-01-31T12:00:00Z)");
}

void RecordGroups::Add(const database::Record& record) {
  RecordGroup& group = groups_[{record.workload_hash, record.target}];
  if (group.records++ == 0) {
    group.workload = record.workload_hash;
    group.target = record.target;
    group.function = FunctionOf(record.program);
  }
  group.latest = std::max(group.latest, record.recorded_at);
  if (record.status != database::Status::kOk) return;
  ++group.ok;
  if (record.verified && !record.stopped_early &&
      record.median_seconds < Known(group.best_seconds)) {
    group.best_seconds = record.median_seconds;
  }
}

std::vector<RecordGroup> RecordGroups::Take(const Paging& paging) const {
  std::vector<RecordGroup> groups;
  for (const auto& [key, group] : groups_) groups.push_back(group);
  KeepPage(paging, groups, [&](const RecordGroup& a, const RecordGroup& b) {
    return Less(paging.sort, a, b);
  });
  return groups;
}

std::string GroupsTable(const std::vector<RecordGroup>& groups) {
  std::vector<std::vector<std::string>> rows = {
      {"WORKLOAD", "FUNCTION", "TARGET", "RECORDS", "OK", "BEST", "LATEST"}};
  for (const RecordGroup& group : groups) {
    rows.push_back({group.workload.substr(0, 12),
                    group.function.empty() ? "-" : group.function,
                    ShortTarget(group.target), absl::StrCat(group.records),
                    absl::StrCat(group.ok), Seconds(group.best_seconds),
                    group.latest.substr(0, 10)});
  }
  return Table(rows);
}

nlohmann::ordered_json GroupsJson(const std::vector<RecordGroup>& groups) {
  auto list = nlohmann::ordered_json::array();
  for (const RecordGroup& group : groups) {
    list.push_back(
        {{"workload", group.workload},
         {"target", group.target},
         {"function", group.function},
         {"records", group.records},
         {"ok", group.ok},
         {"best_seconds", group.best_seconds > 0
                              ? nlohmann::ordered_json(group.best_seconds)
                              : nlohmann::ordered_json()},
         {"latest", group.latest}});
  }
  return list;
}

}  // namespace tilefarm::cli
