// The daemons under a service manager: ready, alive, stuck, stopping.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

class ServiceManagerTest : public FarmFixture {
 protected:
  void SetUp() override {
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    const std::string path = dir_.File("notify");
    ASSERT_LT(path.size(), sizeof at.sun_path);
    std::strcpy(at.sun_path, path.c_str());
    ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    environment_ = {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=1200000"};
  }
  void TearDown() override { close(fd_); }

  // The notifications since the last call.
  std::vector<std::string> Said() {
    std::vector<std::string> all;
    char buffer[256];
    for (ssize_t got; (got = recv(fd_, buffer, sizeof buffer, 0)) >= 0;) {
      all.emplace_back(buffer, static_cast<size_t>(got));
    }
    return all;
  }
  bool Hears(const std::string& state, int seconds = 60) {
    return Until(
        [&] {
          const std::vector<std::string> said = Said();
          return std::find(said.begin(), said.end(), state) != said.end();
        },
        seconds);
  }
  static pid_t ThreadOf(pid_t process, const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(
             absl::StrCat("/proc/", process, "/task"))) {
      const std::string comm = ReadFile(entry.path().string() + "/comm");
      if (absl::StripSuffix(comm, "\n") == name) {
        return std::stoi(entry.path().filename().string());
      }
    }
    return 0;
  }

  int fd_ = -1;
  std::vector<std::string> environment_;
};

TEST_F(ServiceManagerTest, TheServerIsReadyAliveAndStopping) {
  server_environment_ = environment_;
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_TRUE(Hears("READY=1"));
  // Another one than the first, which comes with READY=1.
  EXPECT_TRUE(Hears("WATCHDOG=1"));
  EXPECT_TRUE(Hears("WATCHDOG=1"));
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  const std::vector<std::string> last = Said();
  ASSERT_FALSE(last.empty());
  EXPECT_EQ(last.back(), "STOPPING=1");
}

TEST_F(ServiceManagerTest, AServerWhoseLoopStandsStillIsNotAlive) {
  server_environment_ = environment_;
  ASSERT_NO_FATAL_FAILURE(StartServer());
  ASSERT_TRUE(Hears("WATCHDOG=1"));
  // Stop only one thread; the rest of the server continues.
  pid_t conductor = 0;
  ASSERT_TRUE(Until([&] {
    conductor = ThreadOf(server_->pid(), "conductor");
    return conductor != 0;
  }));
  if (ptrace(PTRACE_SEIZE, conductor, nullptr, nullptr) != 0) {
    GTEST_SKIP() << "this system lets nobody trace: " << strerror(errno);
  }
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, conductor, nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(conductor, &status, __WALL), conductor);
  ASSERT_TRUE(Until([&] {
    return server_->errors().find("the conductor has not moved") !=
           std::string::npos;
  })) << server_->errors();
  Said();
  // Within the time for several pings.
  EXPECT_FALSE(Hears("WATCHDOG=1", 2));
  // Calls are still answered: the process is not dead.
  EXPECT_EQ(Tune({"db", "stats"}).exit_code, 0);
  EXPECT_TRUE(Said().empty());
  // It recovers by itself.
  ASSERT_EQ(ptrace(PTRACE_DETACH, conductor, nullptr, nullptr), 0);
  EXPECT_TRUE(Hears("WATCHDOG=1"));
}

TEST_F(ServiceManagerTest, TheWorkerIsReadyAliveAndStopping) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  worker_environment_ = environment_;
  const auto worker = StartWorker("desk");
  EXPECT_TRUE(Hears("READY=1"));
  EXPECT_TRUE(Hears("WATCHDOG=1"));
  EXPECT_TRUE(Hears("WATCHDOG=1"));
  // Its builders do not send notifications.
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string path = entry.path().string();
    if (ReadFile(path + "/comm") != "tune-builder\n") continue;
    EXPECT_EQ(ReadFile(path + "/environ").find(environment_[0]),
              std::string::npos);
  }
  worker->Kill(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  const std::vector<std::string> last = Said();
  ASSERT_FALSE(last.empty());
  EXPECT_EQ(last.back(), "STOPPING=1");
}

TEST_F(ServiceManagerTest, AWatchdogMeantForAnotherProcessIsNotPinged) {
  server_environment_ = environment_;
  server_environment_.push_back("WATCHDOG_PID=1");
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_TRUE(Hears("READY=1"));
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  EXPECT_EQ(Said(), std::vector<std::string>{"STOPPING=1"});
}

}  // namespace
}  // namespace tilefarm::testing
