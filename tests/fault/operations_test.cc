// Runs the commands of docs/operations.md unchanged: machines are network
// namespaces with a cable (veth) to the server's, a home folder, and an
// /etc/hosts of their own.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

constexpr char kDocument[] = "docs/operations.md";
constexpr char kServer[] = "farm.example.org";
constexpr absl::Duration kBlockLimit = absl::Seconds(100);

struct Block {
  int line = 0;  // of its first command, from 1
  std::string machine;
  std::string commands;
};

// The ```sh blocks after a line "<!-- run: MACHINE -->".
std::vector<Block> ReadBlocks(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream in(text);
  std::string machine;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    absl::string_view rest = line;
    if (inside) {
      inside = line != "```";
      if (inside) absl::StrAppend(&blocks.back().commands, line, "\n");
    } else if (absl::ConsumePrefix(&rest, "<!-- run: ") &&
               absl::ConsumeSuffix(&rest, " -->")) {
      machine = std::string(rest);
    } else if (!machine.empty()) {
      EXPECT_EQ(line, "```sh") << kDocument << ":" << number;
      blocks.push_back({.line = number + 1, .machine = machine});
      machine.clear();
      inside = true;
    }
  }
  EXPECT_FALSE(inside) << kDocument << ": the last block has no end";
  return blocks;
}

