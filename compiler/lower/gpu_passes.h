// The passes that only GPUs need, each in the file of the same name; passes.h
// has those that they share with CPUs, and the names of the forms.
//
// Until MapThreads, loops that are bound to threads are loops: running them one
// after another gives the program's result. Afterwards a kernel is a nest of
// bound loops, one for each axis, around the code of one thread; threads run at
// the same time, and only barriers order them.
#ifndef TILEFARM_COMPILER_LOWER_GPU_PASSES_H_
#define TILEFARM_COMPILER_LOWER_GPU_PASSES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// Block form. Parallel loops become serial; virtual threads become unrolled
// loops around the single blocks that use them, inside of all other loops:
// blocks that do not use them run once. Vectorized loops that need an order
// (NeedsOrder) become serial. InvalidArgument if a nest below the
// root has no bound loop, or a bound loop no constant extent.
absl::StatusOr<ir::Stmt> LegalizeThreads(const ir::PrimFunc& function);

// Block form, around PlaceAllocations. Removes conditions that only keep a
// block from elements of a thread's own buffer that do not exist, such as i * 4
// + j < 197 for sums in registers: it reads nothing but memory of the thread
// and its block, and nobody reads what else it writes. Such buffers may grow.
// The first marks the conditions, by the shapes of tensors; the second removes
// them, where memory has room.
ir::Stmt MarkPrivateGuards(const ir::Stmt& stmt);
ir::Stmt RemovePrivateGuards(const ir::Stmt& stmt);

// Plain form. A loop of threads that all update one element, B[i] = B[i] op x,
// combines a partial result of each: by shuffles within a warp, where the
// target has them, then through shared memory. InvalidArgument if its body has
// anything but such an update. Buffers that are allocated around kernels get
// the scope "global".
absl::StatusOr<ir::Stmt> LowerThreadReductions(const ir::Stmt& stmt,
                                               const target::GpuLimits& limits);

// Plain form. Makes each statement below the root a kernel: all loops of one
// axis become the axis's loop around the kernel, with conditions where it has
// more iterations. What no loop of threads surrounds is stored by the first
// thread alone. Each allocation in a kernel gets the scope "shared" or "local".
// A buffer without a scope that becomes shared has a copy for each thread of
// the loops around it. InvalidArgument if a kernel exceeds the target's limits,
// threads would share a local buffer, or blocks would share a buffer.
absl::StatusOr<ir::Stmt> MapThreads(const ir::Stmt& root,
                                    const target::GpuLimits& limits);

// Plain form, after MapThreads. Kernels whose loop of threadIdx.x has
// ir::kRowQuads get four threads for each of its iterations, which divide the
// columns of local buffers. InvalidArgument if a statement uses columns in
// another way than one by one, in products of tensor cores, or in sums,
// products, minima and maxima over all of them.
absl::StatusOr<ir::Stmt> SpreadOverQuads(const ir::Stmt& root,
                                         const target::GpuLimits& limits);

// Plain form. Sums in registers that are scaled before a part of them is added
// take the part's terms themselves.
ir::Stmt SumInPlace(const ir::Stmt& root);

// Plain form, after MapThreads. Kernels with a loop annotated by
// ir::kWarpgroupStages multiply with the matrix units of warpgroups and fetch
// with the copy engine: InvalidArgument if such a loop is not what these can
// do.
absl::StatusOr<ir::Stmt> LowerWarpgroups(const ir::Stmt& stmt,
                                         const target::GpuLimits& limits);

// Plain form, after MapThreads. Overlaps the iterations of loops annotated for
// it (ir::kPipelineStage), as far as the statements' accesses allow it.
// InvalidArgument otherwise.
absl::StatusOr<ir::Stmt> PipelineLoops(const ir::Stmt& stmt,
                                       const target::GpuLimits& limits);

// Plain form. Marks loops over elements of local buffers as unrolled, so that
// these become registers.
ir::Stmt UnrollRegisters(const ir::Stmt& stmt);

// Plain form, after MapThreads. Puts a barrier between accesses of different
// threads to the same element, one of which writes it; of the cluster if they
// may be of different blocks. InvalidArgument if that
// is where not all threads arrive, if threads update a shared element, or if a
// block may read elements that another block of the kernel writes.
absl::StatusOr<ir::Stmt> InsertBarriers(const ir::Stmt& stmt);

// Lowered form, last. Buffers of the scope "shared.cluster" become the part
// that each block has, and loads from other blocks ir::MachineOp::kClusterLoad.
// InvalidArgument if lanes of one load are of different blocks.
absl::StatusOr<ir::Stmt> LowerClusters(const ir::Stmt& stmt);

// Allocates what the threads of a block share around the kernel's code, once.
ir::Stmt HoistShared(const ir::Stmt& stmt);

// Lowered form, before unrolling. Replaces nests that are annotated for it
// (ir::kWarpMatrix) by matrix products of warps. InvalidArgument if a nest does
// not have the form that the annotation asks for, or the target no such unit.
absl::StatusOr<ir::Stmt> LowerWarpMatrices(const ir::Stmt& stmt,
                                           const target::GpuLimits& limits);

// Whether the statement has a barrier, of the block or of its cluster.
bool HasBarrier(const ir::Stmt& stmt);

// Whether the loop is bound to threads of a block: not to blocks, and not to
// virtual threads.
bool IsThreadLoop(const ir::ForNode& loop);

// The operation, which has no value, as a statement.
ir::Stmt Effect(ir::Expr op);
ir::Stmt Effect(ir::MachineOp op, std::vector<ir::Expr> args);

// The most stages of a pipeline. More are of no use: a block has memory for
// fewer.
inline constexpr int64_t kMostStages = 16;

// The iterations of one axis of a kernel.
struct KernelAxis {
  ir::ThreadAxis axis;
  ir::Var var;
  int64_t extent;
};

// The code of one thread.
struct Kernel {
  std::vector<KernelAxis> axes;
  ir::Stmt body;
  // Parameters and workspaces that it uses, in the order of first use.
  std::vector<ir::Buffer> buffers;
  // Tensors whose boxes it copies.
  std::vector<ir::TensorMap> maps;
  // Where each shared buffer begins, in bytes.
  std::vector<std::pair<ir::Buffer, int64_t>> shared;
  int64_t shared_bytes = 0;
  // Those of a cluster, along x.
  int64_t cluster_blocks = 1;
  // ir::kResidentBlocks; 0: the assembler decides.
  int64_t resident_blocks = 0;
};

// A function as its kernels, in order, and the buffers between them.
struct KernelSequence {
  std::vector<ir::Buffer> workspaces;
  std::vector<Kernel> kernels;
};

// Of a function in lowered form for a GPU. InvalidArgument if a kernel's shared
// buffers exceed the limits, or a loop surrounds kernels.
absl::StatusOr<KernelSequence> SplitKernels(const ir::PrimFunc& function,
                                            const target::GpuLimits& limits);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_GPU_PASSES_H_
