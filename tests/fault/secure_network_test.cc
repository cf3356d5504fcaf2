// Sets up a secured farm over a network: server and worker are in network
// namespaces of their own, with a cable (veth) between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/e2e/secure_farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kServerAddress[] = "10.213.7.1";
constexpr char kWorkerAddress[] = "10.213.7.2";

class SecureNetworkTest : public SecureFarmFixture {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "network namespaces take root, which this is not";
    }
    if (access(kIp.c_str(), X_OK) != 0) GTEST_SKIP() << "iproute2 is missing";
    if (Ip({"netns", "add", Server()}).exit_code != 0) {
      GTEST_SKIP() << "this system lets nobody make network namespaces";
    }
    made_ = true;
    const std::string a = "tfa" + std::to_string(getpid());
    const std::string b = "tfb" + std::to_string(getpid());
    for (const Args& args :
         {Args{"netns", "add", WorkerSpace()},
          Args{"link", "add", a, "type", "veth", "peer", "name", b},
          Args{"link", "set", a, "netns", Server()},
          Args{"link", "set", b, "netns", WorkerSpace()},
          Args{"-n", Server(), "addr", "add",
               std::string(kServerAddress) + "/24", "dev", a},
          Args{"-n", WorkerSpace(), "addr", "add",
               std::string(kWorkerAddress) + "/24", "dev", b},
          Args{"-n", Server(), "link", "set", a, "up"},
          Args{"-n", WorkerSpace(), "link", "set", b, "up"},
          Args{"-n", Server(), "link", "set", "lo", "up"},
          Args{"-n", WorkerSpace(), "link", "set", "lo", "up"}}) {
      const auto done = Ip(args);
      ASSERT_EQ(done.exit_code, 0) << done.errors;
    }
  }
  void TearDown() override {
    if (!made_) return;
    Ip({"netns", "del", Server()});
    Ip({"netns", "del", WorkerSpace()});
  }
  static CommandResult Ip(const Args& args) {
    return RunCommand(Join({kIp}, args));
  }
  static std::string Server() {
    return "tf-server-" + std::to_string(getpid());
  }
  static std::string WorkerSpace() {
    return "tf-worker-" + std::to_string(getpid());
  }
  static Args In(const std::string& space, const Args& command) {
    return Join({kIp, "netns", "exec", space}, command);
  }

  static inline const std::string kIp = "/usr/sbin/ip";
  bool made_ = false;
};

TEST_F(SecureNetworkTest, AFarmAcrossMachinesOverMutualTls) {
  const auto made = MakeCerts(
      {"--server", kServerAddress, "--worker", "board", "--user", "alice"});
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const std::string listen = std::string(kServerAddress) + ":0";
  const auto refused = RunCommand(
      In(Server(), {Bin("tune-server"), "--db", db(), "--listen", listen}), {},
      absl::Seconds(10));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--tls-client-ca"));

  const auto server = Process::Spawn(
      In(Server(), Join({Bin("tune-server"), "--db", db(), "--listen", listen},
                        MutualTls())));
  const auto address = server->WaitForOutput("listening on ");
  ASSERT_TRUE(address.has_value()) << server->errors();
  const auto worker = Process::Spawn(
      In(WorkerSpace(), Join({Bin("rpc-worker"), "--server", *address, "--name",
                              "board", "--state-dir", dir_.File("state"),
                              "--lock-dir", dir_.File("locks")},
                             ClientTls("worker-board"))));
  const auto plain =
      RunCommand(In(WorkerSpace(), {Bin("tune"), "jobs", "--server", *address}),
                 {}, absl::Seconds(30));
  EXPECT_EQ(plain.exit_code, 1);
  EXPECT_THAT(plain.errors, HasSubstr("speaks TLS"));
  const auto run = RunCommand(
      In(WorkerSpace(),
         Join({Bin("tune"), "run", program_, "--target", "host,cores=1",
               "--trials", "4", "--server", *address},
              ClientTls("user-alice"))),
      {}, absl::Seconds(90));
  EXPECT_EQ(run.exit_code, 0) << run.errors << worker->errors();
}

}  // namespace
}  // namespace tilefarm::testing
