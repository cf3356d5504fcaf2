// tensorize: a nest that computes the description of an intrinsic is replaced
// by the intrinsic's implementation.
//
//   tensorize(i_1, "matmul4x4")
//
//   for i_0, j_0, k_0:                      for i_0, j_0, k_0:
//     for i_1, j_1, k_1 in (4, 4, 4):         C_o: v_i_o, v_j_o, v_k_o
//       C: C[v_i, v_j] += ...        ->          the implementation on
//                                                C[v_i_o * 4 + ...], ...
//
// Steps:
//   1. If given a loop, blockize it first.
//   2. Compare the body of the block with the description: loops, blocks and
//      expressions must be equal. Each buffer of the description stands for a
//      tile of one of the program's buffers, at the start of the region that
//      the block declares for it. Dimensions that the description lacks must be
//      leading ones of extent 1.
//   3. Replace the body by the implementation, and the implementation's buffers
//      by the tiles. The init does not change.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/blockize.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/tensor_intrin.h"

namespace tilefarm::schedule {
namespace {

// The program's tile, starting at `base`, that a description's buffer matches.
struct Tile {
  ir::Buffer buffer;
  std::vector<ir::Expr> base;
};
using Tiles = std::unordered_map<const ir::BufferNode*, Tile>;

// base + index, where the index has the last dimensions only.
std::vector<ir::Expr> IndexInTile(const Tile& tile,
                                  const std::vector<ir::Expr>& indices) {
  std::vector<ir::Expr> result = tile.base;
  const size_t leading = result.size() - indices.size();
  for (size_t i = 0; i < indices.size(); ++i) {
    result[leading + i] = result[leading + i] + indices[i];
  }
  return result;
}

// Step 2. Compares statements of the description with the program's.
class Matcher {
 public:
  explicit Matcher(const ir::BlockNode& block) : block_(block) {
    for (const ir::IterVar& iter : block.iters) {
      analyzer_.Bind(iter.var, iter.dom);
    }
  }

  bool Match(const ir::Stmt& theirs, const ir::Stmt& ours) {
    if (theirs->kind != ours->kind) return false;
    if (const auto* loop = ir::As<ir::ForNode>(theirs)) {
      const auto* our_loop = ir::As<ir::ForNode>(ours);
      if (!ir::IsConstInt(our_loop->min, 0) ||
          ir::AsInt(loop->extent) != ir::AsInt(our_loop->extent)) {
        return false;
      }
      vars_[loop->var.get()] = our_loop->var;
      analyzer_.Bind(our_loop->var, {our_loop->min, our_loop->extent});
      return Match(loop->body, our_loop->body);
    }
    if (const auto* block = ir::As<ir::BlockNode>(theirs)) {
      return MatchBlock(*block, *ir::As<ir::BlockNode>(ours));
    }
    if (const auto* store = ir::As<ir::StoreNode>(theirs)) {
      const auto* our_store = ir::As<ir::StoreNode>(ours);
      return MatchAccess(store->buffer, store->indices, our_store->buffer,
                         our_store->indices) &&
             Match(store->value, our_store->value);
    }
    if (const auto* seq = ir::As<ir::SeqNode>(theirs)) {
      const auto* our_seq = ir::As<ir::SeqNode>(ours);
      return std::ranges::equal(
          seq->stmts, our_seq->stmts,
          [&](const ir::Stmt& a, const ir::Stmt& b) { return Match(a, b); });
    }
    return false;
  }

  const Tiles& tiles() const { return tiles_; }

 private:
  bool MatchBlock(const ir::BlockNode& theirs, const ir::BlockNode& ours) {
    if (theirs.iters.size() != ours.iters.size() || ours.init != nullptr ||
        theirs.init != nullptr || !ours.allocs.empty() ||
        !ir::IsConstInt(ours.predicate, 1)) {
      return false;
    }
    for (size_t i = 0; i < theirs.iters.size(); ++i) {
      const ir::IterVar& a = theirs.iters[i];
      const ir::IterVar& b = ours.iters[i];
      if (a.type != b.type || !ir::IsConstInt(b.dom.min, 0) ||
          ir::AsInt(a.dom.extent) != ir::AsInt(b.dom.extent) ||
          !MatchIndex(a.binding, b.binding)) {
        return false;
      }
      vars_[a.var.get()] = b.var;
      analyzer_.Bind(b.var, b.dom);
    }
    return Match(theirs.body, ours.body);
  }

