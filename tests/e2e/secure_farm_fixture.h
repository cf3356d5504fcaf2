// A farm of real processes with authentication: certificates by
// deploy/make-certs, tokens by `tune tokens`.
#ifndef TILEFARM_TESTS_E2E_SECURE_FARM_FIXTURE_H_
#define TILEFARM_TESTS_E2E_SECURE_FARM_FIXTURE_H_

#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {

class SecureFarmFixture : public FarmFixture {
 protected:
  using Args = std::vector<std::string>;

  static Args Join(Args a, const Args& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  // By default in the folder "certs".
  CommandResult MakeCerts(const Args& args,
                          const std::string& folder = "certs") {
    return RunCommand(Join(
        {TILEFARM_SOURCE_DIR "/deploy/make-certs", dir_.File(folder)}, args));
  }
  std::string Cert(const std::string& file) const {
    return dir_.File("certs/" + file);
  }
  // Options of a server and of a client ("user-alice").
  Args ServerTls() const {
    return {"--tls-cert", Cert("server.crt"), "--tls-key", Cert("server.key")};
  }
  Args MutualTls() const {
    return Join(ServerTls(), {"--tls-client-ca", Cert("ca.crt")});
  }
  Args ClientTls(const std::string& stem) const {
    return {"--tls-ca",          Cert("ca.crt"), "--tls-cert",
            Cert(stem + ".crt"), "--tls-key",    Cert(stem + ".key")};
  }
  Args TokenOf(const std::string& file) const {
    return {"--tls-ca", Cert("ca.crt"), "--token-file", file};
  }

  void StartServerWith(const Args& flags,
                       const std::string& listen = "127.0.0.1:0") {
    server_ = Process::Spawn(
        Join({Bin("tune-server"), "--db", db(), "--listen", listen}, flags));
    ASSERT_NE(server_, nullptr);
    const auto address = server_->WaitForOutput("listening on ");
    ASSERT_TRUE(address.has_value()) << server_->errors();
    address_ = *address;
  }
  std::unique_ptr<Process> StartWorkerWith(const std::string& name,
                                           const Args& flags) {
    auto worker = Process::Spawn(Join(
        {Bin("rpc-worker"), "--server", address_, "--name", name, "--state-dir",
         dir_.File("state-" + name), "--lock-dir", dir_.File("locks")},
        flags));
    EXPECT_NE(worker, nullptr);
    return worker;
  }
  CommandResult TuneWith(const Args& credentials, Args args, Args env = {}) {
    env.push_back("TUNE_SERVER=" + address_);
    return RunCommand(Join(Join({Bin("tune")}, std::move(args)), credentials),
                      std::move(env), absl::Seconds(60));
  }
  Json TuneJsonWith(const Args& credentials, Args args) {
    args.push_back("--json");
    const CommandResult result = TuneWith(credentials, std::move(args));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return Json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  }
  std::string SubmitWith(const Args& credentials, int trials) {
    return TuneJsonWith(credentials,
                        {"submit", program_, "--target", "host,cores=1",
                         "--trials", std::to_string(trials)})
        .value("id", "");
  }
  static bool Says(Process& process, const std::string& text,
                   int seconds = 30) {
    return Until(
        [&] { return process.errors().find(text) != std::string::npos; },
        seconds);
  }
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_E2E_SECURE_FARM_FIXTURE_H_
