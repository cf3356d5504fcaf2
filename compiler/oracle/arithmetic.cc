#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/tolerance.h"
#include "compiler/oracle/arithmetic_internal.h"

namespace tilefarm::oracle {
namespace {

using ir::BinaryOp;
using ir::DataType;

double Epsilon(DataType dtype) {
  if (dtype.code == ir::TypeCode::kBFloat) return 0x1p-7;
  return dtype.bits == 64 ? 0x1p-52 : dtype.bits == 32 ? 0x1p-23 : 0x1p-10;
}
double ComputedEpsilon(DataType dtype) {
  return IsDouble(dtype) ? 0x1p-52 : 0x1p-23;
}
double LeastNormal(DataType dtype) {
  return IsDouble(dtype) ? std::numeric_limits<double>::min()
                         : std::numeric_limits<float>::min();
}

void CarryAccumulator(const Value& a, const Value& b, Value* result) {
  result->accumulator = a.accumulator || b.accumulator;
  result->summed = a.summed || b.summed;
}

}  // namespace

// --- Small pieces --------------------------------------------------------

llvm::Value* Arithmetic::Double(double value) {
  return llvm::ConstantFP::get(b_.getDoubleTy(), value);
}
llvm::Value* Arithmetic::Unary(llvm::Intrinsic::ID id, llvm::Value* a) {
  return b_.CreateUnaryIntrinsic(id, a);
}
llvm::Value* Arithmetic::Abs(llvm::Value* a) {
  return Unary(llvm::Intrinsic::fabs, a);
}
llvm::Value* Arithmetic::ErrorOf(const Value& a) {
  if (a.error != nullptr) return a.error;
  return a.value->getType()->isIntegerTy(1)
             ? static_cast<llvm::Value*>(b_.getFalse())
             : Double(0);
}
llvm::Value* Arithmetic::Larger(llvm::Value* a, llvm::Value* b) {
  return b_.CreateSelect(b_.CreateFCmpUGT(a, b), a, b);
}
llvm::Value* Arithmetic::WhereFinite(llvm::Value* value, llvm::Value* error) {
  llvm::Value* infinity = Double(INFINITY);
  llvm::Value* known =
      b_.CreateSelect(b_.CreateFCmpORD(error, error), error, infinity);
  return b_.CreateSelect(b_.CreateFCmpOLT(Abs(value), infinity), known,
                         Double(0));
}
llvm::Value* Arithmetic::Either(llvm::Value* a, llvm::Value* b) {
  if (a == nullptr) return b;
  return b == nullptr ? a : b_.CreateOr(a, b);
}
llvm::Value* Arithmetic::AsDouble(DataType dtype, llvm::Value* value) {
  if (dtype.is_float()) return value;
  return dtype.is_int() ? b_.CreateSIToFP(value, b_.getDoubleTy())
                        : b_.CreateUIToFP(value, b_.getDoubleTy());
}

llvm::Value* Arithmetic::Library(const char* name,
                                 std::vector<llvm::Value*> args) {
  const std::vector<llvm::Type*> types(args.size(), b_.getDoubleTy());
  llvm::FunctionCallee callee = module_.getOrInsertFunction(
      name, llvm::FunctionType::get(b_.getDoubleTy(), types, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    // errno is not used here.
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
  }
  return b_.CreateCall(callee, args);
}

// The rounding error that computing a value adds to its bound.
llvm::Value* Arithmetic::Own(DataType dtype, llvm::Value* value,
                             double roundings) {
  const double factor = kToleranceFactor * ComputedEpsilon(dtype) * roundings;
  return b_.CreateFAdd(b_.CreateFMul(Abs(value), Double(factor)),
                       Double(LeastNormal(dtype)));
}

Value Arithmetic::Rounded(DataType dtype, llvm::Value* value,
                          llvm::Value* error, double roundings) {
  Value result;
  result.value = unrounded_ || IsDouble(dtype)
                     ? value
                     : RoundTo(DataType::Float(32), value);
  result.error = Own(dtype, value, roundings);
  if (error != nullptr) result.error = b_.CreateFAdd(result.error, error);
  result.error = WhereFinite(result.value, result.error);
  return result;
}

Value Arithmetic::Monotone(const Value& x, const Function& f, bool positive) {
  Value result;
  result.value = f(x.value);
  if (x.error == nullptr) return result;
  const auto distance = [&](llvm::Value* at) {
    return Abs(b_.CreateFSub(f(at), result.value));
  };
  llvm::Value* below = b_.CreateFSub(x.value, x.error);
  if (positive) below = Larger(below, Double(0));
  result.error = WhereFinite(
      result.value,
      Larger(distance(b_.CreateFAdd(x.value, x.error)), distance(below)));
  return result;
}

llvm::Value* Arithmetic::BoundOfSum(DataType dtype, const Value& sum,
                                    llvm::Value* before, double terms) {
  const double unit = kToleranceFactor * Epsilon(dtype);
  llvm::Value* term = Abs(b_.CreateFSub(sum.value, before));
  llvm::Value* error =
      b_.CreateFAdd(ErrorOf(sum), b_.CreateFMul(term, Double(unit)));
  return Larger(error,
                b_.CreateFMul(Abs(sum.value), Double(unit * std::sqrt(terms))));
}

// Each of both roundings is by half of eps at most, relative to the value or,
// of subnormal numbers, to the least normal one.
Value Arithmetic::AtAnyScale(DataType dtype, const Value& a) {
  const double least =
      dtype.code == ir::TypeCode::kBFloat ? LeastNormal(dtype) : 0x1p-14;
  llvm::Value* size = Larger(Abs(a.value), Double(least));
  // What is 0 is so at any scale, or too small to matter.
  llvm::Value* more =
      b_.CreateSelect(b_.CreateFCmpOEQ(a.value, Double(0)), Double(0),
                      b_.CreateFMul(size, Double(Epsilon(dtype))));
  Value result = a;
  result.error = WhereFinite(a.value, b_.CreateFAdd(ErrorOf(a), more));
  return result;
}

// --- Operators -----------------------------------------------------------

Value Arithmetic::Binary(BinaryOp op, DataType dtype, const Value& a,
                         const Value& b) {
  if (op == BinaryOp::kAnd || op == BinaryOp::kOr) {
    return {op == BinaryOp::kAnd ? b_.CreateAnd(a.value, b.value)
                                 : b_.CreateOr(a.value, b.value),
            Either(a.error, b.error)};
  }
  if (ir::IsComparison(op)) return Compare(op, dtype, a, b);
  return dtype.is_float() ? FloatBinary(op, dtype, a, b)
                          : IntBinary(op, dtype, a, b);
}

Value Arithmetic::Not(const Value& a) {
  return {b_.CreateNot(a.value), a.error};
}

Value Arithmetic::FloatBinary(BinaryOp op, DataType dtype, const Value& a,
                              const Value& b) {
  const bool any = a.error != nullptr || b.error != nullptr;
  const auto sum_of_errors = [&]() -> llvm::Value* {
    return any ? b_.CreateFAdd(ErrorOf(a), ErrorOf(b)) : nullptr;
  };
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      llvm::Value* sum = op == BinaryOp::kAdd ? b_.CreateFAdd(a.value, b.value)
                                              : b_.CreateFSub(a.value, b.value);
      if (!unrounded_ || a.accumulator == b.accumulator) {
        return Rounded(dtype, sum, sum_of_errors());
      }
      // The schedule may choose another order with other partial sums, whose
      // rounding BoundOfSum bounds.
      return {sum, sum_of_errors(), /*accumulator=*/true, /*summed=*/true};
    }
    case BinaryOp::kMul: {
      llvm::Value* error = nullptr;
      if (any) {
        llvm::Value* ea = ErrorOf(a);
        llvm::Value* eb = ErrorOf(b);
        error =
            b_.CreateFAdd(b_.CreateFMul(b_.CreateFAdd(Abs(a.value), ea), eb),
                          b_.CreateFMul(Abs(b.value), ea));
      }
      // An accumulated product may be rounded to the buffer's dtype each time.
      const bool narrow = unrounded_ && (a.accumulator || b.accumulator);
      Value product =
          Rounded(dtype, b_.CreateFMul(a.value, b.value), error,
                  narrow ? Epsilon(dtype) / ComputedEpsilon(dtype) : 1);
      CarryAccumulator(a, b, &product);
      return product;
    }
    case BinaryOp::kDiv:
      return Quotient(dtype, a, b);
    case BinaryOp::kFloorDiv:
      return Monotone(Quotient(dtype, a, b), [&](llvm::Value* x) {
        return Unary(llvm::Intrinsic::floor, x);
      });
    case BinaryOp::kFloorMod:
      return Remainder(dtype, a, b, /*floors=*/true);
    case BinaryOp::kMod:
      return Remainder(dtype, a, b, /*floors=*/false);
    default:
      break;
  }
  // kMin, kMax.
  const auto choose = [&](llvm::Value* x, llvm::Value* y) {
    return b_.CreateSelect(
        op == BinaryOp::kMin ? b_.CreateFCmpOLT(x, y) : b_.CreateFCmpOGT(x, y),
        x, y);
  };
  Value chosen = {choose(a.value, b.value)};
  CarryAccumulator(a, b, &chosen);
  if (!any) return chosen;
  llvm::Value* ea = ErrorOf(a);
  llvm::Value* eb = ErrorOf(b);
  llvm::Value* above =
      choose(b_.CreateFAdd(a.value, ea), b_.CreateFAdd(b.value, eb));
  llvm::Value* below =
      choose(b_.CreateFSub(a.value, ea), b_.CreateFSub(b.value, eb));
  chosen.error =
      WhereFinite(chosen.value, Larger(b_.CreateFSub(above, chosen.value),
                                       b_.CreateFSub(chosen.value, below)));
  return chosen;
}

