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
#include "base/daemon/daemon_flags.h"
#include "base/daemon/service_manager.h"
#include "base/file_limit.h"
#include "base/isolation.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "server/demo/demo.h"
#include "server/farm/farm.h"
#include "server/jobs/canary.h"
#include "server/services/check_config.h"
#include "server/services/server.h"
#include "server/services/version.h"
#include "transport/grpc_log.h"

namespace tilefarm {
namespace {

// Less than the 10 s that a service manager waits.
constexpr absl::Duration kShutdownLimit = absl::Seconds(7);

constexpr char kProgram[] = "tune-server";
// Where a demo is seen, unless --http says otherwise.
constexpr char kDemoPages[] = "127.0.0.1:7071";

absl::Status SetAll(Settings settings, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    TF_RETURN_IF_ERROR(settings.SetPair(pair));
  }
  return absl::OkStatus();
}

int Fail(const std::string& what, int code = 2) {
  daemon::Complain(kProgram, what);
  return code;
}

int Main(int argc, char** argv) {
  services::ServerOptions options;
  daemon::DaemonFlags daemon_flags;
  std::vector<std::string> timeouts, health;
  CLI::App app("Tunes programs on the devices that connect to it.",
               "tune-server");
  app.name(kProgram);
  app.set_version_flag("--version",
                       [] { return services::VersionText(kProgram); });
  daemon::AddDaemonFlags(app, "TUNE_SERVER_CONFIG", daemon_flags);
  app.add_option("--db", options.database_path,
                 "The database, required; made where it does not exist")
      ->envname("TUNE_SERVER_DB");
  app.add_option("--listen", options.listen,
                 "HOST:PORT; beyond loopback with TLS, or --insecure; port 0 "
                 "takes a free one")
      ->envname("TUNE_SERVER_LISTEN")
      ->capture_default_str();
  app.add_option("--http", options.http,
                 "HOST:PORT of the dashboard, its API, /metrics, /healthz and "
                 "/readyz, by the same rules (default: none)")
      ->envname("TUNE_SERVER_HTTP");
  CLI::Option* const otlp =
      app.add_option("--otlp", options.spans.url,
                     "URL of a collector of OpenTelemetry, such as "
                     "http://127.0.0.1:4318: send the life of each candidate "
                     "there as spans (default: none)")
          ->envname("TUNE_SERVER_OTLP");
  app.add_option("--otlp-headers", options.spans.headers_file,
                 "File, mode 0600, with lines 'Name: value' that the collector "
                 "wants, such as a token")
      ->envname("TUNE_SERVER_OTLP_HEADERS")
      ->needs(otlp);
  app.add_option("--timeout", timeouts,
                 "KEY=DURATION, any number of times; an unknown key lists "
                 "those there are")
      ->check([](const std::string& pair) {
        farm::Timeouts scratch;
        return std::string(
            SetAll(farm::TimeoutSettings(scratch), {pair}).message());
      });
  app.add_option("--health", health,
                 "KEY=VALUE of the rules of device health, any number of "
                 "times; an unknown key lists those there are")
      ->check([](const std::string& pair) {
        farm::HealthRules scratch;
        return std::string(
            SetAll(farm::HealthSettings(scratch), {pair}).message());
      });
  std::vector<std::string> quotas, retention;
  app.add_option(
         "--quota", quotas,
         "KEY=VALUE of every user, or USER:KEY=VALUE of one, any number "
         "of times: jobs (that have not ended), device_hours (of the "
         "past days), storage (such as 2GiB); days=30")
      ->check([](const std::string& text) {
        jobs::Quotas scratch;
        return std::string(scratch.Set(text).message());
      });
  app.add_option("--retention", retention,
                 "KEY=VALUE, any number of times: what the server drops when "
                 "it starts; keep=20: good records beyond the 20 best of a "
                 "group; failed_days=90: failed ones that are older")
      ->check([](const std::string& text) {
        services::Retention scratch;
        return std::string(scratch.Set(text).message());
      });
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
  demo::DemoOptions demo_options;
  CLI::Option* const demo =
      app.add_option("--demo", demo_options.recording,
                     "Replay a recorded run without a farm: this database, or "
                     "without one the run that comes with the program")
          ->expected(0, 1);
  app.add_option("--demo-speed", demo_options.speed,
                 "How many times as fast as it was recorded")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  bool no_canary = false;
  app.add_flag("--no-canary", no_canary,
               "Trust devices without trying a kernel of known time on them");
  app.add_flag("--allow-artifacts", options.artifacts.allowed,
               "Take machine code from CI jobs (role ci) and run it on devices "
               "that take it: for `tune regress`")
      ->envname("TUNE_SERVER_ALLOW_ARTIFACTS");
  app.add_option("--artifact-isolation", options.artifacts.isolation,
                 "How a device must confine artifacts at least; none: any way")
      ->check([](const std::string& text) {
        Isolation isolation;
        return ParseIsolation(text, &isolation)
                   ? ""
                   : "no isolation, such as seccomp+netns";
      })
      ->capture_default_str();
  int64_t artifact_quota_mib = options.artifact_retention.most_bytes >> 20;
  app.add_option("--artifact-quota", artifact_quota_mib,
                 "MiB of artifacts in the database, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
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
  const auto parsed = daemon::ParseDaemon(app, argc, argv, daemon_flags);
  if (parsed.has_value()) return *parsed;
  absl::ParseDuration(canary_period, &options.health.canary_period);
  options.artifact_retention.most_bytes = artifact_quota_mib << 20;
  absl::Status set = SetAll(farm::TimeoutSettings(options.timeouts), timeouts);
  set.Update(SetAll(farm::HealthSettings(options.health), health));
  for (const std::string& text : quotas) set.Update(options.quotas.Set(text));
  for (const std::string& text : retention) {
    set.Update(options.retention.Set(text));
  }
  if (!set.ok()) return Fail(std::string(set.message()));
  if (daemon_flags.check_config) {
    return daemon::ReportCheck(kProgram, services::CheckConfig(options));
  }
  if (demo->count() > 0) {
    if (!options.database_path.empty()) {
      return Fail("--demo has a database of its own: leave out --db");
    }
    if (options.http.empty()) options.http = kDemoPages;
  } else if (options.database_path.empty()) {
    return Fail("--db is required");
  }
  const absl::Status together = farm::CheckTimeouts(options.timeouts);
  if (!together.ok()) {
    return Fail("--timeout: " + std::string(together.message()));
  }
  const absl::Status rules = farm::CheckHealth(options.health);
  if (!rules.ok()) return Fail("--health: " + std::string(rules.message()));
  const absl::Status address =
      services::CheckListenAddress(options.listen, security);
  if (!address.ok()) return Fail("--listen: " + std::string(address.message()));
  if (!options.http.empty()) {
    const absl::Status http =
        services::CheckListenAddress(options.http, security);
    if (!http.ok()) return Fail("--http: " + std::string(http.message()));
  }
  if (!options.spans.url.empty()) {
    const absl::Status spans = spans::CheckExporter(options.spans);
    if (!spans.ok()) return Fail("--otlp: " + std::string(spans.message()));
  }
  const std::string warning =
      services::InsecureWarning(options.listen, security);
  if (!warning.empty()) daemon::Complain(kProgram, "warning: " + warning);

  // Taken by sigwait below; every thread inherits the mask.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);

  RaiseFileLimit();  // each worker needs a descriptor
  // Debian's Abseil checks for deadlocks at every lock of gRPC, which is about
  // 5 % of the cost of a result.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const auto manager = daemon::ServiceManager::FromEnvironment();
  transport::RouteGrpcLog(LogLevel::kWarning);
  options.fingerprint = driver::Fingerprint();
  options.release = services::kRelease;
  options.search_factory = jobs::RealSearchFactory();
  if (!no_canary) options.canary = jobs::CanaryMaker();
  absl::StatusOr<std::unique_ptr<services::Server>> started;
  absl::StatusOr<std::unique_ptr<demo::Demo>> replay;
  services::Server* server = nullptr;
  if (demo->count() > 0) {
    replay = demo::Demo::Start(demo_options, std::move(options));
    if (!replay.ok()) return Fail(std::string(replay.status().message()), 1);
    server = &(*replay)->server();
  } else {
    started = services::Server::Start(std::move(options));
    if (!started.ok()) return Fail(std::string(started.status().message()), 1);
    server = started->get();
  }
  std::printf("listening on %s\n", server->address().c_str());
  if (!server->http_address().empty()) {
    std::printf("http on %s\n", server->http_address().c_str());
  }
  std::fflush(stdout);
  manager->Ready([&](absl::Duration limit) { return server->Stuck(limit); });
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  Log(LogLevel::kInfo, "server", "shutting down");
  manager->Stopping();
  // Search threads have the idle scheduling class, and on a busy machine may
  // never notice that they should stop. Everything acknowledged is durable.
  std::thread([] {
    absl::SleepFor(kShutdownLimit);
    Log(LogLevel::kWarning, "server", "a search does not end; leaving it");
    _exit(0);
  }).detach();
  if (started.ok()) started->reset();
  if (replay.ok()) replay->reset();
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
