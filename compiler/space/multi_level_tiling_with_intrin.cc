#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using ir::As;
using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;
using schedule::TensorIntrin;

constexpr int kMaxIntrinFactor = 32;
// The maximum number of groups that one register tile sums without a store.
// Operands are so narrow that long reductions still fit the caches.
constexpr int kMaxIntrinReduceFactor = 1024;
// Packing an operand costs about as much as this many products of each element
// without the instruction.
constexpr int64_t kFewUses = 8;
// Dot products on 128-bit vectors are used by schedules written by hand only:
// tiles and padding were measured with wider vectors.
constexpr int64_t kLeastLanes = 8;
// A matrix unit is about eight times as fast as dot-product instructions, so it
// is worthwhile if padding at most doubles the work.
constexpr double kMostPaddedWork = 2;

// An intrinsic (dot product or matrix unit) and the variables of a block that
// computes the same sum of products of narrow numbers.
struct Match {
  const TensorIntrin* intrin = nullptr;
  const ir::VarNode* row = nullptr;    // of a matrix unit's tile, or null
  const ir::VarNode* lane = nullptr;   // output elements of one register
  const ir::VarNode* group = nullptr;  // reduced within an element
  int packed = 0;                      // the read indexed by lanes
  int64_t rows = 0, lanes = 0, group_size = 0;
};

// The load in `T.cast(load, dtype)`; null if it is something else.
const ir::LoadNode* CastLoad(const ir::Expr& e) {
  const auto* cast = As<ir::CastNode>(e);
  return cast == nullptr ? nullptr : As<ir::LoadNode>(cast->value);
}

// Whether the variable occurs exactly once, as an index by itself.
bool IsAloneOnce(const std::vector<ir::Expr>& indices, const ir::VarNode* var) {
  int alone = 0, used = 0;
  for (const ir::Expr& index : indices) {
    alone += index.get() == var;
    used += ir::UsesVar(index, var);
  }
  return alone == 1 && used == 1;
}

bool UsesVarAnywhere(const std::vector<ir::Expr>& indices,
                     const ir::VarNode* var) {
  return std::ranges::any_of(
      indices, [&](const ir::Expr& index) { return ir::UsesVar(index, var); });
}

const ir::IterVar* FindIter(const ir::BlockNode& block, const ir::Expr& var,
                            ir::IterType type) {
  for (const ir::IterVar& iter : block.iters) {
    if (iter.var == var && iter.type == type) return &iter;
  }
  return nullptr;
}

bool TargetHas(const target::Target& target, const TensorIntrin& intrin) {
  return intrin.capability && target.Has(*intrin.capability);
}

// Chooses an intrinsic C[lane] += A[k] * B[lane, k] that the target has: the
// widest one that divides the block's extents; with `pad`, among those that
// have no more lanes than there are and whose groups are at least half full,
// the one that needs the fewest instructions.
void ChooseIntrin(const target::Target& target, const ir::LoadNode& a,
                  const ir::LoadNode& b, ir::DataType sum, int64_t lane_extent,
                  int64_t group_extent, bool pad, Match* match) {
  int64_t fewest = INT64_MAX;
  for (const TensorIntrin& intrin : schedule::TensorIntrins()) {
    const auto shape = schedule::ShapeOf(intrin);
    if (!shape || shape->is_tile() || shape->lanes < kLeastLanes ||
        shape->a != a.dtype || shape->b != b.dtype || shape->sum != sum) {
      continue;
    }
    const int64_t lanes = shape->lanes, group = shape->group;
    if (!TargetHas(target, intrin)) continue;
    const int64_t instructions =
        CeilDiv(lane_extent, lanes) * CeilDiv(group_extent, group);
    if (pad ? lane_extent < lanes || 2 * group_extent < group ||
                  instructions >= fewest
            : lane_extent % lanes != 0 || group_extent % group != 0 ||
                  lanes <= match->lanes) {
      continue;
    }
    fewest = instructions;
    match->intrin = &intrin;
    match->lanes = lanes;
    match->group_size = group;
  }
}

// Whether these tile sizes (rows, lanes, group) divide the extents; with `pad`,
// whether padding to them at most doubles the work.
bool TilesFit(const int64_t (&extents)[3], const int64_t (&tile)[3], bool pad) {
  double work = 1;
  bool divide = true;
  for (int i = 0; i < 3; ++i) {
    divide = divide && extents[i] % tile[i] == 0;
    work *= static_cast<double>(CeilDiv(extents[i], tile[i]) * tile[i]) /
            static_cast<double>(extents[i]);
  }
  return pad ? work <= kMostPaddedWork : divide;
}

