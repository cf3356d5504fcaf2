#include "database/record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "database/record_line.h"

namespace tilefarm::database {
namespace {

using Json = nlohmann::ordered_json;

// Writes one object, key by key. Most of a line are long texts of plain
// characters, which are copied as they are.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) { out_ += '{'; }

  void Text(std::string_view key, std::string_view text) {
    Key(key);
    Quote(text);
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    out_ += value ? "true" : "false";
  }
  void Integer(std::string_view key, int64_t value) {
    Key(key);
    absl::StrAppend(&out_, value);
  }
  void Number(std::string_view key, double value) {
    Key(key);
    Append(value);
  }
  void Numbers(std::string_view key, const std::vector<double>& values) {
    Key(key);
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ',';
      Append(values[i]);
    }
    out_ += ']';
  }
  // Before a value that the caller appends.
  void Key(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }
  void End() { out_ += '}'; }

 private:
  void Quote(std::string_view text) {
    const size_t begin = out_.size();
    out_ += '"';
    size_t copied = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      const auto c = static_cast<unsigned char>(text[at]);
      if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') continue;
      if (c != '"' && c != '\\' && c != '\n' && c != '\t') {
        // An error message may quote bytes that are not UTF-8.
        out_.resize(begin);
        out_ += Json(std::string(text))
                    .dump(-1, ' ', false, Json::error_handler_t::replace);
        return;
      }
      out_ += text.substr(copied, at - copied);
      out_ += '\\';
      out_ += c == '\n' ? 'n' : c == '\t' ? 't' : text[at];
      copied = at + 1;
    }
    out_ += text.substr(copied);
    out_ += '"';
  }
  // JSON has no infinities, and the error of a wrong result is often infinite.
  void Append(double value) {
    if (std::isnan(value)) {
      out_ += "\"nan\"";
    } else if (std::isinf(value)) {
      out_ += value > 0 ? "\"inf\"" : "\"-inf\"";
    } else {
      out_ += Json(value).dump();
    }
  }

  std::string& out_;
  bool first_ = true;
};

