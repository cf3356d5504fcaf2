// Finds reduction nests whose instances may run in an order that LLVM
// vectorises.
#ifndef TILEFARM_COMPILER_ORACLE_INTERCHANGE_H_
#define TILEFARM_COMPILER_ORACLE_INTERCHANGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::oracle {

// Loops around one block, each of which directly binds one of its variables.
// The block's body and init are one store each, to one element for each value
// of the spatial variables, and no other element of that buffer is read:
//
//   for spatial..., reduce... in any order: block {init; update}
//   ==  for spatial...: init     for `order`...: update
//
// if `order` keeps the order of the reduce loops, so that every element
// accumulates in the program's order.
struct ReductionNest {
  const ir::BlockNode* block;
  std::vector<const ir::ForNode*> spatial;
  // The innermost spatial loop is innermost if that makes accesses contiguous;
  // otherwise the reduce loops are.
  std::vector<const ir::ForNode*> order;
  // In the latter case, the reduce loops process this many iterations of the
  // innermost spatial loop at a time, so that sums are independent of each
  // other: a divisor of its extent.
  int64_t together = 1;
};

// nullopt if the loop is not the start of such a nest.
std::optional<ReductionNest> FindReductionNest(const ir::ForNode& outermost);

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_INTERCHANGE_H_
