// Wrong, expired, revoked and rotated credentials, and unknown clients at the
// port: real processes over real TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/e2e/secure_farm_fixture.h"

namespace tilefarm::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CredentialsTest : public SecureFarmFixture {
 protected:
  void SetUp() override {
    const auto made = MakeCerts({"--worker", "w0", "--user", "alice", "--user",
                                 "bob", "--admin", "root"});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }
  // Certificates of another farm: same names, another CA.
  void MakeForeignCerts() {
    const auto made = MakeCerts({"--user", "alice", "--worker", "w0"}, "other");
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }
  int Port() const {
    return std::stoi(address_.substr(address_.rfind(':') + 1));
  }
  // A connection to the server; -1 if it fails.
  int Dial() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(Port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0)
      return fd;
    close(fd);
    return -1;
  }
  // The output of openssl's client for a handshake with this client
  // certificate.
  CommandResult Handshake(const std::string& stem, const Args& options) {
    return RunCommand(
        Join({"/usr/bin/openssl", "s_client", "-connect", address_, "-alpn",
              "h2", "-CAfile", Cert("ca.crt"), "-cert", Cert(stem + ".crt"),
              "-key", Cert(stem + ".key"), "-showcerts"},
             options));
  }
  std::string DeviceState(const Args& credentials) {
    const Json devices = TuneJsonWith(credentials, {"devices"});
    return devices.empty() ? "" : devices[0].value("state", "");
  }
};

// --- Certificates
// -------------------------------------------------------------

TEST_F(CredentialsTest, AFarmOverMutualTlsTunesUnderProvedNames) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  const auto worker = StartWorkerWith("w0", ClientTls("worker-w0"));
  const Args alice = ClientTls("user-alice");
  const auto run = TuneWith(
      alice, {"run", program_, "--target", "host,cores=1", "--trials", "4"});
  EXPECT_EQ(run.exit_code, 0) << run.errors << worker->errors();
  const Json jobs = TuneJsonWith(alice, {"jobs"});
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["user"], "alice");  // not the user of this process
  EXPECT_EQ(jobs[0]["trials_done"], 4);
  const std::string out = dir_.File("mm.so");
  const auto built =
      RunCommand(Join({Bin("tunec"), program_, "--target", "host,cores=1",
                       "--server", address_, "--require-tuned", "-o", out},
                      alice));
  EXPECT_EQ(built.exit_code, 0) << built.errors;
  EXPECT_TRUE(fs::exists(out));
}

TEST_F(CredentialsTest, ClientsThatDoNotFitTheServerAreToldWhatToChange) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  ASSERT_NO_FATAL_FAILURE(MakeForeignCerts());
  const auto problem = [&](const Args& credentials) {
    const auto result = TuneWith(credentials, {"jobs"});
    EXPECT_EQ(result.exit_code, 1);
    return result.errors;
  };
  EXPECT_THAT(problem({}),
              AllOf(HasSubstr("speaks TLS"), HasSubstr("--tls-ca")));
  EXPECT_THAT(problem({"--tls-ca", Cert("ca.crt")}),
              AllOf(HasSubstr("demands a client certificate"),
                    HasSubstr("--tls-cert")));
  EXPECT_THAT(problem({"--tls-ca", dir_.File("other/ca.crt")}),
              HasSubstr("is not signed by the CA in"));
  EXPECT_THAT(problem({"--tls-ca", Cert("ca.crt"), "--tls-cert",
                       dir_.File("other/user-alice.crt"), "--tls-key",
                       dir_.File("other/user-alice.key")}),
              HasSubstr("does not take this client's certificate"));
  // `tune watch` waits for a server that is down, but not in this case.
  const auto watch = TuneWith({}, {"watch", "job-1"});
  EXPECT_EQ(watch.exit_code, 1);
  EXPECT_THAT(watch.errors, HasSubstr("speaks TLS"));
  const auto tunec =
      RunCommand({Bin("tunec"), program_, "--target", "host", "--server",
                  address_, "-o", dir_.File("x.so")});
  EXPECT_EQ(tunec.exit_code, 1);
  EXPECT_THAT(tunec.errors, HasSubstr("speaks TLS"));
  // A worker keeps trying, since the server may change.
  const auto worker = StartWorkerWith("w0", {});
  EXPECT_TRUE(Says(*worker, "speaks TLS")) << worker->errors();
  EXPECT_FALSE(worker->Wait(absl::Milliseconds(200)).has_value());
}

