// The design space of GPUs: its rules, in order, and its postprocs.
//
//   split_reductions          as on CPUs
//   inline_for_threads        elementwise blocks into their consumers
//   chain_in_registers        attention: one pass over keys, in registers
//   chain_for_warps           attention and the like: one kernel, on tensor
//                             cores
//   chain_for_threads         the same without them
//   lay_out_operands          convolutions of narrow elements: channels last
//   split_reduction_over_blocks  an alternative for long ones with few outputs
//   tile_for_warpgroups       products on Hopper's matrix units
//   tile_for_warp_matrices    matrix products on tensor cores, padded;
//                             convolutions as such products
//   tile_for_threads          products: tiles of blocks, warps and lanes, with
//                             operands in shared memory and sums in registers
//   inline_for_threads        what remains, into the fetches
//   reduce_columns            sums over columns, which warps read side by side
//   reduce_across_threads     rows that the threads of a block share
//   stage_transposed          transpositions, through shared memory
//   reduce_in_threads         other reductions, with producers and consumer
//   bind_to_threads           everything else
//
// Each first alternative with the decisions that the rule gives to its samples
// is the default schedule; in the design space they are drawn anew.
#ifndef TILEFARM_COMPILER_SPACE_GPU_GPU_RULES_H_
#define TILEFARM_COMPILER_SPACE_GPU_GPU_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/sketch_rules.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

SketchRule ChainInRegisters, ChainForWarps, ChainForThreads, TileForWarpgroups,
    TileForWarpMatrices, InlineForThreads, LayOutOperands,
    SplitReductionOverBlocks, TileForThreads, ReduceColumns,
    ReduceAcrossThreads, StageTransposed, ReduceInThreads, BindToThreads;

// On a block that copies into shared memory: the threads fetch together, by
// vectors of at most this many elements.
inline constexpr char kCooperativeFetch[] = "meta_schedule.cooperative_fetch";
// This many outputs fill a GPU: 108 multiprocessors (A100) with 1024 threads
// each.
inline constexpr int64_t kManyOutputs = 108 * 1024;
// Fewer blocks leave multiprocessors idle: an A100 has 108, an H100 132.
inline constexpr int64_t kEnoughBlocks = 108;
// The threads of a block by default.
inline constexpr int64_t kDefaultThreads = 256;
// The most bytes that a thread loads or stores at once.
inline constexpr int64_t kVectorBytes = 16;
// What memory delivers at least for a load: 32 bytes, a sector.
inline constexpr int64_t kSectorBytes = 32;
// Of reductions that threads share. Shorter ones are not worth a warp; by
// default every thread adds at least 4 terms and what one load brings, up to
// kDefaultThreads, or all that a block can have where it has a multiprocessor
// for itself.
inline constexpr int64_t kMinSharedReduction = 32;
inline constexpr int64_t kTermsOfThread = 4;

// A sketch and how often it is drawn: the alternatives of a rule share alike
// what it was applied to, however many sketches each leads to.
struct GpuSketch {
  schedule::Schedule schedule;
  double share = 1;
};
// All sketches of the program, the default one first.
absl::StatusOr<std::vector<GpuSketch>> GenerateGpuSketches(
    const RuleContext& context, const ir::PrimFuncPtr& program,
    ir::FloatRule floats);

// The postprocs of GPUs, in order: sums of clusters, cooperative fetches,
// blocks without threads, initialisation of reductions, unrolling; then the
// limits are checked.
absl::Status FinishForGpu(schedule::Schedule& schedule,
                          const std::string& function,
                          const target::Target& target);
absl::Status RewriteCooperativeFetch(schedule::Schedule& schedule,
                                     const std::string& function);
// Binds every nest below the root that is not bound yet: spatial loops to
// blocks and threads where that is legal, else one thread runs it.
absl::Status RewriteUnboundBlocks(schedule::Schedule& schedule,
                                  const std::string& function,
                                  const target::Target& target);
absl::Status RewriteThreadReductions(schedule::Schedule& schedule,
                                     const std::string& function);
// Unrolls loops over registers, and annotates kernels with the unroll limit.
absl::Status RewriteThreadUnroll(schedule::Schedule& schedule,
                                 const std::string& function);

// The schedule without records.
absl::StatusOr<schedule::Schedule> DefaultGpuSchedule(
    const ir::IRModule& module, const target::Target& target,
    ir::FloatRule floats);

