// Builds a shared object from the text of a candidate, or the oracle of a
// program.
#ifndef TILEFARM_WORKER_BUILDER_BUILD_H_
#define TILEFARM_WORKER_BUILDER_BUILD_H_

#include "worker/builder_protocol.h"

namespace tilefarm::worker {

// Parses the program, replays the trace, checks that the result is the program
// that the lease names, and compiles it. Failures are data in the reply:
// kInvalidSchedule for the trace, kCompileError for everything else. Calls from
// several threads do not run in parallel: code generation is serialised.
BuildReply Build(const BuildRequest& request);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_BUILD_H_
