#include "database/trace_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/status/status.h"

namespace tilefarm::database {
namespace {

constexpr std::string_view kKeyword = "decision=";
constexpr char kSlot = '?';
constexpr char kSeparator = ';';

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Length of the number, None or list of numbers at the start of `text`; 0
// where there is something else.
size_t DecisionLength(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == '[') {
    const size_t close = text.find_first_not_of("0123456789-, ", 1);
    if (close == std::string_view::npos || text[close] != ']') return 0;
    return close + 1;
  }
  size_t end = 0;
  while (end < text.size() && (IsWordChar(text[end]) || text[end] == '-')) {
    ++end;
  }
  return end;
}

}  // namespace

SplitTrace SplitTraceText(std::string_view trace) {
  // The two marks must not occur in the text itself.
  if (trace.find(kSlot) != std::string_view::npos) {
    return {std::string(trace), std::nullopt};
  }
  SplitTrace split;
  std::string decisions;
  int slots = 0;
  size_t at = 0;
  size_t copied = 0;  // up to here
  char quote = 0;
  while (at < trace.size()) {
    const char c = trace[at];
    if (quote != 0) {
      if (c == '\\' && at + 1 < trace.size()) ++at;
      if (c == quote || c == '\n') quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == kKeyword[0] && (at == 0 || !IsWordChar(trace[at - 1])) &&
               trace.substr(at, kKeyword.size()) == kKeyword) {
      const size_t start = at + kKeyword.size();
      const size_t length = DecisionLength(trace.substr(start));
      if (length > 0) {
        split.sketch += trace.substr(copied, start - copied);
        split.sketch += kSlot;
        if (slots++ > 0) decisions += kSeparator;
        decisions += trace.substr(start, length);
        copied = at = start + length;
        continue;
      }
    }
    ++at;
  }
  split.sketch += trace.substr(copied);
  if (slots > 0) split.decisions = std::move(decisions);
  return split;
}

absl::StatusOr<std::string> JoinTraceText(const SplitTrace& split) {
  if (!split.decisions) return split.sketch;
  std::string trace;
  trace.reserve(split.sketch.size() + split.decisions->size());
  std::string_view rest = *split.decisions;
  bool exhausted = false;
  std::string_view sketch = split.sketch;
  for (size_t slot = sketch.find(kSlot); slot != sketch.npos;
       slot = sketch.find(kSlot)) {
    trace += sketch.substr(0, slot);
    sketch.remove_prefix(slot + 1);
    if (exhausted) {
      return absl::DataLossError("a sketch has more slots than decisions");
    }
    const size_t end = std::min(rest.find(kSeparator), rest.size());
    trace += rest.substr(0, end);
    exhausted = end == rest.size();
    rest.remove_prefix(exhausted ? end : end + 1);
  }
  trace += sketch;
  if (!exhausted) {
    return absl::DataLossError("a record has more decisions than slots");
  }
  return trace;
}

}  // namespace tilefarm::database
