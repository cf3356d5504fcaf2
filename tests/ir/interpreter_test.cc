#include "compiler/ir/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "compiler/ir/float16.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs a function of one input and one output.
template <typename Out, typename In>
std::vector<Out> Outputs(const PrimFunc& function, std::vector<In> in,
                         size_t out_size) {
  std::vector<Out> out(out_size);
  const std::span<std::byte> buffers[] = {
      std::as_writable_bytes(std::span(in)),
      std::as_writable_bytes(std::span(out))};
  const absl::Status status = Interpret(function, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

// out[i] = expression of in[i], elementwise.
template <typename Out, typename In>
std::vector<Out> Map(const std::string& in_type, const std::string& out_type,
                     const std::string& expression, const std::vector<In>& in) {
  const std::string n = std::to_string(in.size());
  const PrimFuncPtr f = ParseOrDie(
      "@T.prim_func\ndef f(x: T.Buffer((" + n + ",), \"" + in_type +
      "\"), y: T.Buffer((" + n + ",), \"" + out_type + "\")):\n" +
      "    for i in range(" + n + "):\n        y[i] = " + expression + "\n");
  return Outputs<Out>(*f, in, in.size());
}

absl::Status Status(const std::string& body, int64_t max_steps = 1 << 20) {
  const PrimFuncPtr f = ParseOrDie(WithBuffers(body));
  std::vector<std::vector<std::byte>> data;
  std::vector<std::span<std::byte>> spans;
  for (const Buffer& param : f->params) {
    data.emplace_back(
        static_cast<size_t>(param->num_elements() * param->dtype.bytes()));
  }
  for (auto& bytes : data) spans.emplace_back(bytes);
  return Interpret(*f, spans, {.max_steps = max_steps});
}

TEST(Interpreter, IntegersWrapAtTheirWidth) {
  EXPECT_THAT((Map<int8_t, int8_t>("int8", "int8", "x[i] + 100", {100, -128})),
              ElementsAre(-56, -28));
  EXPECT_THAT((Map<uint8_t, uint8_t>("uint8", "uint8", "x[i] * 3", {100})),
              ElementsAre(44));
  EXPECT_THAT(
      (Map<int32_t, int32_t>("int32", "int32", "x[i] * x[i]", {65536, 65537})),
      ElementsAre(0, 131073));
  EXPECT_THAT(
      (Map<int64_t, int64_t>("int64", "int64", "x[i] + 1", {INT64_MAX})),
      ElementsAre(INT64_MIN));
}

TEST(Interpreter, FlooringAndTruncatingDivision) {
  const std::vector<int32_t> in = {7, -7};
  EXPECT_THAT((Map<int32_t>("int32", "int32", "x[i] // 2", in)),
              ElementsAre(3, -4));
  EXPECT_THAT((Map<int32_t>("int32", "int32", "x[i] % 3", in)),
              ElementsAre(1, 2));
  EXPECT_THAT((Map<int32_t>("int32", "int32", "T.truncdiv(x[i], 2)", in)),
              ElementsAre(3, -3));
  EXPECT_THAT((Map<int32_t>("int32", "int32", "T.truncmod(x[i], 3)", in)),
              ElementsAre(1, -1));
  EXPECT_THAT(
      (Map<int32_t, int32_t>("int32", "int32", "x[i] // -1", {INT32_MIN})),
      ElementsAre(INT32_MIN));
  EXPECT_THAT(
      (Map<uint64_t, uint64_t>("uint64", "uint64", "x[i] // 10", {UINT64_MAX})),
      ElementsAre(UINT64_MAX / 10));
}

TEST(Interpreter, UnsignedComparison) {
  EXPECT_THAT((Map<uint64_t, uint64_t>("uint64", "uint64", "T.max(x[i], 1)",
                                       {UINT64_MAX})),
              ElementsAre(UINT64_MAX));
}

TEST(Interpreter, ShiftsAndBits) {
  EXPECT_THAT((Map<int32_t, int32_t>("int32", "int32", "x[i] >> 1", {-4})),
              ElementsAre(-2));
  EXPECT_THAT(
      (Map<uint32_t, uint32_t>("uint32", "uint32", "x[i] >> 1", {0x80000000u})),
      ElementsAre(0x40000000u));
  EXPECT_THAT(
      (Map<int32_t, int32_t>("int32", "int32", "(x[i] & 6) | (x[i] ^ 1)", {7})),
      ElementsAre(6));
  EXPECT_THAT(
      (Map<int32_t, int32_t>("int32", "int32",
                             "T.popcount(x[i]) * 100 + T.clz(x[i])", {255})),
      ElementsAre(824));
}

TEST(Interpreter, ReinterpretsBits) {
  EXPECT_THAT((Map<uint32_t, float>("float32", "uint32",
                                    "T.reinterpret(\"uint32\", x[i])",
                                    {1, -2, INFINITY})),
              ElementsAre(0x3f800000u, 0xc0000000u, 0x7f800000u));
  EXPECT_THAT((Map<float, int32_t>("int32", "float32",
                                   "T.reinterpret(\"float32\", x[i] << 23)",
                                   {127, 130})),
              ElementsAre(1, 8));
  EXPECT_THAT((Map<int64_t, double>("float64", "int64",
                                    "T.reinterpret(\"int64\", x[i])", {-2.0})),
              ElementsAre(INT64_MIN + 0x4000000000000000));
  EXPECT_THAT((Map<int8_t, uint8_t>("uint8", "int8",
                                    "T.reinterpret(x[i], dtype=\"int8\")",
                                    {255, 128, 1})),
              ElementsAre(-1, -128, 1));
  // Constants fold; what is not finite stays a call.
  EXPECT_THAT(
      (Map<float, float>("float32", "float32",
                         "x[i] + T.reinterpret(\"float32\", 1073741824)", {1})),
      ElementsAre(3));
  EXPECT_THAT((Map<float, float>(
                  "float32", "float32",
                  "T.reinterpret(\"float32\", T.uint32(0xff800000))", {1})),
              ElementsAre(-INFINITY));
}

TEST(Interpreter, Float32RoundsEachOperation) {
  const float big = 16777216.0f;
  EXPECT_THAT((Map<float, float>("float32", "float32", "x[i] + 1 + 1", {big})),
              ElementsAre(big));
  EXPECT_THAT(
      (Map<double, double>("float64", "float64", "x[i] + 1 + 1", {16777216.0})),
      ElementsAre(16777218.0));
}

TEST(Interpreter, HalfsComputeInFloatAndRoundAtStores) {
  const std::vector<uint16_t> in = {FloatToHalf(2048.0f)};
  // In float16 arithmetic 2048 + 1 would be 2048, twice.
  EXPECT_THAT((Map<uint16_t>("float16", "float16", "x[i] + 1 + 1", in)),
              ElementsAre(FloatToHalf(2050.0f)));
  EXPECT_THAT((Map<uint16_t>("bfloat16", "bfloat16", "x[i] + 1 + 1",
                             std::vector<uint16_t>{FloatToBFloat(256.0f)})),
              ElementsAre(FloatToBFloat(258.0f)));
}

TEST(Interpreter, CastsToHalfsRound) {
  const auto through = [](const std::string& dtype, float value) {
    return Map<float, float>(
        "float32", "float32",
        absl::StrCat("T.Cast(\"float32\", T.Cast(\"", dtype, "\", x[i]))"),
        {value})[0];
  };
  EXPECT_EQ(through("float16", 2049), 2048);
  EXPECT_EQ(through("float16", 2050), 2050);
  EXPECT_EQ(through("float16", 65520), INFINITY);
  EXPECT_EQ(through("bfloat16", 257), 256);
  EXPECT_TRUE(std::isnan(through("float16", NAN)));
  EXPECT_THAT((Map<float, int32_t>(
                  "int32", "float32",
                  "T.Cast(\"float32\", T.Cast(\"float16\", x[i]))", {2049})),
              ElementsAre(2048));
}

TEST(Interpreter, CastsTruncateAndSaturate) {
  EXPECT_THAT(
      (Map<int32_t, float>("float32", "int32", "T.Cast(\"int32\", x[i])",
                           {2.9f, -2.9f, 1e20f, -1e20f, NAN})),
      ElementsAre(2, -2, INT32_MAX, INT32_MIN, 0));
  EXPECT_THAT((Map<uint8_t, int32_t>("int32", "uint8",
                                     "T.Cast(\"uint8\", x[i])", {300, -1})),
              ElementsAre(44, 255));
  EXPECT_THAT((Map<float, int64_t>("int64", "float32",
                                   "T.Cast(\"float32\", x[i])", {16777217})),
              ElementsAre(16777216.0f));
  EXPECT_THAT((Map<uint8_t, float>("float32", "bool", "T.Cast(\"bool\", x[i])",
                                   {0.0f, 0.5f})),
              ElementsAre(0, 1));
}

TEST(Interpreter, Intrinsics) {
  const auto one = [](const std::string& expression, float x) {
    return Map<float, float>("float32", "float32", expression, {x})[0];
  };
  EXPECT_FLOAT_EQ(one("T.exp(x[i])", 1.5f), std::exp(1.5f));
  EXPECT_FLOAT_EQ(one("T.erf(x[i])", 0.5f), std::erf(0.5f));
  EXPECT_FLOAT_EQ(one("T.sigmoid(x[i])", 0.5f), 1 / (1 + std::exp(-0.5f)));
  EXPECT_FLOAT_EQ(one("T.rsqrt(x[i])", 4.0f), 0.5f);
  EXPECT_FLOAT_EQ(one("T.pow(x[i], 3)", 2.0f), 8.0f);
  EXPECT_FLOAT_EQ(one("T.round(x[i])", 2.5f), 3.0f);
  EXPECT_FLOAT_EQ(one("T.nearbyint(x[i])", 2.5f), 2.0f);
  EXPECT_FLOAT_EQ(one("T.trunc(x[i])", -2.5f), -2.0f);
  EXPECT_FLOAT_EQ(one("T.fma(x[i], x[i], 1)", 3.0f), 10.0f);
  EXPECT_FLOAT_EQ(one("T.copysign(x[i], -1)", 3.0f), -3.0f);
  EXPECT_FLOAT_EQ(one("T.Select(T.isnan(x[i]), 1, 2)", NAN), 1.0f);
  EXPECT_FLOAT_EQ(one("T.Select(T.isinf(x[i]), 1, 2)", INFINITY), 1.0f);
  for (float x : {-2.5f, -1e-6f, 1e-6f, 0.3f, 40.0f}) {
    EXPECT_FLOAT_EQ(one("T.asinh(x[i])", x), std::asinh(x));
  }
  EXPECT_FLOAT_EQ(one("T.acosh(x[i])", 1.5f), std::acosh(1.5f));
  EXPECT_FLOAT_EQ(one("T.atanh(x[i])", 0.25f), std::atanh(0.25f));
  EXPECT_FLOAT_EQ(one("x[i] % 2", -3.5f), 0.5f);
  EXPECT_FLOAT_EQ(one("T.truncmod(x[i], 2)", -3.5f), -1.5f);
  EXPECT_FLOAT_EQ(one("T.Let(v * v, where={v: x[i] + 1})", 2.0f), 9.0f);
}

TEST(Interpreter, IfThenElseTouchesTheChosenSideOnly) {
  EXPECT_TRUE(Status("for i in range(16):\n"
                     "    C[i] = T.if_then_else(i >= 1, A[i - 1], 0)")
                  .ok());
  EXPECT_EQ(Status("for i in range(16):\n"
                   "    C[i] = T.Select(i >= 1, A[i - 1], 0)")
                .code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(Status("for i in range(16):\n"
                     "    if i >= 1 and A[i - 1] >= 0:\n"
                     "        C[i] = 1")
                  .ok());
}

TEST(Interpreter, OutOfBoundsNamesBufferIndexAndBlock) {
  const absl::Status status = Status(
      "for i in range(16):\n"
      "    with T.block(\"shift\"):\n"
      "        v = T.axis.spatial(16, i)\n"
      "        C[v] = A[v + 1]");
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("block \"shift\": index 16 of 'A' is out of bounds: "
                        "dimension 0 has extent 16"));
}

TEST(Interpreter, DivisionByZeroIsAnError) {
  const absl::Status status = Status("I[0] = I[1] // I[2]");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("division by zero"));
}

TEST(Interpreter, StepsAreBounded) {
  EXPECT_EQ(Status("for i, j in T.grid(1000000, 1000000):\n    C[0] = 1", 1000)
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Status("for i in range(1000000000):\n    pass", 1000).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(Interpreter, BuffersOfTheWrongSize) {
  const PrimFuncPtr f = ParseOrDie(WithBuffers("C[0] = 1"));
  EXPECT_EQ(Interpret(*f, {}).code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::byte> small(3);
  const std::vector<std::span<std::byte>> spans(f->params.size(), small);
  EXPECT_EQ(Interpret(*f, spans).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Interpreter, UninitialisedWorkspaceShows) {
  const PrimFuncPtr f = ParseOrDie(
      "@T.prim_func\ndef f(x: T.Buffer((1,)), y: T.Buffer((1,))):\n"
      "    t = T.alloc_buffer((1,))\n    y[0] = t[0] + x[0]\n");
  EXPECT_TRUE(std::isnan(Outputs<float>(*f, std::vector<float>{1}, 1)[0]));
}

// Each execution of a block has workspace of its own.
TEST(Interpreter, ReadsOfWhatNothingWroteAreRefusedIfAsked) {
  const auto status = [](const std::string& condition) {
    const PrimFuncPtr f = ParseOrDie(absl::StrCat(R"(
@T.prim_func
def f(x: T.Buffer((4,)), y: T.Buffer((4,))):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            t = T.alloc_buffer((4,))
            if )",
                                                  condition, R"(:
                t[vi] = x[vi]
            y[vi] = T.if_then_else(vi < 3, t[vi], T.float32(0))
)"));
    std::vector<float> x(4), y(4);
    const std::span<std::byte> buffers[] = {
        std::as_writable_bytes(std::span(x)),
        std::as_writable_bytes(std::span(y))};
    return Interpret(*f, buffers, {.refuse_unwritten = true});
  };
  EXPECT_TRUE(status("vi < 3").ok()) << status("vi < 3");
  const absl::Status refused = status("vi != 2");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("element 2 of 't'"), HasSubstr("outer")));
}

TEST(Interpreter, InitRunsWhereAllReductionsStart) {
  const PrimFuncPtr f = ParseOrDie(R"(
@T.prim_func
def f(x: T.Buffer((4, 3, 2)), y: T.Buffer((4,))):
    for k, i, r in T.grid(3, 4, 2):
        with T.block("sum"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(3, k)
            vr = T.axis.reduce(2, r)
            with T.init():
                y[vi] = 10
            y[vi] += x[vi, vk, vr]
)");
  std::vector<float> in(24);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  EXPECT_THAT(Outputs<float>(*f, in, 4), ElementsAre(25, 61, 97, 133));
}

TEST(Interpreter, PredicatedBlocksDoNothingWhereFalse) {
  const PrimFuncPtr f = ParseOrDie(R"(
@T.prim_func
def f(x: T.Buffer((5,)), y: T.Buffer((5,))):
    for i0, i1 in T.grid(2, 4):
        with T.block("copy"):
            v = T.axis.spatial(5, i0 * 4 + i1)
            T.where(i0 * 4 + i1 < 5)
            y[v] = x[v] * 2
)");
  EXPECT_THAT(Outputs<float>(*f, std::vector<float>{1, 2, 3, 4, 5}, 5),
              ElementsAre(2, 4, 6, 8, 10));
}

TEST(Interpreter, UnalignedBuffers) {
  const PrimFuncPtr f = ParseOrDie(
      "@T.prim_func\ndef f(x: T.Buffer((2,))):\n    x[1] = x[0] + 1\n");
  std::vector<std::byte> bytes(9);
  const float one = 1;
  std::memcpy(bytes.data() + 1, &one, 4);
  const std::span<std::byte> buffers[] = {std::span(bytes).subspan(1)};
  ASSERT_TRUE(Interpret(*f, buffers).ok());
  float out;
  std::memcpy(&out, bytes.data() + 5, 4);
  EXPECT_EQ(out, 2.0f);
}

TEST(Interpreter, LoweredVectorsLaneByLane) {
  const DataType f32 = DataType::Float(32);
  const Buffer x = MakeBuffer("x", f32, {6});
  const Buffer y = MakeBuffer("y", f32, {6});
  const Var i = MakeVar("i");
  const Expr ramp = MakeRamp(Expr(i) * 4, IntConst(1), 4);
  const Expr mask = LT(ramp, MakeBroadcast(IntConst(6), 4));
  const Expr load = std::make_shared<const LoadNode>(x, std::vector<Expr>{ramp},
                                                     f32.with_lanes(4), mask);
  const Stmt store =
      MakeStore(y, {ramp}, load + MakeBroadcast(FloatConst(1, f32), 4), mask);
  const PrimFunc f{"f", {x, y}, {}, MakeFor(i, IntConst(2), store)};
  EXPECT_THAT(Outputs<float>(f, std::vector<float>{1, 2, 3, 4, 5, 6}, 6),
              ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f), 0x3C00);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(2049.0f), FloatToHalf(2048.0f));
  EXPECT_EQ(FloatToHalf(2051.0f), FloatToHalf(2052.0f));
  EXPECT_EQ(FloatToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(FloatToHalf(-0.0f), 0x8000);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(FloatToHalf(value), half);
  }
  EXPECT_EQ(FloatToBFloat(1.0f), 0x3F80);
  EXPECT_TRUE(std::isnan(BFloatToFloat(FloatToBFloat(NAN))));
}

}  // namespace
}  // namespace tilefarm::ir
