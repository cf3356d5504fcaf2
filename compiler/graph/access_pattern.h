// How a function reads its inputs, found from its program.
#ifndef TILEFARM_COMPILER_GRAPH_ACCESS_PATTERN_H_
#define TILEFARM_COMPILER_GRAPH_ACCESS_PATTERN_H_

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

struct AccessPattern {
  // The function has one result, one block, and no reduction: each element is
  // computed once, from elements of the inputs.
  bool injective = false;
  // Per parameter, of an injective function: whether element [i, j, ...] of the
  // result reads this parameter at [i, j, ...] only, and the shapes are equal.
  std::vector<bool> elementwise;
  // Per parameter, of an injective function: whether neighbours along the last
  // dimension of the result read neighbours of this parameter, or the same
  // element: slices, broadcasts, gathers of rows; no transposes.
  std::vector<bool> unit_stride;
};

AccessPattern PatternOf(const ir::PrimFunc& function);

// Whether an index is the variable, or a sum of it and what does not use it.
bool StepsWith(const ir::Expr& index, const ir::Expr& var);

// What an injective function stores, null of others. Its block's variables are
// the indices.
ir::Expr StoredBy(const ir::PrimFunc& function);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_ACCESS_PATTERN_H_
