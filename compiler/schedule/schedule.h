// A program under transformation. Every call appends to the trace. An illegal
// call returns FailedPrecondition (primitive, block, loop, reason), an
// ill-formed one InvalidArgument; both leave the schedule unchanged. A value
// type: copies share the immutable IR. Not thread-safe.
//
// Names, block order and loop counts that a primitive makes are those of TVM.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

class ScheduleState;  // schedule_state.h: what primitives work on

// An integer or a sampled variable.
using Number = std::variant<int64_t, ExprRv>;
// A tiling factor; nullopt: inferred.
using Factor = std::optional<Number>;
// An annotation value: a constant or a sampled variable.
using AnnValue = std::variant<ir::Attr, ExprRv>;

class Schedule {
 public:
  // `seed` drives the sample_* calls that get no decision. What `floats` rules
  // out is illegal.
  explicit Schedule(ir::IRModule module, uint64_t seed = 0,
                    ir::FloatRule floats = ir::FloatRule::kMayDiffer);
  Schedule(const Schedule&);
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(const Schedule&);
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule();

  ir::IRModule module() const;
  const Trace& trace() const;
  // The block, loop or value that a variable stands for now.
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
  // As above, but the product may exceed the extent; the split guards the tail.
  absl::StatusOr<std::vector<ExprRv>> SampleTile(
      LoopRv loop, int n, int max_innermost_factor,
      std::optional<std::vector<int64_t>> decision = std::nullopt);
  // `decision` is an index into candidates.
  absl::StatusOr<ExprRv> SampleCategorical(
      std::vector<int64_t> candidates, std::vector<double> probs,
      std::optional<int64_t> decision = std::nullopt);
  // -1: at the root (compute_at does nothing), -2: inline, else a loop index.
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
  // Only `consumer_blocks` read the copy; all readers in the scope if empty.
  absl::StatusOr<BlockRv> CacheRead(BlockRv block, int read_buffer_index,
                                    std::string storage_scope,
                                    std::vector<BlockRv> consumer_blocks = {});
  // `consumer_blocks` read what was written before it is copied.
  absl::StatusOr<BlockRv> CacheWrite(BlockRv block, int write_buffer_index,
                                     std::string storage_scope,
                                     std::vector<BlockRv> consumer_blocks = {});
  // `read` selects the reads or the writes of the block.
  absl::StatusOr<BlockRv> Reindex(BlockRv block, bool read, int buffer_index);
  absl::Status SetScope(BlockRv block, int buffer_index, std::string scope);
  absl::Status StorageAlign(BlockRv block, int buffer_index, int axis,
                            int factor, int offset);
  // `index_map` uses TVM's lambda syntax: "lambda i, j: (i // 16, j, i % 16)".
  absl::Status TransformLayout(BlockRv block, bool read, int buffer_index,
                               std::string index_map);
  // The block runs over the outputs of `index_map`, which takes its variables.
  absl::Status TransformBlockLayout(BlockRv block, std::string index_map);

  // --- Reductions ---
  absl::StatusOr<BlockRv> DecomposeReduction(BlockRv block, LoopRv loop);
  absl::StatusOr<BlockRv> Rfactor(LoopRv loop, int factor_axis);
  // Makes a block for each of the independent statements of the block, in their
  // order; each gets its own loops.
  absl::StatusOr<std::vector<BlockRv>> Fission(BlockRv block);
  // Leaves out the iterations of a sum whose term is zero because of a guard on
  // a remainder. For finite factors the result is the same.
  absl::Status SkipZeros(BlockRv block);
  // Computes a 3x3 convolution of stride 1 in float32 by Winograd's algorithm,
  // with `tile` (2 or 4) outputs in each dimension. The rounding differs;
  // winograd_transforms.h gives the bound. Returns the blocks for, in this
  // order, the transformed kernel, the data tiles, their transform along rows,
  // then along both dimensions, the sums of products, and the inverse transform
  // along rows; `block` becomes the last step.
  absl::StatusOr<std::vector<BlockRv>> Winograd(BlockRv block, int tile);
  // Computes a sum of exp(x - largest) and the largest x in one pass over x, by
  // chunks of `chunk` terms, each relative to the maximum of its partial
  // result, in `lanes` parallel partial results. The rounding differs;
  // online_softmax.cc gives the bound. Returns the blocks of the partial maxima
  // and the partial sums.
  absl::StatusOr<std::vector<BlockRv>> OnlineSoftmax(BlockRv block,
                                                     int64_t chunk,
                                                     int64_t lanes);
  // A product with a softmax (attention): both and what makes the exponents
  // below common loops, over tiles of `tile` rows, `apart` rows from each
  // other, and chunks of `chunk` terms, relative to the maximum of the terms so
  // far; whole tiles and chunks only. The rounding differs; online_product.cc
  // gives the bound and the blocks, which it returns in their order: that of
  // the scores (if a block makes them), part and whole of the maximum, the
  // exponentials, part and whole of the sum, the product's operand, part and
  // whole of the product, and the result.
  absl::StatusOr<std::vector<BlockRv>> OnlineProduct(BlockRv block, Number tile,
                                                     int64_t apart,
                                                     Number chunk);

