// The one place where clients of a tune-server open channels.
#ifndef TILEFARM_TRANSPORT_CHANNEL_H_
#define TILEFARM_TRANSPORT_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "transport/endpoint.h"

namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace tilefarm::transport {

// TLS 1.2 or later if the endpoint names a CA, otherwise plain text.
// Certificate, key and CA are read again when their files change, the token for
// each call, so rotation needs no restart. Errors: see CheckEndpoint.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const Endpoint& endpoint, const grpc::ChannelArguments& arguments);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_CHANNEL_H_
