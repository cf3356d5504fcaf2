// Scalar expressions of one loop variable -> vectors over consecutive values
// of it.
#ifndef TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_
#define TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_

#include <optional>

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// A store for the `active` first of `lanes` values start, start + 1, ... of
// `var`, under `condition` (bool; may be null).
struct LaneChunk {
  const ir::VarNode* var;
  ir::Expr start;
  int lanes;
  int active;
};

// Null where the store cannot be vectorized without running what a scalar
// execution would not (an integer division in a lane that is switched off).
// Lanes where the condition or a T.if_then_else is false touch no memory.
ir::Stmt VectorizeStore(IndexMath& math, const ir::StoreNode& store,
                        const ir::Expr& condition, const LaneChunk& chunk);

// The values of `value` in a chunk whose lanes are all active, as a vector.
// Null where they cannot be computed as one.
ir::Expr VectorizeValue(IndexMath& math, const ir::Expr& value,
                        const LaneChunk& chunk);

// Whether every index and compared index of the store is linear in the lane
// within the chunk.
bool LinearInLanes(IndexMath& math, const ir::StoreNode& store,
                   const LaneChunk& chunk);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_LANE_VECTORIZER_H_
