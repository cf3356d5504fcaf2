#include "tests/property/shrink.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tilefarm::property {
namespace {

using Lines = std::vector<std::string>;

Lines SplitLines(const std::string& text) { return absl::StrSplit(text, '\n'); }

size_t IndentOf(const std::string& line) {
  const size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? line.size() : first;
}

// The end of the lines that are nested below line `i`.
size_t EndOfSuite(const Lines& lines, size_t i) {
  size_t end = i + 1;
  while (end < lines.size() && !lines[end].empty() &&
         IndentOf(lines[end]) > IndentOf(lines[i])) {
    ++end;
  }
  return end;
}

// Removes line `i` and the lines nested below it.
Lines WithoutSuite(const Lines& lines, size_t i) {
  Lines result(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(i));
  result.insert(
      result.end(),
      lines.begin() + static_cast<std::ptrdiff_t>(EndOfSuite(lines, i)),
      lines.end());
  return result;
}

// Removes line `i` and moves the lines nested below it up by one level.
Lines Unwrapped(const Lines& lines, size_t i) {
  Lines result = lines;
  const size_t end = EndOfSuite(lines, i);
  for (size_t j = i + 1; j < end; ++j) {
    if (result[j].size() > 4) result[j] = result[j].substr(4);
  }
  result.erase(result.begin() + static_cast<std::ptrdiff_t>(i));
  return result;
}

}  // namespace

Case Shrink(Case failing, const StillFails& still_fails, int max_tries) {
  int tries = 0;
  const auto accept = [&](Case candidate) {
    if (++tries > max_tries || !still_fails(candidate)) return false;
    failing = std::move(candidate);
    return true;
  };
  bool smaller = true;
  while (smaller && tries < max_tries) {
    smaller = false;
    for (size_t t = 0; t < failing.traces.size();) {
      Case without = failing;
      without.traces.erase(without.traces.begin() +
                           static_cast<std::ptrdiff_t>(t));
      if (accept(std::move(without))) {
        smaller = true;
      } else {
        ++t;
      }
    }
    for (size_t t = 0; t < failing.traces.size(); ++t) {
      for (size_t i = SplitLines(failing.traces[t]).size(); i-- > 0;) {
        Lines lines = SplitLines(failing.traces[t]);
        if (i >= lines.size() || lines[i].empty()) continue;
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
        Case without = failing;
        without.traces[t] = absl::StrJoin(lines, "\n");
        smaller |= accept(std::move(without));
      }
    }
    for (size_t i = 2; i < SplitLines(failing.text).size();) {
      const Lines lines = SplitLines(failing.text);
      if (lines[i].empty()) {
        ++i;
        continue;
      }
      Case without = failing;
      without.text = absl::StrJoin(WithoutSuite(lines, i), "\n");
      if (accept(std::move(without))) {
        smaller = true;
        continue;
      }
      if (EndOfSuite(lines, i) > i + 1) {
        Case unwrapped = failing;
        unwrapped.text = absl::StrJoin(Unwrapped(lines, i), "\n");
        if (accept(std::move(unwrapped))) {
          smaller = true;
          continue;
        }
      }
      ++i;
    }
  }
  return failing;
}

}  // namespace tilefarm::property