  // Rounds the extents of a sum up to multiples of `padding` (one number for
  // each variable), using zero-padded copies, and copies the result back.
  absl::Status PadEinsum(BlockRv block, std::vector<int64_t> padding);
  // The same of a product with a softmax and of what makes its exponents, whose
  // own reduced variable is rounded up to a multiple of `depth`.
  absl::Status PadSoftmax(BlockRv block, std::vector<int64_t> padding,
                          int64_t depth);

  // --- Tensorization ---
  absl::StatusOr<BlockRv> Blockize(LoopRv loop);
  // Replaces the computation by an intrinsic of schedule/tensor_intrin.h.
  absl::Status Tensorize(BlockOrLoop where, std::string intrinsic);
  // Lets a kernel of ir/library_call.h, such as "openblas.sgemm", compute the
  // block, a matrix product below the root with its plain loops.
  absl::Status CallLibrary(BlockRv block, std::string kernel);

  // --- Annotations ---
  absl::Status Annotate(BlockOrLoop where, std::string key, AnnValue value);
  absl::Status Unannotate(BlockOrLoop where, std::string key);
  absl::Status EnterPostproc();

 private:
  friend class Replayer;
  std::unique_ptr<ScheduleState> state_;
};

// Applies a trace to a module. Missing decisions are sampled with `seed`;
// decisions that do not fit are FailedPrecondition: replay never repairs them.
// Errors name the number and text of the instruction.
absl::StatusOr<Schedule> Replay(const Trace& trace, ir::IRModule module,
                                uint64_t seed = 0,
                                ir::FloatRule = ir::FloatRule::kMayDiffer);

// Replay in parts: many traces may share a beginning, which is replayed once; a
// copy of the result continues with the rest of each trace.
//
//   PartialReplay start(module);
//   start.Advance(trace, 10);            // instructions 1 to 10
//   PartialReplay rest = start;
//   rest.Advance(other, other.instructions.size());
//
// Copies may continue in different threads while the original does not change.
class PartialReplay {
 public:
  explicit PartialReplay(ir::IRModule module, uint64_t seed = 0,
                         ir::FloatRule floats = ir::FloatRule::kMayDiffer)
      : schedule_(std::move(module), seed, floats) {}

  // Applies the instructions of the trace after the last one applied, up to
  // number `end`. After an error the object must not be used again.
  absl::Status Advance(const Trace& trace, size_t end);
  // The same, but whether iterations of concurrent loops are independent is
  // checked after the last instruction alone, not after each: for candidates of
  // which most are only looked at.
  absl::Status AdvanceAtOnce(const Trace& trace, size_t end);
  const Schedule& schedule() const { return schedule_; }
  // The schedule's variables, indexed by those of the trace; -1: none yet.
  const std::vector<int>& ids() const { return ids_; }
  Schedule Take() && { return std::move(schedule_); }

 private:
  Schedule schedule_;
  std::vector<int> ids_;
  size_t next_ = 0;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SCHEDULE_H_
