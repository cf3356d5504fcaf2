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

// The values of a block variable: those of `dom` that are also in `bound`
// (where there is one). Ends are inclusive and never null.
struct VarDomain {
  arith::IntSet dom;
  std::optional<arith::IntSet> bound;
};

struct NeededRegion {
  const ir::BufferNode* buffer;
  arith::Region region;
};

// One domain for each iteration variable of the block, so that its `accesses`
// (its writes or its reads) over them include every needed region; the whole
// domain where nothing constrains a variable. `analyzer` knows the loops that
// the needed regions are written in. InvalidArgument with the reason where an
// access cannot be inverted.
absl::StatusOr<std::vector<VarDomain>> SolveBlockDomain(
    arith::Analyzer& analyzer, const ir::BlockNode& block,
    const std::vector<ir::BufferRegion>& accesses,
    const std::vector<NeededRegion>& needed);

// A loop nest ax0, ax1, ... that runs the block over the domains, its bindings
// and predicate rewritten. Loops of one iteration are left out unless
// `preserve_unit_loops`.
ir::Stmt MakeNestOver(arith::Analyzer analyzer, const ir::BlockNode& block,
                      const std::vector<VarDomain>& domains,
                      bool preserve_unit_loops, ir::BlockPtr* new_block);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_DOMAIN_H_
