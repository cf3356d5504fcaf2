// Memory formats of elements, and rounding to them.
#include <cmath>

#include "compiler/oracle/arithmetic_internal.h"

namespace tilefarm::oracle {

using ir::DataType;

llvm::Type* Arithmetic::RegisterType(DataType dtype) {
  return dtype.is_float() ? b_.getDoubleTy()
                          : static_cast<llvm::Type*>(b_.getIntNTy(dtype.bits));
}

llvm::Type* Arithmetic::MemoryType(DataType dtype) {
  if (!dtype.is_float()) return b_.getIntNTy(dtype.bytes() * 8);
  if (dtype.bits == 16) return b_.getInt16Ty();
  return IsDouble(dtype) ? b_.getDoubleTy() : b_.getFloatTy();
}

llvm::Value* Arithmetic::RoundTo(DataType dtype, llvm::Value* value) {
  if (IsDouble(dtype)) return value;
  llvm::Type* wide = b_.getDoubleTy();
  llvm::Value* single = b_.CreateFPTrunc(value, b_.getFloatTy());
  if (dtype.bits == 32) return b_.CreateFPExt(single, wide);
  // To nearest, ties to even: adds just less than half a unit to the bits.
  llvm::Type* bits_type = b_.getInt32Ty();
  const int dropped = dtype.code == ir::TypeCode::kBFloat ? 16 : 13;
  llvm::Value* bits = b_.CreateBitCast(single, bits_type);
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, dropped), 1);
  llvm::Value* half = b_.getInt32((1u << (dropped - 1)) - 1);
  llvm::Value* up = b_.CreateAnd(b_.CreateAdd(b_.CreateAdd(bits, half), odd),
                                 b_.getInt32(~((1u << dropped) - 1)));
  llvm::Value* rounded =
      b_.CreateFPExt(b_.CreateBitCast(up, b_.getFloatTy()), wide);
  llvm::Value* exact = b_.CreateFPExt(single, wide);
  if (dtype.code == ir::TypeCode::kFloat) {
    // Subnormals are multiples of 2^-24.
    llvm::Value* grid = b_.CreateFMul(
        Unary(llvm::Intrinsic::roundeven, b_.CreateFMul(exact, Double(0x1p24))),
        Double(0x1p-24));
    rounded = b_.CreateSelect(b_.CreateFCmpOLT(Abs(exact), Double(0x1p-14)),
                              grid, rounded);
    llvm::Value* infinity = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                                     Double(INFINITY), exact);
    rounded = b_.CreateSelect(b_.CreateFCmpOGE(Abs(rounded), Double(65536)),
                              infinity, rounded);
  }
  return b_.CreateSelect(b_.CreateFCmpUNO(exact, exact), exact, rounded);
}

Value Arithmetic::Round(DataType dtype, const Value& a) {
  return Monotone(a, [&](llvm::Value* x) { return RoundTo(dtype, x); });
}

llvm::Value* Arithmetic::FromMemory(DataType dtype, llvm::Value* stored) {
  if (dtype.is_bool()) return b_.CreateIsNotNull(stored);
  if (!dtype.is_float()) return stored;
  llvm::Type* wide = b_.getDoubleTy();
  if (dtype.bits != 16) return b_.CreateFPExt(stored, wide);
  llvm::Type* bits_type = b_.getInt32Ty();
  llvm::Value* bits = b_.CreateZExt(stored, bits_type);
  const auto as_double = [&](llvm::Value* single_bits) {
    return b_.CreateFPExt(b_.CreateBitCast(single_bits, b_.getFloatTy()), wide);
  };
  if (dtype.code == ir::TypeCode::kBFloat) {
    return as_double(b_.CreateShl(bits, 16));
  }
  // Fraction and exponent at float32's positions give 2^-112 times the value,
  // except for the largest exponent, which means infinity and NaN.
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(bits, 0x8000), 16);
  llvm::Value* rest = b_.CreateShl(b_.CreateAnd(bits, 0x7FFF), 13);
  llvm::Value* special =
      b_.CreateICmpEQ(b_.CreateAnd(bits, 0x7C00), b_.getInt32(0x7C00));
  return b_.CreateSelect(
      special,
      as_double(b_.CreateOr(b_.CreateOr(rest, sign), b_.getInt32(0x7F800000))),
      b_.CreateFMul(as_double(b_.CreateOr(rest, sign)), Double(0x1p112)));
}

llvm::Value* Arithmetic::ToMemory(DataType dtype, llvm::Value* value) {
  if (dtype.is_bool()) return b_.CreateZExt(value, b_.getInt8Ty());
  if (!dtype.is_float() || IsDouble(dtype)) return value;
  llvm::Value* single = b_.CreateFPTrunc(value, b_.getFloatTy());
  if (dtype.bits == 32) return single;
  llvm::Value* bits = b_.CreateBitCast(single, b_.getInt32Ty());
  if (dtype.code == ir::TypeCode::kBFloat) {
    return b_.CreateTrunc(b_.CreateLShr(bits, 16), b_.getInt16Ty());
  }
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, 16), 0x8000);
  llvm::Value* normal =
      b_.CreateSub(b_.CreateLShr(b_.CreateAnd(bits, 0x7FFFFFFF), 13),
                   b_.getInt32(112 << 10));
  // At most 1024, which then carries into the exponent. Saturate: no poison for
  // values that use another format.
  llvm::Value* tiny = b_.CreateIntrinsic(
      llvm::Intrinsic::fptoui_sat, {b_.getInt32Ty(), b_.getDoubleTy()},
      {b_.CreateFMul(Abs(value), Double(0x1p24))});
  llvm::Value* magnitude = b_.CreateSelect(
      b_.CreateFCmpOLT(Abs(value), Double(0x1p-14)), tiny, normal);
  magnitude = b_.CreateSelect(b_.CreateFCmpOGE(Abs(value), Double(65536)),
                              b_.getInt32(0x7C00), magnitude);
  magnitude = b_.CreateSelect(b_.CreateFCmpUNO(value, value),
                              b_.getInt32(0x7E00), magnitude);
  return b_.CreateTrunc(b_.CreateOr(sign, magnitude), b_.getInt16Ty());
}

}  // namespace tilefarm::oracle
