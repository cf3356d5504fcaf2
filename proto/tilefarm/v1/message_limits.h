// How long what a client sends may be: one table for every string and list of
// every request, looked at before the message is parsed.
//
// A parsed message can take forty times the memory of its bytes (a list of
// empty strings), so a limit on bytes alone, or one that is looked at after
// parsing, does not bound memory. Sizes of whole messages are in
// server/security/limits.h.
#ifndef TILEFARM_PROTO_V1_MESSAGE_LIMITS_H_
#define TILEFARM_PROTO_V1_MESSAGE_LIMITS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tilefarm::v1 {

enum class Content {
  kText,  // any
  kLine,  // without control characters
};

struct FieldLimit {
  // Full name without the package: "Hello.name", "Hello.LabelsEntry.key".
  std::string_view field;
  int64_t bytes;  // of a string or message, or of each in a list
  int count = 1;  // of a list or map
  Content content = Content::kLine;
};

// Of requests: what clients and workers send.
std::span<const FieldLimit> FieldLimits();
// Null: the field has none. Only strings, messages and lists need one; what has
// none is refused (tests/server/message_limits_test.cc finds it).
const FieldLimit* LimitOf(const google::protobuf::FieldDescriptor& field);

// Whether a method of ours takes the message.
bool IsRequest(const google::protobuf::Descriptor& type);

// Why a message is refused.
struct Refusal {
  enum class Kind {
    kTooMuch,  // beyond a limit
    kDamaged,  // not what a program of ours would send
  };
  Kind kind = Kind::kTooMuch;
  std::string why;
};

// What is wrong with the serialized message: what exceeds a limit, control
// characters in a line, a singular field that is given twice, many fields that
// this release does not know, groups. nullopt: nothing.
std::optional<Refusal> FindFault(const google::protobuf::Descriptor& type,
                                 std::string_view bytes);

// Parses into `message`, unless FindFault or the parser finds something: then
// the message is empty, and RefusalOf says why.
void ParseRequest(std::string_view bytes, google::protobuf::Message& message);
// Why the message was refused when it was read; nullopt: it was not.
std::optional<Refusal> RefusalOf(const google::protobuf::Message& message);

}  // namespace tilefarm::v1

#endif  // TILEFARM_PROTO_V1_MESSAGE_LIMITS_H_
