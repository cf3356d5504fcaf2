#include "base/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/rng.h"

namespace tilefarm {
namespace {

const absl::Time kTime = absl::FromUnixMillis(1769828575123);

TEST(LogTest, TextLines) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kTime, LogLevel::kWarning, "farm",
                          "device a is gone", {{"device", "a"}}),
            "W 03:02:55.123 farm: device a is gone");
}

TEST(LogTest, JsonLines) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, kTime, LogLevel::kError, "jobs",
                          "say \"hi\"\n\t\\ \x01 é",
                          {{"job", "job-1"}, {"device", "a"}}),
            "{\"time\":\"2026-01-31T03:02:55.123Z\",\"level\":\"error\","
            "\"component\":\"jobs\",\"message\":\"say \\\"hi\\\"\\n\\t\\\\ "
            "\\u0001 é\",\"job\":\"job-1\",\"device\":\"a\"}");
}

TEST(LogTest, JsonIsValidWhateverBytesComeIn) {
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xc0\xaf", "a\xe2\x82"}) {
    const std::string line =
        FormatLogLine(LogFormat::kJson, kTime, LogLevel::kInfo, "c", bad, {});
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_NE(line.find("\\ufffd"), std::string::npos) << line;
  }
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int n = 0; n < 12; ++n) {
      text.push_back(static_cast<char>(rng.Below(256)));
    }
    EXPECT_TRUE(nlohmann::json::accept(FormatLogLine(
        LogFormat::kJson, kTime, LogLevel::kInfo, text, text, {{"k", text}})))
        << "seed 7, line " << i;
  }
}

}  // namespace
}  // namespace tilefarm
