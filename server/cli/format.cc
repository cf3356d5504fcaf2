#include "server/cli/format.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/units.h"
#include "server/cli/task_table.h"

namespace tilefarm::cli {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

template <typename Map>
Json Counts(const Map& counts) {
  // Sorted by name, because a protobuf map has no order.
  const std::map<std::string, int64_t> sorted(counts.begin(), counts.end());
  Json json = Json::object();
  for (const auto& [name, count] : sorted) json[name] = count;
  return json;
}

std::string Fact(double value, const absl::FormatSpec<double>& format) {
  return value > 0 ? absl::StrFormat(format, value) : "-";
}

std::string Clock(double seconds) {
  const int64_t total = static_cast<int64_t>(seconds + 0.5);
  if (total >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", total / 3600, total / 60 % 60,
                           total % 60);
  }
  return absl::StrFormat("%d:%02d", total / 60, total % 60);
}

std::string Trials(int64_t done, int64_t wanted) {
  return wanted > 0 ? absl::StrCat(done, "/", wanted) : absl::StrCat(done);
}

// The target keys of a job, which begin with `target`.
template <typename Message>
std::vector<std::string> Targets(const Message& job) {
  std::vector<std::string> targets = {job.target()};
  targets.insert(targets.end(), job.more_targets().begin(),
                 job.more_targets().end());
  return targets;
}

// The sums over one target's tasks: "KEY: 12 trials, 1.234 ms".
std::vector<std::string> TargetParts(const v1::JobUpdate& update) {
  struct Sum {
    int64_t trials = 0;
    double seconds = 0;
    bool complete = true;
  };
  std::vector<std::pair<std::string, Sum>> sums;
  for (const v1::TaskProgress& task : update.tasks()) {
    if (sums.empty() || sums.back().first != task.target()) {
      sums.emplace_back(task.target(), Sum());
    }
    Sum& sum = sums.back().second;
    sum.trials += task.trials_done();
    sum.seconds += task.best_seconds();
    sum.complete &= task.best_seconds() > 0;
  }
  std::vector<std::string> parts;
  for (const auto& [target, sum] : sums) {
    parts.push_back(absl::StrCat(ShortTarget(target), ": ", sum.trials,
                                 " trials, best ",
                                 Seconds(sum.complete ? sum.seconds : 0)));
  }
  return parts;
}

template <typename Map>
Json Texts(const Map& texts) {
  Json object = Json::object();
  // Sorted by name, because a map on the wire has no order.
  for (const auto& [name, text] :
       std::map<std::string, std::string>(texts.begin(), texts.end())) {
    object[name] = text;
  }
  return object;
}

// "2026-01-31 12:00" of "2026-01-31T12:00:00Z".
std::string Minute(std::string time) {
  std::replace(time.begin(), time.end(), 'T', ' ');
  return time.substr(0, 16);
}

}  // namespace

Json JobsJson(const v1::ListJobsResponse& jobs) {
  Json list = Json::array();
  for (const v1::Job& job : jobs.jobs()) {
    list.push_back({{"id", job.id()},
                    {"state", job.state()},
                    {"user", job.user()},
                    {"program", job.program()},
                    {"target", job.target()},
                    {"trials", job.trials()},
                    {"trials_done", job.trials_done()},
                    {"best_seconds", NumberOrNull(job.best_seconds())},
                    {"error", job.error()},
                    {"created", job.created()},
                    {"ended", job.ended()}});
    if (job.more_targets_size() > 0) list.back()["targets"] = Targets(job);
  }
  return list;
}

Json DevicesJson(const v1::ListDevicesResponse& devices) {
  Json list = Json::array();
  for (const v1::Device& device : devices.devices()) {
    list.push_back({{"name", device.name()},
                    {"state", device.state()},
                    {"reason", device.reason()},
                    {"model", device.model()},
                    {"target", device.target()},
                    {"last_seen", device.last_seen()},
                    {"trials_per_second", device.trials_per_second()},
                    {"libraries", Texts(device.libraries())},
                    {"labels", Texts(device.labels())},
                    {"reserved_for", device.reserved_for()},
                    {"reserved_until", device.reserved_until()},
                    {"unsteady", device.unsteady()},
                    {"clock_mhz", NumberOrNull(device.clock_mhz())},
                    {"temperature_c", NumberOrNull(device.temperature_c())},
                    {"isolation", device.isolation()}});
  }
  return list;
}

Json TokensJson(const v1::ListTokensResponse& tokens) {
  Json list = Json::array();
  for (const v1::Token& token : tokens.tokens()) {
    list.push_back({{"name", token.name()},
                    {"role", token.role()},
                    {"created", token.created()},
                    {"expires", token.expires()},
                    {"revoked", token.revoked()}});
  }
  return list;
}

Json AuditJson(const AuditEntries& entries) {
  Json list = Json::array();
  for (const v1::AuditEntry& entry : entries) {
    list.push_back({{"id", entry.id()},
                    {"at", entry.at()},
                    {"actor", entry.actor()},
                    {"action", entry.action()},
                    {"subject", entry.subject()},
                    {"detail", entry.detail()}});
  }
  return list;
}

