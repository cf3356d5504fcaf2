// Sketch rules: each looks at one block of a partly scheduled program and
// answers with the ways to go on. The list of rules is explicit; order matters.
//
//   auto_inline            elementwise producers vanish into their consumers;
//                          padding is copied, or skipped at the border
//   skip_zeros             sums leave out the terms that a guard makes zero
//   winograd               a second way for 3x3 convolutions of stride 1, where
//                          the tolerance allows its rounding
//   online_softmax         a second way for sums of exponentials that come from
//                          memory: one pass over the exponents
//   add_rfactor            a second way for reductions with few outputs
//   multi_level_tiling_with_intrin  the same around a dot-product instruction
//   widen_operands         copies of 16-bit operands, which lowering widens
//   multi_level_tiling     SSRSRS with write cache and packing, of constants
//                          ahead of time
//   tile_reduction         register tiles for reductions without reuse
//   tile_transposed        where rows are read and columns written: square
//                          tiles, or whole registers of a row
//   follow_consumers       a second way for chains: producers row by row
//   random_compute_location  other producers move under their consumers
//   parallel_vectorize_unroll  marks the root for the postprocs
#ifndef TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_
#define TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

struct RuleContext {
  std::string function;  // name of the one function
  target::Target target;
};

// The alternatives after looking at block `name`; the schedule itself,
// unchanged, where the rule does not apply. A non-OK status is our bug: rules
// check before they act.
using Alternatives = absl::StatusOr<std::vector<schedule::Schedule>>;
using SketchRule = Alternatives (*)(const RuleContext&, schedule::Schedule,
                                    const std::string& name);

Alternatives AutoInline(const RuleContext&, schedule::Schedule,
                        const std::string& name);
Alternatives SkipZeros(const RuleContext&, schedule::Schedule,
                       const std::string& name);
Alternatives Winograd(const RuleContext&, schedule::Schedule,
                      const std::string& name);
Alternatives OnlineSoftmax(const RuleContext&, schedule::Schedule,
                           const std::string& name);
Alternatives AddRfactor(const RuleContext&, schedule::Schedule,
                        const std::string& name);
Alternatives MultiLevelTilingWithIntrin(const RuleContext&, schedule::Schedule,
                                        const std::string& name);
Alternatives WidenOperands(const RuleContext&, schedule::Schedule,
                           const std::string& name);
Alternatives MultiLevelTiling(const RuleContext&, schedule::Schedule,
                              const std::string& name);
Alternatives TileReduction(const RuleContext&, schedule::Schedule,
                           const std::string& name);
Alternatives TileTransposed(const RuleContext&, schedule::Schedule,
                            const std::string& name);
Alternatives FollowConsumers(const RuleContext&, schedule::Schedule,
                             const std::string& name);
Alternatives RandomComputeLocation(const RuleContext&, schedule::Schedule,
                                   const std::string& name);
// Acts on the root alone.
Alternatives ParallelVectorizeUnroll(const RuleContext&, schedule::Schedule,
                                     const std::string& name);

// Annotations by which rules speak to postprocs.
inline constexpr char kTilingStructure[] = "meta_schedule.tiling_structure";
// The tiling structure of tile_transposed: elements one by one, since lanes
// would be apart on one side.
inline constexpr char kTransposedTiles[] = "SS";
// The tiling structure of a block whose last spatial tiles count vectors, not
// elements.
inline constexpr char kVectorTiles[] = "SSRSRSV";
// On a tiled block: the intrinsic that its two innermost loops become.
inline constexpr char kAutoTensorize[] = "meta_schedule.auto_tensorize";
inline constexpr char kParallel[] = "meta_schedule.parallel";
inline constexpr char kVectorize[] = "meta_schedule.vectorize";
inline constexpr char kUnrollExplicit[] = "meta_schedule.unroll_explicit";
// On the root: outputs go around the caches (rewrite_streaming).
inline constexpr char kStream[] = "tilefarm.stream";
// On a block that copies an operand: pack it in panels of the consumer's
// innermost tile.
inline constexpr char kPack[] = "tilefarm.pack";

// The one consumer of the block, if it is elementwise and may be computed tile
// by tile. Traces the call that finds it.
absl::StatusOr<std::optional<schedule::BlockRv>> FusibleConsumer(
    schedule::Schedule& schedule, schedule::BlockRv block);

// How to draw the tiles of a loop of this extent: as divisors where there are
// enough of them, else with a guarded tail; `reduces`: no tails where a loop is
// short, since all of it fits a level.
absl::StatusOr<std::vector<schedule::ExprRv>> SampleTiles(
    schedule::Schedule& schedule, schedule::LoopRv loop, int n,
    int max_innermost_factor, bool reduces = false);

// The loops of a block in levels, outermost first: S S R S R S.
struct Tiles {
  static constexpr int kSpatialLevels = 4;
  static constexpr int kReduceLevels = 2;

  static int Levels(bool reduces) {
    return reduces ? kReduceLevels : kSpatialLevels;
  }
  // Splits the loop by the factors, one a level.
  absl::Status Split(schedule::Schedule& schedule, schedule::LoopRv loop,
                     bool reduces,
                     const std::vector<schedule::ExprRv>& factors);
  // Orders them, `inner` innermost.
  absl::Status Reorder(schedule::Schedule& schedule,
                       const std::vector<schedule::LoopRv>& inner = {}) const;

  std::vector<schedule::LoopRv> spatial[kSpatialLevels];
  std::vector<schedule::LoopRv> reduce[kReduceLevels];
};

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_SKETCH_RULES_H_
