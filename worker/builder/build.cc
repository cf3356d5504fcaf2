#include "worker/builder/build.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/oracle/oracle.h"
#include "compiler/schedule/rounding_spread.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"
#include "worker/builder/analysis.h"

namespace tilefarm::worker {
namespace {

BuildReply Failed(BuildStatus status, const absl::Status& why) {
  BuildReply reply;
  reply.status = status;
  reply.error = std::string(why.message());
  return reply;
}

absl::StatusOr<ir::IRModule> ParseProgram(const std::string& text) {
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(text));
  if (module.functions.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a candidate is one function, the program has ",
                     module.functions.size()));
  }
  return module;
}

absl::StatusOr<ir::IRModule> ApplyTrace(const BuildRequest& request,
                                        const target::Target& target,
                                        ir::IRModule module, double* spread) {
  if (!request.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                        schedule::Trace::Parse(request.trace));
    *spread = schedule::RoundingSpread(trace);
    TF_RETURN_IF_ERROR(schedule::CheckCapabilities(trace, target.capabilities));
    TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                        schedule::Replay(trace, std::move(module)));
    module = scheduled.module();
  }
  if (request.scheduled_hash.empty()) return module;
  const std::string hash = ir::ProgramHash(*module.functions[0]);
  if (hash != request.scheduled_hash) {
    return absl::FailedPreconditionError(
        absl::StrCat("replaying the trace gives program ", hash,
                     ", the lease names ", request.scheduled_hash));
  }
  return module;
}

absl::Status BuildCandidate(const target::Target& target,
                            const ir::IRModule& module, BuildReply* reply) {
  driver::CompileOptions options;
  options.target = target;
  TF_ASSIGN_OR_RETURN(driver::Artifact artifact,
                      driver::Compile(module, options));
  if (artifact.symbols.size() != 1) {
    return absl::InternalError("the artifact has not one symbol");
  }
  reply->artifact = std::move(artifact.shared_object);
  reply->symbol = std::move(artifact.symbols[0]);
  reply->code_digest = std::move(artifact.code_digest);
  return absl::OkStatus();
}

absl::Status BuildOracle(const target::Target& target,
                         const ir::PrimFunc& function, BuildReply* reply) {
  TF_ASSIGN_OR_RETURN(reply->program, AnalyzeProgram(function));
  if (target.is_gpu()) {
    // Their artifacts take constants as the program states them.
    for (BufferSpec& buffer : reply->program.buffers) {
      buffer.layout_free = false;
    }
    reply->program.cold_constants = false;
  }
  // The oracle runs on the host of the device.
  TF_ASSIGN_OR_RETURN(oracle::Artifact artifact,
                      oracle::Compile(function, target.HostPart()));
  for (size_t i = 0; i < artifact.bounded.size(); ++i) {
    reply->program.buffers[i].bounded = artifact.bounded[i];
  }
  reply->program.oracle_bytes = static_cast<uint64_t>(artifact.workspace_bytes);
  reply->artifact = std::move(artifact.shared_object);
  reply->symbol = oracle::kSymbol;
  return absl::OkStatus();
}

}  // namespace

BuildReply Build(const BuildRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<target::Target> target = target::Parse(request.target);
  if (!target.ok()) return Failed(BuildStatus::kCompileError, target.status());
  absl::StatusOr<ir::IRModule> module = ParseProgram(request.program);
  if (!module.ok()) return Failed(BuildStatus::kCompileError, module.status());

  BuildReply reply;
  absl::Status built;
  if (request.reference) {
    built = BuildOracle(*target, *module->functions[0], &reply);
  } else {
    module = ApplyTrace(request, *target, *std::move(module), &reply.spread);
    if (!module.ok()) {
      return Failed(BuildStatus::kInvalidSchedule, module.status());
    }
    built = BuildCandidate(*target, *module, &reply);
  }
  if (!built.ok()) return Failed(BuildStatus::kCompileError, built);
  reply.cores = static_cast<uint32_t>(target->cores);
  reply.compile_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return reply;
}

}  // namespace tilefarm::worker
