// Texts from elsewhere - names, messages of compilers - made safe for the
// formats of reports. Bytes that are not UTF-8 become U+FFFD everywhere.
#ifndef TILEFARM_SERVER_REGRESSION_REPORT_TEXT_H_
#define TILEFARM_SERVER_REGRESSION_REPORT_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tilefarm::regression {

std::string ValidUtf8(std::string_view text);

// The text, or its beginning and "...": at most so many bytes, 3 at least. No
// character is cut in two.
std::string Shortened(std::string text, size_t most_bytes);

// For attributes and content of XML 1.0. Characters that it does not have
// become U+FFFD.
std::string XmlText(std::string_view text);

// A code span within a table of GitHub's Markdown, on one line.
std::string MarkdownCode(std::string_view text);
// Plain text within such a table: nothing in it is markup, a link, a person or
// an issue.
std::string MarkdownText(std::string_view text);

// Whether reports may link to it: http or https, and nothing that ends or
// breaks a link in any of the formats.
bool IsLink(std::string_view text);

// A field of RFC 4180. One that a spreadsheet would run as a formula begins
// with an apostrophe.
std::string CsvText(std::string_view text);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_REPORT_TEXT_H_