// --- Shared by rules and postprocs ---

// The most elements, up to 16 bytes, that may be accessed at once along the
// block's last variable: every access is contiguous and aligned, or does not
// depend on it; 1: none. `loads_only`: the store may be strided.
int64_t VectorWidth(const ir::BlockNode& block, bool loads_only = false);
// The same of what the block stores alone.
int64_t StoreWidth(const ir::BlockNode& block);
// The same of what a reduction reads along this variable, beside its sums.
int64_t TermWidth(const ir::BlockNode& block, const ir::IterVar& iter);
// The most elements, up to `wanted`, that a thread may access at once along the
// innermost loop of a block whose other loops threads divide: rows are whole
// vectors, and all begin at aligned addresses.
absl::StatusOr<int64_t> WidthInLoop(schedule::Schedule& schedule,
                                    schedule::BlockRv block,
                                    schedule::LoopRv innermost, int64_t wanted,
                                    bool loads_only = true);
// The loops as one, and bound to the axis. No loops: nothing is bound.
absl::StatusOr<std::vector<schedule::LoopRv>> FuseAndBind(
    schedule::Schedule& schedule, const std::vector<schedule::LoopRv>& loops,
    const char* axis);
// The largest power of two up to `most` that divides n.
int64_t PowerOf(int64_t n, int64_t most);
// The powers of two from `least`, which is one, to `most`.
std::vector<int64_t> PowersOfTwo(int64_t least, int64_t most);
// sample_categorical with equal probabilities; `first` is the default decision.
absl::StatusOr<schedule::ExprRv> SampleOne(schedule::Schedule& schedule,
                                           const std::vector<int64_t>& values,
                                           int64_t first);
// Up to how many steps loops of the function are unrolled, unless a rule has
// decided it.
absl::Status SampleUnroll(schedule::Schedule& schedule,
                          const std::string& function, int64_t first);
// The number of threads of a block: whole warps, up to the target's limit.
absl::StatusOr<schedule::ExprRv> SampleThreads(schedule::Schedule& schedule,
                                               const target::GpuLimits& limits);
// Decides how many copies there are of what the loop fetches, from 1 to `most`.
absl::Status SampleStages(schedule::Schedule& schedule,
                          schedule::LoopRv fetches, int64_t most,
                          int64_t first);
// Makes so many parts of a reduction, which its longest loop, or all of its
// loops as one, is divided into; the part is the first variable and the
// outermost loop of the new block, which is returned.
absl::StatusOr<schedule::BlockRv> SplitInParts(schedule::Schedule& schedule,
                                               schedule::BlockRv block,
                                               int64_t parts, bool all_terms);
// Where threads fetch an operand of a product.
struct ThreadFetch {
  schedule::LoopRv at;                        // over the terms of a fetch
  std::optional<schedule::LoopRv> fragments;  // into registers, too
  bool windows = false;                       // the terms are those of windows
};
// Copies the operand, a read of the block, into shared memory at the loop. An
// elementwise block that makes the operand becomes part of the copy.
absl::Status FetchForThreads(schedule::Schedule& schedule,
                             schedule::BlockRv block, int operand,
                             const ThreadFetch& fetch);
// The number of loops, from the outermost, that contain nothing but the next
// one or blocks below the last.
size_t PerfectLoops(schedule::Schedule& schedule,
                    const std::vector<schedule::LoopRv>& loops);
// Whether the block reads global memory alone. What copies the results of a
// tile is not inlined: another kernel would read the sums of its threads.
bool ReadsGlobalMemory(const ir::BlockNode& block);
// Whether it may be computed anew for each use: cheap, and of global memory.
bool IsCheapLoad(const ir::BlockNode& producer);
// Whether the block multiplies a matrix by a vector, or the like: each element
// of its largest operand is used once, so that no tile would reuse it.
bool IsMatrixVector(const ir::BlockNode& block);
// The read, beside those of its sums, of the most elements.
const ir::BufferRegion* LargestRead(const ir::BlockNode& block);
// Whether a thread would read a row of its own, while its neighbours read
// others: the elements that a warp reads at once are far apart. Operands with
// so few elements that this costs little do not count.
bool ReadsRows(const ir::BlockNode& block);
// Whether each variable of the block has one serial loop for itself.
absl::StatusOr<bool> HasPlainLoops(RuleSite& site);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_GPU_RULES_H_
