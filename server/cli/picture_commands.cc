// report and plot: a job in pictures, in a file or on the terminal.
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"
#include "server/cli/plot.h"
#include "server/cli/report.h"

namespace tilefarm::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kApi[] = "/api/v1";
// Functions that a report draws by themselves are at most so many.
constexpr size_t kMostWorkloads = 8;

absl::StatusOr<Json> Ask(Client& client, const std::string& path,
                         const std::string& query = "") {
  TF_ASSIGN_OR_RETURN(const std::string text,
                      client.Read(absl::StrCat(kApi, path), query));
  Json json = ParseJson<Json>(text);
  if (json.is_discarded()) {
    return absl::InternalError(
        absl::StrCat("the server's answer to ", path, " is no JSON"));
  }
  return json;
}

// A value in a query.
std::string EscapeQuery(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_') {
      out.push_back(c);
    } else {
      absl::StrAppend(&out, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return out;
}

// Roofline and decisions of a job's functions.
absl::StatusOr<Json> WorkloadsOf(Client& client, const Json& job) {
  std::vector<Json> tasks = job.at("tasks");
  const auto time = [](const Json& task) {
    for (const char* key : {"default_seconds", "unscheduled_seconds"}) {
      if (task.at(key).is_number()) {
        return task.at(key).get<double>() * task.value("weight", 1.0);
      }
    }
    return 0.0;
  };
  std::stable_sort(
      tasks.begin(), tasks.end(),
      [&](const Json& a, const Json& b) { return time(a) > time(b); });
  if (tasks.size() > kMostWorkloads) tasks.resize(kMostWorkloads);
  Json workloads = Json::array();
  for (const Json& task : tasks) {
    if (task.at("trials_done") == 0) continue;
    const std::string path =
        absl::StrCat("/workloads/", task.at("workload").get<std::string>());
    const std::string query = absl::StrCat(
        "target=", EscapeQuery(task.at("target").get<std::string>()));
    TF_ASSIGN_OR_RETURN(const Json workload, Ask(client, path, query));
    TF_ASSIGN_OR_RETURN(const Json decisions,
                        Ask(client, path + "/decisions", query));
    workloads.push_back({{"workload", task.at("workload")},
                         {"target", task.at("target")},
                         {"roofline", workload.at("roofline")},
                         {"decisions", decisions}});
  }
  return workloads;
}

absl::StatusOr<Json> ReportData(Client& client, const std::string& job) {
  TF_ASSIGN_OR_RETURN(const std::string id, FindJob(client, job));
  TF_ASSIGN_OR_RETURN(Json server, Ask(client, ""));
  server.erase("routes");
  TF_ASSIGN_OR_RETURN(const Json found, Ask(client, "/jobs/" + id));
  TF_ASSIGN_OR_RETURN(const Json candidates,
                      Ask(client, absl::StrCat("/jobs/", id, "/candidates")));
  TF_ASSIGN_OR_RETURN(Json workloads, WorkloadsOf(client, found));
  return Json{{"server", std::move(server)},
              {"job", found},
              {"candidates", candidates},
              {"workloads", std::move(workloads)}};
}

absl::Status WriteReport(const Json& data, const std::string& path) {
  const std::string page = ReportPage(data);
  std::ofstream file(path, std::ios::binary);
  file << page;
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

// The candidates of one task, and the best so far.
absl::StatusOr<Plot> PlotOf(const Json& job, const Json& candidates,
                            const PictureOptions& options) {
  const Json& tasks = job.at("tasks");
  const Json* task = nullptr;
  for (const Json& one : tasks) {
    if (options.function.empty() ? task == nullptr
                                 : one.at("function") == options.function) {
      task = &one;
    }
  }
  if (task == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the job has no function '", options.function, "'"));
  }
  int64_t index = -1;
  const Json& known = candidates.at("tasks");
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].at("workload") == task->at("workload") &&
        known[i].at("target") == task->at("target")) {
      index = static_cast<int64_t>(i);
    }
  }
  Plot plot;
  plot.x_name = options.by == "time" ? "s" : "trials";
  double best = 0, first = 0;
  int64_t trial = 0;
  for (size_t i = 0; i < candidates.at("record").size(); ++i) {
    if (candidates.at("task")[i] != index) continue;
    ++trial;
    const double at = candidates.at("at")[i].is_number()
                          ? candidates.at("at")[i].get<double>() / 1000
                          : 0;
    if (trial == 1) first = at;
    const double x =
        options.by == "time" ? at - first : static_cast<double>(trial);
    if (!candidates.at("seconds")[i].is_number()) continue;
    const double seconds = candidates.at("seconds")[i];
    plot.points.push_back({x, seconds});
    if (!candidates.at("rank")[i].is_number()) continue;
    const double time = candidates.at("confirmed")[i] == 1
                            ? candidates.at("rank")[i].get<double>()
                            : seconds;
    if (best > 0 && time >= best) continue;
    best = time;
    plot.steps.push_back({x, time});
  }
  for (const auto& [name, key] :
       {std::pair("as written", "unscheduled_seconds"),
        std::pair("default schedule", "default_seconds")}) {
    if (task->at(key).is_number()) {
      plot.levels.push_back({name, task->at(key).get<double>()});
    }
  }
  return plot;
}

