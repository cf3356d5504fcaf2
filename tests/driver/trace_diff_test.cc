#include "compiler/driver/trace_diff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kProgram[] = R"(
@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

std::string Tiled(const std::string& rows, const std::string& columns,
                  int unroll) {
  return "b0 = sch.get_block(name=\"C\", func_name=\"main\")\n"
         "l1, l2, l3 = sch.get_loops(block=b0)\n"
         "v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, "
         "max_innermost_factor=16, decision=" +
         rows +
         ")\n"
         "l6, l7 = sch.split(loop=l1, factors=[v4, v5])\n"
         "v8, v9 = sch.sample_perfect_tile(loop=l2, n=2, "
         "max_innermost_factor=64, decision=" +
         columns +
         ")\n"
         "l10, l11 = sch.split(loop=l2, factors=[v8, v9])\n"
         "v12 = sch.sample_categorical(candidates=[0, 16, 64], "
         "probs=[0.3, 0.3, 0.4], decision=" +
         std::to_string(unroll) +
         ")\n"
         "sch.annotate(block_or_loop=l6, "
         "ann_key=\"pragma_auto_unroll_max_step\", ann_val=v12)\n";
}

std::vector<std::string> Lines(const TraceDiff& diff) {
  std::vector<std::string> lines;
  for (const DecisionDiff& one : diff.decisions) {
    lines.push_back(one.what + ": " + one.first + " / " + one.second);
  }
  return lines;
}

TEST(CompareTraces, NamesTheDecisionsOfOneSketch) {
  const auto diff = CompareTraces(kProgram, Tiled("[16, 4]", "[1, 64]", 2),
                                  Tiled("[8, 8]", "[1, 64]", 0));
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_TRUE(diff->same_sketch);
  EXPECT_THAT(Lines(*diff),
              ElementsAre("tiles of loop i of block C: [16, 4] / [8, 8]",
                          "pragma_auto_unroll_max_step: 64 / 0"));
}

TEST(CompareTraces, EqualTracesDifferInNothing) {
  const std::string trace = Tiled("[16, 4]", "[1, 64]", 1);
  const auto diff = CompareTraces(kProgram, trace, trace);
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_TRUE(diff->same_sketch);
  EXPECT_THAT(diff->decisions, IsEmpty());
}

TEST(CompareTraces, CountsInstructionsOfOtherSketches) {
  const std::string trace = Tiled("[16, 4]", "[1, 64]", 1);
  const auto diff =
      CompareTraces(kProgram, trace, trace + "sch.vectorize(loop=l11)\n");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_FALSE(diff->same_sketch);
  EXPECT_THAT(Lines(*diff), ElementsAre("vectorize: 0 / 1"));
}

TEST(CompareTraces, SketchesMayDifferInArgumentsAlone) {
  const std::string trace = Tiled("[16, 4]", "[1, 64]", 1);
  const auto diff = CompareTraces(kProgram, trace + "sch.vectorize(loop=l11)\n",
                                  trace + "sch.vectorize(loop=l10)\n");
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_FALSE(diff->same_sketch);
  EXPECT_THAT(Lines(*diff), ElementsAre("instruction 9: sch.vectorize(l11) / "
                                        "sch.vectorize(l10)"));
}

TEST(CompareTraces, WhatDoesNotReplayHasNumbers) {
  std::string trace = Tiled("[16, 4]", "[1, 64]", 1);
  trace.replace(trace.find("name=\"C\""), 8, "name=\"D\"");
  std::string other = Tiled("[8, 8]", "[1, 64]", 1);
  other.replace(other.find("name=\"C\""), 8, "name=\"D\"");
  const auto diff = CompareTraces(kProgram, trace, other);
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(Lines(*diff),
              ElementsAre("tiles of loop l1 of block b0: [16, 4] / [8, 8]"));
}

TEST(CompareTraces, TextsThatDoNotParseAreErrors) {
  EXPECT_FALSE(CompareTraces("no program", "", "").ok());
  EXPECT_FALSE(CompareTraces(kProgram, "nonsense", "").ok());
}

}  // namespace
}  // namespace tilefarm::driver
