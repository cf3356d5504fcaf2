// The lives of candidates as Chrome's trace and as OTLP, and their way to a
// collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/jobs/job_log.h"
#include "server/spans/chrome_trace.h"
#include "server/spans/exporter.h"
#include "server/spans/otlp.h"
#include "tests/support/http_receiver.h"
#include "tests/support/process.h"
#include "tests/support/until.h"

namespace tilefarm::spans {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HeaderOf;
using ::testing::Not;
using testing::Receiver;
using testing::TempDir;
using Json = nlohmann::ordered_json;

jobs::LoggedLife Life(const std::string& id, int start) {
  const auto at = [&](int ms) {
    return absl::UnixEpoch() + absl::Milliseconds(start + ms);
  };
  return {.candidate_id = id,
          .purpose = "trial",
          .device = "box@1",
          .status = "ok",
          .sampled = at(0),
          .queued = at(1),
          .leased = at(2),
          .building = at(3),
          .built = at(43),
          .running = at(50),
          .reported = at(60),
          .stored = at(65)};
}

TEST(ChromeTraceTest, SpansAreWhatHappened) {
  const Json trace =
      ChromeTrace("job-1", std::vector{Life("a", 0), Life("b", 10)});
  std::vector<int> build_lanes;
  int runs = 0, begins = 0, ends = 0;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "X" && event.at("name") == "build") {
      build_lanes.push_back(event.at("tid"));
      EXPECT_EQ(event.at("dur"), 40'000);
    }
    if (phase == "X" && event.at("name") == "run") {
      ++runs;
      EXPECT_EQ(event.at("tid"), 0);
      EXPECT_EQ(event.at("dur"), 10'000);
      EXPECT_EQ(event.at("args").at("device"), "box@1");
    }
    begins += phase == "b";
    ends += phase == "e";
  }
  // The builds overlap, so that each has a lane.
  EXPECT_THAT(build_lanes, ElementsAre(1, 2));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(begins, 16);
  EXPECT_EQ(ends, 16);
}

TEST(ChromeTraceTest, StagesThatWereNotReachedAreLeftOut) {
  jobs::LoggedLife life = Life("a", 0);
  life.building = life.built = life.running = absl::InfinitePast();
  const Json trace = ChromeTrace("job-1", {&life, 1});
  for (const Json& event : trace.at("traceEvents")) {
    EXPECT_NE(event.at("ph"), "X") << event.dump();
  }
  // The log has what the trace shows.
  life = Life("b", 5);
  const std::vector<std::string> lines = {
      jobs::ProposeLine("t", 1, std::vector<jobs::LoggedProposal>{{"b"}},
                        life.sampled),
      jobs::LivesLine({&life, 1})};
  const auto lives = jobs::ReadLives(lines);
  ASSERT_TRUE(lives.ok()) << lives.status();
  ASSERT_EQ(lives->size(), 1u);
  EXPECT_EQ(lives->front().sampled, life.sampled);
  EXPECT_EQ(lives->front().built, life.built);
  EXPECT_EQ(lives->front().stored, life.stored);
  EXPECT_EQ(lives->front().device, "box@1");
  const std::vector<std::string> damaged = {R"({"event":"lives"})"};
  EXPECT_EQ(jobs::ReadLives(damaged).status().code(),
            absl::StatusCode::kDataLoss);
}

Json SpansIn(const std::string& request) {
  const Json json = Json::parse(request);
  EXPECT_EQ(json.at("resourceSpans").size(), 1u);
  const Json& scopes = json.at("resourceSpans")[0].at("scopeSpans");
  EXPECT_EQ(scopes.size(), 1u);
  return scopes[0].at("spans");
}

std::map<std::string, std::string> TextsOf(const Json& attributes) {
  std::map<std::string, std::string> texts;
  for (const Json& one : attributes) {
    texts[one.at("key")] = one.at("value").at("stringValue");
  }
  return texts;
}

TEST(OtlpTest, ALifeIsATrace) {
  const Sender sender{.release = "1.2", .instance = "base"};
  const std::vector<JobLife> lives = {{"job-1", Life("a", 7)},
                                      {"job-1", Life("b", 9)}};
  const std::string request = ExportRequest(sender, lives);
  const Json json = Json::parse(request);
  const auto resource =
      TextsOf(json.at("resourceSpans")[0].at("resource").at("attributes"));
  EXPECT_EQ(resource.at("service.name"), "tilefarm");
  EXPECT_EQ(resource.at("service.version"), "1.2");
  EXPECT_EQ(resource.at("service.instance.id"), "base");

  const Json spans = SpansIn(request);
  ASSERT_EQ(spans.size(), 16u);
  const Json& root = spans[0];
  EXPECT_EQ(root.at("name"), "candidate");
  EXPECT_EQ(root.at("traceId").get<std::string>().size(), 32u);
  EXPECT_EQ(root.at("spanId").get<std::string>().size(), 16u);
  EXPECT_FALSE(root.contains("parentSpanId"));
  EXPECT_FALSE(root.contains("status"));
  EXPECT_EQ(root.at("startTimeUnixNano"), "7000000");
  EXPECT_EQ(root.at("endTimeUnixNano"), "72000000");
  const auto facts = TextsOf(root.at("attributes"));
  EXPECT_EQ(facts.at("tilefarm.job"), "job-1");
  EXPECT_EQ(facts.at("tilefarm.candidate"), "a");
  EXPECT_EQ(facts.at("tilefarm.device"), "box@1");
  std::set<std::string> ids;
  for (size_t i = 0; i < spans.size(); ++i) {
    ids.insert(spans[i].at("spanId"));
    if (i >= 8) continue;
    EXPECT_EQ(spans[i].at("traceId"), root.at("traceId"));
    if (i == 0) continue;
    EXPECT_EQ(spans[i].at("parentSpanId"), root.at("spanId"));
  }
  EXPECT_EQ(ids.size(), 16u);
  EXPECT_NE(spans[8].at("traceId"), root.at("traceId"));
  // One that is sent twice has the same ids.
  EXPECT_EQ(ExportRequest(sender, lives), request);
}

// Reads a request as a collector does, by the schema of the protocol's JSON
// (opentelemetry/proto/trace/v1/trace.proto): unknown fields and wrong types
// are errors. Returns the spans by trace.
class Collector {
 public:
  static std::map<std::string, std::vector<Json>> Read(
      const std::string& text) {
    Collector reader;
    const Json request = Json::parse(text);
    reader.Object(request, {"resourceSpans"});
    for (const Json& resource : request.at("resourceSpans")) {
      reader.Object(resource, {"resource", "scopeSpans"});
      reader.Object(resource.at("resource"), {"attributes"});
      reader.Attributes(resource.at("resource").at("attributes"));
      for (const Json& scope : resource.at("scopeSpans")) {
        reader.Object(scope, {"scope", "spans"});
        reader.Object(scope.at("scope"), {"name", "version"});
        for (const Json& span : scope.at("spans")) reader.Span(span);
      }
    }
    return reader.traces_;
  }

