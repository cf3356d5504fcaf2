#include "worker/runner/runner.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/quiet_core.h"
#include "base/statistics.h"
#include "worker/monotonic.h"
#include "worker/runner/child.h"
#include "worker/runner/inputs.h"
#include "worker/runner/report.h"
#include "worker/runner/verify.h"
#include "worker/runner/workload.h"

#ifndef TILEFARM_VERSION
#define TILEFARM_VERSION "unknown"
#endif

namespace tilefarm::worker {
namespace {

// The pause for starting (see kGiveUpFactor). The limit applies to the CPU time
// as well as to the clock, because a machine that stalls or reads a library
// from its disk says nothing about a candidate.
constexpr double kGiveUpPauseSeconds = 0.5;

// Contentions of a core: how many are needed to know its contention when it is
// unshared, how many are kept, so that changes of the machine are noticed, and
// the possible range.
constexpr size_t kContentionsNeeded = 20;
constexpr size_t kContentionsKept = 200;
bool IsPossibleContention(double c) { return c > 1e-3 && c < 1e3; }
// Waiting for an unshared core: the longest wait of one measurement in full,
// and of a race, if the core is often unshared. All waits together may take
// this share of the time of all runs; time that was not used is kept, up to
// kMostCredit. Races leave a part for measurements in full, which are few and
// decide.
constexpr double kPatienceSeconds = 0.5;
constexpr double kRacePatienceSeconds = 0.25;
constexpr double kOften = 0.2;
constexpr double kShareOfWaiting = 0.15;
constexpr double kMostCredit = 3;
constexpr double kLeftByRaces = 1.5;

// Infinite if the system does not tell.
double CpuSecondsOf(pid_t process) {
  clockid_t clock;
  timespec t;
  if (clock_getcpuclockid(process, &clock) != 0 ||
      clock_gettime(clock, &t) != 0) {
    return INFINITY;
  }
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

GiveUp GiveUpRule(const RunRequest& request, const ChildReport& report) {
  if (!(request.best_seconds > 0)) return nullptr;
  const double patience =
      kGiveUpPauseSeconds + kGiveUpFactor * request.best_seconds;
  // After the first run, sample_race.h decides.
  return [&report, patience](pid_t child) -> int64_t {
    double left = patience;
    if (report.stage == Stage::kFirstRun) {
      left -= std::min(MonotonicSeconds() - report.first_run_start,
                       CpuSecondsOf(child) - report.first_run_cpu);
    }
    // The child's code may have written any number there.
    if (!(left > 0)) return 0;
    return kGiveUpStepMs + static_cast<int64_t>(std::min(left, patience) * 1e3);
  };
}

size_t BytesOfBounds(const BufferSpec& spec) {
  return spec.bounded ? spec.elements * BoundBytes(spec.type) : 0;
}

}  // namespace

std::string Runner::DescribeEnd(const ChildOutcome& outcome,
                                const ChildLimits& limits,
                                const ChildReport& report) {
  std::string end = outcome.Describe(limits);
  if (outcome.end == ChildEnd::kSignal && outcome.code == SIGSYS) {
    const int32_t refused = report.refused;
    const std::string name = refused > 0 ? SyscallName(refused - 1) : "";
    end = "the kernel made a system call that is not allowed";
    if (!name.empty()) end += " (" + name + ")";
    end += ",";
  }
  return end + " " + StageName(report.stage) + outcome.events.Refusals();
}

ChildLimits Runner::WithBuffers(ChildLimits limits, const ProgramSpec& program,
                                uint64_t further_bytes) {
  constexpr uint64_t kBesideEachBuffer = 3 * 65536;  // guards, rounding
  if (limits.memory_bytes == 0) return limits;
  limits.memory_bytes += further_bytes;
  for (const BufferSpec& spec : program.buffers) {
    limits.memory_bytes +=
        spec.elements * ElementBytes(spec.type) + kBesideEachBuffer;
    if (spec.layout_free) {
      limits.memory_bytes +=
          MostPackedBytes(spec) + kBesideEachBuffer + 2 * kHugePageBytes;
    }
  }
  return limits;
}

uint64_t Runner::DefaultCacheBytes() {
  const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                          static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(memory / 4, uint64_t{4} << 30);
}

Runner::Runner(const Options& options, const Sandbox& sandbox)
    : options_(options), sandbox_(sandbox), device_(options.device) {}
Runner::~Runner() = default;

int Runner::Serve() {
  for (;;) {
    Frame frame;
    const FrameStatus status = ReadFrame(options_.input_fd, -1, &frame);
    if (status == FrameStatus::kEnd) return 0;
    if (status != FrameStatus::kOk) return 2;
    bool sent = true;
    switch (static_cast<RunnerFrame>(frame.type)) {
      case RunnerFrame::kHello:
        sent = Reply(
            RunnerFrame::kHelloReply,
            Encode(HelloReply{TILEFARM_VERSION, sandbox_.isolation().Text()}));
        break;
      case RunnerFrame::kLoadWorkload: {
        LoadWorkload request;
        if (!Decode(frame.payload, &request)) return 2;
        sent = Reply(RunnerFrame::kLoadReply, Encode(Load(std::move(request))));
        break;
      }
      case RunnerFrame::kRun: {
        RunRequest request;
        if (!Decode(frame.payload, &request)) return 2;
        sent = Reply(RunnerFrame::kRunReply, Encode(Run(request)));
        break;
      }
      case RunnerFrame::kCompare: {
        CompareRequest request;
        if (!Decode(frame.payload, &request)) return 2;
        sent = Reply(RunnerFrame::kCompareReply, Encode(Compare(request)));
        break;
      }
      case RunnerFrame::kCancel: {
        // Its run has ended, or will be requested next.
        CancelRun cancel;
        if (!Decode(frame.payload, &cancel)) return 2;
        cancelled_run_ = cancel.run_id;
        break;
      }
      default:
        return 2;
    }
    if (worker_gone_) return 0;
    if (!sent) return 2;
    if (stuck_) return 3;
  }
}

ChildOutcome Runner::RunConfined(
    const std::vector<const std::string*>& artifacts, bool may_call_libraries,
    const ChildLimits& limits, uint64_t run_id, SharedRun* run,
    const std::function<void(const std::vector<int>& files)>& body,
    const GiveUp& give_up, Isolation* isolation) {
  std::vector<LoadedArtifact> stored(artifacts.size());
  std::vector<int> files;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    if (!stored[i].Store(*artifacts[i])) return {ChildEnd::kNotStored, errno};
    files.push_back(stored[i].fd);
    run->calls_a_library |= may_call_libraries && CallsALibrary(*artifacts[i]);
  }
  *isolation = sandbox_.IsolationOf(run->calls_a_library);
  const IsolationLevel level = isolation->level;
  ChildOutcome refused = {ChildEnd::kNotConfined};
  const std::unique_ptr<ControlGroup> group =
      sandbox_.MakeGroup(limits, &refused.detail);
  if (!refused.detail.empty()) return refused;
  run->confine = [this, level, &files] { return sandbox_.Close(level, files); };
  const ChildOutcome outcome = RunChild(
      {sandbox_, files, &run->report->refused, group.get()}, limits,
      options_.input_fd, run_id, [&] { body(files); }, give_up);
  worker_gone_ = outcome.end == ChildEnd::kParentGone;
  stuck_ |= outcome.end == ChildEnd::kStuck;
  return outcome;
}

bool Runner::Reply(RunnerFrame type, const std::string& payload) {
  if (worker_gone_) return true;
  return WriteFrame(options_.output_fd, -1, static_cast<uint32_t>(type),
                    payload) == FrameStatus::kOk;
}

Runner::Workload* Runner::Find(const std::string& key) {
  for (auto it = workloads_.begin(); it != workloads_.end(); ++it) {
    if ((*it)->key != key) continue;
    workloads_.splice(workloads_.begin(), workloads_, it);
    return workloads_.front().get();
  }
  return nullptr;
}

void Runner::EvictBeyondLimit() {
  uint64_t total = 0;
  for (auto it = workloads_.begin(); it != workloads_.end();) {
    total += (*it)->bytes;
    // The workload in use stays, even if it is too large.
    it = total > options_.cache_bytes && it != workloads_.begin()
             ? workloads_.erase(it)
             : std::next(it);
  }
}

LoadReply Runner::Load(LoadWorkload request) {
  LoadReply reply;
  if (request.run_id != 0 && request.run_id == cancelled_run_) {
    reply.error = "cancelled";
    return reply;
  }
  workloads_.remove_if([&](const auto& w) { return w->key == request.key; });
  auto workload = std::make_unique<Workload>();
  workload->key = request.key;
  workload->program = request.program;
  const std::vector<BufferSpec>& specs = workload->program.buffers;
  workload->inputs.resize(specs.size());
  workload->packing.resize(specs.size());
  size_t bounds_bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    const size_t bytes = specs[i].elements * ElementBytes(specs[i].type);
    if (specs[i].written) {
      workload->output_offsets.push_back(workload->outputs_bytes);
      workload->outputs_bytes += Padded(bytes);
      bounds_bytes += Padded(BytesOfBounds(specs[i]));
    }
    if (!specs[i].read) continue;
    if (!workload->inputs[i].Allocate(bytes)) {
      reply.error = "out of memory for the inputs";
      return reply;
    }
    workload->bytes += bytes;
    // Reserves only address space; a candidate touches what it packs.
    if (specs[i].layout_free && bytes >= kInheritedBytes &&
        workload->packing[i].AllocateHuge(MostPackedBytes(specs[i]))) {
      workload->bytes += bytes;
    }
  }
  const size_t shared_bytes =
      Padded(sizeof(ChildReport)) + 2 * workload->outputs_bytes;
  workload->bytes += shared_bytes + workload->outputs_bytes + bounds_bytes;
  if (!workload->shared.Allocate(shared_bytes, /*shared=*/true) ||
      !workload->reference.Allocate(workload->outputs_bytes, false) ||
      !workload->all_bounds.Allocate(bounds_bytes, false)) {
    reply.error = "out of memory for the outputs";
    return reply;
  }

