// Features of a scheduled program, extracted from its loop nest.
#ifndef TILEFARM_COST_MODEL_FEATURES_H_
#define TILEFARM_COST_MODEL_FEATURES_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "cost_model/cost_model.h"
#include "cost_model/feature_columns.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

// FeaturesOf(BuildLoopNest(scheduled), target).
FeatureRows ExtractFeatures(const ir::PrimFunc& scheduled,
                            const target::Target& target);

// One row of kColumns values per store, in program order; every value is
// finite. Similar to Ansor (Zheng et al., 2020), with columns for caches and
// registers of the target.
FeatureRows FeaturesOf(const LoopNest& nest, const target::Target& target);

// Floating-point (or integer) arithmetic operations of the unscheduled program,
// from which GFLOPS are computed. A multiply-add is two, a math function one.
double CountFlops(const ir::PrimFunc& program);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_FEATURES_H_
