// Jobs: lists, one job, its candidates, and orders.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "proto/tilefarm/v1/message_limits.h"
#include "proto/tilefarm/v1/tune.pb.h"
#include "server/api/handlers.h"
#include "server/api/shapes.h"
#include "server/jobs/job_log.h"
#include "server/services/convert.h"
#include "server/services/orders.h"
#include "server/spans/chrome_trace.h"

namespace tilefarm::api {
namespace {

constexpr int64_t kMostJobs = 1000;

database::Store::JobTimes TimesOf(
    const std::map<std::string, database::Store::JobTimes>& times,
    const std::string& id) {
  const auto found = times.find(id);
  return found == times.end() ? database::Store::JobTimes() : found->second;
}

Json SpecJson(const jobs::JobSpec& spec) {
  return {{"trials", spec.trials},
          {"seconds", NumberOrNull(spec.seconds)},
          {"patience", spec.patience},
          {"seed", spec.seed},
          {"model", spec.model},
          {"search", spec.search},
          {"flush_cache", spec.flush_cache},
          {"allow_library", spec.allow_library},
          {"strict_fp", spec.strict_fp},
          {"priority", spec.priority},
          {"requirements", spec.requirements},
          {"sketch_by_hand", !spec.space_trace.empty()}};
}

// The message as its JSON says, checked like one from the wire.
absl::Status ReadMessage(const std::string& body,
                         google::protobuf::Message& message) {
  if (NestsDeeper(body)) {
    return absl::InvalidArgumentError("the body nests too deep");
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = false;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(body, &message, options);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the body: ",
        std::string(parsed.message().data(), parsed.message().size())));
  }
  const auto fault =
      v1::FindFault(*message.GetDescriptor(), message.SerializeAsString());
  if (!fault.has_value()) return absl::OkStatus();
  return fault->kind == v1::Refusal::Kind::kTooMuch
             ? absl::ResourceExhaustedError(fault->why)
             : absl::InvalidArgumentError(fault->why);
}

}  // namespace

absl::StatusOr<Json> ListJobs(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(
      call.query.Allow({"state", "user", "program", "target", "id", "limit"}));
  jobs::JobFilter filter{.user = call.query.Text("user"),
                         .program = call.query.Text("program"),
                         .target = call.query.Text("target"),
                         .id_prefix = call.query.Text("id")};
  TF_ASSIGN_OR_RETURN(filter.limit,
                      call.query.Number("limit", 200, 1, kMostJobs));
  const std::string state = call.query.Text("state");
  if (!state.empty()) {
    const auto known = jobs::ParseJobState(state);
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", state,
          "' is no state of a job: queued, running, done, failed, cancelled"));
    }
    filter.states.push_back(*known);
  }
  TF_ASSIGN_OR_RETURN(const auto all, parts.jobs.List(filter));
  TF_ASSIGN_OR_RETURN(const auto times, parts.store.ListJobTimes());
  Json list = Json::array();
  for (const jobs::JobSnapshot& job : all) {
    list.push_back(JobRowJson(job, TimesOf(times, job.id)));
  }
  Json counts = Json::object();
  for (const auto& [name, count] : parts.jobs.CountByState()) {
    counts[name] = count;
  }
  return Json{{"jobs", std::move(list)}, {"by_state", std::move(counts)}};
}

absl::StatusOr<Json> GetJob(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  const std::string& id = call.path.at("job");
  TF_ASSIGN_OR_RETURN(const jobs::JobSnapshot job, parts.jobs.Get(id));
  TF_ASSIGN_OR_RETURN(const database::JobRow row, parts.store.GetJob(id));
  TF_ASSIGN_OR_RETURN(const jobs::JobSpec spec, jobs::JobFromRow(row));
  Json json = JobJson(job, {row.created_at, row.ended_at});
  json["options"] = SpecJson(spec);
  return json;
}

absl::StatusOr<Json> GetJobProgram(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  TF_ASSIGN_OR_RETURN(const database::JobRow row,
                      parts.store.GetJob(call.path.at("job")));
  return Json{{"text", row.program}};
}

absl::StatusOr<Json> GetJobCandidates(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"after", "limit"}));
  const std::string& id = call.path.at("job");
  TF_RETURN_IF_ERROR(parts.jobs.Get(id).status());
  database::OutcomeFilter filter{.job_id = id};
  TF_ASSIGN_OR_RETURN(filter.after,
                      call.query.Number("after", 0, 0, INT64_MAX));
  TF_ASSIGN_OR_RETURN(filter.limit, call.query.Number("limit", kMostCandidates,
                                                      1, kMostCandidates));
  TF_ASSIGN_OR_RETURN(const auto rows, parts.store.ListOutcomes(filter));
  return CandidatesJson(rows);
}

absl::StatusOr<Json> GetJobTimeline(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  const std::string& id = call.path.at("job");
  TF_RETURN_IF_ERROR(parts.jobs.Get(id).status());
  TF_ASSIGN_OR_RETURN(const auto lines, parts.store.ReadJobLog(id));
  TF_ASSIGN_OR_RETURN(const auto lives, jobs::ReadLives(lines));
  return spans::ChromeTrace(id, lives);
}

absl::StatusOr<Json> SubmitJob(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  v1::SubmitRequest request;
  TF_RETURN_IF_ERROR(ReadMessage(call.body, request));
  jobs::JobSpec spec = services::FromProto(request);
  spec.user = call.caller.NameOr(spec.user);
  TF_ASSIGN_OR_RETURN(const std::string id, parts.jobs.Submit(std::move(spec)));
  return Json{{"id", id}};
}

absl::StatusOr<Json> CancelJob(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  const std::string& id = call.path.at("job");
  TF_ASSIGN_OR_RETURN(const jobs::JobState state,
                      services::CancelJob(parts.jobs, call.caller, id));
  return Json{{"id", id}, {"state", std::string(jobs::JobStateName(state))}};
}

}  // namespace tilefarm::api
