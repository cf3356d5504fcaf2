// Turns scalar expressions of a loop variable into vectors over consecutive
// values of it.
#ifndef TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_
#define TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_

#include <optional>

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// The first `active` of `lanes` values start, start + 1, ... of `var`, for a
// store under `condition` (bool; may be null).
struct LaneChunk {
  const ir::VarNode* var;
  ir::Expr start;
  int lanes;
  int active;
};

// Null if the store cannot be vectorized without an operation that scalar
// execution would not do (an integer division in an inactive lane). Lanes in
// which the condition or a T.if_then_else is false access no memory.
ir::Stmt VectorizeStore(IndexMath& math, const ir::StoreNode& store,
                        const ir::Expr& condition, const LaneChunk& chunk);

// The values of `value`, as a vector, in a chunk whose lanes are all active.
// Null if they cannot be computed as one.
ir::Expr VectorizeValue(IndexMath& math, const ir::Expr& value,
                        const LaneChunk& chunk);

// Whether every index and compared index of the store is linear in the lane
// within the chunk.
bool LinearInLanes(IndexMath& math, const ir::StoreNode& store,
                   const LaneChunk& chunk);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_
