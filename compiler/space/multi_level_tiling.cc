#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int kMaxInnermostFactor = 64;
// Larger for reduce loops: accumulators stay in registers across them.
constexpr int kMaxReduceFactor = 2048;
// With less reuse per element, a product is memory-bound.
constexpr int64_t kManyUses = 32;
// A reduction over fewer fits one level as a whole.
constexpr int64_t kLongReduction = 16;

absl::StatusOr<Tiles> TileByLevels(Schedule& schedule, BlockRv block) {
  Tiles tiles;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  for (size_t i = 0; i < loops.size(); ++i) {
    TF_RETURN_IF_ERROR(tiles.Sample(schedule, loops.rvs[i], loops[i].sums));
  }
  TF_RETURN_IF_ERROR(tiles.Reorder(schedule));
  return tiles;
}

absl::StatusOr<bool> HasFusibleConsumer(Schedule schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                      FusibleConsumer(schedule, block));
  return consumer.has_value();
}

// Computes the copy of an operand for the tile, under the outer reduce loops.
absl::Status PackCopy(Schedule& schedule, BlockRv copy, const Tiles& tiles) {
  TF_RETURN_IF_ERROR(schedule.ComputeAt(copy, tiles.reduce[0].back(),
                                        /*preserve_unit_loops=*/true));
  return schedule.Annotate(copy, kPack, ir::Attr(1));
}

// Whether the operand has 16-bit floats, used in float32 so often that widening
// in every register tile costs more than reading twice the bytes.
bool IsWorthWidening(const ir::BlockNode& block, int operand) {
  const ir::BufferRegion& read = block.reads[static_cast<size_t>(operand)];
  const ir::DataType dtype = read.buffer->dtype;
  if (!dtype.is_float() || dtype.bits != 16) return false;
  int loads = 0, widened = 0;
  const auto is_load = [&](const ir::Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    return load != nullptr && load->buffer == read.buffer;
  };
  ir::PostOrderExprs(block.body, [&](const ir::Expr& e) {
    loads += is_load(e);
    const auto* cast = ir::As<ir::CastNode>(e);
    widened += cast != nullptr && cast->dtype == ir::DataType::Float(32) &&
               is_load(cast->value);
  });
  return loads == widened && UsesOfRead(block, operand) >= kManyUses;
}

// Makes a copy of the operand, at the root, that is computed ahead of time.
absl::Status PrepackOperand(Schedule& schedule, BlockRv block, int operand) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(BlockRv copy,
                      schedule.CacheRead(block, operand, "global"));
  if (IsWorthWidening(*node, operand)) {
    TF_RETURN_IF_ERROR(
        schedule.Annotate(copy, ir::kPrepackFloat32, ir::Attr(1)));
  }
  return schedule.Annotate(copy, ir::kPrepack, ir::Attr(1));
}

// All alternatives to tile the block. `fuse`: fuse the consumer; `in_place`:
// write the result only to its final place, since a tile of it may have gaps.
Alternatives TileInEveryWay(const Schedule& schedule, BlockRv tiled,
                            const Packing& packing, bool fuse, bool in_place) {
  std::vector<Schedule> results;
  for (const bool pack : {true, false}) {
    for (const int write_level : {1, 0, -1}) {
      Schedule attempt = schedule;
      const absl::Status done = TileProduct(attempt, tiled,
                                            {.packing = packing,
                                             .pack = pack,
                                             .write_level = write_level,
                                             .fuse = fuse,
                                             .in_place = in_place},
                                            TileByLevels);
      if (done.ok()) results.push_back(std::move(attempt));
    }
  }
  return results;
}

// The axis of the result that only one operand has, which is packed ahead of
// time: along it, a vector of that operand meets one element of the others. -1:
// there is none, it is the last axis already, or it does not fill a vector.
int PackedAxis(const ir::BlockNode& block, const Packing& packing,
               const target::Target& target) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (packing.ahead.size() != 1 || !WritesAtVariables(block)) return -1;
  const int lanes = target.vector_lanes(store->buffer->dtype.bytes());
  for (size_t axis = 0; axis + 1 < store->indices.size(); ++axis) {
    const auto* var = ir::As<ir::VarNode>(store->indices[axis]);
    if (var == nullptr || store->buffer->shape[axis] < lanes) continue;
    bool alone = true;
    for (size_t i = 0; i < block.reads.size(); ++i) {
      if (block.reads[i].buffer == store->buffer) continue;
      const bool packed = static_cast<int>(i) == packing.ahead[0];
      alone &= RegionUses(block.reads[i], var) == packed;
    }
    if (alone) return static_cast<int>(axis);
  }
  return -1;
}

