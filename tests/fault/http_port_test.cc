// A real server's HTTP port: open on loopback, otherwise by certificate or
// token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/e2e/secure_farm_fixture.h"
#include "tests/support/http_client.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kCurl[] = "/usr/bin/curl";

class HttpPortTest : public SecureFarmFixture {
 protected:
  void StartWithPages(const Args& flags, const std::string& http) {
    ASSERT_NO_FATAL_FAILURE(StartServerWith(Join(flags, {"--http", http})));
    const auto pages = server_->WaitForOutput("http on ");
    ASSERT_TRUE(pages.has_value()) << server_->errors();
    pages_ = *pages;
  }
  // The status, such as "200"; "000" if there is no answer.
  std::string Curl(const std::string& path, const Args& args) {
    const std::string port = pages_.substr(pages_.rfind(':'));
    return RunCommand(Join({kCurl, "-s", "-m", "30", "-o", "/dev/null", "-w",
                            "%{http_code}", "--cacert", Cert("ca.crt"),
                            absl::StrCat("https://127.0.0.1", port, path)},
                           args))
        .output;
  }
  Args CertOf(const std::string& stem) const {
    return {"--cert", Cert(stem + ".crt"), "--key", Cert(stem + ".key")};
  }
  // In a header file, since secrets must not be on a command line.
  Args BearerOf(const std::string& token_file) {
    return {"-H", "@" + dir_.Write("header", "Authorization: Bearer " +
                                                 ReadFile(token_file))};
  }

  std::string pages_;
};

