// Lowering: a scheduled function becomes flat loops, loads, stores and
// allocations, by a sequence of documented passes in pipeline.cc.
//
// The form of the result ("lowered form", the input of codegen):
//  - no Block nodes, no Unrolled or Vectorized loops (they are replicated, or
//    turned into Ramp/Broadcast vector code); loops are Serial or Parallel;
//  - buffers are flat, parameters included: one index, in elements;
//    intermediate buffers appear as Alloc nodes of scope "global" or "local".
//    A "local" one is only accessed at constant indices (a scalar or a Ramp of
//    stride 1) that cut it into the same pieces everywhere: registers;
//  - a vector access has an index that is a Ramp (contiguous or strided) or
//    any int64 vector (gather, scatter). Lanes whose predicate is false touch
//    no memory; a load gives 0 there. Operands of one operation have equal
//    lanes, but for T.if_then_else: its condition is always a scalar, its
//    values may be vectors (lane-wise choices are Selects); and for dot
//    products and interleavings (ir::MachineOp);
//  - loops start at 0 and may have a computed extent; vector widths are powers
//    of two within the target's registers where the data is concerned (index
//    and condition vectors have the same number of lanes), or the 256 sums of
//    a matrix unit's tile;
//  - each variable and buffer is defined once in a function;
//  - every access is provably in bounds or guarded.
#ifndef TILEFARM_COMPILER_LOWER_PIPELINE_H_
#define TILEFARM_COMPILER_LOWER_PIPELINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// A point of the pipeline where the program can be looked at.
struct Stage {
  std::string_view name;
  std::string_view what;     // has happened to the program by then
  std::string_view targets;  // "all", "processors" or "GPUs"
};
// Those of all targets, in order; the last is "lowered".
std::vector<Stage> Stages();
std::vector<std::string> StageNames();

// Runs the pipeline up to and including `last_stage` (default: all).
absl::StatusOr<ir::PrimFuncPtr> Lower(const ir::PrimFunc& function,
                                      const target::Target& target,
                                      std::string_view last_stage = "lowered");

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_PIPELINE_H_
