// A program under transformation. Every call appends to the trace; an illegal
// one is FailedPrecondition (primitive, block, loop, reason), an ill-formed
// one InvalidArgument; both leave the schedule as it was. A value type: copies
// share the immutable IR. Not thread-safe.
//
// Names, block order and loop counts that a primitive makes are TVM's.
#ifndef TILEFARM_COMPILER_SCHEDULE_SCHEDULE_H_
#define TILEFARM_COMPILER_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

class ScheduleState;  // schedule_state.h: what primitives work on

// A tiling factor: an integer, a sampled variable, or nullopt (inferred).
using Factor = std::optional<std::variant<int64_t, ExprRv>>;
// An annotation value: a constant or a sampled variable.
using AnnValue = std::variant<ir::Attr, ExprRv>;
using BlockOrLoop = std::variant<BlockRv, LoopRv>;

class Schedule {
 public:
  // `seed` drives the sample_* calls that get no decision.
  explicit Schedule(ir::IRModule module, uint64_t seed = 0);
  Schedule(const Schedule&);
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(const Schedule&);
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule();

  ir::IRModule module() const;
  const Trace& trace() const;
  // What a variable now stands for.
  absl::StatusOr<ir::BlockPtr> Get(BlockRv block) const;
  absl::StatusOr<ir::ForPtr> Get(LoopRv loop) const;
  absl::StatusOr<int64_t> Get(ExprRv value) const;

  // --- Looking up ---
  absl::StatusOr<BlockRv> GetBlock(std::string_view name,
                                   std::string_view func_name = "main");
  absl::StatusOr<std::vector<LoopRv>> GetLoops(BlockRv block);
  absl::StatusOr<std::vector<BlockRv>> GetProducers(BlockRv block);
  absl::StatusOr<std::vector<BlockRv>> GetConsumers(BlockRv block);
  absl::StatusOr<std::vector<BlockRv>> GetChildBlocks(BlockOrLoop scope);

  // --- Sampling ---
  absl::StatusOr<std::vector<ExprRv>> SamplePerfectTile(
      LoopRv loop, int n, int max_innermost_factor,
      std::optional<std::vector<int64_t>> decision = std::nullopt);
  // As above but the product may exceed the extent; the split guards the tail.
  absl::StatusOr<std::vector<ExprRv>> SampleTile(
      LoopRv loop, int n, int max_innermost_factor,
      std::optional<std::vector<int64_t>> decision = std::nullopt);
  // `decision` is an index into candidates.
  absl::StatusOr<ExprRv> SampleCategorical(
      std::vector<int64_t> candidates, std::vector<double> probs,
      std::optional<int64_t> decision = std::nullopt);
  // -1: root (compute_at does nothing), -2: inline, else a loop index.
  absl::StatusOr<LoopRv> SampleComputeLocation(
      BlockRv block, std::optional<int64_t> decision = std::nullopt);

  // --- Loops ---
  absl::StatusOr<std::vector<LoopRv>> Split(LoopRv loop,
                                            std::vector<Factor> factors,
                                            bool preserve_unit_iters = true,
                                            bool disable_predication = false);
  absl::StatusOr<LoopRv> Fuse(std::vector<LoopRv> loops,
                              bool preserve_unit_iters = true);
  absl::Status Reorder(std::vector<LoopRv> ordered_loops);
  absl::StatusOr<LoopRv> AddUnitLoop(BlockOrLoop where);
  absl::Status Parallel(LoopRv loop);
  absl::Status Vectorize(LoopRv loop);
  absl::Status Unroll(LoopRv loop);
  absl::Status Bind(LoopRv loop, std::string thread_axis);

  // --- Where a block is computed ---
  absl::Status ComputeAt(BlockRv block, LoopRv loop,
                         bool preserve_unit_loops = false, int index = -1);
  absl::Status ReverseComputeAt(BlockRv block, LoopRv loop,
                                bool preserve_unit_loops = false,
                                int index = -1);
  absl::Status ComputeInline(BlockRv block);
  absl::Status ReverseComputeInline(BlockRv block);

