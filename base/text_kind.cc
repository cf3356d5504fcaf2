#include "base/text_kind.h"

namespace tilefarm {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string WithoutNumbers(std::string_view text) {
  std::string kind;
  bool in_number = false;
  for (const char c : text) {
    if (!IsDigit(c)) kind.push_back(c);
    if (IsDigit(c) && !in_number) kind.push_back('#');
    in_number = IsDigit(c);
  }
  return kind;
}

std::vector<double> NumbersOf(std::string_view text) {
  std::vector<double> numbers;
  bool in_number = false;
  for (const char c : text) {
    if (IsDigit(c)) {
      if (!in_number) numbers.push_back(0);
      numbers.back() = 10 * numbers.back() + (c - '0');
    }
    in_number = IsDigit(c);
  }
  return numbers;
}

}  // namespace tilefarm
