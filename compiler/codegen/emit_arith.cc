// Arithmetic. No operation traps: division by zero gives zero, an overflowing
// quotient wraps, shift counts are taken modulo the width.
#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "llvm/IR/PatternMatch.h"

namespace tilefarm::codegen {

// LLVM does not fuse products and sums on ARMv7's NEON. Null if no product.
llvm::Value* Emitter::EmitFused(llvm::Value* product, llvm::Value* other,
                                bool negated) {
  auto* multiply = llvm::dyn_cast<llvm::BinaryOperator>(product);
  if (!Has(target::Capability::kExplicitFma) || multiply == nullptr ||
      multiply->getOpcode() != llvm::Instruction::FMul ||
      !multiply->hasAllowContract() || !multiply->getType()->isVectorTy() ||
      !multiply->getType()->getScalarType()->isFloatTy()) {
    return nullptr;
  }
  llvm::Value* a = multiply->getOperand(0);
  return builder_.CreateIntrinsic(
      llvm::Intrinsic::fma, {multiply->getType()},
      {negated ? builder_.CreateFNeg(a) : a, multiply->getOperand(1), other});
}

llvm::Value* Emitter::EmitFloatBinary(ir::BinaryOp op, llvm::Value* a,
                                      llvm::Value* b) {
  using ir::BinaryOp;
  const auto floor_quotient = [&] {
    return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::floor,
                                         builder_.CreateFDiv(a, b));
  };
  switch (op) {
    case BinaryOp::kAdd:
      if (llvm::Value* sum = EmitFused(b, a, /*negated=*/false)) return sum;
      if (llvm::Value* sum = EmitFused(a, b, /*negated=*/false)) return sum;
      return builder_.CreateFAdd(a, b);
    case BinaryOp::kSub:
      if (llvm::Value* rest = EmitFused(b, a, /*negated=*/true)) return rest;
      return builder_.CreateFSub(a, b);
    case BinaryOp::kMul:
      return builder_.CreateFMul(a, b);
    case BinaryOp::kDiv:
      return builder_.CreateFDiv(a, b);
    case BinaryOp::kMod:
      return builder_.CreateFRem(a, b);
    case BinaryOp::kFloorDiv:
      return floor_quotient();
    case BinaryOp::kFloorMod:
      return builder_.CreateFSub(a, builder_.CreateFMul(floor_quotient(), b));
    // The semantics of the machine's min and max: b if either is NaN.
    case BinaryOp::kMin:
      return builder_.CreateSelect(builder_.CreateFCmpOLT(a, b), a, b);
    case BinaryOp::kMax:
      return builder_.CreateSelect(builder_.CreateFCmpOGT(a, b), a, b);
    case BinaryOp::kEQ:
      return builder_.CreateFCmpOEQ(a, b);
    case BinaryOp::kNE:
      return builder_.CreateFCmpUNE(a, b);
    case BinaryOp::kLT:
      return builder_.CreateFCmpOLT(a, b);
    case BinaryOp::kLE:
      return builder_.CreateFCmpOLE(a, b);
    case BinaryOp::kGT:
      return builder_.CreateFCmpOGT(a, b);
    case BinaryOp::kGE:
      return builder_.CreateFCmpOGE(a, b);
    default:
      return Fail(absl::InvalidArgumentError(absl::StrCat(
                      "operator ", std::string(ir::BinaryOpName(op)),
                      " is not defined for floats")),
                  a->getType());
  }
}

