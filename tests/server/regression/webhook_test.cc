#include "server/regression/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/hmac.h"
#include "tests/server/regression/results.h"

namespace tilefarm::regression {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

Report ReportOf(std::vector<BenchmarkResult> results) {
  Report report;
  report.suite = "kernels";
  report.baseline = "main";
  report.candidate = "abc123";
  report.branch = "feature";
  report.at = kNow;
  report.results = std::move(results);
  report.link = "https://ci/run/1";
  return report;
}

TEST(WebhookTest, SlackGetsTextAndBlocks) {
  const Json body = Json::parse(WebhookBody(
      ReportOf({Slower("conv<2>d", 1.051), Same("a")}), WebhookFormat::kSlack));
  EXPECT_EQ(body["text"], "kernels: regression: conv&lt;2&gt;d +5.1 %");
  EXPECT_EQ(body.size(), 2u);
  ASSERT_EQ(body["blocks"].size(), 4u);
  EXPECT_EQ(body["blocks"][0]["type"], "header");
  EXPECT_EQ(body["blocks"][0]["text"]["text"], "kernels: regression");
  EXPECT_EQ(body["blocks"][1]["text"]["type"], "mrkdwn");
  EXPECT_THAT(body["blocks"][1]["text"]["text"].get<std::string>(),
              HasSubstr("feature abc123 against main"));
  const std::string lines = body["blocks"][2]["text"]["text"];
  EXPECT_THAT(lines, HasSubstr("conv&lt;2&gt;d +5.1 %"));
  EXPECT_THAT(lines, Not(HasSubstr("\n")));  // nothing of what is unchanged
  EXPECT_EQ(body["blocks"][3]["text"]["text"], "<https://ci/run/1|Details>");
}

TEST(WebhookTest, OthersGetTheReportToo) {
  const Json body =
      Json::parse(WebhookBody(ReportOf({Same("a")}), WebhookFormat::kReport));
  EXPECT_EQ(body["report"]["gate"], "pass");
  EXPECT_EQ(body["report"]["benchmarks"][0]["benchmark"], "a");
  EXPECT_EQ(body["blocks"].size(), 3u);  // nothing bad to list
}

TEST(WebhookTest, SlacksLimitsAreKept) {
  std::vector<BenchmarkResult> results;
  for (int i = 0; i < 200; ++i) {
    results.push_back(
        Slower(absl::StrCat(i, std::string(200, 'n')), 1.1 + 0.001 * i));
    results.back().note = std::string(5000, '&');
  }
  Report report = ReportOf(std::move(results));
  report.suite = std::string(4000, 's');
  report.branch = std::string(4000, '<');
  const Json body = Json::parse(WebhookBody(report, WebhookFormat::kSlack));
  EXPECT_LE(body["text"].get<std::string>().size(), 3000u);
  EXPECT_LE(body["blocks"].size(), 50u);
  EXPECT_LE(body["blocks"][0]["text"]["text"].get<std::string>().size(), 150u);
  for (size_t i = 1; i < body["blocks"].size(); ++i) {
    EXPECT_LE(body["blocks"][i]["text"]["text"].get<std::string>().size(),
              3000u);
  }
}

TEST(WebhookTest, TheBodyIsJsonWhateverTheNamesAre) {
  const std::string body =
      WebhookBody(ReportOf({Slower("a\xff\"\n", 1.2)}), WebhookFormat::kReport);
  EXPECT_FALSE(Json::parse(body, nullptr, false).is_discarded());
}

TEST(WebhookSignatureTest, SignsTimeAndBody) {
  const std::string signature = WebhookSignature("secret", kNow, "{}");
  EXPECT_EQ(signature, absl::StrCat("t=1700000000,v1=",
                                    HmacSha256Hex("secret", "1700000000.{}")));
  EXPECT_TRUE(CheckWebhookSignature("secret", signature, "{}", kNow).ok());
  EXPECT_TRUE(
      CheckWebhookSignature("secret", signature, "{}", kNow + absl::Minutes(4))
          .ok());
}

TEST(WebhookSignatureTest, RejectsWhatIsForgedOrOld) {
  const std::string signature = WebhookSignature("secret", kNow, "{}");
  const auto code = [](const absl::Status& status) { return status.code(); };
  const auto refused = absl::StatusCode::kUnauthenticated;
  EXPECT_EQ(code(CheckWebhookSignature("other", signature, "{}", kNow)),
            refused);
  EXPECT_EQ(code(CheckWebhookSignature("secret", signature, "{ }", kNow)),
            refused);
  // Another time with the same digest.
  std::string moved = signature;
  moved[3] = '8';
  EXPECT_EQ(code(CheckWebhookSignature("secret", moved, "{}", kNow)), refused);
  EXPECT_EQ(code(CheckWebhookSignature("secret", signature, "{}",
                                       kNow + absl::Minutes(6))),
            refused);
  EXPECT_EQ(code(CheckWebhookSignature("secret", signature, "{}",
                                       kNow - absl::Minutes(6))),
            refused);
  for (const char* bad : {"", "t=1", "v1=00", "t=x,v1=00", "garbage"}) {
    EXPECT_EQ(code(CheckWebhookSignature("secret", bad, "{}", kNow)), refused)
        << bad;
  }
}

std::optional<absl::Duration> Delay(int attempts, int status,
                                    const std::string& retry_after = "",
                                    double uniform = 0) {
  return WebhookRetryDelay(attempts, {status, retry_after}, kNow, uniform);
}

TEST(WebhookRetryTest, WaitsLongerEachTimeAndGivesUp) {
  EXPECT_EQ(Delay(1, 0), absl::Seconds(2));
  EXPECT_EQ(Delay(2, 503), absl::Seconds(8));
  EXPECT_EQ(Delay(3, 500), absl::Seconds(32));
  EXPECT_EQ(Delay(5, 429), absl::Seconds(512));
  EXPECT_EQ(Delay(6, 503), std::nullopt);
  // Half of the range of the jitter, which is a fifth.
  EXPECT_EQ(Delay(1, 0, "", 0.5), absl::Milliseconds(1800));
}

TEST(WebhookRetryTest, RefusalsAreFinal) {
  for (const int status : {200, 204, 301, 400, 401, 403, 404, 410, 422}) {
    EXPECT_EQ(Delay(1, status), std::nullopt) << status;
  }
  for (const int status : {0, 408, 425, 429, 500, 502, 503, 504}) {
    EXPECT_NE(Delay(1, status), std::nullopt) << status;
  }
}

TEST(WebhookRetryTest, HonoursRetryAfterWithinReason) {
  EXPECT_EQ(Delay(1, 429, "30"), absl::Seconds(30));
  EXPECT_EQ(Delay(1, 429, "1"), absl::Seconds(2));  // not sooner than planned
  EXPECT_EQ(Delay(1, 429, "86400"), absl::Minutes(10));
  EXPECT_EQ(Delay(1, 503, "Tue, 14 Nov 2023 22:14:20 GMT"), absl::Seconds(60));
  EXPECT_EQ(Delay(1, 503, "Tue, 14 Nov 2023 22:00:00 GMT"), absl::Seconds(2));
  EXPECT_EQ(Delay(1, 503, "soon"), absl::Seconds(2));
  EXPECT_EQ(Delay(1, 503, "-5"), absl::Seconds(2));
}

}  // namespace
}  // namespace tilefarm::regression
