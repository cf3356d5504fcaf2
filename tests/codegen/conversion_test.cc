// Conversions between element types, in code for this machine.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/lowered_function.h"

namespace tilefarm::codegen {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

TEST(Conversions, SixteenBitFloatsRoundAtStoresAndCasts) {
  for (const DataType dtype : {DataType::Float(16), DataType::BFloat16()}) {
    for (const char* target : {"host,cores=1", "x86-64,cores=1"}) {
      SCOPED_TRACE(dtype.ToString() + std::string(" ") + target);
      const auto in = Flat("in", kF32, 16), half = Flat("half", dtype, 16),
                 back = Flat("back", kF32, 16), cast = Flat("cast", kF32, 16);
      const Expr all = ir::MakeRamp(IntConst(0), IntConst(1), 16);
      Options options;
      options.target = *target::Parse(target);
      const auto kernel = Kernel::Build(
          Function({in, half, back, cast},
                   ir::MakeSeq(
                       {ir::MakeStore(half, {all},
                                      ir::MakeCast(dtype.with_lanes(16),
                                                   ir::Load(in, {all}))),
                        ir::MakeStore(back, {all},
                                      ir::MakeCast(kF32.with_lanes(16),
                                                   ir::Load(half, {all}))),
                        ir::MakeStore(
                            cast, {all},
                            ir::MakeCast(kF32.with_lanes(16),
                                         ir::MakeCast(dtype.with_lanes(16),
                                                      ir::Load(in, {all}))))})),
          options);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const float nan = std::nanf("");
      std::vector<float> values = {0.0f,     -0.0f,     1.0f,  1.00048828125f,
                                   65504,    65519,     65520, 1e30f,
                                   -1e30f,   6e-8f,     3e-8f, 6.1e-5f,
                                   INFINITY, -INFINITY, nan,   1.1f};
      std::vector<uint16_t> bits(16);
      std::vector<float> got(16), casts(16);
      ASSERT_EQ(kernel->Call("kernel", values.data(), bits.data(), got.data(),
                             casts.data()),
                0);
      for (int i = 0; i < 16; ++i) {
        float expected;
        if (dtype == DataType::BFloat16()) {
          uint32_t b;
          std::memcpy(&b, &values[i], 4);
          b = (b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u;
          std::memcpy(&expected, &b, 4);
        } else {
          expected = static_cast<float>(static_cast<_Float16>(values[i]));
        }
        if (std::isnan(values[i])) {
          EXPECT_TRUE(std::isnan(got[i]));
          EXPECT_TRUE(std::isnan(casts[i]));
        } else {
          EXPECT_EQ(got[i], expected) << values[i];
          EXPECT_EQ(casts[i], expected) << values[i];
        }
      }
    }
  }
}

TEST(Conversions, ConversionsToIntegersSaturate) {
  const auto in = Flat("in", kF32, 5), out = Flat("out", DataType::Int(8), 5);
  const auto i = ir::MakeVar("i");
  const auto kernel = Kernel::Build(
      Function({in, out}, For(i, 5,
                              ir::MakeStore(out, {i},
                                            ir::MakeCast(DataType::Int(8),
                                                         ir::Load(in, {i}))))),
      HostOptions());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> values = {1.9f, -1.9f, 300, -300, std::nanf("")};
  std::vector<int8_t> got(5);
  ASSERT_EQ(kernel->Call("kernel", values.data(), got.data()), 0);
  EXPECT_THAT(got, testing::ElementsAre(1, -1, 127, -128, 0));
}

TEST(Conversions, ReinterpretedVectorsKeepTheirBits) {
  const ir::Expr all = ir::MakeRamp(IntConst(0), IntConst(1), 4);
  const auto in = Flat("in", kF32, 4),
             bits = Flat("bits", DataType::Int(32), 4),
             back = Flat("back", kF32, 4);
  const Expr read = ir::MakeReinterpret(DataType::Int(32), ir::Load(in, {all}));
  ASSERT_EQ(read->dtype, DataType::Int(32).with_lanes(4));
  const Expr sign =
      ir::MakeBroadcast(ir::IntConst(INT32_MIN, DataType::Int(32)), 4);
  const auto kernel = Kernel::Build(
      Function({in, bits, back},
               ir::MakeSeq({ir::MakeStore(bits, {all}, read),
                            ir::MakeStore(
                                back, {all},
                                ir::MakeReinterpret(
                                    kF32, ir::MakeBinary(ir::BinaryOp::kBitXor,
                                                         read, sign)))})),
      HostOptions());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> values = {1, -2.5f, -INFINITY, 0}, negated(4);
  std::vector<int32_t> got(4);
  ASSERT_EQ(kernel->Call("kernel", values.data(), got.data(), negated.data()),
            0);
  for (int i = 0; i < 4; ++i) {
    int32_t expected;
    std::memcpy(&expected, &values[i], 4);
    EXPECT_EQ(got[i], expected);
    EXPECT_EQ(negated[i], -values[i]);
    EXPECT_EQ(std::signbit(negated[i]), !std::signbit(values[i]));
  }
}

using Clamp = std::function<ir::Expr(const ir::Expr&)>;

// Of what `clamp` makes of the operand, which changes no result.
template <typename To, typename From>
void ExpectSaturatingVectors(
    DataType to, DataType from,
    const Clamp& clamp = [](const ir::Expr& e) { return e; }) {
  constexpr int64_t kLanes = 16;
  const auto in = Flat("in", from, kLanes), out = Flat("out", to, kLanes);
  const ir::Expr lanes = ir::MakeRamp(ir::IntConst(0), ir::IntConst(1), kLanes);
  const auto kernel = Kernel::Build(
      Function({in, out},
               ir::MakeStore(out, {lanes},
                             ir::MakeCast(to.with_lanes(kLanes),
                                          clamp(ir::Load(in, {lanes}))))),
      HostOptions());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  using Limits = std::numeric_limits<To>;
  const From least = Limits::min(), largest = Limits::max();
  const From huge = std::numeric_limits<From>::max();
  const From infinity = std::numeric_limits<From>::infinity();
  std::vector<From> values = {0,
                              -0.9f,
                              0.9f,
                              1.9f,
                              -1.9f,
                              least,
                              least - 1,
                              least + 1.5f,
                              largest,
                              largest + 1,
                              largest - 0.5f,
                              huge,
                              -huge,
                              infinity,
                              -infinity,
                              std::numeric_limits<From>::quiet_NaN()};
  std::vector<To> expected;
  for (const From value : values) {
    expected.push_back(std::isnan(value)  ? To{0}
                       : value <= least   ? Limits::min()
                       : value >= largest ? Limits::max()
                                          : static_cast<To>(value));
  }
  std::vector<To> got(kLanes);
  ASSERT_EQ(kernel->Call("kernel", values.data(), got.data()), 0);
  EXPECT_EQ(got, expected) << from.ToString() << " to " << to.ToString();
}

TEST(Conversions, ConversionsOfVectorsToNarrowIntegersSaturate) {
  ExpectSaturatingVectors<int8_t, float>(DataType::Int(8), kF32);
  ExpectSaturatingVectors<uint8_t, float>(DataType::UInt(8), kF32);
  ExpectSaturatingVectors<int16_t, float>(DataType::Int(16), kF32);
  ExpectSaturatingVectors<uint16_t, float>(DataType::UInt(16), kF32);
  ExpectSaturatingVectors<int8_t, double>(DataType::Int(8),
                                          DataType::Float(64));
  ExpectSaturatingVectors<uint16_t, double>(DataType::UInt(16),
                                            DataType::Float(64));
}

// Clamped before, by bounds that the type has or by wider ones, and in an order
// in which NaN becomes what the conversion makes of it, or stays.
TEST(Conversions, ConversionsOfClampedVectorsSaturate) {
  const auto number = [](double value) {
    return ir::MakeBroadcast(ir::FloatConst(value, kF32), 16);
  };
  const auto clamp = [&](double low, double high, bool max_first) -> Clamp {
    return [=](const ir::Expr& e) {
      return max_first ? ir::Min(ir::Max(e, number(low)), number(high))
                       : ir::Max(ir::Min(e, number(high)), number(low));
    };
  };
  ExpectSaturatingVectors<uint8_t, float>(DataType::UInt(8), kF32,
                                          clamp(0, 255, true));
  ExpectSaturatingVectors<uint16_t, float>(DataType::UInt(16), kF32,
                                           clamp(0, 65535, true));
  for (const bool max_first : {false, true}) {
    const auto reversed = [&](const ir::Expr& e) {
      return max_first ? ir::Min(number(300), ir::Max(number(-300), e))
                       : ir::Max(number(-300), ir::Min(number(300), e));
    };
    ExpectSaturatingVectors<uint8_t, float>(DataType::UInt(8), kF32, reversed);
    ExpectSaturatingVectors<int8_t, float>(DataType::Int(8), kF32, reversed);
  }
  // The constants first: NaN stays.
  ExpectSaturatingVectors<int8_t, float>(
      DataType::Int(8), kF32, [&](const ir::Expr& e) {
        return ir::Min(number(127), ir::Max(number(-128), e));
      });
}

}  // namespace
}  // namespace tilefarm::codegen
