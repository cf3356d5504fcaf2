// tune regress against a real server and workers.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/e2e/regress_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class RegressTest : public RegressFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    worker_ = StartWorker("board");
    ASSERT_TRUE(Until([&] {
      for (const Json& device : TuneJson({"devices"})) {
        if (device["state"] == "idle") return true;
      }
      return false;
    }));
  }
  // The only benchmark's verdict in a report.
  static std::string Verdict(const CommandResult& result) {
    const Json report = Parse(result);
    if (!report.is_object() || report["benchmarks"].size() != 1) {
      return "no report: " + result.output + result.errors;
    }
    const Json& one = report["benchmarks"][0];
    return one["comparison"] == "compared" ? one["verdict"] : one["comparison"];
  }

  std::unique_ptr<Process> worker_;
};

TEST_F(RegressTest, AnUnchangedCommitPasses) {
  const CommandResult first = RunSuite("c1");
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_EQ(Verdict(first), "new");
  const CommandResult second = RunSuite("c2");
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_EQ(Verdict(second), "same");
  const CommandResult gate = Gate("c3");
  EXPECT_EQ(gate.exit_code, 0) << gate.errors;
  EXPECT_EQ(Parse(gate)["gate"], "pass");
  // A gate without a branch leaves no point.
  const Json history = TuneJson({"regress", "history"});
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0]["benchmark"], "matmul");
  EXPECT_EQ(history[0]["branch"], "main");
  ASSERT_EQ(history[0]["points"].size(), 2u);
  EXPECT_EQ(history[0]["points"][1]["commit"], "c2");
  EXPECT_GT(history[0]["points"][1]["seconds"], 0);
}

TEST_F(RegressTest, ASlowerScheduleFailsTheGateWithItsCause) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  WriteTrace(4);
  const CommandResult gate = Gate(
      "c2", {"--markdown", dir_.File("r.md"), "--junit", dir_.File("r.xml"),
             "--csv", dir_.File("r.csv"), "--gbench", dir_.File("r.json"),
             "--smaller-is-better", dir_.File("s.json")});
  EXPECT_EQ(gate.exit_code, 1) << gate.output << gate.errors;
  EXPECT_EQ(Verdict(gate), "slower");
  const Json report = Parse(gate);
  EXPECT_EQ(report["gate"], "regression");
  EXPECT_GT(report["benchmarks"][0]["ratio"], 1.2);
  EXPECT_THAT(gate.output, HasSubstr("schedule"));
  EXPECT_THAT(ReadAll(dir_.File("r.md")), HasSubstr("matmul"));
  EXPECT_THAT(ReadAll(dir_.File("r.xml")), HasSubstr("<failure"));
  EXPECT_THAT(ReadAll(dir_.File("r.csv")), HasSubstr("slower"));
  EXPECT_TRUE(Json::parse(ReadAll(dir_.File("r.json")), nullptr, false)
                  .contains("benchmarks"));
  EXPECT_TRUE(
      Json::parse(ReadAll(dir_.File("s.json")), nullptr, false).is_array());
  // For people.
  const CommandResult text =
      Regress({"gate", "--suite", suite_, "--commit", "c2", "--baseline",
               "main", "--no-attribution"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, HasSubstr("regression"));
  // The other way round it is faster.
  EXPECT_EQ(Regress({"run", "--suite", suite_, "--commit", "d1", "--series",
                     "reverse"})
                .exit_code,
            0);
  WriteTrace(16);
  const CommandResult faster =
      Gate("d2", {"--series", "reverse", "--no-attribution"});
  EXPECT_EQ(faster.exit_code, 0) << faster.output;
  EXPECT_EQ(Verdict(faster), "faster");
}

TEST_F(RegressTest, AnAcknowledgedChangeBecomesTheBaseline) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  WriteTrace(4);
  EXPECT_EQ(RunSuite("c2").exit_code, 1);
  // The baseline stays until somebody acknowledges the change.
  EXPECT_EQ(RunSuite("c3").exit_code, 1);
  const CommandResult ack =
      Regress({"ack", "matmul", "c2", "--series", "kernels", "--reason",
               "it rounds better"});
  EXPECT_EQ(ack.exit_code, 0) << ack.errors;
  const CommandResult after = RunSuite("c4");
  EXPECT_EQ(after.exit_code, 0) << after.output << after.errors;
  EXPECT_EQ(Verdict(after), "same");
  EXPECT_THAT(TuneJson({"regress", "history"}).dump(),
              HasSubstr("it rounds better"));
  EXPECT_EQ(
      Regress({"ack", "matmul", "c9", "--series", "kernels", "--reason", "x"})
          .exit_code,
      3);
}