void FitTerminal(const PictureOptions& options, Plot& plot) {
  winsize size = {};
  if (isatty(STDOUT_FILENO) != 0 &&
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    plot.columns = size.ws_col;
    plot.rows = std::max(8, std::min(size.ws_row - 6, size.ws_col / 3));
  }
  if (options.columns > 0) plot.columns = options.columns;
  if (options.rows > 0) plot.rows = options.rows;
  std::setlocale(LC_CTYPE, "");
  plot.ascii = options.ascii || std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

absl::Status ShowPlot(Client& client, const PictureOptions& options) {
  TF_ASSIGN_OR_RETURN(const std::string id, FindJob(client, options.job));
  TF_ASSIGN_OR_RETURN(const Json job, Ask(client, "/jobs/" + id));
  TF_ASSIGN_OR_RETURN(const Json candidates,
                      Ask(client, absl::StrCat("/jobs/", id, "/candidates")));
  TF_ASSIGN_OR_RETURN(Plot plot, PlotOf(job, candidates, options));
  FitTerminal(options, plot);
  const std::string text = DrawPlot(plot);
  if (text.empty()) {
    return absl::NotFoundError(
        absl::StrCat(id, " has no candidate with a time yet"));
  }
  std::printf("%s: %s, best %s\n%s", id.c_str(),
              job.at("program").get<std::string>().c_str(),
              Seconds(plot.steps.empty() ? 0 : plot.steps.back().y).c_str(),
              text.c_str());
  return absl::OkStatus();
}

int CodeOf(const absl::Status& status) {
  if (status.ok()) return kSuccess;
  Fail(status);
  return absl::IsNotFound(status) ? kNothingFound : kFailure;
}

}  // namespace

int Report(const Common& common, const PictureOptions& options) {
  Client client(common.server);
  const auto data = ReportData(client, options.job);
  if (!data.ok()) return CodeOf(data.status());
  const absl::Status written = WriteReport(*data, options.output);
  if (!written.ok()) return Fail(written);
  if (common.json) {
    std::printf("%s\n", Json{{"id", data->at("job").at("job_id")},
                             {"file", options.output}}
                            .dump()
                            .c_str());
  } else {
    std::fprintf(stderr, "tune: wrote %s\n", options.output.c_str());
  }
  return kSuccess;
}

int DrawJob(const Common& common, const PictureOptions& options) {
  Client client(common.server);
  return CodeOf(ShowPlot(client, options));
}

}  // namespace tilefarm::cli
