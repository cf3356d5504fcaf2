// online_softmax: the resulting blocks, equal results up to rounding,
// rejections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/verifier.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr uint64_t kSoftmaxSeed = 20261122;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct SoftmaxProgram {
  int rows = 3, terms = 24;
  std::string dtype = "float32";
  std::string lowest = "T.float32(-3.4028234663852886e+38)";
  std::string maximum = "T.max(M[vi], A[vi, vk])";
  std::string term = "T.exp(A[vi, vk] - M[vi])";
  std::string block_attr;

  std::string Text() const {
    return absl::StrReplaceAll(
        Program("A: T.Buffer((ROWS, TERMS), \"DTYPE\"), S: T.Buffer((ROWS,), "
                "\"DTYPE\"), N: T.Buffer((ROWS,), \"DTYPE\")",
                R"(M = T.alloc_buffer((ROWS,), "DTYPE")
for i, k in T.grid(ROWS, TERMS):
    with T.block("M"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            M[vi] = LOWEST
        M[vi] = MAXIMUM
for i, k in T.grid(ROWS, TERMS):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])ATTR
        with T.init():
            S[vi] = T.DTYPE(0)
        S[vi] = S[vi] + TERM
for i in range(ROWS):
    with T.block("N"):
        vi = T.axis.remap("S", [i])
        N[vi] = M[vi] + T.log(S[vi]))"),
        {{"LOWEST", lowest},
         {"MAXIMUM", maximum},
         {"DTYPE", dtype},
         {"ROWS", absl::StrCat(rows)},
         {"TERMS", absl::StrCat(terms)},
         {"TERM", term},
         {"ATTR", block_attr.empty()
                      ? ""
                      : absl::StrCat("\n            T.block_attr({", block_attr,
                                     "})")}});
  }
};

std::string Trace(int chunk, int lanes, const std::string& before = "") {
  return absl::StrCat(before,
                      "b0 = sch.get_block(\"S\")\n"
                      "b1, b2 = sch.online_softmax(b0, chunk=",
                      chunk, ", lanes=", lanes, ")\n");
}

