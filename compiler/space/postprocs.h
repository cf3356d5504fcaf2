// Postprocs: what finishes a candidate once its decisions are known. They
// append to the trace after `enter_postproc()`, so that a complete trace
// replays without them. In order:
//
//   rewrite_tensorize (layout)  the operands and registers of an intrinsic
//   rewrite_packing     panels as wide as the register tile
//   rewrite_parallel_vectorize_unroll
//   rewrite_reductions  initialisation before the first reduce loop
//   rewrite_tensorize   the intrinsic itself, in place of the loops
//
// Each does what is legal and leaves the rest: "does not apply" is no error.
#ifndef TILEFARM_COMPILER_SPACE_POSTPROCS_H_
#define TILEFARM_COMPILER_SPACE_POSTPROCS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

// Statements in a fully unrolled register tile: more do not fit the registers
// of any target and only make code.
inline constexpr int64_t kMaxTileStatements = 128;
// A unit-stride loop up to this extent is vectorised whole.
inline constexpr int64_t kMaxVectorExtent = 64;

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
absl::Status RewriteReductions(schedule::Schedule& schedule,
                               const std::string& function);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_POSTPROCS_H_
