#include "compiler/codegen/float_kernels.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "llvm/IR/IntrinsicsX86.h"

namespace tilefarm::codegen {
namespace {

// A value and the builder that combines it, with float operators and constants
// only; constants get the lane count of the operand.
class Lanes {
 public:
  Lanes(llvm::IRBuilder<>& builder, llvm::Value* value)
      : builder_(&builder), value_(value) {}
  operator llvm::Value*() const { return value_; }
  llvm::IRBuilder<>& builder() const { return *builder_; }
  llvm::Type* type() const { return value_->getType(); }

  Lanes Make(llvm::Value* value) const { return {*builder_, value}; }
  Lanes Const(double value) const {
    return Make(llvm::ConstantFP::get(type(), value));
  }
  // The integer vector type with the same lanes and width.
  llvm::Type* IntType() const {
    llvm::Type* element = builder_->getIntNTy(type()->getScalarSizeInBits());
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type())) {
      return llvm::FixedVectorType::get(element, vector->getNumElements());
    }
    return element;
  }
  llvm::Constant* Int(int64_t value) const {
    return llvm::ConstantInt::get(IntType(), value, /*isSigned=*/true);
  }
  llvm::Value* Bits() const {
    return builder_->CreateBitCast(value_, IntType());
  }
  // The integer bits as a float of this type.
  Lanes FromBits(llvm::Value* bits) const {
    return Make(builder_->CreateBitCast(bits, type()));
  }

 private:
  llvm::IRBuilder<>* builder_;
  llvm::Value* value_;
};

Lanes operator+(Lanes a, llvm::Value* b) {
  return a.Make(a.builder().CreateFAdd(a, b));
}
Lanes operator-(Lanes a, llvm::Value* b) {
  return a.Make(a.builder().CreateFSub(a, b));
}
Lanes operator*(Lanes a, llvm::Value* b) {
  return a.Make(a.builder().CreateFMul(a, b));
}
Lanes operator/(Lanes a, llvm::Value* b) {
  return a.Make(a.builder().CreateFDiv(a, b));
}
Lanes operator*(Lanes a, double b) { return a * a.Const(b); }
Lanes operator+(Lanes a, double b) { return a + a.Const(b); }
Lanes operator-(Lanes a, double b) { return a - a.Const(b); }

Lanes Select(llvm::Value* condition, Lanes a, llvm::Value* b) {
  return a.Make(a.builder().CreateSelect(condition, a, b));
}
llvm::Value* Less(Lanes a, double b) {
  return a.builder().CreateFCmpOLT(a, a.Const(b));
}
llvm::Value* Greater(Lanes a, double b) {
  return a.builder().CreateFCmpOGT(a, a.Const(b));
}
llvm::Value* Equal(Lanes a, double b) {
  return a.builder().CreateFCmpOEQ(a, a.Const(b));
}
// NaN stays NaN.
Lanes Clamp(Lanes x, double low, double high) {
  x = Select(Greater(x, high), x.Const(high), x);
  return Select(Less(x, low), x.Const(low), x);
}
Lanes Abs(Lanes x) {
  return x.Make(x.builder().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
}
Lanes CopySign(Lanes magnitude, Lanes sign) {
  return magnitude.Make(magnitude.builder().CreateBinaryIntrinsic(
      llvm::Intrinsic::copysign, magnitude, sign));
}

// c0 + c1 x + c2 x^2 + ..., by Horner's rule.
Lanes Polynomial(Lanes x, std::initializer_list<double> coefficients) {
  auto it = std::rbegin(coefficients);
  Lanes sum = x.Const(*it);
  for (++it; it != std::rend(coefficients); ++it) sum = sum * x + *it;
  return sum;
}

// The nearest integer to x, |x| < 2^21, as a float and as an integer: after
// adding this constant, the float has no fraction bits left. Unlike a
// conversion it has no undefined case: NaN gives NaN and some integer.
struct Rounded {
  Lanes value;
  llvm::Value* integer;
};
Rounded RoundToInteger(Lanes x) {
  const bool is_double = x.type()->getScalarSizeInBits() == 64;
  const double magic = is_double ? 0x1.8p52 : 0x1.8p23;
  const Lanes shifted = x + magic;
  llvm::Value* integer =
      x.builder().CreateSub(shifted.Bits(), x.Const(magic).Bits());
  return {shifted - magic, integer};
}

// The instruction for p * 2^n, both floats; not_intrinsic if there is none.
llvm::Intrinsic::ID ScalingOf(llvm::Type* type,
                              const target::Capabilities& target) {
  using enum target::Capability;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr || !vector->getElementType()->isFloatTy()) {
    return llvm::Intrinsic::not_intrinsic;
  }
  switch (vector->getNumElements()) {
    case 4:
      if (!target.Has(kScaling128)) break;
      return llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
    case 8:
      if (!target.Has(kScaling256)) break;
      return llvm::Intrinsic::x86_avx512_mask_scalef_ps_256;
    case 16:
      if (!target.Has(kScaling512)) break;
      return llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
    default:
      break;
  }
  return llvm::Intrinsic::not_intrinsic;
}

