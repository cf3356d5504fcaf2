// Makes gRPC read requests by ParseRequest (message_limits.h). Generated code
// of the services includes this, so that no service reads one in another way.
#ifndef TILEFARM_PROTO_V1_BOUNDED_MESSAGES_H_
#define TILEFARM_PROTO_V1_BOUNDED_MESSAGES_H_

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "proto/tilefarm/v1/admin.pb.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "proto/tilefarm/v1/message_limits.h"
#include "proto/tilefarm/v1/regression.pb.h"
#include "proto/tilefarm/v1/tune.pb.h"

namespace tilefarm::v1 {

struct RequestTraits {
  static grpc::Status Serialize(const grpc::protobuf::MessageLite& message,
                                grpc::ByteBuffer* buffer, bool* own_buffer) {
    return grpc::GenericSerialize<grpc::ProtoBufferWriter,
                                  google::protobuf::Message>(message, buffer,
                                                             own_buffer);
  }
  // A message that is refused is no error here: gRPC would end a stream without
  // a word. Whoever takes the message asks RefusalOf.
  static grpc::Status Deserialize(grpc::ByteBuffer* buffer,
                                  google::protobuf::Message* message) {
    if (buffer == nullptr) {
      return {grpc::StatusCode::INTERNAL, "there is no message"};
    }
    grpc::Slice bytes;
    const grpc::Status status = buffer->DumpToSingleSlice(&bytes);
    buffer->Clear();
    if (!status.ok()) return status;
    ParseRequest({reinterpret_cast<const char*>(bytes.begin()), bytes.size()},
                 *message);
    return grpc::Status::OK;
  }
};

}  // namespace tilefarm::v1

namespace grpc {

// Synchronous unary methods, of clients too, know their messages by this base.
template <>
class SerializationTraits<protobuf::MessageLite> {
 public:
  static Status Serialize(const protobuf::MessageLite& message,
                          ByteBuffer* buffer, bool* own_buffer) {
    return tilefarm::v1::RequestTraits::Serialize(message, buffer, own_buffer);
  }
  static Status Deserialize(ByteBuffer* buffer,
                            protobuf::MessageLite* message) {
    auto* request = dynamic_cast<google::protobuf::Message*>(message);
    if (request != nullptr &&
        tilefarm::v1::IsRequest(*request->GetDescriptor())) {
      return tilefarm::v1::RequestTraits::Deserialize(buffer, request);
    }
    return GenericDeserialize<ProtoBufferReader, protobuf::MessageLite>(
        buffer, message);
  }
};

// Workers'.
template <>
class SerializationTraits<tilefarm::v1::WorkerMessage>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::GetArtifactRequest>
    : public tilefarm::v1::RequestTraits {};
// Users'.
template <>
class SerializationTraits<tilefarm::v1::SubmitRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::WatchRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ListJobsRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::CancelRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ListDevicesRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ChangeDeviceRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::DeviceLogRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::BestRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::MeasureRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ReadRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::DbStatsRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::DbExportRequest>
    : public tilefarm::v1::RequestTraits {};
// Both ways: exported rows, too.
template <>
class SerializationTraits<tilefarm::v1::DbLine>
    : public tilefarm::v1::RequestTraits {};
// Of regression tracking.
template <>
class SerializationTraits<tilefarm::v1::ArtifactPart>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::FindDevicesRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::CompareRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::AppendPointsRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ReadHistoryRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::AcknowledgeRequest>
    : public tilefarm::v1::RequestTraits {};
// Admins'.
template <>
class SerializationTraits<tilefarm::v1::CreateTokenRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::ListTokensRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::RevokeRequest>
    : public tilefarm::v1::RequestTraits {};
template <>
class SerializationTraits<tilefarm::v1::TokenLogRequest>
    : public tilefarm::v1::RequestTraits {};

}  // namespace grpc

#endif  // TILEFARM_PROTO_V1_BOUNDED_MESSAGES_H_
