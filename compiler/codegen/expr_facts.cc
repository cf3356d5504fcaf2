#include "compiler/codegen/expr_facts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler/ir/machine_op.h"

namespace tilefarm::codegen {
namespace {

bool AnyHasLoad(const std::vector<ir::Expr>& exprs) {
  return std::any_of(exprs.begin(), exprs.end(), HasLoad);
}

}  // namespace

std::optional<RampForm> AsRamp(const ir::Expr& index) {
  if (const auto* ramp = ir::As<ir::RampNode>(index)) {
    return RampForm{ramp->base, ramp->stride};
  }
  if (const auto* broadcast = ir::As<ir::BroadcastNode>(index)) {
    return RampForm{broadcast->value, ir::ConstOf(index->dtype.element(), 0)};
  }
  const auto* binary = ir::As<ir::BinaryNode>(index);
  if (binary == nullptr) return std::nullopt;
  if (binary->op != ir::BinaryOp::kAdd && binary->op != ir::BinaryOp::kSub &&
      binary->op != ir::BinaryOp::kMul) {
    return std::nullopt;
  }
  const auto a = AsRamp(binary->a);
  const auto b = AsRamp(binary->b);
  if (!a || !b) return std::nullopt;
  if (binary->op == ir::BinaryOp::kAdd) {
    return RampForm{a->base + b->base, a->stride + b->stride};
  }
  if (binary->op == ir::BinaryOp::kSub) {
    return RampForm{a->base - b->base, a->stride - b->stride};
  }
  if (ir::IsConstInt(b->stride, 0)) {
    return RampForm{a->base * b->base, a->stride * b->base};
  }
  if (ir::IsConstInt(a->stride, 0)) {
    return RampForm{a->base * b->base, a->base * b->stride};
  }
  return std::nullopt;
}

int64_t DivisorOf(const ir::Expr& index) {
  constexpr int64_t kMost = int64_t{1} << 20;
  if (const auto value = ir::AsInt(index)) {
    return *value == 0 ? kMost : std::gcd(*value, kMost);
  }
  const auto* binary = ir::As<ir::BinaryNode>(index);
  if (binary == nullptr) return 1;
  const int64_t a = DivisorOf(binary->a), b = DivisorOf(binary->b);
  const std::optional<int64_t> constant = ir::AsInt(binary->b);
  switch (binary->op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kSub:
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return std::gcd(a, b);
    case ir::BinaryOp::kMul:
      return std::min(kMost, a * b);
    case ir::BinaryOp::kFloorMod:
      return constant.value_or(0) > 0 ? std::gcd(a, *constant) : 1;
    case ir::BinaryOp::kFloorDiv:
      return constant.value_or(0) > 0 && a % *constant == 0 ? a / *constant : 1;
    default:
      return 1;
  }
}

bool RoundsTo16Bits(const ir::CastNode& cast) {
  const ir::DataType from = cast.value->dtype;
  return cast.dtype.is_float() && cast.dtype.bits == 16 &&
         (from.is_float() || from.bits > 8);
}

bool IsPlainLoad(const ir::LoadNode& load) {
  if (load.predicate != nullptr || load.buffer->scope != "global" ||
      load.indices.size() != 1 || AnyHasLoad(load.indices)) {
    return false;
  }
  // The buffer has as many: its first ones may be loaded instead.
  int64_t elements = 1;
  for (const int64_t extent : load.buffer->shape) elements *= extent;
  if (elements < load.dtype.lanes) return false;
  if (!load.dtype.is_vector()) return true;
  const std::optional<RampForm> ramp = AsRamp(load.indices[0]);
  return ramp && ir::IsConstInt(ramp->stride, 1);
}

bool HasPlainLoads(const ir::Expr& expr) {
  bool plain = true;
  ir::PostOrderExprs(expr, [&](const ir::Expr& part) {
    switch (part->kind) {
      case ir::ExprKind::kLoad:
        plain &= IsPlainLoad(*ir::As<ir::LoadNode>(part));
        break;
      case ir::ExprKind::kVar:
      case ir::ExprKind::kIntConst:
      case ir::ExprKind::kFloatConst:
      case ir::ExprKind::kBinary:
      case ir::ExprKind::kCast:
      case ir::ExprKind::kRamp:
      case ir::ExprKind::kBroadcast:
        break;
      default:
        plain = false;
    }
  });
  return plain;
}

bool HasLoad(const ir::Expr& expr) {
  switch (expr->kind) {
    case ir::ExprKind::kLoad:
      return true;
    case ir::ExprKind::kVar:
    case ir::ExprKind::kIntConst:
    case ir::ExprKind::kFloatConst:
      return false;
    case ir::ExprKind::kBinary: {
      const auto* e = ir::As<ir::BinaryNode>(expr);
      return HasLoad(e->a) || HasLoad(e->b);
    }
    case ir::ExprKind::kNot:
      return HasLoad(ir::As<ir::NotNode>(expr)->a);
    case ir::ExprKind::kCast:
      return HasLoad(ir::As<ir::CastNode>(expr)->value);
    case ir::ExprKind::kSelect: {
      const auto* e = ir::As<ir::SelectNode>(expr);
      return HasLoad(e->condition) || HasLoad(e->true_value) ||
             HasLoad(e->false_value);
    }
    case ir::ExprKind::kCall:
      return AnyHasLoad(ir::As<ir::CallNode>(expr)->args);
    case ir::ExprKind::kMachineOp:
      return AnyHasLoad(ir::As<ir::MachineOpNode>(expr)->args);
    case ir::ExprKind::kLet: {
      const auto* e = ir::As<ir::LetNode>(expr);
      return HasLoad(e->value) || HasLoad(e->body);
    }
    case ir::ExprKind::kRamp: {
      const auto* e = ir::As<ir::RampNode>(expr);
      return HasLoad(e->base) || HasLoad(e->stride);
    }
    case ir::ExprKind::kBroadcast:
      return HasLoad(ir::As<ir::BroadcastNode>(expr)->value);
  }
  return false;
}

}  // namespace tilefarm::codegen
