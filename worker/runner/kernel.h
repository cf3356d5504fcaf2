// In the child: the buffers of a program, and artifacts that compute it.
#ifndef TILEFARM_WORKER_RUNNER_KERNEL_H_
#define TILEFARM_WORKER_RUNNER_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/runner/buffers.h"
#include "worker/runner/call.h"
#include "worker/runner/measure.h"
#include "worker/runner/model_abi.h"

namespace tilefarm::worker {

// An artifact to load.
struct ArtifactFile {
  int fd = -1;
  std::string symbol;
  bool is_model = false;  // model_abi.h; otherwise SYMBOL is a kernel
};

// Functions of one or two artifacts that are called on the same buffers, so
// that the place of the buffers makes no difference between them. Errors end
// the child: `Fail` does not return.
class Kernel {
 public:
  // Loads them in their order, and confines the child before any of their
  // functions runs.
  Kernel(const SharedRun& run, std::span<const ArtifactFile> artifacts);

  // Later calls, and PackConstants, are of this artifact; at first of the
  // first one.
  void Use(size_t artifact) { current_ = &loaded_[artifact]; }

  // Makes later runs call SYMBOL_packed, with layout-free parameters that
  // SYMBOL_pack makes from the initial contents. They are in the memory of
  // run.packing if `reuse_rooms` and it is there, otherwise in new memory.
  // False: there are no layout-free parameters, and nothing changes.
  bool PackConstants(bool reuse_rooms);
  // Moves every buffer. Small ones get new pages, at an offset that an
  // allocator would choose; large ones keep their pages and get new addresses.
  // The guard pages have shown until now that nothing is accessed past an end.
  // False: out of memory before all small ones have moved.
  bool PlaceAnew();

  // Total size of the function's arguments.
  uint64_t ArgumentBytes() const;
  bool HasConstants() const;
  void FlushArguments(bool constants_only) const;
  // Whether a parameter is both input and output, so that runs differ.
  bool in_place() const { return in_place_; }
  // Gives every output its initial contents.
  void RestoreOutputs();
  void KeepOutputs(char* where) const;

  double TimedRun();
  // Mean of `iterations` runs.
  double TimedRuns(int64_t iterations);
  // Calls the loaded function as an oracle.
  double TimedOracle(const std::vector<void*>& bounds);

  [[noreturn]] void Fail(const char* what, const char* detail) const;

 private:
  struct Loaded {
    void* handle = nullptr;
    void* function = nullptr;
    std::optional<ModelFunctions> model;  // instead of a function
    std::string symbol;
    std::vector<GuardedBuffer> packed;  // of layout-free parameters
    std::array<void*, kMaxArguments> args = {};
    std::array<size_t, kMaxBuffers> bytes = {};  // of each argument
    // Bytes of those that are in the parent's mappings.
    std::array<size_t, kMaxBuffers> lent = {};
  };

  void AllocateBuffers();
  void* Find(const Loaded& loaded, const std::string& symbol) const;
  // Memory that ends at the guard page. Null: it is too small, or there is
  // none.
  void* RoomFor(size_t i, size_t bytes) const;
  void Restore(size_t i);
  // False: out of memory.
  bool Place(GuardedBuffer& buffer, size_t& placed,
             std::vector<GuardedBuffer>& old);
  void Replace(const void* before, void* after);
  uint64_t Random();
  void CheckCode(int code) const;

  const SharedRun& run_;
  std::vector<Loaded> loaded_;
  Loaded* current_ = nullptr;
  std::vector<GuardedBuffer> buffers_;
  uint64_t random_;
  bool in_place_ = false;
};

// Flushes the caches between samples: everything if that was requested,
// otherwise arguments larger than the last cache, so that no sample finds parts
// of them in a cache, and constants that are cold in use.
class CacheFlusher {
 public:
  // last_cache_bytes 0: not known.
  CacheFlusher(const Kernel& kernel, bool flush_cache,
               uint64_t last_cache_bytes, bool cold_constants);
  bool flushes() const { return flushes_; }
  bool flushes_all() const { return all_; }
  // Those of the artifact in use.
  void Flush();

 private:
  const Kernel& kernel_;
  const bool all_, flushes_;
  Mapping memory_;
  unsigned char fill_ = 0;
};

// Runs until the time of a run is known and the core has its full clock rate.
double WarmUp(Kernel& kernel, double first_seconds);

// Runs of a sample that lasts `sample_seconds` at least, or one.
int64_t IterationsFor(bool single_runs, double run_seconds,
                      double sample_seconds);

// Seconds of the clock that samples are timed with.
double SampleClock();
long InvoluntarySwitches();
// The time of a chain of dependent multiplications, which takes the same number
// of cycles on every call and so shows the clock rate. The least of a few,
// because one may be interrupted.
double ClockCanary();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_KERNEL_H_
