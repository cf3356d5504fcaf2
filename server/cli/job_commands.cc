// run, submit, watch, jobs, cancel.
#include <pwd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/driver/read_model.h"
#include "compiler/target/target.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/ctrl_c.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"
#include "server/cli/input.h"
#include "server/cli/local_farm.h"
#include "server/cli/measured_model.h"
#include "server/cli/progress.h"
#include "server/farm/random_id.h"

namespace tilefarm::cli {
namespace {

// How long `watch` waits for an unavailable server.
constexpr absl::Duration kReconnectPatience = absl::Minutes(10);

constexpr int kHighestPriority = 10;

// `message` is the request, or one of its further targets.
template <typename Message>
void SetTarget(const target::Target& target, Message& message) {
  message.set_target(target.Key());
  if (!target.caches_known) return;
  message.mutable_caches()->set_l1_bytes(target.caches.l1_bytes);
  message.mutable_caches()->set_l2_bytes(target.caches.l2_bytes);
  message.mutable_caches()->set_l3_bytes(target.caches.l3_bytes);
}

// AlreadyExists: a target is given twice, perhaps under another name.
absl::StatusOr<std::vector<target::Target>> ParseTargets(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::string> seen;  // text by key
  std::vector<target::Target> targets;
  for (const std::string& text : texts) {
    TF_ASSIGN_OR_RETURN(targets.emplace_back(), target::Parse(text));
    const std::string key = targets.back().Key();
    const auto [at, is_new] = seen.emplace(key, text);
    if (!is_new) {
      return absl::AlreadyExistsError(absl::StrCat("--target ", text,
                                                   " and --target ", at->second,
                                                   " are the same: ", key));
    }
  }
  return targets;
}

void SetTargets(const std::vector<target::Target>& targets,
                v1::SubmitRequest& request) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (i == 0) {
      SetTarget(targets[i], request);
    } else {
      SetTarget(targets[i], *request.add_more_targets());
    }
  }
}

absl::StatusOr<ProgramInput> ReadJobProgram(
    const JobOptions& options, const std::vector<target::Target>& targets) {
  if (!driver::IsModel(options.program)) {
    if (options.dims.empty()) return ReadProgram(options.program);
    return absl::InvalidArgumentError("--dim is for models (.onnx)");
  }
  for (const target::Target& target : targets) {
    if (target.is_gpu() == targets[0].is_gpu()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the functions of a model for ", targets[0].Key(), " and for ",
        target.Key(), " are not the same: tune them in jobs of their own"));
  }
  return ReadModelProgram(options.program, options.dims, targets[0]);
}

absl::Status FillRequest(const JobOptions& options,
                         v1::SubmitRequest& request) {
  TF_ASSIGN_OR_RETURN(const std::vector<target::Target> targets,
                      ParseTargets(options.targets));
  SetTargets(targets, request);
  TF_ASSIGN_OR_RETURN(ProgramInput program, ReadJobProgram(options, targets));
  request.set_request_id(farm::RandomId(128));
  request.set_user(UserName());
  request.set_program(std::move(program.text));
  request.set_program_name(program.name);
  request.mutable_weights()->insert(program.weights.begin(),
                                    program.weights.end());
  request.set_trials(options.trials);
  if (!options.time.empty()) {
    TF_ASSIGN_OR_RETURN(const double seconds, ParseSeconds(options.time));
    request.set_seconds(seconds);
  }
  request.set_patience(options.patience);
  request.set_seed(options.seed);
  request.set_model(options.model);
  request.set_search(options.search);
  if (!options.space.empty()) {
    TF_ASSIGN_OR_RETURN(*request.mutable_space_trace(),
                        ReadTrace(options.space));
  }
  request.set_flush_cache(options.flush_cache);
  request.set_allow_library(options.allow_library);
  request.set_strict_fp(options.strict_fp);
  request.set_no_winograd(options.no_winograd);
  request.set_priority(options.priority);
  for (const std::string& one : options.require) {
    request.add_requirements(one);
  }
  return absl::OkStatus();
}

