// Sketch rules: each looks at one block of a partly scheduled program and
// returns alternatives to continue with. The list is explicit; order matters.
//
//   split_reductions       one reduction for each of several results
//   auto_inline            inlines elementwise producers into consumers;
//                          padding is copied, or skipped at the border
//   skip_zeros             drops the terms of sums that a guard makes zero
//   split_groups           two axes, group and place in it, where an operand
//                          has one element for each group
//   winograd               an alternative for 3x3 convolutions of stride 1, if
//                          the tolerance allows its rounding
//   online_softmax         an alternative for sums of exponentials that are
//                          memory-bound: one pass over the exponents
//   chain_products         an alternative for a product of rows that another
//                          product makes: tile by tile of rows
//   add_rfactor            an alternative for reductions with few outputs
//   multi_level_tiling_with_intrin  tiling for a dot-product instruction
//   widen_operands         copies of 16-bit operands, which lowering widens
//   multi_level_tiling     SSRSRS with write cache and packing; constants are
//                          packed ahead of time
//   tile_reduction         register tiles for reductions without reuse
//   tile_transposed        for reads along rows and writes along columns:
//                          square tiles, or whole registers of a row
//   follow_consumers       an alternative for chains: producers row by row
//   random_compute_location  moves other producers under their consumers
//   parallel_vectorize_unroll  annotates the root for the postprocs
#ifndef TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_
#define TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

struct RuleContext {
  std::string function;  // name of the one function
  target::Target target;
};

// A block that a rule looks at: the schedule as the rule finds it, and a copy
// to transform, whose trace has the call that finds the block.
struct RuleSite {
  schedule::Schedule unchanged, schedule;
  schedule::BlockRv block;
  ir::BlockPtr node;
};

// The alternatives for the block; none where the rule does not apply. A non-OK
// status is an internal error: rules check their preconditions before they
// transform.
using Alternatives = absl::StatusOr<std::vector<schedule::Schedule>>;
using SketchRule = Alternatives(const RuleContext&, RuleSite site);
inline Alternatives DoesNotApply() { return std::vector<schedule::Schedule>(); }

// The alternatives for block `name` of the schedule, which is the only one
// where the rule does not apply or there is no such block (any more).
Alternatives ApplyRule(SketchRule* rule, const RuleContext& context,
                       schedule::Schedule schedule, const std::string& name);
// Every way to apply the rule to the block in the states, up to kMaxSketches;
// `first_only`: the first way of each.
absl::Status ApplyRule(SketchRule* rule, const RuleContext& context,
                       const std::string& name, bool first_only,
                       std::vector<schedule::Schedule>& states);
inline constexpr size_t kMaxSketches = 64;
// Blocks that cannot all be explored: past this many, rules look at the first
// alternative of each only.
inline constexpr size_t kMaxBlocks = 64;

SketchRule SplitReductions, AutoInline, SkipZeros, SplitGroups, Winograd,
    OnlineSoftmax, ChainProducts, AddRfactor, MultiLevelTilingWithIntrin,
    WidenOperands, MultiLevelTiling, TileReduction, TileTransposed,
    FollowConsumers, RandomComputeLocation;
// Applies to the root only.
SketchRule ParallelVectorizeUnroll;

// Annotations that rules set for postprocs.
inline constexpr char kTilingStructure[] = "meta_schedule.tiling_structure";
// The tiling structure of tile_transposed: stores single elements, since the
// lanes of a vector would be strided on one side.
inline constexpr char kTransposedTiles[] = "SS";
// The tiling structure of a block whose last spatial tiles count vectors, not
// elements.
inline constexpr char kVectorTiles[] = "SSRSRSV";
// The structure of a block tiled for GPUs: blocks, warps and lanes of spatial
// loops; fetches below the first reduce loops; registers.
inline constexpr char kThreadTiles[] = "SSSRRSRS";
// Of a block tiled by warps of GPUs, for tensor cores or in a chain.
inline constexpr char kWarpTiles[] = "SSSSRRRS";
// On a block that copies a buffer to have another order of its dimensions: it
// stays a kernel of its own.
inline constexpr char kLaidOut[] = "tilefarm.laid_out";
// On a tiled block: the intrinsic that replaces its innermost loops.
inline constexpr char kAutoTensorize[] = "meta_schedule.auto_tensorize";
inline constexpr char kParallel[] = "meta_schedule.parallel";
inline constexpr char kVectorize[] = "meta_schedule.vectorize";
inline constexpr char kUnrollExplicit[] = "meta_schedule.unroll_explicit";
// On the root: use streaming stores for outputs (rewrite_streaming).
inline constexpr char kStream[] = "tilefarm.stream";
// On a block that copies an operand: pack it into panels of the consumer's
// innermost tile.
inline constexpr char kPack[] = "tilefarm.pack";

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The only consumer of the block if it is elementwise and can be computed tile
// by tile. Records the call that finds it.
absl::StatusOr<std::optional<schedule::BlockRv>> FusibleConsumer(
    schedule::Schedule& schedule, schedule::BlockRv block);

