#include "worker/runner/kernel.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/cache_flush.h"
#include "base/clock_canary.h"
#include "base/split_mix.h"

namespace tilefarm::worker {
namespace {

constexpr double kWarmUpSeconds = 1e-3;
// The pages of a buffer decide which buffers share sets of the second-level
// cache, and addresses decide about conflicts in the first-level cache; both
// are chance in a user's process. Buffers up to so many bytes get new pages;
// larger ones do not stay in the second-level cache.
constexpr size_t kMostPlacedBytes = size_t{4} << 20;

}  // namespace

double SampleClock() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

long InvoluntarySwitches() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double ClockCanary() {
  volatile uint64_t sink;
  uint64_t x = 88172645463325252;
  double best = 1;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double start = SampleClock();
    for (int i = 0; i < kClockCanarySteps; ++i) x = x * 6364136223846793005 + 1;
    sink = x;
    best = std::min(best, SampleClock() - start);
  }
  static_cast<void>(sink);
  return best;
}

// --- Loading -----------------------------------------------------------------

Kernel::Kernel(const SharedRun& run, std::span<const ArtifactFile> artifacts)
    : run_(run),
      loaded_(artifacts.size()),
      random_(static_cast<uint64_t>(SampleClock() * 1e9)) {
  run.report->stage = Stage::kLoading;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    Loaded& loaded = loaded_[i];
    current_ = &loaded;
    run.report->artifact = static_cast<uint32_t>(i);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", artifacts[i].fd);
    loaded.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (loaded.handle == nullptr) Fail("cannot load the artifact: ", dlerror());
    loaded.symbol = artifacts[i].symbol;
    if (!artifacts[i].is_model) {
      loaded.function = Find(loaded, loaded.symbol);
      continue;
    }
    const std::string missing = loaded.model.emplace().Load(
        loaded.symbol, [&](const std::string& symbol) {
          return dlsym(loaded.handle, symbol.c_str());
        });
    if (!missing.empty()) Fail("no such symbol: ", missing.c_str());
  }
  if (run.confine && !run.confine()) Fail("cannot be confined", "");
  AllocateBuffers();
  for (size_t i = 0; i < loaded_.size(); ++i) {
    if (!loaded_[i].model.has_value()) continue;
    current_ = &loaded_[i];
    run.report->artifact = static_cast<uint32_t>(i);
    const std::string problem = loaded_[i].model->Create(*run.program);
    if (!problem.empty()) Fail(problem.c_str(), "");
  }
  Use(0);
  // Workspace that the artifact allocates starts with 0xfe bytes.
  mallopt(M_PERTURB, 1);
}

void Kernel::AllocateBuffers() {
  const std::vector<BufferSpec>& specs = run_.program->buffers;
  buffers_.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const size_t bytes = specs[i].elements * ElementBytes(specs[i].type);
    void* arg = run_.inherited[i];
    if (arg == nullptr) {
      if (!buffers_[i].Allocate(bytes)) {
        Fail("out of memory for the buffers", "");
      }
      arg = buffers_[i].data();
      in_place_ = in_place_ || (specs[i].read && specs[i].written);
      Restore(i);
    }
    for (Loaded& loaded : loaded_) {
      loaded.args[i] = arg;
      loaded.bytes[i] = bytes;
      loaded.lent[i] = run_.inherited[i] == nullptr ? 0 : bytes;
    }
  }
}

void* Kernel::Find(const Loaded& loaded, const std::string& symbol) const {
  void* found = dlsym(loaded.handle, symbol.c_str());
  if (found == nullptr) Fail("no such symbol: ", symbol.c_str());
  return found;
}

bool Kernel::PackConstants(bool reuse_rooms) {
  if (!HasConstants()) return false;
  Loaded& loaded = *current_;
  const std::vector<BufferSpec>& specs = run_.program->buffers;
  run_.report->stage = Stage::kPacking;
  const auto bytes_of = reinterpret_cast<size_t (*)(int)>(
      Find(loaded, loaded.symbol + "_packed_bytes"));
  const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
      Find(loaded, loaded.symbol + "_pack"));
  loaded.function = Find(loaded, loaded.symbol + "_packed");
  loaded.packed.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].layout_free) continue;
    const int param = static_cast<int>(i);
    const size_t bytes = bytes_of(param);
    if (bytes == 0 || bytes > MostPackedBytes(specs[i])) {
      Fail("an impossible size of a packed buffer", "");
    }
    void* into = reuse_rooms ? RoomFor(i, bytes) : nullptr;
    loaded.lent[i] = into == nullptr ? 0 : bytes;
    if (into == nullptr) {
      if (!loaded.packed[i].AllocateHuge(bytes)) {
        Fail("out of memory for packed buffers", "");
      }
      into = loaded.packed[i].data();
    }
    // New memory is 0, which no input is, so it needs no poison.
    CheckCode(pack(param, loaded.args[i], into));
    loaded.args[i] = into;
    loaded.bytes[i] = bytes;
  }
  return true;
}