// Returns the exit code; kSuccess: the request is complete.
int MakeRequest(const JobOptions& options, v1::SubmitRequest& request) {
  const absl::Status filled = FillRequest(options, request);
  if (filled.ok()) return kSuccess;
  const int code = Fail(filled);
  return absl::IsAlreadyExists(filled) ? kBadUsage : code;
}

// `options`: of a job that tunes a model; otherwise null.
int WatchJob(const Common& common, Client& client, const std::string& job_id,
             const JobOptions* options = nullptr) {
  ModelLatency latency;
  Progress progress(common, options == nullptr ? nullptr : &latency);
  const auto show = [&](const v1::JobUpdate& update) {
    if (options != nullptr && update.state() == "done" &&
        latency.latency_seconds == 0 && CanMeasureModel(*options)) {
      progress.Say("measures the model");
      const auto measured = MeasureModel(common, *options);
      // The result of tuning does not depend on it.
      if (measured.ok()) {
        latency = *measured;
      } else {
        progress.Say(absl::StrCat("the model was not measured: ",
                                  std::string(measured.status().message())));
      }
    }
    progress.Show(update);
  };
  const auto last = client.Watch(
      job_id, show, [&](const std::string& text) { progress.Say(text); },
      kReconnectPatience);
  progress.EndLine();
  if (!last.ok()) {
    const int code = Fail(last.status());
    return absl::IsNotFound(last.status()) ? kNothingFound : code;
  }
  if (!common.json) {
    const std::string measured = LatencyText(latency);
    std::printf("%s%s%s", Summary(*last).c_str(), measured.c_str(),
                measured.empty() ? "" : "\n");
  }
  return last->state() == "done" ? kSuccess : kFailure;
}

// Says which job was submitted, and shows it until it ends.
int ShowJob(const Common& common, Client& client, const JobOptions& options,
            const v1::SubmitRequest& request, const std::string& job_id) {
  std::string targets = ShortTarget(request.target());
  for (const v1::JobTarget& one : request.more_targets()) {
    absl::StrAppend(&targets, " and ", ShortTarget(one.target()));
  }
  std::fprintf(stderr, "tune: %s: %s on %s\n", job_id.c_str(),
               request.program_name().c_str(), targets.c_str());
  return WatchJob(common, client, job_id,
                  driver::IsModel(options.program) ? &options : nullptr);
}

absl::StatusOr<v1::CancelResponse> CancelJob(Client& client,
                                             const std::string& job_id) {
  v1::CancelRequest request;
  request.set_job_id(job_id);
  request.set_user(UserName());
  return client.Cancel(request);
}

}  // namespace

// The id that starts with `given`, which may lack "job-"; the latest job's if
// it is empty. NotFound; InvalidArgument: several ids do.
absl::StatusOr<std::string> FindJob(Client& client, const std::string& given) {
  constexpr size_t kNamed = 5;  // of several
  v1::ListJobsRequest request;
  if (given.empty()) {
    request.set_limit(1);
  } else {
    request.set_id_prefix(
        absl::StartsWith(given, "job-") ? given : absl::StrCat("job-", given));
  }
  TF_ASSIGN_OR_RETURN(const v1::ListJobsResponse found,
                      client.ListJobs(request));
  std::vector<std::string> ids;
  for (const v1::Job& job : found.jobs()) {
    if (job.id() == request.id_prefix()) return job.id();
    ids.push_back(job.id());
  }
  if (ids.size() == 1) return ids[0];
  if (ids.empty()) {
    return absl::NotFoundError(given.empty()
                                   ? "the server has no jobs"
                                   : absl::StrCat("there is no job ", given));
  }
  const size_t count = ids.size();
  if (count > kNamed) ids.resize(kNamed);
  return absl::InvalidArgumentError(
      absl::StrCat(count, " jobs start with ", given, ": ",
                   absl::StrJoin(ids, ", "), count > kNamed ? ", ..." : ""));
}

