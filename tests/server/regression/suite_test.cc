#include "server/regression/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = SuiteBenchmark::Kind;

constexpr char kFull[] = R"(
name = "kernels"
threshold = "2.5%"
budget = "5s"
target = "x86-64:znver4"
require = ["label.rack=b2"]

[[benchmark]]
name = "conv2d"
program = "programs/conv2d.py"
function = "conv"
trace = "/traces/conv2d.trace"

[[benchmark]]
name = "dense"
program = "../dense.py"
schedule = "best"
target = "aarch64:cortex-a72"
require = []
threshold = 0.05
budget = "1m30s"

[[benchmark]]
name = "resnet"
model = "resnet.onnx"
dimensions = { batch = 8 }

[[benchmark]]
name = "parser"
command = ["./parser_bench", "--benchmark_format=json"]
)";

std::string Error(const std::string& text) {
  const absl::Status status = ParseSuite(text, "suite.toml").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

// A benchmark with these lines.
std::string With(const std::string& lines) {
  return "[[benchmark]]\nname = \"a\"\n" + lines;
}

TEST(SuiteTest, HasProgramsModelsAndCommands) {
  const absl::StatusOr<Suite> suite = ParseSuite(kFull, "/ci/suite.toml");
  ASSERT_TRUE(suite.ok()) << suite.status();
  EXPECT_EQ(suite->name, "kernels");
  EXPECT_EQ(suite->folder, "/ci");
  ASSERT_EQ(suite->benchmarks.size(), 4u);

  const SuiteBenchmark& conv2d = suite->benchmarks[0];
  EXPECT_EQ(conv2d.kind, Kind::kPinned);
  EXPECT_EQ(conv2d.name, "conv2d");
  EXPECT_EQ(conv2d.program, "/ci/programs/conv2d.py");
  EXPECT_EQ(conv2d.function, "conv");
  EXPECT_EQ(conv2d.trace, "/traces/conv2d.trace");
  EXPECT_EQ(conv2d.target, "x86-64:znver4");
  EXPECT_THAT(conv2d.require, ElementsAre("label.rack=b2"));
  EXPECT_DOUBLE_EQ(conv2d.threshold, 0.025);
  EXPECT_EQ(conv2d.budget, absl::Seconds(5));
  EXPECT_EQ(conv2d.line, 8);

  const SuiteBenchmark& dense = suite->benchmarks[1];
  EXPECT_EQ(dense.kind, Kind::kBest);
  EXPECT_EQ(dense.program, "/dense.py");
  EXPECT_EQ(dense.target, "aarch64:cortex-a72");
  EXPECT_THAT(dense.require, IsEmpty());
  EXPECT_DOUBLE_EQ(dense.threshold, 0.05);
  EXPECT_EQ(dense.budget, absl::Seconds(90));

  const SuiteBenchmark& resnet = suite->benchmarks[2];
  EXPECT_EQ(resnet.kind, Kind::kModel);
  EXPECT_EQ(resnet.model, "/ci/resnet.onnx");
  EXPECT_THAT(resnet.dimensions, ElementsAre(Pair("batch", 8)));

  const SuiteBenchmark& parser = suite->benchmarks[3];
  EXPECT_EQ(parser.kind, Kind::kCommand);
  EXPECT_THAT(parser.command,
              ElementsAre("./parser_bench", "--benchmark_format=json"));
  EXPECT_EQ(parser.target, "");
  EXPECT_EQ(parser.budget, absl::Seconds(5));
}

TEST(SuiteTest, HasDefaults) {
  const absl::StatusOr<Suite> suite = ParseSuite(
      With("program = \"a.py\"\nschedule = \"best\""), "nightly.toml");
  ASSERT_TRUE(suite.ok()) << suite.status();
  EXPECT_EQ(suite->name, "nightly");
  EXPECT_EQ(suite->folder, "");
  EXPECT_EQ(suite->benchmarks[0].program, "a.py");
  EXPECT_EQ(suite->benchmarks[0].target, "host");
  EXPECT_DOUBLE_EQ(suite->benchmarks[0].threshold, 0.03);
  EXPECT_EQ(suite->benchmarks[0].budget, absl::Seconds(10));
}

TEST(SuiteTest, IsReadFromAFile) {
  const std::string path = testing::TempDir() + "/suite_test.toml";
  std::ofstream(path) << kFull;
  EXPECT_TRUE(ReadSuite(path).ok());
  std::filesystem::remove(path);
  EXPECT_EQ(ReadSuite(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(SuiteTest, MistypedKeysGetTheNearestOne) {
  EXPECT_EQ(Error("treshold = 0.03\n" + With("")),
            "suite.toml:1:1: a suite has no key 'treshold'; the nearest is "
            "'threshold'");
  EXPECT_EQ(Error(With("modle = \"a.onnx\"")),
            "suite.toml:3:1: a benchmark has no key 'modle'; the nearest is "
            "'model'");
  EXPECT_THAT(Error(With("colour = 1")), HasSubstr("no key 'colour'"));
}

TEST(SuiteTest, RejectsWhatIsNoSuite) {
  EXPECT_THAT(Error("name = "), HasSubstr("suite.toml:1:"));
  EXPECT_THAT(Error("[=]"), HasSubstr("suite.toml:1:2:"));
  EXPECT_THAT(Error(""), HasSubstr("no benchmarks"));
  EXPECT_THAT(Error("benchmark = []"), HasSubstr("no benchmarks"));
  EXPECT_THAT(Error("benchmark = 3"), HasSubstr("list of tables"));
  EXPECT_THAT(Error("benchmark = [3]"), HasSubstr("is a table"));
  EXPECT_THAT(Error("[benchmark]\nname = \"a\""), HasSubstr("list of tables"));
  EXPECT_THAT(Error("name = \"\"\n" + With("")), HasSubstr("name is empty"));
}

TEST(SuiteTest, NamesAreNeededAndUnique) {
  EXPECT_THAT(Error("[[benchmark]]\nmodel = \"a\""), HasSubstr("no name"));
  EXPECT_THAT(Error("[[benchmark]]\nname = 3"), HasSubstr("is a string"));
  EXPECT_THAT(Error("[[benchmark]]\nname = \"a\\nb\""),
              HasSubstr("control character"));
  EXPECT_THAT(Error("[[benchmark]]\nname = \"" + std::string(201, 'a') + "\""),
              HasSubstr("at most 200 bytes"));
  const std::string one = With("model = \"a.onnx\"\n");
  EXPECT_THAT(Error(one + one), HasSubstr("suite.toml:5:"));
  EXPECT_THAT(Error(one + one), HasSubstr("two benchmarks 'a'"));
}

TEST(SuiteTest, ABenchmarkIsOneThing) {
  EXPECT_THAT(Error(With("")), HasSubstr("has none"));
  EXPECT_THAT(Error(With("program = \"a\"\nmodel = \"b\"")),
              HasSubstr("has program and model"));
  EXPECT_THAT(Error(With("program = \"a\"")), HasSubstr("needs trace"));
  EXPECT_THAT(
      Error(With("program = \"a\"\nschedule = \"best\"\ntrace = \"t\"")),
      HasSubstr("not both"));
  EXPECT_THAT(Error(With("program = \"a\"\nschedule = \"fast\"")),
              HasSubstr("not 'fast'"));
  EXPECT_THAT(Error(With("program = \"\"\nschedule = \"best\"")),
              HasSubstr("program is empty"));
}

TEST(SuiteTest, KeysOfOtherKindsAreRejected) {
  EXPECT_THAT(Error(With("model = \"a\"\ntrace = \"t\"")),
              HasSubstr("trace is for a benchmark with program"));
  EXPECT_THAT(Error(With("command = [\"a\"]\nschedule = \"best\"")),
              HasSubstr("schedule is for a benchmark with program"));
  EXPECT_THAT(Error(With("command = [\"a\"]\ntarget = \"host\"")),
              HasSubstr("target is for"));
  EXPECT_THAT(Error(With("program = \"a\"\nschedule = \"best\"\n"
                         "dimensions = { batch = 1 }")),
              HasSubstr("dimensions is for"));
}

TEST(SuiteTest, RejectsIllTypedValues) {
  EXPECT_THAT(Error(With("command = \"a b\"")), HasSubstr("list of strings"));
  EXPECT_THAT(Error(With("command = [\"a\", 3]")),
              HasSubstr("list of strings"));
  EXPECT_THAT(Error(With("command = []")), HasSubstr("command is empty"));
  EXPECT_THAT(Error(With("command = [\"\"]")), HasSubstr("command is empty"));
  EXPECT_THAT(Error(With("command = [\"a\\u0000b\"]")), HasSubstr("NUL"));
  EXPECT_THAT(Error(With("model = \"a\"\ndimensions = 3")),
              HasSubstr("is a table"));
  EXPECT_THAT(Error(With("model = \"a\"\ndimensions = { batch = 0 }")),
              HasSubstr("dimension batch is a positive integer"));
  EXPECT_THAT(Error(With("model = \"a\"\nrequire = \"cores>=4\"")),
              HasSubstr("require is a list"));
  EXPECT_THAT(Error(With("model = \"a\"\nthreshold = 3")),
              HasSubstr("threshold is \"3%\" or 0.03"));
  EXPECT_THAT(Error(With("model = \"a\"\nthreshold = \"3\"")),
              HasSubstr("between 0.1% and 100%"));
  EXPECT_THAT(Error(With("model = \"a\"\nbudget = 3")),
              HasSubstr("budget is a string"));
  EXPECT_THAT(Error(With("model = \"a\"\nbudget = \"long\"")),
              HasSubstr("not 'long'"));
  EXPECT_THAT(Error(With("model = \"a\"\nbudget = \"0s\"")),
              HasSubstr("at most 1h"));
  EXPECT_THAT(Error(With("model = \"a\"\nbudget = \"inf\"")),
              HasSubstr("at most 1h"));
}

TEST(ThresholdTest, IsAPercentageOrAShare) {
  EXPECT_DOUBLE_EQ(*ParseThreshold("3%"), 0.03);
  EXPECT_DOUBLE_EQ(*ParseThreshold("3 %"), 0.03);
  EXPECT_DOUBLE_EQ(*ParseThreshold("0.03"), 0.03);
  EXPECT_DOUBLE_EQ(*ParseThreshold("100%"), 1);
  for (const char* bad : {"", "%", "3x", "three", "0", "0%", "-3%", "101%", "3",
                          "nan", "nan%", "inf", "0.05%"}) {
    EXPECT_EQ(ParseThreshold(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace tilefarm::regression
