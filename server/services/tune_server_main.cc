// tune-server: jobs, farm and database behind one gRPC port.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/allocator.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "server/farm/farm.h"
#include "server/jobs/canary.h"
#include "server/services/server.h"
#include "server/services/version.h"
#include "transport/grpc_log.h"

namespace tilefarm {
namespace {

// Well within the 10 s that a service manager waits.
constexpr absl::Duration kShutdownLimit = absl::Seconds(7);

absl::Status SetTimeouts(const std::vector<std::string>& pairs,
                         farm::Timeouts& timeouts) {
  Settings settings = farm::TimeoutSettings(timeouts);
  for (const std::string& pair : pairs) {
    TF_RETURN_IF_ERROR(settings.SetPair(pair));
  }
  return farm::CheckTimeouts(timeouts);
}

absl::Status SetHealth(const std::vector<std::string>& pairs,
                       farm::HealthRules& rules) {
  Settings settings = farm::HealthSettings(rules);
  for (const std::string& pair : pairs) {
    TF_RETURN_IF_ERROR(settings.SetPair(pair));
  }
  return farm::CheckHealth(rules);
}

int Main(int argc, char** argv) {
  services::ServerOptions options;
  std::vector<std::string> timeouts, health;
  CLI::App app("Tunes programs on the devices that connect to it.");
  app.name("tune-server");
  app.set_version_flag("--version",
                       [] { return services::VersionText("tune-server"); });
  app.add_option("--db", options.database_path,
                 "The database; made where it does not exist")
      ->envname("TUNE_SERVER_DB")
      ->required();
  app.add_option("--listen", options.listen,
                 "HOST:PORT; beyond loopback with TLS, or --insecure; port 0 "
                 "takes a free one")
      ->envname("TUNE_SERVER_LISTEN")
      ->capture_default_str();
  app.add_option("--timeout", timeouts,
                 "KEY=DURATION, any number of times; an unknown key lists "
                 "those there are");
  app.add_option("--health", health,
                 "KEY=VALUE of the rules of device health, any number of "
                 "times; an unknown key lists those there are");
  std::string canary_period =
      absl::FormatDuration(options.health.canary_period);
  app.add_option("--canary-period", canary_period,
                 "How often a kernel of known time runs on each device, such "
                 "as 60s")
      ->check([](const std::string& text) {
        absl::Duration period;
        return absl::ParseDuration(text, &period) &&
                       period > absl::ZeroDuration()
                   ? ""
                   : "not a positive duration, such as 60s";
      })
      ->capture_default_str();
  bool no_canary = false;
  app.add_flag("--no-canary", no_canary,
               "Trust devices without trying a kernel of known time on them");
  services::ListenSecurity& security = options.security;
  app.add_option("--tls-cert", security.tls_cert,
                 "PEM file of the server's certificate: speak TLS")
      ->envname("TUNE_SERVER_TLS_CERT");
  app.add_option("--tls-key", security.tls_key,
                 "PEM file of its private key, mode 0600")
      ->envname("TUNE_SERVER_TLS_KEY");
  app.add_option("--tls-client-ca", security.tls_client_ca,
                 "PEM file of the CA whose certificates clients must show")
      ->envname("TUNE_SERVER_TLS_CLIENT_CA");
  app.add_flag("--tokens-only", security.tokens_only,
               "Beyond loopback, ask for a token instead of a certificate");
  app.add_flag("--insecure", security.insecure,
               "Listen beyond loopback without TLS and let anybody in");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status set = SetTimeouts(timeouts, options.timeouts);
  if (!set.ok()) {
    std::fprintf(stderr, "tune-server: --timeout: %s\n",
                 std::string(set.message()).c_str());
    return 2;
  }
  absl::ParseDuration(canary_period, &options.health.canary_period);
  const absl::Status rules = SetHealth(health, options.health);
  if (!rules.ok()) {
    std::fprintf(stderr, "tune-server: --health: %s\n",
                 std::string(rules.message()).c_str());
    return 2;
  }
  const absl::Status address =
      services::CheckListenAddress(options.listen, security);
  if (!address.ok()) {
    std::fprintf(stderr, "tune-server: --listen: %s\n",
                 std::string(address.message()).c_str());
    return 2;
  }
  const std::string warning =
      services::InsecureWarning(options.listen, security);
  if (!warning.empty()) {
    std::fprintf(stderr, "tune-server: warning: %s\n", warning.c_str());
  }

  // Taken by sigwait below; every thread inherits the mask.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);

  RaiseFileLimit();  // one a worker
  // Debian's Abseil looks for deadlocks at every lock of gRPC's: some 5 % of
  // what a result costs.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  transport::RouteGrpcLog(LogLevel::kWarning);
  options.fingerprint = driver::Fingerprint();
  options.release = services::kRelease;
  options.search_factory = jobs::RealSearchFactory();
  if (!no_canary) options.canary = jobs::CanaryMaker();
  auto server = services::Server::Start(std::move(options));
  if (!server.ok()) {
    std::fprintf(stderr, "tune-server: %s\n",
                 std::string(server.status().message()).c_str());
    return 1;
  }
  std::printf("listening on %s\n", (*server)->address().c_str());
  std::fflush(stdout);
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  Log(LogLevel::kInfo, "server", "shutting down");
  // Search threads have the idle scheduling class; on a busy machine they may
  // take for ever to notice. Everything acknowledged is durable by now.
  std::thread([] {
    absl::SleepFor(kShutdownLimit);
    Log(LogLevel::kWarning, "server", "a search does not end; leaving it");
    _exit(0);
  }).detach();
  server->reset();
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) {
  tilefarm::TuneAllocatorForMessages();
  return tilefarm::Main(argc, argv);
}
