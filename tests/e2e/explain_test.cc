// `tune explain` as a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/target/target.h"
#include "tests/cost_model/bottleneck_programs.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kSum[] = R"(
@T.prim_func
def dot(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"),
        S: T.Buffer((1,), "float32")):
    for k in range(4096):
        with T.block("S"):
            vs = T.axis.spatial(1, 0)
            vk = T.axis.reduce(4096, k)
            with T.init():
                S[vs] = T.float32(0)
            S[vs] = S[vs] + A[vk] * B[vk]
)";

class ExplainTest : public FarmFixture {
 protected:
  // Keeps its measurements of this machine in the folder of the test.
  CommandResult Explain(std::vector<std::string> args) {
    args.insert(args.begin(), {Bin("tune"), "explain"});
    return RunCommand(std::move(args), {"XDG_CACHE_HOME=" + dir_.File("cache"),
                                        "TUNE_SERVER=127.0.0.1:1"});
  }
  Json ExplainJson(std::vector<std::string> args) {
    args.push_back("--json");
    const CommandResult result = Explain(std::move(args));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return Json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  }
};

TEST_F(ExplainTest, NamesTheChainOfASerialSum) {
  const std::string program = dir_.Write("dot.py", kSum);
  const Json json =
      ExplainJson({program, "--target", "host,cores=1", "--as-is"});
  EXPECT_EQ(json["function"], "dot");
  EXPECT_EQ(json["schedule"], "as-is");
  EXPECT_EQ(json["bottleneck"], "latency chain");
  EXPECT_EQ(json["flops"], 2 * 4096);
  EXPECT_EQ(json["parameter_bytes"], 2 * 4096 * 4 + 4);
  for (const char* key : {"run_seconds", "model_seconds", "least_seconds"}) {
    EXPECT_GT(json[key], 0) << key;
  }
  EXPECT_TRUE(json["record_seconds"].is_null());
  EXPECT_EQ(json["traffic_bytes"]["memory_to_l3"], 0);
  EXPECT_GT(json["peaks"]["clock_hz"], 0);
  ASSERT_EQ(json["stores"].size(), 2u);
  EXPECT_EQ(json["stores"][1]["loops"][0]["loop"], "k in 4096");
  EXPECT_EQ(json["without"][0]["cost"], "latency chain");
  EXPECT_EQ(json["without"][0]["is_loss"], true);

  const CommandResult text =
      Explain({program, "--target", "host,cores=1", "--as-is", "--no-run"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("bottleneck  latency chain\n"));
  EXPECT_THAT(text.output, HasSubstr("not run: --no-run"));
  EXPECT_THAT(text.output, HasSubstr("k in 4096"));
}

// By the rates of this machine, as `tune explain` measures them.
TEST_F(ExplainTest, NamesTheSixBottlenecksThatAreBuiltIn) {
  const auto host = target::Parse("host");
  ASSERT_TRUE(host.ok()) << host.status();
  int found = 0;
  for (const cost_model::BuiltIn& one :
       cost_model::BuiltInBottlenecks(*host, /*cores=*/2)) {
    if (host->cores < one.cores) continue;
    const std::string target = "host,cores=" + std::to_string(one.cores);
    const std::string name(cost_model::BottleneckName(one.bottleneck));
    const Json with = ExplainJson(
        {dir_.Write("with.py", one.program), "--target", target, "--as-is"});
    EXPECT_EQ(with["bottleneck"], name) << with;
    EXPECT_GT(with["run_seconds"], 0);
    const Json without = ExplainJson(
        {dir_.Write("without.py", one.without), "--target", target, "--as-is"});
    EXPECT_NE(without["bottleneck"], name) << without;
    ++found;
  }
  EXPECT_GE(found, 5);
}

TEST_F(ExplainTest, ComparesABestWithTheNextRecord) {
  const CommandResult run =
      RunCommand({Bin("tune"), "run", "--local", program_, "--db", db(),
                  "--target", "host,cores=1", "--trials", "16"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json json =
      ExplainJson({program_, "--target", "host,cores=1", "--db", db()});
  EXPECT_EQ(json["schedule"], "record");
  EXPECT_GT(json["record_seconds"], 0);
  ASSERT_TRUE(json["runner_up"].is_object()) << json;
  EXPECT_GT(json["runner_up"]["seconds"], 0);
  EXPECT_FALSE(json["runner_up"]["differences"].empty());
  const CommandResult text =
      Explain({program_, "--target", "host,cores=1", "--db", db(), "--no-run"});
  EXPECT_THAT(text.output, HasSubstr("by its record"));
  EXPECT_THAT(text.output, HasSubstr("runner-up"));
  EXPECT_THAT(text.output, HasSubstr("ONE RUN TOUCHES"));
}

TEST_F(ExplainTest, TargetsElsewhereAreModelledInCycles) {
  const Json json = ExplainJson(
      {program_, "--target", "aarch64:cortex-a72,cores=4", "--default"});
  EXPECT_GT(json["model_cycles"], 0);
  EXPECT_TRUE(json["model_seconds"].is_null());
  EXPECT_TRUE(json["peaks"].is_null());
  EXPECT_TRUE(json["run_seconds"].is_null());
  const CommandResult text = Explain(
      {program_, "--target", "aarch64:cortex-a72,cores=4", "--default"});
  EXPECT_THAT(text.output,
              HasSubstr("not run: the target is not this machine"));
  EXPECT_THAT(text.output, HasSubstr("bottleneck"));
}

TEST_F(ExplainTest, RefusesWhatItCannotExplain) {
  const auto errors = [&](std::vector<std::string> args, int code) {
    args.insert(args.begin(), program_);
    const CommandResult result = Explain(std::move(args));
    EXPECT_EQ(result.exit_code, code) << result.errors;
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  EXPECT_THAT(errors({"--target", "cuda:sm_90", "--default"}, 1),
              HasSubstr("explanations are for processors"));
  EXPECT_THAT(errors({}, 1), HasSubstr("--default or --as-is"));
  EXPECT_THAT(errors({"--db", dir_.File("none.db")}, 1), HasSubstr("none.db"));
  EXPECT_THAT(errors({"--trace", dir_.File("none.trace")}, 1),
              HasSubstr("none.trace"));
  EXPECT_THAT(errors({"--default", "--as-is"}, 2), HasSubstr("excludes"));
}

}  // namespace
}  // namespace tilefarm::testing
