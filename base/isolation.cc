#include "base/isolation.h"

#include <iterator>

namespace tilefarm {
namespace {

constexpr std::string_view kLevels[] = {"none", "rlimits", "seccomp-libraries",
                                        "seccomp"};

// In the order in which Text writes them.
struct Part {
  std::string_view text;
  bool Isolation::*member;
};
constexpr Part kParts[] = {{"+netns", &Isolation::netns},
                           {"+cgroup", &Isolation::cgroup},
                           {"+memory", &Isolation::memory},
                           {"+pids", &Isolation::pids}};

bool TakePrefix(std::string_view prefix, std::string_view* text) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string Isolation::Text() const {
  std::string text(kLevels[static_cast<size_t>(level)]);
  for (const Part& part : kParts) {
    if (this->*part.member) text += part.text;
  }
  return text;
}

bool Isolation::Covers(const Isolation& demanded) const {
  for (const Part& part : kParts) {
    if (demanded.*part.member && !(this->*part.member)) return false;
  }
  return level >= demanded.level;
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
  for (const Part& part : kParts) {
    parsed.*part.member = TakePrefix(part.text, &text);
  }
  const bool limits = parsed.memory || parsed.pids;
  if (!found || !text.empty() || (limits && !parsed.cgroup)) return false;
  *isolation = parsed;
  return true;
}

}  // namespace tilefarm