 private:
  void Object(const Json& json, const std::set<std::string>& known) {
    ASSERT_TRUE(json.is_object()) << json;
    for (const auto& [key, value] : json.items()) {
      EXPECT_TRUE(known.contains(key)) << key;
    }
  }
  void Attributes(const Json& attributes) {
    for (const Json& one : attributes) {
      Object(one, {"key", "value"});
      EXPECT_FALSE(one.at("key").get<std::string>().empty());
      Object(one.at("value"), {"stringValue"});
      EXPECT_TRUE(one.at("value").at("stringValue").is_string());
    }
  }
  static void Id(const Json& id, size_t digits) {
    const auto text = id.get<std::string>();
    EXPECT_EQ(text.size(), digits);
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_NE(text.find_first_not_of('0'), std::string::npos);
  }
  // fixed64: decimal digits in a text.
  static uint64_t Nanoseconds(const Json& at) {
    const auto text = at.get<std::string>();
    EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    return std::stoull(text);
  }
  void Span(const Json& span) {
    Object(span,
           {"traceId", "spanId", "parentSpanId", "name", "kind",
            "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"});
    Id(span.at("traceId"), 32);
    Id(span.at("spanId"), 16);
    if (span.contains("parentSpanId")) Id(span.at("parentSpanId"), 16);
    EXPECT_TRUE(span.at("kind").is_number_integer());
    EXPECT_LE(Nanoseconds(span.at("startTimeUnixNano")),
              Nanoseconds(span.at("endTimeUnixNano")));
    if (span.contains("attributes")) Attributes(span.at("attributes"));
    if (span.contains("status")) {
      Object(span.at("status"), {"code", "message"});
      EXPECT_TRUE(span.at("status").at("code").is_number_integer());
    }
    traces_[span.at("traceId")].push_back(span);
  }

