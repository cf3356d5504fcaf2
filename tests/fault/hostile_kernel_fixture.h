// A real tune-runner with hostile kernels. Whatever they do, the run ends with
// a reply, the next ordinary candidate is measured, and nothing is left behind.
#ifndef TILEFARM_TESTS_FAULT_HOSTILE_KERNEL_FIXTURE_H_
#define TILEFARM_TESTS_FAULT_HOSTILE_KERNEL_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/isolation.h"
#include "tests/support/until.h"
#include "worker/process.h"
#include "worker/runner_client.h"
#include "worker/runner_protocol.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {

inline constexpr char kRunnerProgram[] = TILEFARM_BIN_DIR "/tune-runner";

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" +
                     std::to_string(pid) + "/children");
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

// The open files of a process, as link targets.
inline std::multiset<std::string> OpenFiles(pid_t pid) {
  std::multiset<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code error;
    files.insert(std::filesystem::read_symlink(entry.path(), error).string());
  }
  return files;
}

inline std::set<std::string> FilesOfOurs() {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    const std::string name = entry.path().filename().string();
    for (const char* ours :
         {"tilefarm-runner-", "tilefarm-artifact-", "tilefarm-hostile-"}) {
      if (name.starts_with(ours) && name.find("-test") == std::string::npos) {
        files.insert(name);
      }
    }
  }
  return files;
}

// Processes in a freezer (cgroup v1) handle no signals, like processes that
// hang in a system call.
class Freezer {
 public:
  Freezer()
      : path_("/sys/fs/cgroup/freezer/tilefarm-test-" +
              std::to_string(getpid())) {
    there_ =
        mkdir(path_.c_str(), 0700) == 0 && Write("freezer.state", "THAWED");
  }
  ~Freezer() {
    Write("freezer.state", "THAWED");
    for (int i = 0; i < 500 && rmdir(path_.c_str()) != 0 && there_; ++i) {
      usleep(10000);
    }
  }
  bool there() const { return there_; }
  bool Freeze(pid_t pid) {
    return Write("cgroup.procs", std::to_string(pid)) &&
           Write("freezer.state", "FROZEN");
  }

 private:
  bool Write(const std::string& file, const std::string& text) {
    std::ofstream out(path_ + "/" + file);
    out << text;
    out.close();
    return out.good();
  }
  const std::string path_;
  bool there_ = false;
};

class HostileKernelFixture : public ::testing::Test {
 protected:
  explicit HostileKernelFixture(std::vector<std::string> flags = {})
      : client_(starter_, Command(std::move(flags))) {
    signal(SIGPIPE, SIG_IGN);
  }

  static std::vector<std::string> Command(std::vector<std::string> flags) {
    flags.insert(flags.begin(), kRunnerProgram);
    return flags;
  }

  void SetUp() override {
    files_before_ = FilesOfOurs();
    ASSERT_NO_FATAL_FAILURE(LoadWorkload());
    for (const pid_t child : AllChildren()) runner_ = child;
    ASSERT_NE(runner_, 0);
    open_before_ = OpenFiles(runner_);
    ASSERT_TRUE(ParseIsolation(client_.isolation(), &isolation_))
        << client_.isolation();
  }

  // False if the runner is built with a sanitizer, or the system has no
  // filters.
  bool HasFilter() const {
    return isolation_.level == IsolationLevel::kSeccomp;
  }

  void LoadWorkload() {
    struct LoadWorkload request;
    request.key = "workload";
    request.symbol = "oracle_good";
    request.artifact = object_;
    request.input_seed = 1;
    BufferSpec input;
    input.elements = 1000;
    input.read = true;
    BufferSpec output = input;
    output.read = false;
    output.written = true;
    output.bounded = true;
    request.program.buffers = {input, output};
    request.limits.timeout_ms = 5000;
    const absl::StatusOr<LoadReply> reply = client_.Load(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_TRUE(reply->ok) << reply->error;
  }

  static RunRequest Request(const std::string& symbol,
                            const std::string& artifact, uint32_t timeout_ms) {
    RunRequest request;
    request.key = "workload";
    request.symbol = symbol;
    request.artifact = artifact;
    request.limits.timeout_ms = timeout_ms;
    request.limits.memory_bytes = uint64_t{256} << 20;
    request.min_samples = 3;
    request.max_samples = 5;
    request.target_ms = 5;
    return request;
  }
  RunReply Run(const std::string& symbol, const std::string& artifact,
               uint32_t timeout_ms = 10000) {
    const absl::StatusOr<RunReply> reply =
        client_.Run(Request(symbol, artifact, timeout_ms));
    EXPECT_TRUE(reply.ok()) << symbol << ": " << reply.status();
    return reply.ok() ? *reply : RunReply{};
  }
  // Runs `act` of hostile_kernels.c as the kernel.
  RunReply RunAct(const std::string& act, uint32_t timeout_ms = 10000) {
    return Run("kernel_" + act, object_, timeout_ms);
  }

  // Expects that the runner ends, and that the client reports it once.
  void ExpectRunnerGone(const std::string& symbol) {
    EXPECT_EQ(client_.Run(Request(symbol, object_, /*timeout_ms=*/10000))
                  .status()
                  .code(),
              absl::StatusCode::kUnavailable);
  }

  // The artifact, with `act` executed when it is loaded.
  std::string WithConstructor(std::string act) const {
    std::string object = object_;
    const size_t at = object.find("hostile act:");
    EXPECT_NE(at, std::string::npos);
    act.resize(16);
    object.replace(at + 12, act.size(), act);
    return object;
  }

  // Checks to make after any of the acts.
  void ExpectUnharmed(const std::string& act) {
    const RunReply reply = Run("good", object_);
    EXPECT_EQ(reply.status, RunStatus::kOk) << act << ": " << reply.error;
    EXPECT_TRUE(reply.verified) << act;
    EXPECT_EQ(kill(runner_, 0), 0) << act << " took the runner with it";
    EXPECT_THAT(ChildrenOf(runner_), ::testing::IsEmpty()) << act;
    EXPECT_EQ(OpenFiles(runner_), open_before_) << act;
    // Runners of other tests make directories, which they remove at once.
    std::set<std::string> more;
    EXPECT_TRUE(Until([&] {
      more.clear();
      std::ranges::set_difference(FilesOfOurs(), files_before_,
                                  std::inserter(more, more.end()));
      return more.empty();
    })) << act
        << " left " << ::testing::PrintToString(more);
  }

  const std::string object_ = ReadWhole(TILEFARM_TEST_HOSTILE_KERNELS);
  ProcessStarter starter_;
  RunnerClient client_;
  pid_t runner_ = 0;
  Isolation isolation_;
  std::multiset<std::string> open_before_;
  std::set<std::string> files_before_;

 private:
  // Children of all threads of this process: only the runner.
  static std::vector<pid_t> AllChildren() {
    std::vector<pid_t> found;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(entry.path() / "children");
      for (pid_t child; file >> child;) found.push_back(child);
    }
    return found;
  }
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_TESTS_FAULT_HOSTILE_KERNEL_FIXTURE_H_