// All float32 parameters of the function after a run on `first` and zeros.
std::vector<std::vector<float>> Run(const ir::PrimFunc& function,
                                    const std::vector<float>& first) {
  std::vector<std::vector<float>> arrays;
  std::vector<std::span<std::byte>> buffers;
  for (const ir::Buffer& param : function.params) {
    arrays.emplace_back(static_cast<size_t>(param->num_elements()));
  }
  arrays[0] = first;
  for (std::vector<float>& array : arrays) {
    buffers.push_back(std::as_writable_bytes(std::span(array)));
  }
  const absl::Status status = ir::Interpret(function, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return arrays;
}

// Expects that both results differ at most by the rounding of a sum of `terms`
// terms, and that infinite values and NaN are at the same positions.
void ExpectSameButForRounding(const std::string& program,
                              const std::string& trace,
                              const std::vector<float>& first, int terms) {
  const ir::IRModule module = ParseProgram(program);
  const auto schedule = Apply(module, trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::Status verified = ir::Verify(schedule->module());
  EXPECT_TRUE(verified.ok()) << verified;
  const auto wanted = Run(*module.functions[0], first);
  const auto got = Run(*schedule->module().functions[0], first);
  for (size_t a = 0; a < wanted.size(); ++a) {
    for (size_t i = 0; i < wanted[a].size(); ++i) {
      const float x = wanted[a][i], y = got[a][i];
      if (!std::isfinite(x)) {
        EXPECT_TRUE(std::isnan(x) ? std::isnan(y) : x == y)
            << x << ", " << y << " at " << a << ", " << i;
        continue;
      }
      EXPECT_NEAR(x, y, std::abs(x) * 0x1p-24 * (terms + 8)) << a << ", " << i;
    }
  }
}

std::vector<float> Numbers(size_t count, float range) {
  Rng rng(kSoftmaxSeed);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    number = range * static_cast<float>(rng.Uniform() * 2 - 1);
  }
  return numbers;
}

TEST(OnlineSoftmax, MakesPartsAndJoinsThem) {
  const auto schedule =
      Apply(ParseProgram(SoftmaxProgram().Text()), Trace(8, 4));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const ir::IRModule expected = ParseProgram(Program(
      "A: T.Buffer((3, 24), \"float32\"), S: T.Buffer((3,), \"float32\"), "
      "N: T.Buffer((3,), \"float32\")",
      R"(M = T.alloc_buffer((3,), "float32")
M_part = T.alloc_buffer((3, 3, 4), "float32")
S_part = T.alloc_buffer((3, 3, 4), "float32")
for i, k_0, k_1, k_2 in T.grid(3, 3, 2, 4):
    with T.block("M_part"):
        vi, vk_0, vk_1, vk_2 = T.axis.remap("SSRS", [i, k_0, k_1, k_2])
        with T.init():
            M_part[vi, vk_0, vk_2] = T.float32(-3.4028234663852886e+38)
        M_part[vi, vk_0, vk_2] = T.max(M_part[vi, vk_0, vk_2], A[vi, vk_0 * 8 + vk_1 * 4 + vk_2])
for i, k_0, k_1, k_2 in T.grid(3, 3, 2, 4):
    with T.block("S_part"):
        vi, vk_0, vk_1, vk_2 = T.axis.remap("SSRS", [i, k_0, k_1, k_2])
        with T.init():
            S_part[vi, vk_0, vk_2] = T.float32(0)
        S_part[vi, vk_0, vk_2] = S_part[vi, vk_0, vk_2] + T.exp(A[vi, vk_0 * 8 + vk_1 * 4 + vk_2] - M_part[vi, vk_0, vk_2])
for i, k_0, k_2 in T.grid(3, 3, 4):
    with T.block("M"):
        vi, vk_0, vk_2 = T.axis.remap("SRR", [i, k_0, k_2])
        with T.init():
            M[vi] = T.float32(-3.4028234663852886e+38)
        M[vi] = T.max(M[vi], M_part[vi, vk_0, vk_2])
for i, k_0, k_2 in T.grid(3, 3, 4):
    with T.block("S"):
        vi, vk_0, vk_2 = T.axis.remap("SRR", [i, k_0, k_2])
        with T.init():
            S[vi] = T.float32(0)
        S[vi] = S[vi] + S_part[vi, vk_0, vk_2] * T.exp(M_part[vi, vk_0, vk_2] - M[vi])
for i in range(3):
    with T.block("N"):
        vi = T.axis.remap("S", [i])
        N[vi] = M[vi] + T.log(S[vi]))"));
  EXPECT_TRUE(ir::StructuralEqual(*schedule->module().functions[0],
                                  *expected.functions[0]))
      << ir::Print(schedule->module()) << "\nexpected\n"
      << ir::Print(expected);
}

TEST(OnlineSoftmax, ComputesTheSameButForRounding) {
  for (const float range : {1.0f, 30.0f, 1000.0f, 1e38f}) {
    for (const int terms : {24, 29, 8, 31}) {
      SCOPED_TRACE(absl::StrCat("range ", range, ", terms ", terms));
      SoftmaxProgram sum;
      sum.terms = terms;
      const std::vector<float> numbers =
          Numbers(static_cast<size_t>(sum.rows * terms), range);
      for (const auto& [chunk, lanes] :
           {std::pair{8, 4}, {8, 8}, {8, 1}, {1, 1}, {6, 2}}) {
        ExpectSameButForRounding(sum.Text(), Trace(chunk, lanes), numbers,
                                 terms);
      }
      // Relative to the largest exponent times a constant.
      sum.term = "T.exp((A[vi, vk] - M[vi]) * T.float32(0.25))";
      ExpectSameButForRounding(sum.Text(), Trace(8, 4), numbers, terms);
    }
  }
}

TEST(OnlineSoftmax, WhatIsBeyondTheRangeIsNotRead) {
  SoftmaxProgram sum;
  sum.terms = 29;
  const auto schedule = Apply(ParseProgram(sum.Text()), Trace(8, 4));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = ir::Print(schedule->module());
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "T.if_then_else(vk_0 * 8 + vk_1 * 4 + vk_2 < 29, "
                        "A[vi, vk_0 * 8 + vk_1 * 4 + vk_2], "
                        "T.float32(-3.4028235e+38))"));
}

