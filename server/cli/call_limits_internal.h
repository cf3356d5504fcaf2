// The limits of the client's calls of the server.
#ifndef TILEFARM_SERVER_CLI_CALL_LIMITS_INTERNAL_H_
#define TILEFARM_SERVER_CLI_CALL_LIMITS_INTERNAL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/time/time.h"

namespace tilefarm::cli {

// Of a call that does not transfer files or wait for devices.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(60);
// Between two attempts to reach the server.
inline constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);
inline constexpr int kMaxMessageBytes = 64 << 20;

inline void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(timeout));
}

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_CALL_LIMITS_INTERNAL_H_
