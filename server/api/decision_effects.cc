#include "server/api/decision_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace tilefarm::api {
namespace {

using Groups = std::map<std::string, std::vector<double>>;  // by value: seconds

// The lines of the sketch with a decision, in order.
std::vector<std::string> CallsOf(std::string_view sketch) {
  std::vector<std::string> calls;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(sketch.data(), sketch.size()), '\n')) {
    for (const char c : line) {
      if (c != '?') continue;
      calls.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
  return calls;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Omega squared of log(seconds) by group.
double ShareOf(const Groups& groups) {
  std::vector<double> all;
  for (const auto& [value, seconds] : groups) {
    for (const double one : seconds) all.push_back(std::log(one));
  }
  const double count = static_cast<double>(all.size());
  const double kinds = static_cast<double>(groups.size());
  if (kinds < 2 || count <= kinds) return 0;
  const double mean = MeanOf(all);
  double total = 0, between = 0;
  for (const double one : all) total += (one - mean) * (one - mean);
  for (const auto& [value, seconds] : groups) {
    std::vector<double> logs;
    for (const double one : seconds) logs.push_back(std::log(one));
    const double away = MeanOf(logs) - mean;
    between += static_cast<double>(logs.size()) * away * away;
  }
  const double within = (total - between) / (count - kinds);
  const double share = (between - (kinds - 1) * within) / (total + within);
  return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0;
}

std::vector<ValueEffect> EffectsOf(Groups groups) {
  std::vector<ValueEffect> effects;
  for (auto& [value, seconds] : groups) {
    std::sort(seconds.begin(), seconds.end());
    effects.push_back({.value = value,
                       .count = static_cast<int64_t>(seconds.size()),
                       .best_seconds = seconds.front(),
                       .median_seconds = seconds[seconds.size() / 2]});
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const ValueEffect& a, const ValueEffect& b) {
                     return a.count > b.count;
                   });
  if (effects.size() > kMostValues) effects.resize(kMostValues);
  std::stable_sort(effects.begin(), effects.end(),
                   [](const ValueEffect& a, const ValueEffect& b) {
                     return a.best_seconds < b.best_seconds;
                   });
  return effects;
}

}  // namespace

std::vector<DecisionEffect> DecisionEffects(
    std::string_view sketch, std::span<const DecidedCandidate> candidates) {
  const std::vector<std::string> calls = CallsOf(sketch);
  std::vector<Groups> groups(calls.size());
  for (const DecidedCandidate& candidate : candidates) {
    const std::vector<std::string> values =
        absl::StrSplit(absl::string_view(candidate.decisions.data(),
                                         candidate.decisions.size()),
                       ';');
    if (values.size() != calls.size()) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      groups[i][values[i]].push_back(candidate.seconds);
    }
  }
  std::vector<DecisionEffect> effects;
  for (size_t i = 0; i < calls.size(); ++i) {
    effects.push_back({.call = calls[i],
                       .share = ShareOf(groups[i]),
                       .values = static_cast<int64_t>(groups[i].size()),
                       .effects = EffectsOf(std::move(groups[i]))});
  }
  return effects;
}

}  // namespace tilefarm::api
