#include "proto/tilefarm/v1/message_limits.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace tilefarm::v1 {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr std::string_view kPackage = "tilefarm.v1.";

constexpr int64_t kName = 128;     // of a person, a device, a job
constexpr int64_t kId = 128;       // 64 hexadecimal digits as a rule
constexpr int64_t kWord = 32;      // one of a few words
constexpr int64_t kTarget = 4096;  // a key with many features
constexpr int64_t kReason = 1024;
constexpr int64_t kSymbol = 512;
constexpr int64_t kProgram = 8 << 20;  // ir::Limits refuses beyond 4 MiB
// As much as the server sends at once; what it takes is less (limits.h).
constexpr int64_t kRecord = 64 << 20;
constexpr int64_t kPart = 1 << 20;  // of an artifact
constexpr int64_t kPairs = 1024;    // of one cluster

constexpr FieldLimit kLimits[] = {
    // --- Workers ---
    // As many devices as one credential may name keep theirs in memory.
    {"WorkerMessage.hello", 16 << 10},
    {"WorkerMessage.state", 1 << 20},
    {"WorkerMessage.result", 2 << 20},
    {"Hello.name", kName},
    {"Hello.boot_id", kId},
    {"Hello.fingerprint", kId},
    {"Hello.device", 16 << 10},
    {"Hello.labels", 512, 64},
    {"Hello.LabelsEntry.key", kName},
    {"Hello.LabelsEntry.value", kName},
    {"DeviceProperties.target", kTarget},
    {"DeviceProperties.triple", kName},
    {"DeviceProperties.cpu", kName},
    {"DeviceProperties.features", kName, 1024},
    {"DeviceProperties.brand", 256},
    {"DeviceProperties.isolation", 256},
    {"DeviceProperties.libraries", 512, 64},
    {"DeviceProperties.LibrariesEntry.key", kName},
    {"DeviceProperties.LibrariesEntry.value", kName},
    // Leases, and results that wait to be acknowledged.
    {"State.held", 256, 4096},
    {"State.Held.lease_id", kId},
    {"Result.lease_id", kId},
    {"Result.candidate_id", kId},
    {"Result.measurement", 2 << 20},
    {"Measurement.status", kWord},
    {"Measurement.error", 1 << 20, 1, Content::kText},
    {"Measurement.seconds", 8, 10'000},
    {"Measurement.isolation", 256},
    {"Measurement.device_state", 4096, 1, Content::kText},
    {"Measurement.code_digest", kId},
    {"Measurement.fingerprint", kId},
    {"Measurement.layout", kWord},
    {"Measurement.compared", 64 << 10},
    {"ComparedPairs.baseline_seconds", 8, kPairs},
    {"ComparedPairs.candidate_seconds", 8, kPairs},
    {"ComparedPairs.failed_side", kWord},
    {"GetArtifactRequest.lease_id", kId},
    {"GetArtifactRequest.sha256", kId},

    // --- Users ---
    {"SubmitRequest.request_id", kId},
    {"SubmitRequest.user", kName},
    {"SubmitRequest.program", kProgram, 1, Content::kText},
    {"SubmitRequest.program_name", 4096},
    {"SubmitRequest.target", kTarget},
    {"SubmitRequest.model", kWord},
    {"SubmitRequest.search", kWord},
    {"SubmitRequest.space_trace", kProgram, 1, Content::kText},
    {"SubmitRequest.caches", 256},
    {"SubmitRequest.requirements", 512, 64},
    {"SubmitRequest.more_targets", kTarget + 256, 16},
    // Names of functions are part of the program, which has its own limit.
    {"SubmitRequest.weights", 4096 + 64, 8192},
    {"SubmitRequest.WeightsEntry.key", 4096},
    {"JobTarget.target", kTarget},
    {"JobTarget.caches", 256},
    {"WatchRequest.job_id", kId},
    {"ListJobsRequest.states", kId, 16},
    {"ListJobsRequest.user", kName},
    {"ListJobsRequest.program", kName},
    {"ListJobsRequest.target", kTarget},
    {"ListJobsRequest.id_prefix", kId},
    {"CancelRequest.job_id", kId},
    {"CancelRequest.user", kName},
    {"ChangeDeviceRequest.name", kName},
    {"ChangeDeviceRequest.user", kName},
    {"ChangeDeviceRequest.reason", kReason},
    {"ChangeDeviceRequest.reserve_for", kName},
    {"DeviceLogRequest.name", kName},
    {"BestRequest.program", kProgram, 1, Content::kText},
    {"BestRequest.workload", kId},
    {"BestRequest.target", kTarget},
    {"BestRequest.device_model", 64 << 10},
    {"BestRequest.fingerprint", kId},
    {"MeasureRequest.program", kProgram, 1, Content::kText},
    {"MeasureRequest.trace", kProgram, 1, Content::kText},
    {"MeasureRequest.target", kTarget},
    {"MeasureRequest.device", kName},
    {"MeasureRequest.user", kName},
    {"ReadRequest.path", kTarget},
    {"ReadRequest.query", kTarget},

    // --- Regression tracking ---
    {"ArtifactPart.header", 64 << 10},
    {"ArtifactPart.data", kPart, 1, Content::kText},
    {"ArtifactHeader.sha256", kId},
    {"ArtifactHeader.target", kTarget},
    {"ArtifactHeader.symbols", kSymbol, 64},
    {"ArtifactHeader.user", kName},
    {"FindDevicesRequest.target", kTarget},
    {"FindDevicesRequest.requirements", 512, 64},
    {"FindDevicesRequest.user", kName},
    {"CompareRequest.program", kProgram, 1, Content::kText},
    {"CompareRequest.target", kTarget},
    {"CompareRequest.baseline", 1024},
    {"CompareRequest.candidate", 1024},
    {"CompareRequest.Side.sha256", kId},
    {"CompareRequest.Side.symbol", kSymbol},
    {"CompareRequest.device", kName},
    {"CompareRequest.requirements", 512, 64},
    {"CompareRequest.user", kName},
    {"CompareRequest.candidate_first", 1, 64},
    {"CompareRequest.model", 32 << 10},
    {"ModelSignature.inputs", 64, 256},
    {"ModelSignature.outputs", 64, 256},
    {"ModelSignature.Tensor.dtype", kWord},
    {"AppendPointsRequest.request_id", kId},
    {"AppendPointsRequest.user", kName},
    {"AppendPointsRequest.points", kProgram, 256},
    {"HistoryPoint.series", 256},
    {"HistoryPoint.benchmark", 512},
    {"HistoryPoint.device_class", 512},
    {"HistoryPoint.branch", 256},
    {"HistoryPoint.commit", kName},
    {"HistoryPoint.at", kName},
    {"HistoryPoint.device", kName},
    {"HistoryPoint.verdict", kWord},
    {"HistoryPoint.baseline_commit", kName},
    {"HistoryPoint.artifact", kId},
    {"HistoryPoint.symbol", kSymbol},
    {"HistoryPoint.target", kTarget},
    {"HistoryPoint.program", kProgram, 1, Content::kText},
    {"HistoryPoint.trace", kProgram, 1, Content::kText},
    {"HistoryPoint.fingerprint", kId},
    {"HistoryPoint.user", kName},
    {"HistoryPoint.workload", kId},
    {"ReadHistoryRequest.series", 256},
    {"ReadHistoryRequest.benchmark", 512},
    {"ReadHistoryRequest.device_class", 512},
    {"ReadHistoryRequest.branch", 256},
    {"ReadHistoryRequest.commit", kName},
    {"AcknowledgeRequest.acknowledgement", 8192},
    {"Acknowledgement.series", 256},
    {"Acknowledgement.benchmark", 512},
    {"Acknowledgement.device_class", 512},
    {"Acknowledgement.branch", 256},
    {"Acknowledgement.commit", kName},
    {"Acknowledgement.reason", kReason},
    {"Acknowledgement.user", kName},
    {"Acknowledgement.at", kName},

    // --- Admins ---
    {"DbExportRequest.workload", kId},
    {"DbLine.json", kRecord, 1, Content::kText},
    {"CreateTokenRequest.name", kName},
    {"CreateTokenRequest.role", kWord},
    {"CreateTokenRequest.user", kName},
    {"RevokeRequest.name", kName},
    {"RevokeRequest.user", kName},
    {"TokenLogRequest.name", kName},
};

constexpr char kMalformed[] = "the message is damaged";
// Fields of a later release in one message.
constexpr int kMostUnknown = 64;
// Where ParseRequest notes a refusal, by its kind: the numbers of no field. A
// client that sends one refuses its own message.
constexpr int kRefusals[] = {536'000'000, 536'000'001};

std::string_view NameOf(const FieldDescriptor& field) {
  const std::string_view name = field.full_name();
  return name.substr(0, kPackage.size()) == kPackage
             ? name.substr(kPackage.size())
             : name;
}

bool IsLine(const char* text, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) return false;
  }
  return true;
}

