// Operations on integers and bools. No operation traps: division by zero is
// zero, overflow wraps, and shift counts are taken modulo the width.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/oracle/arithmetic_internal.h"

namespace tilefarm::oracle {

using ir::BinaryOp;
using ir::DataType;

llvm::Value* Arithmetic::IntDivision(BinaryOp op, bool is_signed,
                                     llvm::Value* a, llvm::Value* b) {
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::ConstantInt::get(type, 0);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  llvm::Value* by_zero = b_.CreateICmpEQ(b, zero);
  llvm::Value* unsafe = by_zero;
  if (is_signed) {
    // The lowest value divided by -1 wraps to itself, as if divided by 1.
    llvm::Value* lowest = llvm::ConstantInt::get(
        type, llvm::APInt::getSignedMinValue(type->getIntegerBitWidth()));
    unsafe = b_.CreateOr(
        unsafe, b_.CreateAnd(
                    b_.CreateICmpEQ(a, lowest),
                    b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type))));
  }
  llvm::Value* divisor = b_.CreateSelect(unsafe, one, b);
  llvm::Value* result;
  if (!is_signed) {
    result = quotient ? b_.CreateUDiv(a, divisor) : b_.CreateURem(a, divisor);
  } else {
    result = quotient ? b_.CreateSDiv(a, divisor) : b_.CreateSRem(a, divisor);
    if (op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod) {
      llvm::Value* rest = b_.CreateSRem(a, divisor);
      llvm::Value* below =
          b_.CreateAnd(b_.CreateICmpNE(rest, zero),
                       b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero));
      result = b_.CreateSelect(
          below,
          quotient ? b_.CreateSub(result, one) : b_.CreateAdd(rest, divisor),
          result);
    }
  }
  return b_.CreateSelect(by_zero, zero, result);
}

Value Arithmetic::IntBinary(BinaryOp op, DataType dtype, const Value& a,
                            const Value& b) {
  llvm::Value* x = a.value;
  llvm::Value* y = b.value;
  const bool is_signed = dtype.is_int();
  const auto count = [&] {
    return b_.CreateAnd(y,
                        llvm::ConstantInt::get(y->getType(), dtype.bits - 1u));
  };
  Value result;
  switch (op) {
    case BinaryOp::kAdd:
      result.value = b_.CreateAdd(x, y);
      break;
    case BinaryOp::kSub:
      result.value = b_.CreateSub(x, y);
      break;
    case BinaryOp::kMul:
      result.value = b_.CreateMul(x, y);
      break;
    case BinaryOp::kMin:
      result.value = b_.CreateSelect(
          is_signed ? b_.CreateICmpSLT(x, y) : b_.CreateICmpULT(x, y), x, y);
      break;
    case BinaryOp::kMax:
      result.value = b_.CreateSelect(
          is_signed ? b_.CreateICmpSGT(x, y) : b_.CreateICmpUGT(x, y), x, y);
      break;
    case BinaryOp::kBitAnd:
      result.value = b_.CreateAnd(x, y);
      break;
    case BinaryOp::kBitOr:
      result.value = b_.CreateOr(x, y);
      break;
    case BinaryOp::kBitXor:
      result.value = b_.CreateXor(x, y);
      break;
    case BinaryOp::kShiftLeft:
      result.value = b_.CreateShl(x, count());
      break;
    case BinaryOp::kShiftRight:
      result.value =
          is_signed ? b_.CreateAShr(x, count()) : b_.CreateLShr(x, count());
      break;
    default:
      result.value = IntDivision(op, is_signed, x, y);
  }
  if (a.error == nullptr && b.error == nullptr) return result;
  if (dtype.is_bool()) {
    result.error = Either(a.error, b.error);
    return result;
  }
  llvm::Value* ea = ErrorOf(a);
  llvm::Value* eb = ErrorOf(b);
  llvm::Value* either = b_.CreateFAdd(ea, eb);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      result.error = either;
      break;
    case BinaryOp::kMul:
      result.error = b_.CreateFAdd(
          b_.CreateFMul(b_.CreateFAdd(Abs(AsDouble(dtype, x)), ea), eb),
          b_.CreateFMul(Abs(AsDouble(dtype, y)), ea));
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      result.error = Larger(ea, eb);
      break;
    case BinaryOp::kShiftLeft: {
      // By an exact count it multiplies.
      llvm::Value* scaled = b_.CreateFMul(
          ea,
          b_.CreateUIToFP(
              b_.CreateShl(llvm::ConstantInt::get(x->getType(), 1), count()),
              b_.getDoubleTy()));
      result.error = b_.CreateSelect(b_.CreateFCmpOGT(eb, Double(0)),
                                     Double(INFINITY), scaled);
      break;
    }
    default:
      result.error = b_.CreateSelect(b_.CreateFCmpOGT(either, Double(0)),
                                     Double(INFINITY), Double(0));
  }
  return result;
}

