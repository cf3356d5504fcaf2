#include "compiler/schedule/block_facts.h"

#include <algorithm>
#include <utility>

namespace tilefarm::schedule {
namespace {

// Answers about removed blocks stay in the map, so it is cleared when it
// reaches this size.
constexpr size_t kMostAnswers = 256;

bool IsSame(const ir::ForPtr& a, const ir::ForPtr& b) {
  return a == b ||
         (a->var == b->var && a->min == b->min && a->extent == b->extent);
}

bool IsSame(const BlockFacts::Place& a, const BlockFacts::Place& b) {
  return a.block == b.block &&
         std::ranges::equal(a.loops, b.loops,
                            [](const ir::ForPtr& x, const ir::ForPtr& y) {
                              return IsSame(x, y);
                            });
}

}  // namespace

std::optional<bool> BlockFacts::Find(const Places& places,
                                     const void* detail) const {
  const auto found = answers_.find({places.front().block.get(), detail});
  if (found == answers_.end()) return std::nullopt;
  const Places& known = found->second.places;
  const bool same = std::ranges::equal(
      known, places,
      [](const Place& x, const Place& y) { return IsSame(x, y); });
  return same ? std::optional(found->second.answer) : std::nullopt;
}

void BlockFacts::Remember(Places places, bool answer, const void* detail) {
  if (answers_.size() >= kMostAnswers) answers_.clear();
  const ir::BlockNode* block = places.front().block.get();
  answers_[{block, detail}] = {std::move(places), answer};
}

}  // namespace tilefarm::schedule