  if (request.artifact.empty()) {
    workload->has_reference = false;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i].read) continue;
      FillInput(specs[i], request.input_seed, static_cast<uint32_t>(i),
                /*positive=*/false, workload->inputs[i].data());
    }
    workloads_.push_front(std::move(workload));
    EvictBeyondLimit();
    reply.ok = true;
    return reply;
  }
  bool finite = false;
  reply.error = RunReference(request, /*positive=*/false, workload.get(),
                             &reply.reference_seconds, &finite);
  if ((!reply.error.empty() || !finite) && !worker_gone_) {
    // Programs with log, sqrt or division are meant for positive inputs.
    reply.positive_inputs = true;
    reply.error = RunReference(request, /*positive=*/true, workload.get(),
                               &reply.reference_seconds, &finite);
  }
  if (!reply.error.empty()) return reply;
  const char* next = static_cast<const char*>(workload->all_bounds.data());
  for (const BufferSpec& spec : specs) {
    if (!spec.written) continue;
    workload->bounds.push_back(spec.bounded ? next : nullptr);
    workload->bounds_rms.push_back(spec.bounded ? RootMeanSquare(spec, next)
                                                : 0);
    next += Padded(BytesOfBounds(spec));
  }
  if (device_ != nullptr && !PrepareForDevice(workload.get())) {
    reply.error = "out of memory for the device's files";
    return reply;
  }
  workloads_.push_front(std::move(workload));
  EvictBeyondLimit();
  reply.ok = true;
  return reply;
}

