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

// TLS 1.2 or later where the endpoint names a CA, else plain text. Certificate,
// key and CA are read anew when their files change, the token for each call; so
// rotated ones need no restart. Errors: see CheckEndpoint.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const Endpoint& endpoint, const grpc::ChannelArguments& arguments);

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_CHANNEL_H_