// Masks: parts of a row, whole chunks and a whole row are -inf; infinity and
// NaN propagate as before.
TEST(OnlineSoftmax, InfiniteExponents) {
  const SoftmaxProgram sum;
  std::vector<float> numbers = Numbers(72, 3);
  for (size_t i = 0; i < 24; ++i) {
    if (i < 8 || i % 3 == 0)
      numbers[i] = -kInfinity;  // includes two whole lanes
    numbers[24 + i] = -kInfinity;
  }
  ExpectSameButForRounding(sum.Text(), Trace(8, 4), numbers, sum.terms);
  numbers[60] = kInfinity;
  numbers[30] = std::nanf("");
  ExpectSameButForRounding(sum.Text(), Trace(8, 4), numbers, sum.terms);
}

// The exponentials are a block of their own, read twice; reduced dimensions are
// kept, and two dimensions distinguish rows.
TEST(OnlineSoftmax, WorksOnInlinedSoftmax) {
  const std::string program = Program(
      "A: T.Buffer((2, 3, 20), \"float32\"), B: T.Buffer((2, 3, 20), "
      "\"float32\")",
      R"(M = T.alloc_buffer((3, 2, 1), "float32")
E = T.alloc_buffer((2, 3, 20), "float32")
S = T.alloc_buffer((2, 3, 1), "float32")
for i, j, o, k in T.grid(3, 2, 1, 20):
    with T.block("M"):
        vi, vj, vo, vk = T.axis.remap("SSSR", [i, j, o, k])
        with T.init():
            M[vi, vj, vo] = T.float32(-3.4028234663852886e+38)
        M[vi, vj, vo] = T.max(M[vi, vj, vo], A[vj, vi, vk] * T.float32(0.5))
for i, j, k in T.grid(2, 3, 20):
    with T.block("E"):
        vi, vj, vk = T.axis.remap("SSS", [i, j, k])
        E[vi, vj, vk] = T.exp(A[vi, vj, vk] * T.float32(0.5) - M[vj, vi, 0])
for i, j, o, k in T.grid(2, 3, 1, 20):
    with T.block("S"):
        vi, vj, vo, vk = T.axis.remap("SSSR", [i, j, o, k])
        with T.init():
            S[vi, vj, vo] = T.float32(0)
        S[vi, vj, vo] = S[vi, vj, vo] + E[vi, vj, vk]
for i, j, k in T.grid(2, 3, 20):
    with T.block("B"):
        vi, vj, vk = T.axis.remap("SSS", [i, j, k])
        B[vi, vj, vk] = E[vi, vj, vk] / S[vi, vj, 0])");
  const std::string inlined =
      "b9 = sch.get_block(\"E\")\nsch.compute_inline(b9)\n";
  ExpectSameButForRounding(program, Trace(8, 4, inlined), Numbers(120, 20), 40);
  ExpectRefused(program, Trace(8, 4), kIllegal,
                {"online_softmax", "block S", "no sum of exp(x - largest)"});
}

TEST(OnlineSoftmax, RefusesOtherChunks) {
  for (const auto& [chunk, lanes] :
       {std::pair{8, 0}, {8, -4}, {4, 8}, {10, 4}, {32, 4}, {0, 0}}) {
    ExpectRefused(SoftmaxProgram().Text(), Trace(chunk, lanes), kInvalid,
                  {"online_softmax", "block S", "a chunk of"});
  }
}

