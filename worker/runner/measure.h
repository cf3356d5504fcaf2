// The child's half of a measurement: loads an artifact, runs it on fresh
// buffers and times it. Nothing it reports is believed without a look by the
// parent, which alone compares the outputs.
#ifndef TILEFARM_WORKER_RUNNER_MEASURE_H_
#define TILEFARM_WORKER_RUNNER_MEASURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker/runner/buffers.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

inline constexpr uint32_t kMaxSamples = 1024;

// How far the child came.
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

// In shared memory, written by the child: by the candidate's code, too, where
// that wants to, so any field may hold any bits.
struct ChildReport {
  Stage stage;
  int32_t refused;  // number of the system call that ended it, plus 1
  uint32_t sample_count;
  uint32_t retaken;
  uint32_t shared;  // samples with something else on the core
  uint32_t stopped_early;
  // Both set before the stage: CLOCK_MONOTONIC, and the CPU time of the
  // process.
  double first_run_start, first_run_cpu;
  double first_seconds;
  double canary_seconds;
  double contention;      // of the core, before the artifact is loaded
  double waited_seconds;  // for the core to be alone
  double samples[kMaxSamples];
  char error[256];
};

// What both halves share: the inputs, made before the fork, and room for what
// comes back.
struct SharedRun {
  const ProgramSpec* program = nullptr;
  // Of the core alone (base/quiet_core.h); 0: not known.
  double alone_contention = 0;
  // Seconds that may pass waiting for the core to be alone.
  double patience = 0;
  bool calls_a_library = false;
  // First contents of each parameter that is read, ending at a guard page;
  // null otherwise.
  std::vector<const void*> inputs;
  // Large inputs that the function may be called with as they are, between
  // guard pages: what it writes there stays in the child. Null: make a copy.
  std::vector<void*> inherited;
  // Where large layout-free parameters are packed, unless the measurement is in
  // full: room of `most` bytes before a guard page, in huge pages, since
  // touching as many small ones takes longer than packing.
  struct Room {
    char* end = nullptr;  // null: none
    size_t most = 0;
  };
  std::vector<Room> packing;
  // Outputs in parameter order, each from an offset that is a multiple of 64.
  std::vector<size_t> output_offsets;
  // Called in the child once the artifact is loaded, before any of its
  // functions. False: it must not run.
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
  // False where no file can be made.
  bool Store(const std::string& bytes);
};

// The most that SYMBOL_packed_bytes may ask for a layout-free parameter: room
// for padding.
uint64_t MostPackedBytes(const BufferSpec& spec);

// The most memory that flushing the caches takes.
uint64_t FlusherBytes(const RunRequest& request);

// Runs the oracle once, for its outputs and the bounds of those that have
// some: `bounds` has room for them, null elsewhere, one entry a parameter.
// Called in the child.
void RunOracle(const SharedRun& run, int artifact_fd, const std::string& symbol,
               const std::vector<void*>& bounds);

// Runs, times, runs again. Called in the child. The order of things:
//  1. a first run on poisoned outputs; its outputs are kept. A library makes
//     its kernels in its first call: an artifact that calls one runs once
//     before. Where parameters are layout-free everything but this run is of
//     SYMBOL_packed. It packs the same way and runs the same code, so in a race
//     (best_seconds) the first run is SYMBOL_packed's, too; a measurement in
//     full has it of SYMBOL, and packs into fresh memory as a user's program
//     does;
//  2. where it is much slower than best_seconds, and so are two more in case
//     it was quick or switched out, or where the time limit allows no further
//     run, that is the answer;
//  3. warm-up until the time of a run is known, then samples of at least
//     about a millisecond or one run, retaken where the kernel was switched
//     out meanwhile, until the race is decided (sample_race.h), or well before
//     the time limit; every few of them small buffers are placed anew, as an
//     allocator would place them. Arguments that exceed the last cache are
//     flushed from every cache before each sample, of one run then: how much
//     of them earlier runs left there is chance. On one core a measurement in
//     full waits for the core to be alone; so does a race once a few samples of
//     a shared core have not ruled out that the candidate wins;
//  4. before one last sample outputs are poisoned again; after it they are
//     kept.
void Measure(const SharedRun& run, int artifact_fd, const RunRequest& request);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_MEASURE_H_
