#include "server/farm/device.h"

#include <gtest/gtest.h>

#include "tests/server/fake_worker.h"

namespace tilefarm::farm {
namespace {

using testing::TestHello;

TEST(DeviceTest, FitsByCpuFeaturesAndCores) {
  const auto parse = [](const char* text) { return *target::Parse(text); };
  const target::Target zen4 = parse("x86-64:znver4,cores=4");
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:znver4,cores=1")));
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:znver4,cores=4")));
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:znver4,cores=8")));
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:sapphirerapids,cores=1")));
  EXPECT_FALSE(DeviceFits(zen4, parse("aarch64:cortex-a72,cores=1")));
  EXPECT_TRUE(DeviceFits(zen4, parse("x86-64:x86-64-v3,cores=1")));
  // Times of another microarchitecture do not count, even if it could run the
  // code.
  EXPECT_FALSE(DeviceFits(zen4, parse("x86-64:znver3,cores=1")));
}

TEST(DeviceTest, ChangedHardwareIsANewDevice) {
  DeviceProperties properties = TestHello("w").device;
  const std::string id = DeviceId("w", properties);
  properties.l3_bytes *= 2;
  properties.memory_bytes += 1;
  EXPECT_NE(DeviceId("w", properties), id);
}

}  // namespace
}  // namespace tilefarm::farm
