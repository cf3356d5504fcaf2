// Region cover (block_info.h): everything that a block reads has been written
// before, surely and in the same iteration of the loops that it shares with the
// writers.
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

// The union of two boxes with constant bounds where that is a box.
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

// The writers, each in the loops that `below` gives, surely write `needed`: one
// of them all of it, or boxes that are adjacent.
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

// Of a consumer within the scope, and the loops that `places` lists.
bool FindRegionCovered(const ScheduleState& state, const BlockScope& scope,
                       const BlockNode* consumer,
                       const BlockFacts::Places& places) {
  const auto loops_above =
      [&](const BlockNode* block) -> const std::vector<ir::ForPtr>& {
    return std::find_if(places.begin(), places.end(),
                        [&](const BlockFacts::Place& place) {
                          return place.block.get() == block;
                        })
        ->loops;
  };
  const std::vector<ir::ForPtr>& consumer_loops = loops_above(consumer);
  for (const BufferRegion& read : consumer->reads) {
    // Writers by their lowest common loop with the consumer.
    std::vector<std::pair<size_t, std::vector<BlockPtr>>> groups;
    for (const BlockPtr& writer : scope.Writers(read.buffer.get())) {
      if (writer.get() == consumer) continue;
      const std::vector<ir::ForPtr>& loops = loops_above(writer.get());
      size_t common = 0;
      while (common < loops.size() && common < consumer_loops.size() &&
             loops[common] == consumer_loops[common]) {
        ++common;
      }
      const auto group =
          std::find_if(groups.begin(), groups.end(),
                       [&](const auto& g) { return g.first == common; });
      if (group == groups.end()) {
        groups.push_back({common, {writer}});
      } else {
        group->second.push_back(writer);
      }
    }
    if (groups.empty()) continue;
    bool covered = false;
    for (const auto& [common, writers] : groups) {
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
      covered |=
          WrittenTogether(state, writers, read.buffer, below, needed, analyzer);
    }
    if (!covered) return false;
  }
  return true;
}

bool IsRegionCovered(const ScheduleState& state, const BlockScope& scope,
                     const BlockPtr& consumer) {
  if (consumer->reads.empty()) return true;
  // The consumer and all who write what it reads.
  BlockFacts::Places places{{consumer, state.LoopsAbove(consumer.get())}};
  for (const BufferRegion& read : consumer->reads) {
    for (const BlockPtr& writer : scope.Writers(read.buffer.get())) {
      const bool listed = std::any_of(places.begin(), places.end(),
                                      [&](const BlockFacts::Place& place) {
                                        return place.block == writer;
                                      });
      if (!listed) places.push_back({writer, state.LoopsAbove(writer.get())});
    }
  }
  BlockFacts& facts = state.facts().covered;
  if (const auto known = facts.Find(places)) return *known;
  const bool covered = FindRegionCovered(state, scope, consumer.get(), places);
  facts.Remember(std::move(places), covered);
  return covered;
}

}  // namespace

bool IsRegionCovered(const ScheduleState& state, const BlockNode* consumer) {
  const BlockPtr scope_block = state.Scope(consumer);
  if (scope_block == nullptr) return true;
  return IsRegionCovered(state, BlockScope(state, scope_block.get()),
                         state.Ref(consumer));
}

absl::Status CheckStagePipeline(const ScheduleState& state,
                                std::string_view primitive,
                                const BlockNode* scope_block) {
  const BlockScope scope(state, scope_block);
  for (const BlockPtr& block : scope.children()) {
    TF_RETURN_IF_ERROR(
        CheckCompleteOrReduction(state, primitive, scope, block.get()));
    if (!IsRegionCovered(state, scope, block)) {
      return state.Illegal(primitive, block.get(),
                           "it reads what its producers have not written in "
                           "the same iteration of their common loops");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
