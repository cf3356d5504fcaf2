// What `tune regress` prints, runs and sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/time/clock.h"
#include "base/mutex.h"
#include "server/cli/regress_history.h"
#include "server/cli/regress_model.h"
#include "server/cli/regress_output.h"
#include "server/cli/run_program.h"
#include "server/cli/webhook_sender.h"
#include "tests/support/http_receiver.h"

namespace tilefarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeaderOf;
using ::testing::IsEmpty;
using testing::Receiver;

// --- Signatures of models ---

TEST(ModelSignatureTest, ComesBackFromItsText) {
  v1::ModelSignature model;
  model.add_inputs()->set_dtype("float32");
  model.mutable_inputs(0)->set_elements(1024);
  model.add_inputs()->set_dtype("int8");
  model.mutable_inputs(1)->set_elements(1);
  model.add_outputs()->set_dtype("float16");
  model.mutable_outputs(0)->set_elements(7);
  const std::string text = SignatureText(model);
  EXPECT_EQ(text, R"({"inputs":[["float32",1024],["int8",1]],)"
                  R"("outputs":[["float16",7]]})");
  EXPECT_TRUE(IsSignature(text));
  const auto parsed = ParseSignature(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->SerializeAsString(), model.SerializeAsString());
}

TEST(ModelSignatureTest, OtherTextIsRefused) {
  EXPECT_FALSE(IsSignature("@T.prim_func"));
  EXPECT_FALSE(IsSignature(""));
  for (const char* text :
       {"", "{", "{}", R"({"inputs":[],"outputs":1})",
        R"({"inputs":[["float32"]],"outputs":[]})",
        R"({"inputs":[["float32",-1]],"outputs":[]})",
        R"({"inputs":[[1,1]],"outputs":[]})", R"([["float32",1]])"}) {
    EXPECT_FALSE(ParseSignature(text).ok()) << text;
  }
}

// --- Histories ---

v1::HistoryPoint Point(const std::string& commit, double seconds) {
  v1::HistoryPoint point;
  point.set_series("s");
  point.set_benchmark("conv");
  point.set_device_class("cpu");
  point.set_branch("main");
  point.set_commit(commit);
  point.set_at("2026-01-02T03:04:05Z");
  point.set_device("w");
  point.set_seconds(seconds);
  return point;
}

SeriesHistory Series(const std::vector<double>& times) {
  SeriesHistory series;
  for (size_t i = 0; i < times.size(); ++i) {
    series.points.push_back(Point("c" + std::to_string(i), times[i]));
  }
  return series;
}

TEST(RegressHistoryTest, HistoriesAreSplitIntoSeries) {
  History history;
  history.points = {Point("a", 1), Point("b", 1)};
  history.points[1].set_branch("feature");
  v1::Acknowledgement ack;
  ack.set_benchmark("conv");
  ack.set_branch("main");
  ack.set_commit("a");
  history.acknowledgements = {ack};
  ack.set_device_class("gpu");
  history.acknowledgements.push_back(ack);
  const auto series = SplitSeries(history);
  ASSERT_EQ(series.size(), 2u);
  const SeriesHistory& main =
      series.at({.benchmark = "conv", .device_class = "cpu", .branch = "main"});
  EXPECT_EQ(main.points.size(), 1u);
  EXPECT_EQ(main.acknowledgements.size(), 1u) << "of every class, or its own";
}

TEST(RegressHistoryTest, TheBaselineIsTheNewestPointOfItsLevel) {
  EXPECT_EQ(*BaselineOf(SeriesHistory(), 0.03), nullptr);
  SeriesHistory series = Series({1.0, 1.001, 0.999, 1.0, 1.0, 1.001, 0.999, 1.0,
                                 1.3, 1.301, 1.299, 1.3, 1.3, 1.301, 1.3, 1.3});
  const auto before = BaselineOf(series, 0.03);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ((*before)->commit(), "c7");
  v1::Acknowledgement ack;
  ack.set_commit("c8");
  series.acknowledgements = {ack};
  EXPECT_EQ((*BaselineOf(series, 0.03))->commit(), "c15");
}

