// The loops of a nest: what steps and postprocs ask about them, split and fuse.
#include <algorithm>
#include <span>

#include "absl/algorithm/container.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

bool Nest::IsBelow(const NestedBlock& block, int loop) {
  return absl::c_linear_search(block.loops, loop);
}

bool Nest::IsPartOf(int loop, int whole) const {
  while (loop >= 0 && loop != whole) loop = loops_[loop].parent;
  return loop == whole;
}

int64_t Nest::StepOf(int loop, int whole) const {
  int64_t step = 1;
  for (; loop != whole; loop = loops_[loop].parent) step *= loops_[loop].step;
  return step;
}

bool Nest::Uses(const NestedBlock& block, size_t iter, int loop) const {
  for (const LoopPart& part : block.bindings[iter]) {
    if (Moves(part, loop)) return true;
  }
  return false;
}

bool Nest::Reduces(const NestedBlock& block, int loop, bool reduce_only) const {
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    const ir::IterType type = block.iters[i].type;
    if (reduce_only ? type != ir::IterType::kReduce
                    : type == ir::IterType::kSpatial) {
      continue;
    }
    if (Uses(block, i, loop)) return true;
  }
  return false;
}

bool Nest::IsChain(const NestedBlock& block, size_t first, size_t last) const {
  for (size_t b = 0; b < order_.size(); ++b) {
    const NestedBlock& other = At(b);
    // Paths agree down to `first`, or the block is elsewhere.
    if (other.loops.size() <= first ||
        other.loops[first] != block.loops[first]) {
      continue;
    }
    for (size_t i = first; i <= last; ++i) {
      if (i >= other.loops.size() || other.loops[i] != block.loops[i]) {
        return false;
      }
    }
  }
  return true;
}

int Nest::BlocksBelow(int loop) const {
  int count = 0;
  for (size_t b = 0; b < order_.size(); ++b) count += IsBelow(At(b), loop);
  return count;
}

int Nest::Split(int loop, std::span<const int64_t> extents) {
  const int first = static_cast<int>(loops_.size());
  const int count = static_cast<int>(extents.size());
  for (const int64_t extent : extents) {
    loops_.push_back({extent});
    loops_.back().parent = loop;
  }
  int64_t step = 1;
  for (int i = first + count; i-- > first; step *= loops_[i].extent) {
    loops_[i].step = step;
  }
  for (size_t b = 0; b < order_.size(); ++b) {
    NestedBlock& block = At(b);
    const auto at = std::ranges::find(block.loops, loop);
    if (at == block.loops.end()) continue;
    const auto next =
        block.loops.insert(block.loops.erase(at), extents.size(), first);
    for (int i = 0; i < count; ++i) next[i] = first + i;
    for (std::vector<LoopPart>& parts : block.bindings) {
      for (size_t p = 0; p < parts.size(); ++p) {
        const LoopPart old = parts[p];
        if (old.loop != loop || old.is_digit()) continue;
        parts[p] = {first, old.coefficient * loops_[first].step};
        for (int i = first + 1; i < first + count; ++i) {
          parts.insert(parts.begin() + static_cast<ptrdiff_t>(++p),
                       {i, old.coefficient * loops_[i].step});
        }
      }
    }
  }
  return first;
}

// f // 8 * 16 + f % 8 // 2 * 4 is f // 2 * 4: neighbouring digits of a loop
// whose steps continue each other are one, where arith finds the whole binding
// to be an iterator map (arith/iter_map.h).
void Nest::MergeDigits(std::vector<LoopPart>& parts, int loop) {
  merged_ = parts;
  for (size_t high = 0; high < merged_.size(); ++high) {
    if (merged_[high].loop != loop) continue;
    for (size_t low = 0; low < merged_.size(); ++low) {
      if (low == high || merged_[low].loop != loop ||
          merged_[low].upper != merged_[high].lower ||
          merged_[high].coefficient !=
              merged_[low].coefficient *
                  (merged_[low].upper / merged_[low].lower)) {
        continue;
      }
      merged_[low].upper = merged_[high].upper;
      merged_.erase(merged_.begin() + static_cast<ptrdiff_t>(high));
      high = static_cast<size_t>(-1);  // from the start
      break;
    }
  }
  if (merged_.size() == parts.size()) return;
  // Parts of one step are taken in an order that is not known here.
  const bool is_map = HasNoGaps(merged_, /*rightmost=*/true);
  if (is_map != HasNoGaps(merged_, /*rightmost=*/false)) {
    unsure_ = "a fused loop in an overlapping binding";
  }
  if (is_map) parts = merged_;
}

