#include "base/units.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tilefarm {
namespace {

TEST(FormatSeconds, HasThreeDigits) {
  EXPECT_EQ(FormatSeconds(2.5), "2.500 s");
  EXPECT_EQ(FormatSeconds(2.5e-3), "2.500 ms");
  EXPECT_EQ(FormatSeconds(2.5e-6), "2.500 us");
  EXPECT_EQ(FormatSeconds(2.5e-9), "0.003 us");
  EXPECT_EQ(FormatSeconds(0.99999999), "1.000 s");
  EXPECT_EQ(FormatSeconds(0.99999999e-3), "1.000 ms");
  EXPECT_EQ(FormatSeconds(0), "-");
  EXPECT_EQ(FormatSeconds(-1), "-");
  EXPECT_EQ(FormatSeconds(NAN), "-");
}

TEST(FormatBytes, HasFourDigits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(96), "96 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(64 << 20), "64 MiB");
  EXPECT_EQ(FormatBytes(2.25 * (1 << 30)), "2.25 GiB");
  EXPECT_EQ(FormatBytes(1024 * 1024 - 1), "1 MiB");
  EXPECT_EQ(FormatBytes(5000.0 * (1ull << 40)), "5000 TiB");
}

TEST(ParseBytes, ReadsWholeNumbersOfUnits) {
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("96"), 96);
  EXPECT_EQ(ParseBytes("96B"), 96);
  EXPECT_EQ(ParseBytes("3KiB"), 3072);
  EXPECT_EQ(ParseBytes("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(ParseBytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(ParseBytes("8388607TiB"), int64_t{8388607} << 40);
  for (const char* text : {"", "B", "MiB", "-1", "1.5GiB", "8GB", "1 MiB",
                           "8388608TiB", "99999999999999999999"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(FormatRate, IsInGiga) {
  EXPECT_EQ(FormatRate(488.26e9, "FLOPS"), "488.3 GFLOPS");
  EXPECT_EQ(FormatRate(12.1e9, "B/s"), "12.1 GB/s");
  EXPECT_EQ(FormatShare(0.453), "45 %");
}

}  // namespace
}  // namespace tilefarm
