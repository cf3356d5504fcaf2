#include "base/text_kind.h"

namespace tilefarm {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOfName(char c) {
  return IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Calls `text` for each character outside of numbers, `digit` for each within
// one, with whether it is the first.
template <typename Text, typename Digit>
void Visit(std::string_view all, Text text, Digit digit) {
  bool in_number = false;
  bool in_name = false;
  for (const char c : all) {
    const bool of_number = IsDigit(c) && !in_name;
    if (of_number) {
      digit(c, !in_number);
    } else {
      text(c);
      in_name = IsOfName(c);
    }
    in_number = of_number;
  }
}

}  // namespace

std::string WithoutNumbers(std::string_view text) {
  std::string kind;
  Visit(
      text, [&](char c) { kind.push_back(c); },
      [&](char, bool first) {
        if (first) kind.push_back('#');
      });
  return kind;
}

std::vector<double> NumbersOf(std::string_view text) {
  std::vector<double> numbers;
  Visit(
      text, [](char) {},
      [&](char c, bool first) {
        if (first) numbers.push_back(0);
        numbers.back() = 10 * numbers.back() + (c - '0');
      });
  return numbers;
}

}  // namespace tilefarm
