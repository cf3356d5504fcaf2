// Postprocs complete a candidate once its decisions are known. They append to
// the trace after `enter_postproc()`, so that a complete trace replays without
// them. In order:
//
//   rewrite_tensorize (layout)  layouts for an intrinsic, its register tile
//   rewrite_packing     panels as wide as the register tile
//   rewrite_parallel_vectorize_unroll
//   rewrite_prefetch    prefetches the next rows of large operands
//   rewrite_reductions  initialisation before the first reduce loop
//   rewrite_streaming   streaming stores for outputs
//   rewrite_tensorize   replaces the loops by the intrinsic
//
// Each applies what is legal: a step that does not apply is no error.
#ifndef TILEFARM_COMPILER_SPACE_POSTPROCS_H_
#define TILEFARM_COMPILER_SPACE_POSTPROCS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/panels.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

using Postproc = absl::Status(schedule::Schedule& schedule,
                              const std::string& function);

// The loops around a block, for the rules of loop_rules.h, and their trace
// variables.
struct BlockLoops {
  std::vector<LoopView> views;
  std::vector<schedule::LoopRv> rvs;

  size_t size() const { return views.size(); }
  const LoopView& operator[](size_t i) const { return views[i]; }
};
absl::StatusOr<BlockLoops> ViewLoops(schedule::Schedule& schedule,
                                     schedule::BlockRv block);

// The same for the block of this name, without recording calls.
absl::StatusOr<std::vector<LoopView>> LoopsAround(schedule::Schedule schedule,
                                                  const std::string& function,
                                                  const ir::BlockNode& block);

// The dimension of `buffer` that the block indexes with just `var` when it
// reads; -1: there is none.
int DimIndexedBy(const ir::BlockNode& reader, const ir::BufferNode* buffer,
                 const ir::VarNode* var);

// How the block indexes each dimension of `buffer` when it reads.
std::vector<ReadIndex> ReadIndices(const ir::BlockNode& reader,
                                   const ir::BufferNode* buffer);

// The first block in program order that reads `buffer`; null if none does.
ir::BlockPtr FindReader(const ir::PrimFunc& function,
                        const ir::BufferNode* buffer);

// rewrite_packing for buffers that are packed ahead of time.
absl::Status RewritePrepacking(schedule::Schedule& schedule,
                               const std::string& function,
                               const ir::BlockNode& copy);
// The number of innermost loops of a block that its intrinsic replaces; 0 if
// the block has no intrinsic.
size_t IntrinsicLoops(const ir::BlockNode& block);
// Whether each block to be tensorized is alone in the loops that its intrinsic
// replaces and has no producer inlined.
bool IntrinsicsFit(schedule::Schedule schedule);
// For blocks to be tensorized: gives their packed operand the layout that the
// intrinsic reads, and unrolls the register tile.
Postproc RewriteTensorizeLayout;
// FailedPrecondition if a block to be tensorized cannot be.
Postproc RewriteTensorize;
Postproc RewritePacking, RewriteReductions, RewriteStreaming;
absl::Status RewriteParallelVectorizeUnroll(schedule::Schedule& schedule,
                                            const std::string& function,
                                            const target::Target& target);
absl::Status RewritePrefetch(schedule::Schedule& schedule,
                             const std::string& function,
                             const target::Target& target);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_POSTPROCS_H_
