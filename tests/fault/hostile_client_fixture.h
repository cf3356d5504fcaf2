// A real tune-server and clients in this process that speak gRPC to it: honest
// ones, and ones that send what no program of Tilefarm would send.
//
// The workers answer leases without building anything, so a test needs no
// compiler and no device, and runs under sanitizers too.
#ifndef TILEFARM_TESTS_FAULT_HOSTILE_CLIENT_FIXTURE_H_
#define TILEFARM_TESTS_FAULT_HOSTILE_CLIENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/tilefarm/v1/admin.grpc.pb.h"
#include "proto/tilefarm/v1/farm.grpc.pb.h"
#include "proto/tilefarm/v1/protocol_version.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {

inline constexpr char kTargetKey[] = "x86-64:znver4,cores=1";
// A plausible time of mm_relu on the device of these tests.
inline constexpr double kHonestSeconds = 1e-3;

// A call that the server never answers becomes a failure.
inline void SetDeadline(grpc::ClientContext& context,
                        std::chrono::seconds limit = std::chrono::minutes(2)) {
  context.set_deadline(std::chrono::system_clock::now() + limit);
}

// A worker's side of one stream.
class WorkerStream {
 public:
  explicit WorkerStream(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Farm::NewStub(channel)) {
    // Longer than any job of these tests.
    SetDeadline(context_, std::chrono::minutes(10));
    stream_ = stub_->Connect(&context_);
  }
  ~WorkerStream() { context_.TryCancel(); }

  bool Write(const v1::WorkerMessage& message) {
    return stream_->Write(message);
  }
  bool Read(v1::ServerMessage* message) { return stream_->Read(message); }
  // Reads messages until the server ends the stream; returns the reason.
  grpc::Status Finish() {
    v1::ServerMessage message;
    while (Read(&message)) {
    }
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Farm::Stub> stub_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::WorkerMessage, v1::ServerMessage>>
      stream_;
};

class HostileClientFixture : public FarmFixture {
 protected:
  // Maximum growth over the memory before the first hostile message.
  static constexpr int64_t kMostGrowthKib = 200 << 10;

