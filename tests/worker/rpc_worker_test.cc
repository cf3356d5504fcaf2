// The real rpc-worker with its real helpers and a simulated farm: device
// properties, real candidates, signals and kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/worker/fake_farm.h"
#include "tests/worker/programs.h"
#include "worker/helper_environment.h"
#include "worker/process.h"
#include "worker/runner_query.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

// All processes below `root`, itself included.
std::set<pid_t> Descendants(pid_t root) {
  std::set<pid_t> found = {root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "stat");
      std::string name, state;
      pid_t pid = 0, parent = 0;
      if (file >> pid >> name >> state >> parent && found.contains(parent)) {
        grew |= found.insert(pid).second;
      }
    }
  }
  return found;
}

class RpcWorkerTest : public testing::Test {
 protected:
  RpcWorkerTest() {
    signal(SIGPIPE, SIG_IGN);
    char path[] = "/tmp/tilefarm-rpc-worker-test-XXXXXX";
    directory_ = mkdtemp(path);
    farm_.Start();
  }
  ~RpcWorkerTest() override {
    process_.reset();
    farm_.Stop();
    std::filesystem::remove_all(directory_);
  }

  std::vector<std::string> Command() const {
    return {std::string(TILEFARM_BIN_DIR) + "/rpc-worker",
            "--server",
            farm_.address(),
            "--name",
            "device-1",
            "--label",
            "rack=7",
            "--cgroup",
            "off",
            "--state-dir",
            directory_ + "/state",
            "--lock-dir",
            directory_ + "/locks"};
  }

  void StartWorker(const std::vector<std::string>& flags = {}) {
    const size_t before = farm_.hellos().size();
    std::vector<std::string> command = Command();
    command.insert(command.end(), flags.begin(), flags.end());
    absl::StatusOr<std::unique_ptr<Process>> process =
        starter_.Start(command, RunnerEnvironment());
    ASSERT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    ASSERT_TRUE(farm_.AwaitHellos(before + 1));
    ASSERT_TRUE(
        farm_.Await([this] { return farm_.last_state().free_slots() > 0; }));
  }

  static v1::Lease Lease(const std::string& id, const std::string& program,
                         const std::string& trace) {
    v1::Lease lease;
    lease.set_lease_id(id);
    lease.set_attempt(1);
    lease.set_program(program);
    lease.set_trace(trace);
    lease.set_workload_hash(absl::StrCat("workload of ", program.size()));
    lease.set_target("host,cores=1");
    return lease;
  }

  // Waits until none of `pids` runs.
  bool AwaitGone(const std::set<pid_t>& pids) {
    return farm_.Await([&] {
      for (pid_t pid : pids) {
        std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
        std::string id, name, state;
        if (file >> id >> name >> state && state != "Z") return false;
      }
      return true;
    });
  }

  std::string directory_;
  FakeFarm farm_;
  ProcessStarter starter_;
  std::unique_ptr<Process> process_;
};

TEST_F(RpcWorkerTest, AnnouncesItsDevice) {
  StartWorker();
  const v1::Hello hello = farm_.hellos()[0];
  EXPECT_EQ(hello.protocol_version(), v1::kProtocolVersion);
  EXPECT_EQ(hello.name(), "device-1");
  EXPECT_EQ(hello.boot_id().size(), 32u);
  EXPECT_THAT(hello.fingerprint(), HasSubstr("llvm-"));
  EXPECT_EQ(hello.labels().at("rack"), "7");
  const v1::DeviceProperties& device = hello.device();
  EXPECT_FALSE(device.target().empty());
  EXPECT_THAT(device.triple(), HasSubstr("-"));
  EXPECT_FALSE(device.cpu().empty());
  EXPECT_GE(device.cores(), 1u);
  EXPECT_GT(device.memory_bytes(), 0u);
  EXPECT_EQ(device.isolation(),
            RunnersIsolation({TILEFARM_BIN_DIR "/tune-runner"}));
}

TEST_F(RpcWorkerTest, AnnouncesAGpu) {
  setenv("TILEFARM_CUDA_DRIVER", TILEFARM_TEST_FAKE_CUDA, 1);
  StartWorker({"--device", "cuda:0"});
  // A GPU has one worker.
  std::vector<std::string> command = Command();
  command.insert(command.end(), {"--device", "cuda:0"});
  absl::StatusOr<std::unique_ptr<Process>> second =
      starter_.Start(command, RunnerEnvironment());
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE((*second)->Read(absl::Seconds(20)).ok());
  EXPECT_EQ((*second)->Kill(), "exited with status 1");
  unsetenv("TILEFARM_CUDA_DRIVER");
  const v1::DeviceProperties device = farm_.hellos()[0].device();
  EXPECT_EQ(device.target(), "cuda:sm_90a,cores=1");
  EXPECT_EQ(device.triple(), "nvptx64-nvidia-cuda");
  EXPECT_EQ(device.cpu(), "sm_90a");
  EXPECT_EQ(device.brand(),
            "Fake GPU 0, driver of CUDA 12.4, 1980 MHz, memory 2619 MHz");
  EXPECT_EQ(device.cores(), 1u);
  EXPECT_EQ(device.l2_bytes(), 1u << 20);
  EXPECT_EQ(device.l3_bytes(), 1u << 20);
  EXPECT_EQ(device.memory_bytes(), 1u << 30);
}

