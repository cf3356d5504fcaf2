// Derives what the runner must know about a program to make its inputs and to
// call it. Outputs are judged by what the oracle computes.
#ifndef TILEFARM_WORKER_BUILDER_ANALYSIS_H_
#define TILEFARM_WORKER_BUILDER_ANALYSIS_H_

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// `function` is a program as written, not lowered.
//  - A parameter is written if the function contains a store to it. It is read
//    if a load of it comes before every store to it in program order, where a
//    block's init comes before its body. A sum that starts from its init is
//    therefore only an output, and `A[i] = A[i] * 2` works in place.
//  - Values of an integer parameter that is used within an index are in bounds
//    of every dimension that it indexes.
// InvalidArgument: the function has more than kMaxBuffers parameters, or a type
// that the runner does not know.
absl::StatusOr<ProgramSpec> AnalyzeProgram(const ir::PrimFunc& function);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_ANALYSIS_H_