  bool Match(const ir::Expr& theirs, const ir::Expr& ours) {
    if (theirs->dtype != ours->dtype) return false;
    if (theirs->dtype.is_index()) return MatchIndex(theirs, ours);
    if (theirs->kind != ours->kind) return false;
    switch (theirs->kind) {
      case ir::ExprKind::kLoad: {
        const auto* a = ir::As<ir::LoadNode>(theirs);
        const auto* b = ir::As<ir::LoadNode>(ours);
        return MatchAccess(a->buffer, a->indices, b->buffer, b->indices);
      }
      case ir::ExprKind::kBinary: {
        const auto* a = ir::As<ir::BinaryNode>(theirs);
        const auto* b = ir::As<ir::BinaryNode>(ours);
        return a->op == b->op && Match(a->a, b->a) && Match(a->b, b->b);
      }
      case ir::ExprKind::kCast:
        return Match(ir::As<ir::CastNode>(theirs)->value,
                     ir::As<ir::CastNode>(ours)->value);
      case ir::ExprKind::kCall: {
        const auto* a = ir::As<ir::CallNode>(theirs);
        const auto* b = ir::As<ir::CallNode>(ours);
        return a->op == b->op &&
               std::ranges::equal(a->args, b->args,
                                  [&](const ir::Expr& x, const ir::Expr& y) {
                                    return Match(x, y);
                                  });
      }
      default:
        return arith::ExprEqual(theirs, ours);
    }
  }

  bool MatchIndex(const ir::Expr& theirs, const ir::Expr& ours) {
    return analyzer_.ProveEqual(ir::Substitute(theirs, vars_), ours);
  }

  bool MatchAccess(const ir::Buffer& theirs,
                   const std::vector<ir::Expr>& indices, const ir::Buffer& ours,
                   const std::vector<ir::Expr>& our_indices) {
    if (theirs->dtype != ours->dtype || ours->ndim() < theirs->ndim()) {
      return false;
    }
    auto it = tiles_.find(theirs.get());
    if (it == tiles_.end()) {
      std::optional<Tile> tile = TileOf(*theirs, ours);
      if (!tile.has_value()) return false;
      it = tiles_.emplace(theirs.get(), *std::move(tile)).first;
    }
    if (it->second.buffer != ours) return false;
    std::vector<ir::Expr> mapped;
    for (const ir::Expr& index : indices) {
      mapped.push_back(ir::Substitute(index, vars_));
    }
    const std::vector<ir::Expr> expected = IndexInTile(it->second, mapped);
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!analyzer_.ProveEqual(expected[i], our_indices[i])) return false;
    }
    return true;
  }

  // The tile at the start of the block's declared region.
  std::optional<Tile> TileOf(const ir::BufferNode& theirs,
                             const ir::Buffer& ours) const {
    // Two buffers of the description must not stand for one of the program's:
    // the implementation may store to one before it reads the other.
    for (const auto& [other, tile] : tiles_) {
      if (tile.buffer == ours) return std::nullopt;
    }
    const ir::BufferRegion* region = FindRegion(block_.writes, ours.get());
    if (region == nullptr) region = FindRegion(block_.reads, ours.get());
    if (region == nullptr) return std::nullopt;
    Tile tile{ours, {}};
    const size_t leading = region->region.size() - theirs.shape.size();
    for (size_t i = 0; i < region->region.size(); ++i) {
      const int64_t width = i < leading ? 1 : theirs.shape[i - leading];
      if (!ir::IsConstInt(region->region[i].extent, width)) {
        return std::nullopt;
      }
      tile.base.push_back(region->region[i].min);
    }
    return tile;
  }

