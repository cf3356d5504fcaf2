#include "worker/runner/measure.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/cache_flush.h"
#include "base/quiet_core.h"
#include "base/split_mix.h"
#include "worker/runner/call.h"
#include "worker/runner/core_wait.h"
#include "worker/runner/sample_race.h"

namespace tilefarm::worker {
namespace {

constexpr double kWarmUpSeconds = 1e-3;
// If it was switched out, it is hopeless only beyond this factor.
constexpr double kBeyondDoubtFactor = 1.5;
// At most this much of a first run is start-up.
constexpr double kStartUpSeconds = 20e-3;
// Samples between two placements of the buffers. Their place in physical memory
// decides which of them share sets of the second-level cache, and their
// addresses decide about conflicts in the first-level cache; both are chance in
// a user's process. Buffers up to so many bytes get new pages; larger ones do
// not stay in the second-level cache.
constexpr uint32_t kSamplesOfAPlacement = 3;
constexpr size_t kMostPlacedBytes = size_t{4} << 20;
// Measurements of the core's contention if former runs have not shown it.
constexpr int kLooks = 16;
constexpr uint64_t kDefaultLastCacheBytes = uint64_t{32} << 20;

double Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// The CPU time of this process.
double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

long InvoluntarySwitches() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// The time of a chain of dependent multiplications, which takes the same number
// of cycles on every call and so shows the clock rate. The least of a few,
// because one may be interrupted.
double Canary() {
  volatile uint64_t sink;
  uint64_t x = 88172645463325252;
  double best = 1;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double start = Now();
    for (int i = 0; i < 10000; ++i) x = x * 6364136223846793005 + 1;
    sink = x;
    best = std::min(best, Now() - start);
  }
  static_cast<void>(sink);
  return best;
}

// A loaded function with its buffers. Errors end the child: `Fail` does not
// return.
class Kernel {
 public:
  Kernel(const SharedRun& run, int artifact_fd, const std::string& symbol)
      : run_(run) {
    run.report->stage = Stage::kLoading;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", artifact_fd);
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) Fail("cannot load the artifact: ", dlerror());
    function_ = Find(symbol);
    if (run.confine && !run.confine()) Fail("cannot be confined", "");
    const std::vector<BufferSpec>& specs = run.program->buffers;
    buffers_.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      bytes_[i] = specs[i].elements * ElementBytes(specs[i].type);
      if (run.inherited[i] != nullptr) {
        args_[i] = run.inherited[i];
        lent_[i] = bytes_[i];
        continue;
      }
      if (!buffers_[i].Allocate(bytes_[i])) {
        Fail("out of memory for the buffers", "");
      }
      args_[i] = buffers_[i].data();
      in_place_ = in_place_ || (specs[i].read && specs[i].written);
      Restore(i);
    }
    // Workspace that the artifact allocates starts with 0xfe bytes.
    mallopt(M_PERTURB, 1);
  }

  // Makes later runs call SYMBOL_packed, with layout-free parameters that
  // SYMBOL_pack makes from the initial contents. They are in the memory of
  // run.packing if `reuse_rooms` and it is there, otherwise in new memory.
  // False: there are no layout-free parameters, and nothing changes.
  bool PackConstants(const std::string& symbol, bool reuse_rooms) {
    if (!HasConstants()) return false;
    const std::vector<BufferSpec>& specs = run_.program->buffers;
    run_.report->stage = Stage::kPacking;
    const auto bytes_of =
        reinterpret_cast<size_t (*)(int)>(Find(symbol + "_packed_bytes"));
    const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
        Find(symbol + "_pack"));
    function_ = Find(symbol + "_packed");
    packed_.resize(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i].layout_free) continue;
      const int param = static_cast<int>(i);
      const size_t bytes = bytes_of(param);
      if (bytes == 0 || bytes > MostPackedBytes(specs[i])) {
        Fail("an impossible size of a packed buffer", "");
      }
      void* into = reuse_rooms ? RoomFor(i, bytes) : nullptr;
      lent_[i] = into == nullptr ? 0 : bytes;
      if (into == nullptr) {
        if (!packed_[i].AllocateHuge(bytes)) {
          Fail("out of memory for packed buffers", "");
        }
        into = packed_[i].data();
      }
      // New memory is 0, which no input is, so it needs no poison.
      CheckCode(pack(param, args_[i], into));
      args_[i] = into;
      bytes_[i] = bytes;
    }
    return true;
  }

  // Moves every buffer. Small ones get new pages, at an offset that an
  // allocator would choose; large ones keep their pages and get new addresses.
  // The guard pages have shown until now that nothing is accessed past an end.
  // False: out of memory before all small ones have moved.
  bool PlaceAnew() {
    size_t placed = 0;
    // The old buffers exist until all new ones are touched, so that these get
    // other pages.
    std::vector<GuardedBuffer> old;
    for (std::vector<GuardedBuffer>* list : {&buffers_, &packed_}) {
      for (GuardedBuffer& buffer : *list) {
        if (buffer.bytes() == 0) continue;
        void* const before = buffer.data();
        if (placed + buffer.bytes() > kMostPlacedBytes) {
          if (buffer.Move(Random())) Replace(before, buffer.data());
          continue;
        }
        placed += buffer.bytes();
        GuardedBuffer fresh;
        if (!fresh.AllocateAsUsersDo(buffer.bytes(), Random())) return false;
        memcpy(fresh.data(), buffer.data(), buffer.bytes());
        Replace(before, fresh.data());
        std::swap(buffer, fresh);
        old.push_back(std::move(fresh));
      }
    }
    // This process's mapping of the parent's memory.
    for (size_t i = 0; i < args_.size(); ++i) {
      if (lent_[i] == 0) continue;
      void* moved = MovePages(args_[i], lent_[i], Random());
      if (moved != nullptr) args_[i] = moved;
    }
    return true;
  }

  // Total size of the function's arguments.
  uint64_t ArgumentBytes() const {
    return std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0});
  }
  bool HasConstants() const {
    return std::ranges::any_of(run_.program->buffers, &BufferSpec::layout_free);
  }
  void FlushArguments(bool constants_only) const {
    const std::vector<BufferSpec>& specs = run_.program->buffers;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (constants_only && !specs[i].layout_free) continue;
      FlushFromCaches(args_[i], bytes_[i]);
    }
  }

  // Whether a parameter is both input and output, so that runs differ.
  bool in_place() const { return in_place_; }

  // Gives every output its initial contents.
  void RestoreOutputs() {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (run_.program->buffers[i].written) Restore(i);
    }
  }

  double TimedRun() {
    const double start = Now();
    const int code = Call(function_, args_.data(), buffers_.size());
    const double seconds = Now() - start;
    CheckCode(code);
    return seconds;
  }

  // Calls the loaded function as an oracle.
  double TimedOracle(const std::vector<void*>& bounds) {
    using Oracle = int (*)(void* const*, void* const*);
    const double start = Now();
    const int code =
        reinterpret_cast<Oracle>(function_)(args_.data(), bounds.data());
    const double seconds = Now() - start;
    CheckCode(code);
    return seconds;
  }

  // Mean of `iterations` runs.
  double TimedRuns(int64_t iterations) {
    int code = 0;
    const double start = Now();
    for (int64_t i = 0; i < iterations; ++i) {
      code |= Call(function_, args_.data(), buffers_.size());
    }
    const double seconds = Now() - start;
    CheckCode(code);
    return seconds / static_cast<double>(iterations);
  }

  void KeepOutputs(char* where) const {
    size_t output = 0;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (!run_.program->buffers[i].written) continue;
      memcpy(where + run_.output_offsets[output++], buffers_[i].data(),
             buffers_[i].bytes());
    }
  }

  [[noreturn]] void Fail(const char* what, const char* detail) const {
    snprintf(run_.report->error, sizeof run_.report->error, "%s%s", what,
             detail);
    run_.report->stage = Stage::kFailed;
    _exit(0);
  }

 private:
  void* Find(const std::string& symbol) const {
    void* found = dlsym(handle_, symbol.c_str());
    if (found == nullptr) Fail("no such symbol: ", symbol.c_str());
    return found;
  }

  // Memory that ends at the guard page. Null: it is too small, or there is
  // none.
  void* RoomFor(size_t i, size_t bytes) const {
    const SharedRun::Room& room = run_.packing[i];
    if (room.end == nullptr || bytes > room.most) return nullptr;
    char* start = room.end - bytes;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t first = reinterpret_cast<uintptr_t>(start) / page * page;
    // Maps all pages at once, which is faster than by faults. If the system
    // cannot, faults do it.
    madvise(reinterpret_cast<void*>(first),
            reinterpret_cast<uintptr_t>(room.end) - first, MADV_POPULATE_WRITE);
    return start;
  }

  void Restore(size_t i) {
    const BufferSpec& spec = run_.program->buffers[i];
    if (spec.read) {
      memcpy(buffers_[i].data(), run_.inputs[i], buffers_[i].bytes());
    } else {
      Poison(IsFloat(spec.type), buffers_[i].data(), buffers_[i].bytes());
    }
  }

  void Replace(const void* before, void* after) {
    std::replace(args_.begin(), args_.end(), const_cast<void*>(before), after);
  }

  uint64_t Random() { return SplitMix(random_); }

  void CheckCode(int code) const {
    if (code == 0) return;
    char text[32];
    snprintf(text, sizeof text, "%d", code);
    Fail("the function returned ", text);
  }

  const SharedRun& run_;
  void* handle_ = nullptr;
  void* function_ = nullptr;
  std::vector<GuardedBuffer> buffers_;
  std::vector<GuardedBuffer> packed_;  // of layout-free parameters
  std::array<void*, kMaxArguments> args_ = {};
  std::array<size_t, kMaxBuffers> bytes_ = {};  // of each argument
  // Bytes of those that are in the parent's mappings.
  std::array<size_t, kMaxBuffers> lent_ = {};
  uint64_t random_ = static_cast<uint64_t>(Now() * 1e9);
  bool in_place_ = false;
};

