// Finds out why a client and a server cannot connect. gRPC reports "Socket
// closed" for most reasons, so this repeats the handshake by hand.
#ifndef TILEFARM_TRANSPORT_DIAGNOSE_H_
#define TILEFARM_TRANSPORT_DIAGNOSE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/endpoint.h"

namespace tilefarm::transport {

// FailedPrecondition: what is wrong with the credentials or the choice of TLS,
// and what to do. OK: nothing of this kind is wrong (for example, nobody
// listens, which gRPC reports well). Takes `limit` at most, apart from the name
// lookup.
absl::Status Diagnose(const Endpoint& endpoint,
                      absl::Duration limit = absl::Seconds(4));

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_DIAGNOSE_H_
