#include "worker/runner/measure.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/cache_flush.h"
#include "base/quiet_core.h"
#include "worker/runner/core_wait.h"
#include "worker/runner/kernel.h"
#include "worker/runner/sample_race.h"

namespace tilefarm::worker {
namespace {

// If it was switched out, it is hopeless only beyond this factor.
constexpr double kBeyondDoubtFactor = 1.5;
// At most this much of a first run is start-up.
constexpr double kStartUpSeconds = 20e-3;
constexpr uint64_t kDefaultLastCacheBytes = uint64_t{32} << 20;

// The CPU time of this process.
double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

RaceRules RulesFor(const RunRequest& request) {
  RaceRules rules;
  if (request.max_samples > 0) rules.most = request.max_samples;
  rules.most = std::min(rules.most, kMaxSamples);
  if (request.min_samples > 0) rules.least = request.min_samples;
  rules.least = std::min(rules.least, rules.most);
  if (request.target_ms > 0) rules.target_seconds = request.target_ms * 1e-3;
  rules.best_seconds = request.best_seconds;
  return rules;
}

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kStarted:
      return "before loading";
    case Stage::kLoading:
      return "while loading";
    case Stage::kFirstRun:
      return "in the first run";
    case Stage::kPacking:
      return "while packing constants";
    case Stage::kTiming:
      return "while timing";
    case Stage::kDone:
      return "after the last run";
    case Stage::kFailed:
      return "after an error";
  }
  return "at an unknown stage";
}

LoadedArtifact::~LoadedArtifact() {
  if (fd >= 0) close(fd);
}

