// What `tune` prints, for people and as JSON. Pure functions; the JSON shapes
// are contracts (docs/formats.md) with golden tests.
#ifndef TILEFARM_SERVER_CLI_FORMAT_H_
#define TILEFARM_SERVER_CLI_FORMAT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "proto/tilefarm/v1/admin.pb.h"
#include "proto/tilefarm/v1/tune.pb.h"

namespace tilefarm::cli {

// --- JSON ---
// [{id, state, user, program, target, trials, trials_done, best_seconds,
// error, created, ended}]; best_seconds may be null, and the times are UTC or
// empty. A job of several targets also has
// `targets`, and in an update each task has its `target`.
nlohmann::ordered_json JobsJson(const v1::ListJobsResponse& jobs);
// [{name, state, reason, model, target, last_seen, trials_per_second,
// libraries: {name: version}, ...}]; docs/formats.md has all of it.
nlohmann::ordered_json DevicesJson(const v1::ListDevicesResponse& devices);
// [{id, at, actor, action, subject, detail}]
using AuditEntries = google::protobuf::RepeatedPtrField<v1::AuditEntry>;
nlohmann::ordered_json AuditJson(const AuditEntries& entries);
// [{name, role, created, expires, revoked}]
nlohmann::ordered_json TokensJson(const v1::ListTokensResponse& tokens);
// Measured times of a whole model; 0: not measured.
struct ModelLatency {
  double unfused_seconds = 0;  // without fusion, with default schedules
  double untuned_seconds = 0;  // with default schedules
  double latency_seconds = 0;  // as tuned
};
// {job_id, state, trials, trials_done, by_status, best_seconds, ...}. `model`:
// null unless the job tunes a model.
nlohmann::ordered_json UpdateJson(const v1::JobUpdate& update,
                                  const ModelLatency* model = nullptr);
// {records, workloads, by_status}
nlohmann::ordered_json StatsJson(
    int64_t records, int64_t workloads,
    const std::map<std::string, int64_t>& by_status);

// --- Text ---
// "1.234 ms"
std::string Seconds(double seconds);
std::string JobsTable(const v1::ListJobsResponse& jobs);
// `subject`: the heading of the column with the entries' subjects.
std::string AuditTable(const AuditEntries& entries, const std::string& subject);
std::string TokensTable(const v1::ListTokensResponse& tokens);
std::string DevicesTable(const v1::ListDevicesResponse& devices);
// The key without the features of the processor, for tables.
std::string ShortTarget(const std::string& key);
// One line: trials, rate and time left; best time, speed-up over the
// unscheduled program, GFLOPS (with several targets: trials and best time of
// each); what the job does or waits for; results by status; devices. `verbose`:
// also how well the model ranks.
std::string ProgressLine(const v1::JobUpdate& update, bool verbose = false);
// The result of a job in a few lines.
std::string Summary(const v1::JobUpdate& update);
// "measured 1.234 ms, 2.345 ms with default schedules, 3.456 ms without
// fusion"; empty: not measured.
std::string LatencyText(const ModelLatency& model);
// The lines of `table`, then `last`, each cut to fewer than `columns`
// characters. Lines of the table that would not fit into `rows` are left out.
// 0: no limit. No newline at the end.
std::string FitLines(const std::string& table, const std::string& last,
                     size_t columns, size_t rows);
// Columns padded to their widest cell. The first row has the headings.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_FORMAT_H_
