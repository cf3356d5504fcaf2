// Every string and list of a request has a limit, which is enforced.
#include "proto/tilefarm/v1/message_limits.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "proto/tilefarm/v1/admin.pb.h"
#include "proto/tilefarm/v1/bounded_messages.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "proto/tilefarm/v1/regression.pb.h"
#include "proto/tilefarm/v1/tune.pb.h"

namespace tilefarm::v1 {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ::testing::HasSubstr;

// The messages that clients send: the requests of every method.
std::set<const Descriptor*> Requests() {
  std::set<const Descriptor*> requests;
  for (const auto* file :
       {Hello::descriptor()->file(), SubmitRequest::descriptor()->file(),
        RevokeRequest::descriptor()->file(),
        CompareRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        requests.insert(file->service(i)->method(j)->input_type());
      }
    }
  }
  return requests;
}

template <typename Visit>
void ForEachField(const Descriptor& type, const Visit& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    visit(field);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachField(*field.message_type(), visit);
    }
  }
}

bool NeedsLimit(const FieldDescriptor& field) {
  return field.is_repeated() ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_STRING ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

template <typename Message>
std::string WhyRefused(const std::string& bytes) {
  Message message;
  ParseRequest(bytes, message);
  const auto refusal = RefusalOf(message);
  return refusal.has_value() ? refusal->why : "";
}
template <typename Message>
std::string WhyRefused(const Message& message) {
  return WhyRefused<Message>(message.SerializeAsString());
}

TEST(MessageLimitsTest, EveryStringAndListOfARequestHasALimit) {
  std::set<std::string> needed;
  for (const Descriptor* request : Requests()) {
    ForEachField(*request, [&](const FieldDescriptor& field) {
      if (!NeedsLimit(field)) return;
      EXPECT_NE(LimitOf(field), nullptr) << field.full_name();
      needed.insert(field.full_name());
    });
  }
  for (const FieldLimit& limit : FieldLimits()) {
    EXPECT_TRUE(needed.contains("tilefarm.v1." + std::string(limit.field)))
        << limit.field << " is no field of a request";
  }
}

// The result of gRPC for the bytes, as a message of its own type (streams,
// callbacks) or of the base type (synchronous calls).
template <typename Traits, typename Message>
bool GrpcRefuses(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer buffer(&slice, 1);
  Message message;
  EXPECT_TRUE(
      grpc::SerializationTraits<Traits>::Deserialize(&buffer, &message).ok());
  return RefusalOf(message).has_value();
}

TEST(MessageLimitsTest, GrpcReadsRequestsThroughThem) {
  using google::protobuf::MessageLite;
  for (const Descriptor* request : Requests()) EXPECT_TRUE(IsRequest(*request));
  EXPECT_FALSE(IsRequest(*SubmitResponse::descriptor()));
  SubmitRequest submit;
  submit.set_user(std::string(1000, 'x'));
  const std::string bytes = submit.SerializeAsString();
  EXPECT_TRUE((GrpcRefuses<MessageLite, SubmitRequest>(bytes)));
  EXPECT_TRUE((GrpcRefuses<SubmitRequest, SubmitRequest>(bytes)));
  WorkerMessage hello;
  hello.mutable_hello()->set_name(std::string(1000, 'x'));
  EXPECT_TRUE(
      (GrpcRefuses<WorkerMessage, WorkerMessage>(hello.SerializeAsString())));
  // The server decides how long its answers are.
  SubmitResponse answer;
  answer.set_job_id(std::string(1000, 'x'));
  EXPECT_FALSE(
      (GrpcRefuses<MessageLite, SubmitResponse>(answer.SerializeAsString())));
}

TEST(MessageLimitsTest, AStringIsAsLongAsItMayBe) {
  ForEachField(*SubmitRequest::descriptor(), [](const FieldDescriptor& field) {
    if (field.containing_type() != SubmitRequest::descriptor() ||
        field.cpp_type() != FieldDescriptor::CPPTYPE_STRING ||
        field.is_repeated()) {
      return;
    }
    SubmitRequest request;
    const auto& reflection = *request.GetReflection();
    const auto most = static_cast<size_t>(LimitOf(field)->bytes);
    reflection.SetString(&request, &field, std::string(most, 'x'));
    EXPECT_EQ(WhyRefused(request), "") << field.full_name();
    reflection.SetString(&request, &field, std::string(most + 1, 'x'));
    EXPECT_THAT(WhyRefused(request), HasSubstr(field.name()));
  });
}

TEST(MessageLimitsTest, AListIsAsLongAsItMayBe) {
  SubmitRequest request;
  for (int i = 0; i < 16; ++i) request.add_more_targets();
  EXPECT_EQ(WhyRefused(request), "");
  request.add_more_targets();
  EXPECT_EQ(WhyRefused(request),
            "SubmitRequest.more_targets has more than 16 elements");
  WorkerMessage samples;
  auto& measured = *samples.mutable_result()->mutable_measurement();
  for (int i = 0; i < 10'000; ++i) measured.add_seconds(1);
  EXPECT_EQ(WhyRefused(samples), "");
  measured.add_seconds(1);
  EXPECT_THAT(WhyRefused(samples), HasSubstr("Measurement.seconds"));
  WorkerMessage labels;
  for (int i = 0; i < 65; ++i) {
    (*labels.mutable_hello()->mutable_labels())[std::to_string(i)] = "x";
  }
  EXPECT_THAT(WhyRefused(labels), HasSubstr("Hello.labels"));
}

TEST(MessageLimitsTest, AListThatIsSentInPiecesIsOneList) {
  WorkerMessage piece;
  for (int i = 0; i < 3000; ++i) piece.mutable_state()->add_held();
  const std::string bytes = piece.SerializeAsString();
  EXPECT_EQ(WhyRefused<WorkerMessage>(bytes), "");
  // A parser merges both messages.
  EXPECT_EQ(WhyRefused<WorkerMessage>(bytes + bytes),
            "WorkerMessage.state is given twice");
}

TEST(MessageLimitsTest, FieldsOfALaterReleaseAreFineWhileTheyAreFew) {
  CancelRequest request;
  request.set_job_id("job");
  auto& unknown = *request.GetReflection()->MutableUnknownFields(&request);
  for (int i = 0; i < 64; ++i) unknown.AddVarint(1000 + i, 1);
  EXPECT_EQ(WhyRefused(request), "");
  unknown.AddLengthDelimited(2000, "x");
  EXPECT_THAT(WhyRefused(request), HasSubstr("does not know"));
}

TEST(MessageLimitsTest, ARefusedMessageIsEmpty) {
  CancelRequest request;
  ParseRequest("\x0a\x03job", request);
  EXPECT_EQ(request.job_id(), "job");
  EXPECT_FALSE(RefusalOf(request).has_value());
  for (const std::string& bytes :
       {std::string("\x0a\x03job\x0a\x03job"), std::string("\x0a\x7fjob"),
        std::string("\x0a\x03j\nb"), std::string("\x0a\x02\xff\xff"),
        std::string("\x0b\x0b\x0b"), std::string("\x0c"),
        std::string("\x00", 1),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}) {
    CancelRequest refused;
    ParseRequest(bytes, refused);
    const auto refusal = RefusalOf(refused);
    ASSERT_TRUE(refusal.has_value()) << testing::PrintToString(bytes);
    EXPECT_EQ(refusal->kind, Refusal::Kind::kDamaged) << refusal->why;
    EXPECT_EQ(refused.job_id(), "");
  }
}

}  // namespace
}  // namespace tilefarm::v1
