// online_product: the resulting blocks, equal results up to rounding,
// rejections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr uint64_t kProductSeed = 20261129;

constexpr char kAttentionBody[] = R"(S = T.alloc_buffer((2, 12, 8), "float32")
M = T.alloc_buffer((2, 12), "float32")
D = T.alloc_buffer((2, 12), "float32")
P = T.alloc_buffer((2, 12, 8), "float32")
for h, r, c, k in T.grid(2, 12, 8, 4):
    with T.block("S"):
        b, i, j, l = T.axis.remap("SSSR", [h, r, c, k])
        with T.init():
            S[b, i, j] = T.float32(0)
        S[b, i, j] = S[b, i, j] + Q[b, i, l] * K[b, j, l]
for h, r, c in T.grid(2, 12, 8):
    with T.block("M"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            M[b, i] = LOWEST
        M[b, i] = T.max(M[b, i], EXPONENT)
BETWEENfor h, r, c in T.grid(2, 12, 8):
    with T.block("D"):
        b, i, j = T.axis.remap("SSR", [h, r, c])
        with T.init():
            D[b, i] = T.float32(0)
        D[b, i] = D[b, i] + EXP_OF_J
for h, r, c in T.grid(2, 12, 8):
    with T.block("P"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        P[b, i, j] = SHARE
for h, r, e, c in T.grid(2, 12, 3, 8):
    with T.block("O"):
        b, i, d, j = T.axis.remap("SSSR", [h, r, e, c])
        with T.init():
            O[b, i, d] = T.float32(0)
        O[b, i, d] = O[b, i, d] + TERM
AFTER)";

// Two heads of attention: 12 rows, 8 terms, 3 columns.
struct AttentionProgram {
  std::string exponent = "S[b, i, j]";
  std::string exp = "T.exp(EXPONENT - M[b, i])";
  std::string lowest = "T.float32(-3.4028234663852886e+38)";
  std::string share = "EXP_OF_J / D[b, i]";
  std::string term = "P[b, i, j] * V[b, j, d]";
  std::string after;  // a block more
  std::string between;

  std::string Text() const {
    const std::string body =
        absl::StrReplaceAll(kAttentionBody, {{"LOWEST", lowest},
                                             {"SHARE", share},
                                             {"TERM", term},
                                             {"BETWEEN", between},
                                             {"AFTER", after}});
    return Program(
        "Q: T.Buffer((2, 12, 4), \"float32\"), "
        "K: T.Buffer((2, 8, 4), \"float32\"), "
        "V: T.Buffer((2, 8, 3), \"float32\"), "
        "O: T.Buffer((2, 12, 3), \"float32\"), "
        "X: T.Buffer((2, 12), \"float32\")",
        absl::StrReplaceAll(absl::StrReplaceAll(body, {{"EXP_OF_J", exp}}),
                            {{"EXPONENT", exponent}}));
  }
};

std::string OnlineTrace(int tile, int apart, int chunk,
                        const std::string& before = "") {
  return absl::StrCat(before,
                      "b0 = sch.get_block(\"O\")\n"
                      "b1, b2, b3, b4, b5, b6, b7, b8, b9, b10 = "
                      "sch.online_product(b0, tile=",
                      tile, ", apart=", apart, ", chunk=", chunk, ")\n");
}

using FloatArrays = std::vector<std::vector<float>>;

// The result of the function for such parameters.
std::vector<float> ResultOf(const ir::PrimFunc& function, FloatArrays arrays) {
  std::vector<std::span<std::byte>> buffers;
  for (std::vector<float>& array : arrays) {
    buffers.push_back(std::as_writable_bytes(std::span(array)));
  }
  const absl::Status status = ir::Interpret(function, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return arrays[3];
}

FloatArrays RandomArrays(const ir::PrimFunc& function, float range) {
  Rng rng(kProductSeed);
  FloatArrays arrays;
  for (const ir::Buffer& param : function.params) {
    auto& array =
        arrays.emplace_back(static_cast<size_t>(param->num_elements()));
    for (float& x : array) {
      x = (static_cast<float>(rng.Between(0, 2000)) / 1000 - 1) * range;
    }
  }
  return arrays;
}

void ExpectCloseResults(const AttentionProgram& attention,
                        const std::string& trace, const FloatArrays& arrays) {
  const ir::IRModule module = ParseProgram(attention.Text());
  const auto schedule = Apply(module, trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::Status verified = ir::Verify(schedule->module());
  EXPECT_TRUE(verified.ok()) << verified;
  const std::vector<float> wanted = ResultOf(*module.functions[0], arrays);
  const std::vector<float> got =
      ResultOf(*schedule->module().functions[0], arrays);
  float largest = 0;
  for (const float x : wanted) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 0x1p-18 * largest) << i;
  }
}

TEST(OnlineProduct, MakesTheBlocksOfEveryChunk) {
  const AttentionProgram attention;
  const auto schedule =
      Apply(ParseProgram(attention.Text()), OnlineTrace(2, 3, 4));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = ir::Print(schedule->module());
  for (const char* part : {
           "for h, r_0, r_2 in T.grid(2, 2, 3):\n            for c_0 in "
           "range(2):",
           "vr = T.axis.spatial(12, r_0 * 6 + r_1 * 3 + r_2)",
           "M_factor[vh, vr] = T.exp2((M[vh, vr] - T.max(M[vh, vr], M_part[vh, "
           "vr, vc_0])) * T.float32(",
           "D[vh, vr] = D[vh, vr] * M_factor[vh, vr] + D_part[vh, vr, vc_0]",
           "O_sum[vh, vr, ve] = O_sum[vh, vr, ve] * M_factor[vh, vr] + "
           "O_part[vc_0, vh, vr, ve]",
           "O[vh, vr, ve] = O_sum[vh, vr, ve] / D[vh, vr]",
       }) {
    EXPECT_THAT(text, ::testing::HasSubstr(part));
  }
}

TEST(OnlineProduct, GivesTheSameButForRounding) {
  for (const float range : {1.0f, 30.0f}) {
    for (const auto& [tile, apart, chunk] :
         {std::array{1, 1, 1}, {2, 3, 4}, {12, 1, 2}, {3, 4, 8}}) {
      const AttentionProgram attention;
      const ir::IRModule module = ParseProgram(attention.Text());
      ExpectCloseResults(attention, OnlineTrace(tile, apart, chunk),
                         RandomArrays(*module.functions[0], range));
    }
  }
}

TEST(OnlineProduct, KeepsScalesMasksAndCasts) {
  AttentionProgram scaled;
  scaled.exp = "T.exp((EXPONENT - M[b, i]) * T.float32(0.5))";
  AttentionProgram masked;
  masked.exponent =
      "T.if_then_else(j <= i, S[b, i, j] * T.float32(0.25), "
      "T.float32(-3.4028234663852886e+38))";
  AttentionProgram rounded;
  rounded.term =
      "T.Cast(\"float32\", T.Cast(\"float64\", P[b, i, j])) * V[b, j, d]";
  for (const AttentionProgram& attention : {scaled, masked, rounded}) {
    const ir::IRModule module = ParseProgram(attention.Text());
    ExpectCloseResults(attention, OnlineTrace(2, 3, 2),
                       RandomArrays(*module.functions[0], 4));
  }
}

// A chunk whose terms all count nothing, before one whose terms do.
TEST(OnlineProduct, TakesChunksOfMaskedTerms) {
  AttentionProgram attention;
  attention.exponent =
      "T.if_then_else(j >= 4, S[b, i, j], "
      "T.float32(-3.4028234663852886e+38))";
  const ir::IRModule module = ParseProgram(attention.Text());
  FloatArrays arrays = RandomArrays(*module.functions[0], 4);
  ExpectCloseResults(attention, OnlineTrace(2, 3, 2), arrays);
  // -inf: products of an infinite Q with a K of one sign.
  AttentionProgram infinite;
  infinite.exponent =
      "T.if_then_else(j >= 4, S[b, i, j], Q[b, i, 0] * T.float32(0) - "
      "X[b, i])";
  for (float& x : arrays[4]) x = std::numeric_limits<float>::infinity();
  ExpectCloseResults(infinite, OnlineTrace(2, 3, 2), arrays);
}

TEST(OnlineProduct, RunsWhereScoresAreGiven) {
  AttentionProgram attention;
  attention.exponent = "Q[b, i, j % 4]";
  const ir::IRModule module = ParseProgram(attention.Text());
  ExpectCloseResults(
      attention, absl::StrReplaceAll(OnlineTrace(2, 3, 2), {{", b10 =", " ="}}),
      RandomArrays(*module.functions[0], 4));
}

// Dimensions of one element, whose variables appear as themselves or as 0.
TEST(OnlineProduct, TakesDimensionsOfOneElement) {
  const std::string program = Program(
      "A: T.Buffer((1, 12, 8), \"float32\"), V: T.Buffer((1, 8, 3), "
      "\"float32\"), B: T.Buffer((1, 1, 8), \"float32\"), O: "
      "T.Buffer((1, 12, 3), \"float32\")",
      R"(M = T.alloc_buffer((1, 12, 1), "float32")
D = T.alloc_buffer((1, 12, 1), "float32")
P = T.alloc_buffer((1, 12, 8), "float32")
for h, r, u, c in T.grid(1, 12, 1, 8):
    with T.block("M"):
        b, i, o, j = T.axis.remap("SSSR", [h, r, u, c])
        with T.init():
            M[b, i, o] = T.float32(-3.4028234663852886e+38)
        M[b, i, o] = T.max(M[b, i, o], A[b, i, j] + B[b, 0, j])
for h, r, u, c in T.grid(1, 12, 1, 8):
    with T.block("D"):
        b, i, o, j = T.axis.remap("SSSR", [h, r, u, c])
        with T.init():
            D[b, i, o] = T.float32(0)
        D[b, i, o] = D[b, i, o] + T.exp(A[b, i, j] + B[b, 0, j] - M[0, i, 0])
for h, r, c in T.grid(1, 12, 8):
    with T.block("P"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        P[b, i, j] = T.exp(A[b, i, j] + B[b, 0, j] - M[0, i, 0]) / D[0, i, 0]
for h, r, e, c in T.grid(1, 12, 3, 8):
    with T.block("O"):
        b, i, d, j = T.axis.remap("SSSR", [h, r, e, c])
        with T.init():
            O[b, i, d] = T.float32(0)
        O[b, i, d] = O[b, i, d] + P[0, i, j] * V[0, j, d])");
  const ir::IRModule module = ParseProgram(program);
  const auto schedule = Apply(
      module, absl::StrReplaceAll(OnlineTrace(2, 3, 4), {{", b10 =", " ="}}));
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const FloatArrays arrays = RandomArrays(*module.functions[0], 4);
  const std::vector<float> wanted = ResultOf(*module.functions[0], arrays);
  const std::vector<float> got =
      ResultOf(*schedule->module().functions[0], arrays);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 0x1p-18 * 4) << i;
  }
}