TEST_F(HttpPortTest, OnLoopbackPagesNeedNoSetUp) {
  ASSERT_NO_FATAL_FAILURE(StartWithPages({}, "127.0.0.1:0"));
  const auto worker = StartWorkerWith("desk", {});
  const std::string job = SubmitWith({}, 4);
  ASSERT_TRUE(WaitForState(job, "done"));
  const std::string page = HttpGet(pages_, "/metrics");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; "
                               "version=0.0.4; charset=utf-8\r\n"));
  for (const char* line :
       {"\ntilefarm_jobs{state=\"done\"} 1\n",
        "\ntilefarm_device_canary_seconds{device=\"desk\"} ",
        "\ntilefarm_devices{state=\"quarantined\"} 0\n",
        "\ntilefarm_streams{kind=\"stream\"} 1\n",
        "\ntilefarm_results_total{status=\"device_lost\"} 0\n",
        "\ntilefarm_commit_failures_total 0\n",
        "\nprocess_resident_memory_bytes "}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  // Trials and other measurements.
  const std::string count = "\ntilefarm_results_total{status=\"ok\"} ";
  const size_t at = page.find(count);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stoi(page.substr(at + count.size())), 4);
  EXPECT_THAT(HttpGet(pages_, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(Until([&] {
    return HttpGet(pages_, "/readyz").rfind("HTTP/1.1 200 ", 0) == 0;
  }));
  EXPECT_THAT(HttpGet(pages_, "/nothing"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(HttpGet(pages_, "/"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(HttpGet(pages_, "/api/v1/jobs"), StartsWith("HTTP/1.1 200 "));
  // A request that a page in a browser could send.
  EXPECT_THAT(HttpGet(pages_, "/metrics", "rebound.example.org"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(HttpGet(pages_, "/metrics", "localhost",
                      "Origin: http://example.org\r\n"),
              StartsWith("HTTP/1.1 403 "));
}

// Other accounts of the machine learn counts and names, and no programs.
TEST_F(HttpPortTest, OnLoopbackTheApiAsksForWhatTheOtherPortAsksFor) {
  ASSERT_EQ(MakeCerts({"--user", "alice"}).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(StartWithPages(MutualTls(), "127.0.0.1:0"));
  EXPECT_THAT(HttpGet(pages_, "/metrics"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(HttpGet(pages_, "/"), StartsWith("HTTP/1.1 200 "));
  for (const char* path : {"/api/v1", "/api/v1/jobs", "/api/v1/events",
                           "/api/v1/nothing", "/api/v1/records/1"}) {
    EXPECT_THAT(HttpGet(pages_, path), StartsWith("HTTP/1.1 401 ")) << path;
  }
}

TEST_F(HttpPortTest, BeyondLoopbackItTakesWhatTheOtherPortTakes) {
  const auto refused = RunCommand({Bin("tune-server"), "--db", db(), "--listen",
                                   "127.0.0.1:0", "--http", "0.0.0.0:0"},
                                  {}, absl::Seconds(30));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--http: '0.0.0.0'"));
  EXPECT_THAT(refused.errors, HasSubstr("--tls-client-ca are missing"));
}

TEST_F(HttpPortTest, WithMutualTlsUsersReadMetricsAndStrangersNothing) {
  if (access(kCurl, X_OK) != 0) GTEST_SKIP() << "curl is missing";
  ASSERT_EQ(
      MakeCerts({"--worker", "board", "--user", "alice", "--admin", "root"})
          .exit_code,
      0);
  ASSERT_NO_FATAL_FAILURE(StartWithPages(MutualTls(), "0.0.0.0:0"));
  EXPECT_EQ(Curl("/healthz", {}), "000");  // no handshake without
  EXPECT_EQ(Curl("/metrics", CertOf("user-alice")), "200");
  EXPECT_EQ(Curl("/metrics", CertOf("worker-board")), "403");
  EXPECT_TRUE(
      Until([&] { return Curl("/readyz", CertOf("worker-board")) == "200"; }));
  EXPECT_EQ(Curl("/api/v1/jobs", CertOf("user-alice")), "200");
  EXPECT_EQ(Curl("/api/v1/jobs", CertOf("worker-board")), "403");
  EXPECT_EQ(Curl("/", CertOf("worker-board")), "200");
  // A browser would send the certificate for any page that asks.
  EXPECT_EQ(Curl("/api/v1/jobs",
                 Join(CertOf("user-alice"),
                      {"-H", "Content-Type: application/json", "-d", "{}"})),
            "401");
  // Plain text at a TLS port.
  EXPECT_EQ(HttpGet(pages_, "/healthz").find("HTTP/"), std::string::npos);
  EXPECT_EQ(Curl("/metrics", Join(CertOf("user-alice"),
                                  {"-H", "Host: rebound.example.org"})),
            "403");

  EXPECT_EQ(TuneWith(ClientTls("admin-root"), {"tokens", "revoke", "alice"})
                .exit_code,
            0);
  EXPECT_EQ(Curl("/metrics", CertOf("user-alice")), "401");

  // A renewed certificate, of a CA that is unknown to clients of the old one.
  ASSERT_EQ(MakeCerts({"--user", "alice"}, "fresh").exit_code, 0);
  namespace fs = std::filesystem;
  for (const char* file : {"server.key", "server.crt"}) {
    fs::rename(dir_.File(absl::StrCat("fresh/", file)), Cert(file));
  }
  EXPECT_EQ(Curl("/readyz", CertOf("worker-board")), "000");
}

TEST_F(HttpPortTest, WithTokensProbesNeedNoneAndMetricsDo) {
  if (access(kCurl, X_OK) != 0) GTEST_SKIP() << "curl is missing";
  ASSERT_EQ(MakeCerts({}).exit_code, 0);
  const std::string file = dir_.File("user.token");
  ASSERT_EQ(RunCommand({Bin("tune"), "tokens", "create", "--db", db(), "--role",
                        "user", "--name", "ann", "-o", file})
                .exit_code,
            0);
  ASSERT_NO_FATAL_FAILURE(
      StartWithPages(Join(ServerTls(), {"--tokens-only"}), "0.0.0.0:0"));
  EXPECT_EQ(Curl("/healthz", {}), "200");
  EXPECT_TRUE(Until([&] { return Curl("/readyz", {}) == "200"; }));
  EXPECT_EQ(Curl("/metrics", {}), "401");
  EXPECT_EQ(Curl("/metrics", BearerOf(file)), "200");
  EXPECT_EQ(Curl("/", {}), "200");
  EXPECT_EQ(Curl("/assets/app.js", {}), "200");
  EXPECT_EQ(Curl("/api/v1/jobs", {}), "401");
  EXPECT_EQ(Curl("/api/v1/jobs", BearerOf(file)), "200");
  EXPECT_EQ(Curl("/api/v1/events", {}), "401");
  EXPECT_EQ(Curl("/nothing", {}), "401");
  EXPECT_EQ(Curl("/nothing", BearerOf(file)), "403");
}

TEST_F(HttpPortTest, AStreamEndsWithItsToken) {
  if (access(kCurl, X_OK) != 0) GTEST_SKIP() << "curl is missing";
  ASSERT_EQ(MakeCerts({"--admin", "root"}).exit_code, 0);
  const std::string file = dir_.File("user.token");
  ASSERT_EQ(RunCommand({Bin("tune"), "tokens", "create", "--db", db(), "--role",
                        "user", "--name", "ann", "-o", file})
                .exit_code,
            0);
  ASSERT_NO_FATAL_FAILURE(StartWithPages(MutualTls(), "127.0.0.1:0"));
  const std::string body = dir_.File("events");
  BearerOf(file);
  std::string status;
  std::thread watcher([&] {
    status = RunCommand({kCurl, "-s", "-N", "-m", "60", "-o", body, "-w",
                         "%{http_code}", "-H", "@" + dir_.File("header"),
                         "http://" + pages_ + "/api/v1/events"})
                 .output;
  });
  EXPECT_TRUE(Until([&] {
    return std::filesystem::exists(body) &&
           ReadFile(body).find("event: ") != std::string::npos;
  }));
  EXPECT_EQ(
      TuneWith(ClientTls("admin-root"), {"tokens", "revoke", "ann"}).exit_code,
      0);
  watcher.join();  // before curl gives up
  EXPECT_EQ(status, "200");
}

}  // namespace
}  // namespace tilefarm::testing
