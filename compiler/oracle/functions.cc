// Float functions, computed by the C library in float64.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/oracle/arithmetic_internal.h"

namespace tilefarm::oracle {

using ir::BinaryOp;
using ir::DataType;

Arithmetic::Function Arithmetic::FunctionOf(ir::Intrinsic op) {
  using ir::Intrinsic;
  const auto library = [this](const char* name) -> Function {
    return [this, name](llvm::Value* x) { return Library(name, {x}); };
  };
  const auto instruction = [this](llvm::Intrinsic::ID id) -> Function {
    return [this, id](llvm::Value* x) { return Unary(id, x); };
  };
  switch (op) {
    case Intrinsic::kExp:
      return library("exp");
    case Intrinsic::kExp2:
      return library("exp2");
    case Intrinsic::kLog:
      return library("log");
    case Intrinsic::kLog2:
      return library("log2");
    case Intrinsic::kLog10:
      return library("log10");
    case Intrinsic::kLog1p:
      return library("log1p");
    case Intrinsic::kTanh:
      return library("tanh");
    case Intrinsic::kErf:
      return library("erf");
    case Intrinsic::kTan:
      return library("tan");
    case Intrinsic::kSinh:
      return library("sinh");
    case Intrinsic::kAtan:
      return library("atan");
    case Intrinsic::kAsin:
      return library("asin");
    case Intrinsic::kAcos:
      return library("acos");
    case Intrinsic::kSin:
      return library("sin");
    case Intrinsic::kCos:
      return library("cos");
    case Intrinsic::kCosh:
      return library("cosh");
    case Intrinsic::kSqrt:
      return instruction(llvm::Intrinsic::sqrt);
    case Intrinsic::kRsqrt:
      return [this](llvm::Value* x) {
        return b_.CreateFDiv(Double(1), Unary(llvm::Intrinsic::sqrt, x));
      };
    case Intrinsic::kSigmoid:
      return [this](llvm::Value* x) {
        llvm::Value* e = Library("exp", {b_.CreateFNeg(x)});
        return b_.CreateFDiv(Double(1), b_.CreateFAdd(Double(1), e));
      };
    case Intrinsic::kFloor:
      return instruction(llvm::Intrinsic::floor);
    case Intrinsic::kCeil:
      return instruction(llvm::Intrinsic::ceil);
    case Intrinsic::kRound:
      return instruction(llvm::Intrinsic::round);
    case Intrinsic::kNearbyint:
      return instruction(llvm::Intrinsic::roundeven);
    case Intrinsic::kTrunc:
      return instruction(llvm::Intrinsic::trunc);
    default:
      return nullptr;
  }
}

Value Arithmetic::Call(ir::Intrinsic op, DataType dtype,
                       const std::vector<Value>& args, absl::Status* status) {
  using ir::Intrinsic;
  if (!dtype.is_float()) return IntCall(op, dtype, args, status);
  // Error of the approximations in generated code, in units in the last place.
  constexpr double kFunctionRoundings = 3;
  const Value& x = args[0];
  switch (op) {
    case Intrinsic::kAbs:
      return {Abs(x.value), x.error};
    case Intrinsic::kIsNan:
      return {b_.CreateFCmpUNO(x.value, x.value)};
    case Intrinsic::kIsInf:
      return {b_.CreateFCmpOEQ(Abs(x.value), Double(INFINITY))};
    case Intrinsic::kFma: {
      Value result =
          FloatBinary(BinaryOp::kAdd, dtype,
                      FloatBinary(BinaryOp::kMul, dtype, x, args[1]), args[2]);
      // The bound is that of both operations, but the value is rounded once.
      llvm::Type* type = IsDouble(dtype) ? b_.getDoubleTy() : b_.getFloatTy();
      std::vector<llvm::Value*> operands;
      for (const Value& arg : args) {
        operands.push_back(b_.CreateFPTrunc(arg.value, type));
      }
      if (!unrounded_) {
        result.value = b_.CreateFPExt(
            b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, operands),
            b_.getDoubleTy());
      }
      return result;
    }
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
    case Intrinsic::kNearbyint:
    case Intrinsic::kTrunc:
      return Monotone(x, FunctionOf(op));
    case Intrinsic::kSin:
    case Intrinsic::kCos: {
      // The slope is at most 1.
      llvm::Value* value = FunctionOf(op)(x.value);
      return Rounded(dtype, value, x.error, kFunctionRoundings);
    }
    case Intrinsic::kCosh: {
      // It grows with the magnitude of x.
      const Function f = FunctionOf(op);
      llvm::Value* value = f(x.value);
      llvm::Value* error = nullptr;
      if (x.error != nullptr) {
        error = b_.CreateFSub(f(b_.CreateFAdd(Abs(x.value), x.error)), value);
      }
      return Rounded(dtype, value, error, kFunctionRoundings);
    }
    case Intrinsic::kAtan2:
    case Intrinsic::kPow:
    case Intrinsic::kCopySign:
      return TwoArguments(op, dtype, x, args[1]);
    default:
      break;
  }
  const Function f = FunctionOf(op);
  if (f == nullptr) {
    *status = absl::InvalidArgumentError(
        absl::StrCat("T.", std::string(ir::IntrinsicName(op)),
                     " is not defined for ", dtype.ToString()));
    return {llvm::PoisonValue::get(b_.getDoubleTy())};
  }
  const Value plain = Monotone(x, f, /*positive=*/op == Intrinsic::kSqrt);
  return Rounded(dtype, plain.value, plain.error, kFunctionRoundings);
}

