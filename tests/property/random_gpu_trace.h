// Random schedules by hand for GPUs: nests tiled over blocks, virtual threads
// and threads, staging in shared and local memory with cooperative copies,
// reductions that threads share, and annotations of software pipelines. The
// schedule accepts them; lowering may refuse some.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_GPU_TRACE_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_GPU_TRACE_H_

#include "base/rng.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "tests/property/random_trace.h"

namespace tilefarm::property {

// Every nest below the root has a bound loop.
schedule::Schedule RandomGpuSchedule(const ir::PrimFuncPtr& program,
                                     const target::Target& target, Rng& rng,
                                     PrimitiveCounts* counts);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_GPU_TRACE_H_
