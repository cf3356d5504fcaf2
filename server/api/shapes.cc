#include "server/api/shapes.h"

#include <cmath>
#include <unordered_map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "server/cli/format.h"
#include "server/services/convert.h"

namespace tilefarm::api {
namespace {

// Indexes of texts in the order of their first appearance.
class Names {
 public:
  int64_t Index(const std::string& name) {
    const auto [it, is_new] =
        indexes_.emplace(name, static_cast<int64_t>(list_.size()));
    if (is_new) list_.push_back(name);
    return it->second;
  }
  Json Take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, int64_t> indexes_;
  Json list_ = Json::array();
};

// Six digits, which is more than a measurement has: a third of the bytes.
Json Short(double number) {
  if (!(number > 0)) return nullptr;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(number)));
  const double rounded = std::round(number * scale) / scale;
  return std::isfinite(rounded) ? Json(rounded) : Json(number);
}

void AddTimes(const database::Store::JobTimes& times, Json& json) {
  json["created"] = times.created_at;
  json["ended"] = times.ended_at;
}

}  // namespace

Json NumberOrNull(double number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

Json Milliseconds(const std::string& time) {
  absl::Time at;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, time, &at, &error)) return nullptr;
  return absl::ToUnixMillis(at);
}

Json JobRowJson(const jobs::JobSnapshot& snapshot,
                const database::Store::JobTimes& times) {
  v1::ListJobsResponse list;
  *list.add_jobs() = services::ToProtoJob(snapshot);
  Json json = cli::JobsJson(list)[0];
  json["targets"] = snapshot.targets;
  json["tasks"] = snapshot.tasks.size();
  json["unscheduled_seconds"] = NumberOrNull(snapshot.unscheduled_seconds());
  json["best_gflops"] = NumberOrNull(snapshot.best_gflops());
  json["trials_per_second"] = snapshot.trials_per_second;
  json["message"] = snapshot.message;
  AddTimes(times, json);
  return json;
}

Json JobJson(const jobs::JobSnapshot& snapshot,
             const database::Store::JobTimes& times) {
  Json json = cli::UpdateJson(services::ToProto(snapshot, {}));
  json.erase("devices");
  json["user"] = snapshot.user;
  json["program"] = snapshot.program_name;
  json["targets"] = snapshot.targets;
  // In a job of one target the shape of `tune` leaves it out.
  for (size_t i = 0; i < snapshot.tasks.size(); ++i) {
    json["tasks"][i]["target"] = snapshot.tasks[i].target;
  }
  AddTimes(times, json);
  return json;
}

Json DeviceJson(const farm::DeviceStatus& device) {
  v1::ListDevicesResponse list;
  *list.add_devices() = services::ToProto(device);
  Json json = cli::DevicesJson(list)[0];
  json["leases"] = device.leases;
  json["busy_seconds"] = device.busy_seconds;
  return json;
}

Json AuditJson(std::span<const database::AuditEntry> entries) {
  cli::AuditEntries list;
  for (const database::AuditEntry& entry : entries) {
    *list.Add() = services::ToProto(entry);
  }
  return cli::AuditJson(list);
}

Json HistoryJson(std::span<const DeviceSample> samples) {
  Json at = Json::array(), state = Json::array(), busy = Json::array(),
       rate = Json::array(), clock = Json::array(), heat = Json::array();
  for (const DeviceSample& sample : samples) {
    at.push_back(absl::ToUnixMillis(sample.at));
    state.push_back(sample.unsteady
                        ? "unsteady"
                        : std::string(farm::DeviceStateName(sample.state)));
    busy.push_back(std::round(sample.busy * 1e3) / 1e3);
    rate.push_back(std::round(sample.trials_per_second * 1e2) / 1e2);
    clock.push_back(Short(sample.clock_mhz));
    heat.push_back(Short(sample.temperature_c));
  }
  return {
      {"at", std::move(at)},           {"state", std::move(state)},
      {"busy", std::move(busy)},       {"trials_per_second", std::move(rate)},
      {"clock_mhz", std::move(clock)}, {"temperature_c", std::move(heat)}};
}

Json CandidatesJson(std::span<const database::OutcomeRow> rows) {
  Names devices, statuses, jobs, fingerprints;
  Json tasks = Json::array();
  std::unordered_map<std::string, int64_t> task_indexes;
  const char* const names[] = {"record",
                               "task",
                               "job",
                               "device",
                               "status",
                               "fingerprint",
                               "seconds",
                               "low",
                               "high",
                               "rank",
                               "confirmed",
                               "verified",
                               "stopped_early",
                               "unsteady",
                               "library",
                               "sketch",
                               "sequence",
                               "score",
                               "compile_seconds",
                               "at"};
  std::unordered_map<std::string, Json> columns;
  for (const char* name : names) columns[name] = Json::array();
  for (const database::OutcomeRow& row : rows) {
    const auto [task, is_new] =
        task_indexes.emplace(row.workload_hash + ' ' + row.target,
                             static_cast<int64_t>(tasks.size()));
    if (is_new) {
      tasks.push_back(
          {{"workload", row.workload_hash}, {"target", row.target}});
    }
    double score = 0;
    const bool scored = absl::SimpleAtod(row.model_score, &score);
    columns["record"].push_back(row.id);
    columns["task"].push_back(task->second);
    columns["job"].push_back(jobs.Index(row.job_id));
    columns["device"].push_back(devices.Index(row.device));
    columns["status"].push_back(
        statuses.Index(std::string(database::StatusName(row.status))));
    columns["fingerprint"].push_back(fingerprints.Index(row.fingerprint));
    columns["seconds"].push_back(Short(row.median_seconds));
    columns["low"].push_back(Short(row.ci_low_seconds));
    columns["high"].push_back(Short(row.ci_high_seconds));
    columns["rank"].push_back(Short(row.rank_seconds));
    columns["confirmed"].push_back(row.confirmed ? 1 : 0);
    columns["verified"].push_back(row.verified ? 1 : 0);
    columns["stopped_early"].push_back(row.stopped_early ? 1 : 0);
    columns["unsteady"].push_back(row.unsteady ? 1 : 0);
    columns["library"].push_back(row.library ? 1 : 0);
    columns["sketch"].push_back(row.sketch);
    columns["sequence"].push_back(row.sequence);
    columns["score"].push_back(scored && std::isfinite(score) ? Json(score)
                                                              : Json(nullptr));
    columns["compile_seconds"].push_back(Short(row.compile_seconds));
    columns["at"].push_back(Milliseconds(row.recorded_at));
  }
  Json json = {{"count", rows.size()},
               {"last", rows.empty() ? 0 : rows.back().id},
               {"tasks", std::move(tasks)},
               {"jobs", jobs.Take()},
               {"devices", devices.Take()},
               {"statuses", statuses.Take()},
               {"fingerprints", fingerprints.Take()}};
  for (const char* name : names) json[name] = std::move(columns[name]);
  return json;
}

}  // namespace tilefarm::api