// The rows of a tile lie apart, and so do those that a block below the loops of
// threads writes; each has loops of its own over them.
TEST(OnlineProduct, LetsCopiesMoveToTheChunks) {
  const AttentionProgram attention;
  const ir::IRModule module = ParseProgram(attention.Text());
  ExpectCloseResults(attention, absl::StrCat(OnlineTrace(2, 3, 4), R"(
b11 = sch.cache_read(b1, read_buffer_index=1, storage_scope="global")
l12, l13, l14, l15, l16, l17, l18 = sch.get_loops(b1)
sch.compute_at(b11, l15, preserve_unit_loops=True)
l19, l20 = sch.split(l17, factors=[None, 2])
b21 = sch.cache_read(b8, read_buffer_index=1, storage_scope="global")
sch.compute_at(b21, l15, preserve_unit_loops=True)
)"),
                     RandomArrays(*module.functions[0], 4));
}

TEST(RegionCover, ComparesElementsThatLieApart) {
  const auto program = [](const char* written, const char* row) {
    return absl::StrReplaceAll(
        Program("A: T.Buffer((12,), \"float32\"), B: T.Buffer((12,), "
                "\"float32\"), D: T.Buffer((12,), \"float32\")",
                R"(C = T.alloc_buffer((12,), "float32")
for i_0, i_2 in T.grid(2, 3):
    for i_1 in range(WRITTEN):
        with T.block("C"):
            vi = T.axis.spatial(12, ROW)
            C[vi] = A[vi] + T.float32(1)
    for i_1 in range(2):
        with T.block("B"):
            vi = T.axis.spatial(12, i_0 * 6 + i_1 * 3 + i_2)
            B[vi] = C[vi] + D[vi])"),
        {{"WRITTEN", written}, {"ROW", row}});
  };
  constexpr char kTrace[] = R"(b0 = sch.get_block("B")
l1, l2, l3 = sch.get_loops(b0)
b4 = sch.cache_read(b0, read_buffer_index=1, storage_scope="global")
sch.compute_at(b4, l2)
)";
  const auto accepted =
      Apply(ParseProgram(program("2", "i_0 * 6 + i_1 * 3 + i_2")), kTrace);
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  const std::vector<std::string> unwritten = {"block B", "have not written"};
  ExpectRefused(program("1", "i_0 * 6 + i_1 * 3 + i_2"), kTrace, kIllegal,
                unwritten);
  ExpectRefused(program("2", "i_0 * 6 + i_2 * 2 + i_1"), kTrace, kIllegal,
                unwritten);
  ExpectRefused(program("2", "(i_0 * 6 + i_1 * 3 + i_2 + 6) % 12"), kTrace,
                kIllegal, unwritten);
}

