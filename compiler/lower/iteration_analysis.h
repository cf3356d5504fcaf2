// When do different values of a loop variable mean different elements?
#ifndef TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
#define TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// Whether the tuple of values of `dims` fixes `var`, a loop of `extent`
// iterations from 0, whatever the other variables in `dims` are within their
// bounds. Terms that do not change between the iterations compared must have
// been left out of `dims`. Sees digits of a fused variable (v // 8, v % 8,
// v // 4 % 2). False where it cannot tell.
bool Determines(IndexMath& math, const std::vector<Linear>& dims,
                const ir::VarNode* var, int64_t extent);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