class OperationsTest : public ::testing::Test {
 protected:
  using Args = std::vector<std::string>;

  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "network namespaces take root, which this is not";
    }
    for (const char* program : {kIp, "/usr/bin/curl", "/usr/bin/jq"}) {
      if (access(program, X_OK) != 0) GTEST_SKIP() << program << " is missing";
    }
    if (Ip({"netns", "add", Space(kServer)}).exit_code != 0) {
      GTEST_SKIP() << "this system lets nobody make network namespaces";
    }
    made_.push_back(Space(kServer));
    MakeHome(kServer);
    Run({"-n", Space(kServer), "link", "set", "lo", "up"});
    // An scp without sshd, since machines are folders here.
    MakeProgram("scp", R"(#!/bin/bash
set -e
for last; do :; done
set -- "${@:1:$#-1}"
cp -- "$@" "$MACHINES/${last%%:*}/${last#*:}"
)");
  }
  void TearDown() override {
    processes_.clear();
    for (const std::string& space : made_) {
      // Processes that a killed shell left behind.
      std::istringstream pids(Ip({"netns", "pids", space}).output);
      for (pid_t pid; pids >> pid;) kill(pid, SIGKILL);
      Ip({"netns", "del", space});
    }
  }

  void AddMachine(const std::string& machine) {
    if (std::filesystem::exists(Home(machine))) return;
    const std::string number = absl::StrCat(made_.size());
    const std::string a = absl::StrCat("tfo", number, "a", getpid());
    const std::string b = absl::StrCat("tfo", number, "b", getpid());
    const std::string space = Space(machine);
    const std::string address = AddressOf(made_.size() + 1);
    Run({"netns", "add", space});
    made_.push_back(space);
    MakeHome(machine);
    Run({"link", "add", a, "type", "veth", "peer", "name", b});
    Run({"link", "set", a, "netns", Space(kServer)});
    Run({"link", "set", b, "netns", space});
    // An address of the server on every cable.
    Run({"-n", Space(kServer), "addr", "add", AddressOf(1), "peer", address,
         "dev", a});
    Run({"-n", space, "addr", "add", address, "peer", AddressOf(1), "dev", b});
    Run({"-n", Space(kServer), "link", "set", a, "up"});
    Run({"-n", space, "link", "set", b, "up"});
    Run({"-n", space, "link", "set", "lo", "up"});
  }

  // Expects that all commands of the block succeed. Keeps the environment of
  // earlier blocks of the machine.
  void RunBlock(const Block& block) {
    // Prepend as many lines as the document has before the block, so that bash
    // reports the document's line numbers.
    const std::string text = absl::StrCat(
        "mount --bind \"$MACHINES/hosts\" /etc/hosts; cd \"$HOME\"; ",
        "shopt -s expand_aliases; set -eE; ",
        "if test -e .environment; then . ./.environment; fi; ", "trap 'echo \"",
        kDocument, ":$LINENO: failed: $BASH_COMMAND\" >&2' ", "ERR",
        std::string(block.line - 1, '\n'), block.commands,
        "{ export -p; alias -p; } > .environment\n");
    const std::string script = dir_.Write("block.sh", text);
    // It gets nothing of this process's environment.
    auto process = Process::Spawn(
        {"/usr/bin/env", "-i", absl::StrCat("HOME=", Home(block.machine)),
         absl::StrCat("MACHINES=", dir_.File("machines")),
         absl::StrCat("PATH=", dir_.File("programs"), ":", TILEFARM_BIN_DIR,
                      ":/usr/sbin:/usr/bin:/sbin:/bin"),
         "USER=alice", kIp, "netns", "exec", Space(block.machine), "/bin/bash",
         script});
    ASSERT_NE(process, nullptr);
    const absl::Duration began = Clock::Real().Monotonic();
    const auto code = process->Wait(kBlockLimit);
    const std::string where =
        absl::StrCat(kDocument, ":", block.line, " on ", block.machine);
    std::printf(
        "%s: %s\n", where.c_str(),
        absl::FormatDuration(absl::Trunc(Clock::Real().Monotonic() - began,
                                         absl::Milliseconds(1)))
            .c_str());
    EXPECT_TRUE(code.has_value()) << where << " does not end";
    EXPECT_EQ(code.value_or(-1), 0)
        << where << "\n"
        << process->output() << process->errors() << Logs();
    // Keep it, since it may have started background processes.
    processes_.push_back(std::move(process));
  }

  std::string Home(const std::string& machine) const {
    return dir_.File("machines/" + machine);
  }

  TempDir dir_;

 private:
  static constexpr char kIp[] = "/usr/sbin/ip";

  static std::string Space(const std::string& machine) {
    return absl::StrCat("tf-", getpid(), "-", machine);
  }
  static std::string AddressOf(size_t number) {
    return absl::StrCat("10.213.8.", number);
  }
  static CommandResult Ip(Args args) {
    args.insert(args.begin(), kIp);
    return RunCommand(std::move(args));
  }
  static void Run(const Args& args) {
    const CommandResult done = Ip(args);
    ASSERT_EQ(done.exit_code, 0) << done.errors;
  }
  void MakeProgram(const std::string& name, const std::string& text) {
    namespace fs = std::filesystem;
    fs::create_directories(dir_.File("programs"));
    fs::permissions(dir_.Write("programs/" + name, text), fs::perms::owner_all);
  }
  void MakeHome(const std::string& machine) {
    namespace fs = std::filesystem;
    fs::create_directories(Home(machine));
    for (const char* folder : {"deploy", "examples"}) {
      fs::create_symlink(absl::StrCat(TILEFARM_SOURCE_DIR "/", folder),
                         absl::StrCat(Home(machine), "/", folder));
    }
    std::ofstream hosts(dir_.File("machines/hosts"), std::ios::app);
    if (machine == kServer) hosts << "127.0.0.1 localhost\n";
    hosts << AddressOf(made_.size()) << " " << machine << "\n";
  }
  std::string Logs() const {
    std::string all;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(dir_.path())) {
      if (file.path().extension() != ".log") continue;
      absl::StrAppend(&all, "--- ", file.path().string(), "\n",
                      ReadFile(file.path().string()));
    }
    return all;
  }

  std::vector<std::string> made_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST_F(OperationsTest, TheCommandsOfTheDocumentWorkAsWritten) {
  const std::vector<Block> blocks =
      ReadBlocks(ReadFile(TILEFARM_SOURCE_DIR "/docs/operations.md"));
  std::string all;
  for (const Block& block : blocks) {
    all += block.commands;
    AddMachine(block.machine);
  }
  // Otherwise the marks are missing in the document.
  for (const char* part :
       {"make-certs", "tune-server", "rpc-worker", "tune run", "revoke"}) {
    ASSERT_NE(all.find(part), std::string::npos) << part;
  }
  for (const Block& block : blocks) {
    ASSERT_NO_FATAL_FAILURE(RunBlock(block));
    if (HasFailure()) return;
  }
}

TEST_F(OperationsTest, ACommandThatFailsIsNamedByItsLine) {
  EXPECT_NONFATAL_FAILURE(
      RunBlock({.line = 7, .machine = kServer, .commands = "true\nfalse\n"}),
      "docs/operations.md:8: failed: false");
}

}  // namespace
}  // namespace tilefarm::testing
