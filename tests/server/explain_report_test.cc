#include "server/cli/explain_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/ir/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cost_model/bottleneck_programs.h"

namespace tilefarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 1 GHz, so that a cycle is a nanosecond; the other rates are those of the
// model's typical core.
driver::MachinePeaks Peaks() {
  driver::MachinePeaks peaks;
  peaks.clock_hz = 1e9;
  peaks.float32_flops = 64e9;
  peaks.all_float32_flops = 64e9;
  peaks.latency_seconds = 4e-9;
  peaks.bytes_from_l1 = 128e9;
  peaks.bytes_from_l2 = 56e9;
  peaks.bytes_from_l3 = 24e9;
  peaks.bytes_from_memory = 8e9;
  peaks.all_bytes_from_memory = 8e9;
  return peaks;
}

// Of a serial sum.
ExplainReport Report() {
  ExplainReport report;
  report.function = "dot";
  report.target.kind = "x86-64";
  report.target.vector_bits = 512;
  report.target.vector_registers = 32;
  report.target.caches = {32 << 10, 1 << 20, 32 << 20};
  report.target.cores = 1;
  report.schedule = "as-is";
  report.reason = "given";
  report.flops = 2 * 4096;
  report.parameter_bytes = 2 * 4096 * 4 + 4;
  report.peaks = Peaks();
  const auto function = ir::ParseFunction(cost_model::SerialSum(4096));
  EXPECT_TRUE(function.ok()) << function.status();
  cost_model::NestNames names;
  const cost_model::LoopNest nest =
      cost_model::BuildLoopNest(**function, &names);
  report.model = cost_model::FindBottleneck(
      nest, report.target, driver::CoreOf(*report.peaks, report.target));
  report.nests = cost_model::NestTables(nest, names, report.target.caches);
  return report;
}

TEST(ExplainReport, SaysWhatHoldsAFunctionBack) {
  ExplainReport report = Report();
  report.run_seconds = report.model_seconds() * 1.2;
  const std::string text = ExplainText(report);
  EXPECT_THAT(text, HasSubstr("  bottleneck  latency chain\n"));
  EXPECT_THAT(text, HasSubstr("in this process now"));
  EXPECT_THAT(text, HasSubstr("data in the caches"));
  EXPECT_THAT(text, HasSubstr("k in 4096"));
  EXPECT_THAT(text, Not(HasSubstr("uncertain")));
  const auto json = ExplainJson(report);
  EXPECT_EQ(json["bottleneck"], "latency chain");
  EXPECT_EQ(json["model_agrees"], true);
  EXPECT_EQ(json["without"][0]["cost"], "latency chain");
  EXPECT_TRUE(json["record_seconds"].is_null());
  EXPECT_TRUE(json["counters"].is_null());
  EXPECT_TRUE(json["runner_up"].is_null());
}

TEST(ExplainReport, AModelThatIsFarOffIsUncertain) {
  for (const double factor : {0.5, 2.0}) {
    ExplainReport report = Report();
    report.run_seconds = report.model_seconds() * factor;
    EXPECT_THAT(ExplainText(report), HasSubstr("latency chain (uncertain)"));
    EXPECT_EQ(ExplainJson(report)["model_agrees"], false);
  }
  // Without a measurement there is nothing to compare with.
  ExplainReport report = Report();
  report.not_run = "--no-run";
  EXPECT_THAT(ExplainText(report), HasSubstr("not run: --no-run"));
  EXPECT_THAT(ExplainText(report), Not(HasSubstr("uncertain")));
  EXPECT_TRUE(ExplainJson(report)["model_agrees"].is_null());
}

TEST(ExplainReport, TheLeastTimeIsTheRoofline) {
  ExplainReport report = Report();
  // The parameters fit the caches: arithmetic alone.
  EXPECT_DOUBLE_EQ(LeastSeconds(report), report.flops / 64e9);
  report.parameter_bytes = 64 << 20;
  EXPECT_DOUBLE_EQ(LeastSeconds(report), (64 << 20) / 8e9);
  report.flops = 64e9;
  EXPECT_DOUBLE_EQ(LeastSeconds(report), 1);
  report.peaks.reset();
  EXPECT_EQ(LeastSeconds(report), 0);
}

TEST(ExplainReport, ShowsCountersAndTheRunnerUp) {
  ExplainReport report = Report();
  report.record_seconds = 1e-3;
  report.counts = PerfCounts{};
  report.counts->cycles = 1000;
  report.counts->instructions = 2500;
  report.counts->top_down = TopDown{.retiring = 0.4,
                                    .bad_speculation = 0.1,
                                    .frontend_bound = 0.3,
                                    .backend_bound = 0.2};
  report.runner_up =
      RunnerUp{1.1e-3,
               {.same_sketch = true,
                .decisions = {{"tiles of loop i", "[8, 4]", "[4, 8]"}}}};
  const std::string text = ExplainText(report);
  EXPECT_THAT(text, HasSubstr("2.50 a cycle"));
  EXPECT_THAT(text, HasSubstr("Instructions come too slowly"));
  EXPECT_THAT(text, Not(HasSubstr("Branches are mispredicted")));
  EXPECT_THAT(text, HasSubstr("10.0 % slower, the same sketch"));
  EXPECT_THAT(text, HasSubstr("tiles of loop i"));
  const auto json = ExplainJson(report);
  EXPECT_EQ(json["counters"]["cycles"], 1000);
  EXPECT_TRUE(json["counters"]["branch_misses"].is_null());
  EXPECT_EQ(json["counters"]["top_down"]["retiring"], 0.4);
  EXPECT_EQ(json["runner_up"]["differences"][0]["best"], "[8, 4]");
}

}  // namespace
}  // namespace tilefarm::cli
