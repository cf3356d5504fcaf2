// What the runner must know of a program to make its inputs and call it. What
// it needs to judge outputs comes from the oracle.
#ifndef TILEFARM_WORKER_BUILDER_ANALYSIS_H_
#define TILEFARM_WORKER_BUILDER_ANALYSIS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// `function` is a program as written, not lowered.
//  - A parameter is written where a store to it stands anywhere, and read
//    where a load of it comes before every store to it in program order (a
//    block's init counts as before its body): a sum that starts from its
//    init is an output alone, `A[i] = A[i] * 2` works in place.
//  - An integer parameter that is used within an index is in bounds of every
//    dimension that it indexes.
// InvalidArgument where the function has more than kMaxBuffers parameters or
// a type that the runner does not know.
absl::StatusOr<ProgramSpec> AnalyzeProgram(const ir::PrimFunc& function);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_ANALYSIS_H_
