// gRPC's own messages, in the form of ours.
#ifndef TILEFARM_TRANSPORT_GRPC_LOG_H_
#define TILEFARM_TRANSPORT_GRPC_LOG_H_

#include "base/log.h"

namespace tilefarm::transport {

// From now on what gRPC reports (failed handshakes, above all) is logged at
// this level, ten lines a second at most: strangers cause such lines. Before
// the first channel or server.
void RouteGrpcLog(LogLevel level);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_GRPC_LOG_H_