TEST(OnlineProduct, RefusesOtherPrograms) {
  const std::string trace = OnlineTrace(2, 3, 4);
  AttentionProgram attention;
  attention.share = "EXP_OF_J * D[b, i]";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block O", "no factor is made by a block that divides"});
  attention = {};
  attention.share = "S[b, i, j] / D[b, i]";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block P", "divides no exponential of the sum D"});
  attention = {};
  attention.term = "T.max(P[b, i, j], V[b, j, d])";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block O", "its terms are no products"});
  attention = {};
  attention.term = "P[b, i, j] * P[b, i, j]";
  ExpectRefused(attention.Text(), trace, kIllegal, {"block O", "no factor"});
  attention = {};
  attention.lowest = "T.float32(\"-inf\")";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block M", "starts from no finite number"});
  attention = {};
  attention.exp = "T.exp((EXPONENT - M[b, i]) * T.float32(-1))";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block D", "no sum of exp"});
  attention = {};
  attention.term = "P[b, j, i % 8] * V[b, j, d]";
  EXPECT_FALSE(Apply(ParseProgram(attention.Text()), trace).ok());
}

TEST(OnlineProduct, RefusesWhatOthersReadOrOverwrite) {
  const std::string trace = OnlineTrace(2, 3, 4);
  AttentionProgram attention;
  attention.after = R"(for h, r in T.grid(2, 12):
    with T.block("Y"):
        b, i = T.axis.remap("SS", [h, r])
        X[b, i] = P[b, i, 0]
)";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block O", "block Y reads the result of P"});
  attention = {};
  attention.between = R"(for h, r, c in T.grid(2, 12, 4):
    with T.block("W"):
        b, i, j = T.axis.remap("SSS", [h, r, c])
        Q[b, i, j] = T.float32(0)
)";
  ExpectRefused(attention.Text(), trace, kIllegal,
                {"block O", "block W overwrites what block S accesses"});
}

TEST(OnlineProduct, RefusesPartsOfTilesAndChunks) {
  const AttentionProgram attention;
  for (const auto& [tile, apart, chunk] :
       {std::array{5, 1, 4}, {2, 4, 4}, {2, 3, 3}, {24, 1, 4}}) {
    const auto schedule =
        Apply(ParseProgram(attention.Text()), OnlineTrace(tile, apart, chunk));
    EXPECT_THAT(schedule.status().message(),
                ::testing::HasSubstr("all have to be whole"));
  }
  EXPECT_THAT(Apply(ParseProgram(attention.Text()), OnlineTrace(0, 1, 4))
                  .status()
                  .message(),
              ::testing::HasSubstr("each has to be 1 or more"));
}

TEST(OnlineProduct, KeepsFloatsWhereAsked) {
  const AttentionProgram attention;
  schedule::Schedule schedule(ParseProgram(attention.Text()), 0,
                              ir::FloatRule::kAsWritten);
  const auto block = schedule.GetBlock("O");
  ASSERT_TRUE(block.ok());
  EXPECT_THAT(schedule.OnlineProduct(*block, 2, 3, 4).status().message(),
              ::testing::HasSubstr("it rounds differently"));
}

}  // namespace
}  // namespace tilefarm::testing