Value Arithmetic::Quotient(DataType dtype, const Value& a, const Value& b) {
  llvm::Value* quotient = b_.CreateFDiv(a.value, b.value);
  llvm::Value* divisor = Abs(b.value);
  llvm::Value* error = nullptr;
  if (b.error != nullptr) {
    error = b_.CreateFAdd(b_.CreateFMul(Abs(quotient), b.error), ErrorOf(a));
    divisor = b_.CreateFSub(divisor, b.error);
    llvm::Value* apart = b_.CreateFCmpOGT(divisor, Double(0));
    error =
        b_.CreateSelect(apart, b_.CreateFDiv(error, divisor), Double(INFINITY));
  } else if (a.error != nullptr) {
    error = b_.CreateFDiv(a.error, divisor);
  }
  return Rounded(dtype, quotient, error);
}

Value Arithmetic::Remainder(DataType dtype, const Value& a, const Value& b,
                            bool floors) {
  const Value quotient = Monotone(Quotient(dtype, a, b), [&](llvm::Value* x) {
    return Unary(floors ? llvm::Intrinsic::floor : llvm::Intrinsic::trunc, x);
  });
  if (floors) {
    return FloatBinary(BinaryOp::kSub, dtype, a,
                       FloatBinary(BinaryOp::kMul, dtype, quotient, b));
  }
  // The error is that of a - quotient * b.
  Value rest = FloatBinary(BinaryOp::kSub, dtype, a,
                           FloatBinary(BinaryOp::kMul, dtype, quotient, b));
  rest.value = b_.CreateFRem(a.value, b.value);
  rest.error = WhereFinite(rest.value, rest.error);
  return rest;
}

