#include "server/services/regression_service.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "compiler/target/target.h"
#include "server/regression/sequential_test.h"
#include "server/services/admit.h"
#include "server/services/compare_call.h"
#include "server/services/put_artifact_call.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }
bool IsTimeOrNone(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

bool IsVerdict(const std::string& name) {
  using regression::Verdict;
  for (const Verdict verdict : {Verdict::kSlower, Verdict::kFaster,
                                Verdict::kSame, Verdict::kInconclusive}) {
    if (regression::VerdictName(verdict) == name) return true;
  }
  return name.empty();
}

absl::Status CheckPoint(const v1::HistoryPoint& point) {
  const auto bad = [&](const char* what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the point of ", point.benchmark(), " ", what));
  };
  if (point.series().empty() || point.benchmark().empty() ||
      point.device_class().empty() || point.branch().empty() ||
      point.commit().empty()) {
    return bad("lacks its series, benchmark, device class, branch or commit");
  }
  absl::Time at;
  if (!point.at().empty() &&
      !absl::ParseTime(absl::RFC3339_full, point.at(), &at, nullptr)) {
    return bad("has a time that is not as in 2026-01-31T12:00:00Z");
  }
  if (!IsTime(point.seconds()) || !IsTimeOrNone(point.low_seconds()) ||
      !IsTimeOrNone(point.high_seconds()) ||
      !IsTimeOrNone(point.canary_seconds())) {
    return bad("has a time of execution that is none");
  }
  // An upper end may be infinite.
  if (!IsTimeOrNone(point.ratio()) || !IsTimeOrNone(point.ratio_low()) ||
      std::isnan(point.ratio_high()) || point.ratio_high() < 0 ||
      !IsTimeOrNone(point.ratio_level()) || point.clusters() < 0) {
    return bad("has a ratio that is none");
  }
  if (!IsTimeOrNone(point.spread())) return bad("has a spread that is none");
  if (!IsVerdict(point.verdict())) return bad("has an unknown verdict");
  return absl::OkStatus();
}

database::HistoryRow HistoryRowOf(const v1::HistoryPoint& point) {
  return {.series = point.series(),
          .benchmark = point.benchmark(),
          .device_class = point.device_class(),
          .branch = point.branch(),
          .commit = point.commit(),
          .at = point.at(),
          .device = point.device(),
          .seconds = point.seconds(),
          .low_seconds = point.low_seconds(),
          .high_seconds = point.high_seconds(),
          .ratio = point.ratio(),
          .ratio_low = point.ratio_low(),
          .ratio_high = point.ratio_high(),
          .ratio_level = point.ratio_level(),
          .clusters = point.clusters(),
          .verdict = point.verdict(),
          .baseline_commit = point.baseline_commit(),
          .canary_seconds = point.canary_seconds(),
          .unsteady = point.unsteady(),
          .artifact = point.artifact(),
          .symbol = point.symbol(),
          .spread = point.spread(),
          .target = point.target(),
          .program = point.program(),
          .trace = point.trace(),
          .fingerprint = point.fingerprint(),
          .user = "",
          .workload = point.workload()};
}

v1::HistoryPoint HistoryPointOf(const database::HistoryRow& row) {
  v1::HistoryPoint point;
  point.set_id(row.id);
  point.set_series(row.series);
  point.set_benchmark(row.benchmark);
  point.set_device_class(row.device_class);
  point.set_branch(row.branch);
  point.set_commit(row.commit);
  point.set_at(row.at);
  point.set_device(row.device);
  point.set_seconds(row.seconds);
  point.set_low_seconds(row.low_seconds);
  point.set_high_seconds(row.high_seconds);
  point.set_ratio(row.ratio);
  point.set_ratio_low(row.ratio_low);
  point.set_ratio_high(row.ratio_high);
  point.set_ratio_level(row.ratio_level);
  point.set_clusters(row.clusters);
  point.set_verdict(row.verdict);
  point.set_baseline_commit(row.baseline_commit);
  point.set_canary_seconds(row.canary_seconds);
  point.set_unsteady(row.unsteady);
  point.set_artifact(row.artifact);
  point.set_symbol(row.symbol);
  point.set_spread(row.spread);
  point.set_target(row.target);
  point.set_program(row.program);
  point.set_trace(row.trace);
  point.set_fingerprint(row.fingerprint);
  point.set_user(row.user);
  point.set_workload(row.workload);
  return point;
}

v1::Acknowledgement AcknowledgementOf(const database::AcknowledgementRow& row) {
  v1::Acknowledgement out;
  out.set_series(row.series);
  out.set_benchmark(row.benchmark);
  out.set_device_class(row.device_class);
  out.set_branch(row.branch);
  out.set_commit(row.commit);
  out.set_reason(row.reason);
  out.set_user(row.user);
  out.set_at(row.at);
  return out;
}

}  // namespace

grpc::ServerReadReactor<v1::ArtifactPart>* RegressionService::PutArtifact(
    grpc::CallbackServerContext* context, v1::PutArtifactResponse* response) {
  return NewPutArtifactCall({.executor = executor_,
                             .store = store_,
                             .comparisons = comparisons_,
                             .gate = gate_,
                             .retention = retention_,
                             .incoming_bytes = incoming_bytes_},
                            *context, response);
}

