// Inputs, verification and statistics of the runner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/quiet_core.h"
#include "base/statistics.h"
#include "worker/runner/core_wait.h"
#include "worker/runner/inputs.h"
#include "worker/runner/numeric.h"
#include "worker/runner/opencl_driver.h"
#include "worker/runner/sample_race.h"
#include "worker/runner/verify.h"

namespace tilefarm::worker {
namespace {

using testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BufferSpec Spec(ElementType type, uint64_t elements) {
  BufferSpec spec;
  spec.type = type;
  spec.elements = elements;
  return spec;
}

Comparison CompareDoubles(std::vector<double> reference,
                          std::vector<double> output,
                          std::vector<double> bounds = {}, double slack = 0) {
  const BufferSpec spec = Spec(ElementType::kFloat64, reference.size());
  return Compare(spec, 0, reference.data(),
                 bounds.empty() ? nullptr : bounds.data(), slack,
                 output.data());
}

TEST(InputsTest, FloatsAreUniformInTheirRange) {
  for (bool positive : {false, true}) {
    std::vector<float> v(20000);
    FillInput(Spec(ElementType::kFloat32, v.size()), 42, 0, positive, v.data());
    double sum = 0;
    for (float x : v) {
      ASSERT_LE(x, 1);
      ASSERT_GE(x, positive ? 0x1p-23f : -1);
      sum += x;
    }
    EXPECT_NEAR(sum / v.size(), positive ? 0.5 : 0, 0.02);
  }
}

TEST(InputsTest, SeedAndParameterChooseTheStream) {
  const BufferSpec spec = Spec(ElementType::kFloat32, 16);
  std::vector<float> a(16), b(16), c(16), d(16);
  FillInput(spec, 1, 0, false, a.data());
  FillInput(spec, 1, 0, false, b.data());
  FillInput(spec, 1, 1, false, c.data());
  FillInput(spec, 2, 0, false, d.data());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_NE(a, d);
}

TEST(InputsTest, IntegersStayWithinBothEnds) {
  BufferSpec spec = Spec(ElementType::kInt8, 5000);
  spec.low = -8;
  spec.high = 7;
  std::vector<int8_t> v(5000);
  FillInput(spec, 3, 0, false, v.data());
  EXPECT_EQ(*std::min_element(v.begin(), v.end()), -8);
  EXPECT_EQ(*std::max_element(v.begin(), v.end()), 7);
  FillInput(spec, 3, 0, true, v.data());
  EXPECT_EQ(*std::min_element(v.begin(), v.end()), 1);
  spec.low = spec.high = 0;  // no room for 1
  FillInput(spec, 3, 0, true, v.data());
  EXPECT_THAT(v, testing::Each(0));
}

TEST(InputsTest, BoolsAreZeroOrOne) {
  std::vector<uint8_t> v(1000);
  FillInput(Spec(ElementType::kBool, 1000), 3, 0, false, v.data());
  EXPECT_THAT(v, testing::Contains(0));
  EXPECT_THAT(v, testing::Contains(1));
  EXPECT_THAT(v, testing::Each(testing::Le(1)));
}

TEST(NumericTest, EveryHalfInTheUnitRangeRoundTrips) {
  for (uint32_t bits = 0; bits <= 0x3c00; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    EXPECT_EQ(UnitToHalf(HalfToFloat(half)), half);
    EXPECT_EQ(UnitToHalf(-HalfToFloat(half)), half | 0x8000);
  }
  EXPECT_EQ(UnitToHalf(0x1p-1f + 0x1p-12f), 0x3800);  // tie, to even
  EXPECT_EQ(UnitToHalf(0x1p-1f + 0x3p-12f), 0x3802);
  EXPECT_EQ(UnitToHalf(0.99999f), 0x3c00);
  EXPECT_TRUE(std::isnan(HalfToFloat(0xffff)));
  EXPECT_TRUE(std::isinf(HalfToFloat(0x7c00)));
  EXPECT_EQ(BFloat16ToFloat(FloatToBFloat16(0.5f)), 0.5f);
  EXPECT_EQ(FloatToBFloat16(1.00390625f), 0x3f80);  // tie, to even
}

TEST(VerifyTest, EachElementHasItsOwnBound) {
  const std::vector<double> bounds = {0.5, 0, 1e6};
  EXPECT_TRUE(CompareDoubles({1, 2, 3}, {1.5, 2, -999}, bounds).equal);
  EXPECT_FALSE(CompareDoubles({1, 2, 3}, {1.51, 2, 3}, bounds).equal);
  EXPECT_FALSE(CompareDoubles({1, 2, 3}, {1, 2.0000001, 3}, bounds).equal);
  EXPECT_TRUE(CompareDoubles({1, 2}, {1, 2}).equal);
  EXPECT_FALSE(CompareDoubles({1, 2}, {1, 2.0000001}).equal);
}

TEST(VerifyTest, SlackIsAddedToEveryBound) {
  const std::vector<double> bounds = {0.5, 0};
  EXPECT_TRUE(CompareDoubles({1, 2}, {1.59, 2.09}, bounds, 0.1).equal);
  EXPECT_FALSE(CompareDoubles({1, 2}, {1.61, 2}, bounds, 0.1).equal);
  EXPECT_FALSE(CompareDoubles({1, 2}, {1, 2.11}, bounds, 0.1).equal);
}

TEST(VerifyTest, BoundsOfNarrowTypesAreFloats) {
  const BufferSpec spec = Spec(ElementType::kInt8, 3);
  const int8_t reference[] = {1, 2, 3};
  const int8_t output[] = {2, 2, -3};
  const float bounds[] = {1, 0, 6};
  EXPECT_TRUE(Compare(spec, 0, reference, bounds, 0, output).equal);
  const float smaller[] = {1, 0, 5.9f};
  EXPECT_FALSE(Compare(spec, 0, reference, smaller, 0, output).equal);
  EXPECT_DOUBLE_EQ(RootMeanSquare(spec, bounds), std::sqrt(37.0 / 3));
}

TEST(VerifyTest, TheMeanOfHugeBoundsIsFinite) {
  const BufferSpec spec = Spec(ElementType::kFloat64, 4);
  const double bounds[] = {1e300, kInf, 1e300, 0};
  EXPECT_DOUBLE_EQ(RootMeanSquare(spec, bounds), 1e300 * std::sqrt(2.0 / 3));
  const double none[] = {kInf, 0, 0, 0};
  EXPECT_EQ(RootMeanSquare(spec, none), 0);
}

TEST(VerifyTest, AnInfiniteBoundJudgesNothing) {
  const std::vector<double> bounds = {kInf, 0.1};
  EXPECT_TRUE(CompareDoubles({1, 1}, {kNan, 1.05}, bounds).equal);
  EXPECT_FALSE(CompareDoubles({1, 1}, {1, kNan}, bounds).equal);
}

TEST(VerifyTest, ReportsTheLargestErrors) {
  const Comparison c =
      CompareDoubles({1, -1, 1}, {1.01, -1.02, 1}, {0.1, 0.04, 0});
  EXPECT_TRUE(c.equal);
  EXPECT_NEAR(c.max_abs_error, 0.02, 1e-9);
  EXPECT_NEAR(c.max_rel_error, 0.5, 1e-9);
}

TEST(VerifyTest, SpecialValuesMustStandInTheSamePlaces) {
  EXPECT_TRUE(
      CompareDoubles({kNan, kInf, -kInf, 1}, {kNan, kInf, -kInf, 1}).equal);
  EXPECT_FALSE(CompareDoubles({1, 1}, {kNan, 1}).equal);
  EXPECT_FALSE(CompareDoubles({1, 1}, {kInf, 1}).equal);
  EXPECT_FALSE(CompareDoubles({kNan, 1}, {1, 1}).equal);
  EXPECT_FALSE(CompareDoubles({kInf, 1}, {-kInf, 1}).equal);
  EXPECT_FALSE(CompareDoubles({kInf, 1}, {1, 1}).equal);
}

TEST(VerifyTest, ZeroReferenceAcceptsZeroAlone) {
  EXPECT_TRUE(CompareDoubles({0, 0}, {0, -0.0}).equal);
  EXPECT_FALSE(CompareDoubles({0, 0}, {0, 1e-300}).equal);
}

TEST(VerifyTest, IntegersAreExact) {
  const BufferSpec spec = Spec(ElementType::kInt64, 2);
  const int64_t reference[] = {1, int64_t{1} << 60};
  int64_t output[] = {1, int64_t{1} << 60};
  EXPECT_TRUE(Compare(spec, 2, reference, nullptr, 0, output).equal);
  output[1] += 1;
  const Comparison c = Compare(spec, 2, reference, nullptr, 0, output);
  EXPECT_FALSE(c.equal);
  EXPECT_THAT(c.error, testing::HasSubstr("parameter 2, element 1"));
}

TEST(VerifyTest, PoisonIsNotFinite) {
  for (ElementType type : {ElementType::kFloat16, ElementType::kBFloat16,
                           ElementType::kFloat32, ElementType::kFloat64}) {
    std::vector<unsigned char> bytes(64, 0xff);
    EXPECT_FALSE(AllFinite(Spec(type, 4), bytes.data()));
    std::fill(bytes.begin(), bytes.end(), 0);
    EXPECT_TRUE(AllFinite(Spec(type, 4), bytes.data()));
  }
}

// The verdicts of a race on samples with these times.
std::vector<RaceVerdict> Race(const RaceRules& rules,
                              const std::vector<double>& samples) {
  SampleRace race(rules);
  std::vector<RaceVerdict> verdicts;
  for (const double s : samples) verdicts.push_back(race.Add(s, s));
  return verdicts;
}

constexpr auto kGoOn = RaceVerdict::kGoOn;
constexpr auto kEnough = RaceVerdict::kEnough;
constexpr auto kCannotWin = RaceVerdict::kCannotWin;

TEST(SampleRaceTest, WithoutABestTheTimeOrTheNumberDecides) {
  const RaceRules rules = {.least = 2, .most = 4, .target_seconds = 10};
  EXPECT_THAT(Race(rules, {1, 2, 1, 2}),
              ElementsAre(kGoOn, kGoOn, kGoOn, kEnough));
  EXPECT_THAT(Race(rules, {20, 20}), ElementsAre(kGoOn, kEnough));
}

TEST(SampleRaceTest, CloseSamplesAreEnough) {
  const RaceRules rules = {.least = 3, .most = 30, .target_seconds = 100};
  EXPECT_THAT(Race(rules, {1, 1.002, 0.998, 1, 1, 1}),
              ElementsAre(kGoOn, kGoOn, kGoOn, kGoOn, kGoOn, kEnough));
  EXPECT_THAT(Race(rules, {1, 1.02, 0.98, 1, 1, 1}).back(), kGoOn);
}

TEST(SampleRaceTest, TheFurtherBehindTheSoonerOut) {
  const RaceRules rules = {
      .least = 5, .most = 30, .target_seconds = 100, .best_seconds = 1};
  EXPECT_THAT(Race(rules, {1.6, 1.7}), ElementsAre(kGoOn, kCannotWin));
  EXPECT_THAT(Race(rules, {1.4, 1.6, 1.3}),
              ElementsAre(kGoOn, kGoOn, kCannotWin));
  EXPECT_THAT(Race(rules, {1.2, 1.2, 1.15, 1.2, 1.3}),
              ElementsAre(kGoOn, kGoOn, kGoOn, kGoOn, kCannotWin));
}

TEST(SampleRaceTest, OneSampleAmongTheBestKeepsItIn) {
  const RaceRules rules = {
      .least = 5, .most = 8, .target_seconds = 100, .best_seconds = 1};
  const std::vector<RaceVerdict> verdicts =
      Race(rules, {2, 1.09, 2, 2, 2, 2, 2, 2});
  EXPECT_THAT(verdicts, testing::Not(testing::Contains(kCannotWin)));
  EXPECT_EQ(verdicts.back(), kEnough);
}

TEST(SampleRaceTest, WhatIsSurelyBehindIsMeasuredBriefly) {
  const RaceRules rules = {
      .least = 5, .most = 30, .target_seconds = 100, .best_seconds = 1};
  const auto last = [](const std::vector<RaceVerdict>& verdicts) {
    return verdicts.back();
  };
  // Six samples, none within 3 % of the best: not excluded, only known.
  EXPECT_THAT(Race(rules, {1.09, 1.05, 1.04, 1.08, 1.06, 1.07}),
              ElementsAre(kGoOn, kGoOn, kGoOn, kGoOn, kGoOn, kEnough));
  // One is: with nine samples, the interval excludes it.
  EXPECT_EQ(last(Race(rules, {1.09, 1.02, 1.04, 1.08, 1.06, 1.07})), kGoOn);
  EXPECT_EQ(last(Race(rules, {1.09, 1.02, 1.04, 1.08, 1.06, 1.07, 1.05, 1.1})),
            kGoOn);
  EXPECT_EQ(
      last(Race(rules, {1.09, 1.02, 1.04, 1.08, 1.06, 1.07, 1.05, 1.1, 1.06})),
      kEnough);
  // Without a best time, a candidate cannot be slower than it.
  const RaceRules alone = {.least = 5, .most = 30, .target_seconds = 100};
  EXPECT_EQ(last(Race(alone, {1.09, 1.05, 1.04, 1.08, 1.06, 1.07})), kGoOn);
}

TEST(StatisticsTest, MedianAndInterval) {
  EXPECT_EQ(MedianOf({}).median, 0);
  EXPECT_EQ(MedianOf({3}).median, 3);
  EXPECT_EQ(MedianOf({4, 1}).median, 2.5);
  const MedianInterval few = MedianOf({5, 1, 3, 2, 4});
  EXPECT_EQ(few.median, 3);
  EXPECT_EQ(few.low, 1);
  EXPECT_EQ(few.high, 5);
  // Tables of the sign test: n = 20 gives the 6th and the 15th value.
  std::vector<double> twenty;
  for (int i = 1; i <= 20; ++i) twenty.push_back(i);
  const MedianInterval many = MedianOf(twenty);
  EXPECT_EQ(many.median, 10.5);
  EXPECT_EQ(many.low, 6);
  EXPECT_EQ(many.high, 15);
}

TEST(QuietCore, TheCoreAloneIsALowOneOfWhatWasSeen) {
  EXPECT_EQ(AloneContention({}), 0);
  EXPECT_EQ(AloneContention({1.5}), 1.5);
  // One measurement in a hundred in which the neighbour slowed down the chain
  // more.
  std::vector<double> seen(95, 1.4);
  seen.push_back(0.7);
  for (int i = 0; i < 4; ++i) seen.push_back(1.0);
  EXPECT_EQ(AloneContention(seen), 1.0);
}

TEST(QuietCore, WaitsNoLongerThanItMay) {
  EXPECT_GT(LearnAloneContention(3), 0);
  EXPECT_TRUE(QuietCore(0).IsQuiet()) << "not known";
  EXPECT_TRUE(QuietCore(1e6).Await(0));
  EXPECT_FALSE(QuietCore(1e-6).Await(0));
  EXPECT_FALSE(QuietCore(1e-6).Await(0.002));
}

TEST(CoreWait, AMeasurementInFullCountsEverySample) {
  CoreWait core_wait(1e-6, /*best_seconds=*/0, /*patience=*/0.25);
  bool waited = false, lost = false;
  EXPECT_FALSE(core_wait.Await(0.002, &waited));
  EXPECT_TRUE(waited);
  EXPECT_GE(core_wait.waited_seconds(), 0.002);
  EXPECT_FALSE(core_wait.SetsAside(1, &lost));
}

TEST(CoreWait, ARaceThatMayBeWonIsWorthWaiting) {
  CoreWait core_wait(1e-6, /*best_seconds=*/1, /*patience=*/0.25);
  bool waited = false, lost = false;
  EXPECT_FALSE(core_wait.Await(0.002, &waited));
  EXPECT_FALSE(waited) << "no patience before the first samples";
  EXPECT_TRUE(core_wait.SetsAside(1.7, &lost));
  EXPECT_TRUE(core_wait.SetsAside(1.5, &lost));
  EXPECT_TRUE(core_wait.SetsAside(1.7, &lost));
  EXPECT_FALSE(lost);
  EXPECT_FALSE(core_wait.SetsAside(1.7, &lost)) << "it waits; now all count";
  EXPECT_FALSE(core_wait.Await(0.002, &waited));
  EXPECT_TRUE(waited);
}

TEST(CoreWait, ARaceWithoutPatienceTakesWhatItGets) {
  CoreWait core_wait(1e-6, /*best_seconds=*/1, /*patience=*/0);
  bool waited = false, lost = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(core_wait.SetsAside(1.2, &lost));
  EXPECT_FALSE(lost);
  EXPECT_FALSE(core_wait.Await(0.002, &waited));
  EXPECT_FALSE(waited);
}

TEST(SampleRace, SamplesOfASharedCoreAreExcused) {
  RaceRules rules;
  rules.best_seconds = 1;
  rules.most = 8;
  SampleRace race(rules);
  race.Excuse(1.6);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(race.Add(1.4, 1e-3), RaceVerdict::kGoOn);
  }
  SampleRace slow(rules);
  slow.Excuse(1.6);
  EXPECT_EQ(slow.Add(2.5, 1e-3), RaceVerdict::kGoOn);
  EXPECT_EQ(slow.Add(2.5, 1e-3), RaceVerdict::kCannotWin);
}

TEST(CoreWait, ARaceThatIsLostOnASharedCoreIsLost) {
  CoreWait core_wait(1e-6, /*best_seconds=*/1, /*patience=*/0.25);
  bool lost = false;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(core_wait.SetsAside(1.7, &lost));
  EXPECT_TRUE(lost);
}

TEST(OpenClFamilyTest, IsFoundByNames) {
  EXPECT_EQ(OpenClFamily("Portable Computing Language", "AuthenticAMD",
                         "pthread-AMD EPYC"),
            "pocl");
  EXPECT_EQ(
      OpenClFamily("Oclgrind", "University of Bristol", "Oclgrind Simulator"),
      "oclgrind");
  EXPECT_EQ(OpenClFamily("ARM Platform", "ARM", "Mali-G78 r0p1"), "mali");
  EXPECT_EQ(OpenClFamily("rusticl", "Mesa", "Mali-G52 (Panfrost)"), "mali");
  EXPECT_EQ(OpenClFamily("QUALCOMM Snapdragon(TM)", "QUALCOMM",
                         "QUALCOMM Adreno(TM)"),
            "adreno");
  EXPECT_EQ(OpenClFamily("Intel(R) OpenCL Graphics", "Intel(R) Corporation",
                         "Intel(R) UHD Graphics 770"),
            "intel");
  EXPECT_EQ(OpenClFamily("AMD Accelerated Parallel Processing",
                         "Advanced Micro Devices, Inc.", "gfx1030"),
            "amd");
  EXPECT_EQ(OpenClFamily("NVIDIA CUDA", "NVIDIA Corporation", "H100 PCIe"),
            "nvidia");
  EXPECT_EQ(OpenClFamily("PowerVR", "Imagination Technologies", "PowerVR BXM"),
            "generic");
}

TEST(OpenClErrorTest, HasNameAndNumber) {
  EXPECT_EQ(OpenClErrorText(-5), "CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(OpenClErrorText(-9999), "OpenCL error -9999");
}

}  // namespace
}  // namespace tilefarm::worker
