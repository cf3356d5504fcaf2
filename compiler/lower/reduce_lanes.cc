#include "compiler/lower/reduce_lanes.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/lane_vectorizer.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::Expr;

constexpr int64_t kMaxVectors = 16;

std::optional<ir::MachineOp> LaneReduction(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return ir::MachineOp::kLaneSum;
    case BinaryOp::kMul:
      return ir::MachineOp::kLaneProduct;
    case BinaryOp::kMin:
      return ir::MachineOp::kLaneMin;
    case BinaryOp::kMax:
      return ir::MachineOp::kLaneMax;
    default:
      return std::nullopt;
  }
}

}  // namespace

ir::Stmt ReduceLanes(IndexMath& math, const ir::ForNode& loop,
                     const ir::Stmt& body, const target::Target& target) {
  const auto extent = ir::AsInt(loop.extent);
  const auto* store = ir::As<ir::StoreNode>(body);
  if (!extent || !ir::IsConstInt(loop.min, 0) || store == nullptr ||
      store->predicate != nullptr || store->indices[0]->dtype.is_vector() ||
      ir::UsesVar(store->indices[0], loop.var.get())) {
    return nullptr;
  }
  const auto* update = ir::As<ir::BinaryNode>(store->value);
  if (update == nullptr) return nullptr;
  const auto reduction = LaneReduction(update->op);
  const bool first = IsElementOf(update->a, *store);
  if (!reduction || (!first && !IsElementOf(update->b, *store))) {
    return nullptr;
  }
  const Expr& element = first ? update->a : update->b;
  const Expr& value = first ? update->b : update->a;
  if (ir::Loads(value, store->buffer.get())) return nullptr;

  int lanes = target.vector_lanes(store->buffer->dtype.bytes());
  while (lanes > 1 && *extent % lanes != 0) lanes /= 2;
  if (lanes < 2 || *extent / lanes > kMaxVectors) return nullptr;
  std::vector<Expr> vectors;
  for (int64_t at = 0; at < *extent; at += lanes) {
    vectors.push_back(VectorizeValue(
        math, value, {loop.var.get(), ir::IntConst(at), lanes, lanes}));
    if (vectors.back() == nullptr) return nullptr;
  }
  while (vectors.size() > 1) {
    std::vector<Expr> sums;
    for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
      sums.push_back(ir::MakeBinary(update->op, vectors[i], vectors[i + 1]));
    }
    if (vectors.size() % 2 == 1) sums.push_back(vectors.back());
    vectors = std::move(sums);
  }
  return ir::MakeStore(
      store->buffer, {store->indices[0]},
      ir::MakeBinary(update->op, element,
                     ir::MakeMachineOp(*reduction, {vectors[0]})));
}

}  // namespace tilefarm::lower