// Makes the axis of the result the last one, and its loops the last spatial
// ones. The consumer puts the axes back in order; without one, a copy does.
absl::Status MoveAxisLast(Schedule& schedule, BlockRv block, int axis) {
  TF_ASSIGN_OR_RETURN(const bool fusible, HasFusibleConsumer(schedule, block));
  if (!fusible) {
    TF_RETURN_IF_ERROR(schedule.CacheWrite(block, 0, "global").status());
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const auto* store = ir::As<ir::StoreNode>(node->body);
  std::vector<std::string> from, to;
  for (size_t i = 0; i < store->indices.size(); ++i) {
    from.push_back(absl::StrCat("i", i));
    if (static_cast<int>(i) != axis) to.push_back(from.back());
  }
  to.push_back(absl::StrCat("i", axis));
  TF_RETURN_IF_ERROR(schedule.TransformLayout(
      block, /*read=*/false, 0,
      absl::StrCat("lambda ", absl::StrJoin(from, ", "), ": (",
                   absl::StrJoin(to, ", "), ")")));
  int iter = 0;
  while (node->iters[static_cast<size_t>(iter)].var.get() !=
         store->indices[static_cast<size_t>(axis)].get()) {
    ++iter;
  }
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  std::vector<LoopRv> others, last, sums;
  for (size_t i = 0; i < loops.size(); ++i) {
    (loops[i].sums          ? sums
     : loops[i].Moves(iter) ? last
                            : others)
        .push_back(loops.rvs[i]);
  }
  others.insert(others.end(), last.begin(), last.end());
  others.insert(others.end(), sums.begin(), sums.end());
  return schedule.Reorder(others);
}

}  // namespace

Packing FindPacking(const ir::PrimFunc& function, const ir::BlockNode& block) {
  Packing packing{OperandToPack(block), OperandsToPrepack(function, block)};
  if (absl::c_linear_search(packing.ahead, packing.operand)) {
    packing.operand = -1;
  }
  return packing;
}

absl::Status TileProduct(Schedule& schedule, BlockRv tiled,
                         const TilingWay& way, const LoopTiling& tile_loops) {
  const auto does_not_apply = [](const char* reason) {
    return absl::FailedPreconditionError(reason);
  };
  if (way.pack && way.packing.operand < 0) {
    return does_not_apply("there is no operand to pack");
  }
  bool fusible = false;
  if (way.fuse) {
    TF_ASSIGN_OR_RETURN(fusible, HasFusibleConsumer(schedule, tiled));
  }
  if (way.write_level < 0 ? fusible : way.in_place) {
    return does_not_apply("the result is not written there");
  }
  TF_RETURN_IF_ERROR(
      schedule.Annotate(tiled, kTilingStructure, ir::Attr("SSRSRS")));
  TF_ASSIGN_OR_RETURN(const Tiles tiles, tile_loops(schedule, tiled));
  if (way.write_level >= 0) {
    BlockRv writer;
    if (fusible) {
      TF_ASSIGN_OR_RETURN(std::vector<BlockRv> consumers,
                          schedule.GetConsumers(tiled));
      writer = consumers[0];
    } else if (way.writer) {
      writer = *way.writer;
    } else {
      TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(tiled, 0, "global"));
    }
    TF_RETURN_IF_ERROR(
        schedule.ReverseComputeAt(writer, tiles.spatial[way.write_level].back(),
                                  /*preserve_unit_loops=*/true));
  }
  if (way.pack) {
    BlockRv copy;
    if (way.copy) {
      copy = *way.copy;
    } else {
      TF_ASSIGN_OR_RETURN(
          copy, schedule.CacheRead(tiled, way.packing.operand, "global"));
    }
    TF_RETURN_IF_ERROR(PackCopy(schedule, copy, tiles));
  }
  for (const int one : way.packing.ahead) {
    TF_RETURN_IF_ERROR(PrepackOperand(schedule, tiled, one));
  }
  return absl::OkStatus();
}