Value Arithmetic::Compare(BinaryOp op, DataType dtype, const Value& a,
                          const Value& b) {
  Value result;
  if (dtype.is_float()) {
    const auto predicate = [&] {
      switch (op) {
        case BinaryOp::kEQ:
          return llvm::CmpInst::FCMP_OEQ;
        case BinaryOp::kNE:
          return llvm::CmpInst::FCMP_UNE;
        case BinaryOp::kLT:
          return llvm::CmpInst::FCMP_OLT;
        case BinaryOp::kLE:
          return llvm::CmpInst::FCMP_OLE;
        case BinaryOp::kGT:
          return llvm::CmpInst::FCMP_OGT;
        default:
          return llvm::CmpInst::FCMP_OGE;
      }
    };
    result.value = b_.CreateFCmp(predicate(), a.value, b.value);
  } else {
    const bool is_signed = dtype.is_int();
    const auto predicate = [&] {
      switch (op) {
        case BinaryOp::kEQ:
          return llvm::CmpInst::ICMP_EQ;
        case BinaryOp::kNE:
          return llvm::CmpInst::ICMP_NE;
        case BinaryOp::kLT:
          return is_signed ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
        case BinaryOp::kLE:
          return is_signed ? llvm::CmpInst::ICMP_SLE : llvm::CmpInst::ICMP_ULE;
        case BinaryOp::kGT:
          return is_signed ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT;
        default:
          return is_signed ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE;
      }
    };
    result.value = b_.CreateICmp(predicate(), a.value, b.value);
  }
  if (a.error == nullptr && b.error == nullptr) return result;
  if (dtype.is_bool()) {
    result.error = Either(a.error, b.error);
    return result;
  }
  llvm::Value* error = b_.CreateFAdd(ErrorOf(a), ErrorOf(b));
  llvm::Value* apart =
      Abs(b_.CreateFSub(AsDouble(dtype, a.value), AsDouble(dtype, b.value)));
  result.error = b_.CreateAnd(b_.CreateFCmpOGT(error, Double(0)),
                              b_.CreateFCmpOLE(apart, error));
  return result;
}

