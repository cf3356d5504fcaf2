// The oracle on random programs, on special values, and its bounds.
#include "compiler/oracle/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/rng.h"
#include "compiler/ir/printer.h"
#include "tests/oracle/oracle_test_support.h"
#include "tests/property/random_program.h"
#include "tests/support/host_oracle.h"

namespace tilefarm::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Oracle, RandomProgramsAreTheInterpreters) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const ir::PrimFuncPtr function = property::RandomProgram(rng);
    EXPECT_EQ(Disagreement(function, seed), "") << "seed " << seed << "\n"
                                                << ir::Print(*function);
    if (HasFailure()) return;
  }
}

TEST(Oracle, NothingTraps) {
  const ir::PrimFuncPtr function = Parse(
      R"(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), Q: T.Buffer((4,), "int32"), R: T.Buffer((4,), "int32"), S: T.Buffer((4,), "int32"))",
      R"(
    for i in range(4):
        with T.block("Q"):
            vi = T.axis.spatial(4, i)
            Q[vi] = A[vi] // B[vi]
            R[vi] = A[vi] % B[vi]
            S[vi] = T.shift_left(A[vi], B[vi])
)");
  const auto low = std::numeric_limits<int32_t>::min();
  Buffers inputs = {BytesOf<int32_t>({7, low, -7, 3}),
                    BytesOf<int32_t>({0, -1, 2, 33})};
  for (int i = 0; i < 3; ++i) inputs.push_back(BytesOf<int32_t>({9, 9, 9, 9}));
  const auto result = RunOracle(function, inputs);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ValuesOf<int32_t>(result->buffers[2]),
              ElementsAre(0, low, -4, 0));
  EXPECT_THAT(ValuesOf<int32_t>(result->buffers[3]), ElementsAre(0, 0, 1, 3));
  EXPECT_THAT(ValuesOf<int32_t>(result->buffers[4]), ElementsAre(7, 0, -28, 6));
}

TEST(Oracle, ConversionsSaturate) {
  const ir::PrimFuncPtr function = Parse(
      R"(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "int8"), C: T.Buffer((6,), "uint8"), D: T.Buffer((6,), "float16"), E: T.Buffer((6,), "float32"))",
      R"(
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = T.Cast("int8", A[vi])
            C[vi] = T.Cast("uint8", A[vi])
            D[vi] = T.Cast("float16", A[vi])
            E[vi] = T.Cast("float32", T.Cast("bfloat16", A[vi])) + T.Cast("float32", T.Cast("float16", A[vi]))
)");
  const Buffers inputs = {BytesOf<float>({300, -300, NAN, -1.9f, 65520, 1e-8f}),
                          std::vector<std::byte>(6), std::vector<std::byte>(6),
                          std::vector<std::byte>(12),
                          std::vector<std::byte>(24)};
  const auto result = RunOracle(function, inputs);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->buffers, Interpreted(*function, inputs));
}

