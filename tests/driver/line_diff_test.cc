#include "compiler/driver/line_diff.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tilefarm::driver {
namespace {

TEST(UnifiedDiff, OfEqualTextsIsEmpty) {
  EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n", "x", "y"), "");
  EXPECT_EQ(UnifiedDiff("", "", "x", "y"), "");
}

TEST(UnifiedDiff, ShowsThreeLinesAround) {
  std::string before, after;
  for (int i = 1; i <= 20; ++i) {
    absl::StrAppend(&before, i, "\n");
    absl::StrAppend(&after, i == 10 ? "ten" : std::to_string(i), "\n");
  }
  EXPECT_EQ(UnifiedDiff(before, after, "x", "y"),
            "--- x\n+++ y\n@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n"
            " 13\n");
}

TEST(UnifiedDiff, ChangesThatAreFarApartAreGroupsOfTheirOwn) {
  std::string before, after = "0\n";
  for (int i = 1; i <= 30; ++i) absl::StrAppend(&before, i, "\n");
  absl::StrAppend(&after, before, "31\n");
  EXPECT_EQ(UnifiedDiff(before, after, "x", "y"),
            "--- x\n+++ y\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -28,3 +29,4 @@\n"
            " 28\n 29\n 30\n+31\n");
}

TEST(UnifiedDiff, TextsWithoutLines) {
  EXPECT_EQ(UnifiedDiff("", "a\nb", "x", "y"),
            "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(UnifiedDiff("a\n", "", "x", "y"),
            "--- x\n+++ y\n@@ -1,1 +0,0 @@\n-a\n");
}

// Several are as short: what counts is that it has both texts in it.
TEST(UnifiedDiff, IsTheShortest) {
  const std::string before = "a\nb\nc\na\nb\nb\na\n";
  const std::string after = "c\nb\na\nb\na\nc\n";
  std::istringstream lines(UnifiedDiff(before, after, "x", "y"));
  std::string first, second;
  int changed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "--- x" || line == "+++ y" || line[0] == '@') continue;
    changed += line[0] != ' ';
    if (line[0] != '+') absl::StrAppend(&first, line.substr(1), "\n");
    if (line[0] != '-') absl::StrAppend(&second, line.substr(1), "\n");
  }
  EXPECT_EQ(first, before);
  EXPECT_EQ(second, after);
  // The texts have four lines in common at most.
  EXPECT_EQ(changed, 5);
}

TEST(UnifiedDiff, LargePartsAreReplacedAsAWhole) {
  std::string before = "same\n", after = "same\n";
  for (int i = 0; i < 9000; ++i) {
    absl::StrAppend(&before, "a", i, "\n");
    absl::StrAppend(&after, "b", i, "\n");
  }
  const std::string diff = UnifiedDiff(before, after, "x", "y");
  EXPECT_NE(diff.find("@@ -1,9001 +1,9001 @@\n same\n-a0\n-a1\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tilefarm::driver
