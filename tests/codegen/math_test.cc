// The error bounds of runtime/README.md, measured against float64 on a seeded
// sample of all float32 bit patterns and on special values.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {
namespace {

using ir::IntConst;
using ir::Intrinsic;

constexpr ir::DataType kF32 = ir::DataType::Float(32);
constexpr uint64_t kSeed = 20240607;
constexpr int64_t kSamples = 1 << 20;  // per function and target
constexpr int kLanes = 16;

// out[i] = op(x[i], y[i]) in vectors.
ir::PrimFuncPtr Map(Intrinsic op, int64_t n, int lanes) {
  const auto x = ir::MakeBuffer("x", kF32, {n});
  const auto y = ir::MakeBuffer("y", kF32, {n});
  const auto out = ir::MakeBuffer("out", kF32, {n});
  const auto i = ir::MakeVar("i");
  const ir::Expr at =
      lanes == 1 ? ir::Expr(i) : ir::MakeRamp(i * lanes, IntConst(1), lanes);
  std::vector<ir::Expr> args = {ir::Load(x, {at})};
  if (ir::IntrinsicArity(op) == 2) args.push_back(ir::Load(y, {at}));
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {x, y, out};
  function->body = ir::MakeFor(
      i, IntConst(n / lanes), ir::MakeStore(out, {at}, ir::MakeCall(op, args)));
  return function;
}

Options OptionsFor(const char* target) {
  Options options;
  options.target = *target::Parse(target);
  return options;
}

absl::StatusOr<Kernel> BuildMap(Intrinsic op, int64_t n, int lanes,
                                const char* target) {
  return Kernel::Build(Map(op, n, lanes), OptionsFor(target));
}

double Reference(Intrinsic op, double x, double y) {
  switch (op) {
    case Intrinsic::kExp:
      return std::exp(x);
    case Intrinsic::kExp2:
      return std::exp2(x);
    case Intrinsic::kLog:
      return std::log(x);
    case Intrinsic::kLog2:
      return std::log2(x);
    case Intrinsic::kLog10:
      return std::log10(x);
    case Intrinsic::kLog1p:
      return std::log1p(x);
    case Intrinsic::kTanh:
      return std::tanh(x);
    case Intrinsic::kSigmoid:
      return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case Intrinsic::kErf:
      return std::erf(x);
    case Intrinsic::kSin:
      return std::sin(x);
    case Intrinsic::kCos:
      return std::cos(x);
    default:
      return std::pow(x, y);
  }
}

// The error in float32 units in the last place at the exact value.
double UlpError(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded)) return got == rounded ? 0 : INFINITY;
  if (!std::isfinite(got)) return INFINITY;
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent, -125) - 24);
  return std::abs(static_cast<double>(got) - exact) / ulp;
}

struct Bound {
  Intrinsic op;
  double ulp;
};
// As stated in runtime/README.md.
constexpr Bound kBounds[] = {
    {Intrinsic::kExp, 2},  {Intrinsic::kExp2, 2},    {Intrinsic::kLog, 2},
    {Intrinsic::kLog2, 3}, {Intrinsic::kLog10, 3},   {Intrinsic::kLog1p, 3},
    {Intrinsic::kTanh, 3}, {Intrinsic::kSigmoid, 3}, {Intrinsic::kErf, 3},
    {Intrinsic::kSin, 1},  {Intrinsic::kCos, 1},     {Intrinsic::kPow, 1},
};

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

class MathBounds
    : public testing::TestWithParam<std::tuple<Bound, const char*, int>> {};

