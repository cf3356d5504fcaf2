// Postprocs: what finishes a candidate once its decisions are known. They
// append to the trace after `enter_postproc()`, so that a complete trace
// replays without them. In order:
//
//   rewrite_tensorize (layout)  the operands and registers of an intrinsic
//   rewrite_packing     panels as wide as the register tile
//   rewrite_parallel_vectorize_unroll
//   rewrite_prefetch    the next rows of large operands, while tiles run
//   rewrite_reductions  initialisation before the first reduce loop
//   rewrite_streaming   outputs around the caches
//   rewrite_tensorize   the intrinsic itself, in place of the loops
//
// Each does what is legal and leaves the rest: "does not apply" is no error.
#ifndef TILEFARM_COMPILER_SPACE_POSTPROCS_H_
#define TILEFARM_COMPILER_SPACE_POSTPROCS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/loop_rules.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

// The loops around the block, for the rules of loop_rules.h; `rvs`: the loops
// themselves.
absl::StatusOr<std::vector<LoopView>> ViewLoops(
    schedule::Schedule& schedule, schedule::BlockRv block,
    std::vector<schedule::LoopRv>* rvs);

// The same for the block of that name, without a trace.
absl::StatusOr<std::vector<LoopView>> LoopsAround(schedule::Schedule schedule,
                                                  const std::string& function,
                                                  const ir::BlockNode& block);

// The dimension of `buffer` whose whole index `var` is where the block reads
// it; -1: none.
int DimIndexedBy(const ir::BlockNode& reader, const ir::BufferNode* buffer,
                 const ir::VarNode* var);

// The block that reads `buffer`, the first in program order; null: none does.
ir::BlockPtr FindReader(const ir::PrimFunc& function,
                        const ir::BufferNode* buffer);

// rewrite_packing for what is packed ahead of time.
absl::Status RewritePrepacking(schedule::Schedule& schedule,
                               const std::string& function,
                               const ir::BlockNode& copy);
// The innermost loops of a block that an intrinsic is to take the place of; 0
// where none is.
size_t IntrinsicLoops(const ir::BlockNode& block);
// Whether each block that is to be tensorized is alone in the loops that its
// intrinsic takes the place of, and has no producer inlined.
bool IntrinsicsFit(schedule::Schedule schedule);
// For blocks that are to be tensorized: lays their packed operand out as the
// intrinsic reads it, and unrolls the register tile.
absl::Status RewriteTensorizeLayout(schedule::Schedule& schedule,
                                    const std::string& function);
// FailedPrecondition where a block that is to be tensorized cannot be.
absl::Status RewriteTensorize(schedule::Schedule& schedule,
                              const std::string& function);
absl::Status RewritePacking(schedule::Schedule& schedule,
                            const std::string& function);
absl::Status RewriteParallelVectorizeUnroll(schedule::Schedule& schedule,
                                            const std::string& function,
                                            const target::Target& target);
absl::Status RewritePrefetch(schedule::Schedule& schedule,
                             const std::string& function,
                             const target::Target& target);
absl::Status RewriteReductions(schedule::Schedule& schedule,
                               const std::string& function);
absl::Status RewriteStreaming(schedule::Schedule& schedule,
                              const std::string& function);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_POSTPROCS_H_
