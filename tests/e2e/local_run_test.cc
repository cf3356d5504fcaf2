// `tune run --local`: a farm of one machine that lasts for one command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_replace.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LocalRunTest : public FarmFixture {
 protected:
  std::vector<std::string> Command(int trials) const {
    return {Bin("tune"), "run",
            "--local",   program_,
            "--db",      db(),
            "--target",  "host,cores=1",
            "--trials",  std::to_string(trials),
            "--json"};
  }
  static Json LastLine(const std::string& output) {
    std::istringstream lines(output);
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    return Json::parse(last, nullptr, /*allow_exceptions=*/false);
  }
  bool WaitForFirstTrial(Process& run) {
    return Until([&] {
      std::istringstream lines(run.output());
      for (std::string line; std::getline(lines, line);) {
        const Json update = Json::parse(line, nullptr, false);
        if (update.is_object() && update["trials_done"] > 0) return true;
      }
      return false;
    });
  }
  // Ids of the direct children whose command has `program` in it.
  static std::vector<pid_t> Children(pid_t parent, const std::string& program) {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(parent) + "/task", error)) {
      std::ifstream children(task.path() / "children");
      for (pid_t child = 0; children >> child;) {
        const std::string command =
            ReadFile("/proc/" + std::to_string(child) + "/cmdline");
        if (command.find(program) != std::string::npos) found.push_back(child);
      }
    }
    return found;
  }
  bool HasEnded(pid_t process) {
    return Until([&] { return kill(process, 0) != 0; });
  }
};

TEST_F(LocalRunTest, TunesWithoutAServerAndLeavesTheDatabaseAlone) {
  // What configures other farms has no effect.
  const CommandResult run = RunCommand(
      Command(8), {"TUNE_SERVER=127.0.0.1:1", "TUNE_SERVER_LISTEN=nowhere",
                   "TUNE_TLS_CA=/nowhere"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json last = LastLine(run.output);
  EXPECT_EQ(last["state"], "done");
  EXPECT_EQ(last["trials_done"], 8);
  EXPECT_FALSE(std::filesystem::exists(db() + ".local"));

  const CommandResult built =
      RunCommand({Bin("tunec"), program_, "--target", "host,cores=1", "--db",
                  db(), "--require-tuned", "-o", dir_.File("mm.so")});
  EXPECT_EQ(built.exit_code, 0) << built.errors;

  // A server goes on with the same database, and the other way round.
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_EQ(TuneJson({"db", "stats"})["records"], 8);
  const CommandResult refused = RunCommand(Command(8));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("written by another process"));
  EXPECT_THAT(refused.errors, HasSubstr("leave out --local"));
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  EXPECT_EQ(LastLine(RunCommand(Command(4)).output)["state"], "done");
  EXPECT_EQ(TuneJson({"db", "stats", "--db", db()})["records"], 12);
}

TEST_F(LocalRunTest, CtrlCEndsTheJobAndTheFarm) {
  const auto run = Process::Spawn(Command(100000));
  ASSERT_NE(run, nullptr);
  ASSERT_TRUE(WaitForFirstTrial(*run)) << run->errors();
  run->Kill(SIGINT);
  EXPECT_EQ(run->Wait(), 130);
  EXPECT_THAT(run->errors(), HasSubstr("stays in " + db()));
  EXPECT_EQ(LastLine(run->output())["state"], "cancelled");
  EXPECT_FALSE(std::filesystem::exists(db() + ".local"));
  EXPECT_GT(TuneJson({"db", "stats", "--db", db()})["records"], 0);
  // The cancelled job does not go on with the next run.
  const CommandResult next = RunCommand(Command(2));
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_THAT(next.errors, Not(HasSubstr("unfinished")));
}

TEST_F(LocalRunTest, TheFarmAndItsJobEndWithAKilledClient) {
  const auto run = Process::Spawn(Command(100000));
  ASSERT_NE(run, nullptr);
  ASSERT_TRUE(WaitForFirstTrial(*run)) << run->errors();
  std::vector<pid_t> children = Children(run->pid(), "tune-server");
  const std::vector<pid_t> workers = Children(run->pid(), "rpc-worker");
  children.insert(children.end(), workers.begin(), workers.end());
  ASSERT_EQ(children.size(), 2u);
  run->Kill(SIGKILL);
  for (const pid_t child : children) EXPECT_TRUE(HasEnded(child));
  const CommandResult next = RunCommand(Command(2));
  EXPECT_EQ(next.exit_code, 0) << next.errors;
  EXPECT_THAT(next.errors, HasSubstr("whose run was killed"));
}

TEST_F(LocalRunTest, JobsOfAServerOnTheSameDatabaseComeAfterTheRun) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  // A job of the same function would be waited for.
  const std::string smaller =
      dir_.Write("smaller.py", absl::StrReplaceAll(kMmRelu, {{"128", "64"}}));
  const std::string other =
      TuneJson({"submit", smaller, "--trials", "100000"})["id"];
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  const CommandResult run = RunCommand(Command(2));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("1, such as " + other));
}

TEST_F(LocalRunTest, ADeadServerIsReportedWithItsLog) {
  const auto run = Process::Spawn(Command(100000));
  ASSERT_NE(run, nullptr);
  ASSERT_TRUE(WaitForFirstTrial(*run)) << run->errors();
  const std::vector<pid_t> server = Children(run->pid(), "tune-server");
  ASSERT_EQ(server.size(), 1u);
  kill(server[0], SIGKILL);
  EXPECT_EQ(run->Wait(), 1);
  EXPECT_THAT(run->errors(), HasSubstr("tune-server was ended by SIGKILL"));
  EXPECT_THAT(run->errors(), HasSubstr("tune.db.local/tune-server.log"));
}

TEST_F(LocalRunTest, WhatCannotWorkIsRefusedBeforeAnythingStarts) {
  const auto errors = [&](std::vector<std::string> more, int code) {
    std::vector<std::string> command = {Bin("tune"), "run", program_};
    command.insert(command.end(), more.begin(), more.end());
    const CommandResult result = RunCommand(command);
    EXPECT_EQ(result.exit_code, code) << result.errors;
    return result.errors;
  };
  EXPECT_THAT(
      errors({"--local", "--db", db(), "--target", "aarch64:cortex-a72"}, 2),
      HasSubstr("cannot measure --target aarch64:cortex-a72"));
  EXPECT_THAT(errors({"--db", db()}, 2), HasSubstr("--db requires --local"));
  EXPECT_THAT(errors({"--local", "--server", "127.0.0.1:1"}, 2),
              HasSubstr("--local and --server exclude each other"));
  EXPECT_THAT(errors({"--local", "--db", dir_.File("none/tune.db")}, 1),
              HasSubstr("none/tune.db.local: No such file"));
  EXPECT_TRUE(std::filesystem::exists(program_));
  EXPECT_FALSE(std::filesystem::exists(db()));
  // What the server says of a file that is no database.
  dir_.Write("tune.db", std::string(8192, 'x'));
  EXPECT_THAT(errors({"--local", "--db", db()}, 1),
              HasSubstr("tune-server exited with status 1"));
}

}  // namespace
}  // namespace tilefarm::testing