TEST_F(RegressTest, StoredCommitsAreComparedAgain) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  WriteTrace(4);
  EXPECT_EQ(RunSuite("c2").exit_code, 1);
  const CommandResult slower = Regress({"compare", "c1", "c2", "--json"});
  EXPECT_EQ(slower.exit_code, 1) << slower.output << slower.errors;
  EXPECT_EQ(Verdict(slower), "slower");
  const CommandResult faster = Regress({"compare", "c2", "c1", "--json"});
  EXPECT_EQ(faster.exit_code, 0) << faster.output << faster.errors;
  EXPECT_EQ(Verdict(faster), "faster");
  EXPECT_EQ(Regress({"compare", "c1", "c1"}).exit_code, 0);
  EXPECT_EQ(Regress({"compare", "c1", "c9"}).exit_code, 4);
}

// The candidate computes something else: that is no regression, and no pass.
TEST_F(RegressTest, AnotherProgramIsANewBenchmark) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  std::string other = kMatmul;
  other.replace(other.find("T.float32(0)"), 12, "T.float32(1)");
  dir_.Write("mm.py", other);
  const CommandResult gate = Gate("c2");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_EQ(Verdict(gate), "new");
  EXPECT_THAT(gate.output, HasSubstr("computes something else"));
}

TEST_F(RegressTest, ABenchmarkThatDoesNotBuildIsNoVerdict) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  dir_.Write("mm.trace", "b0 = sch.get_block(name=\"absent\")\n");
  const CommandResult gate = Gate("c2");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_EQ(Verdict(gate), "failed");
}

TEST_F(RegressTest, WithoutADeviceThereIsNoVerdict) {
  ASSERT_EQ(RunSuite("c1").exit_code, 0);
  WriteTrace(4);
  worker_.reset();
  ASSERT_TRUE(
      Until([&] { return TuneJson({"devices"})[0]["state"] == "offline"; }));
  const CommandResult gate = Gate("c2");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("no device"));
}

