#include "server/services/retention.h"

#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"
#include "tests/support/process.h"

namespace tilefarm::services {
namespace {

TEST(Retention, RulesAreChecked) {
  Retention retention;
  EXPECT_FALSE(retention.drops());
  EXPECT_TRUE(retention.Set("keep=20").ok());
  EXPECT_TRUE(retention.Set("failed_days=90").ok());
  EXPECT_EQ(retention.keep, 20);
  EXPECT_EQ(retention.failed_days, 90);
  EXPECT_TRUE(retention.drops());
  for (const char* text :
       {"", "keep", "keep=", "keep=0", "keep=100001", "keep=x", "days=3"}) {
    EXPECT_EQ(retention.Set(text).code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(Retention, WithoutAFileThereIsNothingToDo) {
  Retention retention;
  ASSERT_TRUE(retention.Set("keep=1").ok());
  const testing::TempDir dir;
  EXPECT_TRUE(
      ApplyRetention(dir.File("none.db"), retention, Clock::Real()).ok());
}

TEST(Retention, DropsOldFailedRecords) {
  const testing::TempDir dir;
  const std::string path = dir.File("tune.db");
  {
    const auto store =
        *database::Store::Open(path, database::Store::Mode::kReadWrite);
    database::Record good = database::MakeRecord("good", 1e-3);
    database::Record old = good, fresh = good;
    old.candidate_id = "old";
    old.status = database::Status::kRunError;
    old.recorded_at = "2020-01-01T00:00:00Z";
    fresh.candidate_id = "fresh";
    fresh.status = database::Status::kRunError;
    fresh.recorded_at = "2999-01-01T00:00:00Z";
    const database::Record all[] = {good, old, fresh};
    ASSERT_TRUE(store->AddRecords(all).ok());
  }
  Retention retention;
  ASSERT_TRUE(retention.Set("failed_days=90").ok());
  ASSERT_TRUE(ApplyRetention(path, retention, Clock::Real()).ok());
  const auto store =
      *database::Store::Open(path, database::Store::Mode::kReadWrite);
  EXPECT_EQ(store->GetStats()->records, 2);
  EXPECT_FALSE(*store->HasCandidate("old"));
  // A server that has the file keeps another from dropping anything.
  EXPECT_EQ(ApplyRetention(path, retention, Clock::Real()).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tilefarm::services
