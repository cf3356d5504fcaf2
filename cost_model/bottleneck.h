// What holds a scheduled program back, by the model of estimate.h: the time
// that it would take without each of its costs.
//
//   report = FindBottleneck(BuildLoopNest(function), target, core)
//   report.bottleneck      kLatency: "latency chain"
//   report.without         what each cost is worth
#ifndef TILEFARM_COST_MODEL_BOTTLENECK_H_
#define TILEFARM_COST_MODEL_BOTTLENECK_H_

#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "cost_model/estimate.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

enum class Bottleneck {
  // Limits: what the program needs of the device, whatever its schedule.
  kArithmetic,  // "FMA ports": units of arithmetic are busy
  kMemory,      // traffic between memory and the last cache
  kL3,          // ... from the third cache to the second
  kL2,          // ... from the second cache to the first
  kLoadStore,   // loads and stores of registers
  // Losses: what another schedule would not spend.
  kLatency,    // "latency chain": too few sums at once
  kPacking,    // copies to intermediate buffers
  kTail,       // lanes, iterations and conditions of sizes that do not divide
  kImbalance,  // cores that wait for others, or have no work
  kSpills,     // more values than registers
  kOverhead,   // starts of loops, reductions and threads
};
inline constexpr Bottleneck kBottlenecks[] = {
    Bottleneck::kArithmetic, Bottleneck::kMemory,    Bottleneck::kL3,
    Bottleneck::kL2,         Bottleneck::kLoadStore, Bottleneck::kLatency,
    Bottleneck::kPacking,    Bottleneck::kTail,      Bottleneck::kImbalance,
    Bottleneck::kSpills,     Bottleneck::kOverhead};

// "FMA ports", "memory", "latency chain", ...
std::string_view BottleneckName(Bottleneck bottleneck);
// A sentence: what it is, and what usually helps.
std::string_view BottleneckAdvice(Bottleneck bottleneck);
// Whether another schedule would not spend it.
bool IsLoss(Bottleneck bottleneck);

// The program without one of its costs.
struct WithoutCost {
  Bottleneck cost = Bottleneck::kArithmetic;
  double cycles = 0;
  double share = 0;  // of all cycles that this saves, 0 to 1
};

struct BottleneckReport {
  double cycles = 0;              // of the whole program, on all its cores
  std::vector<StoreCost> stores;  // one for each of the nest's
  std::vector<double> store_cycles;
  // The largest share first; those that save nothing are left out.
  std::vector<WithoutCost> without;
  // The largest loss, where it is worth kLossShare of the time; otherwise the
  // limit that is worth most.
  Bottleneck bottleneck = Bottleneck::kArithmetic;
};

// A loss below this share of the time is not what to look at first: the limits
// of the device are worth more. Units overlap, so that the share of a limit has
// no such bound.
inline constexpr double kLossShare = 0.15;

BottleneckReport FindBottleneck(const LoopNest& nest,
                                const target::Target& target,
                                const CoreModel& core);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_BOTTLENECK_H_