namespace {

// Of `run --local`, at Ctrl-C: the server ends with this process, so its job
// does, too.
void EndLocalJob(const transport::Endpoint& server, const std::string& job_id,
                 const std::string& db) {
  // The children end with this process.
  if (job_id.empty()) _exit(kInterrupted);
  std::fprintf(stderr,
               "\ntune: ends; what was measured stays in %s, and the same "
               "command goes on from there\n",
               db.c_str());
  Client client(server);
  const auto cancelled = CancelJob(client, job_id);
  if (!cancelled.ok()) _exit(Fail(cancelled.status()));
}

// Cancels the job of a run that was killed, and says what else the server does
// meanwhile: jobs that another server on the same database did not finish.
absl::Status TidyLeftJobs(Client& client, const LocalFarm& farm) {
  v1::ListJobsRequest request;
  request.add_states("queued");
  request.add_states("running");
  TF_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs,
                      client.ListJobs(request));
  std::vector<std::string> others;
  for (const v1::Job& job : jobs.jobs()) {
    if (job.id() == farm.left_job()) {
      TF_RETURN_IF_ERROR(CancelJob(client, job.id()).status());
      std::fprintf(stderr,
                   "tune: cancels %s, whose run was killed; its records "
                   "count\n",
                   job.id().c_str());
    } else {
      others.push_back(job.id());
    }
  }
  if (!others.empty()) {
    std::fprintf(stderr,
                 "tune: unfinished jobs of this database go on beside this "
                 "one: %zu, such as %s\n",
                 others.size(), others[0].c_str());
  }
  return absl::OkStatus();
}

int RunLocally(const Common& common, const JobOptions& options,
               v1::SubmitRequest request) {
  // Set before the job's id is.
  const auto endpoint = std::make_shared<transport::Endpoint>();
  CtrlC ctrl_c([endpoint, db = options.db](const std::string& job_id) {
    EndLocalJob(*endpoint, job_id, db);
  });
  const auto farm =
      LocalFarm::Start(options.db, options.targets, [](const std::string& why) {
        std::fprintf(stderr, "\ntune: %s\n", why.c_str());
        _exit(kFailure);
      });
  if (!farm.ok()) {
    const int code = Fail(farm.status());
    return absl::IsInvalidArgument(farm.status()) ? kBadUsage : code;
  }
  Common local = common;
  local.server = *endpoint = (*farm)->endpoint();
  Client client(local.server);
  const absl::Status tidied = TidyLeftJobs(client, **farm);
  if (!tidied.ok()) return Fail(tidied);
  // The server is there for this job: others of the user wait.
  if (request.priority() == 0) request.set_priority(kHighestPriority);
  const auto job_id = client.Submit(request);
  if (!job_id.ok()) return Fail(job_id.status());
  const absl::Status noted = (*farm)->NoteJob(*job_id);
  if (!noted.ok()) return Fail(noted);
  ctrl_c.SetJob(*job_id);
  const int code = ShowJob(local, client, options, request, *job_id);
  if (ctrl_c.pressed()) return kInterrupted;
  ctrl_c.SetJob("");
  if (code == kSuccess && !common.json) {
    std::fflush(stdout);
    std::fprintf(stderr,
                 "tune: build it with: tunec %s --target %s --db %s -o "
                 "OUT.so\n",
                 options.program.c_str(), options.targets.front().c_str(),
                 options.db.c_str());
  }
  return code;
}

// By one column of the list.
bool IsBefore(const std::string& column, const v1::Job& a, const v1::Job& b) {
  if (column == "state") return a.state() < b.state();
  if (column == "user") return a.user() < b.user();
  if (column == "program") return a.program() < b.program();
  if (column == "trials") return a.trials_done() < b.trials_done();
  if (column == "best") {
    // Unknown times come last.
    if (a.best_seconds() <= 0 || b.best_seconds() <= 0) {
      return a.best_seconds() > b.best_seconds();
    }
    return a.best_seconds() < b.best_seconds();
  }
  return a.created() < b.created();
}

}  // namespace

