// Whether different values of a loop variable access different elements.
#ifndef TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
#define TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// One linear form for each dimension of an access. The caller leaves out terms
// that are equal in the compared iterations.
using AccessDims = std::vector<Linear>;

// Whether two accesses of the list can reach the same element only in the same
// iteration of `var`, a loop of `extent` iterations from 0, for any values of
// the other variables within their bounds. Recognises digits of a fused
// variable (v // 8, v % 8, v // 4 % 2). False if unknown. All accesses must
// have the same number of dimensions.
bool Determines(IndexMath& math, const std::vector<AccessDims>& accesses,
                const ir::VarNode* var, int64_t extent);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ITERATION_ANALYSIS_H_
