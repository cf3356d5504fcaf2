// The database: figures, search, and one record as text.
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/schedule_text.h"
#include "server/api/handlers.h"
#include "server/api/shapes.h"

namespace tilefarm::api {
namespace {

constexpr int64_t kMostRows = 500;
constexpr size_t kDigestDigits = 64;

absl::StatusOr<database::Record> RecordOf(const Parts& parts,
                                          const Call& call) {
  int64_t id = 0;
  if (!absl::SimpleAtoi(call.path.at("record"), &id)) {
    return absl::InvalidArgumentError("the id of a record is a number");
  }
  return parts.store.GetRecord(id);
}

Json RowJson(const database::OutcomeRow& row) {
  return {{"record", row.id},
          {"workload", row.workload_hash},
          {"target", row.target},
          {"device", row.device},
          {"job", row.job_id},
          {"status", std::string(database::StatusName(row.status))},
          {"seconds", NumberOrNull(row.median_seconds)},
          {"low", NumberOrNull(row.ci_low_seconds)},
          {"high", NumberOrNull(row.ci_high_seconds)},
          {"rank", NumberOrNull(row.rank_seconds)},
          {"confirmed", row.confirmed},
          {"verified", row.verified},
          {"stopped_early", row.stopped_early},
          {"unsteady", row.unsteady},
          {"library", row.library},
          {"fingerprint", row.fingerprint},
          {"recorded_at", row.recorded_at}};
}

driver::StoredSchedule ScheduleOf(const database::Record& record) {
  return {.program = record.program,
          .trace = record.trace,
          .target = record.target};
}

}  // namespace

absl::StatusOr<Json> GetDatabase(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const database::Stats stats, parts.store.GetStats());
  Json by_status = Json::object();
  for (const auto& [status, count] : stats.by_status) {
    by_status[status] = count;
  }
  return Json{{"uuid", parts.store.uuid()},
              {"schema_version", parts.store.schema_version()},
              {"records", stats.records},
              {"workloads", stats.workloads},
              {"by_status", std::move(by_status)}};
}

absl::StatusOr<Json> ListRecords(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"workload", "target", "device", "job",
                                       "status", "text", "before", "limit"}));
  database::OutcomeFilter filter{.job_id = call.query.Text("job"),
                                 .target = call.query.Text("target"),
                                 .device = call.query.Text("device"),
                                 .status = call.query.Text("status"),
                                 .text = call.query.Text("text"),
                                 .reverse = true};
  const std::string workload = call.query.Text("workload");
  (workload.size() == kDigestDigits ? filter.workload_hash
                                    : filter.workload_prefix) = workload;
  if (!filter.status.empty() && !database::ParseStatus(filter.status)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", filter.status, "' is no status of a record"));
  }
  TF_ASSIGN_OR_RETURN(filter.after,
                      call.query.Number("before", 0, 0, INT64_MAX));
  TF_ASSIGN_OR_RETURN(const int64_t limit,
                      call.query.Number("limit", 100, 1, kMostRows));
  filter.limit = limit + 1;
  TF_ASSIGN_OR_RETURN(auto rows, parts.store.ListOutcomes(filter));
  const bool more = static_cast<int64_t>(rows.size()) > limit;
  if (more) rows.pop_back();
  Json list = Json::array();
  for (const database::OutcomeRow& row : rows) list.push_back(RowJson(row));
  return Json{{"records", std::move(list)}, {"more", more}};
}

absl::StatusOr<Json> GetRecord(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const database::Record record, RecordOf(parts, call));
  Json json = {{"record", record.id}};
  json.update(ParseJson<Json>(database::RecordToJson(record)));
  return json;
}

absl::StatusOr<Json> GetSchedule(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const database::Record record, RecordOf(parts, call));
  TF_ASSIGN_OR_RETURN(std::string text,
                      driver::ScheduledProgram(ScheduleOf(record)));
  return Json{{"text", std::move(text)}};
}

absl::StatusOr<Json> GetAssembly(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const database::Record record, RecordOf(parts, call));
  // What this compiler has compiled in a builder's sandbox, and a device has
  // run, it can compile here.
  if (record.status != database::Status::kOk ||
      record.fingerprint != driver::Fingerprint()) {
    return absl::FailedPreconditionError(
        record.status == database::Status::kOk
            ? absl::StrCat("the record was made by another compiler, ",
                           record.fingerprint)
            : "the candidate failed; there is no code to show");
  }
  // One at a time: it is the most expensive answer that there is.
  static Mutex& mutex = *new Mutex;
  MutexLock lock(mutex);
  TF_ASSIGN_OR_RETURN(std::string text, driver::Assembly(ScheduleOf(record)));
  return Json{{"text", std::move(text)}};
}

}  // namespace tilefarm::api