std::string UserName() {
  const passwd* user = getpwuid(getuid());
  if (user != nullptr && user->pw_name != nullptr) return user->pw_name;
  const char* name = std::getenv("USER");
  return name == nullptr ? absl::StrCat(getuid()) : name;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "tune: %s\n", std::string(status.message()).c_str());
  return kFailure;
}

int Run(const Common& common, const JobOptions& options) {
  v1::SubmitRequest request;
  const int made = MakeRequest(options, request);
  if (made != kSuccess) return made;
  if (options.local) return RunLocally(common, options, request);
  CtrlC ctrl_c(LeaveJob(common.server.address));
  Client client(common.server);
  const auto job_id = client.Submit(request);
  if (!job_id.ok()) return Fail(job_id.status());
  ctrl_c.SetJob(*job_id);
  return ShowJob(common, client, options, request, *job_id);
}

int Submit(const Common& common, const JobOptions& options) {
  v1::SubmitRequest request;
  const int made = MakeRequest(options, request);
  if (made != kSuccess) return made;
  Client client(common.server);
  const auto job_id = client.Submit(request);
  if (!job_id.ok()) return Fail(job_id.status());
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"id", *job_id}}.dump().c_str());
  } else {
    std::printf("%s\n", job_id->c_str());
  }
  return kSuccess;
}

int Watch(const Common& common, const std::string& job) {
  CtrlC ctrl_c(LeaveJob(common.server.address));
  Client client(common.server);
  auto job_id = FindJob(client, job);
  // A server that is away for a moment is waited for, as it is later on.
  if (absl::IsUnavailable(job_id.status()) && !job.empty()) job_id = job;
  if (!job_id.ok()) {
    const int code = Fail(job_id.status());
    return absl::IsNotFound(job_id.status()) ? kNothingFound : code;
  }
  ctrl_c.SetJob(*job_id);
  if (*job_id != job) std::fprintf(stderr, "tune: %s\n", job_id->c_str());
  return WatchJob(common, client, *job_id);
}

int Jobs(const Common& common, const JobsOptions& options) {
  Client client(common.server);
  v1::ListJobsRequest request;
  for (const std::string& state : options.states) request.add_states(state);
  request.set_user(options.mine ? UserName() : options.user);
  request.set_program(options.program);
  request.set_target(options.target);
  // The server sends no more than is shown, unless they are sorted here.
  const Paging& paging = options.paging;
  if (paging.sort.empty() && !paging.reverse && paging.limit > 0) {
    request.set_limit(paging.limit + paging.offset);
  }
  auto jobs = client.ListJobs(request);
  if (!jobs.ok()) return Fail(jobs.status());
  KeepPage(paging, *jobs->mutable_jobs(),
           [&](const v1::Job& a, const v1::Job& b) {
             return IsBefore(paging.sort, a, b);
           });
  std::printf("%s", common.json
                        ? absl::StrCat(JobsJson(*jobs).dump(), "\n").c_str()
                        : JobsTable(*jobs).c_str());
  return kSuccess;
}

int Cancel(const Common& common, const std::string& job) {
  Client client(common.server);
  const auto job_id = FindJob(client, job);
  if (!job_id.ok()) return Fail(job_id.status());
  const auto cancelled = CancelJob(client, *job_id);
  if (!cancelled.ok()) return Fail(cancelled.status());
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"id", *job_id},
                                               {"state", cancelled->state()}}
                            .dump()
                            .c_str());
  } else {
    std::printf("%s %s\n", job_id->c_str(), cancelled->state().c_str());
  }
  return kSuccess;
}

}  // namespace tilefarm::cli
