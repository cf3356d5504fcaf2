#include "compiler/ir/typing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

absl::Status Error(const std::string& message) {
  return absl::InvalidArgumentError(message);
}
absl::Status Error(std::string_view op, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(op), message));
}

bool FitsInt(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return value == 0 || value == 1;
  if (dtype.is_uint()) {
    return value >= 0 &&
           (dtype.bits == 64 || value < (int64_t{1} << dtype.bits));
  }
  if (dtype.bits == 64) return true;
  const int64_t bound = int64_t{1} << (dtype.bits - 1);
  return value >= -bound && value < bound;
}

bool IsFloatConst(const Expr& expr) {
  return As<FloatConstNode>(expr) != nullptr;
}
bool IsConst(const Expr& expr) {
  return As<IntConstNode>(expr) != nullptr || IsFloatConst(expr);
}

// A weak expression as `dtype`: constants and choices between them.
absl::StatusOr<Expr> ConvertWeak(const Expr& expr, DataType dtype) {
  if (const auto* select = As<SelectNode>(expr)) {
    TF_ASSIGN_OR_RETURN(Expr a, ConvertWeak(select->true_value, dtype));
    TF_ASSIGN_OR_RETURN(Expr b, ConvertWeak(select->false_value, dtype));
    return MakeSelect(select->condition, std::move(a), std::move(b));
  }
  if (const auto* call = As<CallNode>(expr)) {
    TF_ASSIGN_OR_RETURN(Expr a, ConvertWeak(call->args[1], dtype));
    TF_ASSIGN_OR_RETURN(Expr b, ConvertWeak(call->args[2], dtype));
    return IfThenElseExpr(call->args[0], std::move(a), std::move(b));
  }
  return ConvertConst(expr, dtype);
}

bool LoadsInt64(const Expr& expr) {
  bool found = false;
  PostOrderExprs(expr, [&](const Expr& e) {
    found |= As<LoadNode>(e) != nullptr && e->dtype.is_index();
  });
  return found;
}

std::string CastAdvice(DataType to) {
  return absl::StrCat("write T.Cast(\"", to.ToString(), "\", ...)");
}

bool IsIntegerOnly(BinaryOp op) {
  switch (op) {
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return true;
    default:
      return false;
  }
}
bool IsDivision(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod ||
         op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
}

// Constant operands of two weak floats.
absl::StatusOr<Expr> FoldWeakFloats(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return FloatConst(a + b, DataType::Float(64));
    case BinaryOp::kSub:
      return FloatConst(a - b, DataType::Float(64));
    case BinaryOp::kMul:
      return FloatConst(a * b, DataType::Float(64));
    case BinaryOp::kDiv:
      if (b == 0) return Error("division by zero");
      return FloatConst(a / b, DataType::Float(64));
    case BinaryOp::kFloorDiv:
      if (b == 0) return Error("division by zero");
      return FloatConst(std::floor(a / b), DataType::Float(64));
    case BinaryOp::kFloorMod:
      if (b == 0) return Error("division by zero");
      return FloatConst(a - std::floor(a / b) * b, DataType::Float(64));
    case BinaryOp::kMin:
      return FloatConst(std::min(a, b), DataType::Float(64));
    case BinaryOp::kMax:
      return FloatConst(std::max(a, b), DataType::Float(64));
    case BinaryOp::kEQ:
      return BoolConst(a == b);
    case BinaryOp::kNE:
      return BoolConst(a != b);
    case BinaryOp::kLT:
      return BoolConst(a < b);
    case BinaryOp::kLE:
      return BoolConst(a <= b);
    case BinaryOp::kGT:
      return BoolConst(a > b);
    case BinaryOp::kGE:
      return BoolConst(a >= b);
    default:
      return Error(BinaryOpName(op), " needs integers");
  }
}

// Constants that remain weak carry full precision: a bare 0.1 meeting a
// float64 must be float64's 0.1.
void Settle(Value& value) {
  if (!value.weak || !value.expr->dtype.is_float()) return;
  if (const auto converted = ConvertWeak(value.expr, DataType::Float(32));
      converted.ok()) {
    value.expr = *converted;
    value.weak = false;
  }
}

}  // namespace

double RoundTo(DataType dtype, double value) {
  if (dtype == DataType::Float(64)) return value;
  const float single = static_cast<float>(value);
  if (dtype == DataType::Float(16)) return HalfToFloat(FloatToHalf(single));
  if (dtype == DataType::BFloat16()) {
    return BFloatToFloat(FloatToBFloat(single));
  }
  return single;
}

