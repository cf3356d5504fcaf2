#include "server/regression/attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tilefarm::regression {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RatioInterval Ratio(double ratio, double half_width = 0.005) {
  return {.ratio = ratio,
          .low = ratio - half_width,
          .high = ratio + half_width,
          .level = 0.99,
          .clusters = 20};
}

TEST(AttributionTest, ASlowerCodeGeneratorWithEitherSchedule) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.08), .code = Ratio(1.08), .schedule = Ratio(1.0)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kCodeGenerator));
  EXPECT_EQ(attribution.text, "code generator: +8.0 % with the old schedule");
}

TEST(AttributionTest, AWorseScheduleWithEitherCodeGenerator) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.30), .code = Ratio(1.001), .schedule = Ratio(1.29)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kSchedule));
  EXPECT_THAT(attribution.text, HasSubstr("schedule: +29.0 %"));
}

TEST(AttributionTest, BothAtOnce) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.21), .code = Ratio(1.10), .schedule = Ratio(1.10)});
  EXPECT_THAT(attribution.causes,
              ElementsAre(Cause::kCodeGenerator, Cause::kSchedule));
  EXPECT_THAT(attribution.ratios, ElementsAre(1.10, 1.10));
}

TEST(AttributionTest, ASmallSecondPartIsNotNamed) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.22), .code = Ratio(1.20), .schedule = Ratio(1.02)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kCodeGenerator));
}

TEST(AttributionTest, OnlyTogether) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.20), .code = Ratio(1.0), .schedule = Ratio(1.0)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kInteraction));
  EXPECT_THAT(attribution.text, HasSubstr("+20.0 % beyond what each"));
}

TEST(AttributionTest, WorksForImprovements) {
  const Attribution attribution = Attribute(
      {.both = Ratio(0.8), .code = Ratio(1.0), .schedule = Ratio(0.8)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kSchedule));
}

TEST(AttributionTest, APartInTheOtherDirectionIsNoCause) {
  // The schedule became slower, and the code generator faster.
  const Attribution attribution = Attribute(
      {.both = Ratio(1.15), .code = Ratio(0.95), .schedule = Ratio(1.21)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kSchedule));
}

TEST(AttributionTest, EqualSchedulesOrCodeNeedNoMeasurement) {
  EXPECT_THAT(Attribute({.both = Ratio(1.1), .same_schedule = true}).causes,
              ElementsAre(Cause::kCodeGenerator));
  EXPECT_THAT(Attribute({.both = Ratio(1.1), .same_code = true}).causes,
              ElementsAre(Cause::kSchedule));
}

TEST(AttributionTest, OneCellThatCouldNotBeBuilt) {
  const Attribution no_code =
      Attribute({.both = Ratio(1.1), .schedule = Ratio(1.0)});
  EXPECT_THAT(no_code.causes, ElementsAre(Cause::kCodeGenerator));
  EXPECT_EQ(no_code.text,
            "code generator: +10.0 %, measured with the new schedule only");
  const Attribution no_schedule =
      Attribute({.both = Ratio(1.1), .code = Ratio(1.0)});
  EXPECT_THAT(no_schedule.causes, ElementsAre(Cause::kSchedule));
  const Attribution explained =
      Attribute({.both = Ratio(1.1), .code = Ratio(1.1)});
  EXPECT_THAT(explained.causes, ElementsAre(Cause::kCodeGenerator));
}

TEST(AttributionTest, UnknownWithoutTheCells) {
  const Attribution attribution = Attribute({.both = Ratio(1.1)});
  EXPECT_THAT(attribution.causes, IsEmpty());
  EXPECT_THAT(attribution.text, HasSubstr("unknown: neither"));
}

TEST(AttributionTest, UnknownWithinTheNoise) {
  const Attribution attribution = Attribute({.both = Ratio(1.04, 0.01),
                                             .code = Ratio(1.02, 0.03),
                                             .schedule = Ratio(1.02, 0.03)});
  EXPECT_THAT(attribution.causes, IsEmpty());
  EXPECT_THAT(attribution.text, HasSubstr("stands out"));
}