Value Arithmetic::Reinterpret(DataType to, DataType from, const Value& a) {
  llvm::Type* int_type = b_.getIntNTy(to.bits);
  llvm::Type* float_type = to.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
  const auto read = [&](llvm::Value* x) -> llvm::Value* {
    if (from.is_float() == to.is_float()) return x;
    if (to.is_float()) {
      return b_.CreateFPExt(b_.CreateBitCast(x, float_type), b_.getDoubleTy());
    }
    return b_.CreateBitCast(b_.CreateFPTrunc(x, float_type), int_type);
  };
  Value result = {read(a.value)};
  if (a.error == nullptr || from.is_float() == to.is_float()) {
    result.error = a.error;
    return result;
  }
  const auto number = [&](DataType dtype, llvm::Value* x) {
    return dtype.is_float() ? x : AsDouble(dtype, x);
  };
  llvm::Value* exact = b_.CreateFCmpOEQ(a.error, Double(0));
  llvm::Value* error = Double(0);
  llvm::Value* at = number(to, result.value);
  for (const bool above : {false, true}) {
    llvm::Value* end;
    llvm::Value* crosses;
    if (from.is_float()) {
      end = above ? b_.CreateFAdd(a.value, a.error)
                  : b_.CreateFSub(a.value, a.error);
      crosses = b_.CreateFCmpULE(b_.CreateFMul(end, a.value), Double(0));
    } else {
      // An error of no integer's size reads as crossing below.
      llvm::Value* by = b_.CreateIntrinsic(
          llvm::Intrinsic::fptosi_sat, {int_type, b_.getDoubleTy()},
          {b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a.error)});
      llvm::Value* moved =
          above ? b_.CreateAdd(a.value, by) : b_.CreateSub(a.value, by);
      llvm::Value* zero = llvm::ConstantInt::get(int_type, 0);
      llvm::Value* wrapped = above ? b_.CreateICmpSLT(moved, a.value)
                                   : b_.CreateICmpSGT(moved, a.value);
      crosses = b_.CreateOr(
          wrapped, b_.CreateICmpSLT(b_.CreateXor(moved, a.value), zero));
      end = moved;
    }
    error = Larger(
        error, b_.CreateSelect(crosses, Double(INFINITY),
                               Abs(b_.CreateFSub(number(to, read(end)), at))));
  }
  result.error = b_.CreateSelect(exact, Double(0), error);
  return result;
}

Value Arithmetic::IntCall(ir::Intrinsic op, DataType dtype,
                          const std::vector<Value>& args,
                          absl::Status* status) {
  using ir::Intrinsic;
  const Value& x = args[0];
  const auto all_or_nothing = [&](llvm::Value* value) -> Value {
    if (x.error == nullptr) return {value};
    return {value, b_.CreateSelect(b_.CreateFCmpOGT(x.error, Double(0)),
                                   Double(INFINITY), Double(0))};
  };
  switch (op) {
    case Intrinsic::kAbs:
      if (!dtype.is_int()) return x;
      return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x.value,
                                       b_.getFalse()),
              x.error};
    case Intrinsic::kPopcount:
      return all_or_nothing(Unary(llvm::Intrinsic::ctpop, x.value));
    case Intrinsic::kClz:
      return all_or_nothing(b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz,
                                                     x.value, b_.getFalse()));
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
    case Intrinsic::kNearbyint:
    case Intrinsic::kTrunc:
      return x;
    case Intrinsic::kFma:
      return IntBinary(BinaryOp::kAdd, dtype,
                       IntBinary(BinaryOp::kMul, dtype, x, args[1]), args[2]);
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
      return {b_.getFalse()};
    default:
      *status = absl::InvalidArgumentError(
          absl::StrCat("T.", std::string(ir::IntrinsicName(op)),
                       " is not defined for ", dtype.ToString()));
      return {llvm::PoisonValue::get(x.value->getType())};
  }
}

}  // namespace tilefarm::oracle