  std::map<std::string, std::vector<Json>> traces_;
};

TEST(OtlpTest, RequestsFollowTheSchema) {
  jobs::LoggedLife odd = Life("b \"\n\xff", 5);  // not UTF-8
  odd.status = "run_error";
  odd.device = "";
  jobs::LoggedLife short_one = Life("c", 1);
  short_one.sampled = short_one.queued = short_one.leased = short_one.building =
      short_one.built = short_one.running = absl::InfinitePast();
  const std::vector<JobLife> lives = {
      {"job-1", Life("a", 0)}, {"job-1", odd}, {"job-2", short_one}};
  const auto traces = Collector::Read(ExportRequest({}, lives));
  ASSERT_EQ(traces.size(), 3u);
  for (const auto& [id, spans] : traces) {
    // One root, and all others below it and within its time.
    std::map<std::string, Json> by_id;
    for (const Json& span : spans) by_id[span.at("spanId")] = span;
    EXPECT_EQ(by_id.size(), spans.size());
    EXPECT_FALSE(spans[0].contains("parentSpanId"));
    for (size_t i = 1; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].at("parentSpanId"), spans[0].at("spanId"));
      EXPECT_GE(
          std::stoull(spans[i].at("startTimeUnixNano").get<std::string>()),
          std::stoull(spans[0].at("startTimeUnixNano").get<std::string>()));
      EXPECT_LE(std::stoull(spans[i].at("endTimeUnixNano").get<std::string>()),
                std::stoull(spans[0].at("endTimeUnixNano").get<std::string>()));
    }
  }
}

TEST(OtlpTest, FailuresAreMarkedAndWhatDidNotHappenIsLeftOut) {
  jobs::LoggedLife life = Life("a", 0);
  life.status = "compile_error";
  life.built = life.running = absl::InfinitePast();
  const std::vector<JobLife> lives = {{"job-1", life}};
  const Json spans = SpansIn(ExportRequest({}, lives));
  EXPECT_EQ(spans[0].at("status").at("code"), 2);
  EXPECT_EQ(spans[0].at("status").at("message"), "compile_error");
  std::vector<std::string> names;
  for (const Json& span : spans) names.push_back(span.at("name"));
  EXPECT_THAT(names,
              ElementsAre("candidate", "sampled", "queued", "leased", "store"));
}

ExporterOptions Options(const std::string& url) {
  return {.url = url,
          .delay = absl::Milliseconds(1),
          .retries = {.most_attempts = 3,
                      .first_delay = absl::Milliseconds(1),
                      .factor = 2,
                      .longest_delay = absl::Milliseconds(5)}};
}

TEST(ExporterTest, LivesReachTheCollectorAfterItWasBusy) {
  Receiver receiver({"503 Busy\r\n", "200 OK\r\n"});
  TempDir dir;
  ExporterOptions options = Options(receiver.url());
  options.headers_file = dir.Write("headers",
                                   "# for the collector\n\n"
                                   "Authorization: Bearer secret\n");
  ASSERT_EQ(chmod(options.headers_file.c_str(), 0600), 0);
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  ASSERT_EQ(receiver.requests().size(), 2u);
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  EXPECT_EQ((*exporter)->figures().dropped, 0);
  const std::string& request = receiver.requests()[1];
  EXPECT_THAT(request, HasSubstr("POST /hook/v1/traces HTTP/1.1"));
  EXPECT_EQ(HeaderOf(request, "Content-Type"), "application/json");
  EXPECT_EQ(HeaderOf(request, "Authorization"), "Bearer secret");
  EXPECT_EQ(SpansIn(request.substr(request.find("\r\n\r\n") + 4)).size(), 8u);
}

TEST(ExporterTest, RetryAfterIsHonoured) {
  // Longer than the test waits, were it not bounded by the longest delay.
  Receiver receiver({"503 Busy\r\nRetry-After: 3600\r\n",
                     "429 Slow\r\nRetry-After: 0\r\n", "200 OK\r\n"});
  auto exporter = SpanExporter::Start(Options(receiver.url()), {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  // All three are the same request.
  ASSERT_EQ(receiver.requests().size(), 3u);
  EXPECT_EQ(receiver.requests()[0], receiver.requests()[2]);
}

TEST(ExporterTest, CollectorsThatCloseOrStallAreAskedAgain) {
  Receiver receiver({Receiver::kCloses, Receiver::kStalls, "200 OK\r\n"});
  ExporterOptions options = Options(receiver.url());
  options.attempt_limit = absl::Milliseconds(200);
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  EXPECT_EQ((*exporter)->figures().dropped, 0);
}

TEST(ExporterTest, AStalledCollectorIsGivenUp) {
  Receiver receiver({Receiver::kStalls, Receiver::kStalls, Receiver::kStalls});
  ExporterOptions options = Options(receiver.url());
  options.attempt_limit = absl::Milliseconds(50);
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().dropped == 1; }));
  EXPECT_EQ((*exporter)->figures().sent, 0);
}