absl::Status Tiles::Sample(Schedule& schedule, LoopRv loop, bool reduces) {
  TF_ASSIGN_OR_RETURN(
      const std::vector<schedule::ExprRv> factors,
      SampleTiles(schedule, loop, Levels(reduces),
                  reduces ? kMaxReduceFactor : kMaxInnermostFactor, reduces));
  return Split(schedule, loop, reduces, factors);
}

absl::Status Tiles::Split(Schedule& schedule, LoopRv loop, bool reduces,
                          const std::vector<schedule::ExprRv>& factors) {
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(loop, {factors.begin(), factors.end()}));
  for (size_t level = 0; level < parts.size(); ++level) {
    (reduces ? reduce : spatial)[level].push_back(parts[level]);
  }
  return absl::OkStatus();
}

absl::Status Tiles::Reorder(Schedule& schedule,
                            const std::vector<LoopRv>& inner) const {
  std::vector<LoopRv> order;
  for (const auto* level : {&spatial[0], &spatial[1], &reduce[0], &spatial[2],
                            &reduce[1], &spatial[3], &inner}) {
    order.insert(order.end(), level->begin(), level->end());
  }
  return schedule.Reorder(order);
}

// Tiles a block that reuses data as S S R S R S: two outer levels of every
// spatial loop, the outer reduce loops, a third spatial level, the inner reduce
// loops, and the register tile. The alternatives differ in where the result is
// written (a fused elementwise consumer or a write cache, after the first or
// second spatial level) and in whether an operand is packed under the outer
// reduce loops (Ansor, OSDI 2020; packing as in GotoBLAS, 2008). Operands that
// may be packed ahead of time always are; where one has an axis of the result
// for itself, such as the output channels of an NCHW convolution, the sums may
// also be vectors along that axis.
Alternatives MultiLevelTiling(const RuleContext& context, RuleSite site) {
  const auto& [unchanged, schedule, block, node] = site;
  if (!HasDataReuse(*node)) return DoesNotApply();
  const Packing packing =
      FindPacking(*schedule.module().Find(context.function), *node);
  // If a consumer cannot be fused tile by tile, it is not fused at all.
  for (const bool fuse : {true, false}) {
    TF_ASSIGN_OR_RETURN(std::vector<Schedule> results,
                        TileInEveryWay(schedule, block, packing, fuse,
                                       /*in_place=*/!WritesAtVariables(*node)));
    if (results.empty()) continue;
    const int axis = PackedAxis(*node, packing, context.target);
    Schedule moved = schedule;
    if (axis >= 0 && MoveAxisLast(moved, block, axis).ok()) {
      // The other operands are read one element at a time.
      TF_ASSIGN_OR_RETURN(std::vector<Schedule> more,
                          TileInEveryWay(moved, block, {.ahead = packing.ahead},
                                         /*fuse=*/true, /*in_place=*/false));
      absl::c_move(more, std::back_inserter(results));
    }
    return results;
  }
  return DoesNotApply();
}

absl::StatusOr<std::optional<schedule::BlockRv>> FusibleConsumer(
    schedule::Schedule& schedule, schedule::BlockRv block) {
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> consumers,
                      schedule.GetConsumers(block));
  if (consumers.size() != 1) return std::optional<BlockRv>();
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(consumers[0]));
  return IsElementwiseByDigits(*node) && HasTrivialBindings(*node)
             ? std::optional<BlockRv>(consumers[0])
             : std::nullopt;
}

absl::StatusOr<std::vector<schedule::ExprRv>> SampleTiles(
    schedule::Schedule& schedule, schedule::LoopRv loop, int n,
    int max_innermost_factor, bool reduces) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr node, schedule.Get(loop));
  const int64_t extent = ir::AsInt(node->extent).value_or(1);
  return reduces && extent <= kLongReduction
             ? schedule.SamplePerfectTile(loop, n, max_innermost_factor)
             : schedule.SampleTile(loop, n, max_innermost_factor);
}

absl::StatusOr<std::vector<schedule::LoopRv>> SplitInTwo(
    schedule::Schedule& schedule, schedule::LoopRv loop,
    int max_innermost_factor) {
  TF_ASSIGN_OR_RETURN(const std::vector<schedule::ExprRv> factors,
                      SampleTiles(schedule, loop, 2, max_innermost_factor));
  return schedule.Split(loop, {factors[0], factors[1]});
}

}  // namespace tilefarm::space
