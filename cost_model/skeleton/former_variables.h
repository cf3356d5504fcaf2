// Indices of blocks that rfactor made.
#ifndef TILEFARM_COST_MODEL_SKELETON_FORMER_VARIABLES_H_
#define TILEFARM_COST_MODEL_SKELETON_FORMER_VARIABLES_H_

#include <vector>

#include "absl/status/status.h"
#include "cost_model/skeleton/sketch_plan.h"

namespace tilefarm::skeleton {

// Puts former variables (NestedBlock::written_out) in place of their parts,
// whose coefficients depend on decisions: A[vk_0 * 64 + vk_1 + 1] as A[vk + 1].
// Unimplemented where an index uses the parts in another way.
absl::Status FindFormerVariables(const NestedBlock& nested,
                                 const ir::BlockNode& block,
                                 std::vector<IndexExpr>& indices);

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_FORMER_VARIABLES_H_