absl::StatusOr<Expr> ConvertConst(const Expr& constant, DataType dtype) {
  if (const auto* real = As<FloatConstNode>(constant)) {
    if (dtype.is_float()) {
      return FloatConst(RoundTo(dtype, real->value), dtype);
    }
    if (dtype.is_integral() && std::nearbyint(real->value) == real->value &&
        std::abs(real->value) < 9e15 &&
        FitsInt(static_cast<int64_t>(real->value), dtype)) {
      return IntConst(static_cast<int64_t>(real->value), dtype);
    }
    return Error(absl::StrCat("a float literal is no ", dtype.ToString()));
  }
  const int64_t value = *AsInt(constant);
  if (dtype.is_float()) {
    return FloatConst(RoundTo(dtype, static_cast<double>(value)), dtype);
  }
  if (!FitsInt(value, dtype)) {
    return Error(absl::StrCat(value, " does not fit in ", dtype.ToString()));
  }
  return IntConst(value, dtype);
}

absl::Status Unify(Value& a, Value& b) {
  const DataType x = a.expr->dtype;
  const DataType y = b.expr->dtype;
  if (a.weak && b.weak) {
    if (x == y) return absl::OkStatus();
    Value& integer = x.is_float() ? b : a;
    TF_ASSIGN_OR_RETURN(integer.expr,
                        ConvertWeak(integer.expr, DataType::Float(64)));
    return absl::OkStatus();
  }
  if (a.weak || b.weak) {
    Value& weak = a.weak ? a : b;
    const DataType other = (a.weak ? b : a).expr->dtype;
    if (other.is_bool()) {
      return Error("a number where the other operand is bool");
    }
    if (weak.expr->dtype.is_float() && !other.is_float()) {
      return Error(absl::StrCat("a float literal meets ", other.ToString(),
                                "; ", CastAdvice(DataType::Float(32)),
                                " around the integer"));
    }
    TF_ASSIGN_OR_RETURN(weak.expr, ConvertWeak(weak.expr, other));
    weak.weak = false;
    return absl::OkStatus();
  }
  if (x == y) return absl::OkStatus();
  if (x == DataType::Int(32) && y.is_index()) {
    a.expr = MakeCast(y, a.expr);
    return absl::OkStatus();
  }
  if (y == DataType::Int(32) && x.is_index()) {
    b.expr = MakeCast(x, b.expr);
    return absl::OkStatus();
  }
  const DataType to = y.is_float() && !x.is_float() ? y : x;
  return Error(absl::StrCat("operands of dtypes ", x.ToString(), " and ",
                            y.ToString(), "; ", CastAdvice(to)));
}

absl::StatusOr<Expr> Adapt(const Value& value, DataType dtype,
                           const std::string& what) {
  const DataType from = value.expr->dtype;
  if (value.weak || (IsConst(value.expr) && from != dtype && !from.is_bool() &&
                     !dtype.is_bool())) {
    if (dtype.is_bool()) return Error(what + " is a number, not bool");
    absl::StatusOr<Expr> out = ConvertWeak(value.expr, dtype);
    if (!out.ok()) {
      return Error(
          absl::StrCat(what, ": ", std::string(out.status().message())));
    }
    return out;
  }
  if (from == dtype) return value.expr;
  if (from == DataType::Int(32) && dtype.is_index()) {
    return MakeCast(dtype, value.expr);
  }
  if (from.is_index() && dtype.is_integral() && !LoadsInt64(value.expr)) {
    return MakeCast(dtype, value.expr);
  }
  return Error(absl::StrCat(what, " has dtype ", from.ToString(), ", not ",
                            dtype.ToString(), "; ", CastAdvice(dtype)));
}

absl::StatusOr<Expr> AsIndex(const Value& value, const std::string& what) {
  const DataType dtype = value.expr->dtype;
  if (!dtype.is_integral()) {
    return Error(absl::StrCat(what, " has dtype ", dtype.ToString(),
                              ", not an integer"));
  }
  return MakeCast(DataType::Index(), value.expr);
}

