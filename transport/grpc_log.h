// Writes gRPC's own messages to our log.
#ifndef TILEFARM_TRANSPORT_GRPC_LOG_H_
#define TILEFARM_TRANSPORT_GRPC_LOG_H_

#include "base/log.h"

namespace tilefarm::transport {

// From now on gRPC's messages (mostly failed handshakes) are logged at this
// level, at most ten lines a second, because unauthenticated peers can cause
// them. Call it before the first channel or server is made.
void RouteGrpcLog(LogLevel level);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_GRPC_LOG_H_
