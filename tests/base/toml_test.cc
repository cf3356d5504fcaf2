#include "base/toml.h"

#include <gtest/gtest.h>

#include <string>

namespace tilefarm {
namespace {

std::string Error(const std::string& text) {
  const absl::Status status = ParseToml(text, "a.toml").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(TomlTest, ParsesTables) {
  const absl::StatusOr<toml::table> table =
      ParseToml("[a]\nb = 3\n[[c]]\nd = \"e\"\n", "a.toml");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)["a"]["b"].value<int>(), 3);
  EXPECT_EQ((*table)["c"][0]["d"].value<std::string>(), "e");
}

TEST(TomlTest, ErrorsHaveTheirPlace) {
  EXPECT_TRUE(Error("a = 1\nb = \n").starts_with("a.toml:2:"));
  EXPECT_TRUE(Error("a = 1\na = 2\n").starts_with("a.toml:2:"));
}

// The parser relies on assertions for these.
TEST(TomlTest, NamesOfTablesThatCannotBegin) {
  EXPECT_EQ(Error("[=]"),
            "a.toml:1:2: the name of a table cannot begin like this");
  EXPECT_EQ(Error("a = 1\n  [[ $b ]]\n"),
            "a.toml:2:6: the name of a table cannot begin like this");
  EXPECT_EQ(Error("[\n]"),
            "a.toml: this is no TOML (is_bare_key_character(*cp) "
            "|| is_string_delimiter(*cp))");
}

TEST(TomlTest, ErrorsOfValuesNameThem) {
  const absl::StatusOr<toml::table> table = ParseToml("a = 1\nb = 2", "x");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(TomlError("x", table->get("b")->source(), "no").message(),
            "x:2:5: no");
}

}  // namespace
}  // namespace tilefarm