grpc::ServerWriteReactor<v1::CompareUpdate>* RegressionService::Compare(
    grpc::CallbackServerContext* context, const v1::CompareRequest* request) {
  return NewCompareCall(executor_, comparisons_, gate_, *context, *request);
}

grpc::Status RegressionService::FindDevices(
    grpc::ServerContext* context, const v1::FindDevicesRequest* request,
    v1::FindDevicesResponse* response) {
  const auto find = [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(const security::Caller caller,
                        Admit(gate_, *context,
                              "/tilefarm.v1.Regression/FindDevices", *request));
    TF_RETURN_IF_ERROR(comparisons_.CheckAllowed());
    TF_ASSIGN_OR_RETURN(const target::Target target,
                        target::ParseKey(request->target()));
    TF_ASSIGN_OR_RETURN(
        const farm::QueueTerms terms,
        comparisons_.Terms(
            target, caller.NameOr(request->user()),
            {request->requirements().begin(), request->requirements().end()}));
    for (const farm::Farm::Choice& choice : farm_.Choices(target, terms)) {
      v1::FindDevicesResponse::Choice& out = *response->add_devices();
      out.set_name(choice.name);
      out.set_device_class(choice.device_class);
      out.set_idle(choice.idle);
      out.set_unsteady(choice.unsteady);
    }
    if (response->devices().empty()) {
      response->set_why_none(farm_.WhyNoDevice(target, terms));
    }
    return absl::OkStatus();
  };
  return ToGrpc(find());
}

grpc::Status RegressionService::AppendPoints(
    grpc::ServerContext* context, const v1::AppendPointsRequest* request,
    v1::AppendPointsResponse* response) {
  const auto append = [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        const security::Caller caller,
        Admit(gate_, *context, "/tilefarm.v1.Regression/AppendPoints",
              *request));
    std::vector<database::HistoryRow> rows;
    for (const v1::HistoryPoint& point : request->points()) {
      TF_RETURN_IF_ERROR(CheckPoint(point));
      rows.push_back(HistoryRowOf(point));
      rows.back().user = caller.NameOr(request->user());
    }
    TF_ASSIGN_OR_RETURN(
        const int64_t added,
        store_.regression_tables().AppendHistory(request->request_id(), rows));
    response->set_added(added);
    return absl::OkStatus();
  };
  return ToGrpc(append());
}

grpc::Status RegressionService::ReadHistory(
    grpc::ServerContext* context, const v1::ReadHistoryRequest* request,
    grpc::ServerWriter<v1::HistoryEntry>* writer) {
  const auto read = [&]() -> absl::Status {
    TF_RETURN_IF_ERROR(
        CheckMessage(gate_, "/tilefarm.v1.Regression/ReadHistory", *request));
    TF_ASSIGN_OR_RETURN(const auto live_call, EnterTransfer(gate_, *context));
    if (request->latest() < 0) {
      return absl::InvalidArgumentError("the number of points is negative");
    }
    const database::HistoryFilter filter{
        .series = request->series(),
        .benchmark = request->benchmark(),
        .device_class = request->device_class(),
        .branch = request->branch(),
        .commit = request->commit(),
        .latest = request->latest(),
        .texts = request->texts()};
    bool there = true;
    v1::HistoryEntry entry;
    TF_RETURN_IF_ERROR(store_.regression_tables().ReadHistory(
        filter, [&](const database::HistoryRow& row) {
          *entry.mutable_point() = HistoryPointOf(row);
          return there = writer->Write(entry);
        }));
    TF_ASSIGN_OR_RETURN(
        const auto acknowledgements,
        store_.regression_tables().ListAcknowledgements(filter));
    for (const database::AcknowledgementRow& row : acknowledgements) {
      *entry.mutable_acknowledgement() = AcknowledgementOf(row);
      there = there && writer->Write(entry);
    }
    return there ? absl::OkStatus()
                 : absl::CancelledError("the client went away");
  };
  return ToGrpc(read());
}

grpc::Status RegressionService::Acknowledge(
    grpc::ServerContext* context, const v1::AcknowledgeRequest* request,
    v1::AcknowledgeResponse* /*response*/) {
  const auto acknowledge = [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(const security::Caller caller,
                        Admit(gate_, *context,
                              "/tilefarm.v1.Regression/Acknowledge", *request));
    const v1::Acknowledgement& in = request->acknowledgement();
    if (in.series().empty() || in.benchmark().empty() || in.branch().empty() ||
        in.commit().empty() || in.reason().empty()) {
      return absl::InvalidArgumentError(
          "an acknowledgement needs series, benchmark, branch, commit and "
          "reason");
    }
    return store_.regression_tables().Acknowledge(
        {.series = in.series(),
         .benchmark = in.benchmark(),
         .device_class = in.device_class(),
         .branch = in.branch(),
         .commit = in.commit(),
         .reason = in.reason(),
         .user = caller.NameOr(in.user()),
         .at = ""});
  };
  return ToGrpc(acknowledge());
}

}  // namespace tilefarm::services
