#include "compiler/schedule/access_facts.h"

#include <algorithm>
#include <utility>

namespace tilefarm::schedule {
namespace {

// Answers about removed blocks stay in the map, so it is cleared when it
// reaches this size.
constexpr size_t kMostKnown = 1024;

}  // namespace

bool AccessFacts::Known::IsOf(const Access& access) const {
  const ir::BlockNode& block = *access.block;
  return predicate == block.predicate &&
         shape == access.region->buffer->shape &&
         std::ranges::equal(region, access.region->region,
                            [](const ir::Range& x, const ir::Range& y) {
                              return x.min == y.min && x.extent == y.extent;
                            }) &&
         std::ranges::equal(iters, block.iters,
                            [](const ir::IterVar& x, const ir::IterVar& y) {
                              return x.var == y.var && x.binding == y.binding;
                            }) &&
         std::ranges::equal(
             loops, access.loops, [](const ir::ForPtr& x, const ir::ForPtr& y) {
               return x == y ||
                      (x->var == y->var && x->min == y->min &&
                       x->extent == y->extent && x->for_kind == y->for_kind);
             });
}

const void* AccessFacts::KeyOf(const Access& access) {
  // A scalar has no dimension.
  const auto& region = access.region->region;
  return region.empty() ? static_cast<const void*>(access.block)
                        : region.front().min.get();
}

AccessFacts::Known AccessFacts::KnownOf(const Access& access) {
  return {access.block->iters, access.block->predicate, access.region->region,
          access.region->buffer->shape, access.loops};
}

void AccessFacts::Remember(const Key& key, const Access& a, const Access& b,
                           bool answer) {
  if (answers_.size() >= kMostKnown) answers_.clear();
  answers_[key] =
      std::make_shared<const Answer>(Answer{KnownOf(a), KnownOf(b), answer});
}

}  // namespace tilefarm::schedule