absl::StatusOr<Value> BuildBinary(BinaryOp op, Value a, Value b) {
  Value out;
  out.depth = 1 + std::max(a.depth, b.depth);
  out.offset = a.offset;
  if (op == BinaryOp::kAnd || op == BinaryOp::kOr) {
    if (!a.expr->dtype.is_bool() || !b.expr->dtype.is_bool()) {
      const DataType bad =
          a.expr->dtype.is_bool() ? b.expr->dtype : a.expr->dtype;
      return Error(absl::StrCat("'", std::string(BinaryOpName(op)),
                                "' needs bool operands, not ", bad.ToString(),
                                "; compare with 0"));
    }
    out.expr = FoldBinary(op, a.expr, b.expr);
    return out;
  }
  TF_RETURN_IF_ERROR(Unify(a, b));
  const DataType dtype = a.expr->dtype;
  const std::string name(BinaryOpName(op));
  if (dtype.is_bool() && op != BinaryOp::kEQ && op != BinaryOp::kNE &&
      op != BinaryOp::kBitAnd && op != BinaryOp::kBitOr &&
      op != BinaryOp::kBitXor) {
    return Error(absl::StrCat("'", name, "' of bool operands; use and, or, not",
                              " or T.Cast"));
  }
  if (dtype.is_float() && IsIntegerOnly(op)) {
    return Error(
        absl::StrCat("'", name, "' needs integers, not ", dtype.ToString()));
  }
  const auto* fa = As<FloatConstNode>(a.expr);
  const auto* fb = As<FloatConstNode>(b.expr);
  if (a.weak && b.weak && fa != nullptr && fb != nullptr) {
    TF_ASSIGN_OR_RETURN(out.expr, FoldWeakFloats(op, fa->value, fb->value));
    out.weak = out.expr->dtype.is_float();
    return out;
  }
  if (a.weak && b.weak) {
    Settle(a);
    Settle(b);
  }
  if (IsDivision(op) && dtype.is_integral() && IsConstInt(b.expr, 0)) {
    return Error("division by zero");
  }
  const bool constants = AsInt(a.expr) && AsInt(b.expr);
  if ((op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight) &&
      AsInt(b.expr) && (*AsInt(b.expr) < 0 || *AsInt(b.expr) >= dtype.bits)) {
    return Error(
        absl::StrCat("shift of ", dtype.ToString(), " by ", *AsInt(b.expr)));
  }
  if (constants && dtype.is_index() &&
      (op == BinaryOp::kShiftLeft || op == BinaryOp::kShiftRight)) {
    const int64_t x = *AsInt(a.expr);
    const int64_t n = *AsInt(b.expr);
    out.expr =
        IntConst(op == BinaryOp::kShiftRight
                     ? x >> n
                     : static_cast<int64_t>(static_cast<uint64_t>(x) << n));
    out.weak = a.weak && b.weak;
    return out;
  }
  out.expr = constants ? FoldBinary(op, a.expr, b.expr)
                       : MakeBinary(op, a.expr, b.expr);
  if (constants && dtype.is_index() && As<IntConstNode>(out.expr) == nullptr) {
    return Error(absl::StrCat("the constant ", ToString(out.expr),
                              " does not fit in int64"));
  }
  out.weak = a.weak && b.weak && constants && out.expr->dtype.is_index();
  return out;
}

absl::StatusOr<Value> BuildCall(Intrinsic op, std::vector<Value> args) {
  const std::string name = absl::StrCat("T.", std::string(IntrinsicName(op)));
  for (size_t i = 1; i < args.size(); ++i) {
    TF_RETURN_IF_ERROR(Unify(args[0], args[i]));
  }
  for (size_t i = 1; i + 1 < args.size(); ++i) {
    TF_RETURN_IF_ERROR(Unify(args[0], args[i]));
  }
  const bool integer = op == Intrinsic::kPopcount || op == Intrinsic::kClz;
  Value out;
  std::vector<Expr> exprs;
  for (Value& arg : args) {
    if (arg.weak && op != Intrinsic::kAbs && !integer) {
      TF_ASSIGN_OR_RETURN(arg.expr, ConvertWeak(arg.expr, DataType::Float(32)));
      arg.weak = false;
    }
    Settle(arg);
    const DataType dtype = arg.expr->dtype;
    const bool fits = integer                 ? dtype.is_integral()
                      : op == Intrinsic::kAbs ? !dtype.is_bool()
                                              : dtype.is_float();
    if (!fits) {
      return Error(absl::StrCat(
          name, " of ", dtype.ToString(), "; ",
          CastAdvice(integer ? DataType::Int(64) : DataType::Float(32))));
    }
    out.depth = std::max(out.depth, 1 + arg.depth);
    exprs.push_back(arg.expr);
  }
  out.expr = MakeCall(op, std::move(exprs));
  return out;
}