TEST_F(CredentialsTest, TlsClientOfAPlainServerIsToldSo) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto result = TuneWith(ClientTls("user-alice"), {"jobs"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("speaks no TLS"));
}

TEST_F(CredentialsTest, CertificateForAnotherAddressIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls(), "127.0.0.2:0"));
  const auto result = TuneWith(ClientTls("user-alice"), {"jobs"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("is not for 127.0.0.2"),
                                   HasSubstr("--server 127.0.0.2")));
}

TEST_F(CredentialsTest, RolesAreHeldAndNamesCannotBeBorrowed) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  const auto as_worker = TuneWith(ClientTls("worker-w0"), {"jobs"});
  EXPECT_EQ(as_worker.exit_code, 1);
  EXPECT_THAT(as_worker.errors, HasSubstr("w0 is a worker"));
  const Args alice = ClientTls("user-alice");
  const auto create = TuneWith(
      alice, {"tokens", "create", "--role", "admin", "--name", "mallory"});
  EXPECT_EQ(create.exit_code, 1);
  EXPECT_EQ(create.output, "");
  EXPECT_THAT(create.errors, HasSubstr("that takes an admin"));
  const auto import =
      TuneWith(alice, {"db", "import", dir_.Write("none.jsonl", "")});
  EXPECT_EQ(import.exit_code, 1);
  EXPECT_THAT(import.errors, HasSubstr("that takes an admin"));
  // The server's certificate is not a client's, not even for the owner of its
  // key.
  EXPECT_EQ(TuneWith(ClientTls("server"), {"jobs"}).exit_code, 1);

  const auto user = StartWorkerWith("alice", alice);
  EXPECT_TRUE(Says(*user, "that takes a worker")) << user->errors();
  const auto other = StartWorkerWith("w1", ClientTls("worker-w0"));
  EXPECT_TRUE(Says(*other, "lets no worker connect as w1")) << other->errors();
  EXPECT_EQ(TuneJsonWith(alice, {"devices"}), Json::array());
  const auto good = StartWorkerWith("w0.left", ClientTls("worker-w0"));
  EXPECT_TRUE(Says(*good, "connected to")) << good->errors();
}

TEST_F(CredentialsTest, AnotherUsersJobIsNotCancelled) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  const Args alice = ClientTls("user-alice"), bob = ClientTls("user-bob"),
             root = ClientTls("admin-root");
  const std::string first = SubmitWith(alice, 4);
  const std::string second = SubmitWith(alice, 4);
  const auto refused = TuneWith(bob, {"cancel", first});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("a job of alice"),
                                    HasSubstr("its owner or an admin")));
  EXPECT_EQ(TuneWith(alice, {"cancel", first}).exit_code, 0);
  EXPECT_EQ(TuneWith(root, {"cancel", second}).exit_code, 0);
  // A cancelled job ends in the conductor's next round.
  const auto cancelled = [&] {
    const Json jobs = TuneJsonWith(bob, {"jobs"});
    return std::all_of(jobs.begin(), jobs.end(), [](const Json& job) {
      return job["state"] == "cancelled";
    });
  };
  EXPECT_TRUE(Until(cancelled)) << TuneJsonWith(bob, {"jobs"});
}

TEST_F(CredentialsTest, RevokedCertificateLosesItsLiveStream) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  const Args root = ClientTls("admin-root");
  const auto worker = StartWorkerWith("w0", ClientTls("worker-w0"));
  ASSERT_TRUE(Says(*worker, "connected to")) << worker->errors();
  EXPECT_EQ(TuneWith(root, {"tokens", "revoke", "w0"}).exit_code, 0);
  const time_t revoked = time(nullptr);
  EXPECT_TRUE(Says(*worker, "were revoked")) << worker->errors();
  EXPECT_TRUE(Until([&] { return DeviceState(root) == "offline"; }, 30));
  // A new certificate for the same name is accepted again; the worker reads it
  // by itself. Certificates have a resolution of whole seconds.
  ASSERT_TRUE(Until([&] { return time(nullptr) > revoked; }));
  for (const char* file : {"worker-w0.crt", "worker-w0.key"}) {
    fs::remove(Cert(file));
  }
  ASSERT_EQ(MakeCerts({"--worker", "w0"}).exit_code, 0);
  EXPECT_TRUE(Until([&] { return DeviceState(root) == "idle"; }, 60))
      << worker->errors();
}