Json UpdateJson(const v1::JobUpdate& update, const ModelLatency* model) {
  const bool several = HasSeveralTargets(update);
  Json tasks = Json::array();
  for (const v1::TaskProgress& task : update.tasks()) {
    tasks.push_back(
        {{"function", task.function()},
         {"workload", task.workload_hash()},
         {"trials_done", task.trials_done()},
         {"best_seconds", NumberOrNull(task.best_seconds())},
         {"best_gflops", NumberOrNull(task.best_gflops())},
         {"unscheduled_seconds", NumberOrNull(task.unscheduled_seconds())},
         {"default_seconds", NumberOrNull(task.default_seconds())},
         {"weight", NumberOrNull(task.weight())},
         {"share", NumberOrNull(ShareOf(update, task))},
         {"flops", task.flops()},
         {"shape", task.shape()},
         {"algorithms", std::vector<std::string>(task.algorithms().begin(),
                                                 task.algorithms().end())},
         {"keeps_floats", !task.changes_floats()},
         {"state", task.state()}});
    if (several) tasks.back()["target"] = task.target();
  }
  Json devices = Json::array();
  for (const v1::Device& device : update.devices()) {
    devices.push_back({{"name", device.name()}, {"state", device.state()}});
  }
  const Projection projection = Project(update);
  Json json = {
      {"job_id", update.job_id()},
      {"state", update.state()},
      {"trials", update.trials()},
      {"trials_done", update.trials_done()},
      {"by_status", Counts(update.by_status())},
      {"best_seconds", NumberOrNull(update.best_seconds())},
      {"best_gflops", NumberOrNull(update.best_gflops())},
      {"unscheduled_seconds", NumberOrNull(update.unscheduled_seconds())},
      {"projected_seconds", NumberOrNull(projection.tuned)},
      {"projected_untuned_seconds", NumberOrNull(projection.untuned)},
      {"trials_per_second", update.trials_per_second()},
      {"seconds_left", update.seconds_left() >= 0 ? Json(update.seconds_left())
                                                  : Json(nullptr)},
      {"message", update.message()},
      {"error", update.error()},
      {"tasks", std::move(tasks)},
      {"devices", std::move(devices)}};
  if (model != nullptr) {
    json["unfused_seconds"] = NumberOrNull(model->unfused_seconds);
    json["untuned_seconds"] = NumberOrNull(model->untuned_seconds);
    json["latency_seconds"] = NumberOrNull(model->latency_seconds);
  }
  return json;
}

Json StatsJson(int64_t records, int64_t workloads,
               const std::map<std::string, int64_t>& by_status) {
  return {{"records", records},
          {"workloads", workloads},
          {"by_status", Counts(by_status)}};
}

std::string Seconds(double seconds) { return FormatSeconds(seconds); }

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      absl::StrAppend(&line, row[i],
                      std::string(widths[i] - row[i].size() + 2, ' '));
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

std::string FitLines(const std::string& table, const std::string& last,
                     size_t columns, size_t rows) {
  std::vector<std::string> lines =
      absl::StrSplit(table, '\n', absl::SkipEmpty());
  if (rows > 0 && lines.size() + 1 > rows) lines.resize(rows - 1);
  lines.push_back(last);
  for (std::string& line : lines) {
    if (columns > 1 && line.size() >= columns) line.resize(columns - 1);
  }
  return absl::StrJoin(lines, "\n");
}

std::string ShortTarget(const std::string& key) {
  std::vector<std::string> parts = absl::StrSplit(key, ',');
  std::erase_if(parts, [](const std::string& part) {
    return absl::StartsWith(part, "+") || absl::StartsWith(part, "-");
  });
  return absl::StrJoin(parts, ",");
}

std::string JobsTable(const v1::ListJobsResponse& jobs) {
  std::vector<std::vector<std::string>> rows = {{"JOB", "SUBMITTED", "STATE",
                                                 "USER", "PROGRAM", "TARGET",
                                                 "TRIALS", "BEST", ""}};
  for (const v1::Job& job : jobs.jobs()) {
    rows.push_back({job.id(), Minute(job.created()), job.state(), job.user(),
                    job.program(), absl::StrJoin(Targets(job), " + "),
                    Trials(job.trials_done(), job.trials()),
                    Seconds(job.best_seconds()), job.error()});
  }
  return Table(rows);
}

std::string TokensTable(const v1::ListTokensResponse& tokens) {
  const auto or_never = [](const std::string& time) {
    return time.empty() ? "never" : time;
  };
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "ROLE", "CREATED", "EXPIRES", "REVOKED"}};
  for (const v1::Token& token : tokens.tokens()) {
    rows.push_back({token.name(), token.role(), token.created(),
                    or_never(token.expires()), or_never(token.revoked())});
  }
  return Table(rows);
}

std::string AuditTable(const AuditEntries& entries,
                       const std::string& subject) {
  std::vector<std::vector<std::string>> rows = {
      {"AT", "WHO", "WHAT", subject, ""}};
  for (const v1::AuditEntry& entry : entries) {
    rows.push_back({entry.at(), entry.actor(), entry.action(), entry.subject(),
                    entry.detail()});
  }
  return Table(rows);
}