// Too few points for a change of level.
TEST(RegressHistoryTest, ARegressionDoesNotBecomeTheBaseline) {
  SeriesHistory series = Series({1.0, 1.3, 1.3, 1.3});
  for (size_t i = 1; i < 4; ++i) {
    series.points[i].set_verdict("slower");
    series.points[i].set_baseline_commit("c0");
  }
  EXPECT_EQ((*BaselineOf(series, 0.03))->commit(), "c0");
  v1::Acknowledgement ack;
  ack.set_commit("c1");
  series.acknowledgements = {ack};
  EXPECT_EQ((*BaselineOf(series, 0.03))->commit(), "c3");
  // One since then.
  series.points[3].set_baseline_commit("c2");
  EXPECT_EQ((*BaselineOf(series, 0.03))->commit(), "c2");
}

TEST(RegressHistoryTest, JsonHasItsShape) {
  std::map<regression::SeriesKey, SeriesHistory> all;
  const regression::SeriesKey key = {
      .benchmark = "conv", .device_class = "cpu", .branch = "main"};
  all[key] = Series({0.5});
  all[key].points[0].set_ratio_high(std::numeric_limits<double>::infinity());
  std::map<regression::SeriesKey, regression::SeriesAnalysis> analyses;
  analyses[key] = *all[key].Analyse({});
  EXPECT_EQ(HistoryJson(all, analyses).dump(),
            R"([{"benchmark":"conv","device_class":"cpu","branch":"main",)"
            R"("baseline_commit":"c0","baseline_seconds":0.5,)"
            R"("current_ratio":1.0,"changes":[],"acknowledgements":[],)"
            R"("points":[{"id":0,"series":"s","benchmark":"conv",)"
            R"("device_class":"cpu","branch":"main","commit":"c0",)"
            R"("at":"2026-01-02T03:04:05Z","device":"w","seconds":0.5,)"
            R"("low_seconds":0.0,"high_seconds":0.0,"ratio":0.0,)"
            R"("ratio_low":0.0,"ratio_high":null,"clusters":0,"verdict":"",)"
            R"("baseline_commit":"","canary_seconds":0.0,"unsteady":false,)"
            R"("artifact":"","fingerprint":"","user":""}]}])");
  EXPECT_THAT(HistoryText(all, analyses), HasSubstr("conv on cpu"));
  EXPECT_EQ(HistoryText({}, {}), "no points\n");
}

TEST(RegressReportTest, TextNamesTheWorstFirstAndTheGate) {
  regression::Report report;
  report.results.resize(2);
  report.results[0].benchmark = "same";
  report.results[0].outcome.verdict = regression::Verdict::kSame;
  report.results[1].benchmark = "slow";
  report.results[1].outcome = {.verdict = regression::Verdict::kSlower,
                               .confirmed = true,
                               .ratio = {.ratio = 1.1,
                                         .low = 1.05,
                                         .high = 1.15,
                                         .level = 0.99,
                                         .clusters = 20}};
  const std::string text = ReportText(report);
  EXPECT_LT(text.find("slow"), text.find("same"));
  EXPECT_THAT(text, HasSubstr("+10.0 %"));
  EXPECT_THAT(text, HasSubstr("regression"));
}

// --- Programs ---

TEST(RunProgramTest, ReturnsTheOutput) {
  const auto output = RunProgram({.argv = {"sh", "-c", "pwd; echo $NAME; cat"},
                                  .folder = "/",
                                  .environment = {"NAME=value"}});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(*output, "/\nvalue\n");
}

TEST(RunProgramTest, EnvironmentVariablesAreReplaced) {
  setenv("TILEFARM_TEST_VARIABLE", "old", 1);
  const auto output =
      RunProgram({.argv = {"sh", "-c", "echo $TILEFARM_TEST_VARIABLE"},
                  .environment = {"TILEFARM_TEST_VARIABLE=new"}});
  EXPECT_EQ(output.value_or(""), "new\n");
}