TEST(OnlineSoftmax, RefusesOtherSums) {
  SoftmaxProgram sum;
  sum.term = "A[vi, vk] - M[vi]";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"no sum of exp(x - largest)"});
  sum.term = "T.exp((A[vi, vk] - M[vi]) * A[vi, vk])";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"no sum of exp(x - largest)"});
  sum.term = "T.exp(A[vi, vk] + M[vi])";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"no sum of exp(x - largest)"});
  sum.term = "T.exp(A[vi, vk] - T.float32(1))";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"no sum of exp(x - largest)"});
  sum.term = "T.exp(A[vi, vk] - A[vi, 0])";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal, {"no one block makes A"});
  // Relative to the maximum of other values, or of another row.
  sum.term = "T.exp(A[vi, vk] * T.float32(2) - M[vi])";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"block M", "no maximum of the exponents of S"});
  sum.term = "T.exp(A[vi, vk] - M[2 - vi])";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"block S", "vi tells apart no M"});
  SoftmaxProgram least;
  least.maximum = "T.min(M[vi], A[vi, vk])";
  least.lowest = "T.float32(3.4028234663852886e+38)";
  ExpectRefused(least.Text(), Trace(8, 4), kIllegal,
                {"block M", "no maximum of the exponents of S"});
  SoftmaxProgram annotated;
  annotated.block_attr = "\"layout\": 1";
  ExpectRefused(annotated.Text(), Trace(8, 4), kIllegal,
                {"block S", "annotation layout"});
}

TEST(OnlineSoftmax, RefusesSumsOverTwoVariables) {
  const std::string maximum = R"(M = T.alloc_buffer((3,), "float32")
for i, k in T.grid(3, 24):
    with T.block("M"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            M[vi] = T.float32(-3.4028234663852886e+38)
        M[vi] = T.max(M[vi], A[vi, vk])
)";
  ExpectRefused(Program("A: T.Buffer((3, 24), \"float32\"), S: T.Buffer((3,), "
                        "\"float32\")",
                        maximum + R"(for i, k, l in T.grid(3, 4, 6):
    with T.block("S"):
        vi, vk, vl = T.axis.remap("SRR", [i, k, l])
        with T.init():
            S[vi] = T.float32(0)
        S[vi] = S[vi] + T.exp(A[vi, vk * 6 + vl] - M[vi]))"),
                Trace(8, 4), kIllegal, {"block S", "more than one variable"});
}

TEST(OnlineSoftmax, RefusesAnInfiniteIdentity) {
  SoftmaxProgram sum;
  sum.lowest = "T.float32(\"-inf\")";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal,
                {"block M", "no finite number"});
}

TEST(OnlineSoftmax, RefusesOtherTypes) {
  SoftmaxProgram sum;
  sum.dtype = "float16";
  sum.lowest = "T.float16(-65504)";
  ExpectRefused(sum.Text(), Trace(8, 4), kIllegal, {"block S", "float16"});
}

TEST(OnlineSoftmax, RefusesLoopsThatWereChanged) {
  ExpectRefused(SoftmaxProgram().Text(),
                Trace(8, 4,
                      "b7 = sch.get_block(\"M\")\nl1, l2 = sch.get_loops(b7)\n"
                      "l3, l4 = sch.split(l2, factors=[None, 4])\n"),
                kIllegal, {"block M", "its loops are not its own"});
  ExpectRefused(SoftmaxProgram().Text(),
                Trace(8, 4,
                      "b7 = sch.get_block(\"S\")\nl1, l2 = sch.get_loops(b7)\n"
                      "sch.parallel(l1)\n"),
                kIllegal, {"block S"});
}

}  // namespace
}  // namespace tilefarm::testing
