// What tune plot draws, and what tune report writes.
#include "server/cli/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "server/cli/report.h"

namespace tilefarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Plot SmallPlot() {
  return {.points = {{1, 8e-3}, {2, 4e-3}, {3, 6e-3}, {4, 1e-3}, {5, 2e-3}},
          .steps = {{1, 8e-3}, {2, 4e-3}, {4, 1e-3}},
          .levels = {{"as written", 1.6e-2}, {"unknown", 0}},
          .x_name = "trials",
          .columns = 32,
          .rows = 6,
          .ascii = true};
}

TEST(PlotTest, DrawsPointsStepsAndLevels) {
  EXPECT_EQ(DrawPlot(SmallPlot()),
            " 16.000 ms |-- -- -- -- -- -- --\n"
            "           |_____|\n"
            "           |     _________|\n"
            "  3.031 ms |              |\n"
            "           |              |    .\n"
            "  1.000 ms |              ______\n"
            "           +--------------------\n"
            "           1            5 trials\n"
            "  - - as written 16.000 ms\n");
}

TEST(PlotTest, BrailleLinesAreAsWide) {
  Plot plot = SmallPlot();
  plot.ascii = false;
  const std::string text = DrawPlot(plot);
  EXPECT_THAT(text, HasSubstr("│"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    int characters = 0;
    for (const char c : line) characters += (c & 0xc0) != 0x80;
    EXPECT_LE(characters, plot.columns) << line;
  }
}

TEST(PlotTest, WithoutTimesThereIsNothing) {
  EXPECT_EQ(DrawPlot({}), "");
  EXPECT_EQ(DrawPlot({.points = {{1, 0}}, .levels = {{"x", 1}}}), "");
  // One point is in the middle of an empty range.
  EXPECT_THAT(DrawPlot({.points = {{1, 1e-3}}, .x_name = "s", .ascii = true}),
              HasSubstr("1.000 ms"));
}

TEST(ReportTest, TheScriptIsOneModule) {
  const auto bundle = Bundle();
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  // No import and no export is left, and no name stands for two things.
  std::map<std::string, int> names;
  for (const absl::string_view line : absl::StrSplit(*bundle, '\n')) {
    EXPECT_FALSE(absl::StartsWith(line, "import ")) << line;
    EXPECT_FALSE(absl::StartsWith(line, "export ")) << line;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" (={;"), absl::SkipEmpty());
    if (words.size() < 2) continue;
    for (const char* keyword : {"function", "const", "let", "class"}) {
      if (absl::StartsWith(line, std::string(keyword) + " ")) ++names[words[1]];
    }
  }
  EXPECT_GT(names.size(), 40u);
  for (const auto& [name, count] : names) EXPECT_EQ(count, 1) << name;
}

TEST(ReportTest, ThePageHasItsDataAndPermitsItsScriptsAlone) {
  const std::string page =
      ReportPage({{"job", {{"program", "</script><script>alert(1)"}}}});
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(page, Not(HasSubstr("</script><script>alert")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e"));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

}  // namespace
}  // namespace tilefarm::cli