// Whether each part steps by what the smaller ones reach together, or by less
// where the smallest step is one. Of parts of one step those of one iteration
// come first, then the rightmost, or the leftmost.
bool Nest::HasNoGaps(const std::vector<LoopPart>& parts, bool rightmost) {
  const size_t count = parts.size();
  if (count <= 1) return true;
  const auto extent = [&](const LoopPart& part) {
    return (part.upper != 0 ? part.upper : loops_[part.loop].extent) /
           part.lower;
  };
  taken_.assign(count, false);
  int64_t expected = 0;
  bool overlap = false;
  for (size_t n = 0; n < count; ++n) {
    int next = -1;
    bool next_exact = false;
    for (size_t k = 0; k < count; ++k) {
      const size_t i = rightmost ? count - 1 - k : k;
      if (taken_[i]) continue;
      const int64_t step = parts[i].coefficient;
      const bool unit = extent(parts[i]) == 1;
      const auto* best = next < 0 ? nullptr : &parts[static_cast<size_t>(next)];
      bool better = best == nullptr;
      bool exact = false;
      if (n == 0) {
        better = better || step < best->coefficient ||
                 (step == best->coefficient && unit && extent(*best) != 1);
      } else if (step == expected) {
        exact = true;
        better = !next_exact || (unit && extent(*best) != 1);
      } else if (step > expected || !overlap || next_exact) {
        better = false;
      } else {
        better = better || step > best->coefficient;
      }
      if (!better) continue;
      next = static_cast<int>(i);
      next_exact = exact;
    }
    if (next < 0) return false;
    const LoopPart& part = parts[static_cast<size_t>(next)];
    if (n == 0) overlap = part.coefficient == 1;
    taken_[static_cast<size_t>(next)] = true;
    expected = part.coefficient * extent(part);
  }
  return true;
}

int Nest::Fuse(const NestedBlock& block, size_t first, size_t count) {
  const int fused = static_cast<int>(loops_.size());
  const auto begin = block.loops.begin() + static_cast<ptrdiff_t>(first);
  const std::vector<int> old(begin, begin + static_cast<ptrdiff_t>(count));
  int64_t total = 1;
  std::vector<int64_t> lowers(count);
  for (size_t i = count; i-- > 0;) {
    lowers[i] = total;
    total *= loops_[old[i]].extent;
  }
  loops_.push_back({total});
  for (size_t b = 0; b < order_.size(); ++b) {
    NestedBlock& other = At(b);
    const auto outer = std::ranges::find(other.loops, old[0]);
    if (outer == other.loops.end()) continue;
    *outer = fused;
    other.loops.erase(outer + 1, outer + static_cast<ptrdiff_t>(count));
    for (std::vector<LoopPart>& parts : other.bindings) {
      for (LoopPart& part : parts) {
        const auto at = std::ranges::find(old, part.loop);
        if (part.is_digit() && std::ranges::any_of(old, [&](int loop) {
              return IsPartOf(loop, part.loop);
            })) {
          unsure_ = "a fused loop that is fused again";
        }
        if (at == old.end()) continue;
        const auto i = static_cast<size_t>(at - old.begin());
        const int64_t extent = loops_[old[i]].extent;
        // One iteration: its variable is 0.
        if (extent == 1) {
          part.coefficient = 0;
          continue;
        }
        part.loop = fused;
        part.lower = lowers[i];
        part.upper = i > 0 ? lowers[i] * extent : 0;
      }
      std::erase_if(parts,
                    [](const LoopPart& part) { return part.coefficient == 0; });
      MergeDigits(parts, fused);
    }
  }
  return fused;
}

}  // namespace tilefarm::skeleton