  const ir::BlockNode& block_;
  arith::Analyzer analyzer_;
  ir::VarMap vars_;
  Tiles tiles_;
};

// Step 3. Replaces buffers of the implementation by tiles.
class TileReplacer : public ir::Mutator {
 public:
  explicit TileReplacer(const Tiles& tiles) : tiles_(tiles) {}
  using Mutator::Mutate;

 protected:
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr&) override {
    const Tile& tile = tiles_.at(load.buffer.get());
    return ir::Load(tile.buffer, IndexInTile(tile, MutateAll(load.indices)));
  }
  ir::Stmt MutateStore(const ir::StoreNode& store, const ir::Stmt&) override {
    const Tile& tile = tiles_.at(store.buffer.get());
    return ir::MakeStore(tile.buffer,
                         IndexInTile(tile, MutateAll(store.indices)),
                         Mutate(store.value));
  }
  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    ir::BlockNode copy =
        *ir::As<ir::BlockNode>(Mutator::MutateBlock(block, self));
    for (auto* regions : {&copy.reads, &copy.writes}) {
      for (ir::BufferRegion& region : *regions) region = InTile(region);
    }
    return ir::BlockOf(std::move(copy));
  }

 private:
  ir::BufferRegion InTile(const ir::BufferRegion& region) const {
    const Tile& tile = tiles_.at(region.buffer.get());
    ir::BufferRegion result{tile.buffer, {}};
    const size_t leading = tile.base.size() - region.region.size();
    for (size_t i = 0; i < tile.base.size(); ++i) {
      if (i < leading) {
        result.region.push_back({tile.base[i], ir::IntConst(1)});
        continue;
      }
      const ir::Range& range = region.region[i - leading];
      result.region.push_back({tile.base[i] + range.min, range.extent});
    }
    return result;
  }

  const Tiles& tiles_;
};

absl::Status TensorizeBlock(ScheduleState& state, const ir::BlockPtr& block,
                            const TensorIntrin& intrin) {
  Matcher matcher(*block);
  if (!matcher.Match(intrin.description->root()->body, block->body)) {
    return state.Illegal(block.get(), "its body is not what intrinsic ",
                         intrin.name, " computes");
  }
  // The implementation has its own buffers, in the same order.
  Tiles tiles;
  for (size_t i = 0; i < intrin.description->params.size(); ++i) {
    const auto it = matcher.tiles().find(intrin.description->params[i].get());
    if (it == matcher.tiles().end()) {
      return state.Illegal(block.get(),
                           "it does not use every operand of "
                           "intrinsic ",
                           intrin.name);
    }
    tiles[intrin.implementation->params[i].get()] = it->second;
  }
  ir::BlockNode result = *block;
  result.body = TileReplacer(tiles).Mutate(
      CopyWithFreshVars(intrin.implementation->root()->body));
  const ir::BlockPtr replaced = ir::BlockOf(std::move(result));
  state.Replace(block.get(), replaced, {{block.get(), replaced.get()}});
  return absl::OkStatus();
}

}  // namespace

absl::Status Tensorize(ScheduleState& state, BlockOrLoop where,
                       std::string_view intrinsic) {
  const auto intrin = FindTensorIntrin(intrinsic);
  if (!intrin.ok()) {
    return state.Invalid(nullptr, std::string(intrin.status().message()));
  }
  ir::BlockPtr block;
  if (const auto* loop_rv = std::get_if<LoopRv>(&where)) {
    TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(*loop_rv));
    TF_ASSIGN_OR_RETURN(block, BlockizeLoop(state, loop));
  } else {
    TF_ASSIGN_OR_RETURN(block, state.Get(std::get<BlockRv>(where)));
  }
  if (state.Scope(block.get()) == nullptr) {
    return state.Illegal(block.get(), "the root block cannot be tensorized");
  }
  return TensorizeBlock(state, block, **intrin);
}

}  // namespace tilefarm::schedule
