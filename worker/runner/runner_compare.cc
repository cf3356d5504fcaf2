// Comparisons of two artifacts: a child for both, and the verdict about each.
#include <time.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "worker/monotonic.h"
#include "worker/runner/compare.h"
#include "worker/runner/report.h"
#include "worker/runner/runner.h"
#include "worker/runner/verify.h"
#include "worker/runner/workload.h"

namespace tilefarm::worker {
namespace {

// Outputs of two builds of a model may differ by this share of their root mean
// square: schedules reorder sums, and Winograd's algorithm rounds more. Wrong
// outputs differ by far more. Integers are equal.
constexpr double kModelTolerance = 1e-2;

// The artifact at a place in the order of loading.
ComparedSide SideAt(size_t place, const CompareRequest& request) {
  return (place == 0) == request.candidate_first ? ComparedSide::kCandidate
                                                 : ComparedSide::kBaseline;
}

const char* NameOf(ComparedSide side) {
  return side == ComparedSide::kBaseline ? "the baseline: " : "the candidate: ";
}

void Fail(RunStatus status, ComparedSide side, const std::string& error,
          CompareReply* reply) {
  reply->status = status;
  reply->failed = side;
  reply->error = NameOf(side) + error;
}

// The samples in their order as pairs. False: one is impossible.
bool TakeSamples(const ChildReport& report, const CompareRequest& request,
                 CompareReply* reply) {
  const uint32_t count =
      std::min(report.sample_count, kMostRounds * kSamplesOfARound) / 2 * 2;
  for (uint32_t i = 0; i < count; i += 2) {
    const double first = report.samples[i], second = report.samples[i + 1];
    for (const double seconds : {first, second}) {
      if (!(seconds > 0) || !(seconds <= reply->child_seconds)) return false;
    }
    // The second pair of a round begins with the artifact that is second.
    const size_t place = i % kSamplesOfARound == 0 ? 0 : 1;
    const bool candidate = SideAt(place, request) == ComparedSide::kCandidate;
    reply->candidate_seconds.push_back(candidate ? first : second);
    reply->baseline_seconds.push_back(candidate ? second : first);
  }
  return count > 0;
}

}  // namespace

CompareReply Runner::Compare(const CompareRequest& request) {
  CompareReply reply;
  if (request.run_id != 0 && request.run_id == cancelled_run_) {
    reply.status = RunStatus::kCancelled;
    reply.error = "cancelled";
    return reply;
  }
  reply.status = RunStatus::kRunError;
  if (device_ != nullptr) {
    reply.error = "this runner compares nothing on its device";
    return reply;
  }
  Workload* workload = Find(request.key);
  if (workload != nullptr && workload->has_reference == request.is_model) {
    reply.error = "the workload is of another kind";
    return reply;
  }
  if (workload == nullptr) {
    reply.status = RunStatus::kUnknownWorkload;
    reply.error = "unknown workload " + request.key;
    return reply;
  }
  SharedRun run = workload->NewRun();
  Mapping second_outputs;
  if (!second_outputs.Allocate(2 * workload->outputs_bytes, /*shared=*/true)) {
    reply.error = "out of memory for the outputs";
    return reply;
  }
  char* const second = static_cast<char*>(second_outputs.data());
  const std::array<KeptOutputs, 2> outputs = {
      KeptOutputs{run.first_outputs, run.last_outputs},
      KeptOutputs{second, second + workload->outputs_bytes}};
  const std::vector<uint32_t>& cpus = request.limits.cpus;
  if (cpus.size() == 1) DescribeCore(cpus[0], /*races=*/false, &run);
  std::vector<const std::string*> artifacts = {&request.baseline.artifact,
                                               &request.candidate.artifact};
  if (request.candidate_first) std::swap(artifacts[0], artifacts[1]);
  // Each artifact may have packed constants of its own.
  ProgramSpec twice = workload->program;
  for (const BufferSpec& spec : workload->program.buffers) {
    if (spec.layout_free) twice.buffers.push_back(spec);
  }
  const ChildLimits limits =
      WithBuffers(request.limits, twice,
                  FlusherBytes(request.flush_cache, request.last_cache_bytes));
  const double start = MonotonicSeconds();
  Isolation isolation;
  const ChildOutcome outcome = RunConfined(
      artifacts, /*may_call_libraries=*/false, limits, request.run_id, &run,
      [&](const std::vector<int>& files) {
        MeasurePairs(run, {files[0], files[1]}, outputs, request);
      },
      nullptr, &isolation);
  reply.child_seconds = MonotonicSeconds() - start;
  reply.isolation = isolation.Text();
  NoteCore(request.limits, *run.report, reply.child_seconds);
  const Stage stage = run.report->stage;
  const ComparedSide side = SideAt(run.report->artifact == 0 ? 0 : 1, request);
  if (stage == Stage::kFailed) {
    Fail(RunStatus::kRunError, side,
         TextOf(run.report->error) + outcome.events.Refusals(), &reply);
    return reply;
  }
  if (outcome.end == ChildEnd::kCancelled) {
    reply.status = RunStatus::kCancelled;
    reply.error = "cancelled";
    return reply;
  }
  if (outcome.end != ChildEnd::kReturned || stage != Stage::kDone) {
    Fail(outcome.end == ChildEnd::kTimeout ? RunStatus::kRunTimeout
                                           : RunStatus::kRunError,
         side, DescribeEnd(outcome, request.limits, *run.report), &reply);
    return reply;
  }
  reply.retaken = std::min(run.report->retaken, kMaxSamples);
  reply.shared = std::min(run.report->shared, kMostRounds);
  reply.canary_seconds = Possible(run.report->canary_seconds, 0, 1, 0);
  if (!TakeSamples(*run.report, request, &reply)) {
    reply.error = "the child reported an impossible time";
    return reply;
  }
  reply.status = RunStatus::kOk;
  reply.verified = true;
  if (request.is_model) {
    JudgeModels(*workload,
                outputs[SideAt(0, request) == ComparedSide::kBaseline ? 0 : 1],
                outputs[SideAt(0, request) == ComparedSide::kBaseline ? 1 : 0],
                &reply);
    return reply;
  }
  for (const size_t place : {size_t{0}, size_t{1}}) {
    const ComparedSide at = SideAt(place, request);
    const double spread = at == ComparedSide::kCandidate
                              ? request.candidate.spread
                              : request.baseline.spread;
    const Judged judged = JudgeOutputs(*workload, outputs[place].of_first_run,
                                       outputs[place].of_last_run, spread);
    reply.max_abs_error = std::max(reply.max_abs_error, judged.max_abs_error);
    reply.max_rel_error = std::max(reply.max_rel_error, judged.max_rel_error);
    if (judged.right || !reply.verified) continue;
    reply.verified = false;
    Fail(RunStatus::kWrongResult, at, judged.error, &reply);
  }
  return reply;
}

void Runner::JudgeModels(const Workload& workload, const KeptOutputs& baseline,
                         const KeptOutputs& candidate, CompareReply* reply) {
  size_t output = 0;
  for (uint32_t i = 0; i < workload.program.buffers.size(); ++i) {
    const BufferSpec& spec = workload.program.buffers[i];
    if (!spec.written) continue;
    const size_t offset = workload.output_offsets[output++];
    const char* const expected = baseline.of_first_run + offset;
    const double slack = kModelTolerance * RootMeanSquareOf(spec, expected);
    const std::pair<const char*, ComparedSide> others[] = {
        {baseline.of_last_run, ComparedSide::kBaseline},
        {candidate.of_first_run, ComparedSide::kCandidate},
        {candidate.of_last_run, ComparedSide::kCandidate}};
    for (const auto& [outputs, side] : others) {
      const Comparison comparison = worker::Compare(
          spec, i, expected, /*bounds=*/nullptr, slack, outputs + offset);
      reply->max_abs_error =
          std::max(reply->max_abs_error, comparison.max_abs_error);
      reply->max_rel_error =
          std::max(reply->max_rel_error, comparison.max_rel_error);
      if (comparison.equal || !reply->verified) continue;
      reply->verified = false;
      Fail(RunStatus::kWrongResult, side,
           comparison.error + ", as the baseline's first run gave", reply);
    }
  }
}

}  // namespace tilefarm::worker