TEST_F(CredentialsTest, RotatedServerCertificateAndCaNeedNoRestart) {
  ASSERT_NO_FATAL_FAILURE(MakeForeignCerts());
  fs::copy(Cert("ca.crt"), dir_.File("clients.crt"));
  ASSERT_NO_FATAL_FAILURE(StartServerWith(
      Join(ServerTls(), {"--tls-client-ca", dir_.File("clients.crt")})));
  const auto worker = StartWorkerWith("w0", ClientTls("worker-w0"));
  ASSERT_TRUE(Says(*worker, "connected to")) << worker->errors();
  const std::string before = Handshake("user-alice", {}).output;
  ASSERT_THAT(before, HasSubstr("BEGIN CERTIFICATE"));

  for (const char* file : {"server.crt", "server.key"}) fs::remove(Cert(file));
  ASSERT_EQ(MakeCerts({}).exit_code, 0);
  const auto certificate = [](const std::string& text) {
    const size_t begin = text.find("-----BEGIN"), end = text.find("-----END");
    return begin == std::string::npos ? "" : text.substr(begin, end - begin);
  };
  EXPECT_TRUE(Until(
      [&] {
        const std::string now = certificate(Handshake("user-alice", {}).output);
        return !now.empty() && now != certificate(before);
      },
      30));
  // A second CA in addition to the first: its clients are accepted.
  const Args foreign = {"--tls-ca",   Cert("ca.crt"),
                        "--tls-cert", dir_.File("other/user-alice.crt"),
                        "--tls-key",  dir_.File("other/user-alice.key")};
  EXPECT_EQ(TuneWith(foreign, {"jobs"}).exit_code, 1);
  {
    std::ofstream bundle(dir_.File("clients.crt"), std::ios::app);
    bundle << std::ifstream(dir_.File("other/ca.crt")).rdbuf();
  }
  EXPECT_TRUE(
      Until([&] { return TuneWith(foreign, {"jobs"}).exit_code == 0; }, 30));
  // Connected clients were not affected.
  EXPECT_EQ(DeviceState(ClientTls("user-alice")), "idle");
  EXPECT_THAT(worker->errors(), Not(HasSubstr("no stream")));
}

// --- Tokens
// ---------------------------------------------------------------------

class TokensTest : public CredentialsTest {
 protected:
  // The first token is made while no server runs.
  void SetUp() override {
    CredentialsTest::SetUp();
    const auto made =
        TuneWith({}, {"tokens", "create", "--db", db(), "--role", "admin",
                      "--name", "root", "-o", dir_.File("root.token")});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    ASSERT_NO_FATAL_FAILURE(
        StartServerWith(Join(ServerTls(), {"--tokens-only"})));
  }
  Args Root() { return TokenOf(dir_.File("root.token")); }
  // Returns the path of its file.
  std::string Create(const std::string& role, const std::string& name,
                     const std::string& file, const Args& more = {}) {
    const auto made =
        TuneWith(Root(), Join({"tokens", "create", "--role", role, "--name",
                               name, "-o", dir_.File(file)},
                              more));
    EXPECT_EQ(made.exit_code, 0) << made.errors;
    return dir_.File(file);
  }
};

