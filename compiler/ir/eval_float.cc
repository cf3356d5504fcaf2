// Expressions of floating-point dtypes. All but float64 compute in float32 and
// round each operation.
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/eval_nodes.h"
#include "compiler/ir/float16.h"

namespace tilefarm::ir {

FloatEvalPtr EvalCompiler::FloatBinary(const BinaryNode& node) {
  const bool single = IsSingle(node.dtype);
  const auto compute = [&](auto f) {
    return [&]() -> FloatEvalPtr {
      if (single) {
        return MakeFloat(
            [a = Float(node.a), b = Float(node.b), f](Frame& frame) -> double {
              const auto x = static_cast<float>(a->Eval(frame));
              return f(x, static_cast<float>(b->Eval(frame)));
            });
      }
      return MakeFloat(
          [a = Float(node.a), b = Float(node.b), f](Frame& frame) -> double {
            const double x = a->Eval(frame);
            return f(x, b->Eval(frame));
          });
    }();
  };
  switch (node.op) {
    case BinaryOp::kAdd:
      return compute([](auto x, auto y) { return x + y; });
    case BinaryOp::kSub:
      return compute([](auto x, auto y) { return x - y; });
    case BinaryOp::kMul:
      return compute([](auto x, auto y) { return x * y; });
    case BinaryOp::kDiv:
      return compute([](auto x, auto y) { return x / y; });
    case BinaryOp::kMin:
      return compute([](auto x, auto y) { return x < y ? x : y; });
    case BinaryOp::kMax:
      return compute([](auto x, auto y) { return x > y ? x : y; });
    case BinaryOp::kFloorDiv:
      return compute([](auto x, auto y) { return std::floor(x / y); });
    case BinaryOp::kFloorMod:
      return compute([](auto x, auto y) { return x - std::floor(x / y) * y; });
    case BinaryOp::kMod:
      return compute([](auto x, auto y) { return std::fmod(x, y); });
    default:
      break;
  }
  TF_CHECK(false && "an operator of floats");
  return nullptr;
}

FloatEvalPtr EvalCompiler::FloatCall(const CallNode& node) {
  const bool single = IsSingle(node.dtype);
  if (node.op == Intrinsic::kIfThenElse) {
    return MakeFloat([c = Int(node.args[0]), a = Float(node.args[1]),
                      b = Float(node.args[2])](Frame& frame) {
      return c->Eval(frame) != 0 ? a->Eval(frame) : b->Eval(frame);
    });
  }
  if (node.op == Intrinsic::kReinterpret) {
    return MakeFloat([single, a = Int(node.args[0])](Frame& frame) -> double {
      const int64_t bits = a->Eval(frame);
      return single ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                    : std::bit_cast<double>(bits);
    });
  }
  std::vector<FloatEvalPtr> args;
  for (const Expr& arg : node.args) args.push_back(Float(arg));
  if (node.op == Intrinsic::kFma) {
    return MakeFloat([single, a = std::move(args[0]), b = std::move(args[1]),
                      c = std::move(args[2])](Frame& frame) -> double {
      const double x = a->Eval(frame);
      const double y = b->Eval(frame);
      const double z = c->Eval(frame);
      // A float result must be rounded once, so do not compute it in double.
      return single ? std::fma(static_cast<float>(x), static_cast<float>(y),
                               static_cast<float>(z))
                    : std::fma(x, y, z);
    });
  }
  // Computed in double, then rounded: at most one ulp from the exact value.
  const auto round = [single](double value) {
    return single ? static_cast<float>(value) : value;
  };
  if (args.size() == 2) {
    using Function = double (*)(double, double);
    const Function function =
        node.op == Intrinsic::kPow
            ? static_cast<Function>(
                  [](double x, double y) { return std::pow(x, y); })
        : node.op == Intrinsic::kAtan2
            ? static_cast<Function>(
                  [](double x, double y) { return std::atan2(x, y); })
            : static_cast<Function>(
                  [](double x, double y) { return std::copysign(x, y); });
    return MakeFloat([function, round, a = std::move(args[0]),
                      b = std::move(args[1])](Frame& frame) -> double {
      const double x = a->Eval(frame);
      return round(function(x, b->Eval(frame)));
    });
  }
  const auto unary = [&](double (*function)(double)) {
    return MakeFloat(
        [function, round, a = std::move(args[0])](Frame& frame) -> double {
          return round(function(a->Eval(frame)));
        });
  };
  switch (node.op) {
    case Intrinsic::kExp:
      return unary([](double x) { return std::exp(x); });
    case Intrinsic::kExp2:
      return unary([](double x) { return std::exp2(x); });
    case Intrinsic::kLog:
      return unary([](double x) { return std::log(x); });
    case Intrinsic::kLog2:
      return unary([](double x) { return std::log2(x); });
    case Intrinsic::kLog10:
      return unary([](double x) { return std::log10(x); });
    case Intrinsic::kLog1p:
      return unary([](double x) { return std::log1p(x); });
    case Intrinsic::kSqrt:
      return unary([](double x) { return std::sqrt(x); });
    case Intrinsic::kRsqrt:
      return unary([](double x) { return 1.0 / std::sqrt(x); });
    case Intrinsic::kTanh:
      return unary([](double x) { return std::tanh(x); });
    case Intrinsic::kSigmoid:
      return unary([](double x) { return 1.0 / (1.0 + std::exp(-x)); });
    case Intrinsic::kErf:
      return unary([](double x) { return std::erf(x); });
    case Intrinsic::kSin:
      return unary([](double x) { return std::sin(x); });
    case Intrinsic::kCos:
      return unary([](double x) { return std::cos(x); });
    case Intrinsic::kTan:
      return unary([](double x) { return std::tan(x); });
    case Intrinsic::kSinh:
      return unary([](double x) { return std::sinh(x); });
    case Intrinsic::kCosh:
      return unary([](double x) { return std::cosh(x); });
    case Intrinsic::kAtan:
      return unary([](double x) { return std::atan(x); });
    case Intrinsic::kAsin:
      return unary([](double x) { return std::asin(x); });
    case Intrinsic::kAcos:
      return unary([](double x) { return std::acos(x); });
    case Intrinsic::kAbs:
      return unary([](double x) { return std::fabs(x); });
    case Intrinsic::kFloor:
      return unary([](double x) { return std::floor(x); });
    case Intrinsic::kCeil:
      return unary([](double x) { return std::ceil(x); });
    case Intrinsic::kRound:
      return unary([](double x) { return std::round(x); });
    case Intrinsic::kNearbyint:
      return unary([](double x) { return std::nearbyint(x); });
    case Intrinsic::kTrunc:
      return unary([](double x) { return std::trunc(x); });
    default:
      break;
  }
  TF_CHECK(false && "a function of floats");
  return nullptr;
}

FloatEvalPtr EvalCompiler::Float(const Expr& expr) {
  const DataType dtype = expr->dtype.element();
  switch (expr->kind) {
    case ExprKind::kVar:
      return MakeFloat([slot = static_cast<size_t>(Slot(As<VarNode>(expr)))](
                           Frame& frame) { return frame.floats[slot]; });
    case ExprKind::kFloatConst: {
      double value = As<FloatConstNode>(expr)->value;
      if (IsSingle(dtype)) value = static_cast<float>(value);
      return MakeFloat([value](Frame&) { return value; });
    }
    case ExprKind::kBinary:
      return FloatBinary(*As<BinaryNode>(expr));
    case ExprKind::kCast: {
      const Expr& value = As<CastNode>(expr)->value;
      const auto rounded = [dtype](auto x) -> double {
        if (!IsSingle(dtype)) return static_cast<double>(x);
        return RoundTo(dtype, static_cast<float>(x));
      };
      if (value->dtype.is_float()) {
        return MakeFloat([a = Float(value), rounded](Frame& frame) {
          return rounded(a->Eval(frame));
        });
      }
      const bool unsigned64 = IsUnsigned64(value->dtype.element());
      return MakeFloat([a = Int(value), rounded, unsigned64](Frame& frame) {
        const int64_t x = a->Eval(frame);
        return unsigned64 ? rounded(static_cast<uint64_t>(x)) : rounded(x);
      });
    }
    case ExprKind::kSelect: {
      const auto& node = *As<SelectNode>(expr);
      return MakeFloat([c = Int(node.condition), a = Float(node.true_value),
                        b = Float(node.false_value)](Frame& frame) {
        const double x = a->Eval(frame);
        const double y = b->Eval(frame);
        return c->Eval(frame) != 0 ? x : y;
      });
    }
    case ExprKind::kCall:
      return FloatCall(*As<CallNode>(expr));
    case ExprKind::kLoad: {
      const auto& node = *As<LoadNode>(expr);
      IntEvalPtr predicate;
      if (node.predicate != nullptr) predicate = Int(node.predicate);
      return MakeFloat(
          [place = Offset(node.buffer, node.indices),
           predicate = std::move(predicate), dtype,
           slot = static_cast<size_t>(Slot(node.buffer.get()))](Frame& frame) {
            if (predicate != nullptr && predicate->Eval(frame) == 0) return 0.0;
            const int64_t at = place.EvalForRead(frame, slot);
            return at < 0 ? 0.0 : ReadFloat(frame.data[slot], at, dtype);
          });
    }
    case ExprKind::kLet: {
      const auto& node = *As<LetNode>(expr);
      AnyEval value = Any(node.value);
      const auto slot = static_cast<size_t>(Slot(node.var.get()));
      return MakeFloat([value = std::move(value), slot,
                        body = Float(node.body)](Frame& frame) {
        if (value.real != nullptr) {
          frame.floats[slot] = value.real->Eval(frame);
        } else {
          frame.ints[slot] = value.integer->Eval(frame);
        }
        return body->Eval(frame);
      });
    }
    case ExprKind::kBroadcast:
      return Float(As<BroadcastNode>(expr)->value);
    default:
      break;
  }
  TF_CHECK(false && "a float expression");
  return nullptr;
}

}  // namespace tilefarm::ir
