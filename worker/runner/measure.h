// The child's part of a measurement: loads an artifact, runs it on fresh
// buffers and times it. The parent checks everything that the child reports,
// and only the parent compares the outputs.
#ifndef TILEFARM_WORKER_RUNNER_MEASURE_H_
#define TILEFARM_WORKER_RUNNER_MEASURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker/runner/buffers.h"
#include "worker/runner/sample_race.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

inline constexpr uint32_t kMaxSamples = 1024;

// Rules of all measurements.
// A first run slower than the best so far by this factor is hopeless.
inline constexpr double kHopelessFactor = 3;
// The time of such a long first run is a valid sample, including start-up.
inline constexpr double kLongRunSeconds = 0.5;
// Share of the wall-clock limit for everything except the last sample.
inline constexpr double kTimeShare = 0.6;
// The shortest sample, unless it must be of one run.
inline constexpr double kSampleSeconds = 1e-3;
// Samples between two placements of the buffers (Kernel::PlaceAnew).
inline constexpr uint32_t kSamplesOfAPlacement = 3;

// How long a candidate is measured.
RaceRules RulesFor(const RunRequest& request);

// The stage that the child has reached.
enum class Stage : uint32_t {
  kStarted = 0,
  kLoading,  // dlopen: the artifact's constructors
  kFirstRun,
  kPacking,
  kTiming,
  kDone,
  kFailed,  // `error` says why
};
const char* StageName(Stage stage);

// In shared memory, written by the child. The candidate's code can write it as
// well, so every field may hold any bits.
struct ChildReport {
  Stage stage;
  int32_t refused;    // number of the system call that ended it, plus 1
  uint32_t artifact;  // the one that runs or failed, in the order of loading
  uint32_t sample_count;
  uint32_t retaken;
  uint32_t shared;  // samples during which something else used the core
  uint32_t stopped_early;
  // Both set before the stage: CLOCK_MONOTONIC, and the CPU time of the
  // process.
  double first_run_start, first_run_cpu;
  double first_seconds;
  double canary_seconds;
  double contention;      // of the core, before the artifact is loaded
  double waited_seconds;  // for the core to be unused by others
  double samples[kMaxSamples];
  char error[256];
  // Of a device (device_measure.h): how it was timed, what it writes outside
  // its outputs, and the device's state.
  char timing[128];
  char damage[128];
  uint32_t ends_context;  // the error ends the context of the device
  DeviceConditions conditions;
};

// Data shared by both parts: the inputs, made before the fork, and space for
// the results.
struct SharedRun {
  const ProgramSpec* program = nullptr;
  // Contention of the unshared core (base/quiet_core.h); 0: not known.
  double alone_contention = 0;
  // The longest wait until nothing else uses the core, in seconds.
  double patience = 0;
  bool calls_a_library = false;
  // The initial contents of each parameter that is read, which end at a guard
  // page; null for other parameters.
  std::vector<const void*> inputs;
  // Large inputs, between guard pages, that are passed to the function without
  // a copy: its writes stay in the child. Null: copy the input.
  std::vector<void*> inherited;
  // Memory for packing large layout-free parameters, unless the measurement is
  // in full: `most` bytes before a guard page. In huge pages, because touching
  // as much memory in small pages takes longer than packing.
  struct Room {
    char* end = nullptr;  // null: none
    size_t most = 0;
  };
  std::vector<Room> packing;
  // Outputs in parameter order, each from an offset that is a multiple of 64.
  std::vector<size_t> output_offsets;
  // Called in the child after the artifact is loaded and before any of its
  // functions. False: they must not run.
  std::function<bool()> confine;
  ChildReport* report = nullptr;
  char* first_outputs = nullptr;  // of the first run
  char* last_outputs = nullptr;   // of the last timed one
};

struct LoadedArtifact {
  int fd = -1;  // memory file, or a temporary one already unlinked
  LoadedArtifact() = default;
  LoadedArtifact(const LoadedArtifact&) = delete;
  LoadedArtifact& operator=(const LoadedArtifact&) = delete;
  ~LoadedArtifact();
  // False: no file can be made.
  bool Store(const std::string& bytes);
};

// The largest SYMBOL_packed_bytes of a layout-free parameter, with space for
// padding.
uint64_t MostPackedBytes(const BufferSpec& spec);

// The size of the last cache; `known` 0: a large one.
uint64_t LastCacheBytes(uint64_t known);
// An upper bound on the memory for flushing the caches.
uint64_t FlusherBytes(bool flush_cache, uint64_t last_cache_bytes);

// Runs the oracle once, for its outputs and their bounds. `bounds` has one
// entry for each parameter: memory for its bounds, or null. Called in the
// child.
void RunOracle(const SharedRun& run, int artifact_fd, const std::string& symbol,
               const std::vector<void*>& bounds);

// Runs, times, and runs again. Called in the child. The steps:
//  1. The first run starts with poisoned outputs, and its outputs are kept. An
//     artifact that calls a library runs once before, because the library makes
//     its kernels in its first call. With layout-free parameters, all later
//     runs are of SYMBOL_packed. In a race (best_seconds) the first run is as
//     well, because it packs in the same way and runs the same code; a
//     measurement in full runs SYMBOL first, and packs into fresh memory as a
//     user's program does.
//  2. If the first run is much slower than best_seconds, it is the result. It
//  is
//     repeated twice if it was short or switched out. It is also the result if
//     the time limit permits no further run.
//  3. Warm-up runs find the time of a run. Samples follow, of one run or of at
//     least about a millisecond. A sample is repeated if the kernel was
//     switched out. Samples end when the race is decided (sample_race.h), or
//     well before the time limit. After every few samples, small buffers get
//     new addresses, as an allocator would choose them. Arguments larger than
//     the last cache are flushed from all caches before each sample, which is
//     of one run then, because it is chance how much of them earlier runs left
//     there. So are constants that are cold in use
//     (ProgramSpec::cold_constants), while its other arguments stay cached. On
//     one core, a measurement in full waits until nothing else uses the core. A
//     race does so after a few samples on a shared core, unless they rule out
//     that the candidate wins.
//  4. Before one last sample the outputs are poisoned again; after it they are
//     kept.
void Measure(const SharedRun& run, int artifact_fd, const RunRequest& request);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_MEASURE_H_
