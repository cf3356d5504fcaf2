// The parts of the API that are pure functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "server/api/decision_effects.h"
#include "server/api/device_history.h"
#include "server/api/limits_of_device.h"
#include "server/api/query.h"
#include "server/api/route.h"
#include "server/security/roles.h"
#include "server/services/device_clock.h"

namespace tilefarm::api {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusCode ParseCode(const std::string& text) {
  return Query::Parse(text).status().code();
}

TEST(QueryTest, ParametersAreUnescaped) {
  const auto query = Query::Parse("a=x%20y+z&b=%2F&c&limit=12");
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->Text("a"), "x y z");
  EXPECT_EQ(query->Text("b"), "/");
  EXPECT_EQ(query->Text("c"), "");
  EXPECT_EQ(query->Text("d"), "");
  EXPECT_EQ(*query->Number("limit", 5, 1, 100), 12);
  EXPECT_EQ(*query->Number("other", 5, 1, 100), 5);
}

TEST(QueryTest, WhatIsDamagedIsRefused) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(ParseCode("a=%2"), kInvalid);
  EXPECT_EQ(ParseCode("a=%zz"), kInvalid);
  EXPECT_EQ(ParseCode("a=%00"), kInvalid);
  EXPECT_EQ(ParseCode("a=1&a=2"), kInvalid);
  const auto query = Query::Parse("limit=0&x=1&n=7x");
  EXPECT_EQ(query->Number("limit", 5, 1, 100).status().code(), kInvalid);
  EXPECT_EQ(query->Number("n", 5, 1, 100).status().code(), kInvalid);
  EXPECT_THAT(query->Allow({"limit", "n"}).message(),
              HasSubstr("no parameter x; there are limit, n"));
  EXPECT_TRUE(query->Allow({"limit", "n", "x"}).ok());
}

TEST(RouteTest, PathsFindTheirRoute) {
  const auto match = FindRoute(false, "/api/v1/jobs/a%2Fb/candidates");
  ASSERT_TRUE(match.ok());
  ASSERT_NE(match->route, nullptr);
  EXPECT_STREQ(match->route->path, "/api/v1/jobs/{job}/candidates");
  EXPECT_EQ(match->path.at("job"), "a/b");
  const auto other = FindRoute(true, "/api/v1/jobs/x/candidates");
  EXPECT_EQ(other->route, nullptr);
  EXPECT_TRUE(other->other_method);
  const auto none = FindRoute(false, "/api/v1/nothing");
  EXPECT_EQ(none->route, nullptr);
  EXPECT_FALSE(none->other_method);
  EXPECT_FALSE(FindRoute(false, "/api/v1/jobs/%").ok());
}

// A route without an entry would be refused to everybody but on an open server.
TEST(RouteTest, EveryRouteIsInTheTableOfRoles) {
  for (const Route& route : Routes()) {
    const security::Method* const method =
        security::FindMethod(MethodOf(route));
    ASSERT_NE(method, nullptr) << MethodOf(route);
    EXPECT_EQ(method->access, security::Access::kUsers) << MethodOf(route);
  }
  int entries = 0;
  for (const security::Method& method : security::Methods()) {
    entries += std::string(method.path).find(" /api/") != std::string::npos;
  }
  EXPECT_EQ(entries, static_cast<int>(Routes().size()));
}

