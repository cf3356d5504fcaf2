// A builder that hostile input took over by a flaw in parser, lowering or LLVM
// can only compile.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/sanitizers.h"
#include "tests/worker/programs.h"
#include "worker/builder_client.h"
#include "worker/process.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr bool kFiltered = !TILEFARM_SANITIZED;

const std::string kBuilder = std::string(TILEFARM_BIN_DIR) + "/tune-builder";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A port of the loopback interface on which a process listens.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
  }
  ~Listener() { close(fd_); }
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

class BuilderSandboxTest : public testing::Test {
 protected:
  BuilderSandboxTest() { signal(SIGPIPE, SIG_IGN); }

  // The reply in which a started builder reports its confinement.
  BuilderHelloReply Hello(Process& process) {
    BuilderHelloReply hello;
    EXPECT_TRUE(process
                    .Write(static_cast<uint32_t>(BuilderFrame::kHello), "",
                           absl::Seconds(30))
                    .ok());
    const absl::StatusOr<Frame> frame = process.Read(absl::Seconds(60));
    EXPECT_TRUE(frame.ok()) << frame.status();
    EXPECT_TRUE(frame.ok() && Decode(frame->payload, &hello));
    return hello;
  }

  ProcessStarter starter_;
};

class HostileBuilderTest : public BuilderSandboxTest {
 protected:
  HostileBuilderTest() : builder_(starter_, {TILEFARM_TEST_HOSTILE_BUILDER}) {}

  // The result of an act (hostile_builder.cc).
  std::string Try(const std::string& act) {
    BuildRequest request;
    request.trace = act;
    const absl::StatusOr<BuildReply> reply =
        builder_.Build(request, absl::Seconds(60));
    EXPECT_TRUE(reply.ok()) << act << ": " << reply.status();
    return reply.ok() ? reply->error : "";
  }

  BuilderClient builder_;
};

TEST_F(HostileBuilderTest, ReadsNeitherTokensNorKeys) {
  char path[] = "/tmp/tilefarm-builder-test-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, "tilefarm_secret", 15), 15);
  close(fd);
  // Required by `rpc-worker --token-file`.
  ASSERT_EQ(chmod(path, 0600), 0);
  for (const std::string& file : {std::string(path), std::string("/etc/passwd"),
                                  absl::StrCat("/proc/", getpid(), "/environ"),
                                  std::string("/proc/self/environ")}) {
    EXPECT_THAT(Try("read " + file), Not(HasSubstr("done"))) << file;
  }
  EXPECT_THAT(Try("make /etc/tilefarm-builder-test"), Not(HasSubstr("done")));
  EXPECT_FALSE(std::filesystem::exists("/etc/tilefarm-builder-test"));
  std::filesystem::remove(path);
}

TEST_F(HostileBuilderTest, SeesNothingOfTheWorkersEnvironment) {
  setenv("TUNE_TOKEN", "tilefarm_secret", 1);
  const std::string environment = Try("environ");
  unsetenv("TUNE_TOKEN");
  EXPECT_THAT(environment, Not(HasSubstr("TUNE_TOKEN")));
  EXPECT_THAT(environment, Not(HasSubstr("PATH=")));
}

TEST_F(HostileBuilderTest, HasNoNetwork) {
  const Listener listener;
  EXPECT_THAT(Try(absl::StrCat("network ", listener.port())),
              Not(HasSubstr("done")));
  if (kFiltered) {
    EXPECT_THAT(Try("socket"), HasSubstr("not permitted"));
  }
}

TEST_F(HostileBuilderTest, HasNoFilesOpenButItsFrames) {
  // Besides the frames: input, output and errors, which are /dev/null.
  EXPECT_EQ(Try("files"), "0 1 2 ");
}

TEST_F(HostileBuilderTest, StartsNothingAndReachesNobody) {
  EXPECT_THAT(Try("run"), Not(HasSubstr("done")));
  if (!kFiltered) GTEST_SKIP() << "no filters beside a sanitizer";
  EXPECT_THAT(Try(absl::StrCat("signal ", getpid())),
              HasSubstr("not permitted"));
  EXPECT_THAT(Try("code"), HasSubstr("not permitted"));
  EXPECT_EQ(Try("thread"), "done");
}

TEST_F(BuilderSandboxTest, TheBuilderConfinesItself) {
  const absl::StatusOr<std::unique_ptr<Process>> process =
      starter_.Start({kBuilder}, std::vector<std::string>());
  ASSERT_TRUE(process.ok()) << process.status();
  const BuilderHelloReply hello = Hello(**process);
  const bool netns = absl::StrContains(hello.confinement, "netns");
  EXPECT_TRUE(netns || absl::StrContains(hello.shortfall, "network"));
  EXPECT_TRUE(absl::StrContains(hello.confinement, "mntns") ||
              absl::StrContains(hello.confinement, "landlock"));
  const std::string proc = absl::StrCat("/proc/", (*process)->pid());
  const std::string status = ReadAll(proc + "/status");
  if (getuid() == 0) {
    EXPECT_THAT(status, HasSubstr("Uid:\t65534\t65534\t65534\t65534"));
    EXPECT_THAT(status, HasSubstr("Gid:\t65534\t65534\t65534\t65534"));
    EXPECT_THAT(ReadAll(proc + "/environ"), IsEmpty());
    EXPECT_EQ(netns, std::filesystem::read_symlink(proc + "/ns/net") !=
                         std::filesystem::read_symlink("/proc/self/ns/net"));
    for (const char* fd : {"/0", "/1", "/2"}) {
      EXPECT_EQ(std::filesystem::read_symlink(proc + "/fd" + fd), "/dev/null");
    }
  }
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
  if (!hello.directory.empty()) std::filesystem::remove_all(hello.directory);
  if (kFiltered) {
    EXPECT_THAT(hello.confinement, StartsWith("seccomp"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  }
}

TEST_F(BuilderSandboxTest, TheConfinedBuilderBuildsForEveryTarget) {
  BuilderClient builder(starter_, {kBuilder});
  for (const char* target :
       {"x86-64:znver4,cores=4", "x86-64:x86-64-v2,cores=1",
        "aarch64:cortex-a72,cores=4", "riscv64,cores=1", "armv7,cores=2"}) {
    for (const bool reference : {true, false}) {
      BuildRequest request;
      request.program = kMatmulRelu;
      request.trace = kMatmulReluTrace;
      request.target = target;
      request.reference = reference;
      const absl::StatusOr<BuildReply> reply =
          builder.Build(request, absl::Seconds(60));
      ASSERT_TRUE(reply.ok()) << target << ": " << reply.status();
      EXPECT_EQ(reply->status, BuildStatus::kOk) << target << reply->error;
      EXPECT_THAT(reply->artifact, StartsWith("\177ELF")) << target;
    }
  }
}

}  // namespace
}  // namespace tilefarm::worker
