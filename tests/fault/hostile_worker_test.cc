// No message of a worker can harm the server or other users' jobs.
#include <cstdlib>

#include "base/mutex.h"
#include "tests/fault/hostile_client_fixture.h"
#include "tests/support/http_client.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class HostileWorkerTest : public HostileClientFixture {
 protected:
  // Submits a job that waits for devices, so that there are leases to grant.
  void SubmitWaiting(int trials = 4) {
    grpc::Status status;
    Send(JobOf("waiting", trials), &status);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  // The number of leases on devices now, in any phase.
  int Leases() {
    int sum = 0;
    const std::string page = HttpGet(http_, "/metrics");
    const std::string metric = "\ntilefarm_leases{";
    for (size_t at = 0; (at = page.find(metric, at)) != std::string::npos;) {
      at = page.find("} ", at);
      if (at == std::string::npos) break;
      sum += std::atoi(page.c_str() + at + 2);
    }
    return sum;
  }
};

std::string Nested(int depth) {
  std::string text = "{\"unsteady\":";
  text.append(depth, '[');
  text.append(depth, ']');
  return text + "}";
}

TEST_F(HostileWorkerTest, ADeviceStateOfDeepJsonIsRefused) {
  SubmitWaiting();
  for (const int depth : {100, 1000, 100'000}) {
    Held held = TakeLease("deep");
    v1::WorkerMessage result = ResultOf(held.lease);
    result.mutable_result()->mutable_measurement()->set_device_state(
        Nested(depth));
    held.stream->Write(result);
    held.stream->Cancel();
    held.stream->Finish();
  }
}

TEST_F(HostileWorkerTest, AcknowledgementsThatNobodyReadsTakeNoMemory) {
  const auto stream = Connect("deaf");
  v1::WorkerMessage message;
  message.mutable_result()->set_candidate_id("none");
  message.mutable_result()->set_lease_id(std::string(3 << 20, 'x'));
  for (int i = 0; i < 200; ++i) {
    if (!stream->Write(message)) break;
  }
  EXPECT_EQ(stream->Finish().error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(HostileWorkerTest, HugeListsOfEachMessageAreRefusedUnparsed) {
  v1::WorkerMessage state;
  for (int i = 0; i < 1'500'000; ++i) state.mutable_state()->add_held();
  v1::WorkerMessage hello = HelloOf("huge");
  for (int i = 0; i < 1'500'000; ++i) {
    hello.mutable_hello()->mutable_device()->add_features();
  }
  v1::WorkerMessage result;
  for (int i = 0; i < 400'000; ++i) {
    result.mutable_result()->mutable_measurement()->add_seconds(1e-3);
  }
  v1::WorkerMessage unknown;
  for (int i = 0; i < 1'000'000; ++i) {
    unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(
        1000, "");
  }
  for (const v1::WorkerMessage* message : {&state, &hello, &result, &unknown}) {
    WorkerStream stream(channel_);
    stream.Write(*message);
    EXPECT_EQ(stream.Finish().error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
}

TEST_F(HostileWorkerTest, MessagesOutOfOrderEndTheStreamAlone) {
  const v1::WorkerMessage hello = HelloOf("muddled");
  v1::WorkerMessage result;
  result.mutable_result()->set_lease_id("none");
  for (const v1::WorkerMessage& first : {StateOf(1), result}) {
    WorkerStream stream(channel_);
    stream.Write(first);
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    WorkerStream stream(channel_);
    stream.Write(hello);
    stream.Write(hello);
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), "a second hello");
  }
  // Bytes that are not a message, and a message with a repeated field.
  const std::string state = StateOf(1).SerializeAsString();
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff"), std::string(1000, '\x0b'),
        hello.SerializeAsString() + hello.SerializeAsString(), state + state}) {
    EXPECT_EQ(SendRaw("/tilefarm.v1.Farm/Connect", bytes).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(HostileWorkerTest, ResultsOfLeasesThatNobodyGrantedAreNotRecorded) {
  SubmitWaiting(2);
  Held held = TakeLease("honest");
  // The unscheduled program comes first, and is not a trial.
  while (held.lease.trace().empty()) {
    held.stream->Write(ResultOf(held.lease));
    v1::ServerMessage message;
    do {
      ASSERT_TRUE(held.stream->Read(&message));
    } while (!message.has_lease());
    held.lease = message.lease();
  }
  const std::string lease = held.lease.lease_id();
  // A restarted server knows the candidate, but no lease of it.
  server_->Kill(SIGKILL);
  server_->Wait();
  held.stream->Cancel();
  held.stream->Finish();
  ASSERT_NO_FATAL_FAILURE(Start());
  const auto liar = Connect("liar");
  for (const std::string& id :
       {std::string(32, '0'), lease, std::string("x"), std::string()}) {
    v1::WorkerMessage lie = ResultOf(held.lease, 1e-7);
    lie.mutable_result()->set_lease_id(id);
    lie.mutable_state()->set_slots(0);
    liar->Write(lie);
  }
  v1::ServerMessage message;
  for (int acknowledged = 0; acknowledged < 4;) {
    ASSERT_TRUE(liar->Read(&message));
    for (const v1::Ack& ack : message.acks()) {
      EXPECT_TRUE(ack.superseded());
      ++acknowledged;
    }
  }
  for (const Json& record : Records()) {
    EXPECT_NE(record["candidate_id"], held.lease.candidate_id());
  }
  // The device that got the lease may report it, once.
  const auto holder = Connect("honest");
  v1::WorkerMessage truth = ResultOf(held.lease);
  truth.mutable_state()->set_slots(0);
  for (int i = 0; i < 1000; ++i) holder->Write(truth);
  EXPECT_TRUE(Until(
      [&] {
        int times = 0;
        for (const Json& record : Records()) {
          times += record["candidate_id"] == held.lease.candidate_id();
        }
        return times == 1;
      },
      30));
}

TEST_F(HostileWorkerTest, EndlessMessagesEndTheStream) {
  const auto stream = Connect("endless");
  // Read the answers, so that only the rate limit ends the stream.
  std::thread reader([&] {
    v1::ServerMessage message;
    while (stream->Read(&message)) {
    }
  });
  const v1::WorkerMessage state = StateOf(0);
  for (int i = 0; i < 1'000'000 && stream->Write(state); ++i) {
  }
  reader.join();
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("too many messages"));
}

TEST_F(HostileWorkerTest, LeasesThatNobodyReadsTakeNoMemory) {
  SubmitWaiting(1000);
  std::vector<std::unique_ptr<WorkerStream>> deaf;
  for (int i = 0; i < 8; ++i) {
    deaf.push_back(Connect("deaf-" + std::to_string(i)));
    for (int j = 0; j < 100; ++j) deaf.back()->Write(StateOf(1024));
  }
  // More than the server buffers for a stream that is not read.
  EXPECT_TRUE(Until([&] { return Leases() >= 300; })) << Leases();
  deaf.clear();
}

TEST_F(HostileWorkerTest, AManifoldOfNamesIsBounded) {
  // As large as a hello may be.
  for (int i = 0; i < 1000; ++i) {
    v1::WorkerMessage hello = HelloOf("name-" + std::to_string(i));
    for (int j = 0; j < 125; ++j) {
      hello.mutable_hello()->mutable_device()->add_features(
          std::string(120, 'f'));
    }
    WorkerStream stream(channel_);
    stream.Write(hello);
    v1::ServerMessage message;
    if (!stream.Read(&message)) {
      EXPECT_EQ(stream.Finish().error_message(), "");
      break;
    }
  }
}

TEST_F(HostileWorkerTest, ALieOfANanosecondIsNotBelieved) {
  const HonestWorker liar(*this, "liar", [](const v1::Lease&) { return 1e-9; });
  double least_best = 0;
  Mutex mutex;
  const HonestWorker honest(*this, "good", [&](const v1::Lease& lease) {
    MutexLock lock(mutex);
    const double best = lease.options().best_seconds();
    if (best > 0 && (least_best == 0 || best < least_best)) least_best = best;
    return kHonestSeconds;
  });
  grpc::Status status;
  const std::string id = Send(JobOf("lied to", 40), &status);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_NO_FATAL_FAILURE(ExpectHonestEnd(id));
  ExpectHonestRecords();
  MutexLock lock(mutex);
  EXPECT_GE(least_best, 0.5 * kHonestSeconds);
}

// A lie that a roofline cannot detect does not harm others: at the end, it is
// measured again on the same device.
TEST_F(HostileWorkerTest, ALieIsHeldAgainstNobodyElse) {
  const HonestWorker liar(*this, "liar", [](const v1::Lease&) { return 1e-5; });
  std::atomic<int> misled = 0;
  const HonestWorker honest(*this, "good", [&](const v1::Lease& lease) {
    const double best = lease.options().best_seconds();
    if (best > 0 && best < 0.5 * kHonestSeconds) ++misled;
    return kHonestSeconds;
  });
  believed_liars_.push_back("liar");
  const std::string id = Send(JobOf("misled", 40));
  ASSERT_TRUE(Until([&] {
    const std::optional<v1::Job> job = FindJob(id);
    return job.has_value() && job->state() == "done";
  })) << server_->errors();
  EXPECT_EQ(misled, 0);
  EXPECT_GT(honest.leases(), 0);
}

}  // namespace
}  // namespace tilefarm::testing
