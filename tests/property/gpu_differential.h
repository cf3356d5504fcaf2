// Runs one program with schedules of a GPU and compares the results with those
// of differential.h: on the simulator (runtime/sim.c), in several orders of
// threads, on a device of OpenCL, or as PTX, which a driver without a GPU
// executes (tests/gpu/fake_cuda.h) unless TILEFARM_CUDA_DRIVER names another.
#ifndef TILEFARM_TESTS_PROPERTY_GPU_DIFFERENTIAL_H_
#define TILEFARM_TESTS_PROPERTY_GPU_DIFFERENTIAL_H_

#include <cstdint>
#include <string>

#include "tests/property/differential.h"
#include "tests/property/random_trace.h"

namespace tilefarm::property {

// The keys of CheckGpuCase's counts: the traces of each source that the
// schedule accepts, and those of them that compile and run.
inline constexpr char kRanDefault[] = "ran:default";
inline constexpr char kRanDraws[] = "ran:draw";
inline constexpr char kRanByHand[] = "ran:by hand";
// Followed by the reason.
inline constexpr char kRefusedDraws[] = "refused:draw: ";
inline constexpr char kRefusedByHand[] = "refused:by hand: ";

// A random program, `draws` points of the design space of its target and
// `by_hand` schedules of random_gpu_trace.h. Only the trace of a point has
// enter_postproc, which tells the two apart. An empty target: the simulator of
// a model that the seed chooses.
Case MakeGpuCase(uint64_t seed, int draws, int by_hand,
                 const std::string& target, PrimitiveCounts* counts);

// Runs the default schedule and the traces (rejected ones are skipped).
// Lowering may refuse a trace for a reason that its author can understand: a
// limit of the GPU, a barrier that some threads do not reach, a local buffer of
// several threads, a pipeline that the loop does not allow. Any other error, a
// race or divergence, a write outside of the parameters and a wrong result
// differ. Some cases of the simulator are also compiled to PTX. Whatever
// Oclgrind reports is an error, too. `counts` may be null. As CheckCase, call
// it in a child process.
CaseReport CheckGpuCase(const Case& c, PrimitiveCounts* counts);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_GPU_DIFFERENTIAL_H_
