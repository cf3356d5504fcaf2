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

namespace tilefarm::database {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kStatusNames = {
    "ok",        "invalid_schedule", "compile_error", "compile_timeout",
    "run_error", "run_timeout",      "wrong_result",  "device_lost",
};

// JSON has no infinities, and the error of a wrong result is often infinite.
Json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

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
void MeasuredToJson(const Record& record, Json& json) {
  Json seconds = Json::array();
  for (const double value : record.seconds) {
    seconds.push_back(NumberToJson(value));
  }
  json["device"] = record.device;
  json["status"] = std::string(StatusName(record.status));
  json["seconds"] = std::move(seconds);
  json["median_seconds"] = NumberToJson(record.median_seconds);
  json["ci_low_seconds"] = NumberToJson(record.ci_low_seconds);
  json["ci_high_seconds"] = NumberToJson(record.ci_high_seconds);
  json["verified"] = record.verified;
  json["max_abs_error"] = NumberToJson(record.max_abs_error);
  json["max_rel_error"] = NumberToJson(record.max_rel_error);
  json["stopped_early"] = record.stopped_early;
  json["emulated"] = record.emulated;
  json["protocol"] = {{"cold_cache", record.protocol.cold_cache},
                      {"cores", record.protocol.cores},
                      {"layout", record.protocol.layout}};
  json["error"] = record.error;
  json["compile_seconds"] = NumberToJson(record.compile_seconds);
  json["device_state"] = record.device_state;
  json["isolation"] = record.isolation;
  json["fingerprint"] = record.fingerprint;
  json["code_digest"] = record.code_digest;
  json["job_id"] = record.job_id;
  json["recorded_at"] = record.recorded_at;
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
  Json json;
  json["workload"] = record.workload_hash;
  json["program"] = record.program;
  json["target"] = record.target;
  json["trace"] = record.trace;
  MeasuredToJson(record, json);
  json["device_model"] = record.device_model;
  json["candidate_id"] = record.candidate_id;
  json["model_score"] = record.model_score;
  // Written for readers of the file; reading it back is not necessary, because
  // it follows from the trace.
  const std::string library = record.library();
  if (!library.empty()) json["library"] = library;
  json["sequence"] = record.sequence;
  if (!record.remeasured.empty()) {
    Json& remeasured = json["remeasured"] = Json::array();
    for (const Record& measured : record.remeasured) {
      MeasuredToJson(measured, remeasured.emplace_back(Json::object()));
    }
  }
  // An error message may quote bytes that are not UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Record> RecordFromJson(std::string_view text) {
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