llvm::Value* Emitter::EmitIntDivision(ir::BinaryOp op, ir::DataType dtype,
                                      llvm::Value* a, llvm::Value* b) {
  using ir::BinaryOp;
  const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  const bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  const bool is_signed = dtype.is_int();
  const llvm::APInt* constant = nullptr;
  const bool known =
      llvm::PatternMatch::match(b, llvm::PatternMatch::m_APInt(constant));
  if (known && floors && is_signed && constant->isStrictlyPositive() &&
      constant->isPowerOf2()) {
    return quotient
               ? builder_.CreateAShr(a, llvm::ConstantInt::get(
                                            a->getType(), constant->logBase2()))
               : builder_.CreateAnd(
                     a, llvm::ConstantInt::get(a->getType(), *constant - 1));
  }
  llvm::Type* type = a->getType();
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  llvm::Value* one = llvm::ConstantInt::get(type, 1);
  llvm::Value* by_zero = nullptr;
  const bool safe =
      known && !constant->isZero() && !(is_signed && constant->isAllOnes());
  if (!safe) {
    by_zero = builder_.CreateICmpEQ(b, zero);
    llvm::Value* unsafe = by_zero;
    if (is_signed) {
      llvm::Value* lowest = llvm::ConstantInt::get(
          type, llvm::APInt::getSignedMinValue(dtype.bits));
      llvm::Value* overflows = builder_.CreateAnd(
          builder_.CreateICmpEQ(a, lowest),
          builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)));
      unsafe = builder_.CreateOr(by_zero, overflows);
    }
    // Divide by one instead: this also gives the right result for the quotient
    // that overflows.
    b = builder_.CreateSelect(unsafe, one, b);
  }
  llvm::Value* result = nullptr;
  if (!is_signed) {
    result = quotient ? builder_.CreateUDiv(a, b) : builder_.CreateURem(a, b);
  } else if (!floors) {
    result = quotient ? builder_.CreateSDiv(a, b) : builder_.CreateSRem(a, b);
  } else {
    llvm::Value* rest = builder_.CreateSRem(a, b);
    llvm::Value* adjust = builder_.CreateAnd(
        builder_.CreateICmpNE(rest, zero),
        builder_.CreateICmpSLT(builder_.CreateXor(rest, b), zero));
    result = quotient ? builder_.CreateSub(builder_.CreateSDiv(a, b),
                                           builder_.CreateZExt(adjust, type))
                      : builder_.CreateAdd(
                            rest, builder_.CreateSelect(adjust, b, zero));
  }
  return by_zero == nullptr ? result
                            : builder_.CreateSelect(by_zero, zero, result);
}

llvm::Value* Emitter::EmitBinary(ir::BinaryOp op, ir::DataType dtype,
                                 llvm::Value* a, llvm::Value* b) {
  using ir::BinaryOp;
  if (dtype.is_float()) return EmitFloatBinary(op, a, b);
  const bool is_signed = dtype.is_int();
  const auto compare = [&](llvm::CmpInst::Predicate signed_predicate) {
    return builder_.CreateICmp(
        is_signed ? signed_predicate
                  : llvm::ICmpInst::getUnsignedPredicate(signed_predicate),
        a, b);
  };
  const auto shift_count = [&] {
    return builder_.CreateAnd(
        b, llvm::ConstantInt::get(b->getType(), dtype.bits - 1));
  };
  switch (op) {
    case BinaryOp::kAdd:
      return builder_.CreateAdd(a, b);
    case BinaryOp::kSub:
      return builder_.CreateSub(a, b);
    case BinaryOp::kMul:
      return builder_.CreateMul(a, b);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return EmitIntDivision(op, dtype, a, b);
    case BinaryOp::kMin:
      return builder_.CreateBinaryIntrinsic(
          is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::kMax:
      return builder_.CreateBinaryIntrinsic(
          is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::kEQ:
      return builder_.CreateICmpEQ(a, b);
    case BinaryOp::kNE:
      return builder_.CreateICmpNE(a, b);
    case BinaryOp::kLT:
      return compare(llvm::CmpInst::ICMP_SLT);
    case BinaryOp::kLE:
      return compare(llvm::CmpInst::ICMP_SLE);
    case BinaryOp::kGT:
      return compare(llvm::CmpInst::ICMP_SGT);
    case BinaryOp::kGE:
      return compare(llvm::CmpInst::ICMP_SGE);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd:
      return builder_.CreateAnd(a, b);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr:
      return builder_.CreateOr(a, b);
    case BinaryOp::kBitXor:
      return builder_.CreateXor(a, b);
    case BinaryOp::kShiftLeft:
      return builder_.CreateShl(a, shift_count());
    case BinaryOp::kShiftRight:
      return is_signed ? builder_.CreateAShr(a, shift_count())
                       : builder_.CreateLShr(a, shift_count());
  }
  return nullptr;
}

}  // namespace tilefarm::codegen
