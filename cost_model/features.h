// Features of a scheduled program, extracted from its loop nest.
#ifndef TILEFARM_COST_MODEL_FEATURES_H_
#define TILEFARM_COST_MODEL_FEATURES_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "cost_model/cost_model.h"

namespace tilefarm::cost_model {

FeatureRows ExtractFeatures(const ir::PrimFunc& scheduled,
                            const target::Target& target);

// Floating-point (or integer) arithmetic operations of the program as written:
// what GFLOPS are computed from.
double CountFlops(const ir::PrimFunc& program);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_FEATURES_H_
