// Why a client and a server do not understand each other. gRPC says "Socket
// closed" for most reasons, so the handshake is made once more by hand.
#ifndef TILEFARM_TRANSPORT_DIAGNOSE_H_
#define TILEFARM_TRANSPORT_DIAGNOSE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/endpoint.h"

namespace tilefarm::transport {

// FailedPrecondition with what is wrong with the credentials or the choice of
// TLS and what to do; OK where nothing is (nobody listens, say: that, gRPC
// reports well). Takes `limit` at most, apart from looking up the name.
absl::Status Diagnose(const Endpoint& endpoint,
                      absl::Duration limit = absl::Seconds(4));

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_DIAGNOSE_H_