  // --- Memory ---
  absl::StatusOr<BlockRv> CacheRead(BlockRv block, int read_buffer_index,
                                    std::string storage_scope);
  absl::StatusOr<BlockRv> CacheWrite(BlockRv block, int write_buffer_index,
                                     std::string storage_scope);
  // `read`: of the reads or the writes of the block.
  absl::StatusOr<BlockRv> Reindex(BlockRv block, bool read, int buffer_index);
  absl::Status SetScope(BlockRv block, int buffer_index, std::string scope);
  absl::Status StorageAlign(BlockRv block, int buffer_index, int axis,
                            int factor, int offset);
  // `index_map` in TVM's lambda syntax: "lambda i, j: (i // 16, j, i % 16)".
  absl::Status TransformLayout(BlockRv block, bool read, int buffer_index,
                               std::string index_map);

  // --- Reductions ---
  absl::StatusOr<BlockRv> DecomposeReduction(BlockRv block, LoopRv loop);
  absl::StatusOr<BlockRv> Rfactor(LoopRv loop, int factor_axis);
  // Iterations whose term is a guard's zero, by a remainder, are left out of a
  // sum; for finite factors the result is the same.
  absl::Status SkipZeros(BlockRv block);
  // A 3x3 convolution of stride 1 in float32 by Winograd's algorithm, `tile` (2
  // or 4) outputs a dimension at a time. Rounds differently: the bound stands
  // in winograd_transforms.h. Returns the blocks that make, in this order, the
  // transformed kernel, the tiles of the data, their transform along rows and
  // along both dimensions, the sums of products, and the inverse transform
  // along rows; `block` finishes it.
  absl::StatusOr<std::vector<BlockRv>> Winograd(BlockRv block, int tile);
  // A sum of exp(x - largest) and the block of the largest x, by chunks of
  // `chunk` terms that are each relative to their own largest ones, in `lanes`
  // partial results side by side: one pass over x. Rounds differently: the
  // bound stands in online_softmax.cc. Returns the blocks of the partial
  // maxima and of the partial sums.
  absl::StatusOr<std::vector<BlockRv>> OnlineSoftmax(BlockRv block,
                                                     int64_t chunk,
                                                     int64_t lanes);

  // A sum runs over multiples of `padding`, one number for each variable of the
  // block, on copies that zeros fill up, and is copied back.
  absl::Status PadEinsum(BlockRv block, std::vector<int64_t> padding);

  // --- Tensorization ---
  absl::StatusOr<BlockRv> Blockize(LoopRv loop);
  // Replaces the computation by an intrinsic of schedule/tensor_intrin.h.
  absl::Status Tensorize(BlockOrLoop where, std::string intrinsic);
  // The block, a matrix product below the root with its plain loops, is
  // computed by a kernel of ir/library_call.h: "openblas.sgemm".
  absl::Status CallLibrary(BlockRv block, std::string kernel);

  // --- Annotations ---
  absl::Status Annotate(BlockOrLoop where, std::string key, AnnValue value);
  absl::Status Unannotate(BlockOrLoop where, std::string key);
  absl::Status EnterPostproc();

 private:
  friend class Replayer;
  std::unique_ptr<ScheduleState> state_;
};

// Applies a trace to a module. Decisions that are absent are sampled with
// `seed`; ones that do not fit are FailedPrecondition: replay never repairs.
// Names the instruction's number and text in errors.
absl::StatusOr<Schedule> Replay(const Trace& trace, ir::IRModule module,
                                uint64_t seed = 0);

// The same in parts: where many traces begin alike, a copy of what has replayed
// their beginning goes on with the rest of each.
//
//   PartialReplay start(module);
//   start.Advance(trace, 10);            // instructions 1 to 10
//   PartialReplay rest = start;
//   rest.Advance(other, other.instructions.size());
//
// Copies may go on in different threads, but the original must rest meanwhile.
class PartialReplay {
 public:
  explicit PartialReplay(ir::IRModule module, uint64_t seed = 0)
      : schedule_(std::move(module), seed) {}

  // Applies the instructions of the trace from the last one applied on, up to
  // number `end`. After an error it is of no further use.
  absl::Status Advance(const Trace& trace, size_t end);
  const Schedule& schedule() const { return schedule_; }
  // The schedule's variables, by those of the trace; -1: none yet.
  const std::vector<int>& ids() const { return ids_; }
  Schedule Take() && { return std::move(schedule_); }

 private:
  Schedule schedule_;
  std::vector<int> ids_;
  size_t next_ = 0;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SCHEDULE_H_