TEST_P(MathBounds, HoldsOnTheSample) {
  const auto [bound, target, lanes] = GetParam();
  const auto kernel = BuildMap(bound.op, kSamples, lanes, target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  RecordProperty("seed", static_cast<int64_t>(kSeed));
  Rng rng(kSeed);
  std::vector<float> x(kSamples), y(kSamples), got(kSamples);
  const float special[] = {
      0.0f,      -0.0f,   1.0f,    -1.0f,        INFINITY, -INFINITY,
      NAN,       1e-45f,  -1e-45f, 1.17549e-38f, 3.4e38f,  -3.4e38f,
      88.72284f, -103.9f, -87.4f,  0.625f,       2.0f,     0.5f,
      -2.0f,     3.0f,    -3.0f,   128.0f,       -149.0f};
  constexpr int64_t kSpecial = std::size(special);
  for (int64_t i = 0; i < kSamples; ++i) {
    if (i < kSpecial * kSpecial) {
      x[i] = special[i / kSpecial];
      y[i] = special[i % kSpecial];
    } else if (i % 2 == 0) {  // all bit patterns
      x[i] = FromBits(static_cast<uint32_t>(rng.Next()));
      y[i] = FromBits(static_cast<uint32_t>(rng.Next()));
    } else {  // typical values of programs
      x[i] = static_cast<float>(rng.Uniform() * 40 - 20);
      y[i] = static_cast<float>(rng.Uniform() * 40 - 20);
    }
  }
  ASSERT_EQ(kernel->Call("kernel", x.data(), y.data(), got.data()), 0);
  double worst = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < kSamples; ++i) {
    const double error = UlpError(got[i], Reference(bound.op, x[i], y[i]));
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  std::printf("%-8s %-24s lanes %2d: %.3f ulp at (%a, %a), seed %llu\n",
              std::string(ir::IntrinsicName(bound.op)).c_str(), target, lanes,
              worst, x[at], y[at], static_cast<unsigned long long>(kSeed));
  EXPECT_LE(worst, bound.ulp)
      << ir::IntrinsicName(bound.op) << "(" << x[at] << ", " << y[at]
      << ") = " << got[at] << ", not " << Reference(bound.op, x[at], y[at]);
}

INSTANTIATE_TEST_SUITE_P(
    All, MathBounds,
    testing::Combine(testing::ValuesIn(kBounds),
                     testing::Values("host,cores=1", "x86-64,cores=1"),
                     testing::Values(1, 4, 8, kLanes)),
    [](const auto& info) {
      return std::string(ir::IntrinsicName(std::get<0>(info.param).op)) +
             (std::string(std::get<1>(info.param))[0] == 'h' ? "Host"
                                                             : "Baseline") +
             std::to_string(std::get<2>(info.param));
    });

// AVX-512 multiplies by a power of two in one instruction, in vectors of any of
// its lengths; other targets compute the power by shifts, with the same
// rounding.
TEST(PowersOfTwo, TakeOneInstructionWhereThereIsOne) {
  for (const int lanes : {4, 8, 16}) {
    const std::vector<LoweredFunction> functions = {
        {Map(Intrinsic::kExp, 64, lanes), "kernel"}};
    const auto with =
        EmitAssembly(functions, OptionsFor("x86-64:x86-64-v4,cores=1"));
    const auto without =
        EmitAssembly(functions, OptionsFor("x86-64:x86-64-v3,cores=1"));
    ASSERT_TRUE(with.ok() && without.ok()) << with.status();
    EXPECT_NE(with->find("vscalefps"), std::string::npos) << *with;
    EXPECT_EQ(with->find("vpslld"), std::string::npos) << *with;
    EXPECT_EQ(without->find("vscalefps"), std::string::npos) << *without;
  }
}

TEST(PowersOfTwo, AreTheSameBothWays) {
  constexpr int64_t kCount = 1 << 20;
  for (const Intrinsic op : {Intrinsic::kExp, Intrinsic::kExp2}) {
    const auto with = BuildMap(op, kCount, kLanes, "host,cores=1");
    // LLVM splits vectors of two registers, so these take the other path.
    const auto without = BuildMap(op, kCount, 2 * kLanes, "host,cores=1");
    ASSERT_TRUE(with.ok() && without.ok()) << with.status();
    std::vector<float> x(kCount), a(kCount), b(kCount);
    // Subnormal, zero and infinite results, and the whole range.
    for (int64_t i = 0; i < kCount; ++i) {
      const auto at = static_cast<float>(i) / kCount;
      x[i] = i % 4 == 0   ? -152 + 70 * at
             : i % 4 == 1 ? 80 + 60 * at
                          : FromBits(static_cast<uint32_t>(i * 4099));
    }
    ASSERT_EQ(with->Call("kernel", x.data(), x.data(), a.data()), 0);
    ASSERT_EQ(without->Call("kernel", x.data(), x.data(), b.data()), 0);
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(std::isnan(a[i]) ? std::isnan(b[i])
                                   : std::memcmp(&a[i], &b[i], 4) == 0)
          << ir::IntrinsicName(op) << "(" << x[i] << "): " << a[i] << ", "
          << b[i];
    }
  }
}

}  // namespace
}  // namespace tilefarm::codegen