// `p`, but 0 where x < `least`: there the exponential is 0, and to scale p down
// that far would underflow, which takes x86 a hundred times as long. Softmax of
// masked scores has many such lanes.
Lanes ZeroBelow(Lanes x, double least, Lanes p) {
  return Select(Less(x, least), p.Const(0), p);
}

// p * 2^n by the instruction for it; null if there is none.
llvm::Value* ScaleByInstruction(Lanes p, const Rounded& n,
                                const target::Capabilities& target) {
  llvm::IRBuilder<>& b = p.builder();
  const auto id = ScalingOf(p.type(), target);
  if (id == llvm::Intrinsic::not_intrinsic) return nullptr;
  const bool wide = id == llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
  // The mask has all lanes, so the value for others is unused.
  std::vector<llvm::Value*> args = {
      p, n.value, llvm::PoisonValue::get(p.type()),
      llvm::ConstantInt::getSigned(b.getIntNTy(wide ? 16 : 8), -1)};
  constexpr int kRoundAsEverywhere = 4;  // _MM_FROUND_CUR_DIRECTION
  if (wide) args.push_back(b.getInt32(kRoundAsEverywhere));
  return b.CreateIntrinsic(id, {}, args);
}

// 2^n for n in [-126, 127].
Lanes PowerOfTwo(Lanes like, llvm::Value* n) {
  llvm::IRBuilder<>& b = like.builder();
  return like.FromBits(
      b.CreateShl(b.CreateAdd(n, like.Int(127)), like.Int(23)));
}

// p * 2^n for n in [-151, 129], rounded at most once. Without an instruction
// the power is applied in two halves, because 2^n may be out of range when the
// product is not.
Lanes ScaleByPowerOfTwo(Lanes p, const Rounded& n,
                        const target::Capabilities& target) {
  llvm::IRBuilder<>& b = p.builder();
  if (llvm::Value* scaled = ScaleByInstruction(p, n, target)) {
    return p.Make(scaled);
  }
  llvm::Value* half = b.CreateAShr(n.integer, p.Int(1));
  llvm::Value* rest = b.CreateSub(n.integer, half);
  return p * PowerOfTwo(p, half) * PowerOfTwo(p, rest);
}

// The same where 2^n is a normal number.
Lanes ScaleByNormalPower(Lanes p, const Rounded& n,
                         const target::Capabilities& target) {
  if (llvm::Value* scaled = ScaleByInstruction(p, n, target)) {
    return p.Make(scaled);
  }
  return p * PowerOfTwo(p, n.integer);
}

