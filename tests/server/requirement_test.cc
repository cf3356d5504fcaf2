// Requirements of jobs on devices.
#include "server/farm/requirement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace tilefarm::farm {
namespace {

using ::testing::HasSubstr;

DeviceProperties Board() {
  DeviceProperties device;
  device.cores = 4;
  device.memory_bytes = int64_t{8} << 30;
  device.cpu = "znver4";
  device.isolation = "seccomp";
  device.libraries["openblas"] = "0.3.21";
  device.labels["rack"] = "b2";
  return device;
}

absl::StatusOr<Requirements> Parse(std::vector<std::string> texts,
                                   int cores = 1) {
  return ParseRequirements(
      texts, *target::Parse("x86-64:znver4,cores=" + std::to_string(cores)));
}

bool Met(const std::string& text) {
  const auto parsed = Parse({text});
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() && FirstUnmet(*parsed, "board-3", Board()) == nullptr;
}

TEST(RequirementTest, ExactAndMinimum) {
  EXPECT_TRUE(Met("cores=4"));
  EXPECT_FALSE(Met("cores=3"));
  EXPECT_TRUE(Met("cores>=4"));
  EXPECT_FALSE(Met("cores>=5"));
  EXPECT_TRUE(Met("memory>=8GiB"));
  EXPECT_TRUE(Met("memory>=8191MiB"));
  EXPECT_TRUE(Met("memory=8589934592"));
  EXPECT_FALSE(Met("memory>=9GiB"));
}

TEST(RequirementTest, TextsLabelsAndLibraries) {
  EXPECT_TRUE(Met("cpu=znver4"));
  EXPECT_TRUE(Met("isolation=seccomp"));
  EXPECT_FALSE(Met("isolation=none"));
  EXPECT_TRUE(Met("isolation>=seccomp"));
  EXPECT_TRUE(Met("isolation>=rlimits"));
  EXPECT_FALSE(Met("isolation>=seccomp+cgroup"));
  EXPECT_TRUE(Met("emulated=false"));
  EXPECT_TRUE(Met("artifacts=false"));
  EXPECT_FALSE(Met("artifacts=true"));
  EXPECT_TRUE(Met("device=board-3"));
  EXPECT_TRUE(Met("library.openblas=0.3.21"));
  EXPECT_FALSE(Met("library.onednn=2.6"));
  EXPECT_TRUE(Met("label.rack=b2"));
  EXPECT_FALSE(Met("label.rack=b3"));
  // No device has it now, but one may have it later.
  EXPECT_FALSE(Met("label.fan=quiet"));
}

TEST(RequirementTest, IsolationIsAtLeastAllThatIsDemanded) {
  const auto met = [](const std::string& has, const std::string& demanded) {
    DeviceProperties device = Board();
    device.isolation = has;
    const auto parsed = Parse({"isolation>=" + demanded});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() && FirstUnmet(*parsed, "board-3", device) == nullptr;
  };
  const std::string whole = "seccomp+netns+cgroup+memory+pids";
  for (const char* demanded :
       {"none", "rlimits", "seccomp-libraries", "seccomp", "rlimits+cgroup",
        "seccomp+netns", "seccomp+cgroup+memory", "none+cgroup+pids"}) {
    EXPECT_TRUE(met(whole, demanded)) << demanded;
  }
  EXPECT_TRUE(met(whole, whole));
  EXPECT_FALSE(met("seccomp-libraries+netns", "seccomp"));
  EXPECT_FALSE(met("seccomp+netns", "seccomp+cgroup"));
  EXPECT_FALSE(met("seccomp+cgroup", "seccomp+cgroup+memory"));
  EXPECT_FALSE(met("rlimits+netns+cgroup+memory+pids", "seccomp"));
  // Names that a worker of another release may announce.
  EXPECT_FALSE(met("vm", "none"));
  EXPECT_FALSE(met("", "none"));
  // Both kinds of requirements together.
  EXPECT_TRUE(Parse({"isolation=seccomp+netns", "isolation>=rlimits"}).ok());
  EXPECT_TRUE(
      Parse({"isolation>=seccomp+netns", "isolation>=rlimits+cgroup"}).ok());
}

struct Impossible {
  std::vector<std::string> texts;
  std::string why;
};

TEST(RequirementTest, WhatNoDeviceCouldHaveIsAnError) {
  const Impossible all[] = {
      {{"colour=red"}, "no device has a property 'colour'"},
      {{"rack=b2"}, "label.NAME"},
      {{"cores=4", "cores>=8"}, "no device can have it"},
      {{"memory=8GiB", "memory=4GiB"}, "no device can have it"},
      {{"label.rack=a", "label.rack=b"}, "'a', too"},
      {{"cores>=many"}, "whole number"},
      {{"cores=-1"}, "whole number"},
      {{"memory>=8GB"}, "8GiB"},
      {{"memory>=99999999999TiB"}, "8GiB"},
      {{"cpu>=znver4"}, "no number"},
      {{"isolation>=sandbox"}, "is no isolation"},
      {{"isolation>=seccomp+memory"}, "is no isolation"},
      {{"isolation=a", "isolation=b"}, "'a', too"},
      {{"isolation=rlimits+netns", "isolation>=rlimits+cgroup"},
       "'rlimits+netns', too"},
      {{"emulated=maybe"}, "true nor false"},
      {{"cores"}, "KEY=VALUE"},
      {{"=4"}, "KEY=VALUE"},
      {{">=4"}, "no device has a property"},
      {{"cores="}, "no value"},
      {{"label.=x"}, "no device has a property"},
      {std::vector<std::string>(65, "cores>=1"), "too many"},
      {{"label.x=" + std::string(300, 'y')}, "too long"},
  };
  for (const Impossible& one : all) {
    const auto parsed = Parse(one.texts);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << one.texts[0];
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(one.why));
  }
}

TEST(RequirementTest, TheTargetsCoresCount) {
  EXPECT_TRUE(Parse({"cores=8"}, 8).ok());
  const auto parsed = Parse({"cores=4"}, 8);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()),
              HasSubstr("as the target has"));
}

}  // namespace
}  // namespace tilefarm::farm