TEST_F(RpcWorkerTest, AnnouncesADeviceOfOpenCl) {
  const std::string properties =
      AskRunner({TILEFARM_BIN_DIR "/tune-runner", "--device", "opencl:0"},
                "--properties");
  if (properties.find("target opencl:pocl\n") == std::string::npos) {
    GTEST_SKIP() << "no PoCL: " << properties;
  }
  StartWorker({"--device", "opencl:0"});
  const v1::DeviceProperties device = farm_.hellos()[0].device();
  EXPECT_EQ(device.target(), "opencl:pocl,cores=1");
  EXPECT_EQ(device.cpu(), "pocl");
  EXPECT_THAT(properties, HasSubstr("brand " + device.brand() + "\n"));
  EXPECT_THAT(device.brand(), HasSubstr(" compute units, "));
  EXPECT_GT(device.memory_bytes(), 0u);
  EXPECT_FALSE(device.takes_artifacts());
}

TEST_F(RpcWorkerTest, AnnouncesASimulatedGpu) {
  StartWorker({"--device", "sim:sm_90a"});
  const v1::DeviceProperties device = farm_.hellos()[0].device();
  EXPECT_EQ(device.target(), "sim:sm_90a,cores=1");
  EXPECT_THAT(device.brand(), HasSubstr("simulated by "));
}

TEST_F(RpcWorkerTest, MeasuresRealCandidates) {
  StartWorker();
  farm_.SendLease(Lease("a", kMatmulRelu, kMatmulReluTrace));
  farm_.SendLease(Lease("b", kMatmulRelu, "sch.split(l0, factors=[2, 2])"));
  farm_.SendLease(Lease("c", kMatmulRelu, ""));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  ASSERT_TRUE(farm_.AwaitResult("b"));
  ASSERT_TRUE(farm_.AwaitResult("c"));
  const v1::Measurement a = farm_.result("a").measurement();
  EXPECT_EQ(a.status(), "ok") << a.error();
  EXPECT_TRUE(a.verified());
  EXPECT_EQ(a.code_digest().size(), 64u);
  EXPECT_EQ(farm_.result("b").measurement().status(), "invalid_schedule");
  EXPECT_EQ(farm_.result("c").measurement().status(), "ok");
}

TEST_F(RpcWorkerTest, SigtermEndsItAndItsHelpers) {
  StartWorker();
  farm_.SendLease(Lease("a", kMatmulRelu, kMatmulReluTrace));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  const std::set<pid_t> all = Descendants(process_->pid());
  EXPECT_GE(all.size(), 3u);
  kill(process_->pid(), SIGTERM);
  EXPECT_TRUE(AwaitGone(all));
  EXPECT_EQ(process_->Kill(), "exited with status 0");
}

TEST_F(RpcWorkerTest, SigkillTakesTheHelpersWithIt) {
  farm_.set_acknowledges(false);
  StartWorker();
  farm_.SendLease(Lease("a", kMatmulRelu, kMatmulReluTrace));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  for (int i = 0; i < 3; ++i) {
    farm_.SendLease(Lease(absl::StrCat("b", i), kMatmulRelu, kMatmulReluTrace));
  }
  const std::set<pid_t> all = Descendants(process_->pid());
  EXPECT_GE(all.size(), 3u);
  kill(process_->pid(), SIGKILL);
  EXPECT_TRUE(AwaitGone(all));
  process_.reset();

  // The next one sends the results that were not acknowledged.
  farm_.set_acknowledges(true);
  StartWorker();
  EXPECT_TRUE(farm_.AwaitResult("a", 2));
  farm_.SendLease(Lease("c", kMatmulRelu, kMatmulReluTrace));
  ASSERT_TRUE(farm_.AwaitResult("c"));
  EXPECT_EQ(farm_.result("c").measurement().status(), "ok");
}

TEST_F(RpcWorkerTest, StoppedBuildersDieToo) {
  StartWorker();
  farm_.SendLease(Lease("a", kMatmulRelu, kMatmulReluTrace));
  ASSERT_TRUE(farm_.AwaitResult("a"));
  const std::set<pid_t> all = Descendants(process_->pid());
  for (pid_t pid : all) {
    if (pid != process_->pid()) kill(pid, SIGSTOP);
  }
  kill(process_->pid(), SIGKILL);
  // Continue the runner explicitly, since the worker never does.
  for (pid_t pid : all) kill(pid, SIGCONT);
  EXPECT_TRUE(AwaitGone(all));
}

TEST_F(RpcWorkerTest, BadUsageExitsWithTwo) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--label", "novalue"},
        std::vector<std::string>{"--server", "noport"},
        std::vector<std::string>{"--cores", "x"},
        std::vector<std::string>{"--builders", "0"},
        std::vector<std::string>{"--device", "cuda"},
        std::vector<std::string>{"--device", "cuda:1000000"},
        std::vector<std::string>{"--device", "opencl:-1"},
        std::vector<std::string>{"--device", "opencl:1000"},
        std::vector<std::string>{"--device", "sim:sm_1"},
        std::vector<std::string>{"--no-such-flag"}}) {
    std::vector<std::string> command = Command();
    command.insert(command.end(), flags.begin(), flags.end());
    absl::StatusOr<std::unique_ptr<Process>> process =
        starter_.Start(command, RunnerEnvironment());
    ASSERT_TRUE(process.ok());
    EXPECT_EQ((*process)->Read(absl::Seconds(20)).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ((*process)->Kill(), "exited with status 2") << flags[0];
  }
}

}  // namespace
}  // namespace tilefarm::worker
