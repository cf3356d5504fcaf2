// When do different values of a loop variable mean different elements?
#ifndef TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
#define TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// One linear form per dimension of an access. Terms that do not change between
// the iterations compared must have been left out.
using AccessDims = std::vector<Linear>;

// Whether two accesses of the list can meet at one element only in the same
// iteration of `var`, a loop of `extent` iterations from 0, whatever the other
// variables are within their bounds. Sees digits of a fused variable (v // 8,
// v % 8, v // 4 % 2). False where it cannot tell. All accesses have the same
// number of dimensions.
bool Determines(IndexMath& math, const std::vector<AccessDims>& accesses,
                const ir::VarNode* var, int64_t extent);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