// log of a positive x as exponent * ln(2) + f + tail, f = mantissa - 1 with
// the mantissa in [sqrt(1/2), sqrt(2)).
struct LogParts {
  Lanes exponent;
  Lanes f;
  Lanes tail;
};
LogParts SplitLog(Lanes x) {
  llvm::IRBuilder<>& b = x.builder();
  llvm::Value* subnormal = Less(x, 0x1p-126);
  const Lanes scaled = Select(subnormal, x * 0x1p23, x);
  llvm::Value* bits = scaled.Bits();
  constexpr int64_t kSqrtHalfBits = 0x3f3504f3;
  llvm::Value* exponent =
      b.CreateAShr(b.CreateSub(bits, x.Int(kSqrtHalfBits)), x.Int(23));
  const Lanes mantissa =
      x.FromBits(b.CreateSub(bits, b.CreateShl(exponent, x.Int(23))));
  Lanes e = x.Make(b.CreateSIToFP(exponent, x.type()));
  e = e + Select(subnormal, x.Const(-23), x.Const(0));
  const Lanes f = mantissa - 1.0;
  const Lanes q =
      Polynomial(f, {3.333333135e-01, -2.500083745e-01, 2.000125498e-01,
                     -1.662271619e-01, 1.420058310e-01, -1.316565275e-01,
                     1.277316511e-01, -7.634213567e-02});
  const Lanes square = f * f;
  return {e, f, q * f * square - square * 0.5};
}

// The value of a logarithm for x outside of (0, infinity).
Lanes LogSpecialCases(Lanes x, Lanes result) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Lanes outside =
      Select(Equal(x, 0), x.Const(-kInfinity), x.Const(std::nan("")));
  result = Select(Greater(x, 0), result, outside);
  return Select(Equal(x, kInfinity), x, result);
}

constexpr double kLn2High = 0.693359375;  // nine bits
constexpr double kLn2Low = -2.12194440054690583e-4;
constexpr double kLog2E = 1.44269504088896341;
constexpr double kLog10E = 0.434294481903251828;
constexpr double kLog10Of2High = 0.301025390625;
constexpr double kLog10Of2Low = 4.60503898119521374e-6;

Lanes ToDouble(Lanes x) {
  llvm::Type* type = x.builder().getDoubleTy();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type())) {
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  }
  return x.Make(x.builder().CreateFPExt(x, type));
}

}  // namespace

llvm::Value* EmitExp(llvm::IRBuilder<>& builder, llvm::Value* value,
                     const target::Capabilities& target) {
  // Outside of these bounds, the result is 0 or infinity.
  const Lanes given(builder, value);
  const Lanes x = Clamp(given, -104.5, 89.5);
  const Rounded n = RoundToInteger(x * kLog2E);
  const Lanes r = x - n.value * kLn2High - n.value * kLn2Low;
  const Lanes q =
      Polynomial(r, {4.999999404e-01, 1.666651517e-01, 4.166845605e-02,
                     8.369418792e-03, 1.381314476e-03});
  const Lanes p = q * (r * r) + r + 1.0;
  return ScaleByPowerOfTwo(ZeroBelow(given, -103.98, p), n, target);
}

llvm::Value* EmitExp2(llvm::IRBuilder<>& builder, llvm::Value* value,
                      const target::Capabilities& target) {
  const Lanes given(builder, value);
  const Lanes x = Clamp(given, -151, 129);
  const Rounded n = RoundToInteger(x);
  const Lanes r = x - n.value;
  const Lanes q = Polynomial(
      r, {6.931471825e-01, 2.402265072e-01, 5.550410226e-02, 9.618034586e-03,
          1.333395019e-03, 1.546802232e-04, 1.519502803e-05});
  return ScaleByPowerOfTwo(ZeroBelow(given, -150, q * r + 1.0), n, target);
}

llvm::Value* EmitLog(llvm::IRBuilder<>& builder, llvm::Value* value) {
  const Lanes x(builder, value);
  const LogParts log = SplitLog(x);
  const Lanes tail = log.exponent * kLn2Low + log.tail;
  return LogSpecialCases(x, log.exponent * kLn2High + (log.f + tail));
}