// Chooses an intrinsic C[row, lane] += A[row, k] * B[k // g, lane, k % g] that
// the target has and that fits the block's extents; leaves the match unchanged
// if there is none.
void ChooseTile(const target::Target& target, const ir::BlockNode& block,
                const ir::LoadNode& a, const ir::LoadNode& b,
                const ir::StoreNode& store, const ir::IterVar& lane,
                const ir::IterVar& group, bool pad, Match* match) {
  if (store.indices.size() < 2 || a.indices.size() < 2) return;
  const ir::IterVar* row = FindIter(
      block, store.indices[store.indices.size() - 2], ir::IterType::kSpatial);
  if (row == nullptr || row->var != a.indices[a.indices.size() - 2] ||
      !IsAloneOnce(store.indices, row->var.get()) ||
      !IsAloneOnce(a.indices, row->var.get()) ||
      UsesVarAnywhere(b.indices, row->var.get())) {
    return;
  }
  for (const TensorIntrin& intrin : schedule::TensorIntrins()) {
    const auto shape = schedule::ShapeOf(intrin);
    if (!shape || !shape->is_tile() || shape->a != a.dtype ||
        shape->b != b.dtype || shape->sum != store.value->dtype ||
        !TargetHas(target, intrin) ||
        !TilesFit({IterExtent(*row), IterExtent(lane), IterExtent(group)},
                  {shape->rows, shape->lanes, shape->products}, pad)) {
      continue;
    }
    match->intrin = &intrin;
    match->row = row->var.get();
    match->rows = shape->rows;
    match->lanes = shape->lanes;
    match->group_size = shape->products;
  }
}

std::optional<Match> FindMatch(const ir::BlockNode& block,
                               const target::Target& target, bool pad) {
  const auto* store = As<ir::StoreNode>(block.body);
  if (store == nullptr || store->indices.empty() || !HasDataReuse(block)) {
    return std::nullopt;
  }
  const auto* sum = As<ir::BinaryNode>(store->value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return std::nullopt;
  const auto* old = As<ir::LoadNode>(sum->a);
  const auto* product = As<ir::BinaryNode>(sum->b);
  if (old == nullptr || old->buffer != store->buffer || product == nullptr ||
      product->op != ir::BinaryOp::kMul) {
    return std::nullopt;
  }
  const ir::LoadNode* a = CastLoad(product->a);
  const ir::LoadNode* b = CastLoad(product->b);
  if (a == nullptr || b == nullptr || a->indices.empty() ||
      a->buffer == b->buffer) {
    return std::nullopt;
  }
  // The lanes must be contiguous in the output; k must be in the left operand.
  const ir::IterVar* lane =
      FindIter(block, ir::LastIndex(store->indices), ir::IterType::kSpatial);
  const ir::IterVar* group =
      FindIter(block, ir::LastIndex(a->indices), ir::IterType::kReduce);
  if (lane == nullptr || group == nullptr) return std::nullopt;
  Match match;
  match.lane = lane->var.get();
  match.group = group->var.get();
  if (!IsAloneOnce(store->indices, match.lane) ||
      !IsAloneOnce(a->indices, match.group) ||
      !IsAloneOnce(b->indices, match.lane) ||
      !IsAloneOnce(b->indices, match.group) ||
      UsesVarAnywhere(a->indices, match.lane)) {
    return std::nullopt;
  }
  ChooseIntrin(target, *a, *b, store->value->dtype, IterExtent(*lane),
               IterExtent(*group), pad, &match);
  ChooseTile(target, block, *a, *b, *store, *lane, *group, pad, &match);
  if (match.intrin == nullptr) return std::nullopt;
  for (size_t i = 0; i < block.reads.size(); ++i) {
    if (block.reads[i].buffer == b->buffer) match.packed = static_cast<int>(i);
  }
  return match;
}

// S S R S R S as in multi_level_tiling, on registers and groups, then the loops
// of the intrinsic. The lane's loops are the last ones in their levels.
absl::StatusOr<Tiles> TileLoops(Schedule& schedule, BlockRv block,
                                const Match& match) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  // The loops to tile, and those of the intrinsic.
  std::vector<std::pair<LoopRv, bool>> outer;  // whether it reduces
  std::optional<LoopRv> rows_outer, rows, lanes_outer, lanes, group;
  for (size_t i = 0; i < loops.size(); ++i) {
    const ir::VarNode* iter =
        loops[i].iters.size() == 1
            ? node->iters[static_cast<size_t>(loops[i].iters[0])].var.get()
            : nullptr;
    const auto split = [&](int64_t size) {
      return schedule.Split(loops.rvs[i], {std::nullopt, size});
    };
    if (iter == match.lane) {
      TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts, split(match.lanes));
      lanes_outer = parts[0];
      lanes = parts[1];
    } else if (match.row != nullptr && iter == match.row) {
      TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts, split(match.rows));
      rows_outer = parts[0];
      outer.emplace_back(*rows_outer, false);
      rows = parts[1];
    } else if (iter == match.group) {
      TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts, split(match.group_size));
      outer.emplace_back(parts[0], true);
      group = parts[1];
    } else {
      outer.emplace_back(loops.rvs[i], loops[i].sums);
    }
  }
  if (!lanes || !group) {
    return absl::FailedPreconditionError("the block has other loops");
  }
  outer.emplace_back(*lanes_outer, false);

  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kAutoTensorize, ir::Attr(match.intrin->name)));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(block, kTilingStructure, ir::Attr("SSRSRS")));
  Tiles tiles;
  for (const auto& [loop, reduces] : outer) {
    const int levels = Tiles::Levels(reduces);
    // Perfect tiles: panels of the packed operand and of matrix units' tiles
    // have no tails.
    const bool whole = loop.id == lanes_outer->id || reduces ||
                       (rows_outer && loop.id == rows_outer->id);
    TF_ASSIGN_OR_RETURN(
        std::vector<schedule::ExprRv> factors,
        whole ? schedule.SamplePerfectTile(
                    loop, levels,
                    reduces ? kMaxIntrinReduceFactor : kMaxIntrinFactor)
              : SampleTiles(schedule, loop, levels, kMaxIntrinFactor));
    TF_RETURN_IF_ERROR(tiles.Split(schedule, loop, reduces, factors));
  }
  std::vector<LoopRv> inner;
  if (rows) inner.push_back(*rows);
  inner.insert(inner.end(), {*lanes, *group});
  TF_RETURN_IF_ERROR(tiles.Reorder(schedule, inner));
  return tiles;
}

