// An estimate of a candidate's time, for use before anything was measured.
#ifndef TILEFARM_COST_MODEL_ESTIMATE_H_
#define TILEFARM_COST_MODEL_ESTIMATE_H_

#include <vector>

#include "compiler/target/target.h"
#include "cost_model/cost_model.h"
#include "cost_model/machine_rates.h"

namespace tilefarm::cost_model {

// Cycles to start and end a parallel loop.
inline constexpr double kParallelCycles = 10000;

// From the next cache into L1 (0), L2 (1) or L3 (2).
double BytesPerCycle(const CoreModel& core, int cache, bool is_parallel);

// What one store costs on one core, by what takes the time. A band is the part
// of the nest that becomes straight-line code with its data in registers.
struct StoreCost {
  double bands = 1;  // executions of the band
  // Of one band, in cycles: on arithmetic units; waiting for the step before on
  // the same sum; on load and store units; for masked updates; for registers
  // that are saved and reloaded.
  double arithmetic = 0, latency = 0, ports = 0, masked = 0, spills = 0;
  // Of all bands, in cycles: for conditions, loops, starts of reductions.
  double guards = 0, loops = 0, runs = 0;
  // Bytes into L1, L2 and L3, and cycles for them.
  double bytes[3] = {}, traffic[3] = {};
  bool is_parallel = false;
  bool starts_parallel = false;  // its loop is not that of the store before
  double cores = 1;              // that share it
  double imbalance = 0;   // time of the busiest core over the mean, less one
  double lane_waste = 0;  // share of lanes that the last vector leaves idle
  double repeated = 0;    // executions beyond the elements, over the elements
};
// Units work side by side: the slowest counts, and a share of the others.
double CyclesOf(const StoreCost& cost);
// One for each row.
std::vector<StoreCost> CostsOf(const FeatureRows& rows,
                               const target::Target& target,
                               const CoreModel& core);

// Cycles of the program on the target's cores by a roofline of each store: the
// arithmetic, the loads and stores of its register band, the latency of its
// accumulators, and the traffic into each cache, whichever takes longest. It
// ranks candidates of one task and does not predict seconds. Positive and
// finite.
double EstimateCycles(const FeatureRows& rows, const target::Target& target);

// Computes the columns with the estimate from the other columns of the rows.
void WriteEstimate(FeatureRows& rows, const target::Target& target);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_ESTIMATE_H_
