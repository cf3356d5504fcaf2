// A demo replays what a server recorded.
#include "server/demo/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "database/store.h"
#include "server/demo/recording.h"
#include "server/demo/replay_search.h"
#include "server/demo/replayed_device.h"
#include "tests/server/services_fixture.h"
#include "tests/support/process.h"

namespace tilefarm::demo {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;
constexpr auto kReadWrite = database::Store::Mode::kReadWrite;

class DemoTest : public services::ServicesTest {
 public:
  // Records two jobs with a worker that measures everything in a millisecond.
  void SetUp() override {
    path_ = dir_.File("recording.db");
    services::ServerOptions options = Options();
    options.database_path = path_;
    StartServer(std::move(options));
    grpc::ClientContext context;
    std::thread worker([&] { Work(*farm_, context, "ok"); });
    first_ = Submit(Job(5));
    EXPECT_EQ(WatchToTheEnd(first_).state(), "done");
    auto request = Job(9);
    request.set_target("x86-64:znver4,cores=2");
    last_ = Submit(request);
    EXPECT_EQ(WatchToTheEnd(last_).state(), "done");
    context.TryCancel();
    worker.join();
    server_.reset();
  }
  std::unique_ptr<database::Store> Open(const std::string& path) {
    auto store = database::Store::Open(path, kReadWrite);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  TempDir dir_;
  std::string path_, first_, last_;
};

TEST_F(DemoTest, ARecordingIsTheLastJobAndTheRest) {
  const auto source = Open(path_);
  const auto recording = ReadRecording(*source);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->job.id, last_);
  EXPECT_EQ(recording->records.size(), 9u);
  EXPECT_EQ(recording->fingerprint, testing::kFingerprint);
  EXPECT_EQ(recording->devices.count("w"), 1u);
  EXPECT_EQ(recording->proposals.size(), 1u);
  EXPECT_EQ(recording->times.size(), 9u);

  const std::string made = dir_.File("made.db");
  ASSERT_TRUE(MakeDatabase(*source, *recording, made).ok());
  const auto store = Open(made);
  EXPECT_EQ(store->GetStats()->records, 5);
  EXPECT_EQ(store->GetJob(first_)->state, "done");
  EXPECT_EQ(store->GetJob(first_)->ended_at, source->GetJob(first_)->ended_at);
  EXPECT_EQ(store->GetJob(last_)->state, "queued");
  EXPECT_EQ(store->ReadJobLog(first_)->size(),
            source->ReadJobLog(first_)->size());
}

TEST_F(DemoTest, WorkIsAnsweredAsItWasMeasured) {
  auto source = Open(path_);
  const int64_t id =
      *source->RecordOf(ReadRecording(*source)->records.begin()->first);
  database::Record again = *source->GetRecord(id);
  again.median_seconds = 2e-3;
  ASSERT_TRUE(source->AddMeasurement(id, again).ok());
  const auto recording = ReadRecording(*source);
  farm::WorkItem item;
  item.candidate_id = recording->records.begin()->first;
  EXPECT_EQ(RecordedMeasurement(*recording, item, 0)->median_seconds, 1e-3);
  item.purpose = farm::Purpose::kFinalist;
  item.recorded_as = item.candidate_id;
  item.candidate_id = "finalist";
  // The races of the job, then the last one.
  EXPECT_EQ(RecordedMeasurement(*recording, item, 99)->median_seconds, 2e-3);
  item.recorded_as = "other";
  EXPECT_TRUE(
      absl::IsNotFound(RecordedMeasurement(*recording, item, 0).status()));
}

TEST_F(DemoTest, TheServerRunsTheJobAgain) {
  services::ServerOptions options = Options();
  auto demo =
      Demo::Start({.recording = path_, .speed = 1000}, std::move(options));
  ASSERT_TRUE(demo.ok()) << demo.status();
  channel_ = grpc::CreateChannel((*demo)->server().address(),
                                 grpc::InsecureChannelCredentials());
  tune_ = v1::Tune::NewStub(channel_);
  const v1::JobUpdate ended = WatchToTheEnd(last_);
  EXPECT_EQ(ended.state(), "done");
  EXPECT_EQ(ended.trials_done(), 9);
  EXPECT_EQ(ended.best_seconds(), 1e-3);
  const v1::JobUpdate earlier = WatchToTheEnd(first_);
  EXPECT_EQ(earlier.trials_done(), 5);
  // Nothing else is tuned.
  auto request = Job(3);
  request.set_target("aarch64:cortex-a72");
  const std::string other = Submit(request);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::CancelRequest cancel;
  cancel.set_job_id(other);
  v1::CancelResponse cancelled;
  EXPECT_TRUE(tune_->Cancel(&context, cancel, &cancelled).ok());
}

absl::Status StartWith(const std::string& recording) {
  return Demo::Start({.recording = recording},
                     services::ServicesTest::Options())
      .status();
}

TEST(DemoErrorsTest, WhatIsNoRecordingIsRefused) {
  TempDir dir;
  EXPECT_TRUE(absl::IsNotFound(StartWith(dir.File("none"))));
  dir.Write("damaged", "\x28\xb5\x2f\xfd and no more");
  EXPECT_TRUE(absl::IsDataLoss(StartWith(dir.File("damaged"))));
  dir.Write("text", "no database");
  EXPECT_FALSE(StartWith(dir.File("text")).ok());
  ASSERT_TRUE(database::Store::Open(dir.File("empty.db"), kReadWrite).ok());
  const absl::Status empty = StartWith(dir.File("empty.db"));
  EXPECT_TRUE(absl::IsFailedPrecondition(empty));
  EXPECT_THAT(std::string(empty.message()), HasSubstr("no job that is done"));
}

// The recording in the program.
TEST(DemoErrorsTest, TheEmbeddedRecordingIsComplete) {
  const auto demo =
      Demo::Start({.speed = 1000}, services::ServicesTest::Options());
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_FALSE((*demo)->server().address().empty());
}

}  // namespace
}  // namespace tilefarm::demo