TEST(RunProgramTest, FailuresAreToldApart) {
  EXPECT_TRUE(
      absl::IsNotFound(RunProgram({.argv = {"/no/such/program"}}).status()));
  const absl::Status failed =
      RunProgram({.argv = {"sh", "-c", "exit 3"}}).status();
  EXPECT_TRUE(absl::IsAborted(failed));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("status 3"));
  EXPECT_THAT(
      std::string(
          RunProgram({.argv = {"sh", "-c", "kill -9 $$"}}).status().message()),
      HasSubstr("SIGKILL"));
  EXPECT_TRUE(absl::IsInvalidArgument(RunProgram({}).status()));
}

TEST(RunProgramTest, AHangingProgramIsKilledWithItsChildren) {
  const absl::Status status =
      RunProgram({.argv = {"sh", "-c", "sleep 1000 & sleep 1000"},
                  .limit = absl::Milliseconds(200)})
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(RunProgramTest, EndlessOutputIsRefused) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      RunProgram({.argv = {"yes"}, .limit = absl::Minutes(2)}).status()));
}

// --- Webhooks ---

WebhookDelivery DeliveryTo(const std::string& url,
                           std::vector<absl::Duration>& delays) {
  return {.url = url,
          .secret = "secret",
          .body = R"({"text":"slower"})",
          .retries = {},
          .attempt_limit = absl::Seconds(20),
          .sleep = [&](absl::Duration delay) { delays.push_back(delay); }};
}

TEST(WebhookTest, ANotificationIsSigned) {
  Receiver receiver({"200 OK\r\n"});
  std::vector<absl::Duration> delays;
  const WebhookDelivery delivery = DeliveryTo(receiver.url(), delays);
  ASSERT_TRUE(Deliver(delivery).ok());
  ASSERT_EQ(receiver.requests().size(), 1u);
  const std::string& request = receiver.requests()[0];
  EXPECT_THAT(request, HasSubstr("POST /hook HTTP/1.1"));
  EXPECT_TRUE(request.ends_with(delivery.body)) << request;
  EXPECT_FALSE(HeaderOf(request, regression::kDeliveryHeader).empty());
  EXPECT_TRUE(regression::CheckWebhookSignature(
                  "secret", HeaderOf(request, regression::kSignatureHeader),
                  delivery.body, absl::Now())
                  .ok());
  EXPECT_THAT(delays, IsEmpty());
}

TEST(WebhookTest, BusyReceiversAreAskedAgainWithTheSameDelivery) {
  Receiver receiver(
      {"503 Busy\r\nRetry-After: 7\r\n", "500 Oops\r\n", "204 No Content\r\n"});
  std::vector<absl::Duration> delays;
  ASSERT_TRUE(Deliver(DeliveryTo(receiver.url(), delays)).ok());
  const auto& requests = receiver.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(HeaderOf(requests[0], regression::kDeliveryHeader),
            HeaderOf(requests[2], regression::kDeliveryHeader));
  ASSERT_EQ(delays.size(), 2u);
  EXPECT_GE(delays[0], absl::Seconds(7) * 0.8);
}

TEST(WebhookTest, RefusalsAndRedirectionsAreNotRepeated) {
  for (const char* answer :
       {"403 No\r\n", "302 Found\r\nLocation: http://127.0.0.1:1/\r\n"}) {
    Receiver receiver({answer});
    std::vector<absl::Duration> delays;
    const absl::Status status = Deliver(DeliveryTo(receiver.url(), delays));
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(receiver.requests().size(), 1u);
  }
}

TEST(WebhookTest, NobodyThereIsGivenUp) {
  std::vector<absl::Duration> delays;
  const absl::Status status = Deliver(DeliveryTo("http://127.0.0.1:1", delays));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(delays.size(), 5u);
  EXPECT_TRUE(absl::IsInvalidArgument(
      Deliver(DeliveryTo("file:///etc/passwd", delays))));
}

}  // namespace
}  // namespace tilefarm::cli
