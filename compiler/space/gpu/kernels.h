// The kernels of a scheduled program and what they need of a GPU. A nest below
// the root with loops that are bound to blocks or threads is one kernel.
#ifndef TILEFARM_COMPILER_SPACE_GPU_KERNELS_H_
#define TILEFARM_COMPILER_SPACE_GPU_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/gpu.h"

namespace tilefarm::space {

// Registers of a thread besides its "local" buffers: addresses, loop variables,
// operands on their way. ptxas needs 30 to 60 beside the accumulators of a
// matrix product.
inline constexpr int64_t kOtherRegisters = 48;

// The 4-byte registers that a thread has for "local" buffers, in a block of
// this many threads.
int64_t LocalRegisters(const target::GpuLimits& limits, int64_t threads);
// Likewise of a block with one more warp, which lets the copy engine fetch: the
// threads have no operands on their way.
inline constexpr int64_t kOtherConsumerRegisters = 32;
int64_t ConsumerRegisters(const target::GpuLimits& limits, int64_t threads);

// FailedPrecondition naming a block and the exceeded limit if a kernel has more
// threads, shared memory or local memory than the GPU has, or if a block is in
// no bound loop.
absl::Status CheckKernels(const ir::PrimFunc& function,
                          const target::GpuLimits& limits);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_KERNELS_H_
