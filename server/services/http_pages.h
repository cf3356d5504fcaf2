// The pages of the HTTP port:
//
//   /metrics  Prometheus' text                              users
//   /healthz  the process answers, its loops make progress  anyone
//   /readyz   and the database accepts writes               anyone
//
// On loopback, and with --insecure, everything is open, as it is for gRPC.
#ifndef TILEFARM_SERVER_SERVICES_HTTP_PAGES_H_
#define TILEFARM_SERVER_SERVICES_HTTP_PAGES_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/http/http_request.h"
#include "server/http/http_server.h"
#include "server/security/gate.h"
#include "server/services/metrics.h"

namespace tilefarm::services {

struct PagesOptions {
  // Null: no credentials are asked for.
  security::Gate* gate = nullptr;
  // Fills in all but http_answers.
  std::function<ServerFigures()> figures;
  // A text that names the loop without progress; empty: none.
  std::function<std::string()> stuck;
  // Writes to the database. May take as long as the disk.
  std::function<absl::Status()> write;
};

// Not thread-safe.
class Pages {
 public:
  explicit Pages(PagesOptions options);
  ~Pages();

  http::Response Answer(const http::Request& request,
                        const http::Answers& answers);

 private:
  class WriteProbe;

  http::Response Health() const;
  http::Response Ready();

  const PagesOptions options_;
  const std::unique_ptr<WriteProbe> probe_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_HTTP_PAGES_H_