TEST_F(RegressTest, WrongUsageIsSaid) {
  const std::vector<std::vector<std::string>> wrong = {
      {"gate", "--suite", suite_},
      {"gate", "--suite", dir_.File("absent.toml"), "--commit", "c",
       "--baseline", "main"},
      {"gate", "--suite", suite_, "--commit", "c", "--baseline", "main",
       "--threshold", "3 apples"},
      {"gate", "--suite", suite_, "--commit", "c", "--baseline", "main",
       "--only", "absent"},
      {"bisect", "a", "b", "--suite", suite_, "--benchmark", "matmul"},
      {"ack", "matmul", "c1"}};
  for (const auto& arguments : wrong) {
    const CommandResult result = Regress(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output << result.errors;
    EXPECT_FALSE(result.errors.empty());
  }
}

TEST_F(RegressTest, CommandsAreComparedHere) {
  // Prints what its folder says.
  dir_.Write("bench.sh",
             "#!/bin/sh\n"
             "echo '{\"benchmarks\": [{\"name\": \"BM_x\", \"run_name\": "
             "\"BM_x\", \"run_type\": \"iteration\", \"iterations\": 1, "
             "\"real_time\": '\"$(cat \"$1/time\")\"', \"time_unit\": "
             "\"ns\"}]}'\n");
  std::filesystem::create_directories(dir_.File("old"));
  std::filesystem::create_directories(dir_.File("new"));
  dir_.Write("old/time", "1000");
  dir_.Write("new/time", "1200");
  const std::string suite =
      dir_.Write("commands.toml",
                 "name = \"commands\"\n"
                 "[[benchmark]]\n"
                 "name = \"parser\"\n"
                 "command = [\"sh\", \"bench.sh\", \"{dir}\"]\n");
  const auto gate = [&](const char* before, const char* after) {
    return Regress({"gate", "--suite", suite, "--commit", "c", "--baseline",
                    "main", "--json", "--dir", dir_.File(after),
                    "--baseline-dir", dir_.File(before)});
  };
  const CommandResult slower = gate("old", "new");
  EXPECT_EQ(slower.exit_code, 1) << slower.output << slower.errors;
  EXPECT_EQ(Parse(slower)["benchmarks"][0]["benchmark"], "parser/BM_x");
  const CommandResult same = gate("old", "old");
  EXPECT_EQ(same.exit_code, 0) << same.output << same.errors;
  EXPECT_EQ(Verdict(same), "same");
  dir_.Write("bench.sh", "exit 3\n");
  EXPECT_EQ(gate("old", "new").exit_code, 4);
}

TEST_F(RegressTest, BisectionFindsTheCommit) {
  const std::string repository = dir_.File("repository");
  const auto git = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/git", "-C", repository, "-c", "user.name=t",
                      "-c", "user.email=t@example.org"});
    const CommandResult result = RunCommand(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output.substr(0, result.output.find('\n'));
  };
  std::filesystem::create_directories(repository);
  git({"init", "-q"});
  std::filesystem::copy_file(suite_, repository + "/suite.toml");
  std::filesystem::copy_file(dir_.File("mm.py"), repository + "/mm.py");
  std::vector<std::string> commits;
  constexpr int kCommits = 7, kFirstSlow = 4;
  for (int i = 0; i < kCommits; ++i) {
    std::ofstream(repository + "/mm.trace")
        << MatmulTrace(i < kFirstSlow ? 16 : 4);
    std::ofstream(repository + "/number") << i;
    git({"add", "-A"});
    git({"commit", "-q", "-m", "commit " + std::to_string(i)});
    commits.push_back(git({"rev-parse", "HEAD"}));
  }
  const CommandResult found = Regress(
      {"bisect", commits.front(), commits.back(), "--suite",
       repository + "/suite.toml", "--benchmark", "matmul", "--repository",
       repository, "--json", "--", "test", "-f", "number"});
  ASSERT_EQ(found.exit_code, 0) << found.output << found.errors;
  const Json answer = Parse(found);
  EXPECT_EQ(answer["result"], "found");
  EXPECT_EQ(answer["commit"], commits[kFirstSlow]);
  EXPECT_LT(answer["builds"], kCommits);
  // Its folders are gone.
  EXPECT_EQ(git({"worktree", "list"}).find("bisect"), std::string::npos);
  const CommandResult none =
      Regress({"bisect", commits[0], commits[2], "--suite",
               repository + "/suite.toml", "--benchmark", "matmul",
               "--repository", repository, "--json", "--", "true"});
  EXPECT_EQ(none.exit_code, 3) << none.output << none.errors;
}

class ClosedRegressTest : public RegressFixture {};

TEST_F(ClosedRegressTest, AServerThatTakesNoArtifactsSaysWhatToDo) {
  server_options_.clear();
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const CommandResult gate = Gate("c1");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("--allow-artifacts"));
}

TEST_F(ClosedRegressTest, WithoutAServerThereIsNoVerdict) {
  address_ = "127.0.0.1:1";
  const CommandResult gate = Gate("c1");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("127.0.0.1:1"));
}

TEST_F(ClosedRegressTest, WeaklyConfinedDevicesGetNoArtifacts) {
  server_options_ = {"--allow-artifacts", "--no-canary"};
  worker_options_ = {"--runner-command",
                     Bin("tune-runner") + " --at-most rlimits"};
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("weak");
  ASSERT_TRUE(Until([&] {
    const Json devices = TuneJson({"devices"});
    return !devices.empty() && devices[0]["state"] == "idle";
  }));
  const CommandResult gate = Gate("c1");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("isolation"));
}

TEST_F(ClosedRegressTest, AWorkerMayRefuseArtifacts) {
  worker_options_ = {"--no-artifacts"};
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("shy");
  ASSERT_TRUE(Until([&] {
    const Json devices = TuneJson({"devices"});
    return !devices.empty() && devices[0]["state"] == "idle";
  }));
  const CommandResult gate = Gate("c1");
  EXPECT_EQ(gate.exit_code, 4) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("artifacts"));
}

}  // namespace
}  // namespace tilefarm::testing
