// Lowering: a scheduled function becomes flat loops, loads, stores and
// allocations, one documented pass after another. pipeline.cc reads as the
// story of it.
//
// Contract of the result ("lowered form", what codegen takes):
//  - no Block nodes, no Unrolled or Vectorized loops (they are replicated, or
//    turned into Ramp/Broadcast vector code); loops are Serial or Parallel
//    (ThreadBinding for GPUs), min 0, constant or loop-invariant extents;
//  - buffers are flat: one index, in elements; intermediate buffers appear as
//    Alloc nodes (scope "global"; "local" or small constant-indexed buffers may
//    become registers: see codegen);
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

// Names of the stages, in order; the last is "lowered".
std::vector<std::string> StageNames();

// Runs the pipeline up to and including `last_stage` (default: all).
absl::StatusOr<ir::PrimFuncPtr> Lower(const ir::PrimFunc& function,
                                      const target::Target& target,
                                      std::string_view last_stage = "lowered");

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_PIPELINE_H_
