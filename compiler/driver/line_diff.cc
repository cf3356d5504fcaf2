#include "compiler/driver/line_diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilefarm::driver {
namespace {

using Lines = std::vector<std::string_view>;

constexpr size_t kAround = 3;
// Entries of the table of common lines.
constexpr size_t kMostEntries = size_t{16} << 20;

Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// ' ': in both, '-': in the first alone, '+': in the second alone.
struct Line {
  char kind;
  std::string_view text;
};

// By a table of longest common subsequences, of the part between the lines that
// both texts begin and end with.
std::vector<Line> Compare(const Lines& a, const Lines& b) {
  size_t start = 0, end = 0;
  while (start < std::min(a.size(), b.size()) && a[start] == b[start]) ++start;
  while (end < std::min(a.size(), b.size()) - start &&
         a[a.size() - 1 - end] == b[b.size() - 1 - end]) {
    ++end;
  }
  const size_t n = a.size() - start - end, m = b.size() - start - end;
  std::vector<Line> lines;
  for (size_t i = 0; i < start; ++i) lines.push_back({' ', a[i]});
  size_t i = 0, j = 0;
  if ((n + 1) * (m + 1) <= kMostEntries) {
    // Of the lines from i and j on.
    std::vector<int32_t> common((n + 1) * (m + 1), 0);
    const auto at = [&](size_t x, size_t y) -> int32_t& {
      return common[x * (m + 1) + y];
    };
    for (size_t x = n; x-- > 0;) {
      for (size_t y = m; y-- > 0;) {
        at(x, y) = a[start + x] == b[start + y]
                       ? at(x + 1, y + 1) + 1
                       : std::max(at(x + 1, y), at(x, y + 1));
      }
    }
    while (i < n && j < m) {
      if (a[start + i] == b[start + j]) {
        lines.push_back({' ', a[start + i++]});
        ++j;
      } else if (at(i + 1, j) >= at(i, j + 1)) {
        lines.push_back({'-', a[start + i++]});
      } else {
        lines.push_back({'+', b[start + j++]});
      }
    }
  }
  while (i < n) lines.push_back({'-', a[start + i++]});
  while (j < m) lines.push_back({'+', b[start + j++]});
  for (size_t k = a.size() - end; k < a.size(); ++k) {
    lines.push_back({' ', a[k]});
  }
  return lines;
}

// "12,3": the first line, and how many; diff counts from 0 where there are
// none.
std::string Range(size_t before, size_t count) {
  return absl::StrCat(count == 0 ? before : before + 1, ",", count);
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after,
                        std::string_view before_name,
                        std::string_view after_name) {
  if (before == after) return "";
  const std::vector<Line> lines = Compare(Split(before), Split(after));
  std::string text = absl::StrCat("--- ", std::string(before_name), "\n+++ ",
                                  std::string(after_name), "\n");
  size_t of_first = 0, of_second = 0;  // lines before `at`
  const auto pass = [&](const Line& line) {
    of_first += line.kind != '+';
    of_second += line.kind != '-';
  };
  for (size_t at = 0; at < lines.size();) {
    // The next change, and the lines shown around it and around its successors.
    size_t change = at;
    while (change < lines.size() && lines[change].kind == ' ') ++change;
    if (change == lines.size()) break;
    const size_t first = change - std::min(change - at, kAround);
    for (; at < first; ++at) pass(lines[at]);
    size_t last = change;  // past the last change of the group
    for (size_t k = change; k < lines.size() && k <= last + 2 * kAround; ++k) {
      if (lines[k].kind != ' ') last = k + 1;
    }
    const size_t end = std::min(last + kAround, lines.size());
    const size_t first_before = of_first, second_before = of_second;
    std::string body;
    for (; at < end; ++at) {
      absl::StrAppend(&body, std::string(1, lines[at].kind),
                      std::string(lines[at].text), "\n");
      pass(lines[at]);
    }
    absl::StrAppend(&text, "@@ -", Range(first_before, of_first - first_before),
                    " +", Range(second_before, of_second - second_before),
                    " @@\n", body);
  }
  return text;
}

}  // namespace tilefarm::driver
