#include "server/search/step_shares.h"

namespace tilefarm::search {
namespace {

template <typename Key>
int64_t Count(const std::map<Key, int64_t>& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

size_t StepShares::Next(std::span<const Individual> ranked) const {
  const auto taken = [&](const Individual& one) {
    const int sketch = one.candidate.sketch;
    return std::pair(Count(by_decision_, std::pair(sketch, one.step.decision)),
                     Count(by_step_, std::pair(sketch, one.step)));
  };
  size_t next = 0;
  for (size_t i = 1; i < ranked.size(); ++i) {
    if (taken(ranked[i]) < taken(ranked[next])) next = i;
  }
  return next;
}

void StepShares::Proposed(const Individual& neighbour) {
  const int sketch = neighbour.candidate.sketch;
  ++by_decision_[{sketch, neighbour.step.decision}];
  ++by_step_[{sketch, neighbour.step}];
}

}  // namespace tilefarm::search
