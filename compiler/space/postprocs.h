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
#include "compiler/target/target.h"

namespace tilefarm::space {

// Statements in a fully unrolled register tile: more do not fit the registers
// of any target and only make code.
inline constexpr int64_t kMaxTileStatements = 128;
// A unit-stride loop up to this extent is vectorised whole.
inline constexpr int64_t kMaxVectorExtent = 64;

// How a buffer that is packed ahead of time lies in memory: its dimensions in
// this order.
struct PrepackDim {
  enum Part { kWhole, kPanel, kWithin };  // i; i // width; i % width
  int dim = 0;
  Part part = kWhole;
};
struct PrepackLayout {
  std::vector<PrepackDim> dims;
  int64_t width = 0;  // of a panel
};

// What decides it: a dimension of the buffer as the reader indexes it, ...
struct PrepackIndex {
  bool reduces = false;  // by a variable that is reduced over
  int last_iter = -1;    // the last of the reader's variables in it; -1: none
  int only_iter = -1;    // the variable that is the whole index; -1: none is
  int64_t extent = 1;
};
// ... and a loop around the reader, outermost first.
struct PrepackLoop {
  int64_t extent = 1;
  bool reduces = false;
  std::vector<int> iters;  // of the reader, whose bindings use it
};

// The order in which the reader's loops read: the dimensions that it does not
// reduce over; panels as wide as the register tile, which are cut from the
// dimension that the innermost loop in it walks; the dimensions reduced over,
// as its variables come; the place within a panel.
PrepackLayout LayOutAhead(const std::vector<PrepackIndex>& indices,
                          const std::vector<PrepackLoop>& loops);

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
