#include "base/perf_counters.h"

#include <errno.h>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm {
namespace {

using ::testing::HasSubstr;

TEST(PerfEvents, TextsOfTheKernelAreConfigs) {
  EXPECT_EQ(ParsePerfEvent("event=0x3c"), 0x3cu);
  EXPECT_EQ(ParsePerfEvent("event=0x00,umask=0x80"), 0x8000u);
  EXPECT_EQ(ParsePerfEvent("umask=0x4,event=a4"), 0x4a4u);
  for (const char* text : {"", "event", "event=", "event=0x100", "edge=1",
                           "event=0x1,period=5", "event=x"}) {
    EXPECT_EQ(ParsePerfEvent(text), std::nullopt) << text;
  }
}

TEST(TopDown, SlotsOfZen) {
  EXPECT_EQ(TopDownEventsOfZen().size(), 4u);
  // 100 cycles of 6 slots: 300 useful, 60 thrown away, 90 empty, 150 stalled.
  const auto found = TopDownOfZen({300, 360, 90, 150}, 100, 6);
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(found->retiring, 0.5);
  EXPECT_DOUBLE_EQ(found->bad_speculation, 0.1);
  EXPECT_DOUBLE_EQ(found->frontend_bound, 0.15);
  EXPECT_DOUBLE_EQ(found->backend_bound, 0.25);
}

TEST(TopDown, CountsOfOtherProcessorsAreRejected) {
  EXPECT_EQ(TopDownOfZen({300, 360, 90, 150}, 0, 6), std::nullopt);
  EXPECT_EQ(TopDownOfZen({300, 360}, 100, 6), std::nullopt);
  EXPECT_EQ(TopDownOfZen({0, 0, 0, 0}, 100, 6), std::nullopt);
  EXPECT_EQ(TopDownOfZen({300, 300, 900, 100}, 100, 6), std::nullopt);
}

TEST(PerfCounters, ErrorsSayWhatToDo) {
  const absl::Status denied = ExplainPerfError(EACCES, "3");
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(denied.message()),
              HasSubstr("perf_event_paranoid is 3"));
  EXPECT_THAT(std::string(ExplainPerfError(EPERM, "").message()),
              HasSubstr("is unknown"));
  EXPECT_EQ(ExplainPerfError(ENOENT, "2").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ExplainPerfError(ENOSYS, "2").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ExplainPerfError(EMFILE, "2").code(),
            absl::StatusCode::kUnavailable);
}

// Where the system has counters they count; elsewhere it says why not.
TEST(PerfCounters, CountsOrSaysWhyNot) {
  auto counters = PerfCounters::Open();
  if (!counters.ok()) {
    EXPECT_FALSE(counters.status().message().empty());
    return;
  }
  counters->Start();
  volatile double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
  counters->Stop();
  const PerfCounts counts = counters->Read();
  if (counts.instructions) {
    EXPECT_GT(*counts.instructions, 1e6);
  }
  if (counts.cycles) {
    EXPECT_GT(*counts.cycles, 1e5);
  }
}

}  // namespace
}  // namespace tilefarm
