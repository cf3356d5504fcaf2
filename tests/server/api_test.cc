// The JSON API of a whole server: what it answers, to whom, and the stream of
// events. tests/e2e/openapi_test.py holds the answers to their description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "database/store.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "server/security/token.h"
#include "tests/server/services_fixture.h"
#include "tests/support/http_client.h"
#include "tests/support/http_receiver.h"
#include "tests/support/process.h"
#include "tests/support/until.h"

namespace tilefarm::services {
namespace {

using testing::Exchange;
using ::testing::HasSubstr;
using testing::HttpGet;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::RawConnection;
using ::testing::StartsWith;
using testing::TempDir;
using Json = nlohmann::json;

std::string BodyOf(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

class ApiTest : public ServicesTest {
 public:
  void SetUp() override {
    ServerOptions options = Options();
    options.database_path = dir_.File("tune.db");
    options.http = "127.0.0.1:0";
    MakeTokens(options.database_path);
    StartServer(std::move(options));
  }
  void MakeTokens(const std::string& path) {
    auto store = database::Store::Open(path, database::Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const auto& [name, role] :
         {std::pair("ann", security::Role::kUser),
          std::pair("root", security::Role::kAdmin),
          std::pair("board", security::Role::kWorker)}) {
      const auto token =
          security::MakeToken(name, role, absl::Hours(1), absl::Now());
      ASSERT_TRUE((*store)->AddToken(token->row, "test").ok());
      tokens_[name] = token->token;
    }
  }

  std::string Bearer(const std::string& name) {
    return name.empty() ? ""
                        : absl::StrCat("Authorization: Bearer ",
                                       tokens_.at(name), "\r\n");
  }
  std::string Raw(const std::string& path, const std::string& lines = "") {
    return HttpGet(server_->http_address(), "/api/v1" + path, "localhost",
                   lines);
  }
  Json Get(const std::string& path, const std::string& lines = "") {
    const std::string answer = Raw(path, lines);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 ")) << path;
    return Json::parse(BodyOf(answer), nullptr, false);
  }
  // The status and the error's code: "404 not_found".
  std::string ErrorOf(const std::string& answer) {
    const Json json = Json::parse(BodyOf(answer), nullptr, false);
    if (!json.is_object() || !json.contains("error")) return answer;
    return absl::StrCat(answer.substr(9, 3), " ",
                        std::string(json["error"]["code"]));
  }
  std::string Post(const std::string& path, const std::string& body,
                   const std::string& user, const std::string& lines = "",
                   const std::string& type = "application/json") {
    return Exchange(
        server_->http_address(),
        absl::StrCat(
            "POST /api/v1", path, " HTTP/1.1\r\nHost: localhost\r\n",
            "Content-Type: ", type, "\r\nContent-Length: ", body.size(),
            "\r\nConnection: close\r\n", lines, Bearer(user), "\r\n", body));
  }
  std::string JobBody() {
    return Json{{"program", testing::kMatmul},
                {"program_name", "matmul.py"},
                {"target", testing::TestTarget().Key()},
                {"trials", "6"}}
        .dump();
  }

  TempDir dir_;
  std::map<std::string, std::string> tokens_;
};

TEST_F(ApiTest, ReadsAreOpenWhereTheServerIs) {
  const Json server = Get("");
  EXPECT_EQ(server["release"], "test");
  EXPECT_EQ(server["open"], true);
  EXPECT_EQ(server["demo"], false);
  EXPECT_GT(server["routes"].size(), 20u);
  EXPECT_EQ(Get("/jobs")["jobs"].size(), 0u);
  EXPECT_EQ(Get("/devices")["devices"].size(), 0u);
  EXPECT_EQ(Get("/database")["records"], 0);
  EXPECT_EQ(Get("/workloads")["workloads"].size(), 0u);
  EXPECT_EQ(Get("/caller")["may_change"], false);
  const Json ann = Get("/caller", Bearer("ann"));
  EXPECT_EQ(ann["name"], "ann");
  EXPECT_EQ(ann["role"], "user");
  EXPECT_EQ(ann["may_change"], true);
  EXPECT_EQ(ErrorOf(Raw("/caller", "Authorization: Bearer x\r\n")),
            "401 unauthenticated");
}

TEST_F(ApiTest, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(ErrorOf(Raw("/nothing")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/jobs/none")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/jobs/none/candidates")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/jobs/none/events")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/devices/none")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/records/12")), "404 not_found");
  EXPECT_EQ(ErrorOf(Raw("/records/x")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/records?status=fine")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/records?limit=0")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/jobs?state=lazy")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/jobs?colour=red")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/jobs/%zz")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/history?step=x")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/jobs/none/cancel")), "405 other_method");
  EXPECT_EQ(ErrorOf(Raw("/workloads/abc")), "404 not_found");
}

TEST_F(ApiTest, NothingChangesWithoutAToken) {
  EXPECT_EQ(ErrorOf(Post("/jobs", JobBody(), "")), "401 unauthenticated");
  EXPECT_EQ(ErrorOf(Post("/jobs", JobBody(), "",
                         "Authorization: Bearer tilefarm_0\r\n")),
            "401 unauthenticated");
  EXPECT_EQ(ErrorOf(Post("/jobs", JobBody(), "board")),
            "403 permission_denied");
  EXPECT_EQ(ErrorOf(Post("/devices/x/drain", "{}", "")), "401 unauthenticated");
  EXPECT_EQ(ErrorOf(Post("/jobs/x/cancel", "{}", "")), "401 unauthenticated");
  // A form of another site's page: not JSON, and another origin.
  EXPECT_EQ(ErrorOf(Post("/jobs", JobBody(), "ann", "", "text/plain")),
            "400 invalid_argument");
  EXPECT_THAT(
      Post("/jobs", JobBody(), "ann", "Origin: http://evil.example.org\r\n"),
      StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Post("/jobs", JobBody(), "ann", "Sec-Fetch-Site: cross-site\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(Get("/jobs")["jobs"].size(), 0u);
}

TEST_F(ApiTest, ATokenSubmitsAndCancels) {
  const std::string own = absl::StrCat("Origin: http://localhost\r\n");
  const std::string answer = Post("/jobs", JobBody(), "ann", own);
  ASSERT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  const std::string id = Json::parse(BodyOf(answer))["id"];
  const Json job = Get("/jobs/" + id);
  EXPECT_EQ(job["user"], "ann");
  EXPECT_EQ(job["program"], "matmul.py");
  EXPECT_EQ(job["options"]["trials"], 6);
  EXPECT_EQ(Get("/jobs/" + id + "/program")["text"], testing::kMatmul);

  EXPECT_EQ(ErrorOf(Post("/jobs", "{", "ann")), "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Post("/jobs", R"({"colour":"red"})", "ann")),
            "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Post("/jobs", std::string(100, '['), "ann")),
            "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Post("/jobs", R"({"program":"x","target":"host"})", "ann")),
            "400 invalid_argument");
  // A text beyond the limits of the wire (proto/tilefarm/v1).
  EXPECT_EQ(
      ErrorOf(Post("/jobs",
                   Json{{"program_name", std::string(100'000, 'x')}}.dump(),
                   "ann")),
      "429 resource_exhausted");

  // Another user's job.
  const Json other = Json::parse(BodyOf(Post("/jobs", JobBody(), "root")));
  EXPECT_EQ(
      ErrorOf(Post(absl::StrCat("/jobs/", std::string(other["id"]), "/cancel"),
                   "{}", "ann")),
      "403 permission_denied");
  EXPECT_EQ(Json::parse(
                BodyOf(Post("/jobs/" + id + "/cancel", "{}", "ann")))["state"],
            "cancelled");
  EXPECT_EQ(ErrorOf(Post("/jobs/none/cancel", "{}", "root")), "404 not_found");
}

TEST_F(ApiTest, OnlyAdminsDrainDevices) {
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = farm_->Connect(&context);
  stream->Write(HelloMessage("w"));
  v1::ServerMessage welcome;
  ASSERT_TRUE(stream->Read(&welcome));
  EXPECT_EQ(Get("/devices")["devices"][0]["name"], "w");
  EXPECT_EQ(ErrorOf(Post("/devices/w/drain", "{}", "ann")),
            "403 permission_denied");
  EXPECT_EQ(ErrorOf(Post("/devices/w/dance", "{}", "root")), "404 not_found");
  EXPECT_EQ(ErrorOf(Post("/devices/none/drain", "{}", "root")),
            "404 not_found");
  EXPECT_EQ(ErrorOf(Post("/devices/w/drain", R"({"reason":1})", "root")),
            "400 invalid_argument");
  const Json drained = Json::parse(
      BodyOf(Post("/devices/w/drain", R"({"reason":"a fan"})", "root")));
  EXPECT_EQ(drained["state"], "drained");
  const Json device = Get("/devices/w");
  EXPECT_THAT(std::string(device["reason"]), HasSubstr("a fan"));
  bool logged = false;
  for (const Json& entry : device["log"]) {
    logged |= entry["action"] == "drain" && entry["actor"] == "root";
  }
  EXPECT_TRUE(logged);
  context.TryCancel();
}

TEST_F(ApiTest, AJobIsShownWithItsCandidates) {
  grpc::ClientContext context;
  std::thread worker([&] { Work(*farm_, context, "ok"); });
  const std::string id = Submit(Job(12));
  EXPECT_EQ(WatchToTheEnd(id).state(), "done");
  context.TryCancel();
  worker.join();

  const Json jobs = Get("/jobs?state=done");
  ASSERT_EQ(jobs["jobs"].size(), 1u);
  EXPECT_EQ(jobs["jobs"][0]["id"], id);
  EXPECT_EQ(jobs["jobs"][0]["best_seconds"], 1e-3);
  EXPECT_EQ(jobs["by_state"]["done"], 1);
  const Json job = Get("/jobs/" + id);
  EXPECT_EQ(job["tasks"].size(), 1u);
  const Json all = Get("/jobs/" + id + "/candidates");
  EXPECT_EQ(all["count"], 12);
  EXPECT_EQ(all["seconds"].size(), 12u);
  EXPECT_EQ(all["seconds"][3], 1e-3);
  EXPECT_EQ(all["statuses"], Json({"ok"}));
  const int64_t last = all["last"];
  EXPECT_EQ(
      Get(absl::StrCat("/jobs/", id, "/candidates?after=", last - 2))["count"],
      2);

  // Spans from the proposal to the record.
  const Json trace = Get("/jobs/" + id + "/timeline");
  int lives = 0;
  for (const Json& event : trace["traceEvents"]) {
    lives += event["ph"] == "b" && event["name"] == "candidate" &&
             event["cat"] == "trial";
  }
  EXPECT_EQ(lives, 12);

  const std::string workload = job["tasks"][0]["workload"];
  const Json workloads = Get("/workloads")["workloads"];
  ASSERT_EQ(workloads.size(), 1u);
  EXPECT_EQ(workloads[0]["workload"], workload);
  EXPECT_EQ(workloads[0]["names"][0], "matmul.py: matmul");
  const Json one = Get("/workloads/" + workload);
  EXPECT_EQ(one["records"], 12);
  EXPECT_GT(one["roofline"]["flops"], 0);
  EXPECT_EQ(Get("/workloads/" + workload + "/candidates")["count"], 12);
  EXPECT_EQ(ErrorOf(Raw("/workloads/" + workload + "?target=wasm32")),
            "404 not_found");
  EXPECT_EQ(Get("/workloads/" + workload + "/decisions")["of"], 12);

  const Json found = Get("/records?limit=5");
  EXPECT_EQ(found["records"].size(), 5u);
  EXPECT_EQ(found["more"], true);
  EXPECT_EQ(found["records"][0]["record"], last);
  EXPECT_EQ(Get(absl::StrCat("/records?before=", last - 10))["records"].size(),
            1u);
  EXPECT_EQ(Get("/records?text=no%20such")["records"].size(), 0u);
  EXPECT_EQ(Get("/records?workload=" + workload.substr(0, 8))["records"].size(),
            12u);
  const Json record = Get(absl::StrCat("/records/", last));
  EXPECT_EQ(record["record"], last);
  EXPECT_EQ(record["job_id"], id);
  EXPECT_THAT(
      std::string(Get(absl::StrCat("/records/", last, "/schedule"))["text"]),
      HasSubstr("def main"));
  EXPECT_EQ(Get("/database")["records"], 12);
}

TEST_F(ApiTest, TheSameIsReadOverTheOtherPort) {
  const std::string id = Submit(Job(3));
  const auto read = [&](const std::string& path, const std::string& query) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ReadRequest request;
    request.set_path(path);
    request.set_query(query);
    v1::ReadResponse response;
    const grpc::Status status = tune_->Read(&context, request, &response);
    return status.ok() ? response.json() : status.error_message();
  };
  const Json jobs = Json::parse(read("/api/v1/jobs", "limit=1"));
  EXPECT_EQ(jobs["jobs"][0]["id"], id);
  EXPECT_THAT(read("/api/v1/jobs", "limit=0"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(read("/api/v1/events", ""), HasSubstr("no answer"));
  EXPECT_THAT(read("/api/v1/jobs/x/cancel", ""), HasSubstr("no answer"));
}

// The events of a stream, as they come.
class EventReader {
 public:
  EventReader(const std::string& address, const std::string& path)
      : connection_(address) {
    connection_.Send(absl::StrCat("GET /api/v1", path,
                                  " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  // Waits until the text has come, as long as the test may take.
  bool WaitFor(const std::string& text) {
    while (!absl::StrContains(seen_, text)) {
      const std::string more = connection_.ReadSome();
      if (more.empty()) return false;
      seen_ += more;
    }
    return true;
  }
  const std::string& seen() const { return seen_; }

 private:
  RawConnection connection_;
  std::string seen_;
};

TEST_F(ApiTest, AHistoryIsShownWithItsChanges) {
  EXPECT_EQ(Get("/benchmarks")["benchmarks"].size(), 0u);
  v1::AppendPointsRequest points;
  points.set_request_id("points");
  for (int i = 0; i < 24; ++i) {
    v1::HistoryPoint& point = *points.add_points();
    point.set_series("kernels");
    point.set_benchmark("mm/512");
    point.set_device_class("a board");
    point.set_branch("main");
    point.set_commit(absl::StrCat("c", i));
    point.set_at("2026-01-31T12:00:00Z");
    point.set_device("desk");
    // Slower from c12 on.
    point.set_seconds((i < 12 ? 1e-3 : 1.2e-3) * (1 + 1e-3 * (i % 3)));
    point.set_verdict(i == 12 ? "slower" : "");
    point.set_ratio(i == 12 ? 1.2 : 1);
    point.set_clusters(i == 12 ? 8 : 0);
  }
  const auto regression = v1::Regression::NewStub(channel_);
  grpc::ClientContext context;
  v1::AppendPointsResponse response;
  const grpc::Status added =
      regression->AppendPoints(&context, points, &response);
  ASSERT_TRUE(added.ok()) << added.error_message();

  const Json list = Get("/benchmarks")["benchmarks"];
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["benchmark"], "mm/512");
  EXPECT_EQ(list[0]["commit"], "c23");
  EXPECT_EQ(list[0]["ratio"], nullptr);

  const std::string key =
      "?series=kernels&benchmark=mm%2F512&device_class=a%20board&branch=main";
  const Json history = Get("/benchmarks/history" + key);
  ASSERT_EQ(history["points"]["commit"].size(), 24u);
  EXPECT_EQ(history["points"]["commit"][0], "c0");
  EXPECT_EQ(history["points"]["seconds"][12], 1.2e-3);
  EXPECT_EQ(history["points"]["ratio"][12], 1.2);
  EXPECT_EQ(history["points"]["ratio"][11], nullptr);
  ASSERT_EQ(history["changes"].size(), 1u);
  EXPECT_EQ(history["changes"][0]["commit"], "c12");
  EXPECT_EQ(history["changes"][0]["after_commit"], "c11");
  EXPECT_EQ(history["changes"][0]["state"], "open");
  EXPECT_NEAR(history["changes"][0]["ratio"], 1.2, 1e-9);
  EXPECT_NEAR(history["current_ratio"], 1.2, 1e-9);
  EXPECT_EQ(history["baseline"]["last"], 12);

  EXPECT_EQ(ErrorOf(Raw("/benchmarks/history?series=kernels")),
            "400 invalid_argument");
  EXPECT_EQ(ErrorOf(Raw("/benchmarks/history" + key + "2")), "404 not_found");
}

TEST_F(ApiTest, ChangesAreStreamed) {
  EventReader farm(server_->http_address(), "/events");
  ASSERT_TRUE(farm.WaitFor("text/event-stream"));
  const std::string id = Submit(Job(8));
  EventReader job(server_->http_address(), "/jobs/" + id + "/events");
  ASSERT_TRUE(job.WaitFor("event: job\ndata: "));
  EXPECT_TRUE(farm.WaitFor(id));
  grpc::ClientContext context;
  std::thread worker([&] { Work(*farm_, context, "ok"); });
  EXPECT_TRUE(job.WaitFor("event: candidates\ndata: {\"count\":"));
  EXPECT_TRUE(job.WaitFor("\"state\":\"done\""));
  EXPECT_TRUE(farm.WaitFor("event: devices\ndata: "));
  EXPECT_TRUE(farm.WaitFor("\"done\":1"));
  context.TryCancel();
  worker.join();
}

TEST_F(ApiTest, LivesOfCandidatesReachACollector) {
  testing::Receiver collector({"200 OK\r\n"});
  server_.reset();
  ServerOptions options = Options();
  options.http = "127.0.0.1:0";
  options.spans.url = collector.url();
  options.spans.delay = absl::Hours(1);  // all at the end, in one request
  StartServer(std::move(options));
  grpc::ClientContext context;
  std::thread worker([&] { Work(*farm_, context, "ok"); });
  const std::string id = Submit(Job(3));
  EXPECT_EQ(WatchToTheEnd(id).state(), "done");
  context.TryCancel();
  worker.join();
  EXPECT_THAT(HttpGet(server_->http_address(), "/metrics"),
              HasSubstr("tilefarm_spans_total{result=\"dropped\"} 0"));
  server_.reset();
  ASSERT_EQ(collector.requests().size(), 1u);
  const Json request = Json::parse(BodyOf(collector.requests()[0]));
  // The stages of each trial, by trace.
  std::map<std::string, std::vector<std::string>> trials;
  for (const Json& span :
       request["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
    const std::string trace = span["traceId"];
    if (span["name"] == "candidate") {
      EXPECT_EQ(span["attributes"][0]["value"]["stringValue"], id);
      if (span["attributes"][2]["value"]["stringValue"] == "trial") {
        trials[trace];
      }
    } else if (const auto trial = trials.find(trace); trial != trials.end()) {
      trial->second.push_back(span["name"]);
    }
  }
  EXPECT_EQ(trials.size(), 3u);
  for (const auto& [trace, stages] : trials) {
    EXPECT_THAT(stages, IsSupersetOf({"sampled", "queued", "store"}));
  }
}

TEST_F(ApiTest, JobsEndWhileTheCollectorStalls) {
  // The attempt under way, and the last one.
  testing::Receiver collector(
      {testing::Receiver::kStalls, testing::Receiver::kStalls});
  server_.reset();
  ServerOptions options = Options();
  options.http = "127.0.0.1:0";
  options.spans.url = collector.url();
  options.spans.delay = absl::ZeroDuration();
  options.spans.most_waiting = 1;
  options.spans.attempt_limit = absl::Hours(1);
  StartServer(std::move(options));
  grpc::ClientContext context;
  std::thread worker([&] { Work(*farm_, context, "ok"); });
  EXPECT_EQ(WatchToTheEnd(Submit(Job(3))).state(), "done");
  ASSERT_TRUE(Until([&] { return collector.taken() == 1; }));
  EXPECT_EQ(WatchToTheEnd(Submit(Job(3))).state(), "done");
  context.TryCancel();
  worker.join();
  server_.reset();
  EXPECT_EQ(collector.requests().size(), 2u);
}

TEST_F(ApiTest, TheDashboardIsServed) {
  const std::string index = HttpGet(server_->http_address(), "/");
  EXPECT_THAT(index, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(index, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(index, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(BodyOf(index), HasSubstr("<title>Tilefarm</title>"));
  // Nothing inline, nothing from elsewhere.
  EXPECT_THAT(BodyOf(index), Not(HasSubstr("style=")));
  EXPECT_THAT(BodyOf(index), Not(HasSubstr("//")));
  const std::string script = HttpGet(server_->http_address(), "/assets/app.js");
  EXPECT_THAT(script, HasSubstr("Content-Type: text/javascript"));
  const size_t tag = script.find("\r\nETag: ");
  ASSERT_NE(tag, std::string::npos);
  const std::string etag =
      script.substr(tag + 8, script.find("\r\n", tag + 8) - tag - 8);
  const std::string again =
      HttpGet(server_->http_address(), "/assets/app.js", "localhost",
              absl::StrCat("If-None-Match: ", etag, "\r\n"));
  EXPECT_THAT(again, StartsWith("HTTP/1.1 304 "));
  EXPECT_EQ(BodyOf(again), "");
  EXPECT_THAT(HttpGet(server_->http_address(), "/assets/../app.js"),
              StartsWith("HTTP/1.1 404 "));
}

}  // namespace
}  // namespace tilefarm::services
