#include "compiler/schedule/reducer.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::schedule {
namespace {

int64_t LowestInt(ir::DataType type) {
  if (!type.is_int()) return 0;
  return type.bits == 64 ? INT64_MIN : -(int64_t{1} << (type.bits - 1));
}

// As the bit pattern that IntConst stores.
int64_t HighestInt(ir::DataType type) {
  const int bits = type.is_int() ? type.bits - 1 : type.bits;
  return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

// The largest finite value.
double HighestFloat(ir::DataType type) {
  if (type == ir::DataType::BFloat16()) return 0x1.FEp127;
  switch (type.bits) {
    case 16:
      return 65504.0;
    case 32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

bool IsIdentity(ir::BinaryOp op, const ir::Expr& init) {
  if (const auto* value = ir::As<ir::IntConstNode>(init)) {
    switch (op) {
      case ir::BinaryOp::kAdd:
      case ir::BinaryOp::kOr:
      case ir::BinaryOp::kBitOr:
      case ir::BinaryOp::kBitXor:
        return value->value == 0;
      case ir::BinaryOp::kMul:
      case ir::BinaryOp::kAnd:
        return value->value == 1;
      case ir::BinaryOp::kMax:
        return value->value == LowestInt(init->dtype);
      case ir::BinaryOp::kMin:
        return value->value == HighestInt(init->dtype);
      default:
        return false;
    }
  }
  if (const auto* value = ir::As<ir::FloatConstNode>(init)) {
    const double highest = HighestFloat(init->dtype);
    switch (op) {
      case ir::BinaryOp::kAdd:
        return value->value == 0.0;
      case ir::BinaryOp::kMul:
        return value->value == 1.0;
      case ir::BinaryOp::kMax:
        return value->value <= -highest;
      case ir::BinaryOp::kMin:
        return value->value >= highest;
      default:
        return false;
    }
  }
  return false;
}

bool SameElement(const ir::Expr& expr, const ir::StoreNode& store) {
  const auto* load = ir::As<ir::LoadNode>(expr);
  if (load == nullptr || load->buffer != store.buffer) return false;
  for (size_t i = 0; i < store.indices.size(); ++i) {
    if (!arith::ExprEqual(load->indices[i], store.indices[i])) return false;
  }
  return true;
}

bool Reads(const ir::Expr& expr, const ir::BufferNode* buffer) {
  bool reads = false;
  ir::PostOrderExprs(expr, [&](const ir::Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    reads = reads || (load != nullptr && load->buffer.get() == buffer);
  });
  return reads;
}

}  // namespace

ir::Expr Reducer::Combine(ir::Expr accumulator, ir::Expr other) const {
  return ir::MakeBinary(op, std::move(accumulator), std::move(other));
}

std::optional<Reducer> MatchReducer(const ir::BlockNode& block) {
  const auto* init = ir::As<ir::StoreNode>(block.init);
  const auto* update = ir::As<ir::StoreNode>(block.body);
  if (init == nullptr || update == nullptr || init->buffer != update->buffer ||
      block.writes.size() != 1) {
    return std::nullopt;
  }
  for (size_t i = 0; i < init->indices.size(); ++i) {
    if (!arith::ExprEqual(init->indices[i], update->indices[i])) {
      return std::nullopt;
    }
  }
  const auto* binary = ir::As<ir::BinaryNode>(update->value);
  if (binary == nullptr || !IsIdentity(binary->op, init->value)) {
    return std::nullopt;
  }
  const bool left = SameElement(binary->a, *update);
  const bool right = SameElement(binary->b, *update);
  if (left == right) return std::nullopt;
  const ir::Expr& value = left ? binary->b : binary->a;
  if (Reads(value, update->buffer.get())) return std::nullopt;
  return Reducer{binary->op, value};
}

}  // namespace tilefarm::schedule
