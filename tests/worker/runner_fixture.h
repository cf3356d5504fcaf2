// The real tune-runner, and helpers for its tests.
#ifndef TILEFARM_TESTS_WORKER_RUNNER_FIXTURE_H_
#define TILEFARM_TESTS_WORKER_RUNNER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "worker/process.h"
#include "worker/runner_client.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

inline constexpr uint64_t kElements = 1000;
inline constexpr char kRunner[] = TILEFARM_BIN_DIR "/tune-runner";

inline std::string KernelsObject() {
  std::ifstream file(TILEFARM_TEST_KERNELS, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

inline BufferSpec Buffer(ElementType type, bool read, bool written,
                         uint64_t elements = kElements) {
  BufferSpec spec;
  spec.type = type;
  spec.read = read;
  spec.written = written;
  spec.elements = elements;
  spec.low = IsFloat(type) ? 0 : -8;
  spec.high = IsFloat(type) ? 0 : 7;
  spec.bounded = written && IsFloat(type);
  return spec;
}

inline std::vector<int> ChildrenOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" +
                     std::to_string(pid) + "/children");
  std::vector<int> children;
  for (int child; file >> child;) children.push_back(child);
  return children;
}

// Ids of the child processes of `parent`.
inline std::vector<pid_t> ProcessesWithParent(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string pid, name, state;
    pid_t parent_pid = 0;
    if (file >> pid >> name >> state >> parent_pid && parent_pid == parent) {
      found.push_back(std::stoi(pid));
    }
  }
  return found;
}

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : RunnerTest({kRunner}) {}
  explicit RunnerTest(std::vector<std::string> command)
      : client_(starter_, std::move(command)) {
    signal(SIGPIPE, SIG_IGN);
  }

  // The oracle of the kernel `symbol`.
  LoadReply Load(const std::string& symbol, std::vector<BufferSpec> buffers,
                 uint32_t timeout_ms = 5000) {
    ProgramSpec program;
    program.buffers = std::move(buffers);
    return Load(symbol, std::move(program), timeout_ms);
  }
  LoadReply Load(const std::string& symbol, ProgramSpec program,
                 uint32_t timeout_ms = 5000) {
    LoadWorkload request;
    request.key = "workload";
    request.symbol = "oracle_" + symbol;
    request.artifact = object_;
    request.input_seed = 1;
    request.program = std::move(program);
    request.limits.timeout_ms = timeout_ms;
    absl::StatusOr<LoadReply> reply = client_.Load(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : LoadReply{};
  }

  void LoadDouble() {
    const LoadReply reply =
        Load("good", {Buffer(ElementType::kFloat32, true, false),
                      Buffer(ElementType::kFloat32, false, true)});
    ASSERT_TRUE(reply.ok) << reply.error;
  }

  RunRequest Request(const std::string& symbol) {
    RunRequest request;
    request.key = "workload";
    request.symbol = symbol;
    request.artifact = object_;
    request.limits.timeout_ms = 3000;
    request.limits.memory_bytes = uint64_t{256} << 20;
    request.min_samples = 3;
    request.max_samples = 5;
    request.target_ms = 5;
    return request;
  }

  RunReply Run(const RunRequest& request) {
    absl::StatusOr<RunReply> reply = client_.Run(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : RunReply{};
  }
  RunReply Run(const std::string& symbol) { return Run(Request(symbol)); }

  // After a fault: expects that the runner still measures.
  void ExpectStillWorks() {
    const RunReply reply = Run("good");
    EXPECT_EQ(reply.status, RunStatus::kOk) << reply.error;
    EXPECT_TRUE(reply.verified);
  }

  void ExpectRunError(const std::string& symbol, const std::string& text) {
    LoadDouble();
    const RunReply reply = Run(symbol);
    EXPECT_EQ(reply.status, RunStatus::kRunError);
    EXPECT_THAT(reply.error, testing::HasSubstr(text));
    EXPECT_FALSE(reply.verified);
    ExpectStillWorks();
  }

  void ExpectWrong(const std::string& symbol, const std::string& text) {
    LoadDouble();
    const RunReply reply = Run(symbol);
    EXPECT_EQ(reply.status, RunStatus::kWrongResult);
    EXPECT_THAT(reply.error, testing::HasSubstr(text));
    EXPECT_FALSE(reply.verified);
    ExpectStillWorks();
  }

  const std::string object_ = KernelsObject();
  ProcessStarter starter_;
  RunnerClient client_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_TESTS_WORKER_RUNNER_FIXTURE_H_
