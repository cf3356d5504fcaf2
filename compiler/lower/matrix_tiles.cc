#include "compiler/lower/matrix_tiles.h"

#include <optional>
#include <vector>

#include "compiler/ir/machine_op.h"

namespace tilefarm::lower {
namespace {

using ir::DataType;
using ir::Expr;

constexpr int64_t kRows = 16;
constexpr int64_t kRowBytes = 64;

// The four loops of the nest: rows, columns, groups, numbers of a group.
struct TileNest {
  std::vector<const ir::ForNode*> loops;
  const ir::StoreNode* store = nullptr;
};

std::optional<TileNest> FindNest(const ir::ForNode& loop) {
  TileNest nest;
  const ir::ForNode* at = &loop;
  for (; at != nullptr; at = ir::As<ir::ForNode>(at->body)) {
    if (!ir::IsConstInt(at->min, 0)) return std::nullopt;
    nest.loops.push_back(at);
  }
  nest.store = ir::As<ir::StoreNode>(nest.loops.back()->body);
  if (nest.loops.size() != 4 || nest.store == nullptr ||
      nest.store->predicate != nullptr) {
    return std::nullopt;
  }
  for (int i = 0; i < 3; ++i) {
    if (!ir::IsConstInt(nest.loops[i]->extent, kRows)) return std::nullopt;
  }
  return nest;
}

bool TargetHas(const target::Target& target, DataType a, DataType b,
               DataType sum) {
  if (a == DataType::BFloat16() && b == a && sum == DataType::Float(32)) {
    return target.Has(target::Capability::kBFloat16Tile);
  }
  const auto is_byte = [](DataType t) {
    return t.is_integral() && !t.is_bool() && t.bits == 8;
  };
  return is_byte(a) && is_byte(b) && sum == DataType::Int(32) &&
         target.Has(target::Capability::kByteTile);
}

// An index that is base + sum of stride * loop.
struct TileIndex {
  Expr base;
  int64_t strides[4];
};

std::optional<TileIndex> TileIndexOf(IndexMath& math, const TileNest& nest,
                                     const Expr& e) {
  Linear rest = math.Decompose(e);
  TileIndex form;
  for (int i = 0; i < 4; ++i) {
    const ir::VarNode* var = nest.loops[i]->var.get();
    form.strides[i] = rest.CoefficientOf(var);
    if (form.strides[i] != 0) {
      rest.AddTerm(nest.loops[i]->var, -form.strides[i]);
    }
  }
  form.base = rest.ToExpr();
  for (const ir::ForNode* loop : nest.loops) {
    if (ir::UsesVar(form.base, loop->var.get())) return std::nullopt;
  }
  return form;
}

}  // namespace

ir::Stmt MatrixTiles(IndexMath& math, const ir::ForNode& loop,
                     const target::Target& target) {
  const std::optional<TileNest> nest = FindNest(loop);
  if (!nest) return nullptr;
  const ir::StoreNode& store = *nest->store;
  const auto* sum = ir::As<ir::BinaryNode>(store.value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return nullptr;
  const auto* old = ir::As<ir::LoadNode>(sum->a);
  const auto* product = ir::As<ir::BinaryNode>(sum->b);
  if (old == nullptr || old->buffer != store.buffer ||
      old->predicate != nullptr ||
      !SameExpr(old->indices[0], store.indices[0]) || product == nullptr ||
      product->op != ir::BinaryOp::kMul) {
    return nullptr;
  }
  const ir::LoadNode* a = WidenedLoad(product->a);
  const ir::LoadNode* b = WidenedLoad(product->b);
  if (a == nullptr || b == nullptr ||
      !TargetHas(target, a->dtype, b->dtype, store.value->dtype)) {
    return nullptr;
  }
  const int64_t group = kRowBytes / kRows / a->dtype.bytes();
  if (!ir::IsConstInt(nest->loops[3]->extent, group)) return nullptr;

  const size_t mark = math.Mark();
  for (const ir::ForNode* inner : nest->loops) {
    math.Bind(inner->var.get(), 0, *ir::AsInt(inner->extent) - 1);
  }
  const auto into = TileIndexOf(math, *nest, store.indices[0]);
  const auto left = TileIndexOf(math, *nest, a->indices[0]);
  const auto right = TileIndexOf(math, *nest, b->indices[0]);
  math.Restore(mark);
  const auto strides = [](const std::optional<TileIndex>& form, int64_t i,
                          int64_t j, int64_t k, int64_t g) {
    return form && form->strides[0] == i && form->strides[1] == j &&
           form->strides[2] == k && form->strides[3] == g;
  };
  if (!left || !right || !strides(into, kRows, 1, 0, 0) ||
      !strides(left, left->strides[0], 0, group, 1) ||
      !strides(right, 0, group, right->strides[2], 1) ||
      left->strides[0] <= 0 || right->strides[2] <= 0) {
    return nullptr;
  }
  const Expr sums = ir::MakeRamp(into->base, ir::IntConst(1), kRows * kRows);
  return ir::MakeStore(
      store.buffer, {sums},
      ir::MakeMachineOp(
          ir::MachineOp::kTileProduct,
          {ir::Load(a->buffer, {left->base}), ir::IntConst(left->strides[0]),
           ir::Load(b->buffer, {right->base}), ir::IntConst(right->strides[2]),
           ir::Load(store.buffer, {sums})}));
}

}  // namespace tilefarm::lower
