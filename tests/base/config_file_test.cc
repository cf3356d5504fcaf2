#include "base/daemon/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tilefarm::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConfigFileTest : public ::testing::Test {
 protected:
  ConfigFileTest() {
    app_.add_option("--db", db_)->envname("TILEFARM_TEST_DB");
    app_.add_option("--tls-cert", cert_);
    app_.add_option("--builders", builders_)->check(CLI::Range(1, 8));
    app_.add_flag("--insecure", insecure_);
    app_.add_option("--timeout", timeouts_)->check([](const std::string& pair) {
      return pair.ends_with("=never") ? "no duration" : "";
    });
    app_.add_option("--config", config_);
    app_.set_version_flag("--version", "1");
  }
  ~ConfigFileTest() override { unsetenv("TILEFARM_TEST_DB"); }

  absl::Status Apply(const std::string& text, std::vector<std::string> args) {
    // CLI11 takes the arguments in reverse order.
    std::reverse(args.begin(), args.end());
    app_.parse(args);
    return ApplyConfig(text, "f.toml", app_);
  }
  std::string ErrorOf(const std::string& text) {
    const absl::Status status = Apply(text, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  CLI::App app_;
  std::string db_ = "default", cert_, config_;
  int builders_ = 3;
  bool insecure_ = false;
  std::vector<std::string> timeouts_;
};

TEST_F(ConfigFileTest, FlagsWinOverEnvironmentOverFileOverDefaults) {
  const std::string text = "db = 'file'\ntls_cert = 'c'\nbuilders = 4\n";
  ASSERT_TRUE(Apply("", {}).ok());
  EXPECT_EQ(db_, "default");
  ASSERT_TRUE(Apply(text, {}).ok());
  EXPECT_EQ(db_, "file");
  EXPECT_EQ(cert_, "c");
  EXPECT_EQ(builders_, 4);
  setenv("TILEFARM_TEST_DB", "environment", 1);
  ASSERT_TRUE(Apply(text, {}).ok());
  EXPECT_EQ(db_, "environment");
  ASSERT_TRUE(Apply(text, {"--db", "flag", "--builders=5"}).ok());
  EXPECT_EQ(db_, "flag");
  EXPECT_EQ(builders_, 5);
  EXPECT_EQ(cert_, "c");
}

TEST_F(ConfigFileTest, AFlagIsTrueOrFalseAndCanBeTakenBack) {
  ASSERT_TRUE(Apply("insecure = true", {}).ok());
  EXPECT_TRUE(insecure_);
  ASSERT_TRUE(Apply("insecure = true", {"--insecure=false"}).ok());
  EXPECT_FALSE(insecure_);
  EXPECT_EQ(ErrorOf("insecure = 'yes'"),
            "f.toml:1:12: insecure is true or false");
  EXPECT_EQ(ErrorOf("db = true"), "f.toml:1:6: db is neither true nor false");
}

TEST_F(ConfigFileTest, OfATableEachKeyIsOverriddenByItself) {
  ASSERT_TRUE(
      Apply("[timeouts]\ntick = '1s'\nlease = 3\n", {"--timeout", "tick=2s"})
          .ok());
  // Later values override.
  EXPECT_THAT(timeouts_, ElementsAre("lease=3", "tick=1s", "tick=2s"));
}

TEST_F(ConfigFileTest, AnUnknownKeyIsNamedWithItsPlaceAndTheNearestOne) {
  EXPECT_EQ(ErrorOf("\ntls_crt = 'c'"),
            "f.toml:2:1: there is no option 'tls_crt'; the nearest is "
            "'tls_cert'");
  EXPECT_THAT(ErrorOf("timeout = 'tick=2s'"), HasSubstr("'timeouts'"));
  // Options that a file cannot set.
  for (const char* key : {"config", "version", "help"}) {
    EXPECT_THAT(ErrorOf(std::string(key) + " = 'x'"), HasSubstr("no option"));
  }
}

TEST_F(ConfigFileTest, ABadValueIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf("builders = 9"), StartsWith("f.toml:1:12: builders: "));
  EXPECT_THAT(ErrorOf("builders = 'many'"), StartsWith("f.toml:1:12: "));
  // Also if a flag takes precedence.
  EXPECT_FALSE(Apply("builders = 9", {"--builders", "2"}).ok());
  EXPECT_THAT(ErrorOf("[timeouts]\na = '1s'\nb = 'never'"),
              StartsWith("f.toml:3:1: timeouts.b: "));
  EXPECT_EQ(ErrorOf("timeouts = 3"),
            "f.toml:1:12: timeouts is a table: [timeouts]");
  EXPECT_EQ(ErrorOf("db = ['a', 'b']"), "f.toml:1:6: db takes one value");
  EXPECT_EQ(ErrorOf("[db]\na = 1"), "f.toml:1:1: db takes one value");
  EXPECT_THAT(ErrorOf("[timeouts.tick]\na = 1"), HasSubstr("timeouts.tick"));
}

TEST_F(ConfigFileTest, WhatIsNoTomlIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf("db = 'a'\ndb = 'b'"), StartsWith("f.toml:2:"));
  EXPECT_THAT(ErrorOf("db 'a'"), StartsWith("f.toml:1:"));
  EXPECT_EQ(ApplyConfigFile("/no/such/file.toml", app_).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ConfigFileTest, KeysAreTheOptions) {
  EXPECT_THAT(ConfigKeys(app_), ElementsAre("db", "tls_cert", "builders",
                                            "insecure", "timeouts"));
}

}  // namespace
}  // namespace tilefarm::daemon