TEST(ExporterTest, TheEndDoesNotWaitForAStalledCollector) {
  Receiver receiver({Receiver::kStalls, Receiver::kStalls});
  ExporterOptions options = Options(receiver.url());
  options.attempt_limit = absl::Hours(1);
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  ASSERT_TRUE(Until([&] { return receiver.taken() == 1; }));
  exporter->reset();  // returns; the second request is the last attempt
  EXPECT_EQ(receiver.requests().size(), 2u);
}

TEST(ExporterTest, SpansThatARefusalNamesAreNotSentAgain) {
  // What is refused in part counts as sent, as the protocol wants.
  Receiver receiver(
      {"200 OK\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":"
       "\"3\",\"errorMessage\":\"too old\"}}"});
  auto exporter = SpanExporter::Start(Options(receiver.url()), {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  ::testing::internal::CaptureStderr();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  exporter->reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the collector refuses spans: too old"));
  EXPECT_EQ(receiver.requests().size(), 1u);
}

TEST(ExporterTest, TroubleIsLoggedOnce) {
  Receiver receiver({"400 Bad\r\n", "500 Bad\r\n", "200 OK\r\n"});
  auto exporter = SpanExporter::Start(Options(receiver.url()), {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  ::testing::internal::CaptureStderr();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().dropped == 1; }));
  (*exporter)->Add("job-1", std::vector{Life("b", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().dropped == 2; }));
  (*exporter)->Add("job-1", std::vector{Life("c", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  exporter->reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t first = log.find("takes no spans");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("takes no spans", first + 1), std::string::npos) << log;
  EXPECT_THAT(log, HasSubstr("takes spans again"));
}

TEST(ExporterTest, WhatTheCollectorRefusesIsDroppedAndCounted) {
  Receiver receiver({"400 Bad\r\n", "200 OK\r\n"});
  auto exporter = SpanExporter::Start(Options(receiver.url()), {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0), Life("b", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().dropped == 2; }));
  // The next ones are sent.
  (*exporter)->Add("job-1", std::vector{Life("c", 0)});
  EXPECT_TRUE(Until([&] { return (*exporter)->figures().sent == 1; }));
  EXPECT_EQ((*exporter)->figures().dropped, 2);
}

TEST(ExporterTest, NobodyThereHoldsNothingUp) {
  ExporterOptions options = Options("http://127.0.0.1:1");
  options.most_waiting = 3;
  options.delay = absl::Hours(1);  // until the end nothing is sent
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0), Life("b", 0)});
  (*exporter)->Add("job-1", std::vector{Life("c", 0), Life("d", 0)});
  EXPECT_EQ((*exporter)->figures().dropped, 1);
  exporter->reset();  // returns
}

TEST(ExporterTest, WhatWaitsIsSentAtTheEnd) {
  Receiver receiver({"200 OK\r\n"});
  ExporterOptions options = Options(receiver.url());
  options.delay = absl::Hours(1);
  auto exporter = SpanExporter::Start(options, {});
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  (*exporter)->Add("job-1", std::vector{Life("a", 0)});
  exporter->reset();
  EXPECT_EQ(receiver.requests().size(), 1u);
}

TEST(ExporterTest, WrongOptionsAreRefused) {
  const auto problem = [](const ExporterOptions& options) {
    const absl::Status status = CheckExporter(options);
    EXPECT_EQ(SpanExporter::Start(options, {}).status(), status);
    return std::string(status.message());
  };
  EXPECT_THAT(problem({.url = "collector:4318"}), HasSubstr("https://"));
  EXPECT_THAT(problem({.url = "file:///etc"}), HasSubstr("https://"));
  EXPECT_THAT(problem({.url = "http://h:1/?x=1"}), HasSubstr("/v1/traces"));
  TempDir dir;
  ExporterOptions options{.url = "http://h:1", .headers_file = dir.File("no")};
  EXPECT_THAT(problem(options), HasSubstr("cannot read"));
  options.headers_file = dir.Write("headers", "secret\n");
  ASSERT_EQ(chmod(options.headers_file.c_str(), 0644), 0);
  EXPECT_THAT(problem(options), HasSubstr("chmod 600"));
  ASSERT_EQ(chmod(options.headers_file.c_str(), 0600), 0);
  EXPECT_THAT(problem(options),
              AllOf(HasSubstr("headers:1"), Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace tilefarm::spans