std::string DevicesTable(const v1::ListDevicesResponse& devices) {
  std::vector<std::vector<std::string>> rows = {
      {"DEVICE", "STATE", "MODEL", "TARGET", "LAST SEEN", "TRIALS/S", "MHZ",
       "TEMP", "ISOLATION", ""}};
  for (const v1::Device& device : devices.devices()) {
    rows.push_back({device.name(), device.state(), device.model(),
                    device.target(), device.last_seen(),
                    absl::StrFormat("%.1f", device.trials_per_second()),
                    Fact(device.clock_mhz(), "%.0f"),
                    Fact(device.temperature_c(), "%.0f C"),
                    device.isolation().empty() ? "-" : device.isolation(),
                    device.reason()});
  }
  return Table(rows);
}

std::string ProgressLine(const v1::JobUpdate& update, bool verbose) {
  // What matters most comes first: a terminal shows the start.
  std::string progress =
      absl::StrCat(update.state(), " ",
                   Trials(update.trials_done(), update.trials()), " trials");
  if (update.state() == "running" && update.trials_per_second() > 0) {
    absl::StrAppendFormat(&progress, ", %.1f/s", update.trials_per_second());
    if (update.seconds_left() >= 0) {
      absl::StrAppend(&progress, ", ", Clock(update.seconds_left()), " left");
    }
  }
  std::vector<std::string> parts = {std::move(progress)};
  if (HasSeveralTargets(update)) {
    // The sum of times on different targets means nothing.
    for (std::string& part : TargetParts(update)) {
      parts.push_back(std::move(part));
    }
  } else if (IsWhole(update)) {
    std::string projected = ProjectionText(update);
    if (!projected.empty()) parts.push_back(std::move(projected));
  } else if (update.best_seconds() > 0) {
    std::string best = Seconds(update.best_seconds());
    if (update.unscheduled_seconds() > 0) {
      absl::StrAppendFormat(
          &best, ", %.1fx",
          update.unscheduled_seconds() / update.best_seconds());
    }
    absl::StrAppendFormat(&best, ", %.1f GFLOPS", update.best_gflops());
    parts.push_back(std::move(best));
  }
  const bool goes_on =
      update.state() == "running" || update.state() == "queued";
  if (goes_on && !update.message().empty() &&
      (verbose || !absl::StartsWith(update.message(), "model: "))) {
    parts.push_back(update.message());
  }
  const std::map<std::string, int64_t> by_status(update.by_status().begin(),
                                                 update.by_status().end());
  if (!by_status.empty()) {
    parts.push_back(
        absl::StrJoin(by_status, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.first, " ", entry.second);
        }));
  }
  std::map<std::string, int> states;
  for (const v1::Device& device : update.devices()) ++states[device.state()];
  if (!states.empty()) {
    parts.push_back(absl::StrCat(
        "devices: ",
        absl::StrJoin(states, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.second, " ", entry.first);
        })));
  }
  return absl::StrJoin(parts, " | ");
}

std::string LatencyText(const ModelLatency& model) {
  if (model.latency_seconds <= 0) return "";
  return absl::StrCat("measured ", Seconds(model.latency_seconds), ", ",
                      Seconds(model.untuned_seconds),
                      " with default schedules, ",
                      Seconds(model.unfused_seconds), " without fusion");
}

std::string Summary(const v1::JobUpdate& update) {
  std::string text =
      absl::StrCat(update.job_id(), " ", update.state(), ", ",
                   Trials(update.trials_done(), update.trials()), " trials");
  if (!update.error().empty()) absl::StrAppend(&text, ": ", update.error());
  if (IsWhole(update)) {
    const std::string projected = ProjectionText(update);
    return absl::StrCat(text, "\n", Table(TaskRows(update)), projected,
                        projected.empty() ? "" : "\n", AlgorithmsText(update));
  }
  const bool several = HasSeveralTargets(update);
  std::vector<std::vector<std::string>> rows = {
      {"FUNCTION", "UNSCHEDULED", "TUNED", "SPEED-UP", "GFLOPS", "TRIALS"}};
  if (several) rows.front().insert(rows.front().begin() + 1, "TARGET");
  for (const v1::TaskProgress& task : update.tasks()) {
    const bool both = task.best_seconds() > 0 && task.unscheduled_seconds() > 0;
    rows.push_back(
        {task.function(), Seconds(task.unscheduled_seconds()),
         Seconds(task.best_seconds()),
         both ? absl::StrFormat(
                    "%.1fx", task.unscheduled_seconds() / task.best_seconds())
              : "-",
         task.best_seconds() > 0 ? absl::StrFormat("%.1f", task.best_gflops())
                                 : "-",
         absl::StrCat(task.trials_done())});
    if (several) rows.back().insert(rows.back().begin() + 1, task.target());
  }
  return absl::StrCat(text, "\n", Table(rows), AlgorithmsText(update));
}

}  // namespace tilefarm::cli