// The fewest bytes that an element of a packed list takes.
int64_t PackedBytes(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return 8;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return 4;
    default:
      return 1;
  }
}

// Walks over serialized messages as their types say.
class Walk {
 public:
  explicit Walk(std::string_view bytes)
      : bytes_(bytes),
        in_(reinterpret_cast<const uint8_t*>(bytes.data()),
            static_cast<int>(bytes.size())) {}

  // Up to the end of the stream or of the limit pushed.
  bool Message(const Descriptor& type) {
    std::vector<int64_t> counts(type.field_count());
    while (const uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* field =
          type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const auto wire = WireFormatLite::GetTagWireType(tag);
      if (wire == WireFormatLite::WIRETYPE_START_GROUP ||
          wire == WireFormatLite::WIRETYPE_END_GROUP) {
        return Damaged("groups are not used here");
      }
      const bool delimited = wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (field == nullptr || !Fits(*field, delimited)) {
        if (++unknown_ > kMostUnknown) {
          return Fail("too many fields that this release does not know");
        }
        if (!WireFormatLite::SkipField(&in_, tag)) return Malformed();
        continue;
      }
      int64_t& count = counts[field->index()];
      if (!delimited) {
        if (!WireFormatLite::SkipField(&in_, tag)) return Malformed();
        ++count;
      } else if (!Delimited(*field, count)) {
        return false;
      }
      if (!field->is_repeated() && count > 1) {
        return Damaged(std::string(NameOf(*field)) + " is given twice");
      }
      if (field->is_repeated() && count > MostOf(*field)) {
        return Fail(std::string(NameOf(*field)) + " has more than " +
                    std::to_string(MostOf(*field)) + " elements");
      }
    }
    return in_.ConsumedEntireMessage() || Malformed();
  }