llvm::Value* EmitLog2(llvm::IRBuilder<>& builder, llvm::Value* value) {
  const Lanes x(builder, value);
  const LogParts log = SplitLog(x);
  return LogSpecialCases(x, (log.f + log.tail) * kLog2E + log.exponent);
}

llvm::Value* EmitLog10(llvm::IRBuilder<>& builder, llvm::Value* value) {
  const Lanes x(builder, value);
  const LogParts log = SplitLog(x);
  const Lanes tail = (log.f + log.tail) * kLog10E + log.exponent * kLog10Of2Low;
  return LogSpecialCases(x, log.exponent * kLog10Of2High + tail);
}

llvm::Value* EmitLog1p(llvm::IRBuilder<>& builder, llvm::Value* value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Lanes x(builder, value);
  const Lanes u = x + 1.0;
  // The rounding error of the sum, to first order.
  const Lanes lost = Select(Greater(x, 1), x.Const(1) - (u - x), x - (u - 1.0));
  const Lanes log(builder, EmitLog(builder, u));
  Lanes result = log + lost / u;
  result = Select(Equal(x, -1), x.Const(-kInfinity), result);
  result = Select(Equal(x, kInfinity), x, result);
  return Select(Equal(x, 0), x, result);  // keeps the sign of zero
}

llvm::Value* EmitTanh(llvm::IRBuilder<>& builder, llvm::Value* value,
                      const target::Capabilities& target) {
  const Lanes x(builder, value);
  const Lanes magnitude = Abs(x);
  const Lanes t = x * x;
  const Lanes q =
      Polynomial(t, {-3.333328366e-01, 1.333149076e-01, -5.374349654e-02,
                     2.065058425e-02, -5.717041902e-03});
  const Lanes small = q * t * x + x;
  // tanh is 1 in float32 from 9.02 on.
  const Lanes doubled = Clamp(magnitude, 0, 10) * 2.0;
  const Lanes e(builder, EmitExp(builder, doubled, target));
  const Lanes large = x.Const(1) - x.Const(2) / (e + 1.0);
  return Select(Less(magnitude, 0.625), small, CopySign(large, x));
}

llvm::Value* EmitSigmoid(llvm::IRBuilder<>& builder, llvm::Value* value,
                         const target::Capabilities& target) {
  const Lanes x(builder, value);
  // exp of a negative number neither overflows nor cancels.
  const Lanes e(builder, EmitExp(builder, x.Const(-0.0) - Abs(x), target));
  return Select(Less(x, 0), e, x.Const(1)) / (e + 1.0);
}

llvm::Value* EmitErf(llvm::IRBuilder<>& builder, llvm::Value* value,
                     const target::Capabilities& target) {
  const Lanes x(builder, value);
  const Lanes magnitude = Abs(x);
  const Lanes small =
      Polynomial(x * x, {1.128379126e+00, -3.761222164e-01, 1.127699898e-01,
                         -2.647447753e-02, 4.281796962e-03}) *
      x;
  // 1 - erfc(x), erfc(x) = 2^y; erf is 1 in float32 from 3.92 on, where y is
  // -25.
  const Lanes y =
      Polynomial(Clamp(magnitude, 0, 4),
                 {-1.176367454e-03, -1.621971906e+00, -9.300619759e-01,
                  -1.378150282e-01, 2.472051805e-02, -2.112332558e-03});
  const Rounded n = RoundToInteger(y);
  const Lanes p = Polynomial(
      y - n.value, {1.000000072e+00, 6.931469671e-01, 2.402211972e-01,
                    5.550713275e-02, 9.675541331e-03, 1.327647152e-03});
  const Lanes erfc = ScaleByNormalPower(p, n, target);
  return Select(Less(magnitude, 0.7), small, CopySign(x.Const(1) - erfc, x));
}