uint64_t LastCacheBytes(const RunRequest& request) {
  return request.last_cache_bytes == 0 ? kDefaultLastCacheBytes
                                       : request.last_cache_bytes;
}

// Flushes the caches between samples: everything if that was requested,
// otherwise arguments larger than the last cache, so that no sample finds parts
// of them in a cache, and constants that are cold in use.
class CacheFlusher {
 public:
  CacheFlusher(const RunRequest& request, const Kernel& kernel,
               bool cold_constants)
      : kernel_(kernel),
        all_(request.flush_cache ||
             kernel.ArgumentBytes() > LastCacheBytes(request)),
        flushes_(all_ || (cold_constants && kernel.HasConstants() &&
                          CanFlushFromCaches())) {
    if (!flushes_ || (!request.flush_cache && CanFlushFromCaches())) return;
    if (!memory_.Allocate(FlusherBytes(request), /*shared=*/false)) {
      kernel.Fail("out of memory for flushing the caches", "");
    }
  }
  bool flushes() const { return flushes_; }
  bool flushes_all() const { return all_; }
  void Flush() {
    if (memory_.bytes() == 0) return kernel_.FlushArguments(!all_);
    memset(memory_.data(), ++fill_, memory_.bytes());
  }

 private:
  const Kernel& kernel_;
  const bool all_, flushes_;
  Mapping memory_;
  unsigned char fill_ = 0;
};

