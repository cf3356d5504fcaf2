#include "worker/isolation.h"

#include <iterator>

namespace tilefarm::worker {
namespace {

constexpr std::string_view kLevels[] = {"none", "rlimits", "seccomp-libraries",
                                        "seccomp"};
constexpr std::string_view kNetns = "+netns";

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string Isolation::Text() const {
  std::string text(kLevels[static_cast<size_t>(level)]);
  if (netns) text += kNetns;
  return text;
}

bool ParseIsolation(std::string_view text, Isolation* isolation) {
  std::string_view level = text.substr(0, text.find('+'));
  text.remove_prefix(level.size());
  Isolation parsed;
  bool found = false;
  for (size_t i = 0; i < std::size(kLevels); ++i) {
    if (level != kLevels[i]) continue;
    parsed.level = static_cast<IsolationLevel>(i);
    found = true;
  }
  parsed.netns = TakePrefix(kNetns, &text);
  if (!found || !text.empty()) return false;
  *isolation = parsed;
  return true;
}

}  // namespace tilefarm::worker
