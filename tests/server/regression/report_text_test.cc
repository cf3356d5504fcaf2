#include "server/regression/report_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "server/regression/ratio_text.h"

namespace tilefarm::regression {
namespace {

TEST(ReportTextTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(ValidUtf8("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(ValidUtf8("a\xff"), "a\xEF\xBF\xBD");
  EXPECT_EQ(ValidUtf8(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(ReportTextTest, ShorteningKeepsCharactersWhole) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcdef", 5), "ab...");
  // The second of the two bytes would have been left out.
  EXPECT_EQ(Shortened("a\xc3\xbc"
                      "cdef",
                      5),
            "a...");
  EXPECT_EQ(Shortened("abcdef", 3), "...");
}

TEST(ReportTextTest, XmlHasNoMarkupAndNoInvalidCharacters) {
  EXPECT_EQ(XmlText("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(XmlText("]]>"), "]]&gt;");
  EXPECT_EQ(XmlText("a\nb"), "a&#10;b");
  EXPECT_EQ(XmlText("\x1b[31m\xff"), "\xEF\xBF\xBD[31m\xEF\xBF\xBD");
  EXPECT_EQ(XmlText("\xEF\xBF\xBE"), "\xEF\xBF\xBD");
}

TEST(ReportTextTest, MarkdownCodeStaysOneCellOfCode) {
  EXPECT_EQ(MarkdownCode("conv2d"), "`conv2d`");
  EXPECT_EQ(MarkdownCode("a|b"), "`a\\|b`");
  EXPECT_EQ(MarkdownCode("a\nb"), "`a b`");
  EXPECT_EQ(MarkdownCode("a`b"), "``a`b``");
  EXPECT_EQ(MarkdownCode("`a"), "`` `a ``");
  EXPECT_EQ(MarkdownCode("@team #1 <b>"), "`@team #1 <b>`");
  EXPECT_EQ(MarkdownCode(""), "");
  EXPECT_EQ(MarkdownCode("  "), "");
}

TEST(ReportTextTest, MarkdownTextIsNoMarkup) {
  EXPECT_EQ(MarkdownText("a|b\nc"), "a\\|b c");
  EXPECT_EQ(MarkdownText("*a* _b_ [c](d)"), "\\*a\\* \\_b\\_ \\[c\\](d)");
  EXPECT_EQ(MarkdownText("<img src=x>"), "&lt;img src=x&gt;");
  EXPECT_EQ(MarkdownText("@team #12"), "@<!-- -->team #<!-- -->12");
  EXPECT_EQ(MarkdownText("https://x www.x"), "https:<!-- -->//x www<!-- -->.x");
}

TEST(ReportTextTest, LinksLeadToTheWeb) {
  EXPECT_TRUE(IsLink("https://ci.example/run/1?a=1&b=2#c"));
  EXPECT_TRUE(IsLink("http://localhost:8080/"));
  EXPECT_FALSE(IsLink(""));
  EXPECT_FALSE(IsLink("javascript:alert(1)"));
  EXPECT_FALSE(IsLink("https://a b"));
  EXPECT_FALSE(IsLink("https://a>b"));
  EXPECT_FALSE(IsLink("https://a|b"));
  EXPECT_FALSE(IsLink("https://" + std::string(500, 'a')));
}

TEST(ReportTextTest, CsvFieldsAreQuotedAndNoFormulas) {
  EXPECT_EQ(CsvText("a b"), "a b");
  EXPECT_EQ(CsvText("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvText("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(CsvText("a\nb"), "\"a\nb\"");
  EXPECT_EQ(CsvText("=HYPERLINK(1)"), "'=HYPERLINK(1)");
  EXPECT_EQ(CsvText("-1+2,3"), "\"'-1+2,3\"");
  EXPECT_EQ(CsvText(""), "");
}

TEST(RatioTextTest, ChangesArePercentagesOrFactors) {
  EXPECT_EQ(ChangeText(1.051), "+5.1 %");
  EXPECT_EQ(ChangeText(0.997), "-0.3 %");
  EXPECT_EQ(ChangeText(1.0), "0.0 %");
  EXPECT_EQ(ChangeText(0.99996), "0.0 %");
  EXPECT_EQ(ChangeText(1.9996), "+100.0 %");
  EXPECT_EQ(ChangeText(2.31), "x2.31");
  EXPECT_EQ(ChangeText(std::numeric_limits<double>::infinity()), "unknown");
}

TEST(RatioTextTest, IntervalsMayBeUnknown) {
  EXPECT_EQ(
      IntervalText(
          {.ratio = 1, .low = 0.99, .high = 1.02, .level = 0.9, .clusters = 9}),
      "-1.0 % to +2.0 %");
  EXPECT_EQ(IntervalText({.ratio = 1,
                          .low = 0,
                          .high = std::numeric_limits<double>::infinity(),
                          .clusters = 3}),
            "unknown");
  EXPECT_EQ(IntervalText({}), "unknown");
}

TEST(RatioTextTest, SharesAndSecondsHaveUnits) {
  EXPECT_EQ(PercentText(0.03), "3 %");
  EXPECT_EQ(PercentText(0.025), "2.5 %");
  EXPECT_EQ(SecondsText(1.5), "1.5 s");
  EXPECT_EQ(SecondsText(1.2345e-3), "1.234 ms");
  EXPECT_EQ(SecondsText(1.5e-6), "1.5 us");
  EXPECT_EQ(SecondsText(2e-9), "2 ns");
  EXPECT_EQ(SecondsText(0), "-");
}

}  // namespace
}  // namespace tilefarm::regression
