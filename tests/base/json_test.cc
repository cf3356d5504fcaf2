#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace tilefarm {
namespace {

std::string Nested(int depth, char open = '[', char close = ']') {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(JsonTest, ReadsWhatNestsAsDeepAsItMay) {
  EXPECT_TRUE(ParseJson(Nested(kMostJsonDepth)).is_array());
  EXPECT_EQ(ParseJson("{\"a\": [1, {\"b\": 2}]}")["a"][1]["b"], 2);
}

TEST(JsonTest, DiscardsWhatNestsDeeper) {
  EXPECT_TRUE(ParseJson(Nested(kMostJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(
      ParseJson<nlohmann::ordered_json>(Nested(10'000'000)).is_discarded());
  EXPECT_TRUE(ParseJson("{\"a\":" + Nested(1'000'000) + "}").is_discarded());
}

TEST(JsonTest, BracketsInStringsNestNothing) {
  const std::string brackets = "\"" + Nested(100) + "\\\"" + Nested(100) + "\"";
  EXPECT_TRUE(ParseJson(brackets).is_string());
  // A string does not hide what follows it.
  EXPECT_TRUE(NestsDeeper("\"\\\\\"" + Nested(kMostJsonDepth + 1)));
}

TEST(JsonTest, DiscardsWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "\"", "]]]]", "{\"a\":\"\\"}) {
    EXPECT_TRUE(ParseJson(text).is_discarded()) << text;
  }
}

}  // namespace
}  // namespace tilefarm