  HostileClientFixture() {
    for (const char* timeout :
         {"former_hold=300ms", "former_hold_max=5s", "tick=100ms",
          "commit_retry=100ms", "watch_idle_interval=500ms", "finalists=2s",
          "state_interval=500ms", "lease_duration=3s"}) {
      server_options_.insert(server_options_.end(), {"--timeout", timeout});
    }
    server_options_.insert(server_options_.end(),
                           {"--no-canary", "--http", "127.0.0.1:0"});
    // ASan keeps freed memory for a while to detect uses of it: by default 256
    // MiB, more than the server may grow. Its redzones and shadow count as the
    // server's memory.
    server_environment_.push_back(
        "ASAN_OPTIONS=detect_container_overflow=0:quarantine_size_mb=8");
  }

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Begin()); }
  void TearDown() override {
    if (!HasFatalFailure()) ExpectUnharmed();
  }

  // Starts the server and measures the memory that honest work takes.
  void Begin() {
    ASSERT_NO_FATAL_FAILURE(Start());
    ASSERT_NO_FATAL_FAILURE(DoHonestJob("before"));
    rss_before_kib_ = MemoryKib("VmRSS:");
  }
  void Start() {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    http_ = server_->WaitForOutput("http on ").value_or("");
    // Do not reuse the connection to the previous server.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxSendMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments);
    tune_ = v1::Tune::NewStub(channel_);
    admin_ = v1::Admin::NewStub(channel_);
    if (!fingerprint_.empty()) return;
    const std::string text =
        RunCommand({Bin("tune-server"), "--version"}).output;
    const std::string key = "fingerprint ";
    fingerprint_ = text.substr(text.find(key) + key.size());
    while (!fingerprint_.empty() && fingerprint_.back() == '\n') {
      fingerprint_.pop_back();
    }
  }

  // A line of /proc/PID/status, in KiB.
  int64_t MemoryKib(const std::string& key) const {
    std::ifstream status("/proc/" + std::to_string(server_->pid()) + "/status");
    std::string word;
    int64_t value = 0;
    while (status >> word) {
      if (word == key) status >> value;
    }
    return value;
  }

  // --- Honest clients ---

  // A hello as after a restart: leases that the worker held are lost at once.
  v1::WorkerMessage HelloOf(const std::string& name) const {
    v1::WorkerMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_protocol_version(v1::kProtocolVersion);
    hello.set_name(name);
    hello.set_boot_id("boot-" + std::to_string(++boots_));
    hello.set_fingerprint(fingerprint_);
    hello.mutable_device()->set_target(kTargetKey);
    hello.mutable_device()->set_cpu("znver4");
    hello.mutable_device()->set_cores(1);
    return message;
  }
  static v1::WorkerMessage StateOf(uint32_t slots) {
    v1::WorkerMessage message;
    message.mutable_state()->set_slots(slots);
    return message;
  }
  // A result that reports this time for the lease's candidate.
  v1::WorkerMessage ResultOf(const v1::Lease& lease,
                             double seconds = kHonestSeconds) const {
    v1::WorkerMessage message;
    v1::Result& result = *message.mutable_result();
    result.set_lease_id(lease.lease_id());
    result.set_attempt(lease.attempt());
    result.set_candidate_id(lease.candidate_id());
    v1::Measurement& measured = *result.mutable_measurement();
    measured.set_status("ok");
    measured.set_verified(true);
    measured.set_fingerprint(fingerprint_);
    measured.set_cores(1);
    measured.set_median_seconds(seconds);
    measured.set_ci_low_seconds(seconds);
    measured.set_ci_high_seconds(seconds);
    for (int i = 0; i < 3; ++i) measured.add_seconds(seconds);
    measured.set_device_state("{\"clock_mhz\":3000.0}");
    message.mutable_state()->set_slots(1);
    return message;
  }
  // A connected worker that has sent its hello and received the welcome.
  std::unique_ptr<WorkerStream> Connect(const std::string& name) {
    auto stream = std::make_unique<WorkerStream>(channel_);
    v1::ServerMessage message;
    EXPECT_TRUE(stream->Write(HelloOf(name)));
    EXPECT_TRUE(stream->Read(&message)) << stream->Finish().error_message();
    EXPECT_TRUE(message.has_welcome());
    return stream;
  }
  // A connected worker and the lease it got.
  struct Held {
    std::unique_ptr<WorkerStream> stream;
    v1::Lease lease;
  };
  Held TakeLease(const std::string& name, uint32_t slots = 1) {
    Held held{.stream = Connect(name)};
    held.stream->Write(StateOf(slots));
    v1::ServerMessage message;
    while (held.stream->Read(&message)) {
      if (!message.has_lease()) continue;
      held.lease = message.lease();
      return held;
    }
    ADD_FAILURE() << "no lease: " << held.stream->Finish().error_message();
    return held;
  }
  // Answers every lease at once as long as it lives.
  class HonestWorker {
   public:
    using Seconds = std::function<double(const v1::Lease&)>;
    HonestWorker(const HostileClientFixture& farm, const std::string& name,
                 Seconds seconds)
        : stream_(farm.channel_) {
      stream_.Write(farm.HelloOf(name));
      stream_.Write(StateOf(1));
      thread_ = std::thread([this, &farm, seconds = std::move(seconds)] {
        v1::ServerMessage message;
        while (stream_.Read(&message)) {
          if (!message.has_lease()) continue;
          ++leases_;
          stream_.Write(
              farm.ResultOf(message.lease(), seconds(message.lease())));
        }
      });
    }
    ~HonestWorker() {
      stream_.Cancel();
      thread_.join();
    }
    int leases() const { return leases_; }

   private:
    WorkerStream stream_;
    std::atomic<int> leases_ = 0;
    std::thread thread_;
  };

  // Each job has a workload of its own, since jobs on the same one take turns.
  v1::SubmitRequest JobOf(const std::string& request_id, int trials) {
    std::string program = kMmRelu;
    const std::string rows = std::to_string(128 + 8 * ++workloads_);
    for (const char* before :
         {"A: T.Buffer((", "C: T.Buffer((", "T.alloc_buffer((", "T.grid("}) {
      for (size_t at = 0; (at = program.find(before, at)) != std::string::npos;
           ++at) {
        program.replace(at + std::strlen(before), 3, rows);
      }
    }
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    request.set_user("honest");
    request.set_program(program);
    request.set_program_name("mm_relu.py");
    request.set_target(kTargetKey);
    request.set_trials(trials);
    request.set_model("random");
    request.set_search("random");
    return request;
  }
  // The job's id; empty if it is refused.
  std::string Send(const v1::SubmitRequest& request,
                   grpc::Status* status = nullptr) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::SubmitResponse response;
    const grpc::Status answered = tune_->Submit(&context, request, &response);
    if (status != nullptr) *status = answered;
    return response.job_id();
  }
  std::optional<v1::Job> FindJob(const std::string& id) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ListJobsResponse jobs;
    if (!tune_->ListJobs(&context, {}, &jobs).ok()) return std::nullopt;
    for (const v1::Job& job : jobs.jobs()) {
      if (job.id() == id) return job;
    }
    return std::nullopt;
  }
  // Expects that the job is done, with all requested trials and an honest time.
  void ExpectHonestEnd(const std::string& id) {
    std::optional<v1::Job> job;
    ASSERT_TRUE(Until([&] {
      job = FindJob(id);
      return job.has_value() &&
             (job->state() == "done" || job->state() == "failed");
    })) << (job.has_value() ? job->DebugString() : id)
        << server_->errors();
    EXPECT_EQ(job->state(), "done") << job->error();
    EXPECT_EQ(job->trials_done(), job->trials());
    EXPECT_GE(job->best_seconds(), 0.5 * kHonestSeconds);
  }
  void DoHonestJob(const std::string& request_id, int trials = 4) {
    const HonestWorker worker(*this, "honest",
                              [](const v1::Lease&) { return kHonestSeconds; });
    grpc::Status status;
    const std::string id = Send(JobOf(request_id, trials), &status);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_NO_FATAL_FAILURE(ExpectHonestEnd(id));
  }
  std::vector<Json> Records() {
    std::vector<Json> records;
    grpc::ClientContext context;
    SetDeadline(context);
    auto reader = tune_->DbExport(&context, {});
    v1::DbLine line;
    while (reader->Read(&line)) {
      records.push_back(Json::parse(line.json(), nullptr, false));
    }
    EXPECT_TRUE(reader->Finish().ok());
    return records;
  }
  // Every measurement that users see as good was an honest one, except those of
  // devices whose lies cannot be detected.
  void ExpectHonestRecords() {
    for (const Json& record : Records()) {
      if (record["status"] != "ok") continue;
      const std::string device = record["device"];
      if (std::any_of(believed_liars_.begin(), believed_liars_.end(),
                      [&](const std::string& name) {
                        return device.starts_with(name);
                      })) {
        continue;
      }
      EXPECT_GE(record["median_seconds"], 0.5 * kHonestSeconds) << record;
    }
  }

  void ExpectLittleMemory() {
    const int64_t most = MemoryKib("VmHWM:");
    ASSERT_GT(most, 0);
    EXPECT_LT(most - rss_before_kib_, kMostGrowthKib);
  }
  // After any action of a hostile client: the server is alive, its memory is
  // within the limit, it serves honest users, and also does so after a restart.
  void ExpectUnharmed() {
    ASSERT_FALSE(server_->Wait(absl::ZeroDuration()).has_value())
        << "the server ended: " << server_->errors();
    ExpectLittleMemory();
    ASSERT_NO_FATAL_FAILURE(DoHonestJob("after"));
    ExpectHonestRecords();
    ExpectLittleMemory();
    server_->Kill(SIGTERM);
    ASSERT_EQ(server_->Wait(), 0) << server_->errors();
    ASSERT_NO_FATAL_FAILURE(Start());
    ASSERT_NO_FATAL_FAILURE(DoHonestJob("after the restart"));
    ExpectHonestRecords();
  }

  // --- Bytes that no stub would send ---

  static grpc::ByteBuffer BytesOf(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return grpc::ByteBuffer(&slice, 1);
  }
  // Calls the method with only this message.
  grpc::Status SendRaw(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    SetDeadline(context, std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    const auto wait = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    wait();
    call->WriteLast(BytesOf(bytes), grpc::WriteOptions(), nullptr);
    wait();
    grpc::ByteBuffer answer;
    do {
      call->Read(&answer, nullptr);
    } while (wait());
    grpc::Status status;
    call->Finish(&status, nullptr);
    wait();
    queue.Shutdown();
    return status;
  }

  std::string fingerprint_, http_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Tune::Stub> tune_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  int64_t rss_before_kib_ = 0;
  mutable std::atomic<int> boots_ = 0;
  int workloads_ = 0;
  std::vector<std::string> believed_liars_;  // device names
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_FAULT_HOSTILE_CLIENT_FIXTURE_H_