Partial EmitPow(llvm::IRBuilder<>& builder, llvm::Value* x_value,
                llvm::Value* y_value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Lanes x32(builder, x_value);
  const Lanes y32(builder, y_value);
  llvm::Value* valid = builder.CreateAnd(
      builder.CreateAnd(Greater(x32, 0), Less(x32, kInfinity)),
      Less(Abs(y32), kInfinity));
  // exp2(y log2(x)) in float64, where every positive float32 is normal.
  const Lanes x = ToDouble(x32);
  llvm::Value* bits = x.Bits();
  constexpr int64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  llvm::Value* exponent = builder.CreateAShr(
      builder.CreateSub(bits, x.Int(kSqrtHalfBits)), x.Int(52));
  const Lanes mantissa = x.FromBits(
      builder.CreateSub(bits, builder.CreateShl(exponent, x.Int(52))));
  // log(m) = 2 atanh(s), s = (m - 1) / (m + 1); |s| < 0.172, so that the
  // series' seventh term is below 1e-12.
  const Lanes s = (mantissa - 1.0) / (mantissa + 1.0);
  const Lanes series = Polynomial(
      s * s, {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13});
  const Lanes e = x.Make(builder.CreateSIToFP(exponent, x.type()));
  const Lanes log2 = series * s * (2 * kLog2E) + e;
  const Lanes t = Clamp(ToDouble(y32) * log2, -200, 200);
  const Rounded n = RoundToInteger(t);
  const Lanes r = t - n.value;
  const Lanes p =
      Polynomial(r, {6.93147180547267094e-01, 2.40226506982923721e-01,
                     5.55041093942469296e-02, 9.61812858588718435e-03,
                     1.33334507190100500e-03, 1.54038374938449162e-04,
                     1.53102797953528149e-05, 1.31781820067237990e-06}) *
          r +
      1.0;
  const Lanes power = p.FromBits(
      builder.CreateShl(builder.CreateAdd(n.integer, p.Int(1023)), p.Int(52)));
  return {builder.CreateFPTrunc(p * power, x32.type()), valid};
}

Partial EmitSine(llvm::IRBuilder<>& builder, llvm::Value* value,
                 int quadrants) {
  const Lanes x32(builder, value);
  llvm::Value* valid = Less(Abs(x32), 0x1p17);
  // Reduced in float64: n has 17 bits and the high part of pi/2 has 33, so
  // that the first product is exact.
  constexpr double kTwoOverPi = 6.36619772367581382e-1;
  constexpr double kHalfPiHigh = 1.57079632673412561417;
  constexpr double kHalfPiLow = 6.07710050650619224932e-11;
  const Lanes x = ToDouble(x32);
  const Rounded n = RoundToInteger(x * kTwoOverPi);
  const Lanes r = x - n.value * kHalfPiHigh - n.value * kHalfPiLow;
  const Lanes t = r * r;
  const Lanes sine =
      Polynomial(t, {-1.66666666373419009e-01, 8.33332888975456786e-03,
                     -1.98391760966042802e-04, 2.71681015195997003e-06}) *
          t * r +
      r;
  const Lanes cosine =
      Polynomial(t, {4.16666666153249488e-02, -1.38888831077681814e-03,
                     2.47993503553532201e-05, -2.71963054645196876e-07}) *
          (t * t) +
      (x.Const(1) - t * 0.5);
  llvm::Value* quadrant = builder.CreateAdd(n.integer, x.Int(quadrants));
  const auto bit = [&](int mask) {
    return builder.CreateICmpNE(builder.CreateAnd(quadrant, x.Int(mask)),
                                x.Int(0));
  };
  const Lanes chosen = Select(bit(1), cosine, sine);
  const Lanes result =
      Select(bit(2), chosen.Make(builder.CreateFNeg(chosen)), chosen);
  return {builder.CreateFPTrunc(result, x32.type()), valid};
}

}  // namespace tilefarm::codegen