TEST(Oracle, EveryHalfIsReadAndWrittenAsItIs) {
  for (const char* dtype : {"float16", "bfloat16"}) {
    const std::string buffer =
        absl::StrCat("T.Buffer((65536,), \"", dtype, "\")");
    const ir::PrimFuncPtr function =
        Parse(absl::StrCat("A: ", buffer, ", B: ", buffer,
                           ", C: T.Buffer((65536,), \"float32\")"),
              absl::StrCat(R"(
    for i in range(65536):
        with T.block("B"):
            vi = T.axis.spatial(65536, i)
            C[vi] = T.Cast("float32", A[vi])
            B[vi] = T.Cast(")",
                           dtype, R"(", C[vi] * T.float32(0.7))
)"));
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const Buffers inputs = {BytesOf(all), BytesOf(all),
                            BytesOf(std::vector<float>(65536))};
    const auto result = RunOracle(function, inputs);
    ASSERT_TRUE(result.ok()) << result.status();
    const Buffers expected = Interpreted(*function, inputs);
    const auto got = ValuesOf<uint16_t>(result->buffers[1]);
    const auto want = ValuesOf<uint16_t>(expected[1]);
    for (size_t i = 0; i < all.size(); ++i) {
      const bool nan = dtype == std::string("float16")
                           ? std::isnan(ir::HalfToFloat(want[i]))
                           : std::isnan(ir::BFloatToFloat(want[i]));
      ASSERT_TRUE(nan ? std::isnan(dtype == std::string("float16")
                                       ? ir::HalfToFloat(got[i])
                                       : ir::BFloatToFloat(got[i]))
                      : got[i] == want[i])
          << dtype << " " << i;
    }
  }
}

TEST(Oracle, SumsAreMadeInFloat64) {
  const ir::PrimFuncPtr function =
      Parse(R"(A: T.Buffer((4096,), "float32"), S: T.Buffer((1,), "float32"))",
            R"(
    for k in range(4096):
        with T.block("S"):
            vk = T.axis.reduce(4096, k)
            with T.init():
                S[0] = T.float32(0)
            S[0] = S[0] + A[vk]
)");
  std::vector<float> a(4096, 0x1p-25f);
  a[0] = 1;
  const auto result =
      RunOracle(function, {BytesOf(a), BytesOf(std::vector<float>(1))});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(ValuesOf<float>(result->buffers[1]),
              ElementsAre(static_cast<float>(1 + 4095 * 0x1p-25)));
}

// Scores that are partly masked: s = q k + mask.
ir::PrimFuncPtr MaskedScores() {
  return Parse(
      R"(Q: T.Buffer((4, 64), "float32"), K: T.Buffer((8, 64), "float32"), M: T.Buffer((4, 8), "float32"), S: T.Buffer((4, 8), "float32"), P: T.Buffer((4, 8), "float32"))",
      R"(
    X = T.alloc_buffer((4, 8), "float32")
    L = T.alloc_buffer((4,), "float32")
    T_sum = T.alloc_buffer((4,), "float32")
    for i, j, k in T.grid(4, 8, 64):
        with T.block("X"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                X[vi, vj] = T.float32(0)
            X[vi, vj] = X[vi, vj] + Q[vi, vk] * K[vj, vk]
    for i, j in T.grid(4, 8):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = X[vi, vj] + M[vi, vj]
    for i, k in T.grid(4, 8):
        with T.block("L"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                L[vi] = T.float32(-3.4e38)
            L[vi] = T.max(L[vi], S[vi, vk])
    for i, k in T.grid(4, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                T_sum[vi] = T.float32(0)
            T_sum[vi] = T_sum[vi] + T.exp(S[vi, vk] - L[vi])
    for i, j in T.grid(4, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.exp(S[vi, vj] - L[vi]) / T_sum[vi]
)");
}

TEST(Oracle, MasksBoundNobodyElse) {
  const ir::PrimFuncPtr function = MaskedScores();
  for (const float mask : {-1e9f, -INFINITY}) {
    Buffers inputs = RandomInputs(*function, 7);
    std::vector<float> masks(32, 0);
    for (int i = 0; i < 32; i += 3) masks[i] = mask;
    inputs[2] = BytesOf(masks);
    const auto oracle = RunOracle(function, inputs);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    const Buffers right = Interpreted(*function, inputs);
    EXPECT_EQ(DifferenceFromOracle(*function, *oracle, right), "");
    for (const size_t output : {3u, 4u}) {
      const auto values = ValuesOf<float>(oracle->buffers[output]);
      for (int i = 0; i < 32; ++i) {
        if (masks[i] != 0) continue;
        // A tenth of a percent of one element is an error.
        Buffers wrong = right;
        const float moved = values[i] * 1.001f;
        std::memcpy(wrong[output].data() + 4 * i, &moved, 4);
        EXPECT_THAT(DifferenceFromOracle(*function, *oracle, wrong),
                    HasSubstr(absl::StrCat("parameter ", output, ", element ",
                                           i, " is")))
            << values[i] << " within " << oracle->bounds[output][i];
      }
    }
  }
}

TEST(Oracle, DecisionsThatRoundingTurnsHaveRoomForBothSides) {
  const ir::PrimFuncPtr function = Parse(
      R"(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "float32"), G: T.Buffer((3,), "float32"))",
      R"(
    for i in range(3):
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            x = A[vi] * T.float32(3) - T.float32(3)
            B[vi] = T.Select(x > T.float32(0), T.float32(5), T.float32(-5))
            C[vi] = T.Cast("int32", T.floor(A[vi] * T.float32(3)))
            if x > T.float32(0):
                D[vi] = T.float32(1)
            G[vi] = A[T.Cast("int64", T.max(T.min(x, T.float32(1)), T.float32(0)))]
)");
  Buffers inputs = {BytesOf<float>({0.5, 1, 1.3f})};
  for (int i = 0; i < 4; ++i) inputs.push_back(BytesOf<float>({0, 0, 0}));
  const auto oracle = RunOracle(function, inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const auto near = [](double bound) { return DoubleNear(bound, 1e-4); };
  EXPECT_THAT(oracle->bounds[1], ElementsAre(0, near(10), 0));
  EXPECT_THAT(oracle->bounds[2], ElementsAre(0, near(1), 0));
  EXPECT_THAT(oracle->bounds[3], ElementsAre(0, kInf, 0));
  EXPECT_THAT(oracle->bounds[4], ElementsAre(0, 0, 0));
}

// 2^n by its bits, as fast exponentials do: a step of n is a factor of two, and
// where rounding can't turn n, the power is exact.
TEST(Oracle, BitsAreAsFarOffAsWhatTheyAreOf) {
  const ir::PrimFuncPtr function = Parse(
      R"(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "float32"))",
      R"(
    for i in range(3):
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            x = A[vi] * T.float32(3)
            B[vi] = T.reinterpret("float32", (T.Cast("int32", T.floor(x)) + 127) << 23)
            C[vi] = T.reinterpret("int32", x)
            D[vi] = T.reinterpret("float32", T.Cast("int32", T.floor(x)))
)");
  Buffers inputs = {BytesOf<float>({0.5f, 0.25f, 1.0f / 3})};
  for (int i = 0; i < 3; ++i) inputs.push_back(BytesOf<float>({0, 0, 0}));
  const auto oracle = RunOracle(function, inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  // The floor of 1 is off by 1 at most, so that its power is 1 to 4.
  EXPECT_THAT(oracle->bounds[1], ElementsAre(0, 0, DoubleNear(2, 1e-4)));
  for (const double bound : oracle->bounds[2]) {
    EXPECT_GT(bound, 0);
    EXPECT_LT(bound, 64);  // steps of the last place
  }
  EXPECT_THAT(oracle->bounds[3], ElementsAre(0, 0, ::testing::Gt(0)));
}

TEST(Oracle, NumbersAwayFromBoundariesOfRoundingAreExact) {
  // 16-bit results differ only near a rounding boundary.
  const ir::PrimFuncPtr function = Parse(
      R"(A: T.Buffer((1000,), "bfloat16"), B: T.Buffer((1000,), "bfloat16"))",
      R"(
    for i in range(1000):
        with T.block("B"):
            vi = T.axis.spatial(1000, i)
            B[vi] = T.Cast("bfloat16", T.Cast("float32", A[vi]) * T.float32(1.7182818))
)");
  const auto oracle = RunOracle(function, RandomInputs(*function, 5));
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const auto exact =
      std::count(oracle->bounds[1].begin(), oracle->bounds[1].end(), 0.0);
  EXPECT_GT(exact, 990);
}

// Shares of a sum may be rounded before they are divided by it.
TEST(Oracle, IntermediateQuotientsAreRoundedAtAnyScale) {
  const auto bounds = [](const char* share, const char* place) {
    const ir::PrimFuncPtr function = Parse(
        R"(A: T.Buffer((1000,), "float32"), P: T.Buffer((1000,), "float16"), B: T.Buffer((1000,), "float32"))",
        absl::StrReplaceAll(R"(
    X = T.alloc_buffer((1000,), "float16")
    for i in range(1000):
        with T.block("X"):
            vi = T.axis.spatial(1000, i)
            PLACE[vi] = T.Cast("float16", SHARE)
    for i in range(1000):
        with T.block("B"):
            vi = T.axis.spatial(1000, i)
            B[vi] = T.Cast("float32", PLACE[vi])
)",
                            {{"SHARE", share}, {"PLACE", place}}));
    const auto oracle = RunOracle(function, RandomInputs(*function, 5));
    EXPECT_TRUE(oracle.ok()) << oracle.status();
    const std::vector<float> values = ValuesOf<float>(oracle->buffers[2]);
    std::vector<double> shares;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      shares.push_back(static_cast<double>(oracle->bounds[2][i]) /
                       std::abs(values[i]));
    }
    std::sort(shares.begin(), shares.end());
    EXPECT_GT(shares.size(), 900);
    return shares;
  };
  // Half a unit of the last place of either rounding.
  const auto quotients = bounds("A[vi] / T.float32(3)", "X");
  EXPECT_GE(quotients.front(), 0x1p-10);
  EXPECT_LT(quotients[quotients.size() / 2], 0x1.01p-10);
  // The program's results, and products, are rounded as they are.
  for (const auto& [share, place] :
       {std::pair{"A[vi] / T.float32(3)", "P"},
        std::pair{"A[vi] * T.float32(0.3)", "X"}}) {
    const auto exact = bounds(share, place);
    EXPECT_LT(exact[exact.size() / 2], 0x1p-20) << share;
  }
}

TEST(Oracle, RefusesWhatIsNoProgramAsWritten) {
  const ir::PrimFuncPtr function =
      Parse(R"(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"))", R"(
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
)");
  auto lowered = std::make_shared<ir::PrimFunc>(*function);
  lowered->body = ir::MakeStore(
      function->params[1], {ir::MakeRamp(ir::IntConst(0), ir::IntConst(1), 4)},
      ir::MakeBroadcast(ir::IntConst(1, ir::DataType::Int(32)), 4));
  EXPECT_EQ(HostOracle::Compile(lowered).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tilefarm::testing