std::optional<double> NumberFromJson(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const std::string& text = json.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Reads the fields of one object and remembers the first thing wrong.
class Reader {
 public:
  explicit Reader(const Json& object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  enum Need { kRequired, kOptional };

  void Text(const char* key, Need need, std::string& out) {
    const Json* value = Find(key, need);
    if (value == nullptr) return;
    if (!value->is_string()) return Wrong(key, "a string");
    out = value->get<std::string>();
  }
  void Bool(const char* key, Need need, bool& out) {
    const Json* value = Find(key, need);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Wrong(key, "true or false");
    out = value->get<bool>();
  }
  template <typename Int>
  void Integer(const char* key, Need need, Int& out) {
    const Json* value = Find(key, need);
    if (value == nullptr) return;
    // An unsigned number above the range of int64 is kept as unsigned.
    if (!value->is_number_integer() ||
        (value->is_number_unsigned() &&
         value->get<uint64_t>() >
             static_cast<uint64_t>(std::numeric_limits<Int>::max())) ||
        value->get<int64_t>() < std::numeric_limits<Int>::min()) {
      return Wrong(key, "an integer within range");
    }
    out = static_cast<Int>(value->get<int64_t>());
  }
  void Number(const char* key, Need need, double& out) {
    const Json* value = Find(key, need);
    if (value == nullptr) return;
    const std::optional<double> number = NumberFromJson(*value);
    if (!number) return Wrong(key, "a number");
    out = *number;
  }
  void Numbers(const char* key, Need need, std::vector<double>& out) {
    const Json* value = Find(key, need);
    if (value == nullptr) return;
    if (!value->is_array()) return Wrong(key, "an array of numbers");
    out.clear();
    out.reserve(value->size());
    for (const Json& element : *value) {
      const std::optional<double> number = NumberFromJson(element);
      if (!number) return Wrong(key, "an array of numbers");
      out.push_back(*number);
    }
  }
  const Json* Object(const char* key, Need need) {
    const Json* value = Find(key, need);
    if (value == nullptr) return nullptr;
    if (value->is_object()) return value;
    Wrong(key, "an object");
    return nullptr;
  }
  const Json* Array(const char* key, Need need) {
    const Json* value = Find(key, need);
    if (value == nullptr) return nullptr;
    if (value->is_array()) return value;
    Wrong(key, "an array");
    return nullptr;
  }
  void Wrong(const char* key, const char* wanted) {
    Fail(absl::StrCat("key \"", prefix_, key, "\" is not ", wanted));
  }
  void Fail(std::string message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(std::move(message));
  }
  const absl::Status& status() const { return status_; }

 private:
  const Json* Find(const char* key, Need need) {
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (need == kRequired) {
      Fail(absl::StrCat("key \"", prefix_, key, "\" is missing"));
    }
    return nullptr;
  }

  const Json& object_;
  const std::string prefix_;
  absl::Status status_;
};

// The part of a record that a re-measurement has too.
void WriteMeasured(const Record& record, Writer& writer, std::string& out) {
  writer.Text("device", record.device);
  writer.Text("status", StatusName(record.status));
  writer.Numbers("seconds", record.seconds);
  writer.Number("median_seconds", record.median_seconds);
  writer.Number("ci_low_seconds", record.ci_low_seconds);
  writer.Number("ci_high_seconds", record.ci_high_seconds);
  writer.Bool("verified", record.verified);
  writer.Number("max_abs_error", record.max_abs_error);
  writer.Number("max_rel_error", record.max_rel_error);
  writer.Bool("stopped_early", record.stopped_early);
  writer.Bool("emulated", record.emulated);
  writer.Key("protocol");
  Writer protocol(out);
  protocol.Bool("cold_cache", record.protocol.cold_cache);
  protocol.Integer("cores", record.protocol.cores);
  protocol.Text("layout", record.protocol.layout);
  protocol.End();
  writer.Text("error", record.error);
  writer.Number("compile_seconds", record.compile_seconds);
  writer.Text("device_state", record.device_state);
  writer.Text("isolation", record.isolation);
  writer.Text("fingerprint", record.fingerprint);
  writer.Text("code_digest", record.code_digest);
  writer.Text("job_id", record.job_id);
  writer.Text("recorded_at", record.recorded_at);
}

absl::Status MeasuredFromJson(const Json& json, const std::string& prefix,
                              Record& record) {
  Reader reader(json, prefix);
  std::string status;
  reader.Text("device", Reader::kRequired, record.device);
  reader.Text("status", Reader::kRequired, status);
  reader.Numbers("seconds", Reader::kRequired, record.seconds);
  reader.Number("median_seconds", Reader::kRequired, record.median_seconds);
  reader.Number("ci_low_seconds", Reader::kOptional, record.ci_low_seconds);
  reader.Number("ci_high_seconds", Reader::kOptional, record.ci_high_seconds);
  reader.Bool("verified", Reader::kRequired, record.verified);
  reader.Number("max_abs_error", Reader::kOptional, record.max_abs_error);
  reader.Number("max_rel_error", Reader::kOptional, record.max_rel_error);
  reader.Bool("stopped_early", Reader::kRequired, record.stopped_early);
  reader.Bool("emulated", Reader::kRequired, record.emulated);
  reader.Text("error", Reader::kOptional, record.error);
  reader.Number("compile_seconds", Reader::kOptional, record.compile_seconds);
  reader.Text("device_state", Reader::kOptional, record.device_state);
  reader.Text("isolation", Reader::kOptional, record.isolation);
  reader.Text("fingerprint", Reader::kRequired, record.fingerprint);
  reader.Text("code_digest", Reader::kOptional, record.code_digest);
  reader.Text("job_id", Reader::kOptional, record.job_id);
  reader.Text("recorded_at", Reader::kOptional, record.recorded_at);
  const Json* protocol = reader.Object("protocol", Reader::kRequired);
  TF_RETURN_IF_ERROR(reader.status());

  Reader inner(*protocol, absl::StrCat(prefix, "protocol."));
  inner.Bool("cold_cache", Reader::kRequired, record.protocol.cold_cache);
  inner.Integer("cores", Reader::kRequired, record.protocol.cores);
  inner.Text("layout", Reader::kRequired, record.protocol.layout);
  TF_RETURN_IF_ERROR(inner.status());

  const std::optional<Status> parsed = ParseStatus(status);
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key \"", prefix, "status\": unknown status \"", status, "\""));
  }
  record.status = *parsed;
  return absl::OkStatus();
}

}  // namespace

