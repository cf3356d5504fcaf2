// One candidate, or one oracle, from text to shared object.
#ifndef TILEFARM_WORKER_BUILDER_BUILD_H_
#define TILEFARM_WORKER_BUILDER_BUILD_H_

#include "worker/builder_protocol.h"

namespace tilefarm::worker {

// Parses, replays the trace, checks that it made the program which the lease
// names, compiles. Whatever fails is data in the reply: kInvalidSchedule for
// the trace, kCompileError for everything else. Not thread-safe in effect:
// code generation is serialised.
BuildReply Build(const BuildRequest& request);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_BUILDER_BUILD_H_
