#include "server/spans/otlp.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "server/spans/life_spans.h"

namespace tilefarm::spans {
namespace {

using Json = nlohmann::ordered_json;

// Hexadecimal digits.
constexpr size_t kTraceDigits = 32;
constexpr size_t kSpanDigits = 16;
// Numbers of the protocol.
constexpr int kInternalSpan = 1;
constexpr int kErrorStatus = 2;

Json Attribute(const char* key, const std::string& value) {
  return {{"key", key}, {"value", {{"stringValue", value}}}};
}

// 64-bit numbers are texts in the JSON of protocol buffers.
std::string Nanoseconds(absl::Time at) {
  return absl::StrCat(absl::ToUnixNanos(at));
}

std::string TraceId(const Sender& sender, const JobLife& one) {
  const jobs::LoggedLife& life = one.life;
  return Sha256Hex(absl::StrCat(sender.instance, "\n", one.job_id, "\n",
                                life.candidate_id, "\n", life.purpose, "\n",
                                absl::ToUnixMicros(life.stored)))
      .substr(0, kTraceDigits);
}

std::string SpanId(const std::string& trace, const char* name) {
  return Sha256Hex(absl::StrCat(trace, "\n", name)).substr(0, kSpanDigits);
}

void AddSpans(const Sender& sender, const JobLife& one, Json& spans) {
  const jobs::LoggedLife& life = one.life;
  const std::string trace = TraceId(sender, one);
  std::string root;
  for (const LifeSpan& span : SpansOf(life)) {
    const std::string id = SpanId(trace, span.name);
    Json json = {{"traceId", trace},
                 {"spanId", id},
                 {"name", span.name},
                 {"kind", kInternalSpan},
                 {"startTimeUnixNano", Nanoseconds(span.from)},
                 {"endTimeUnixNano", Nanoseconds(span.to)}};
    if (root.empty()) {
      root = id;
      json["attributes"] = {Attribute("tilefarm.job", one.job_id),
                            Attribute("tilefarm.candidate", life.candidate_id),
                            Attribute("tilefarm.purpose", life.purpose),
                            Attribute("tilefarm.status", life.status),
                            Attribute("tilefarm.device", life.device)};
      if (life.status != "ok") {
        json["status"] = {{"code", kErrorStatus}, {"message", life.status}};
      }
    } else {
      json["parentSpanId"] = root;
    }
    spans.push_back(std::move(json));
  }
}

}  // namespace

std::string ExportRequest(const Sender& sender,
                          std::span<const JobLife> lives) {
  Json spans = Json::array();
  for (const JobLife& one : lives) AddSpans(sender, one, spans);
  const Json request = {
      {"resourceSpans",
       Json::array(
           {{{"resource",
              {{"attributes",
                {Attribute("service.name", "tilefarm"),
                 Attribute("service.version", sender.release),
                 Attribute("service.instance.id", sender.instance)}}}},
             {"scopeSpans",
              Json::array({{{"scope", {{"name", "tilefarm.candidates"}}},
                            {"spans", std::move(spans)}}})}}})}};
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tilefarm::spans
