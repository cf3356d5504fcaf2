// What a worker can do to the server and to other people's jobs by what it
// sends: nothing.
#include "tests/fault/hostile_client_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class HostileWorkerTest : public HostileClientFixture {
 protected:
  // A job that waits for devices, so that there is something to lease.
  void SubmitWaiting(int trials = 4) {
    grpc::Status status;
    Send(JobOf("waiting", trials), &status);
    ASSERT_TRUE(status.ok()) << status.error_message();
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
  ExpectUnharmed();
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
  ExpectUnharmed();
}

}  // namespace
}  // namespace tilefarm::testing
