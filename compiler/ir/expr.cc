#include "compiler/ir/expr.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace tilefarm::ir {
namespace {

struct IntrinsicInfo {
  std::string_view name;
  int arity;
};

// In the order of the enum.
constexpr std::array<IntrinsicInfo, 35> kIntrinsics = {{
    {"if_then_else", 3}, {"exp", 1},      {"exp2", 1},        {"log", 1},
    {"log2", 1},         {"log10", 1},    {"log1p", 1},       {"sqrt", 1},
    {"rsqrt", 1},        {"tanh", 1},     {"sigmoid", 1},     {"erf", 1},
    {"sin", 1},          {"cos", 1},      {"tan", 1},         {"sinh", 1},
    {"cosh", 1},         {"atan", 1},     {"asin", 1},        {"acos", 1},
    {"atan2", 2},        {"pow", 2},      {"abs", 1},         {"floor", 1},
    {"ceil", 1},         {"round", 1},    {"nearbyint", 1},   {"trunc", 1},
    {"fma", 3},          {"copysign", 2}, {"isnan", 1},       {"isinf", 1},
    {"popcount", 1},     {"clz", 1},      {"reinterpret", 1},
}};
static_assert(kIntrinsics.size() ==
              static_cast<size_t>(Intrinsic::kReinterpret) + 1);

bool IsLogical(BinaryOp op) {
  return op == BinaryOp::kAnd || op == BinaryOp::kOr;
}

int64_t WrapToWidth(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits >= 64) return value;
  const int shift = 64 - dtype.bits;
  const uint64_t up = static_cast<uint64_t>(value) << shift;
  return dtype.is_uint() ? static_cast<int64_t>(up >> shift)
                         : static_cast<int64_t>(up) >> shift;
}

// Does not fold constants of 64-bit unsigned type: their order and division
// differ from the signed ones computed here.
std::optional<int64_t> EvalInt(BinaryOp op, int64_t a, int64_t b) {
  int64_t out;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
      return out;
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &out)) return std::nullopt;
      return out;
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
      return out;
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      int64_t quotient = a / b;
      int64_t rest = a % b;
      if (op == BinaryOp::kDiv) return quotient;
      if (op == BinaryOp::kMod) return rest;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        --quotient;
      }
      return op == BinaryOp::kFloorDiv ? quotient : rest;
    }
    case BinaryOp::kMin:
      return a < b ? a : b;
    case BinaryOp::kMax:
      return a > b ? a : b;
    case BinaryOp::kEQ:
      return a == b;
    case BinaryOp::kNE:
      return a != b;
    case BinaryOp::kLT:
      return a < b;
    case BinaryOp::kLE:
      return a <= b;
    case BinaryOp::kGT:
      return a > b;
    case BinaryOp::kGE:
      return a >= b;
    case BinaryOp::kAnd:
      return a != 0 && b != 0;
    case BinaryOp::kOr:
      return a != 0 || b != 0;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitOr:
      return a | b;
    case BinaryOp::kBitXor:
      return a ^ b;
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

int64_t BufferNode::num_elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

int64_t BufferNode::memory_elements() const {
  if (strides.empty()) return elem_offset + num_elements();
  int64_t last = elem_offset;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  return last + 1;
}

std::optional<int64_t> MemoryBytes(const BufferNode& buffer) {
  int64_t elements = 1;
  bool overflow = false;
  for (size_t i = 0; i < buffer.shape.size(); ++i) {
    if (buffer.strides.empty()) {
      overflow |= __builtin_mul_overflow(elements, buffer.shape[i], &elements);
      continue;
    }
    int64_t span = 0;
    overflow |=
        __builtin_mul_overflow(buffer.shape[i] - 1, buffer.strides[i], &span);
    overflow |= __builtin_add_overflow(elements, span, &elements);
  }
  overflow |= __builtin_add_overflow(elements, buffer.elem_offset, &elements);
  int64_t bytes = 0;
  overflow |=
      __builtin_mul_overflow(elements, int64_t{buffer.dtype.bytes()}, &bytes);
  if (overflow) return std::nullopt;
  return bytes;
}

Buffer MakeBuffer(std::string name, DataType dtype, std::vector<int64_t> shape,
                  std::string scope) {
  return std::make_shared<const BufferNode>(
      BufferNode{std::move(name), dtype, std::move(shape), std::move(scope)});
}

Var MakeVar(std::string name, DataType dtype) {
  return std::make_shared<const VarNode>(std::move(name), dtype);
}

Var MakeLetVar(std::string name, DataType dtype) {
  return std::make_shared<const VarNode>(std::move(name), dtype, true);
}

Expr IntConst(int64_t value, DataType dtype) {
  return std::make_shared<const IntConstNode>(value, dtype);
}

Expr FloatConst(double value, DataType dtype) {
  return std::make_shared<const FloatConstNode>(value, dtype);
}

Expr BoolConst(bool value) { return IntConst(value, DataType::Bool()); }

