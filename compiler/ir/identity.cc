#include "compiler/ir/identity.h"

#include <cstdint>
#include <limits>

namespace tilefarm::ir {
namespace {

int64_t LowestInt(DataType type) {
  if (!type.is_int()) return 0;
  return type.bits == 64 ? INT64_MIN : -(int64_t{1} << (type.bits - 1));
}

// The bit pattern that IntConst stores.
int64_t HighestInt(DataType type) {
  const int bits = type.is_int() ? type.bits - 1 : type.bits;
  return bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
}

}  // namespace

double HighestFloat(DataType type) {
  if (type == DataType::BFloat16()) return 0x1.FEp127;
  switch (type.bits) {
    case 16:
      return 65504.0;
    case 32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

Expr IdentityOf(BinaryOp op, DataType type) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case BinaryOp::kAdd:
      return ConstOf(type, 0);
    case BinaryOp::kMul:
      return ConstOf(type, 1);
    case BinaryOp::kMax:
      return type.is_float() ? FloatConst(-infinity, type)
                             : IntConst(LowestInt(type), type);
    case BinaryOp::kMin:
      return type.is_float() ? FloatConst(infinity, type)
                             : IntConst(HighestInt(type), type);
    default:
      return nullptr;
  }
}

bool IsIdentity(BinaryOp op, const Expr& identity) {
  if (const auto* value = As<IntConstNode>(identity)) {
    switch (op) {
      case BinaryOp::kAdd:
      case BinaryOp::kOr:
      case BinaryOp::kBitOr:
      case BinaryOp::kBitXor:
        return value->value == 0;
      case BinaryOp::kMul:
      case BinaryOp::kAnd:
        return value->value == 1;
      case BinaryOp::kMax:
        return value->value == LowestInt(identity->dtype);
      case BinaryOp::kMin:
        return value->value == HighestInt(identity->dtype);
      default:
        return false;
    }
  }
  if (const auto* value = As<FloatConstNode>(identity)) {
    const double highest = HighestFloat(identity->dtype);
    switch (op) {
      case BinaryOp::kAdd:
        return value->value == 0.0;
      case BinaryOp::kMul:
        return value->value == 1.0;
      case BinaryOp::kMax:
        return value->value <= -highest;
      case BinaryOp::kMin:
        return value->value >= highest;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace tilefarm::ir