std::string_view StatusName(Status status) {
  return kStatusNames[static_cast<size_t>(status)];
}

std::string LibraryOf(std::string_view trace) {
  // As Trace::Print writes it: sch.call_library(block=b0, kernel="NAME").
  constexpr std::string_view kCall = ".call_library(";
  std::vector<std::string> names;
  for (size_t at = trace.find(kCall); at != std::string_view::npos;
       at = trace.find(kCall, at + 1)) {
    const std::string_view line = trace.substr(at, trace.find('\n', at) - at);
    const size_t begin = line.find('"');
    const size_t end = line.find('"', begin + 1);
    if (begin == std::string_view::npos || end == std::string_view::npos) {
      continue;
    }
    std::string name(line.substr(begin + 1, end - begin - 1));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return absl::StrJoin(names, ",");
}

std::optional<Status> ParseStatus(std::string_view name) {
  for (size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == name) return static_cast<Status>(i);
  }
  return std::nullopt;
}

bool Record::unsteady() const {
  if (device_state.find("unsteady") == std::string::npos) return false;
  const Json state = ParseJson<Json>(device_state);
  return state.is_object() && state.value("unsteady", Json()) == Json(true);
}

std::string RecordToJson(const Record& record) {
  std::string out;
  out.reserve(2048 + record.program.size() + record.trace.size());
  Writer writer(out);
  writer.Text("workload", record.workload_hash);
  writer.Text("program", record.program);
  writer.Text("target", record.target);
  writer.Text("trace", record.trace);
  WriteMeasured(record, writer, out);
  writer.Text("device_model", record.device_model);
  writer.Text("candidate_id", record.candidate_id);
  writer.Text("model_score", record.model_score);
  // Written for readers of the file; reading it back is not necessary, because
  // it follows from the trace.
  const std::string library = record.library();
  if (!library.empty()) writer.Text("library", library);
  writer.Integer("sequence", record.sequence);
  if (!record.remeasured.empty()) {
    writer.Key("remeasured");
    char separator = '[';
    for (const Record& measured : record.remeasured) {
      out += separator;
      separator = ',';
      Writer inner(out);
      WriteMeasured(measured, inner, out);
      inner.End();
    }
    out += ']';
  }
  writer.End();
  return out;
}

absl::StatusOr<Record> RecordFromJson(std::string_view text) {
  if (std::optional<Record> usual = ReadUsualLine(text))
    return *std::move(usual);
  const Json json = ParseJson<Json>(text);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError("the line is not valid JSON");
  }
  if (!json.is_object()) {
    return absl::InvalidArgumentError("the line is not a JSON object");
  }
  Record record;
  Reader reader(json);
  reader.Text("workload", Reader::kRequired, record.workload_hash);
  reader.Text("program", Reader::kRequired, record.program);
  reader.Text("target", Reader::kRequired, record.target);
  reader.Text("trace", Reader::kRequired, record.trace);
  reader.Text("device_model", Reader::kOptional, record.device_model);
  reader.Text("candidate_id", Reader::kRequired, record.candidate_id);
  reader.Text("model_score", Reader::kOptional, record.model_score);
  reader.Integer("sequence", Reader::kOptional, record.sequence);
  const Json* remeasured = reader.Array("remeasured", Reader::kOptional);
  TF_RETURN_IF_ERROR(reader.status());
  TF_RETURN_IF_ERROR(MeasuredFromJson(json, "", record));
  if (remeasured == nullptr) return record;
  for (const Json& element : *remeasured) {
    const std::string at =
        absl::StrCat("remeasured[", record.remeasured.size(), "]");
    if (!element.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("key \"", at, "\" is not an object"));
    }
    TF_RETURN_IF_ERROR(MeasuredFromJson(element, absl::StrCat(at, "."),
                                        record.remeasured.emplace_back()));
  }
  return record;
}

}  // namespace tilefarm::database
