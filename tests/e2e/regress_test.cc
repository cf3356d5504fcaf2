// tune regress against a real server and workers.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/e2e/regress_fixture.h"
#include "tests/e2e/small_model.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_GT(report["benchmarks"][0]["ratio"]["ratio"], 1.2);
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

// Prints what its folder says.
constexpr char kBenchScript[] =
    "#!/bin/sh\n"
    "echo '{\"benchmarks\": [{\"name\": \"BM_x\", \"run_name\": "
    "\"BM_x\", \"run_type\": \"iteration\", \"iterations\": 1, "
    "\"real_time\": '\"$(cat \"$1/time\")\"', \"time_unit\": "
    "\"ns\"}'\"$(cat \"$1/more\" 2>/dev/null)\"']}'\n";

TEST_F(RegressTest, CommandsAreComparedHere) {
  dir_.Write("bench.sh", kBenchScript);
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
  // A benchmark that the candidate has no more.
  dir_.Write("old/more",
             ", {\"name\": \"BM_y\", \"run_name\": \"BM_y\", "
             "\"run_type\": \"iteration\", \"iterations\": 1, "
             "\"real_time\": 5, \"time_unit\": \"ns\"}");
  const Json removed = Parse(gate("old", "new"))["benchmarks"];
  ASSERT_EQ(removed.size(), 2) << removed.dump();
  EXPECT_EQ(removed[1]["benchmark"], "parser/BM_y");
  EXPECT_EQ(removed[1]["comparison"], "removed");
  dir_.Write("bench.sh", "exit 3\n");
  EXPECT_EQ(gate("old", "new").exit_code, 4);
}

// A repository of commits, and git in it.
class BisectTest : public RegressTest {
 protected:
  static constexpr int kCommits = 7, kFirstSlow = 4;

  std::string Git(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"/usr/bin/git", "-C", repository_, "-c", "user.name=t",
                      "-c", "user.email=t@example.org"});
    const CommandResult result = RunCommand(std::move(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output.substr(0, result.output.find('\n'));
  }

  // Makes the commits; `write` writes one's files, which is slow or fast.
  void MakeCommits(const std::function<void(bool slow)>& write) {
    std::filesystem::create_directories(repository_);
    Git({"init", "-q"});
    for (int i = 0; i < kCommits; ++i) {
      write(i >= kFirstSlow);
      Write("number", std::to_string(i));
      Git({"add", "-A"});
      Git({"commit", "-q", "-m", "commit " + std::to_string(i)});
      commits_.push_back(Git({"rev-parse", "HEAD"}));
    }
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(repository_ + "/" + name) << text;
  }

  CommandResult Bisect(const std::string& benchmark, int good, int bad,
                       const std::vector<std::string>& build) {
    std::vector<std::string> arguments = {
        "bisect",
        commits_.at(static_cast<size_t>(good)),
        commits_.at(static_cast<size_t>(bad)),
        "--suite",
        repository_ + "/suite.toml",
        "--benchmark",
        benchmark,
        "--repository",
        repository_,
        "--json",
        "--"};
    arguments.insert(arguments.end(), build.begin(), build.end());
    return Regress(arguments);
  }
  void ExpectFound(const CommandResult& found) {
    ASSERT_EQ(found.exit_code, 0) << found.output << found.errors;
    const Json answer = Parse(found);
    EXPECT_EQ(answer["result"], "found");
    EXPECT_EQ(answer["commit"], commits_[kFirstSlow]);
    EXPECT_LT(answer["builds"], kCommits);
    // Its folders are gone.
    EXPECT_EQ(Git({"worktree", "list"}).find("bisect"), std::string::npos);
  }

  const std::string repository_ = dir_.File("repository");
  std::vector<std::string> commits_;
};

TEST_F(BisectTest, FindsTheCommitOfAProgram) {
  std::filesystem::create_directories(repository_);
  std::filesystem::copy_file(suite_, repository_ + "/suite.toml");
  std::filesystem::copy_file(dir_.File("mm.py"), repository_ + "/mm.py");
  MakeCommits(
      [&](bool slow) { Write("mm.trace", MatmulTrace(slow ? 4 : 16)); });
  ExpectFound(Bisect("matmul", 0, kCommits - 1, {"test", "-f", "number"}));
  const CommandResult none = Bisect("matmul", 0, 2, {"true"});
  EXPECT_EQ(none.exit_code, 3) << none.output << none.errors;
}

TEST_F(BisectTest, FindsTheCommitOfACommand) {
  MakeCommits([&](bool slow) {
    Write("bench.sh", kBenchScript);
    Write("time", slow ? "1200" : "1000");
    Write("suite.toml",
          "name = \"commands\"\n"
          "[[benchmark]]\n"
          "name = \"parser\"\n"
          "command = [\"sh\", \"bench.sh\", \"{dir}\"]\n");
  });
  ExpectFound(Bisect("parser/BM_x", 0, kCommits - 1, {"true"}));
  // No commit has it.
  EXPECT_EQ(Bisect("parser/BM_y", 0, kCommits - 1, {"true"}).exit_code, 4);
  // No commit builds.
  EXPECT_EQ(Bisect("parser/BM_x", 0, kCommits - 1, {"false"}).exit_code, 4);
}

// Default schedules against tuned ones; no time is asserted.
TEST_F(RegressTest, ModelsAreComparedAsAWhole) {
  dir_.Write("two_kernels.onnx", TwoKernels());
  const std::string suite = dir_.Write("models.toml",
                                       "name = \"models\"\n"
                                       "[[benchmark]]\n"
                                       "name = \"mlp\"\n"
                                       "model = \"two_kernels.onnx\"\n"
                                       "target = \"host,cores=1\"\n");
  const CommandResult first =
      Regress({"run", "--suite", suite, "--commit", "c1", "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.output << first.errors;
  EXPECT_EQ(Verdict(first), "new");
  EXPECT_GT(Parse(first)["benchmarks"][0]["candidate_seconds"], 0);
  ASSERT_EQ(Tune({"run", dir_.File("two_kernels.onnx"), "--target",
                  "host,cores=1", "--trials", "16"})
                .exit_code,
            0);
  const CommandResult gate = Regress({"gate", "--suite", suite, "--commit",
                                      "c2", "--baseline", "main", "--json"});
  const Json one = Parse(gate)["benchmarks"][0];
  EXPECT_EQ(one["comparison"], "compared") << gate.output << gate.errors;
  EXPECT_GE(one["ratio"]["clusters"], 8) << gate.output;
  EXPECT_GT(one["baseline_seconds"], 0);
  // Both are stored.
  ASSERT_EQ(
      Regress({"run", "--suite", suite, "--commit", "c2", "--branch", "b"})
          .exit_code,
      0);
  const Json again =
      Parse(Regress({"compare", "c1", "c2", "--json"}))["benchmarks"][0];
  EXPECT_EQ(again["comparison"], "compared") << again.dump();
  EXPECT_GE(again["ratio"]["clusters"], 8) << again.dump();
  // Another model under the name.
  dir_.Write("two_kernels.onnx", TwoKernels(48));
  const CommandResult other = Regress({"gate", "--suite", suite, "--commit",
                                       "c3", "--baseline", "main", "--json"});
  EXPECT_EQ(Verdict(other), "new") << other.output;
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
