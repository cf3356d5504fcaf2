// An estimate of a candidate's time, for use before anything was measured.
#ifndef TILEFARM_COST_MODEL_ESTIMATE_H_
#define TILEFARM_COST_MODEL_ESTIMATE_H_

#include "compiler/target/target.h"
#include "cost_model/cost_model.h"

namespace tilefarm::cost_model {

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
