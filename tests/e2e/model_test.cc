// Tunes a small model on a real farm, and measures it.
#include <gmock/gmock.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/farm_fixture.h"
#include "tests/e2e/small_model.h"

namespace tilefarm {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using testing::kRows;
using testing::TwoKernels;
using ::testing::UnorderedElementsAre;

class ModelTest : public testing::FarmFixture {
 protected:
  // The last line of a job with --json.
  Json Last(const std::string& lines) {
    Json last;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      last = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    }
    return last;
  }

  const std::string model_ = dir_.Write("two_kernels.onnx", TwoKernels());
};

TEST_F(ModelTest, IsTunedByTheTimeOfTheWholeAndMeasured) {
  StartServer();
  const auto worker = StartWorker("w");
  const CommandResult run = Tune(
      {"run", model_, "--target", "host,cores=1", "--trials", "24", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json last = Last(run.output);
  EXPECT_EQ(last["state"], "done");
  EXPECT_EQ(last["trials_done"], 24);
  ASSERT_EQ(last["tasks"].size(), 2u) << last;
  std::vector<double> weights;
  double projected = 0, share = 0, trials = 0;
  for (const Json& task : last["tasks"]) {
    const double weight = task["weight"];
    weights.push_back(weight);
    projected += weight * task["best_seconds"].get<double>();
    share += task["share"].get<double>();
    trials += task["trials_done"].get<double>();
    EXPECT_GE(task["trials_done"], 6) << "the warm-up";
    EXPECT_EQ(task["shape"], weight == 2 ? "32x64 float32" : "32x16 float32");
    EXPECT_GT(task["flops"], 0);
    EXPECT_GT(task["default_seconds"], 0);
    EXPECT_GT(task["unscheduled_seconds"], 0);
  }
  EXPECT_THAT(weights, UnorderedElementsAre(1, 2));
  EXPECT_EQ(trials, 24);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(last["projected_seconds"].get<double>(), projected,
              projected * 1e-9);
  EXPECT_GT(last["projected_untuned_seconds"], 0);
  for (const char* key :
       {"unfused_seconds", "untuned_seconds", "latency_seconds"}) {
    ASSERT_TRUE(last[key].is_number()) << key << "\n" << run.errors;
    EXPECT_GT(last[key], 0) << key;
  }
  // For people: the table, and what was measured.
  const CommandResult text =
      Tune({"run", model_, "--target", "host,cores=1", "--trials", "4"});
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("WEIGHT"));
  EXPECT_THAT(text.output, HasSubstr("32x64 float32"));
  EXPECT_THAT(text.output, HasSubstr("projected "));
  EXPECT_THAT(text.output, HasSubstr("measured "));
  EXPECT_THAT(text.output, HasSubstr("without fusion"));
}

TEST_F(ModelTest, IsTunedForEachSize) {
  StartServer();
  const auto worker = StartWorker("w");
  const std::string open = dir_.Write("open.onnx", TwoKernels(kRows));
  const CommandResult run = Tune({"run", open, "--dim", "rows=8,32", "--target",
                                  "host,cores=1", "--trials", "24", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json last = Last(run.output);
  std::vector<std::string> tasks;
  for (const Json& task : last["tasks"]) {
    tasks.push_back(absl::StrCat(task["weight"].get<double>(), " x ",
                                 task["shape"].get<std::string>()));
  }
  EXPECT_THAT(tasks,
              UnorderedElementsAre("2 x 8x64 float32", "1 x 8x16 float32",
                                   "2 x 32x64 float32", "1 x 32x16 float32"));
  EXPECT_GT(last["latency_seconds"], 0);
}

TEST_F(ModelTest, IsNotMeasuredWhereTheTargetIsNoHost) {
  StartServer();
  const auto worker = StartWorker("w");
  // The same machine, but named as any other.
  std::string target;
  ASSERT_TRUE(Until([&] {
    const Json devices = TuneJson({"devices"});
    if (devices.empty()) return false;
    target = devices[0]["target"];
    return true;
  }));
  const CommandResult run =
      Tune({"run", model_, "--target", target, "--trials", "2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json last = Last(run.output);
  EXPECT_TRUE(last["latency_seconds"].is_null());
  EXPECT_TRUE(last["untuned_seconds"].is_null());
  EXPECT_TRUE(last["unfused_seconds"].is_null());
  EXPECT_TRUE(last["projected_seconds"].is_number());
}

}  // namespace
}  // namespace tilefarm