std::string Runner::RunReference(const LoadWorkload& request, bool positive,
                                 Workload* workload, double* seconds,
                                 bool* finite) {
  const std::vector<BufferSpec>& specs = workload->program.buffers;
  for (uint32_t i = 0; i < specs.size(); ++i) {
    if (specs[i].read) {
      FillInput(specs[i], request.input_seed, i, positive,
                workload->inputs[i].data());
    }
  }
  SharedRun run = workload->NewRun();
  const size_t bounds_bytes = workload->all_bounds.bytes();
  const ChildLimits limits =
      WithBuffers(request.limits, workload->program,
                  workload->program.oracle_bytes + bounds_bytes);
  // Shared only with the oracle's process: candidates must not write there.
  Mapping staged;
  if (!staged.Allocate(bounds_bytes, /*shared=*/true)) {
    return "out of memory for the bounds of outputs";
  }
  std::vector<void*> bounds;
  char* next = static_cast<char*>(staged.data());
  for (const BufferSpec& spec : specs) {
    const size_t bytes = spec.written ? BytesOfBounds(spec) : 0;
    bounds.push_back(bytes > 0 ? next : nullptr);
    next += Padded(bytes);
  }
  Isolation isolation;
  const ChildOutcome outcome = RunConfined(
      {&request.artifact}, /*may_call_libraries=*/true, limits, request.run_id,
      &run,
      [&](const std::vector<int>& files) {
        RunOracle(run, files[0], request.symbol, bounds);
      },
      nullptr, &isolation);
  const Stage stage = run.report->stage;
  if (stage == Stage::kFailed) {
    return TextOf(run.report->error) + outcome.events.Refusals();
  }
  if (outcome.end != ChildEnd::kReturned || stage != Stage::kDone) {
    return DescribeEnd(outcome, request.limits, *run.report);
  }
  *seconds = Possible(run.report->first_seconds, 0,
                      request.limits.timeout_ms * 1e-3, 0);
  memcpy(workload->reference.data(), run.first_outputs,
         workload->outputs_bytes);
  if (bounds_bytes > 0) {
    memcpy(workload->all_bounds.data(), staged.data(), bounds_bytes);
  }
  *finite = true;
  size_t output = 0;
  for (const BufferSpec& spec : specs) {
    if (!spec.written) continue;
    *finite &=
        AllFinite(spec, static_cast<const char*>(workload->reference.data()) +
                            workload->output_offsets[output++]);
  }
  return "";
}

