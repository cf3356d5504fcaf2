#include "database/packed_columns.h"

#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;

TEST(PackDigest, TakesLowerCaseDigestsOnly) {
  const std::string digest = std::string(60, '0') + "09af";
  const auto packed = PackDigest(digest);
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(*packed, std::string(30, '\0') + "\x09\xaf");
  EXPECT_FALSE(PackDigest("").has_value());
  EXPECT_FALSE(PackDigest("c1").has_value());
  EXPECT_FALSE(PackDigest(std::string(63, '0')).has_value());
  EXPECT_FALSE(PackDigest(std::string(65, '0')).has_value());
  EXPECT_FALSE(PackDigest(std::string(63, '0') + "A").has_value());
  EXPECT_FALSE(PackDigest(std::string(63, '0') + "g").has_value());
}

TEST(PackSamples, GivesBackTheSameBits) {
  const std::vector<double> seconds = {1.784187719622104e-05, 0x1p-60, 0x1p40,
                                       0.1};
  const auto packed = PackSamples(seconds);
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->size(), 32u);
  const auto unpacked = UnpackSamples(*packed);
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  EXPECT_EQ(*unpacked, seconds);
}

TEST(PackSamples, LeavesOddOnesToText) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(PackSamples({}).has_value());
  for (const double odd : {nan, 0.0, -1.0, 0x1p-61, 0x1p41,
                           std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(PackSamples(std::vector{1e-3, odd}).has_value()) << odd;
  }
  const auto text = SamplesFromText(SamplesToText(std::vector{1e-3, nan}));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, ElementsAre(1e-3, ::testing::IsNan()));
}

TEST(UnpackSamples, DamageIsDataLoss) {
  EXPECT_EQ(UnpackSamples("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(UnpackSamples("1234567").status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(UnpackSamples(std::string(8, '\0')).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(SamplesFromText("7").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(SamplesFromText("[1").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tilefarm::database