TEST(DecisionEffectsTest, ADecisionThatDecidesHasTheVariance) {
  const std::string sketch =
      "v1, v2 = sch.sample_perfect_tile(loop=l1, n=2, decision=?)\n"
      "v3 = sch.sample_categorical(candidates=[0, 16], decision=?)\n"
      "sch.vectorize(loop=l5)\n";
  std::vector<std::string> texts;
  for (int tile = 0; tile < 3; ++tile) {
    for (int repeat = 0; repeat < 8; ++repeat) {
      texts.push_back("[" + std::to_string(1 << tile) + ", 2];" +
                      std::to_string(repeat % 2));
    }
  }
  std::vector<DecidedCandidate> candidates;
  for (size_t i = 0; i < texts.size(); ++i) {
    const double noise = 1 + 0.01 * static_cast<double>(i % 8 / 2);
    candidates.push_back({texts[i], (i / 8 == 1 ? 1e-3 : 3e-3) * noise});
  }
  candidates.push_back({"[1, 2]", 1e-9});  // does not fit the sketch
  const auto effects = DecisionEffects(sketch, candidates);
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_THAT(effects[0].call, HasSubstr("sample_perfect_tile(loop=l1"));
  EXPECT_GT(effects[0].share, 0.98);
  EXPECT_EQ(effects[0].values, 3);
  EXPECT_EQ(effects[0].effects[0].value, "[2, 2]");
  EXPECT_EQ(effects[0].effects[0].count, 8);
  EXPECT_THAT(effects[0].effects[0].best_seconds, DoubleNear(1e-3, 1e-9));
  EXPECT_THAT(effects[0].effects[0].median_seconds, DoubleNear(1.02e-3, 1e-9));
  EXPECT_LT(effects[1].share, 0.02);
}

TEST(DecisionEffectsTest, WhatWasNotTriedHasNoEffect) {
  EXPECT_TRUE(DecisionEffects("sch.vectorize(loop=l5)\n", {}).empty());
  const std::string sketch = "v = sch.sample_x(decision=?)";
  ASSERT_EQ(DecisionEffects(sketch, {}).size(), 1u);
  EXPECT_EQ(DecisionEffects(sketch, {})[0].share, 0);
  const DecidedCandidate one{"1", 1e-3};
  EXPECT_EQ(DecisionEffects(sketch, {&one, 1})[0].share, 0);
  // As many values as candidates: nothing to compare within one.
  const std::vector<DecidedCandidate> two = {{"1", 1e-3}, {"2", 2e-3}};
  EXPECT_EQ(DecisionEffects(sketch, two)[0].share, 0);
}

farm::DeviceStatus Device(const std::string& name, double busy_seconds) {
  farm::DeviceStatus device;
  device.name = name;
  device.state = farm::DeviceState::kBusy;
  device.busy_seconds = busy_seconds;
  device.trials_per_second = 4;
  device.device_state = R"({"clock_mhz":3700,"temperature_c":61})";
  return device;
}

TEST(DeviceHistoryTest, SamplesAreTakenAtTheirTimes) {
  DeviceHistory history;
  const absl::Time start = absl::UnixEpoch() + absl::Hours(1);
  for (int second = 0; second <= 60; second += 5) {
    const auto device = Device("a", second * 0.5);
    history.Sample({&device, 1}, start + absl::Seconds(second));
  }
  const auto fine = history.Read(DeviceHistory::Step::kFine, "");
  ASSERT_EQ(fine.at("a").size(), 7u);
  EXPECT_EQ(fine.at("a")[0].busy, 0);  // nothing to compare it with
  EXPECT_EQ(fine.at("a")[1].at, start + absl::Seconds(10));
  EXPECT_EQ(fine.at("a")[1].busy, 0.5);
  EXPECT_EQ(fine.at("a")[1].clock_mhz, 3700);
  EXPECT_EQ(fine.at("a")[1].temperature_c, 61);
  EXPECT_EQ(history.Read(DeviceHistory::Step::kCoarse, "a").at("a").size(), 1u);
  EXPECT_TRUE(history.Read(DeviceHistory::Step::kFine, "b").empty());
}