absl::StatusOr<Value> BuildInverseHyperbolic(const std::string& name, Value a) {
  Settle(a);
  if (a.weak) {
    TF_ASSIGN_OR_RETURN(a.expr, ConvertWeak(a.expr, DataType::Float(32)));
  }
  const DataType dtype = a.expr->dtype;
  if (!dtype.is_float()) {
    return Error(absl::StrCat("T.", name, " of ", dtype.ToString(), "; ",
                              CastAdvice(DataType::Float(32))));
  }
  const Var x = MakeLetVar("x", dtype);
  const Expr one = ConstOf(dtype, 1);
  const auto call = [](Intrinsic op, Expr arg) {
    return MakeCall(op, {std::move(arg)});
  };
  Expr body;
  if (name == "atanh") {
    body = (call(Intrinsic::kLog1p, x) -
            call(Intrinsic::kLog1p, ConstOf(dtype, 0) - x)) *
           FloatConst(0.5, dtype);
  } else if (name == "acosh") {
    body = call(Intrinsic::kLog,
                x + call(Intrinsic::kSqrt, (x - one) * (x + one)));
  } else {
    // log(|x| + sqrt(x^2 + 1)) without cancellation near zero.
    const Expr magnitude = call(Intrinsic::kAbs, x);
    const Expr square = Expr(x) * x;
    const Expr root = call(Intrinsic::kSqrt, square + one);
    const Expr sum = magnitude + MakeBinary(BinaryOp::kDiv, square, root + one);
    body =
        MakeCall(Intrinsic::kCopySign, {call(Intrinsic::kLog1p, sum), Expr(x)});
  }
  Value out;
  out.expr = MakeLet(x, a.expr, std::move(body));
  out.depth = a.depth + 8;
  return out;
}

absl::StatusOr<Value> BuildChoice(bool select, Value condition, Value a,
                                  Value b) {
  if (!condition.expr->dtype.is_bool()) {
    return Error(absl::StrCat("the condition has dtype ",
                              condition.expr->dtype.ToString(), ", not bool"));
  }
  TF_RETURN_IF_ERROR(Unify(a, b));
  Value out;
  out.depth = 1 + std::max({condition.depth, a.depth, b.depth});
  out.weak = a.weak && b.weak;
  out.expr = select ? MakeSelect(condition.expr, a.expr, b.expr)
                    : IfThenElseExpr(condition.expr, a.expr, b.expr);
  return out;
}

absl::StatusOr<Value> BuildNegation(Value a) {
  const DataType dtype = a.expr->dtype;
  if (dtype.is_bool()) return Error("'-' of a bool; use not");
  if (const auto* real = As<FloatConstNode>(a.expr)) {
    a.expr = FloatConst(-real->value, dtype);
    return a;
  }
  const auto value = AsInt(a.expr);
  if (value && dtype.is_int() && *value != INT64_MIN) {
    if (!FitsInt(-*value, dtype)) {
      return Error(
          absl::StrCat("-", *value, " does not fit in ", dtype.ToString()));
    }
    a.expr = IntConst(-*value, dtype);
    return a;
  }
  if (dtype.is_uint()) return Error("'-' of an unsigned integer");
  Settle(a);
  Value minus_one;
  minus_one.expr = ConstOf(a.expr->dtype, -1);
  return BuildBinary(BinaryOp::kMul, std::move(a), std::move(minus_one));
}

absl::StatusOr<Value> BuildComplement(Value a) {
  const DataType dtype = a.expr->dtype;
  if (dtype.is_bool()) {
    a.expr = MakeNot(a.expr);
    ++a.depth;
    return a;
  }
  if (!dtype.is_integral()) return Error("'~' needs an integer");
  Value ones;
  ones.expr = IntConst(
      dtype.is_uint() && dtype.bits < 64 ? (int64_t{1} << dtype.bits) - 1 : -1,
      dtype);
  ones.weak = a.weak;
  return BuildBinary(BinaryOp::kBitXor, std::move(a), std::move(ones));
}

absl::StatusOr<Value> BuildCast(DataType dtype, Value a) {
  Value out;
  out.depth = 1 + a.depth;
  out.offset = a.offset;
  if (a.weak && a.expr->dtype.is_float() && dtype.is_float()) {
    TF_ASSIGN_OR_RETURN(out.expr, ConvertWeak(a.expr, dtype));
    return out;
  }
  Settle(a);
  // Folds no more than MakeCast does, so that printed text reads back as is.
  out.expr = MakeCast(dtype, a.expr);
  return out;
}

absl::StatusOr<Value> BuildReinterpret(DataType dtype, Value a) {
  if (a.weak || a.expr->dtype.is_index()) {
    const DataType own = a.expr->dtype.is_float() ? DataType::Float(dtype.bits)
                                                  : DataType::Int(dtype.bits);
    TF_ASSIGN_OR_RETURN(a.expr, Adapt(a, own, "T.reinterpret"));
    a.weak = false;
  }
  const DataType from = a.expr->dtype;
  if (!CanReinterpret(dtype, from)) {
    const bool narrow = (dtype.is_float() && dtype.bits < 32) ||
                        (from.is_float() && from.bits < 32);
    return Error(absl::StrCat(
        "T.reinterpret reads ", from.ToString(), " as ", dtype.ToString(),
        narrow ? "; 16-bit floats have no bits here (code computes them in "
                 "float32), cast them to float32"
               : ": it takes integers and floats of one width"));
  }
  a.expr = MakeReinterpret(dtype, a.expr);
  ++a.depth;
  return a;
}

}  // namespace tilefarm::ir
