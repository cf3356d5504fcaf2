// A whole tune-server: database, farm, jobs and the gRPC services on them.
#ifndef TILEFARM_SERVER_SERVICES_SERVER_H_
#define TILEFARM_SERVER_SERVICES_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/farm/farm.h"
#include "server/jobs/comparisons.h"
#include "server/jobs/quotas.h"
#include "server/jobs/search_factory.h"
#include "server/security/limits.h"
#include "server/services/listen.h"
#include "server/services/retention.h"
#include "server/spans/exporter.h"

namespace tilefarm::services {

struct ServerOptions {
  std::string database_path;
  std::string listen = "127.0.0.1:7070";  // port 0: any free one
  std::string http;  // HOST:PORT of the pages (http_pages.h); empty: none
  std::string fingerprint;
  std::string release;
  farm::Timeouts timeouts;
  farm::HealthRules health;
  // See FarmOptions; null: devices are trusted without canaries.
  std::function<std::optional<farm::WorkItem>(const target::Target&)> canary;
  ListenSecurity security;
  security::Limits limits;
  jobs::SearchFactory search_factory;
  jobs::Quotas quotas;
  Retention retention;
  // Whether machine code may be brought and run (--allow-artifacts).
  jobs::ComparisonsOptions artifacts;
  database::ArtifactRetention artifact_retention;
  spans::ExporterOptions spans;  // without a URL: nothing is sent
  // Connects devices that are no workers, once the server serves; what it
  // returns is destroyed before the farm. Null: there are none.
  std::function<std::shared_ptr<void>(farm::Farm&)> attach;
  bool demo = false;  // the pages say that a recorded run is replayed
};

// Thread-safe.
class Server {
 public:
  // The server serves when this returns. Errors of CheckListenAddress and of
  // the TLS files (server/services/credentials.h). Unavailable: the port is in
  // use, or another server has the database; otherwise see Store::Open.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  // Ends every call and stream; running jobs continue at the next start.
  virtual ~Server() = default;

  // HOST:PORT with the actual port.
  virtual const std::string& address() const = 0;
  // The same for the HTTP port; empty: none.
  virtual std::string http_address() const = 0;
  // See jobs::Jobs::Stuck.
  virtual std::string Stuck(absl::Duration limit) const = 0;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_SERVER_H_
