// The services of a whole server, called over real gRPC.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/explanation.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "tests/server/services_fixture.h"

namespace tilefarm::services {
namespace {

using ::testing::HasSubstr;
using testing::kFingerprint;
using ::testing::SizeIs;
using testing::TestTarget;

TEST_F(ServicesTest, AJobsWeightsTravel) {
  v1::SubmitRequest request = Job(4);
  (*request.mutable_weights())["matmul"] = 3;
  const std::string id = Submit(request);
  grpc::ClientContext watching;
  SetDeadline(watching);
  v1::WatchRequest watch;
  watch.set_job_id(id);
  auto reader = tune_->Watch(&watching, watch);
  v1::JobUpdate update;
  ASSERT_TRUE(reader->Read(&update));
  ASSERT_EQ(update.tasks_size(), 1);
  EXPECT_EQ(update.tasks(0).weight(), 3);
  EXPECT_EQ(update.tasks(0).shape(), "16x16 float32");
  EXPECT_EQ(update.tasks(0).state(), "waiting");
  watching.TryCancel();
  reader->Finish();
  request.set_request_id("other");
  (*request.mutable_weights())["matmul_2"] = 3;
  grpc::ClientContext refused;
  SetDeadline(refused);
  v1::SubmitResponse response;
  EXPECT_EQ(tune_->Submit(&refused, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, AJobsFurtherTargetsTravel) {
  v1::SubmitRequest request = Job(4);
  v1::JobTarget& board = *request.add_more_targets();
  board.set_target("aarch64:cortex-a72,cores=1");
  board.mutable_caches()->set_l1_bytes(32 << 10);
  board.mutable_caches()->set_l2_bytes(1 << 20);
  board.mutable_caches()->set_l3_bytes(2 << 20);
  const std::string id = Submit(request);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(tune_->ListJobs(&context, {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).target(), TestTarget().Key());
  ASSERT_EQ(jobs.jobs(0).more_targets_size(), 1);
  EXPECT_EQ(jobs.jobs(0).more_targets(0), board.target());
  grpc::ClientContext watching;
  SetDeadline(watching);
  v1::WatchRequest watch;
  watch.set_job_id(id);
  auto reader = tune_->Watch(&watching, watch);
  v1::JobUpdate update;
  do {
    ASSERT_TRUE(reader->Read(&update));
  } while (update.state() != "running");
  ASSERT_EQ(update.tasks_size(), 2);
  EXPECT_EQ(update.tasks(0).target(), TestTarget().Key());
  EXPECT_EQ(update.tasks(1).target(), board.target());
  watching.TryCancel();
  reader->Finish();
  // Invalid caches, only of the additional target.
  request.set_request_id("other");
  board.mutable_caches()->set_l2_bytes(0);
  grpc::ClientContext refused;
  SetDeadline(refused);
  v1::SubmitResponse response;
  EXPECT_EQ(tune_->Submit(&refused, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, WelcomeComesFirstThenTheLeaseThenTheAck) {
  Submit(Job(1));
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = farm_->Connect(&context);
  ASSERT_TRUE(stream->Write(HelloMessage("w")));
  v1::ServerMessage message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(message.has_welcome());
  EXPECT_FALSE(message.welcome().database_uuid().empty());
  EXPECT_EQ(message.welcome().state_interval_ms(), 5000u);
  stream->Write(StateMessage(1));
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(message.has_lease());
  EXPECT_THAT(message.lease().lease_id(), SizeIs(32));
  EXPECT_EQ(message.lease().target(), TestTarget().Key());
  EXPECT_THAT(message.lease().program(), HasSubstr("T.prim_func"));
  EXPECT_GT(message.lease().options().run_timeout_ms(), 0u);
  v1::WorkerMessage reply;
  reply.mutable_result()->set_lease_id(message.lease().lease_id());
  reply.mutable_result()->set_candidate_id(message.lease().candidate_id());
  reply.mutable_result()->mutable_measurement()->set_status("run_error");
  stream->Write(reply);
  const std::string lease_id = message.lease().lease_id();
  while (message.acks().empty()) ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.acks(0).lease_id(), lease_id);
  EXPECT_FALSE(message.acks(0).superseded());
  stream->WritesDone();
  // The next lease may already be sent; a status comes after all messages.
  while (stream->Read(&message)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(AcknowledgementsTest, GoWithTheNextLease) {
  ServerOptions options = ServicesTest::Options();
  options.timeouts.ack_delay =
      absl::Hours(1);  // then only acknowledgements are sent
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = grpc::CreateChannel((*server)->address(),
                                           grpc::InsecureChannelCredentials());
  grpc::ClientContext submitting, working;
  for (grpc::ClientContext* context : {&submitting, &working}) {
    ServicesTest::SetDeadline(*context);
  }
  v1::SubmitResponse submitted;
  ASSERT_TRUE(
      v1::Tune::NewStub(channel)
          ->Submit(&submitting, ServicesTest::Job("r", 1000), &submitted)
          .ok());
  const auto farm = v1::Farm::NewStub(channel);
  auto stream = farm->Connect(&working);
  stream->Write(HelloMessage("w"));
  stream->Write(StateMessage(1));
  std::set<std::string> reported;
  v1::ServerMessage message;
  while (message.acks().empty()) {
    ASSERT_TRUE(stream->Read(&message));
    if (!message.has_lease()) continue;
    v1::WorkerMessage reply;
    reply.mutable_result()->set_lease_id(message.lease().lease_id());
    reply.mutable_result()->set_candidate_id(message.lease().candidate_id());
    reply.mutable_result()->mutable_measurement()->set_status("run_error");
    reported.insert(message.lease().lease_id());
    stream->Write(reply);
  }
  EXPECT_TRUE(message.has_lease());
  EXPECT_TRUE(reported.contains(message.acks(0).lease_id()));
  working.TryCancel();
  stream->Finish();
}

TEST_F(ServicesTest, RefusesAStreamThatDoesNotStartWithAHello) {
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = farm_->Connect(&context);
  stream->Write(StateMessage(1));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, RefusesASecondHelloAndAnotherProtocol) {
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = farm_->Connect(&context);
  stream->Write(HelloMessage("w"));
  stream->Write(HelloMessage("w"));
  v1::ServerMessage message;
  while (stream->Read(&message)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext later;
  SetDeadline(later);
  auto other = farm_->Connect(&later);
  v1::WorkerMessage hello = HelloMessage("w");
  hello.mutable_hello()->set_protocol_version(v1::kProtocolVersion + 1);
  other->Write(hello);
  EXPECT_EQ(other->Finish().error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServicesTest, JobRunsToItsEndAndItsRecordsTravel) {
  grpc::ClientContext working;
  SetDeadline(working);
  std::thread worker([&] { Work(*farm_, working, "ok"); });
  const std::string id = Submit(Job(25));
  const v1::JobUpdate last = WatchToTheEnd(id);
  EXPECT_EQ(last.state(), "done");
  EXPECT_EQ(last.trials_done(), 25);
  EXPECT_EQ(last.by_status().at("ok"), 25);
  EXPECT_GT(last.best_gflops(), 0);
  EXPECT_GT(last.unscheduled_seconds(), 0);
  working.TryCancel();
  worker.join();

  std::vector<std::string> lines;
  {
    grpc::ClientContext context;
    SetDeadline(context);
    auto reader = tune_->DbExport(&context, v1::DbExportRequest());
    v1::DbLine line;
    while (reader->Read(&line)) lines.push_back(line.json());
    EXPECT_TRUE(reader->Finish().ok());
  }
  EXPECT_THAT(lines, SizeIs(25));
  lines.push_back("{\"not\": \"a record\"}");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DbImportResponse response;
  auto writer = tune_->DbImport(&context, &response);
  v1::DbLine line;
  for (const std::string& json : lines) {
    line.set_json(json);
    writer->Write(line);
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("line 26"));

  // The lookup reports how similar the device is to the measured one.
  const auto reason = [&](const std::string& device_model) {
    grpc::ClientContext asking;
    SetDeadline(asking);
    v1::BestRequest request;
    request.set_program(testing::kMatmul);
    request.set_target(TestTarget().Key());
    request.set_device_model(device_model);
    v1::BestResponse best;
    EXPECT_TRUE(tune_->Best(&asking, request, &best).ok());
    return best.reason();
  };
  const std::string model = target::DeviceModel("", "znver4", {}, {0, 0, 0});
  EXPECT_EQ(reason(model), "exact device model");
  EXPECT_THAT(reason(""), HasSubstr("same microarchitecture (znver4)"));
  EXPECT_THAT(reason(model + "1"), HasSubstr("same microarchitecture"));

  // The workload hash alone is enough for lookups and exports.
  const auto matmul = ir::ParseFunction(testing::kMatmul);
  ASSERT_TRUE(matmul.ok()) << matmul.status();
  const std::string hash = ir::WorkloadHash(**matmul);
  const auto best_of = [&](const std::string& program,
                           const std::string& workload) {
    grpc::ClientContext asking;
    SetDeadline(asking);
    v1::BestRequest request;
    request.set_program(program);
    request.set_workload(workload);
    request.set_target(TestTarget().Key());
    v1::BestResponse best;
    return tune_->Best(&asking, request, &best).error_code();
  };
  EXPECT_EQ(best_of("", hash), grpc::StatusCode::OK);
  EXPECT_EQ(best_of("", std::string(64, '0')), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(best_of("", ""), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(best_of(testing::kMatmul, hash),
            grpc::StatusCode::INVALID_ARGUMENT);
  const auto explain = [&](const std::string& workload) {
    grpc::ClientContext asking;
    SetDeadline(asking);
    v1::BestRequest request;
    request.set_workload(workload);
    request.set_target(TestTarget().Key());
    request.set_explain(true);
    v1::BestResponse best;
    const grpc::Status asked = tune_->Best(&asking, request, &best);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
    return best;
  };
  const v1::BestResponse found = explain(hash);
  EXPECT_NE(found.record_json(), "");
  const auto why = database::ExplanationFromJson(found.explanation_json());
  ASSERT_TRUE(why.ok()) << why.status();
  EXPECT_TRUE(why->found);
  EXPECT_EQ(why->reason, found.reason());
  EXPECT_EQ(why->groups[0].fate, database::Fate::kChosen);
  // That there is none is an answer then.
  const v1::BestResponse none = explain(std::string(64, '0'));
  EXPECT_EQ(none.record_json(), "");
  EXPECT_THAT(none.reason(), HasSubstr("there is none"));
  EXPECT_FALSE(database::ExplanationFromJson(none.explanation_json())->found);

  const auto exported = [&](const std::string& workload) {
    grpc::ClientContext asking;
    SetDeadline(asking);
    v1::DbExportRequest request;
    request.set_workload(workload);
    auto reader = tune_->DbExport(&asking, request);
    int count = 0;
    v1::DbLine one;
    while (reader->Read(&one)) ++count;
    EXPECT_TRUE(reader->Finish().ok());
    return count;
  };
  EXPECT_EQ(exported(hash), 25);
  EXPECT_EQ(exported(std::string(64, '0')), 0);
}

TEST_F(ServicesTest, LayoutsOfMeasurementsAreRecorded) {
  const auto layouts = [&](const std::string& reported) {
    grpc::ClientContext working;
    SetDeadline(working);
    std::thread worker([&] { Work(*farm_, working, "ok", reported); });
    const v1::JobUpdate last = WatchToTheEnd(Submit(Job(3)));
    working.TryCancel();
    worker.join();
    std::string all = last.state();
    grpc::ClientContext context;
    SetDeadline(context);
    auto reader = tune_->DbExport(&context, v1::DbExportRequest());
    v1::DbLine line;
    while (reader->Read(&line)) {
      all += "," + nlohmann::json::parse(line.json())["protocol"]["layout"]
                       .get<std::string>();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return all;
  };
  EXPECT_EQ(layouts("packed"), "done,packed,packed,packed");
}

TEST_F(ServicesTest, AnUnknownLayoutIsARunError) {
  grpc::ClientContext working;
  SetDeadline(working);
  std::thread worker([&] { Work(*farm_, working, "ok", "diagonal"); });
  const v1::JobUpdate last = WatchToTheEnd(Submit(Job(3)));
  EXPECT_EQ(last.by_status().at("run_error"), 3);
  working.TryCancel();
  worker.join();
}

TEST_F(ServicesTest, CachesOfASubmitAreChecked) {
  v1::SubmitRequest request = Job(5);
  request.mutable_caches()->set_l1_bytes(32 << 10);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::SubmitResponse response;
  EXPECT_EQ(tune_->Submit(&context, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.mutable_caches()->set_l2_bytes(1 << 20);
  request.mutable_caches()->set_l3_bytes(32 << 20);
  EXPECT_NE(Submit(request), "");
}

TEST_F(ServicesTest, NonsenseFromAWorkerIsARunError) {
  grpc::ClientContext working;
  SetDeadline(working);
  std::thread worker([&] { Work(*farm_, working, "splendid"); });
  const v1::JobUpdate last = WatchToTheEnd(Submit(Job(3)));
  EXPECT_EQ(last.state(), "failed");
  EXPECT_EQ(last.by_status().at("run_error"), 3);
  working.TryCancel();
  worker.join();
}

TEST_F(ServicesTest, ErrorsHaveTheirCodes) {
  v1::SubmitRequest bad = Job(1);
  bad.set_program("x = ");
  grpc::ClientContext first;
  SetDeadline(first);
  v1::SubmitResponse submitted;
  EXPECT_EQ(tune_->Submit(&first, bad, &submitted).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  grpc::ClientContext second;
  SetDeadline(second);
  v1::WatchRequest watch;
  watch.set_job_id("job-none");
  auto reader = tune_->Watch(&second, watch);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext third;
  SetDeadline(third);
  v1::BestRequest best;
  best.set_program(testing::kMatmul);
  best.set_target(TestTarget().Key());
  v1::BestResponse found;
  EXPECT_EQ(tune_->Best(&third, best, &found).error_code(),
            grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext fourth;
  SetDeadline(fourth);
  v1::MeasureRequest measure;
  measure.set_program(testing::kMatmul);
  measure.set_target(TestTarget().Key());
  v1::MeasureResponse measured;
  EXPECT_EQ(tune_->Measure(&fourth, measure, &measured).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServicesTest, CancelledMeasureEnds) {
  grpc::ClientContext working;
  SetDeadline(working);
  auto stream = farm_->Connect(&working);
  stream->Write(HelloMessage("silent"));
  stream->Write(StateMessage(1));
  v1::ServerMessage message;
  ASSERT_TRUE(stream->Read(&message));
  // The state is taken after the hello; wait until the device has slots.
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(100));
    v1::MeasureRequest request;
    request.set_program(testing::kMatmul);
    request.set_target(TestTarget().Key());
    v1::MeasureResponse response;
    const grpc::Status status = tune_->Measure(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      absl::SleepFor(absl::Milliseconds(10));
      continue;
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    // The lease is taken back.
    while (!message.has_cancel()) ASSERT_TRUE(stream->Read(&message));
    working.TryCancel();
    stream->Finish();
    return;
  }
  FAIL() << "the device never had a slot";
}

// A server whose database is locked by another process while this lives.
class LockedDatabaseTest : public ServicesTest {
 public:
  LockedDatabaseTest() {
    char path[] = "/tmp/tilefarm-services-test-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~LockedDatabaseTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }
  void SetUp() override {
    ServerOptions options = Options();
    options.database_path = directory_ + "/tune.db";
    StartServer(std::move(options));
  }
  // While the result lives, nothing can be written.
  std::shared_ptr<sqlite3> Lock() {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((directory_ + "/tune.db").c_str(), &db), SQLITE_OK);
    // The server may be writing, too.
    sqlite3_busy_timeout(db, 10'000);
    EXPECT_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr),
              SQLITE_OK);
    return {db, sqlite3_close};
  }

 private:
  std::string directory_;
};

TEST_F(LockedDatabaseTest, CallsThatWaitForTheDatabaseHoldUpNoWorker) {
  Submit(Job(5));                             // runs, without a device
  const std::string queued = Submit(Job(5));  // waits for it
  std::shared_ptr<sqlite3> held = Lock();
  // Waits for the database, and all calls about jobs wait for it.
  std::atomic<bool> cancelled = false;
  std::thread canceller([&] {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::CancelRequest request;
    request.set_job_id(queued);
    v1::CancelResponse response;
    tune_->Cancel(&context, request, &response);
    cancelled = true;
  });
  absl::SleepFor(absl::Milliseconds(300));
  // More than gRPC has threads for callbacks.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobUpdate>>> watches;
  for (int i = 0; i < 40; ++i) {
    v1::WatchRequest request;
    request.set_job_id(queued);
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    SetDeadline(*contexts.back());
    watches.push_back(tune_->Watch(contexts.back().get(), request));
  }
  absl::SleepFor(absl::Milliseconds(300));
  grpc::ClientContext working;
  SetDeadline(working);
  auto stream = farm_->Connect(&working);
  stream->Write(HelloMessage("w"));
  v1::ServerMessage message;
  EXPECT_TRUE(stream->Read(&message));
  EXPECT_TRUE(message.has_welcome());
  EXPECT_FALSE(cancelled);
  held.reset();
  canceller.join();
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& watch : watches) {
    v1::JobUpdate update;
    while (watch->Read(&update)) {
    }
    watch->Finish();
  }
  working.TryCancel();
  stream->Finish();
}

TEST_F(ServicesTest, ShutdownEndsStreamsAndWatches) {
  grpc::ClientContext working, watching;
  for (grpc::ClientContext* context : {&working, &watching}) {
    SetDeadline(*context);
  }
  auto stream = farm_->Connect(&working);
  stream->Write(HelloMessage("w"));
  v1::ServerMessage message;
  ASSERT_TRUE(stream->Read(&message));
  // For a job that has not ended: the worker takes no leases.
  v1::WatchRequest request;
  request.set_job_id(Submit(Job(5)));
  auto watch = tune_->Watch(&watching, request);
  v1::JobUpdate update;
  ASSERT_TRUE(watch->Read(&update));
  server_.reset();
  while (stream->Read(&message)) {
  }
  const grpc::Status streamed = stream->Finish();
  EXPECT_EQ(streamed.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(streamed.error_message(), "the server shuts down");
  while (watch->Read(&update)) {
    EXPECT_FALSE(jobs::Ended(*jobs::ParseJobState(update.state())));
  }
  // Clients reconnect after it.
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServicesTest, ASecondServerDoesNotShareThePort) {
  ServerOptions options = Options();
  options.listen = server_->address();
  EXPECT_EQ(Server::Start(options).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ListenAddressTest, OnlyLoopbackIsAccepted) {
  for (const char* good :
       {"127.0.0.1:7070", "127.1.2.3:0", "localhost:1", "[::1]:7070"}) {
    EXPECT_TRUE(CheckListenAddress(good).ok()) << good;
  }
  for (const char* bad :
       {"0.0.0.0:7070", "[::]:7070", "192.168.1.1:7070", "example.org:1", "",
        "127.0.0.1", ":7070", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_EQ(CheckListenAddress(bad).code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace tilefarm::services
