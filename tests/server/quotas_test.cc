#include "server/jobs/quotas.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::jobs {
namespace {

using ::testing::HasSubstr;

absl::Time Day(int day, int hour = 12) {
  return absl::FromCivil(absl::CivilHour(2026, 5, day, hour),
                         absl::UTCTimeZone());
}

TEST(Quotas, OwnOnesPrecedeThoseOfAll) {
  Quotas quotas;
  EXPECT_FALSE(quotas.BoundDeviceTime());
  EXPECT_FALSE(quotas.BoundStorage());
  for (const char* text : {"jobs=50", "device_hours=10.5", "storage=2GiB",
                           "days=7", "alice:jobs=3", "a:b:storage=512MiB"}) {
    EXPECT_TRUE(quotas.Set(text).ok()) << text;
  }
  EXPECT_EQ(quotas.days, 7);
  EXPECT_EQ(quotas.Of("bob").jobs, 50);
  EXPECT_EQ(quotas.Of("alice").jobs, 3);
  EXPECT_EQ(quotas.Of("alice").device_hours, 10.5);
  EXPECT_EQ(quotas.Of("bob").storage_bytes, int64_t{2} << 30);
  EXPECT_EQ(quotas.Of("a:b").storage_bytes, int64_t{512} << 20);
  EXPECT_TRUE(quotas.BoundDeviceTime());
  EXPECT_TRUE(quotas.BoundStorage());
  Quotas of_one;
  ASSERT_TRUE(of_one.Set("alice:device_hours=1").ok());
  EXPECT_TRUE(of_one.BoundDeviceTime());
  EXPECT_FALSE(of_one.BoundStorage());
}

TEST(Quotas, RefuseOtherTexts) {
  for (const char* text : {"", "jobs", "jobs=", "jobs=0", "jobs=-1", "jobs=1.5",
                           "device_hours=nan", "device_hours=0", "storage=10",
                           "storage=x MiB", "storage=1e30GiB", "days=0",
                           "days=400", "alice:days=3", ":jobs=3", "hours=3"}) {
    Quotas quotas;
    EXPECT_EQ(quotas.Set(text).code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_EQ(quotas.Of("").jobs, 0) << text;
  }
  Quotas quotas;
  EXPECT_THAT(std::string(quotas.Set("hours=3").message()),
              HasSubstr("there are days, device_hours, jobs, storage"));
}

TEST(DeviceTime, CountsTheLastDays) {
  DeviceTime time;
  time.Add("alice", Day(1), absl::Hours(1));
  time.Add("alice", Day(2), absl::Minutes(30));
  time.Add("alice", Day(2, 23), absl::Minutes(30));
  time.Add("bob", Day(2), absl::Hours(5));
  EXPECT_EQ(time.Used("alice", Day(2), 30), absl::Hours(2));
  EXPECT_EQ(time.Used("alice", Day(2, 0), 1), absl::Hours(1));
  EXPECT_EQ(time.Used("alice", Day(3), 2), absl::Hours(1));
  EXPECT_EQ(time.Used("alice", Day(4), 2), absl::ZeroDuration());
  EXPECT_EQ(time.Used("carol", Day(2), 30), absl::ZeroDuration());
  time.Forget(Day(3), 2);
  EXPECT_EQ(time.Used("alice", Day(2), 30), absl::Hours(1));
}

TEST(DeviceTime, IsStoredAsText) {
  DeviceTime time;
  EXPECT_EQ(time.Print(), "{}");
  time.Add("alice", Day(1), absl::Seconds(1.5));
  time.Add("b\"b", Day(2), absl::Seconds(2));
  const auto again = DeviceTime::Parse(time.Print());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Print(), time.Print());
  EXPECT_EQ(again->Used("alice", Day(1), 1), absl::Seconds(1.5));
  for (const char* text :
       {"", "[]", "{\"a\":1}", "{\"a\":{\"d\":\"x\"}}", "{\"a\":{\"d\":-1}}"}) {
    EXPECT_EQ(DeviceTime::Parse(text).status().code(),
              absl::StatusCode::kDataLoss)
        << text;
  }
}

TEST(Quotas, RefusalsSayWhatToDo) {
  Quotas quotas;
  EXPECT_TRUE(CheckDeviceTime(quotas, "alice", absl::Hours(9999)).ok());
  EXPECT_TRUE(CheckStorage(quotas, "alice", int64_t{1} << 60).ok());
  ASSERT_TRUE(quotas.Set("device_hours=10").ok());
  ASSERT_TRUE(quotas.Set("storage=1GiB").ok());
  EXPECT_TRUE(CheckDeviceTime(quotas, "alice", absl::Hours(9.9)).ok());
  const absl::Status time = CheckDeviceTime(quotas, "alice", absl::Hours(10));
  EXPECT_EQ(time.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(time.message()),
              HasSubstr("alice has used 10.0 device hours of 10 in 30 days"));
  EXPECT_THAT(std::string(time.message()),
              HasSubstr("--quota alice:device_hours="));
  EXPECT_TRUE(CheckStorage(quotas, "alice", 1000).ok());
  const absl::Status storage = CheckStorage(quotas, "alice", int64_t{1} << 30);
  EXPECT_EQ(storage.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(storage.message()), HasSubstr("1 GiB of 1 GiB"));
}

}  // namespace
}  // namespace tilefarm::jobs
