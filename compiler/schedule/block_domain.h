// Which instances of a block must run at a place, from the region that is
// needed there: the inverse of its accesses.
//
//   block B writes B[v0, v1 * 4 : v1 * 4 + 4]; needed: B[i, 8 : 24]
//   -> v0 in [i, i], v1 in [2, 5]
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCK_DOMAIN_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCK_DOMAIN_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/arith/int_set.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// The values of a block variable: `dom`, intersected with `bound` if there is
// one. Ends are inclusive and never null.
struct VarDomain {
  arith::IntSet dom;
  std::optional<arith::IntSet> bound;
};

struct NeededRegion {
  const ir::BufferNode* buffer;
  arith::Region region;
};

// One domain for each iteration variable of the block, such that its `accesses`
// (its writes or its reads) over these domains include every needed region. A
// variable that no access constrains gets its whole domain. `analyzer` knows
// the loops in the needed regions. InvalidArgument with the reason if an access
// cannot be inverted.
absl::StatusOr<std::vector<VarDomain>> SolveBlockDomain(
    arith::Analyzer& analyzer, const ir::BlockNode& block,
    const std::vector<ir::BufferRegion>& accesses,
    const std::vector<NeededRegion>& needed);

// A loop nest ax0, ax1, ... that runs the block over the domains, with its
// bindings and predicate rewritten. Loops of one iteration are left out unless
// `preserve_unit_loops` is set.
ir::Stmt MakeNestOver(arith::Analyzer analyzer, const ir::BlockNode& block,
                      const std::vector<VarDomain>& domains,
                      bool preserve_unit_loops, ir::BlockPtr* new_block);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_DOMAIN_H_