TEST_F(TokensTest, TokensAreShownOnceAndOpenWhatTheirRoleMay) {
  const auto shown = TuneWith(
      Root(), {"tokens", "create", "--role", "user", "--name", "carol"});
  ASSERT_EQ(shown.exit_code, 0) << shown.errors;
  const std::string token = shown.output.substr(0, shown.output.find('\n'));
  EXPECT_EQ(token.size(), 9u + 64u);
  const Args tls = {"--tls-ca", Cert("ca.crt")};
  const auto jobs = TuneWith(tls, {"jobs"}, {"TUNE_TOKEN=" + token});
  EXPECT_EQ(jobs.exit_code, 0) << jobs.errors;
  const auto list = TuneWith(Root(), {"tokens", "list", "--json"});
  EXPECT_THAT(list.output, AllOf(HasSubstr("\"carol\""), Not(HasSubstr(token)),
                                 Not(HasSubstr("sha256"))));
  // The database file does not contain a token, either.
  std::string stored;
  for (const auto& entry : fs::directory_iterator(dir_.path())) {
    if (entry.path().string().find("tune.db") == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    stored.append(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_THAT(stored, AllOf(HasSubstr("carol"), Not(HasSubstr(token))));
  EXPECT_THAT(server_->errors(), Not(HasSubstr(token)));

  std::string wrong = token;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const auto refused = TuneWith(tls, {"jobs"}, {"TUNE_TOKEN=" + wrong});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("does not know this token"));
  const auto none = TuneWith(tls, {"jobs"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.errors, HasSubstr("asks for a token"));
  const auto admin = TuneWith(tls, {"tokens", "list"}, {"TUNE_TOKEN=" + token});
  EXPECT_THAT(admin.errors, HasSubstr("that takes an admin"));
}

TEST_F(TokensTest, TokenFileThatOthersMayReadIsRefusedBeforeAnythingIsSent) {
  const std::string file = Create("user", "carol", "carol.token");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  const auto refused = TuneWith(TokenOf(file), {"jobs"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("chmod 600"));
  const auto worker = StartWorkerWith("carol", TokenOf(file));
  EXPECT_EQ(worker->Wait(absl::Seconds(10)), 1) << worker->errors();
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_EQ(TuneWith(TokenOf(file), {"jobs"}).exit_code, 0);
}

TEST_F(TokensTest, TokenOverPlainTextIsRefused) {
  address_ = "192.0.2.1:7070";  // unused address; it is never dialled
  const auto refused =
      TuneWith({"--token-file", dir_.File("root.token")}, {"jobs"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("never sent without TLS"));
  const auto worker =
      StartWorkerWith("w0", {"--token-file", dir_.File("root.token")});
  EXPECT_EQ(worker->Wait(absl::Seconds(10)), 2) << worker->errors();
}

TEST_F(TokensTest, RevocationEndsLiveStreamsAndARotatedTokenBringsThemBack) {
  const std::string file = Create("worker", "w0", "w0.token");
  const std::string user = Create("user", "carol", "carol.token");
  const auto worker = StartWorkerWith("w0", TokenOf(file));
  ASSERT_TRUE(Says(*worker, "connected to")) << worker->errors();
  // Watches a job that no device here can do.
  const Json job = TuneJsonWith(
      TokenOf(user),
      {"submit", program_, "--target", "aarch64:cortex-a72", "--trials", "4"});
  auto watch = Process::Spawn(Join({Bin("tune"), "watch", job.value("id", ""),
                                    "--json", "--server", address_},
                                   TokenOf(user)));
  ASSERT_TRUE(watch->WaitForOutput("{").has_value());

  EXPECT_EQ(TuneWith(Root(), {"tokens", "revoke", "w0"}).exit_code, 0);
  EXPECT_EQ(TuneWith(Root(), {"tokens", "revoke", "carol"}).exit_code, 0);
  EXPECT_TRUE(Says(*worker, "the token of w0 was revoked")) << worker->errors();
  EXPECT_EQ(watch->Wait(absl::Seconds(30)), 1);
  EXPECT_THAT(watch->errors(), HasSubstr("the token of carol was revoked"));
  EXPECT_TRUE(Until([&] { return DeviceState(Root()) == "offline"; }, 30));

  Create("worker", "w0", "new.token");
  fs::rename(dir_.File("new.token"), file);
  EXPECT_TRUE(Until([&] { return DeviceState(Root()) == "idle"; }, 60))
      << worker->errors();
}

TEST_F(TokensTest, ExpiredTokenLosesItsLiveStream) {
  const std::string file =
      Create("worker", "w0", "w0.token", {"--expires", "4s"});
  const auto worker = StartWorkerWith("w0", TokenOf(file));
  ASSERT_TRUE(Says(*worker, "connected to")) << worker->errors();
  EXPECT_TRUE(Says(*worker, "the token of w0 has expired")) << worker->errors();
  EXPECT_TRUE(Until([&] { return DeviceState(Root()) == "offline"; }, 30));
}

// --- Strangers at the port
// --------------------------------------------------------

TEST_F(CredentialsTest, ServerDoesNotListenBeyondLoopbackWithoutTls) {
  const auto start = [&](const Args& flags) {
    return RunCommand(
        Join({Bin("tune-server"), "--db", db(), "--listen", "0.0.0.0:0"},
             flags),
        {}, absl::Seconds(10));
  };
  const auto bare = start({});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.errors,
              AllOf(HasSubstr("--tls-cert"), HasSubstr("--tls-client-ca"),
                    HasSubstr("--insecure")));
  const auto half = start(ServerTls());
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.errors, HasSubstr("--tls-client-ca is missing"));
  EXPECT_FALSE(fs::exists(db()));
  const auto open_key = [&] {
    chmod(Cert("server.key").c_str(), 0644);
    return start(MutualTls());
  }();
  EXPECT_EQ(open_key.exit_code, 1);
  EXPECT_THAT(open_key.errors, HasSubstr("chmod 600"));
}

TEST_F(CredentialsTest, InsecureListensEverywhereAndSaysWhatThatMeans) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith({"--insecure"}, "0.0.0.0:0"));
  EXPECT_THAT(server_->errors(), AllOf(HasSubstr("warning: --insecure"),
                                       HasSubstr("in plain text")));
  address_ = "127.0.0.1:" + std::to_string(Port());
  EXPECT_EQ(TuneWith({}, {"jobs"}).exit_code, 0);
}

TEST_F(CredentialsTest, OldTlsIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  // A client that would use it.
  const Args weak = {"-cipher", "ALL:@SECLEVEL=0"};
  const auto old = Handshake("user-alice", Join({"-tls1_1"}, weak));
  EXPECT_NE(old.exit_code, 0);
  EXPECT_THAT(old.output, Not(HasSubstr("BEGIN CERTIFICATE")));
  // gRPC closes the connection without an alert; the server logs the reason.
  EXPECT_TRUE(Says(*server_, "unsupported protocol")) << server_->errors();
  const auto good = Handshake("user-alice", Join({"-tls1_2"}, weak));
  EXPECT_THAT(good.output, HasSubstr("BEGIN CERTIFICATE")) << good.errors;
}

TEST_F(CredentialsTest, GarbageAndSilenceAtThePortHarmNobody) {
  ASSERT_NO_FATAL_FAILURE(StartServerWith(MutualTls()));
  std::vector<int> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(Dial());
  unsigned state = 12345;  // a fixed sequence
  for (int i = 0; i < 100; ++i) {
    const int fd = Dial();
    ASSERT_GE(fd, 0);
    // Half of them start like TLS or HTTP/2.
    std::string bytes = i % 4 == 0 ? std::string("\x16\x03\x01\x02\x00\x01", 6)
                        : i % 4 == 1 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                     : "";
    for (int b = 0; b < 3000; ++b) {
      state = state * 1664525 + 1013904223;
      bytes += static_cast<char>(state >> 24);
    }
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(fd);
  }
  EXPECT_EQ(TuneWith(ClientTls("user-alice"), {"jobs"}).exit_code, 0);
  // The handshake timeout closes silent connections.
  for (const int fd : silent) {
    ASSERT_GE(fd, 0);
    timeval limit = {60, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte;
    EXPECT_LE(recv(fd, &byte, 1, 0), 0);
    EXPECT_NE(errno, EAGAIN) << "still open after a minute";
    close(fd);
    errno = 0;
  }
  EXPECT_EQ(TuneWith(ClientTls("user-alice"), {"jobs"}).exit_code, 0);
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(absl::Seconds(20)), 0);
}

}  // namespace
}  // namespace tilefarm::testing
