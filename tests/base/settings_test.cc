#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilefarm {
namespace {

using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    settings_.Add("wait", &wait_);
    settings_.Add("pause", &pause_, Settings::Zero::kAllowed);
    settings_.Add("tries", &tries_);
    settings_.Add("factor", &factor_);
  }
  void ExpectRefused(const std::string& pair, const std::string& why) {
    const absl::Status status = settings_.SetPair(pair);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << pair;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_EQ(wait_, absl::Seconds(5));
    EXPECT_EQ(pause_, absl::Seconds(1));
    EXPECT_EQ(tries_, 3);
    EXPECT_EQ(factor_, 1.5);
  }

  absl::Duration wait_ = absl::Seconds(5);
  absl::Duration pause_ = absl::Seconds(1);
  int tries_ = 3;
  double factor_ = 1.5;
  Settings settings_;
};

TEST_F(SettingsTest, SetsByName) {
  EXPECT_TRUE(settings_.Set("wait", "1m30s").ok());
  EXPECT_TRUE(settings_.SetPair(" pause = 0 ").ok());
  EXPECT_TRUE(settings_.SetPair("tries=7").ok());
  EXPECT_EQ(wait_, absl::Seconds(90));
  EXPECT_EQ(pause_, absl::ZeroDuration());
  EXPECT_EQ(tries_, 7);
  EXPECT_TRUE(settings_.SetPair("factor=2.25").ok());
  EXPECT_EQ(factor_, 2.25);
}

TEST_F(SettingsTest, AnUnknownNameListsThoseThereAre) {
  ExpectRefused("weight=5s", "known are factor, pause, tries, wait");
  ExpectRefused("wait", "not KEY=VALUE");
}

TEST_F(SettingsTest, ValuesThatAreNoneAreRefused) {
  ExpectRefused("wait=", "a duration such as");
  ExpectRefused("wait=5", "a duration such as");
  ExpectRefused("wait=0s", "more than nothing");
  ExpectRefused("wait=-1s", "more than nothing");
  ExpectRefused("pause=-1ns", "not be negative");
  ExpectRefused("wait=inf", "a year at most");
  ExpectRefused("tries=0", "at least 1");
  ExpectRefused("tries=99999999999", "at least 1");
  for (const char* factor : {"", "0.9", "-2", "nan", "inf", "1e7", "two"}) {
    ExpectRefused(std::string("factor=") + factor, "from 1 to a million");
  }
}

}  // namespace
}  // namespace tilefarm