void* Kernel::RoomFor(size_t i, size_t bytes) const {
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

// --- The place of the buffers ------------------------------------------------

bool Kernel::Place(GuardedBuffer& buffer, size_t& placed,
                   std::vector<GuardedBuffer>& old) {
  if (buffer.bytes() == 0) return true;
  void* const before = buffer.data();
  if (placed + buffer.bytes() > kMostPlacedBytes) {
    if (buffer.Move(Random())) Replace(before, buffer.data());
    return true;
  }
  placed += buffer.bytes();
  GuardedBuffer fresh;
  if (!fresh.AllocateAsUsersDo(buffer.bytes(), Random())) return false;
  memcpy(fresh.data(), buffer.data(), buffer.bytes());
  Replace(before, fresh.data());
  std::swap(buffer, fresh);
  old.push_back(std::move(fresh));
  return true;
}

bool Kernel::PlaceAnew() {
  size_t placed = 0;
  // The old buffers exist until all new ones are touched, so that these get
  // other pages.
  std::vector<GuardedBuffer> old;
  for (GuardedBuffer& buffer : buffers_) {
    if (!Place(buffer, placed, old)) return false;
  }
  for (Loaded& loaded : loaded_) {
    for (GuardedBuffer& buffer : loaded.packed) {
      if (!Place(buffer, placed, old)) return false;
    }
  }
  // This process's mapping of the parent's memory. Several artifacts may have
  // the same argument.
  std::vector<void*> moved;
  for (Loaded& loaded : loaded_) {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      void* const before = loaded.args[i];
      if (loaded.lent[i] == 0 ||
          std::find(moved.begin(), moved.end(), before) != moved.end()) {
        continue;
      }
      void* const after = MovePages(before, loaded.lent[i], Random());
      if (after == nullptr) continue;
      Replace(before, after);
      moved.push_back(after);
    }
  }
  return true;
}

void Kernel::Replace(const void* before, void* after) {
  for (Loaded& loaded : loaded_) {
    std::replace(loaded.args.begin(), loaded.args.end(),
                 const_cast<void*>(before), after);
  }
}

uint64_t Kernel::Random() { return SplitMix(random_); }

// --- Arguments ---------------------------------------------------------------

uint64_t Kernel::ArgumentBytes() const {
  uint64_t most = 0;
  for (const Loaded& loaded : loaded_) {
    most = std::max(most, std::accumulate(loaded.bytes.begin(),
                                          loaded.bytes.end(), uint64_t{0}));
  }
  return most;
}

bool Kernel::HasConstants() const {
  return std::ranges::any_of(run_.program->buffers, &BufferSpec::layout_free);
}

void Kernel::FlushArguments(bool constants_only) const {
  const std::vector<BufferSpec>& specs = run_.program->buffers;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (constants_only && !specs[i].layout_free) continue;
    FlushFromCaches(current_->args[i], current_->bytes[i]);
  }
}

void Kernel::Restore(size_t i) {
  const BufferSpec& spec = run_.program->buffers[i];
  if (spec.read) {
    memcpy(buffers_[i].data(), run_.inputs[i], buffers_[i].bytes());
  } else {
    Poison(IsFloat(spec.type), buffers_[i].data(), buffers_[i].bytes());
  }
}

void Kernel::RestoreOutputs() {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (run_.program->buffers[i].written) Restore(i);
  }
}

void Kernel::KeepOutputs(char* where) const {
  size_t output = 0;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (!run_.program->buffers[i].written) continue;
    memcpy(where + run_.output_offsets[output++], buffers_[i].data(),
           buffers_[i].bytes());
  }
}

// --- Runs --------------------------------------------------------------------

double Kernel::TimedRun() { return TimedRuns(1); }

double Kernel::TimedRuns(int64_t iterations) {
  void* const function = current_->function;
  void* const* const args = current_->args.data();
  const size_t count = buffers_.size();
  int code = 0;
  const bool is_model = current_->model.has_value();
  const double start = SampleClock();
  for (int64_t i = 0; i < iterations; ++i) {
    code |= is_model ? current_->model->Run(args) : Call(function, args, count);
  }
  const double seconds = SampleClock() - start;
  CheckCode(code);
  return seconds / static_cast<double>(iterations);
}

double Kernel::TimedOracle(const std::vector<void*>& bounds) {
  using Oracle = int (*)(void* const*, void* const*);
  const double start = SampleClock();
  const int code = reinterpret_cast<Oracle>(current_->function)(
      current_->args.data(), bounds.data());
  const double seconds = SampleClock() - start;
  CheckCode(code);
  return seconds;
}

void Kernel::CheckCode(int code) const {
  if (code == 0) return;
  char text[32];
  snprintf(text, sizeof text, "%d", code);
  Fail("the function returned ", text);
}

void Kernel::Fail(const char* what, const char* detail) const {
  snprintf(run_.report->error, sizeof run_.report->error, "%s%s", what, detail);
  run_.report->artifact = static_cast<uint32_t>(current_ - loaded_.data());
  run_.report->stage = Stage::kFailed;
  _exit(0);
}

// --- Around the runs ---------------------------------------------------------

CacheFlusher::CacheFlusher(const Kernel& kernel, bool flush_cache,
                           uint64_t last_cache_bytes, bool cold_constants)
    : kernel_(kernel),
      all_(flush_cache ||
           kernel.ArgumentBytes() > LastCacheBytes(last_cache_bytes)),
      flushes_(all_ || (cold_constants && kernel.HasConstants() &&
                        CanFlushFromCaches())) {
  if (!flushes_ || (!flush_cache && CanFlushFromCaches())) return;
  if (!memory_.Allocate(FlusherBytes(flush_cache, last_cache_bytes),
                        /*shared=*/false)) {
    kernel.Fail("out of memory for flushing the caches", "");
  }
}

void CacheFlusher::Flush() {
  if (memory_.bytes() == 0) return kernel_.FlushArguments(!all_);
  memset(memory_.data(), ++fill_, memory_.bytes());
}

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

int64_t IterationsFor(bool single_runs, double run_seconds,
                      double sample_seconds) {
  if (single_runs) return 1;
  return std::clamp<int64_t>(
      static_cast<int64_t>(sample_seconds / std::max(run_seconds, 1e-9)), 1,
      int64_t{1} << 20);
}

}  // namespace tilefarm::worker