// Whether pad_einsum made the block from an operand: a copy of a buffer with
// zeros behind it.
bool IsZeroPadding(const ir::BlockNode& block) {
  const auto* store = As<ir::StoreNode>(block.body);
  const auto* choice =
      store == nullptr ? nullptr : As<ir::CallNode>(store->value);
  if (choice == nullptr || choice->op != ir::Intrinsic::kIfThenElse ||
      block.reads.size() != 1) {
    return false;
  }
  const auto* zero = As<ir::FloatConstNode>(choice->args[2]);
  if (!ir::IsConstInt(choice->args[2], 0) &&
      (zero == nullptr || zero->value != 0)) {
    return false;
  }
  const auto* load = As<ir::LoadNode>(choice->args[1]);
  return load != nullptr && load->indices == store->indices;
}

// Where the operand is copied into the intrinsic's layout.
enum class PackAt { kAheadOfTime, kBeforeTheNest, kUnderReduceLoops };

// The block that copies the operand; a block that pads it is such a copy.
absl::StatusOr<BlockRv> CopyOf(Schedule& schedule, BlockRv block, int operand) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const ir::Buffer& buffer = node->reads[static_cast<size_t>(operand)].buffer;
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  for (const BlockRv& producer : producers) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr made, schedule.Get(producer));
    if (made->writes[0].buffer == buffer && IsZeroPadding(*made)) {
      return producer;
    }
  }
  return schedule.CacheRead(block, operand, "global");
}

// Makes the copy; a postproc chooses its layout.
absl::Status PackOperand(Schedule& schedule, BlockRv block, int operand,
                         const Tiles& tiles, PackAt at) {
  TF_ASSIGN_OR_RETURN(BlockRv copy, CopyOf(schedule, block, operand));
  if (at == PackAt::kUnderReduceLoops) {
    TF_RETURN_IF_ERROR(schedule.ComputeAt(copy, tiles.reduce[0].back(),
                                          /*preserve_unit_loops=*/true));
  }
  return schedule.Annotate(
      copy, at == PackAt::kAheadOfTime ? ir::kPrepack : kPack, ir::Attr(1));
}

// A layout in which each tile of the result is contiguous: "lambda i0, i1: (i0
// // 16, i1 // 16, i0 % 16, i1 % 16)" for tiles of 16 x 16.
std::string TileMap(int ndim, const Match& match) {
  std::string args, leading;
  for (int i = 0; i < ndim; ++i) {
    absl::StrAppend(&args, i == 0 ? "" : ", ", "i", i);
    if (i + 2 < ndim) absl::StrAppend(&leading, "i", i, ", ");
  }
  return absl::Substitute(
      "lambda $0: ($1i$2 // $4, i$3 // $5, i$2 % $4, i$3 % $5)", args, leading,
      ndim - 2, ndim - 1, match.rows, match.lanes);
}