Expr ConstOf(DataType dtype, int64_t value) {
  const DataType element = dtype.element();
  Expr scalar = element.is_float()
                    ? FloatConst(static_cast<double>(value), element)
                    : IntConst(value, element);
  return dtype.lanes > 1 ? MakeBroadcast(scalar, dtype.lanes) : scalar;
}

bool IsComparison(BinaryOp op) {
  return op >= BinaryOp::kEQ && op <= BinaryOp::kGE;
}

Expr MakeBinary(BinaryOp op, Expr a, Expr b) {
  TF_CHECK(a->dtype == b->dtype);
  const DataType dtype = IsComparison(op) || IsLogical(op)
                             ? DataType::Bool().with_lanes(a->dtype.lanes)
                             : a->dtype;
  return std::make_shared<const BinaryNode>(op, std::move(a), std::move(b),
                                            dtype);
}

Expr FoldBinary(BinaryOp op, Expr a, Expr b) {
  const DataType dtype = a->dtype;
  if (dtype.is_float() || dtype.is_vector() ||
      (dtype.is_uint() && dtype.bits == 64)) {
    return MakeBinary(op, std::move(a), std::move(b));
  }
  const std::optional<int64_t> x = AsInt(a);
  const std::optional<int64_t> y = AsInt(b);
  const bool boolean = IsComparison(op) || IsLogical(op);
  if (x && y) {
    const DataType result = boolean ? DataType::Bool() : dtype;
    if (const auto value = EvalInt(op, *x, *y)) {
      const int64_t wrapped = WrapToWidth(*value, result);
      // The overflow of narrow signed types is left to code generation.
      if (wrapped == *value || result.is_uint()) {
        return IntConst(wrapped, result);
      }
    }
    return MakeBinary(op, std::move(a), std::move(b));
  }
  switch (op) {
    case BinaryOp::kAdd:
      if (x == 0) return b;
      if (y == 0) return a;
      break;
    case BinaryOp::kSub:
      if (y == 0) return a;
      break;
    case BinaryOp::kMul:
      if (x == 1) return b;
      if (y == 1) return a;
      if (x == 0) return a;
      if (y == 0) return b;
      break;
    case BinaryOp::kFloorDiv:
      if (y == 1) return a;
      break;
    case BinaryOp::kFloorMod:
      if (y == 1) return ConstOf(dtype, 0);
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a == b) return a;
      break;
    case BinaryOp::kAnd:
      if (x) return *x != 0 ? b : a;
      if (y == 1) return a;
      break;
    case BinaryOp::kOr:
      if (x) return *x != 0 ? a : b;
      if (y == 0) return a;
      break;
    default:
      break;
  }
  return MakeBinary(op, std::move(a), std::move(b));
}

Expr MakeNot(Expr a) {
  TF_CHECK(a->dtype.is_bool());
  if (const auto value = AsInt(a)) return BoolConst(*value == 0);
  return std::make_shared<const NotNode>(std::move(a));
}

Expr MakeCast(DataType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  const DataType from = value->dtype;
  if (const auto number = AsInt(value)) {
    if (dtype.is_integral()) {
      const int64_t wrapped = WrapToWidth(*number, dtype);
      if (wrapped == *number) return IntConst(wrapped, dtype);
    }
    if (dtype.is_float() && !(from.is_uint() && from.bits == 64) &&
        std::abs(*number) <= 2048 && dtype != DataType::BFloat16()) {
      return FloatConst(static_cast<double>(*number), dtype);
    }
  }
  return std::make_shared<const CastNode>(dtype, std::move(value));
}

Expr MakeSelect(Expr condition, Expr true_value, Expr false_value) {
  TF_CHECK(condition->dtype.is_bool());
  TF_CHECK(true_value->dtype == false_value->dtype);
  return std::make_shared<const SelectNode>(
      std::move(condition), std::move(true_value), std::move(false_value));
}

Expr MakeCall(Intrinsic op, std::vector<Expr> args) {
  TF_CHECK(static_cast<int>(args.size()) == IntrinsicArity(op));
  TF_CHECK(op != Intrinsic::kReinterpret);
  DataType dtype = args.back()->dtype;
  if (op == Intrinsic::kIsNan || op == Intrinsic::kIsInf) {
    dtype = DataType::Bool().with_lanes(dtype.lanes);
  }
  return std::make_shared<const CallNode>(op, std::move(args), dtype);
}

Expr MakeCallLike(const CallNode& call, std::vector<Expr> args) {
  if (call.op != Intrinsic::kReinterpret) {
    return MakeCall(call.op, std::move(args));
  }
  return MakeReinterpret(call.dtype.element(), std::move(args[0]));
}

bool CanReinterpret(DataType to, DataType from) {
  const auto has_bits = [](DataType t) {
    return !t.is_bool() && !(t.is_float() && t.bits < 32);
  };
  return has_bits(to) && has_bits(from) && to.bits == from.bits;
}