Value Arithmetic::TwoArguments(ir::Intrinsic op, DataType dtype, const Value& x,
                               const Value& y) {
  using ir::Intrinsic;
  const bool any = x.error != nullptr || y.error != nullptr;
  constexpr double kRoundings = 3;
  if (op == Intrinsic::kCopySign) {
    Value result = {
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x.value, y.value),
        x.error};
    if (y.error != nullptr) {
      llvm::Value* either = b_.CreateFCmpOLE(Abs(y.value), y.error);
      llvm::Value* twice = b_.CreateFAdd(Abs(x.value), Abs(x.value));
      result.error =
          b_.CreateFAdd(ErrorOf(x), b_.CreateSelect(either, twice, Double(0)));
    }
    return result;
  }
  if (op == Intrinsic::kPow) {
    llvm::Value* power = Library("pow", {x.value, y.value});
    llvm::Value* error = nullptr;
    // Monotone in each argument if the sign of the base does not change: the
    // extremes are at the corners.
    for (const int dx : {-1, 1}) {
      for (const int dy : {-1, 1}) {
        if (!any || (x.error == nullptr && dx > 0) ||
            (y.error == nullptr && dy > 0)) {
          continue;
        }
        const auto moved = [&](const Value& of, int by) {
          return by > 0 ? b_.CreateFAdd(of.value, ErrorOf(of))
                        : b_.CreateFSub(of.value, ErrorOf(of));
        };
        llvm::Value* apart = Abs(
            b_.CreateFSub(Library("pow", {moved(x, dx), moved(y, dy)}), power));
        error = error == nullptr ? apart : Larger(error, apart);
      }
    }
    return Rounded(dtype, power, error, kRoundings);
  }
  // kAtan2 of (x, y): only movement across the radius changes the angle.
  llvm::Value* angle = Library("atan2", {x.value, y.value});
  llvm::Value* error = nullptr;
  if (any) {
    llvm::Value* squares = b_.CreateFAdd(b_.CreateFMul(x.value, x.value),
                                         b_.CreateFMul(y.value, y.value));
    llvm::Value* across =
        b_.CreateFAdd(b_.CreateFMul(Abs(x.value), ErrorOf(y)),
                      b_.CreateFMul(Abs(y.value), ErrorOf(x)));
    error = b_.CreateFDiv(b_.CreateFAdd(across, across), squares);
    // Near the negative axis, x may change its sign, which turns the angle by 2
    // pi.
    llvm::Value* beside =
        b_.CreateAnd(b_.CreateFCmpOLT(y.value, Double(0)),
                     b_.CreateFCmpOLE(Abs(x.value), ErrorOf(x)));
    error = b_.CreateSelect(beside, Double(2 * M_PI), error);
  }
  return Rounded(dtype, angle, error, kRoundings);
}

}  // namespace tilefarm::oracle