bool LoadedArtifact::Store(const std::string& bytes) {
  fd = memfd_create("tilefarm-artifact", MFD_CLOEXEC);
  if (fd < 0) {
    char path[] = "/tmp/tilefarm-artifact-XXXXXX";
    fd = mkstemp(path);
    if (fd < 0) return false;
    unlink(path);
    fchmod(fd, 0444);  // the child may be another user
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

uint64_t MostPackedBytes(const BufferSpec& spec) {
  return 4 * spec.elements * ElementBytes(spec.type) + (uint64_t{1} << 16);
}

uint64_t LastCacheBytes(uint64_t known) {
  return known == 0 ? kDefaultLastCacheBytes : known;
}

uint64_t FlusherBytes(bool flush_cache, uint64_t last_cache_bytes) {
  // Twice the size of the last cache, so that nothing stays under any
  // replacement policy.
  return flush_cache || !CanFlushFromCaches()
             ? 2 * LastCacheBytes(last_cache_bytes)
             : 0;
}

void RunOracle(const SharedRun& run, int artifact_fd, const std::string& symbol,
               const std::vector<void*>& bounds) {
  const ArtifactFile file = {artifact_fd, symbol};
  Kernel kernel(run, {&file, 1});
  run.report->stage = Stage::kFirstRun;
  run.report->first_seconds = kernel.TimedOracle(bounds);
  kernel.KeepOutputs(run.first_outputs);
  run.report->stage = Stage::kDone;
}

void Measure(const SharedRun& run, int artifact_fd, const RunRequest& request) {
  ChildReport& report = *run.report;
  // With several cores, the other threads' cores matter as much, and are not
  // checked.
  const bool one_core = request.limits.cpus.size() == 1;
  double alone_contention = 0;
  if (one_core) {
    report.contention = CoreContention();
    alone_contention = run.alone_contention > 0
                           ? run.alone_contention
                           : LearnAloneContention(kContentionLooks);
  }
  const ArtifactFile file = {artifact_fd, request.symbol};
  Kernel kernel(run, {&file, 1});
  // Samples end well before the limit, so that they do not cause a run_timeout.
  const double start = SampleClock();
  const double end = start + kTimeShare * request.limits.timeout_ms * 1e-3;
  const auto finish = [&](uint32_t samples) {
    kernel.KeepOutputs(run.last_outputs);
    report.sample_count = samples;
    report.canary_seconds = ClockCanary();
    report.stage = Stage::kDone;
  };
  const bool races = request.best_seconds > 0;
  long switches = 0;
  double first = 0;
  bool disturbed = false;
  const auto first_run = [&] {
    report.first_run_start = SampleClock();
    report.first_run_cpu = CpuSeconds();
    report.stage = Stage::kFirstRun;
    if (run.calls_a_library) {
      kernel.TimedRun();
      kernel.RestoreOutputs();
    }
    switches = InvoluntarySwitches();
    first = kernel.TimedRun();
    disturbed = InvoluntarySwitches() != switches;
  };
  if (races) kernel.PackConstants(/*reuse_rooms=*/true);
  first_run();
  kernel.KeepOutputs(run.first_outputs);
  if (!races && kernel.PackConstants(/*reuse_rooms=*/false)) {
    kernel.RestoreOutputs();
    first_run();
  }
  report.first_seconds = first;
  report.stage = Stage::kTiming;

  // The first run includes making workspace and threads, so it does not suffice
  // to give up a fast candidate; neither does a run that was switched out.
  const double hopeless = request.best_seconds * kHopelessFactor;
  for (int i = 0; i < 2 && hopeless > 0 && first > hopeless &&
                  (first < kStartUpSeconds ||
                   (disturbed && first < kBeyondDoubtFactor * hopeless)) &&
                  SampleClock() + 2 * first < end;
       ++i) {
    kernel.RestoreOutputs();
    switches = InvoluntarySwitches();
    first = std::min(first, kernel.TimedRun());
    disturbed = InvoluntarySwitches() != switches;
  }
  const bool is_hopeless = hopeless > 0 && first > hopeless;
  if (is_hopeless || first > kLongRunSeconds ||
      SampleClock() + 2 * first > end) {
    report.samples[0] = first;
    report.stopped_early = is_hopeless;
    return finish(1);
  }

  const double run_seconds =
      first < kStartUpSeconds ? WarmUp(kernel, first) : first;
  CacheFlusher flusher(kernel, request.flush_cache, request.last_cache_bytes,
                       run.program->cold_constants);
  // Running in place, a second run would start from the first one's result.
  const int64_t iterations = IterationsFor(
      flusher.flushes() || kernel.in_place(), run_seconds, kSampleSeconds);
  const double sample_seconds = run_seconds * static_cast<double>(iterations);
  // After the race is decided, the outputs of one more sample are checked.
  RaceRules rules = RulesFor(request);
  const uint32_t most_retakes = rules.most;
  bool last = rules.most == 1 || SampleClock() + 3 * sample_seconds > end;
  if (rules.most > 1) --rules.most;
  if (rules.least > 1) --rules.least;
  SampleRace race(rules);
  uint32_t taken = 0;
  uint32_t placed = 0;  // samples before the buffers were placed
  bool may_place = true;
  CoreWait core_wait(alone_contention, request.best_seconds, run.patience);
  for (;;) {
    bool cold = false;
    const bool alone =
        core_wait.Await(end - 3 * sample_seconds - SampleClock(), &cold);
    report.waited_seconds = core_wait.waited_seconds();
    if (may_place && taken - placed >= kSamplesOfAPlacement) {
      may_place = kernel.PlaceAnew();
      placed = taken;
      cold |= may_place;
    }
    // Brings the moved buffers into the caches again.
    if (cold && !flusher.flushes_all() && !kernel.in_place()) kernel.TimedRun();
    if (kernel.in_place() || last) kernel.RestoreOutputs();
    const double flush_start = SampleClock();
    if (flusher.flushes()) flusher.Flush();
    const double flush_seconds = SampleClock() - flush_start;
    switches = InvoluntarySwitches();
    const double seconds = kernel.TimedRuns(iterations);
    disturbed = InvoluntarySwitches() != switches;
    const bool shared = !alone || !core_wait.IsAlone();
    const bool time_left = SampleClock() + 3 * sample_seconds < end;
    const bool joined = alone && shared && core_wait.HasPatience();
    if ((disturbed || joined) && report.retaken < most_retakes && time_left) {
      ++report.retaken;
      continue;
    }
    bool lost = false;
    if (shared && !last && time_left && core_wait.SetsAside(seconds, &lost)) {
      if (!lost) continue;
      report.stopped_early = last = true;
    }
    if (shared) {
      ++report.shared;
      race.Excuse(CoreWait::kSharedFactor);
    }
    report.samples[taken++] = seconds;
    if (lost) continue;
    if (last) return finish(taken);
    const RaceVerdict verdict = race.Add(
        seconds, seconds * static_cast<double>(iterations) + flush_seconds);
    report.stopped_early = verdict == RaceVerdict::kCannotWin;
    last = verdict != RaceVerdict::kGoOn || !time_left;
  }
}

}  // namespace tilefarm::worker
