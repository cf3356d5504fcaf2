#include "server/services/tune_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/kept_floats.h"
#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "server/api/api.h"
#include "server/jobs/record_import.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/orders.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

absl::StatusOr<database::BestQuery> QueryOf(const v1::BestRequest& request,
                                            const std::string& fingerprint) {
  if (request.program().empty() == request.workload().empty()) {
    return absl::InvalidArgumentError(
        "BestRequest needs either program or workload");
  }
  ir::PrimFuncPtr program;
  if (request.workload().empty()) {
    TF_ASSIGN_OR_RETURN(program, ir::ParseFunction(request.program()));
  }
  auto target = target::ParseKey(request.target());
  if (!target.ok()) return target.status();
  const ir::FloatRule floats = request.strict_fp() ? ir::FloatRule::kAsWritten
                               : request.no_winograd()
                                   ? ir::FloatRule::kNoWinograd
                                   : ir::FloatRule::kMayDiffer;
  return database::BestQuery{
      .program = std::move(program),
      .workload_hash = request.workload(),
      .target = *std::move(target),
      .device_model = request.device_model(),
      .fingerprint =
          request.fingerprint().empty() ? fingerprint : request.fingerprint(),
      .allow_stale = request.allow_stale(),
      .allow_library = request.allow_library(),
      .allow_emulated = request.allow_emulated(),
      .floats = floats,
      .keeps_floats = driver::ObeysRule(floats),
  };
}

absl::StatusOr<jobs::JobFilter> FilterOf(const v1::ListJobsRequest& request) {
  jobs::JobFilter filter{.user = request.user(),
                         .program = request.program(),
                         .target = request.target(),
                         .id_prefix = request.id_prefix(),
                         .limit = request.limit()};
  for (const std::string& name : request.states()) {
    const auto state = jobs::ParseJobState(name);
    if (!state) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name,
          "' is no state of a job: queued, running, done, failed, cancelled"));
    }
    filter.states.push_back(*state);
  }
  if (filter.limit < 0) {
    return absl::InvalidArgumentError("the limit is negative");
  }
  return filter;
}

}  // namespace

grpc::Status TuneService::Submit(grpc::ServerContext* context,
                                 const v1::SubmitRequest* request,
                                 v1::SubmitResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/Submit", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  jobs::JobSpec spec = FromProto(*request);
  spec.user = caller->NameOr(spec.user);
  const auto id = jobs_.Submit(std::move(spec));
  if (id.ok()) response->set_job_id(*id);
  return ToGrpc(id.status());
}

grpc::Status TuneService::ListJobs(grpc::ServerContext* /*context*/,
                                   const v1::ListJobsRequest* request,
                                   v1::ListJobsResponse* response) {
  const auto filter = FilterOf(*request);
  if (!filter.ok()) return ToGrpc(filter.status());
  const auto all = jobs_.List(*filter);
  if (!all.ok()) return ToGrpc(all.status());
  const auto times = store_.ListJobTimes();
  if (!times.ok()) return ToGrpc(times.status());
  for (const jobs::JobSnapshot& one : *all) {
    v1::Job& job = *response->add_jobs();
    job = ToProtoJob(one);
    const auto found = times->find(one.id);
    if (found == times->end()) continue;
    job.set_created(found->second.created_at);
    job.set_ended(found->second.ended_at);
  }
  return grpc::Status::OK;
}

grpc::Status TuneService::Cancel(grpc::ServerContext* context,
                                 const v1::CancelRequest* request,
                                 v1::CancelResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/Cancel", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const auto state = CancelJob(jobs_, *caller, request->job_id());
  if (state.ok()) response->set_state(std::string(jobs::JobStateName(*state)));
  return ToGrpc(state.status());
}

grpc::Status TuneService::ListDevices(grpc::ServerContext* /*context*/,
                                      const v1::ListDevicesRequest* /*request*/,
                                      v1::ListDevicesResponse* response) {
  for (const farm::DeviceStatus& device : farm_.Devices()) {
    *response->add_devices() = ToProto(device);
  }
  return grpc::Status::OK;
}

grpc::Status TuneService::Best(grpc::ServerContext* context,
                               const v1::BestRequest* request,
                               v1::BestResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/Best", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const auto query = QueryOf(*request, fingerprint_);
  if (!query.ok()) return ToGrpc(query.status());
  if (request->explain()) {
    const auto explanation = store_.ExplainBest(*query);
    if (!explanation.ok()) return ToGrpc(explanation.status());
    response->set_explanation_json(database::ExplanationToJson(*explanation));
    response->set_reason(explanation->reason);
    if (!explanation->found) return grpc::Status::OK;
  }
  const auto best = store_.FindBest(*query);
  if (!best.ok()) return ToGrpc(best.status());
  response->set_record_json(database::RecordToJson(best->record));
  response->set_reason(best->reason);
  return grpc::Status::OK;
}

grpc::Status TuneService::Read(grpc::ServerContext* context,
                               const v1::ReadRequest* request,
                               v1::ReadResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/Read", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const auto json =
      api::Get(parts_, request->path(), request->query(), *caller);
  if (!json.ok()) return ToGrpc(json.status());
  response->set_json(api::JsonResponse(*json).body);
  return grpc::Status::OK;
}

grpc::Status TuneService::DbStats(grpc::ServerContext* /*context*/,
                                  const v1::DbStatsRequest* /*request*/,
                                  v1::DbStatsResponse* response) {
  const auto stats = store_.GetStats();
  if (!stats.ok()) return ToGrpc(stats.status());
  response->set_records(stats->records);
  response->set_workloads(stats->workloads);
  response->set_fingerprint(fingerprint_);
  for (const auto& [status, count] : stats->by_status) {
    (*response->mutable_by_status())[status] = count;
  }
  return grpc::Status::OK;
}

grpc::Status TuneService::DbExport(grpc::ServerContext* context,
                                   const v1::DbExportRequest* request,
                                   grpc::ServerWriter<v1::DbLine>* writer) {
  const auto live_call = EnterTransfer(gate_, *context);
  if (!live_call.ok()) return ToGrpc(live_call.status());
  v1::DbLine line;
  int64_t last = 0;
  while (true) {
    const auto page = store_.NextRecords(request->workload(), last);
    if (!page.ok()) return ToGrpc(page.status());
    if (page->empty()) return grpc::Status::OK;
    for (const database::Record& record : *page) {
      line.set_json(database::RecordToJson(record));
      if (!writer->Write(line)) {
        return {grpc::StatusCode::CANCELLED, "the client went away"};
      }
    }
    last = page->back().id;
  }
}

grpc::Status TuneService::DbImport(grpc::ServerContext* context,
                                   grpc::ServerReader<v1::DbLine>* reader,
                                   v1::DbImportResponse* response) {
  const auto live_call = EnterTransfer(gate_, *context);
  if (!live_call.ok()) return ToGrpc(live_call.status());
  jobs::RecordImport import(store_);
  v1::DbLine line;
  while (reader->Read(&line)) {
    absl::Status added =
        CheckMessage(gate_, "/tilefarm.v1.Tune/DbImport", line);
    if (added.ok()) added = import.Add(line.json());
    if (!added.ok()) return ToGrpc(added);
  }
  const absl::Status finished = import.Finish();
  response->set_added(import.added());
  response->set_known(import.known());
  response->set_variants(import.variants());
  return ToGrpc(finished);
}

}  // namespace tilefarm::services
