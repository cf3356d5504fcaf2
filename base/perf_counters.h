// Counters of the processor (perf_event_open) around a piece of work.
//
//   const auto counters = PerfCounters::Open();
//   if (!counters.ok()) say(counters.status().message());
//   counters->Start();  work();  counters->Stop();
//   const PerfCounts counts = counters->Read();
#ifndef TILEFARM_BASE_PERF_COUNTERS_H_
#define TILEFARM_BASE_PERF_COUNTERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm {

// What the pipeline's slots were used for, by the top-down method (Yasin,
// 2014), level 1. The sum is about 1.
struct TopDown {
  double retiring = 0;         // operations that count
  double bad_speculation = 0;  // operations that were thrown away
  double frontend_bound = 0;   // no operation was there
  double backend_bound = 0;    // units or data were not
};

// Of user code alone. A counter that the processor or the system does not give
// is absent. Scaled where the processor has fewer counters than events.
struct PerfCounts {
  std::optional<double> cycles, instructions, branch_misses;
  // Misses of loads in the first data cache, and of any access in the last one.
  std::optional<double> l1_misses, cache_misses;
  std::optional<TopDown> top_down;
};

// One counter, open or not; of perf_event_attr.
struct PerfEvent {
  uint32_t type = 0;
  uint64_t config = 0;
};

class PerfCounters {
 public:
  // Counts the calling thread and the threads that it starts later; the
  // top-down counters of some processors count the calling thread alone.
  // PermissionDenied: the system does not permit it, with what would;
  // NotFound: the (virtual) machine has no counters.
  static absl::StatusOr<PerfCounters> Open();
  ~PerfCounters();
  PerfCounters(PerfCounters&&) noexcept;
  PerfCounters& operator=(PerfCounters&&) noexcept;

  void Start();
  void Stop();
  PerfCounts Read() const;

 private:
  struct Impl;
  explicit PerfCounters(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The text of an event of the kernel (/sys/bus/event_source/devices/cpu/events)
// as a raw config: "event=0x00,umask=0x80". nullopt: it has other terms.
std::optional<uint64_t> ParsePerfEvent(const std::string& text);

// Top-down level 1 of AMD's Zen 4 (6 slots a cycle) and Zen 5 (8), from the
// counts of TopDownEventsOfZen and the cycles. nullopt: no cycles.
std::vector<PerfEvent> TopDownEventsOfZen();
std::optional<TopDown> TopDownOfZen(const std::vector<double>& counts,
                                    double cycles, int slots_per_cycle);

// What to do where perf_event_open fails with `error` (an errno), given
// /proc/sys/kernel/perf_event_paranoid.
absl::Status ExplainPerfError(int error, const std::string& paranoid);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_PERF_COUNTERS_H_