Value Arithmetic::Select(DataType dtype, const Value& condition, const Value& a,
                         const Value& b) {
  Value result = {b_.CreateSelect(condition.value, a.value, b.value)};
  CarryAccumulator(a, b, &result);
  if (a.error == nullptr && b.error == nullptr && condition.error == nullptr) {
    return result;
  }
  result.error = b_.CreateSelect(condition.value, ErrorOf(a), ErrorOf(b));
  if (condition.error == nullptr) return result;
  // The condition may turn, so either operand may be selected.
  llvm::Value* both;
  if (dtype.is_bool()) {
    both = b_.CreateOr(b_.CreateXor(a.value, b.value),
                       b_.CreateOr(ErrorOf(a), ErrorOf(b)));
  } else {
    // NaN if one is NaN or both are infinite: their distance is infinite.
    llvm::Value* apart =
        Abs(b_.CreateFSub(AsDouble(dtype, a.value), AsDouble(dtype, b.value)));
    apart = b_.CreateSelect(b_.CreateFCmpORD(apart, apart), apart,
                            Double(INFINITY));
    both = b_.CreateFAdd(apart, Larger(ErrorOf(a), ErrorOf(b)));
  }
  result.error = b_.CreateSelect(condition.error, both, result.error);
  return result;
}

Value Arithmetic::Cast(DataType to, DataType from, const Value& a) {
  if (to.is_float() && from.is_float()) {
    // An accumulated value is rounded when it is read.
    return IsDouble(to) || a.accumulator || to == from ? a : Round(to, a);
  }
  llvm::Type* type = RegisterType(to);
  Value result;
  if (to.is_bool()) {
    llvm::Value* zero = llvm::Constant::getNullValue(a.value->getType());
    result.value = from.is_float() ? b_.CreateFCmpUNE(a.value, zero)
                                   : b_.CreateICmpNE(a.value, zero);
    if (a.error == nullptr || from.is_bool()) {
      result.error = a.error;
    } else {
      result.error =
          b_.CreateAnd(b_.CreateFCmpOGT(a.error, Double(0)),
                       b_.CreateFCmpOLE(Abs(AsDouble(from, a.value)), a.error));
    }
    return result;
  }
  // From here on, bools count as integers.
  llvm::Value* error = a.error;
  if (error != nullptr && from.is_bool()) {
    error = b_.CreateSelect(error, Double(1), Double(0));
  }
  if (to.is_float()) {
    // Round once, not through float64.
    llvm::Type* computed = IsDouble(to) ? b_.getDoubleTy() : b_.getFloatTy();
    result.value = from.is_int() ? b_.CreateSIToFP(a.value, computed)
                                 : b_.CreateUIToFP(a.value, computed);
    result.value = b_.CreateFPExt(result.value, b_.getDoubleTy());
    if (error != nullptr) {
      result.error = b_.CreateFAdd(error, Own(to, result.value, 1));
    }
    return to.bits == 16 ? Round(to, result) : result;
  }
  if (!from.is_float()) {
    result.value = from.is_int() ? b_.CreateSExtOrTrunc(a.value, type)
                                 : b_.CreateZExtOrTrunc(a.value, type);
    result.error = error;
    return result;
  }
  const auto saturated = [&](llvm::Value* x) {
    return b_.CreateIntrinsic(
        to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
        {type, b_.getDoubleTy()}, {x});
  };
  result.value = saturated(a.value);
  if (error == nullptr) return result;
  const Value steps =
      Monotone(a, [&](llvm::Value* x) { return AsDouble(to, saturated(x)); });
  result.error = steps.error;
  return result;
}

}  // namespace tilefarm::oracle