  const Refusal& refusal() const { return refusal_; }

 private:
  static bool IsText(const FieldDescriptor& field) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  }
  static bool IsMessage(const FieldDescriptor& field) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  }
  // Whether the parser takes such bytes for the field; otherwise it takes them
  // for a field that it does not know.
  static bool Fits(const FieldDescriptor& field, bool delimited) {
    return (IsText(field) || IsMessage(field))
               ? delimited
               : !delimited || field.is_repeated();
  }
  static int64_t MostOf(const FieldDescriptor& field) {
    const FieldLimit* limit = LimitOf(field);
    return limit == nullptr ? 0 : limit->count;
  }

  // A string, a message, or a packed list.
  bool Delimited(const FieldDescriptor& field, int64_t& count) {
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length)) return Malformed();
    const int64_t left =
        static_cast<int64_t>(bytes_.size()) - in_.CurrentPosition();
    if (length > left) return Malformed();
    if (!IsText(field) && !IsMessage(field)) {
      count += length / PackedBytes(field);
      return in_.Skip(static_cast<int>(length)) || Malformed();
    }
    ++count;
    const FieldLimit* limit = LimitOf(field);
    if (limit == nullptr || length > limit->bytes) {
      return Fail(std::string(NameOf(field)) + " has " +
                  std::to_string(length) + " bytes; it may have " +
                  std::to_string(limit == nullptr ? 0 : limit->bytes));
    }
    if (IsMessage(field)) {
      const auto outer = in_.PushLimit(static_cast<int>(length));
      const bool fine = Message(*field.message_type());
      in_.PopLimit(outer);
      return fine;
    }
    if (limit->content == Content::kLine &&
        !IsLine(bytes_.data() + in_.CurrentPosition(), length)) {
      return Damaged(std::string(NameOf(field)) + " has control characters");
    }
    return in_.Skip(static_cast<int>(length)) || Malformed();
  }

  bool Fail(std::string why) {
    refusal_ = {Refusal::Kind::kTooMuch, std::move(why)};
    return false;
  }
  bool Damaged(std::string why) {
    refusal_ = {Refusal::Kind::kDamaged, std::move(why)};
    return false;
  }
  bool Malformed() { return Damaged(kMalformed); }

  const std::string_view bytes_;
  CodedInputStream in_;
  int unknown_ = 0;
  Refusal refusal_;
};

void Refuse(google::protobuf::Message& message, const Refusal& refusal) {
  message.Clear();
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      kRefusals[static_cast<int>(refusal.kind)], refusal.why);
}

}  // namespace

std::span<const FieldLimit> FieldLimits() { return kLimits; }

const FieldLimit* LimitOf(const FieldDescriptor& field) {
  static const auto* const by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const FieldLimit*>;
    for (const FieldLimit& limit : kLimits) map->emplace(limit.field, &limit);
    return map;
  }();
  const auto found = by_name->find(NameOf(field));
  return found == by_name->end() ? nullptr : found->second;
}

bool IsRequest(const Descriptor& type) {
  if (type.file()->package() != kPackage.substr(0, kPackage.size() - 1)) {
    return false;
  }
  for (int i = 0; i < type.file()->service_count(); ++i) {
    const auto& service = *type.file()->service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      if (service.method(j)->input_type() == &type) return true;
    }
  }
  return false;
}

std::optional<Refusal> FindFault(const Descriptor& type,
                                 std::string_view bytes) {
  Walk walk(bytes);
  if (walk.Message(type)) return std::nullopt;
  return walk.refusal();
}

void ParseRequest(std::string_view bytes, google::protobuf::Message& message) {
  const auto fault = FindFault(*message.GetDescriptor(), bytes);
  if (fault.has_value()) return Refuse(message, *fault);
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Refuse(message, {Refusal::Kind::kDamaged, kMalformed});
  }
}

std::optional<Refusal> RefusalOf(const google::protobuf::Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const google::protobuf::UnknownField& field = unknown.field(i);
    if (field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    for (const auto kind : {Refusal::Kind::kTooMuch, Refusal::Kind::kDamaged}) {
      if (field.number() == kRefusals[static_cast<int>(kind)]) {
        return Refusal{kind, field.length_delimited()};
      }
    }
  }
  return std::nullopt;
}

}  // namespace tilefarm::v1