// Puts the result into a tile, read by a fused consumer or by a copy.
absl::StatusOr<bool> PlaceResult(Schedule& schedule, BlockRv block,
                                 const Match& match,
                                 const std::vector<LoopRv>& level) {
  TF_ASSIGN_OR_RETURN(std::optional<BlockRv> writer,
                      FusibleConsumer(schedule, block));
  if (!writer) {
    const auto cache = schedule.CacheWrite(block, 0, "global");
    if (!cache.ok()) return false;
    writer = *cache;
  }
  if (match.row != nullptr) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
    const int ndim = node->writes[0].buffer->ndim();
    if (!schedule
             .TransformLayout(block, /*read=*/false, 0, TileMap(ndim, match))
             .ok()) {
      return false;
    }
  }
  return schedule
      .ReverseComputeAt(*writer, level.back(), /*preserve_unit_loops=*/true)
      .ok();
}

// Pads operands and result to whole registers, groups and tiles. A block that
// only copies the result back is inlined into its consumer.
absl::Status PadBlock(Schedule& schedule, BlockRv block, const Match& match) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  std::vector<int64_t> padding;
  for (const ir::IterVar& iter : node->iters) {
    const ir::VarNode* var = iter.var.get();
    padding.push_back(var == match.lane    ? match.lanes
                      : var == match.group ? match.group_size
                      : var == match.row   ? match.rows
                                           : 1);
  }
  TF_RETURN_IF_ERROR(schedule.PadEinsum(block, std::move(padding)));
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> consumers,
                      schedule.GetConsumers(block));
  if (consumers.size() == 1) schedule.ComputeInline(consumers[0]).IgnoreError();
  return absl::OkStatus();
}

// Whether the operand, or the source of its padded copy, may be laid out ahead
// of time.
absl::StatusOr<bool> IsConstant(const std::string& function, Schedule schedule,
                                BlockRv block, int operand) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  const ir::Buffer& buffer = node->reads[static_cast<size_t>(operand)].buffer;
  if (ir::IsLayoutFree(*program, buffer.get())) return true;
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  for (const BlockRv& producer : producers) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr made, schedule.Get(producer));
    if (made->writes[0].buffer == buffer && IsZeroPadding(*made) &&
        ir::IsLayoutFree(*program, made->reads[0].buffer.get())) {
      return true;
    }
  }
  return false;
}

}  // namespace

// Tiles a sum of products of narrow numbers around a dot-product or matrix-unit
// instruction: as multi_level_tiling, but on registers and groups instead of
// elements. The operand indexed by lanes is always packed by groups: ahead of
// time if it is constant, else under the outer reduce loops or as a whole
// before the nest. The instruction is several times as fast as multiply and
// add, so plain multi_level_tiling is an alternative only if too little reuse
// may not pay for packing in the call. If registers, groups or tiles would have
// tails, the operands and the result are zero-padded copies.
Alternatives MultiLevelTilingWithIntrin(const RuleContext& context,
                                        RuleSite site) {
  auto& [plain, schedule, block, node] = site;
  std::optional<Match> match = FindMatch(*node, context.target, /*pad=*/false);
  // If whole registers fit without padding, whole tiles may still need it.
  if (!match || match->row == nullptr) {
    const std::optional<Match> padded =
        FindMatch(*node, context.target, /*pad=*/true);
    Schedule attempt = schedule;
    if (padded && (!match || padded->row != nullptr) &&
        PadBlock(attempt, block, *padded).ok()) {
      TF_ASSIGN_OR_RETURN(ir::BlockPtr whole, attempt.Get(block));
      if (auto fits = FindMatch(*whole, context.target, /*pad=*/false)) {
        schedule = std::move(attempt);
        node = std::move(whole);
        match = fits;
      }
    }
  }
  if (!match) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(
      const bool constant,
      IsConstant(context.function, schedule, block, match->packed));
  const std::vector<PackAt> places =
      constant ? std::vector{PackAt::kAheadOfTime}
               : std::vector{PackAt::kBeforeTheNest, PackAt::kUnderReduceLoops};
  std::vector<Schedule> results;
  for (const PackAt place : places) {
    // -1: the result is written to its final place.
    for (const int write_level : {1, 0, -1}) {
      Schedule attempt = schedule;
      if (write_level < 0) {
        Schedule look = attempt;
        TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                            FusibleConsumer(look, block));
        // A matrix unit needs contiguous tiles of sums; no parameter has them.
        if (consumer || match->row != nullptr) continue;
      }
      const absl::StatusOr<Tiles> tiles = TileLoops(attempt, block, *match);
      if (!tiles.ok()) continue;
      if (write_level >= 0) {
        TF_ASSIGN_OR_RETURN(
            const bool placed,
            PlaceResult(attempt, block, *match, tiles->spatial[write_level]));
        if (!placed) continue;
      }
      if (!PackOperand(attempt, block, match->packed, *tiles, place).ok()) {
        continue;
      }
      results.push_back(std::move(attempt));
    }
  }
  if (results.empty() ||
      (!constant && UsesOfRead(*node, match->packed) < kFewUses)) {
    results.push_back(plain);
  }
  return results;
}

}  // namespace tilefarm::space
