// A whole server in this process, called over real gRPC.
#ifndef TILEFARM_TESTS_SERVER_SERVICES_FIXTURE_H_
#define TILEFARM_TESTS_SERVER_SERVICES_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/services/server.h"
#include "tests/server/fake_search.h"
#include "tests/server/fake_worker.h"

namespace tilefarm::services {

inline v1::WorkerMessage HelloMessage(const std::string& name) {
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_version(v1::kProtocolVersion);
  hello.set_name(name);
  hello.set_boot_id("boot");
  hello.set_fingerprint(testing::kFingerprint);
  hello.mutable_device()->set_target(testing::TestTarget().Key());
  hello.mutable_device()->set_cpu("znver4");
  hello.mutable_device()->set_cores(4);
  return message;
}

inline v1::WorkerMessage StateMessage(int free_slots) {
  v1::WorkerMessage message;
  message.mutable_state()->set_slots(free_slots);
  return message;
}

class ServicesTest : public ::testing::Test {
 public:
  void SetUp() override { StartServer(Options()); }
  void StartServer(ServerOptions options) {
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(),
                                   grpc::InsecureChannelCredentials());
    farm_ = v1::Farm::NewStub(channel_);
    tune_ = v1::Tune::NewStub(channel_);
  }
  static ServerOptions Options() {
    ServerOptions options;
    options.database_path = ":memory:";
    options.listen = "127.0.0.1:0";
    options.fingerprint = testing::kFingerprint;
    options.release = "test";
    options.timeouts.watch_interval = absl::Milliseconds(20);
    options.search_factory = testing::FakeSearchFactory();
    return options;
  }
  v1::SubmitRequest Job(int trials) {
    return Job("r" + std::to_string(++requests_), trials);
  }
  static v1::SubmitRequest Job(const std::string& id, int trials) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_program(testing::kMatmul);
    request.set_program_name("matmul.py");
    request.set_target(testing::TestTarget().Key());
    request.set_trials(trials);
    return request;
  }
  std::string Submit(const v1::SubmitRequest& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::SubmitResponse response;
    const grpc::Status status = tune_->Submit(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job_id();
  }
  // A call that the server never answers becomes a failure.
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
  }
  // Measures everything until the stream ends.
  static void Work(v1::Farm::Stub& stub, grpc::ClientContext& context,
                   const std::string& status, const std::string& layout = "") {
    auto stream = stub.Connect(&context);
    stream->Write(HelloMessage("w"));
    stream->Write(StateMessage(2));
    v1::ServerMessage message;
    while (stream->Read(&message)) {
      if (!message.has_lease()) continue;
      v1::WorkerMessage reply;
      v1::Result& result = *reply.mutable_result();
      result.set_lease_id(message.lease().lease_id());
      result.set_attempt(message.lease().attempt());
      result.set_candidate_id(message.lease().candidate_id());
      v1::Measurement& measured = *result.mutable_measurement();
      measured.set_status(status);
      measured.set_fingerprint(testing::kFingerprint);
      measured.set_verified(true);
      measured.set_median_seconds(1e-3);
      measured.add_seconds(1e-3);
      measured.set_layout(layout);
      if (!stream->Write(reply)) break;
    }
    stream->Finish();
  }
  v1::JobUpdate WatchToTheEnd(const std::string& id) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::WatchRequest request;
    request.set_job_id(id);
    auto reader = tune_->Watch(&context, request);
    v1::JobUpdate update, last;
    while (reader->Read(&update)) last = update;
    EXPECT_TRUE(reader->Finish().ok());
    return last;
  }

  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Farm::Stub> farm_;
  std::unique_ptr<v1::Tune::Stub> tune_;
  int requests_ = 0;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_TESTS_SERVER_SERVICES_FIXTURE_H_