TEST(AttributionTest, AThrottledDevice) {
  const Attribution attribution = Attribute({.both = Ratio(1.0),
                                             .code = Ratio(1.0),
                                             .schedule = Ratio(1.0),
                                             .canary = Ratio(1.4)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kDevice));
  EXPECT_EQ(attribution.text,
            "device: what did not change is +40.0 % against then; both "
            "artifacts are equally fast now");
}

TEST(AttributionTest, AThrottledDeviceMayBeWhyNothingIsSettled) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.2, 0.3), .unsettled = true, .baseline_now = Ratio(1.4)});
  EXPECT_THAT(attribution.causes, ElementsAre(Cause::kDevice));
  EXPECT_EQ(attribution.text,
            "device: what did not change is +40.0 % against then; whether the "
            "artifacts differ is not settled");
  EXPECT_THAT(Attribute({.unsettled = true, .baseline_now = Ratio(1.0)}).causes,
              IsEmpty());
}

TEST(AttributionTest, TheBenchmarksOwnArtifactDecidesOnTheDevice) {
  EXPECT_THAT(Attribute({.both = Ratio(1.0),
                         .canary = Ratio(1.4),
                         .baseline_now = Ratio(1.0)})
                  .causes,
              IsEmpty());
  EXPECT_THAT(Attribute({.both = Ratio(1.0),
                         .canary = Ratio(1.0),
                         .baseline_now = Ratio(1.2)})
                  .causes,
              ElementsAre(Cause::kDevice));
}

TEST(AttributionTest, DeviceAndCodeTogether) {
  const Attribution attribution = Attribute(
      {.both = Ratio(1.1), .same_schedule = true, .canary = Ratio(1.2)});
  EXPECT_THAT(attribution.causes,
              ElementsAre(Cause::kCodeGenerator, Cause::kDevice));
}

TEST(AttributionTest, ASmallOrUncertainDriftIsNoMovedDevice) {
  EXPECT_THAT(Attribute({.both = Ratio(1.0), .canary = Ratio(1.02)}).causes,
              IsEmpty());
  EXPECT_THAT(Attribute({.both = Ratio(1.0), .canary = Ratio(1.2, 0.3)}).causes,
              IsEmpty());
}

TEST(AttributionTest, CausesHaveNames) {
  EXPECT_EQ(CauseName(Cause::kCodeGenerator), "code generator");
  EXPECT_EQ(CauseName(Cause::kSchedule), "schedule");
  EXPECT_EQ(CauseName(Cause::kInteraction), "schedule with code generator");
  EXPECT_EQ(CauseName(Cause::kDevice), "device");
}

TEST(DriftRatioTest, ComparesTwoPeriods) {
  const std::vector<double> then = {1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0};
  std::vector<double> now;
  for (const double seconds : then) now.push_back(1.3 * seconds);
  const auto ratio = DriftRatio(then, now);
  ASSERT_TRUE(ratio.has_value());
  EXPECT_NEAR(ratio->ratio, 1.3, 1e-9);
  EXPECT_GT(ratio->low, 1.2);
  EXPECT_LT(ratio->high, 1.4);
  EXPECT_EQ(ratio->clusters, 7);
}

TEST(DriftRatioTest, NeedsSixTimesOfEach) {
  const std::vector<double> six(6, 1.0), five(5, 1.0);
  EXPECT_TRUE(DriftRatio(six, six).has_value());
  EXPECT_FALSE(DriftRatio(five, six).has_value());
  EXPECT_FALSE(DriftRatio(six, five).has_value());
  const std::vector<double> bad = {1, 1, 1, 1, 1, 0};
  EXPECT_FALSE(DriftRatio(six, bad).has_value());
}

}  // namespace
}  // namespace tilefarm::regression
