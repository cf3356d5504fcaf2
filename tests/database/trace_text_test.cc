#include "database/trace_text.h"

#include <cstdio>

#include "absl/status/status.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

std::string Join(const SplitTrace& split) {
  const auto joined = JoinTraceText(split);
  EXPECT_TRUE(joined.ok()) << joined.status();
  return joined.ok() ? *joined : "";
}

TEST(TraceText, TakesTheDecisionsOut) {
  const SplitTrace split = SplitTraceText(kTrace);
  ASSERT_TRUE(split.decisions.has_value());
  EXPECT_EQ(*split.decisions, "[4, 16];1");
  EXPECT_THAT(split.sketch, ::testing::HasSubstr("decision=?)"));
  EXPECT_EQ(Join(split), kTrace);
}

TEST(TraceText, OtherDecisionsShareTheSketch) {
  std::string other = kTrace;
  other.replace(other.find("[4, 16]"), 7, "[64, 1]");
  EXPECT_EQ(SplitTraceText(other).sketch, SplitTraceText(kTrace).sketch);
  EXPECT_NE(SplitTraceText(other).decisions, SplitTraceText(kTrace).decisions);
}

TEST(TraceText, KeepsOddTextsWhole) {
  for (const std::string& text : {
           std::string(),
           std::string("sch.vectorize(loop=l1)\n"),
           std::string("# why? decision=[1, 2]\n"),
           std::string("x(decision=)"),
           std::string("x(decision=[1, y])"),
           std::string("x(decision=[1, 2"),
           std::string("x(decision="),
           std::string("predecision=4"),
           std::string("x(a=\"decision=4\", decision=-2)"),
           std::string("x(a=\"\\\"decision=4\", decision=None)"),
           std::string("x(a=\"open, decision=4)\ny(decision=5)"),
           std::string("x(decision=[])"),
           std::string("x(decision=1;2)"),
           std::string("\\"),
           std::string("a\0decision=4", 12),
       }) {
    EXPECT_EQ(Join(SplitTraceText(text)), text);
  }
}

TEST(TraceText, QuotedTextIsNoDecision) {
  const SplitTrace split = SplitTraceText("x(a=\"decision=4\", decision=-2)");
  EXPECT_EQ(split.decisions, "-2");
}

// Joining returns the original bytes for any text.
TEST(TraceText, RandomTextsRoundTrip) {
  const uint64_t seed = 20260101;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  const char* pieces[] = {"decision=", "[1, 2]", "\"", "'", "\\", "\n", "?",
                          ";",         "x",      "(",  ")", "-1", "[",  "]",
                          ", ",        "None",   "d",  "=", "#"};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const int64_t n = rng.Between(0, 14);
    for (int64_t i = 0; i < n; ++i) text += pieces[rng.Below(19)];
    const SplitTrace split = SplitTraceText(text);
    const auto joined = JoinTraceText(split);
    ASSERT_TRUE(joined.ok()) << joined.status() << "\n" << text;
    ASSERT_EQ(*joined, text);
  }
}

TEST(TraceText, DecisionsThatDoNotFitAreDataLoss) {
  EXPECT_EQ(JoinTraceText({"a=? b=?", "1"}).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(JoinTraceText({"a=?", "1;2"}).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(JoinTraceText({"a", "1"}).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tilefarm::database