// Inlines the elementwise producers of the block for which `which` is true and
// inlining is legal.
absl::Status InlineProducers(schedule::Schedule& schedule,
                             schedule::BlockRv block,
                             bool (*which)(const ir::BlockNode& producer));
// The same of their producers, too. Returns the block as it is then.
absl::StatusOr<ir::BlockPtr> InlineAllProducers(
    schedule::Schedule& schedule, schedule::BlockRv block,
    bool (*which)(const ir::BlockNode& producer));

// Computes the block below the loop; false, and nothing is changed, if that is
// illegal or would compute anything twice. `padding`: iterations with those of
// tiles that the block's rows do not fill, over those without.
absl::StatusOr<bool> MoveWithoutRepeats(schedule::Schedule& schedule,
                                        schedule::BlockRv block,
                                        schedule::LoopRv loop,
                                        double padding = 1);

// Samples the tiles of the loop; the last one may have a guarded tail.
// `reduces`: no tails for short loops, which fit one level as a whole.
absl::StatusOr<std::vector<schedule::ExprRv>> SampleTiles(
    schedule::Schedule& schedule, schedule::LoopRv loop, int n,
    int max_innermost_factor, bool reduces = false);

// Samples two such tiles and splits the loop by them.
absl::StatusOr<std::vector<schedule::LoopRv>> SplitInTwo(
    schedule::Schedule& schedule, schedule::LoopRv loop,
    int max_innermost_factor);

// Computes partial results of a reduction (rfactor), whose loops are split in
// two: `inner`: one for each iteration of the inner half, in vector lanes; else
// of the outer one. Returns their block.
absl::StatusOr<schedule::BlockRv> FactorReduction(schedule::Schedule& schedule,
                                                  schedule::BlockRv block,
                                                  bool inner);

// The loops of a block in levels, outermost first: S S R S R S.
struct Tiles {
  static constexpr int kSpatialLevels = 4;
  static constexpr int kReduceLevels = 2;

  static int Levels(bool reduces) {
    return reduces ? kReduceLevels : kSpatialLevels;
  }
  // Samples the loop's tiles and splits it by them.
  absl::Status Sample(schedule::Schedule& schedule, schedule::LoopRv loop,
                      bool reduces);
  // Splits the loop by the factors, one for each level.
  absl::Status Split(schedule::Schedule& schedule, schedule::LoopRv loop,
                     bool reduces,
                     const std::vector<schedule::ExprRv>& factors);
  // Reorders the loops, with `inner` innermost.
  absl::Status Reorder(schedule::Schedule& schedule,
                       const std::vector<schedule::LoopRv>& inner = {}) const;

  std::vector<schedule::LoopRv> spatial[kSpatialLevels];
  std::vector<schedule::LoopRv> reduce[kReduceLevels];
};

// What is copied into panels of a product's tile: `operand` (a read; -1: none)
// may be, under the outer reduce loops; those in `ahead` always are, ahead of
// time.
struct Packing {
  int operand = -1;
  std::vector<int> ahead;
};
Packing FindPacking(const ir::PrimFunc& function, const ir::BlockNode& block);

// One way to tile a product.
struct TilingWay {
  Packing packing;
  bool pack = false;  // packing.operand
  // The spatial level below which tiles of the result are written by the
  // consumer or a copy; -1: the sums are made in their final place.
  int write_level = -1;
  bool fuse = false;      // the consumer is elementwise and writes
  bool in_place = false;  // there must be no copy, as a tile may have gaps
  // Copies of the result and of the operand that were made before.
  std::optional<schedule::BlockRv> writer = {}, copy = {};
};
using LoopTiling = std::function<absl::StatusOr<Tiles>(schedule::Schedule&,
                                                       schedule::BlockRv)>;
// Tiles the product in this way, its loops by `tile_loops`. An error if that
// does not apply; the schedule is then to be dropped.
absl::Status TileProduct(schedule::Schedule& schedule, schedule::BlockRv tiled,
                         const TilingWay& way, const LoopTiling& tile_loops);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_