TEST(DeviceHistoryTest, OldSamplesAndLostDevicesAreForgotten) {
  DeviceHistory history;
  const absl::Time start = absl::UnixEpoch() + absl::Hours(1);
  for (int i = 0; i < 1000; ++i) {
    const std::vector<farm::DeviceStatus> devices = {
        Device("a", i * 10.0), Device(i < 999 ? "b" : "c", 0)};
    history.Sample(devices, start + i * absl::Seconds(10));
  }
  const auto fine = history.Read(DeviceHistory::Step::kFine, "");
  EXPECT_EQ(fine.size(), 2u);
  EXPECT_EQ(fine.count("b"), 0u);
  ASSERT_EQ(fine.at("a").size(), DeviceHistory::kFineSamples);
  EXPECT_EQ(fine.at("a").back().at, start + 999 * absl::Seconds(10));
  EXPECT_EQ(fine.at("a").front().at, start + 640 * absl::Seconds(10));
  EXPECT_EQ(fine.at("a").back().busy, 1);
  // 10,000 s are 33 times five minutes.
  const auto coarse = history.Read(DeviceHistory::Step::kCoarse, "a");
  EXPECT_EQ(coarse.at("a").size(), 34u);
  EXPECT_EQ(coarse.at("a").back().busy, 1);
  // The clock was set back.
  const auto device = Device("a", 1e6);
  history.Sample({&device, 1}, start);
  EXPECT_EQ(history.Read(DeviceHistory::Step::kFine, "a").at("a").back().at,
            start);
}

constexpr char kAdd[] = R"py(@T.prim_func
def main(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    for i, j in T.grid(64, 32):
        with T.block("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B[v_i, v_j] = A[v_i, v_j] + T.float32(1)
)py";

TEST(RooflineTest, LimitsFollowFromTargetAndClock) {
  const auto program = ir::ParseFunction(kAdd);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto target = target::ParseKey("x86-64:znver4,cores=2");
  ASSERT_TRUE(target.ok());
  const Roofline roofline = RooflineOf(**program, *target, 4e9);
  EXPECT_EQ(roofline.flops, 64 * 32);
  EXPECT_EQ(roofline.bytes, 2 * 64 * 32 * 4);
  EXPECT_EQ(roofline.cores, 2);
  // A multiply-add of vectors of 16 numbers, on two cores.
  EXPECT_EQ(roofline.peak_flops_per_second, 2 * 4e9 * 2 * 512 / 32);
  ASSERT_EQ(roofline.bandwidths.size(), 3u);
  EXPECT_EQ(roofline.bandwidths[2].level, "memory");
  EXPECT_GT(roofline.bandwidths[0].bytes_per_second,
            roofline.bandwidths[1].bytes_per_second);
  EXPECT_EQ(RooflineOf(**program, *target, 0).peak_flops_per_second, 0);
  // Two a cycle, as most cores have, and with half the vectors.
  for (const char* other : {"x86-64:znver5,cores=1", "x86-64:znver3,cores=1",
                            "x86-64:znver4,-avx512f,cores=1"}) {
    const auto wide = target::ParseKey(other);
    ASSERT_TRUE(wide.ok()) << wide.status();
    EXPECT_EQ(RooflineOf(**program, *wide, 4e9).peak_flops_per_second,
              2 * 4e9 * 2 * wide->vector_bits / 32)
        << other;
  }
}

TEST(DeviceClockTest, TheCanaryTellsTheClock) {
  const std::string state =
      R"({"clock_mhz":2596.1,"canary_seconds":0.000010000})";
  const services::DeviceClock clock =
      services::ClockOf("x86-64:znver5,cores=1", state);
  EXPECT_TRUE(clock.measured);
  EXPECT_EQ(clock.mhz, 4000);
  // Where the length of a step is not known, or the canary was disturbed.
  const auto reported = [](const std::string& target, const std::string& json) {
    const services::DeviceClock found = services::ClockOf(target, json);
    EXPECT_FALSE(found.measured);
    return found.mhz;
  };
  EXPECT_EQ(reported("x86-64:gracemont,cores=1", state), 2596.1);
  EXPECT_EQ(reported("aarch64:cortex-a72", state), 2596.1);
  EXPECT_EQ(reported("x86-64:znver5", R"({"clock_mhz":2000})"), 2000);
  EXPECT_EQ(
      reported("x86-64:znver5", R"({"clock_mhz":2000,"canary_seconds":0.5})"),
      2000);
  EXPECT_EQ(reported("x86-64:znver5", R"({"canary_seconds":1e-300})"), 0);
  EXPECT_EQ(reported("x86-64:znver5", "damaged"), 0);
}

}  // namespace
}  // namespace tilefarm::api
