#include "server/regression/webhook.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hmac.h"
#include "server/regression/ratio_text.h"
#include "server/regression/report_text.h"

namespace tilefarm::regression {
namespace {

using Json = nlohmann::ordered_json;

// Slack takes 3,000 characters in a section and 150 in a header.
constexpr size_t kMostSectionBytes = 2900;
constexpr size_t kMostHeaderBytes = 140;
constexpr size_t kMostNamed = 10;

// The three characters that Slack's markup reserves.
std::string SlackText(std::string_view text) {
  return absl::StrReplaceAll(ValidUtf8(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Line(const BenchmarkResult& result) {
  std::string line = absl::StrCat(
      "\u2022 ", SlackText(Shortened(ValidUtf8(result.benchmark), 100)));
  if (result.comparison == Comparison::kCompared &&
      result.outcome.ratio.clusters > 0) {
    absl::StrAppend(&line, " ", ChangeText(result.outcome.ratio.ratio), " (",
                    IntervalText(result.outcome.ratio), ")");
  }
  const std::string& cause = result.attribution.has_value()
                                 ? result.attribution->text
                                 : result.remark();
  if (!cause.empty()) {
    absl::StrAppend(&line, ": ", SlackText(Shortened(ValidUtf8(cause), 150)));
  }
  return line;
}

Json Section(std::string text) {
  Json block;
  block["type"] = "section";
  block["text"]["type"] = "mrkdwn";
  block["text"]["text"] = Shortened(std::move(text), kMostSectionBytes);
  return block;
}

// Regressions and what has no verdict.
std::vector<std::string> WorstLines(const Report& report) {
  std::vector<std::string> lines;
  size_t bad = 0;
  for (const BenchmarkResult* result : WorstFirst(report.results)) {
    if (!result->regressed() && !result->open()) continue;
    if (++bad <= kMostNamed) lines.push_back(Line(*result));
  }
  if (bad > kMostNamed) {
    lines.push_back(absl::StrCat("and ", bad - kMostNamed, " more"));
  }
  return lines;
}

// The value of "KEY=" in a signature.
std::string Part(std::string_view signature, const char* key) {
  const absl::string_view text(signature.data(), signature.size());
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (absl::ConsumePrefix(&part, key) && absl::ConsumePrefix(&part, "=")) {
      return std::string(part);
    }
  }
  return "";
}

// In a time that depends on the lengths only.
bool Equals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

std::string Digest(std::string_view secret, int64_t seconds,
                   std::string_view body) {
  std::string text = absl::StrCat(seconds, ".");
  text.append(body);
  return HmacSha256Hex(secret, text);
}

bool IsRetried(int status) {
  return status == 0 || status == 408 || status == 425 || status == 429 ||
         (status >= 500 && status <= 599);
}

// The header's delay; none if it has none or is neither seconds nor a date.
std::optional<absl::Duration> RetryAfter(const std::string& text,
                                         absl::Time now) {
  int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) {
    if (seconds < 0) return std::nullopt;
    return absl::Seconds(seconds);
  }
  absl::Time at;
  if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &at, nullptr)) {
    return std::max(at - now, absl::ZeroDuration());
  }
  return std::nullopt;
}

}  // namespace

std::string WebhookBody(const Report& report, WebhookFormat format) {
  const std::string summary = GateSummary(report.results);
  Json header;
  header["type"] = "header";
  header["text"]["type"] = "plain_text";
  header["text"]["text"] =
      Shortened(absl::StrCat(ValidUtf8(report.suite), ": ",
                             std::string(GateName(report.gate()))),
                kMostHeaderBytes);
  Json blocks = Json::array();
  blocks.push_back(std::move(header));
  blocks.push_back(Section(absl::StrCat(
      SlackText(summary), "\n",
      SlackText(report.branch.empty()
                    ? report.candidate
                    : absl::StrCat(report.branch, " ", report.candidate)),
      " against ", SlackText(report.baseline))));
  const std::vector<std::string> lines = WorstLines(report);
  if (!lines.empty()) blocks.push_back(Section(absl::StrJoin(lines, "\n")));
  if (IsLink(report.link)) {
    blocks.push_back(
        Section(absl::StrCat("<", SlackText(report.link), "|Details>")));
  }
  Json body;
  body["text"] =
      Shortened(absl::StrCat(SlackText(report.suite), ": ", SlackText(summary)),
                kMostSectionBytes);
  body["blocks"] = std::move(blocks);
  if (format == WebhookFormat::kReport) body["report"] = ReportJson(report);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string WebhookSignature(std::string_view secret, absl::Time now,
                             std::string_view body) {
  const int64_t seconds = absl::ToUnixSeconds(now);
  return absl::StrCat("t=", seconds, ",v1=", Digest(secret, seconds, body));
}

absl::Status CheckWebhookSignature(std::string_view secret,
                                   std::string_view signature,
                                   std::string_view body, absl::Time now,
                                   absl::Duration tolerance) {
  int64_t seconds = 0;
  const std::string digest = Part(signature, "v1");
  if (!absl::SimpleAtoi(Part(signature, "t"), &seconds) || digest.empty()) {
    return absl::UnauthenticatedError(
        "the signature is not t=SECONDS,v1=DIGEST");
  }
  if (!Equals(digest, Digest(secret, seconds, body))) {
    return absl::UnauthenticatedError("the signature is wrong");
  }
  if (absl::AbsDuration(now - absl::FromUnixSeconds(seconds)) > tolerance) {
    return absl::UnauthenticatedError(
        "the signature's time is too far from now");
  }
  return absl::OkStatus();
}

std::optional<absl::Duration> WebhookRetryDelay(int attempts,
                                                const WebhookAttempt& attempt,
                                                absl::Time now, double uniform,
                                                const WebhookRetries& retries) {
  if (attempts >= retries.most_attempts || !IsRetried(attempt.status)) {
    return std::nullopt;
  }
  const absl::Duration delay =
      std::min(retries.first_delay * std::pow(retries.factor, attempts - 1),
               retries.longest_delay);
  const absl::Duration jittered = delay * (1 - 0.2 * uniform);
  const std::optional<absl::Duration> asked =
      RetryAfter(attempt.retry_after, now);
  if (!asked.has_value()) return jittered;
  return std::max(jittered, std::min(*asked, retries.longest_delay));
}

}  // namespace tilefarm::regression