// Runs until the time of a run is known and the core has its full clock rate.
double WarmUp(Kernel& kernel, double first_seconds) {
  double best = first_seconds;
  double spent = first_seconds;
  for (int i = 0; i < 1000 && (i == 0 || spent < kWarmUpSeconds); ++i) {
    const double seconds = kernel.TimedRun();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

// Takes samples of one run each, or of so many that a sample is long enough.
int64_t IterationsFor(bool single_runs, double run_seconds) {
  if (single_runs) return 1;
  return std::clamp<int64_t>(
      static_cast<int64_t>(kSampleSeconds / std::max(run_seconds, 1e-9)), 1,
      int64_t{1} << 20);
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

uint64_t FlusherBytes(const RunRequest& request) {
  // Twice the size of the last cache, so that nothing stays under any
  // replacement policy.
  return request.flush_cache || !CanFlushFromCaches()
             ? 2 * LastCacheBytes(request)
             : 0;
}

void RunOracle(const SharedRun& run, int artifact_fd, const std::string& symbol,
               const std::vector<void*>& bounds) {
  Kernel kernel(run, artifact_fd, symbol);
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
    alone_contention = run.alone_contention > 0 ? run.alone_contention
                                                : LearnAloneContention(kLooks);
  }
  Kernel kernel(run, artifact_fd, request.symbol);
  // Samples end well before the limit, so that they do not cause a run_timeout.
  const double start = Now();
  const double end = start + kTimeShare * request.limits.timeout_ms * 1e-3;
  const auto finish = [&](uint32_t samples) {
    kernel.KeepOutputs(run.last_outputs);
    report.sample_count = samples;
    report.canary_seconds = Canary();
    report.stage = Stage::kDone;
  };
  const bool races = request.best_seconds > 0;
  long switches = 0;
  double first = 0;
  bool disturbed = false;
  const auto first_run = [&] {
    report.first_run_start = Now();
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
  if (races) kernel.PackConstants(request.symbol, /*reuse_rooms=*/true);
  first_run();
  kernel.KeepOutputs(run.first_outputs);
  if (!races && kernel.PackConstants(request.symbol, /*reuse_rooms=*/false)) {
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
                  Now() + 2 * first < end;
       ++i) {
    kernel.RestoreOutputs();
    switches = InvoluntarySwitches();
    first = std::min(first, kernel.TimedRun());
    disturbed = InvoluntarySwitches() != switches;
  }
  const bool is_hopeless = hopeless > 0 && first > hopeless;
  if (is_hopeless || first > kLongRunSeconds || Now() + 2 * first > end) {
    report.samples[0] = first;
    report.stopped_early = is_hopeless;
    return finish(1);
  }

  const double run_seconds =
      first < kStartUpSeconds ? WarmUp(kernel, first) : first;
  CacheFlusher flusher(request, kernel, run.program->cold_constants);
  // Running in place, a second run would start from the first one's result.
  const int64_t iterations =
      IterationsFor(flusher.flushes() || kernel.in_place(), run_seconds);
  const double sample_seconds = run_seconds * static_cast<double>(iterations);
  // After the race is decided, the outputs of one more sample are checked.
  RaceRules rules = RulesFor(request);
  const uint32_t most_retakes = rules.most;
  bool last = rules.most == 1 || Now() + 3 * sample_seconds > end;
  if (rules.most > 1) --rules.most;
  if (rules.least > 1) --rules.least;
  SampleRace race(rules);
  uint32_t taken = 0;
  uint32_t placed = 0;  // samples before the buffers were placed
  bool may_place = true;
  CoreWait core_wait(alone_contention, request.best_seconds, run.patience);
  for (;;) {
    bool cold = false;
    const bool alone = core_wait.Await(end - 3 * sample_seconds - Now(), &cold);
    report.waited_seconds = core_wait.waited_seconds();
    if (may_place && taken - placed >= kSamplesOfAPlacement) {
      may_place = kernel.PlaceAnew();
      placed = taken;
      cold |= may_place;
    }
    // Brings the moved buffers into the caches again.
    if (cold && !flusher.flushes_all() && !kernel.in_place()) kernel.TimedRun();
    if (kernel.in_place() || last) kernel.RestoreOutputs();
    const double flush_start = Now();
    if (flusher.flushes()) flusher.Flush();
    const double flush_seconds = Now() - flush_start;
    switches = InvoluntarySwitches();
    const double seconds = kernel.TimedRuns(iterations);
    disturbed = InvoluntarySwitches() != switches;
    const bool shared = !alone || !core_wait.IsAlone();
    const bool time_left = Now() + 3 * sample_seconds < end;
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
