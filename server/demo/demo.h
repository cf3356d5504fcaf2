// `tune-server --demo`: a server that replays a recorded run instead of having
// a farm. Jobs, devices and records are those of the recording; its last job
// runs again, as fast as it ran then.
#ifndef TILEFARM_SERVER_DEMO_DEMO_H_
#define TILEFARM_SERVER_DEMO_DEMO_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/services/server.h"

namespace tilefarm::demo {

struct DemoOptions {
  // A database, plain or compressed by zstd; empty: the one in this program.
  std::string recording;
  double speed = 1;
};

// A server and the folder of its database, which is deleted at the end.
class Demo {
 public:
  // Takes address, limits and security of `options` and sets the rest.
  // InvalidArgument, NotFound, DataLoss, FailedPrecondition: the recording;
  // errors of Server::Start.
  static absl::StatusOr<std::unique_ptr<Demo>> Start(
      const DemoOptions& demo, services::ServerOptions options);
  virtual ~Demo() = default;

  virtual services::Server& server() = 0;
};

}  // namespace tilefarm::demo

#endif  // TILEFARM_SERVER_DEMO_DEMO_H_
