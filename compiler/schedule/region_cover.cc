// Region cover (block_info.h): everything that a block reads was surely written
// before, in the same iteration of the loops that it shares with the writers.
// Blocks that write it later do not count.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/int_set.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

using ir::BlockNode;
using ir::BlockPtr;
using ir::BufferRegion;

// The union of two boxes with constant bounds; nullopt if it is not a box.
std::optional<arith::Region> JoinBoxes(const arith::Region& a,
                                       const arith::Region& b) {
  arith::Region joined;
  int differing = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto a_min = ir::AsInt(a[i].min), a_extent = ir::AsInt(a[i].extent);
    const auto b_min = ir::AsInt(b[i].min), b_extent = ir::AsInt(b[i].extent);
    if (!a_min || !a_extent || !b_min || !b_extent) return std::nullopt;
    if (*a_min == *b_min && *a_extent == *b_extent) {
      joined.push_back(a[i]);
      continue;
    }
    const int64_t first = std::min(*a_min, *b_min);
    const int64_t end = std::max(*a_min + *a_extent, *b_min + *b_extent);
    if (++differing > 1 || end - first > *a_extent + *b_extent) {
      return std::nullopt;
    }
    joined.push_back({ir::IntConst(first), ir::IntConst(end - first)});
  }
  return joined;
}

// Whether the writers, each inside the loops that `below` returns, surely write
// `needed`: one of them alone, or several that write adjacent boxes.
template <typename Below>
bool WrittenTogether(const ScheduleState& state,
                     const std::vector<BlockPtr>& writers,
                     const ir::Buffer& buffer, const Below& below,
                     const arith::Region& needed, arith::Analyzer& analyzer) {
  std::optional<arith::Region> together;
  for (const BlockPtr& writer : writers) {
    for (const BufferRegion& write : writer->writes) {
      if (write.buffer != buffer) continue;
      const std::vector<ir::ForPtr> inner = below(writer.get());
      if (SurelyWrites(state, *writer, write, inner, needed, analyzer)) {
        return true;
      }
      const auto box =
          DenseRegion(write, BindingsOf(*writer), RangesOf(inner), analyzer);
      if (!box.has_value() ||
          !SurelyWrites(state, *writer, write, inner, *box, analyzer)) {
        continue;
      }
      const auto joined =
          together.has_value() ? JoinBoxes(*together, *box) : box;
      if (joined.has_value()) together = joined;
    }
  }
  return together.has_value() &&
         arith::RegionCovers(
             analyzer, *together,
             arith::ClipRegion(analyzer, needed, buffer->shape));
}

// Whether what the consumer, `places[0]`, reads of a buffer is covered. The
// other places are the blocks of its scope that write the buffer, in program
// order, with the consumer among them at its position.
bool FindRegionCovered(const ScheduleState& state,
                       const BlockFacts::Places& places,
                       const BufferRegion& read) {
  const BlockNode* consumer = places.front().block.get();
  const std::vector<ir::ForPtr>& consumer_loops = places.front().loops;
  const auto loops_above =
      [&](const BlockNode* block) -> const std::vector<ir::ForPtr>& {
    return std::ranges::find_if(places,
                                [&](const BlockFacts::Place& place) {
                                  return place.block.get() == block;
                                })
        ->loops;
  };
  // Writers before the consumer, grouped by the number of loops that they
  // share with it.
  std::vector<std::pair<size_t, std::vector<BlockPtr>>> groups;
  bool written_later = false;
  bool before = true;
  for (size_t i = 1; i < places.size(); ++i) {
    const BlockFacts::Place& place = places[i];
    if (place.block.get() == consumer) {
      before = false;
      continue;
    }
    const auto shared = std::ranges::mismatch(place.loops, consumer_loops).in2;
    if (!before) {
      // The consumer may read a value of an earlier iteration.
      written_later |= std::any_of(consumer_loops.begin(), shared,
                                   [](const ir::ForPtr& loop) {
                                     return !ir::IsConstInt(loop->extent, 1);
                                   });
      continue;
    }
    const auto common = static_cast<size_t>(shared - consumer_loops.begin());
    const auto group = std::ranges::find_if(
        groups, [&](const auto& g) { return g.first == common; });
    if (group == groups.end()) {
      groups.push_back({common, {place.block}});
    } else {
      group->second.push_back(place.block);
    }
  }
  if (groups.empty() && !written_later) return true;
  return std::ranges::any_of(groups, [&](const auto& group) {
    const auto& [common, writers] = group;
    arith::Analyzer analyzer;
    for (size_t i = 0; i < common; ++i) {
      const ir::ForPtr& loop = consumer_loops[i];
      analyzer.Bind(loop->var, ir::Range{loop->min, loop->extent});
    }
    const auto below = [&](const BlockNode* block) {
      std::vector<ir::ForPtr> loops = loops_above(block);
      loops.erase(loops.begin(),
                  loops.begin() + static_cast<std::ptrdiff_t>(common));
      return loops;
    };
    const arith::Region needed = arith::RelaxRegion(
        analyzer, SubstituteRegion(read, BindingsOf(*consumer)),
        RangesOf(below(consumer)));
    return WrittenTogether(state, writers, read.buffer, below, needed,
                           analyzer);
  });
}

// `only`: the reads of this buffer; null: all.
bool IsCoveredIn(const ScheduleState& state, const BlockScope& scope,
                 const BlockPtr& consumer, const ir::BufferNode* only) {
  for (const BufferRegion& read : consumer->reads) {
    if (only != nullptr && read.buffer.get() != only) continue;
    BlockFacts::Places places{{consumer, state.LoopsAbove(consumer.get())}};
    for (const BlockPtr& block : scope.children()) {
      if (block == consumer ||
          FindRegion(block->writes, read.buffer.get()) != nullptr) {
        places.push_back({block, state.LoopsAbove(block.get())});
      }
    }
    const auto find_out = [&](const BlockFacts::Places& asked) {
      return FindRegionCovered(state, asked, read);
    };
    // One without writers is an input.
    if (places.size() > 2 &&
        !state.facts().covered.Ask(std::move(places), find_out, &read)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool IsRegionCovered(const ScheduleState& state, const BlockNode* consumer,
                     const ir::BufferNode* only) {
  const BlockPtr scope_block = state.Scope(consumer);
  return scope_block == nullptr ||
         IsCoveredIn(state, BlockScope(state, scope_block.get()),
                     state.Ref(consumer), only);
}

absl::Status CheckStagePipeline(const ScheduleState& state,
                                const BlockNode* scope_block) {
  const BlockScope scope(state, scope_block);
  for (const BlockPtr& block : scope.children()) {
    TF_RETURN_IF_ERROR(CheckCompleteOrReduction(state, scope, block.get()));
    if (!IsCoveredIn(state, scope, block, nullptr)) {
      return state.Illegal(block.get(),
                           "it reads what its producers have not written in "
                           "the same iteration of their common loops");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
