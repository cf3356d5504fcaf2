// A server with TLS and tokens in this process: limits that apply to one user
// and not to another.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "absl/time/clock.h"
#include "proto/tilefarm/v1/admin.grpc.pb.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/security/token.h"
#include "server/services/server.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"
#include "tests/support/process.h"
#include "tests/support/until.h"
#include "transport/channel.h"

namespace tilefarm::services {
namespace {

using ::testing::HasSubstr;
using tilefarm::testing::RunCommand;
using tilefarm::testing::TempDir;

class SecureServicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = RunCommand(
        {TILEFARM_SOURCE_DIR "/deploy/make-certs", dir_.File("certs")});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    ServerOptions options;
    options.database_path = dir_.File("tune.db");
    {
      auto store = database::Store::Open(options.database_path,
                                         database::Store::Mode::kReadWrite);
      ASSERT_TRUE(store.ok()) << store.status();
      for (const auto& [name, role] :
           {std::pair("flood", security::Role::kUser),
            std::pair("calm", security::Role::kUser),
            std::pair("w", security::Role::kWorker)}) {
        const auto token =
            security::MakeToken(name, role, absl::Hours(1), absl::Now());
        ASSERT_TRUE((*store)->AddToken(token->row, "test").ok());
        tokens_[name] = token->token;
      }
    }
    options.listen = "127.0.0.1:0";
    options.fingerprint = testing::kFingerprint;
    options.release = "test";
    options.search_factory = testing::FakeSearchFactory();
    options.security.tls_cert = dir_.File("certs/server.crt");
    options.security.tls_key = dir_.File("certs/server.key");
    options.security.tokens_only = true;
    options.limits.user_burst = 20;
    options.limits.user_calls_per_second = 10;
    options.limits.user_streams = 3;
    options.limits.user_transfers = 2;
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::shared_ptr<grpc::Channel> Channel(const std::string& name) {
    transport::Endpoint endpoint;
    endpoint.address = server_->address();
    endpoint.security.ca = dir_.File("certs/ca.crt");
    if (!name.empty()) endpoint.security.token = tokens_.at(name);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel = transport::OpenChannel(endpoint, arguments);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return *channel;
  }
  // A call that the server never answers becomes a failure.
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
  }
  static grpc::Status ListJobs(v1::Tune::Stub& stub) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ListJobsResponse response;
    return stub.ListJobs(&context, {}, &response);
  }

  TempDir dir_;
  std::map<std::string, std::string> tokens_;
  std::unique_ptr<Server> server_;
};

TEST_F(SecureServicesTest, AFloodingUserIsTurnedAwayAndAnotherIsServed) {
  std::atomic<bool> stop = false;
  std::atomic<int> served = 0, refused = 0, other = 0;
  std::vector<std::thread> flood;
  for (int i = 0; i < 4; ++i) {
    flood.emplace_back([&] {
      const auto stub = v1::Tune::NewStub(Channel("flood"));
      while (!stop) {
        const grpc::Status status = ListJobs(*stub);
        if (status.ok()) {
          ++served;
        } else if (status.error_code() ==
                   grpc::StatusCode::RESOURCE_EXHAUSTED) {
          ++refused;
        } else {
          ++other;
        }
      }
    });
  }
  EXPECT_TRUE(Until([&] { return refused >= 200; }));
  const auto calm = v1::Tune::NewStub(Channel("calm"));
  for (int i = 0; i < 15; ++i) {
    const grpc::Status status = ListJobs(*calm);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  stop = true;
  for (std::thread& thread : flood) thread.join();
  EXPECT_GE(served, 20);
  EXPECT_EQ(other, 0);
}

TEST_F(SecureServicesTest, StreamsOfOneUserAreCountedOverAllConnections) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::JobUpdate>>> readers;
  const auto submit = v1::Tune::NewStub(Channel("calm"));
  grpc::ClientContext context;
  SetDeadline(context);
  v1::SubmitRequest job;
  job.set_request_id("r");
  job.set_user("somebody else");
  job.set_program(testing::kMatmul);
  job.set_target(testing::TestTarget().Key());
  job.set_trials(5);
  v1::SubmitResponse submitted;
  ASSERT_TRUE(submit->Submit(&context, job, &submitted).ok());

  v1::WatchRequest request;
  request.set_job_id(submitted.job_id());
  v1::JobUpdate update;
  std::vector<std::unique_ptr<v1::Tune::Stub>> stubs;
  for (int i = 0; i < 3; ++i) {
    stubs.push_back(v1::Tune::NewStub(Channel("flood")));
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    SetDeadline(*contexts.back());
    readers.push_back(stubs.back()->Watch(contexts.back().get(), request));
    ASSERT_TRUE(readers.back()->Read(&update));
  }
  grpc::ClientContext fourth;
  SetDeadline(fourth);
  auto refused = stubs[0]->Watch(&fourth, request);
  EXPECT_FALSE(refused->Read(&update));
  EXPECT_EQ(refused->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  grpc::ClientContext calm;
  SetDeadline(calm);
  auto reader = submit->Watch(&calm, request);
  EXPECT_TRUE(reader->Read(&update));
  calm.TryCancel();
  for (auto& one : contexts) one->TryCancel();
  reader->Finish();
  for (auto& one : readers) one->Finish();

  grpc::ClientContext list;
  SetDeadline(list);
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(submit->ListJobs(&list, {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs(0).user(),
            "calm");  // the authenticated user, not the claimed one
}

TEST_F(SecureServicesTest, ImportsWaitForNobodyAndTakeAnAdmin) {
  // Rejected before a message is sent or read.
  const auto stub = v1::Tune::NewStub(Channel("flood"));
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DbImportResponse response;
  auto writer = stub->DbImport(&context, &response);
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(SecureServicesTest, TooLargeMessagesAreRefusedByTheirMethod) {
  const auto stub = v1::Tune::NewStub(Channel("calm"));
  const security::Limits limits;
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelRequest request;
  request.set_job_id(std::string(limits.small_bytes + 1, 'x'));
  v1::CancelResponse response;
  const grpc::Status status = stub->Cancel(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("CancelRequest.job_id has"));

  const auto farm = v1::Farm::NewStub(Channel("w"));
  grpc::ClientContext connecting;
  SetDeadline(connecting);
  auto stream = farm->Connect(&connecting);
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_name(std::string(limits.farm_bytes + 1, 'x'));
  stream->Write(hello);
  v1::ServerMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(SecureServicesTest, WithoutATokenNothingIsReadAndTheProbeAnswers) {
  const auto channel = Channel("");
  const auto farm = v1::Farm::NewStub(channel);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = farm->Connect(&context);
  v1::ServerMessage message;
  EXPECT_FALSE(stream->Read(&message));  // it never sent a hello
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const auto tune = v1::Tune::NewStub(channel);
  EXPECT_EQ(ListJobs(*tune).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace tilefarm::services