RunReply Runner::Run(const RunRequest& request) {
  RunReply reply;
  if (request.run_id != 0 && request.run_id == cancelled_run_) {
    reply.status = RunStatus::kCancelled;
    reply.error = "cancelled";
    return reply;
  }
  Workload* workload = Find(request.key);
  if (workload == nullptr) {
    reply.status = RunStatus::kUnknownWorkload;
    reply.error = "unknown workload " + request.key;
    return reply;
  }
  if (!workload->has_reference) {
    reply.status = RunStatus::kRunError;
    reply.error = "the workload has no reference";
    return reply;
  }
  if (device_ != nullptr) return RunOnDevice(request, *workload);
  SharedRun run = workload->NewRun();
  const std::vector<uint32_t>& cpus = request.limits.cpus;
  if (cpus.size() == 1) {
    DescribeCore(cpus[0], request.best_seconds > 0, &run);
  }
  const ChildLimits limits =
      WithBuffers(request.limits, workload->program,
                  FlusherBytes(request.flush_cache, request.last_cache_bytes));
  const double start = MonotonicSeconds();
  Isolation isolation;
  const ChildOutcome outcome = RunConfined(
      {&request.artifact}, /*may_call_libraries=*/true, limits, request.run_id,
      &run,
      [&](const std::vector<int>& files) { Measure(run, files[0], request); },
      GiveUpRule(request, *run.report), &isolation);
  reply.child_seconds = MonotonicSeconds() - start;
  reply.isolation = isolation.Text();
  NoteCore(request.limits, *run.report, reply.child_seconds);
  const Stage stage = run.report->stage;
  if (outcome.end == ChildEnd::kReturned && stage == Stage::kDone) {
    Judge(*workload, run, request.spread, &reply);
    return reply;
  }
  reply.status = RunStatus::kRunError;
  if (stage == Stage::kFailed) {
    reply.error = TextOf(run.report->error) + outcome.events.Refusals();
    return reply;
  }
  reply.error = DescribeEnd(outcome, request.limits, *run.report);
  if (outcome.end == ChildEnd::kTimeout || outcome.end == ChildEnd::kGivenUp) {
    reply.status = RunStatus::kRunTimeout;
  } else if (outcome.end == ChildEnd::kCancelled) {
    reply.status = RunStatus::kCancelled;
  }
  return reply;
}

