// Runner's part for candidates that use a device.
#include <string.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "worker/monotonic.h"
#include "worker/runner/device_child.h"
#include "worker/runner/device_driver.h"
#include "worker/runner/device_job.h"
#include "worker/runner/report.h"
#include "worker/runner/runner.h"
#include "worker/runner/workload.h"

namespace tilefarm::worker {
namespace {

// `loading_seconds`: the pause (see kGiveUpFactor). Giving up costs the child,
// so it is longer than that of children for the processor.
GiveUp DeviceGiveUpRule(const RunRequest& request, const ChildReport& report,
                        double loading_seconds) {
  if (!(request.best_seconds > 0)) return nullptr;
  const double patience =
      loading_seconds + kGiveUpFactor * request.best_seconds;
  return [&report, patience](pid_t) -> int64_t {
    double left = patience;
    if (report.stage == Stage::kFirstRun) {
      left -= MonotonicSeconds() - report.first_run_start;
    }
    // The child's code may have written any number there.
    if (!(left > 0)) return 0;
    return kGiveUpStepMs + static_cast<int64_t>(std::min(left, patience) * 1e3);
  };
}

// Sets whatever is possible.
DeviceConditions Believable(const DeviceConditions& reported) {
  constexpr double kMostMhz = 1e5, kMostDegrees = 200, kMostWatts = 1e5;
  return {
      .clock_mhz = Possible(reported.clock_mhz, 0, kMostMhz, 0),
      .memory_clock_mhz = Possible(reported.memory_clock_mhz, 0, kMostMhz, 0),
      .temperature_c = Possible(reported.temperature_c, 0, kMostDegrees, 0),
      .power_w = Possible(reported.power_w, 0, kMostWatts, 0),
  };
}

}  // namespace

bool Runner::PrepareForDevice(Workload* workload) {
  const DeviceLayout layout(workload->program);
  if (!workload->device_inputs.Make(layout.inputs_bytes) ||
      !workload->device_results.Make(layout.results_bytes())) {
    return false;
  }
  char* const base = static_cast<char*>(workload->device_inputs.data());
  for (size_t i = 0; i < workload->inputs.size(); ++i) {
    GuardedBuffer& input = workload->inputs[i];
    if (!workload->program.buffers[i].read) continue;
    memcpy(base + layout.inputs[i], input.data(), input.bytes());
  }
  // Only the oracle needed them.
  workload->inputs.clear();
  workload->packing.clear();
  workload->shared = Mapping();
  workload->serial = ++last_serial_;
  return workload->device_inputs.Freeze();
}

RunReply Runner::RunOnDevice(const RunRequest& request, Workload& workload) {
  RunReply reply;
  LoadedArtifact artifact;
  if (!artifact.Store(request.artifact)) {
    reply.status = RunStatus::kRunError;
    reply.error = "cannot store the artifact";
    return reply;
  }
  // A candidate that fails in a process which others have used before may be
  // their victim, so it gets another one to itself.
  for (int attempt = 1;; ++attempt) {
    bool suspect = false;
    reply = TryOnDevice(request, workload, artifact.fd, &suspect);
    if (!suspect || attempt == 2 || worker_gone_ || stuck_) return reply;
  }
}

RunReply Runner::TryOnDevice(const RunRequest& request, Workload& workload,
                             int artifact_fd, bool* suspect) {
  RunReply reply;
  const Isolation isolation = sandbox_.DeviceIsolation();
  reply.isolation = isolation.Text();
  const DeviceLayout layout(workload.program);
  char* const base = static_cast<char*>(workload.device_results.data());
  memset(base, 0, layout.report_bytes);
  SharedRun run;
  run.program = &workload.program;
  run.output_offsets = layout.outputs;
  run.report = reinterpret_cast<ChildReport*>(base);
  run.first_outputs = base + layout.report_bytes;
  run.last_outputs = run.first_outputs + layout.outputs_bytes;

  DeviceJob job = {workload.serial, workload.program, request};
  job.request.artifact.clear();
  const double start = MonotonicSeconds();
  std::string error;
  const ChildOutcome outcome = device_->Run(
      job,
      {artifact_fd, workload.device_inputs.fd(), workload.device_results.fd()},
      options_.input_fd,
      DeviceGiveUpRule(request, *run.report,
                       LoadingSeconds(device_->device().kind)),
      &error);
  reply.child_seconds = MonotonicSeconds() - start;
  worker_gone_ = outcome.end == ChildEnd::kParentGone;
  stuck_ |= outcome.end == ChildEnd::kStuck;
  reply.timing = TextOf(run.report->timing);
  if (reply.timing.empty()) reply.timing = "not timed";
  reply.conditions = Believable(run.report->conditions);

  const Stage stage = run.report->stage;
  const bool spent = run.report->ends_context != 0;
  if (outcome.end == ChildEnd::kAnswered && stage == Stage::kDone) {
    Judge(workload, run, request.spread, &reply);
    const std::string damage = TextOf(run.report->damage);
    if (!damage.empty()) {
      reply.verified = false;
      reply.status = RunStatus::kWrongResult;
      reply.error = damage;
    }
    if (reply.status == RunStatus::kOk) return reply;
    // What it has written elsewhere on the device is not known.
    *suspect = !device_->was_first();
    stuck_ |= !device_->Drop();
    return reply;
  }
  reply.status = RunStatus::kRunError;
  if (stage == Stage::kFailed) {
    reply.error = TextOf(run.report->error);
    *suspect = spent && !device_->was_first();
    return reply;
  }
  switch (outcome.end) {
    case ChildEnd::kTimeout:
    case ChildEnd::kGivenUp:
      reply.status = RunStatus::kRunTimeout;
      break;
    case ChildEnd::kCancelled:
      reply.status = RunStatus::kCancelled;
      break;
    case ChildEnd::kNotStarted:
      // No candidate is to blame; the worker's canaries fail as well, so the
      // server takes the device out of use.
      reply.error = "the device is lost: " + error;
      return reply;
    case ChildEnd::kAnswered:
      reply.error = "the device's process answered without a result";
      stuck_ |= !device_->Drop();
      return reply;
    default:
      *suspect = !device_->was_first();
  }
  reply.error = outcome.Describe(request.limits) + " " + StageName(stage) +
                outcome.events.Refusals();
  return reply;
}

}  // namespace tilefarm::worker