Expr MakeReinterpret(DataType dtype, Expr value) {
  const DataType from = value->dtype;
  TF_CHECK(CanReinterpret(dtype, from));
  dtype = dtype.element().with_lanes(from.lanes);
  if (dtype == from) return value;
  if (const auto* call = As<CallNode>(value);
      call != nullptr && call->op == Intrinsic::kReinterpret) {
    return MakeReinterpret(dtype, call->args[0]);
  }
  const auto number = AsInt(value);
  if (number && !dtype.is_float()) {
    return IntConst(WrapToWidth(*number, dtype), dtype);
  }
  if (number) {
    const double read =
        dtype.bits == 64 ? std::bit_cast<double>(*number)
                         : std::bit_cast<float>(static_cast<uint32_t>(*number));
    if (std::isfinite(read)) return FloatConst(read, dtype);
  }
  if (const auto* constant = As<FloatConstNode>(value);
      constant != nullptr && !dtype.is_float() &&
      std::isfinite(constant->value)) {
    const int64_t bits =
        dtype.bits == 64
            ? std::bit_cast<int64_t>(constant->value)
            : std::bit_cast<int32_t>(static_cast<float>(constant->value));
    return IntConst(WrapToWidth(bits, dtype), dtype);
  }
  return std::make_shared<const CallNode>(
      Intrinsic::kReinterpret, std::vector<Expr>{std::move(value)}, dtype);
}

Expr IfThenElseExpr(Expr condition, Expr then_value, Expr else_value) {
  TF_CHECK(then_value->dtype == else_value->dtype);
  return MakeCall(
      Intrinsic::kIfThenElse,
      {std::move(condition), std::move(then_value), std::move(else_value)});
}

Expr Load(Buffer buffer, std::vector<Expr> indices) {
  DataType dtype = buffer->dtype;
  if (indices.size() == 1) dtype = dtype.with_lanes(indices[0]->dtype.lanes);
  return std::make_shared<const LoadNode>(std::move(buffer), std::move(indices),
                                          dtype);
}

Expr MakeLet(Var var, Expr value, Expr body) {
  return std::make_shared<const LetNode>(std::move(var), std::move(value),
                                         std::move(body));
}

Expr MakeRamp(Expr base, Expr stride, int lanes) {
  return std::make_shared<const RampNode>(std::move(base), std::move(stride),
                                          lanes);
}

Expr MakeBroadcast(Expr value, int lanes) {
  TF_CHECK(!value->dtype.is_vector());
  return std::make_shared<const BroadcastNode>(std::move(value), lanes);
}

Expr operator+(Expr a, int64_t b) {
  Expr constant = ConstOf(a->dtype, b);
  return std::move(a) + std::move(constant);
}
Expr operator-(Expr a, int64_t b) {
  Expr constant = ConstOf(a->dtype, b);
  return std::move(a) - std::move(constant);
}
Expr operator*(Expr a, int64_t b) {
  Expr constant = ConstOf(a->dtype, b);
  return std::move(a) * std::move(constant);
}
Expr FloorDiv(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kFloorDiv, std::move(a), std::move(b));
}
Expr FloorMod(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kFloorMod, std::move(a), std::move(b));
}
Expr Min(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kMin, std::move(a), std::move(b));
}
Expr Max(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kMax, std::move(a), std::move(b));
}
Expr EQ(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kEQ, std::move(a), std::move(b));
}
Expr NE(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kNE, std::move(a), std::move(b));
}
Expr LT(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kLT, std::move(a), std::move(b));
}
Expr LE(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kLE, std::move(a), std::move(b));
}
Expr GT(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kGT, std::move(a), std::move(b));
}
Expr GE(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kGE, std::move(a), std::move(b));
}
Expr And(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kAnd, std::move(a), std::move(b));
}
Expr Or(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kOr, std::move(a), std::move(b));
}

std::optional<int64_t> AsInt(const Expr& expr) {
  const auto* node = As<IntConstNode>(expr);
  if (node == nullptr) return std::nullopt;
  return node->value;
}

std::optional<int64_t> AsUniformInt(const Expr& expr) {
  const auto* broadcast = As<BroadcastNode>(expr);
  return AsInt(broadcast != nullptr ? broadcast->value : expr);
}

std::string_view IntrinsicName(Intrinsic op) {
  return kIntrinsics[static_cast<size_t>(op)].name;
}

std::optional<Intrinsic> FindIntrinsic(std::string_view name) {
  for (size_t i = 0; i < kIntrinsics.size(); ++i) {
    if (kIntrinsics[i].name == name) return static_cast<Intrinsic>(i);
  }
  return std::nullopt;
}

int IntrinsicArity(Intrinsic op) {
  return kIntrinsics[static_cast<size_t>(op)].arity;
}

std::string_view BinaryOpName(BinaryOp op) {
  static constexpr std::string_view kNames[] = {
      "+", "-",  "*", "/",  "truncmod", "//", "%", "min", "max", "==", "!=",
      "<", "<=", ">", ">=", "and",      "or", "&", "|",   "^",   "<<", ">>"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace tilefarm::ir
