#include "database/target_fit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tilefarm::database {
namespace {

using target::Match;
using target::Target;

// A database has a few dozen.
constexpr size_t kMaxTargets = 1024;

bool Contains(const std::vector<std::string>& features,
              const std::string& feature) {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

// The same cpu with features masked may lack an intrinsic of the trace.
bool LacksFeatures(const Target& wanted, const Target& recorded) {
  for (const std::string& feature : wanted.features) {
    if (feature[0] == '-' && !Contains(recorded.features, feature)) return true;
  }
  for (const std::string& feature : recorded.features) {
    if (feature[0] == '+' && !Contains(wanted.features, feature)) return true;
  }
  return false;
}

}  // namespace

const Target* TargetCache::Find(const std::string& key) {
  const auto [it, added] = targets_.try_emplace(key);
  if (added) {
    absl::StatusOr<Target> parsed = target::ParseKey(key);
    if (parsed.ok()) it->second = *std::move(parsed);
  }
  return it->second ? &*it->second : nullptr;
}

void TargetCache::Trim() {
  if (targets_.size() > kMaxTargets) targets_.clear();
}

Match TargetFit(const Target* recorded, const Target& wanted, bool tensorized) {
  if (recorded == nullptr) return Match::kNone;
  const Match match = target::Compare(*recorded, wanted);
  if (tensorized && match == Match::kMicroarch &&
      LacksFeatures(wanted, *recorded)) {
    return Match::kNone;
  }
  return match;
}

}  // namespace tilefarm::database