void Runner::NoteCore(const ChildLimits& limits, const ChildReport& report,
                      double child_seconds) {
  const double contention = report.contention;
  if (limits.cpus.size() == 1 && IsPossibleContention(contention)) {
    std::deque<double>& seen = contentions_[limits.cpus[0]];
    seen.push_back(contention);
    if (seen.size() > kContentionsKept) seen.pop_front();
  }
  // The child may have written any number there.
  const double waited = report.waited_seconds;
  credit_ = std::clamp(credit_ + kShareOfWaiting * child_seconds -
                           (waited > 0 ? std::min(waited, child_seconds) : 0),
                       0.0, kMostCredit);
}

void Runner::DescribeCore(uint32_t cpu, bool races, SharedRun* run) const {
  run->patience = races ? 0 : std::min(credit_, kPatienceSeconds);
  const auto found = contentions_.find(cpu);
  if (found == contentions_.end()) return;
  const std::deque<double>& seen = found->second;
  if (seen.size() < kContentionsNeeded) return;
  run->alone_contention = AloneContention({seen.begin(), seen.end()});
  if (!races) return;
  const QuietCore core(run->alone_contention);
  const auto quiet = std::count_if(
      seen.end() - kContentionsNeeded, seen.end(),
      [&](double contention) { return core.IsQuiet(contention); });
  if (static_cast<double>(quiet) < kOften * kContentionsNeeded) return;
  run->patience = std::clamp(credit_ - kLeftByRaces, 0.0, kRacePatienceSeconds);
}

void Runner::Judge(const Workload& workload, const SharedRun& run,
                   double spread, RunReply* reply) {
  const ChildReport& report = *run.report;
  const uint32_t count = std::min(report.sample_count, kMaxSamples);
  reply->retaken = std::min(report.retaken, kMaxSamples);
  reply->shared = std::min(report.shared, count);
  reply->canary_seconds = Possible(report.canary_seconds, 0, 1, 0);
  reply->stopped_early = report.stopped_early != 0;
  for (uint32_t i = 0; i < count; ++i) {
    const double seconds = report.samples[i];
    if (!(seconds > 0) || !(seconds <= reply->child_seconds)) {
      reply->status = RunStatus::kRunError;
      reply->error = "the child reported an impossible time";
      return;
    }
    reply->seconds.push_back(seconds);
  }
  const MedianInterval interval = MedianOf(reply->seconds);
  reply->median_seconds = interval.median;
  reply->ci_low_seconds = interval.low;
  reply->ci_high_seconds = interval.high;

  const Judged judged =
      JudgeOutputs(workload, run.first_outputs, run.last_outputs, spread);
  reply->verified = count > 0 && judged.right;
  reply->max_abs_error = judged.max_abs_error;
  reply->max_rel_error = judged.max_rel_error;
  if (judged.right) return;
  reply->status = RunStatus::kWrongResult;
  reply->error = judged.error;
}

Runner::Judged Runner::JudgeOutputs(const Workload& workload,
                                    const char* of_first_run,
                                    const char* of_last_run, double spread) {
  Judged judged;
  const char* reference = static_cast<const char*>(workload.reference.data());
  size_t output = 0;
  for (uint32_t i = 0; i < workload.program.buffers.size(); ++i) {
    const BufferSpec& spec = workload.program.buffers[i];
    if (!spec.written) continue;
    const size_t offset = workload.output_offsets[output];
    const size_t bytes = spec.elements * ElementBytes(spec.type);
    for (const char* outputs : {of_first_run, of_last_run}) {
      // Usually the last run repeated the first one bit for bit.
      if (outputs == of_last_run &&
          memcmp(of_first_run + offset, outputs + offset, bytes) == 0) {
        continue;
      }
      const Comparison comparison = worker::Compare(
          spec, i, reference + offset, workload.bounds[output],
          spread * workload.bounds_rms[output], outputs + offset);
      judged.max_abs_error =
          std::max(judged.max_abs_error, comparison.max_abs_error);
      judged.max_rel_error =
          std::max(judged.max_rel_error, comparison.max_rel_error);
      if (comparison.equal) continue;
      judged.right = false;
      if (judged.error.empty()) {
        judged.error = comparison.error + (outputs == of_first_run
                                               ? ", in the first run"
                                               : ", in the last timed run");
      }
    }
    ++output;
  }
  return judged;
}

}  // namespace tilefarm::worker
