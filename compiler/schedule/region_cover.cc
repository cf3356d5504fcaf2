// Region cover (block_info.h): everything that a block reads was surely written
// before, in the same iteration of the loops that it shares with the writers.
// Blocks that write it later do not count.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/index_math.h"
#include "compiler/arith/int_set.h"
#include "compiler/ir/visitor.h"
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

// The elements of a region, while loops of a block run, as sums over them:
// element first[d] + sum of coefficients[l][d] * loop l.
struct StridedRegion {
  struct Loop {
    std::vector<int64_t> coefficients;  // by dimension
    int64_t extent;
    bool operator<(const Loop& other) const {
      return std::tie(coefficients, extent) <
             std::tie(other.coefficients, other.extent);
    }
  };
  std::vector<arith::Linear> first;
  std::vector<Loop> loops;  // that the region uses, sorted
  std::vector<int64_t> extents;
};

// The bindings of the block's variables, where loops of one iteration are what
// they start from.
ir::VarMap PlaceOf(const ScheduleState& state, const BlockNode& block) {
  ir::VarMap units, bindings = BindingsOf(block);
  for (const ir::ForPtr& loop : state.LoopsAbove(&block)) {
    if (ir::IsConstInt(loop->extent, 1)) units[loop->var.get()] = loop->min;
  }
  for (auto& [var, binding] : bindings) {
    binding = ir::Substitute(binding, units);
  }
  return bindings;
}

// nullopt: it is not of this form.
std::optional<StridedRegion> AsStrided(arith::IndexMath& math,
                                       const ir::VarMap& place,
                                       const BufferRegion& region,
                                       const std::vector<ir::ForPtr>& loops) {
  StridedRegion out;
  const BufferRegion ranges = SubstituteRegion(region, place);
  for (const ir::Range& range : ranges.region) {
    const auto extent = ir::AsInt(range.extent);
    if (!extent) return std::nullopt;
    out.extents.push_back(*extent);
    out.first.push_back(math.Decompose(range.min));
  }
  for (const ir::ForPtr& loop : loops) {
    const auto extent = ir::AsInt(loop->extent);
    if (!extent || !ir::IsConstInt(loop->min, 0)) return std::nullopt;
    StridedRegion::Loop used{{}, *extent};
    for (arith::Linear& first : out.first) {
      used.coefficients.push_back(first.CoefficientOf(loop->var.get()));
      if (used.coefficients.back() != 0) {
        first.AddTerm(loop->var, -used.coefficients.back());
      }
    }
    const bool is_used = std::ranges::any_of(used.coefficients,
                                             [](int64_t c) { return c != 0; });
    if (is_used) out.loops.push_back(std::move(used));
  }
  // No loop is left, such as in a quotient.
  for (const arith::Linear& first : out.first) {
    for (const auto& [atom, coefficient] : first.terms) {
      for (const ir::ForPtr& loop : loops) {
        if (ir::UsesVar(atom, loop->var.get())) return std::nullopt;
      }
    }
  }
  // Loops that split one, as that one.
  const auto split = [&](const StridedRegion::Loop& outer,
                         const StridedRegion::Loop& inner) {
    for (size_t d = 0; d < inner.coefficients.size(); ++d) {
      if (outer.coefficients[d] != inner.coefficients[d] * inner.extent) {
        return false;
      }
    }
    return true;
  };
  for (size_t a = 0; a < out.loops.size(); ++a) {
    for (size_t b = 0; b < out.loops.size(); ++b) {
      if (a == b || !split(out.loops[a], out.loops[b])) continue;
      out.loops[a].coefficients = out.loops[b].coefficients;
      out.loops[a].extent *= out.loops[b].extent;
      out.loops.erase(out.loops.begin() + static_cast<std::ptrdiff_t>(b));
      a = b = 0;
    }
  }
  std::sort(out.loops.begin(), out.loops.end());
  return out;
}

// Whether the writer surely writes just what the consumer reads, both with
// loops of their own over the same elements, which may lie apart.
bool WritesTheSame(const ScheduleState& state, const BlockNode& writer,
                   const BufferRegion& write,
                   const std::vector<ir::ForPtr>& writer_loops,
                   const BlockNode& consumer, const BufferRegion& read,
                   const std::vector<ir::ForPtr>& consumer_loops) {
  if (!ir::IsConstInt(writer.predicate, 1) ||
      !WritesAll(state, writer, write) ||
      !CheckOnlyLoopsAbove(state, &writer).ok()) {
    return false;
  }
  arith::IndexMath math;
  const auto written =
      AsStrided(math, PlaceOf(state, writer), write, writer_loops);
  const auto needed =
      AsStrided(math, PlaceOf(state, consumer), read, consumer_loops);
  if (!written || !needed || written->extents != needed->extents) return false;
  for (size_t d = 0; d < written->first.size(); ++d) {
    arith::Linear apart = written->first[d];
    apart.Add(needed->first[d], -1);
    if (!apart.is_constant() || apart.constant != 0) return false;
  }
  // The elements of each of the consumer's loops are those of another one.
  return std::includes(written->loops.begin(), written->loops.end(),
                       needed->loops.begin(), needed->loops.end());
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
    if (WrittenTogether(state, writers, read.buffer, below, needed, analyzer)) {
      return true;
    }
    for (const BlockPtr& writer : writers) {
      for (const BufferRegion& write : writer->writes) {
        if (write.buffer == read.buffer &&
            WritesTheSame(state, *writer, write, below(writer.get()), *consumer,
                          read, below(consumer))) {
          return true;
        }
      }
    }
    return false;
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
