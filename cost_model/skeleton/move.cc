// compute_at and reverse_compute_at on numbers: the loops that a moved block
// gets follow from the region that is needed (or made) there, as in
// compiler/schedule/compute_at.cc and block_domain.cc.
#include <algorithm>

#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

void Nest::IntervalOf(const NestedBlock& block, const BlockRegion& region,
                      size_t d, int loop, bool must_be_dense,
                      Interval& interval) {
  const IndexExpr& min = region.mins[d];
  // Of a quotient or a remainder: by what, and what its small part reaches.
  const int64_t by = std::max(min.divisor, min.modulus);
  int64_t small = 0;
  interval.outer.clear();
  interval.constant = static_cast<int64_t>(min.constant);
  interval.width = region.extents[d];
  const auto cut = std::ranges::find(block.loops, loop);
  if (cut == block.loops.end()) unsure_ = "a neighbour elsewhere";
  steps_.clear();
  const auto add = [&](int variable, int64_t scale) {
    if (scale <= 0) unsure_ = "an index that falls";
    const auto iter = static_cast<size_t>(variable);
    interval.constant += scale * block.constants[iter];
    for (const LoopPart& part : block.bindings[iter]) {
      const int64_t extent = loops_[part.loop].extent;
      if (extent == 1) continue;
      if (part.is_digit()) unsure_ = "a region of a fused loop";
      int64_t step = scale * part.coefficient;
      if (by > 1) {
        if (step % by == 0) {
          if (min.modulus > 1) continue;
          step /= by;
        } else {
          small += step * (extent - 1);
          if (min.divisor > 1) continue;
        }
      }
      if (std::find(cut, block.loops.end(), part.loop) == block.loops.end() ||
          part.loop == loop) {
        interval.outer.push_back({part.loop, step});
      } else {
        interval.width += step * (extent - 1);
        steps_.emplace_back(step, extent);
      }
    }
  };
  for (const auto& [variable, factor] : min.terms) {
    const auto scale = static_cast<int64_t>(factor);
    const auto count = static_cast<int>(block.iters.size());
    if (variable < count) {
      add(variable, scale);
      continue;
    }
    for (const LoopPart& part :
         block.written_out[static_cast<size_t>(variable - count)]) {
      if (part.loop >= count || part.is_digit()) {
        unsure_ = "a region of a fused loop";
        break;
      }
      add(part.loop, scale * part.coefficient);
    }
  }
  if (interval.constant < 0) unsure_ = "a region that starts below 0";
  if (by > 1 && (small >= by || interval.constant != 0)) {
    unsure_ = "a region that does not follow its parts";
  }
  // A consumer needs what surely is written: steps may leave gaps.
  if (must_be_dense) {
    std::ranges::sort(steps_);
    int64_t covered = region.extents[d];
    for (const auto& [step, extent] : steps_) {
      if (step != covered) unsure_ = "a region that may have gaps";
      covered = step * extent;
    }
  }
}

void Nest::Join(Interval& into, const Interval& other) {
  if (into.outer.size() != other.outer.size() ||
      !std::equal(into.outer.begin(), into.outer.end(), other.outer.begin(),
                  [](const LoopPart& a, const LoopPart& b) {
                    return a.loop == b.loop && a.coefficient == b.coefficient;
                  })) {
    unsure_ = "regions that move differently";
    return;
  }
  const int64_t end =
      std::max(into.constant + into.width, other.constant + other.width);
  into.constant = std::min(into.constant, other.constant);
  into.width = end - into.constant;
}

// Each instance runs once: no loop repeats the block, none goes beyond its
// domain.
bool Nest::RunsOnce(const NestedBlock& block) const {
  if (block.guarded || block.reduce_guarded) return false;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    int64_t product = 1;
    for (const LoopPart& part : block.bindings[i]) {
      if (part.is_digit()) return false;
      product *= loops_[part.loop].extent;
    }
    if (product != block.iters[i].extent) return false;
  }
  return std::ranges::all_of(block.loops, [&](int loop) {
    return loops_[loop].extent == 1 || IterOf(block, loop) >= 0;
  });
}

void Nest::Apply(const MoveBlock& step) {
  NestedBlock& block = pool_[static_cast<size_t>(step.block)];
  current_ = static_cast<uint32_t>(step.block) + 1;
  std::erase(order_, step.block);

  // What is needed, by variable.
  if (domains_.size() < block.iters.size()) domains_.resize(block.iters.size());
  for (Domain& domain : domains_) {
    domain.interval.outer.clear();
    domain.interval.constant = domain.interval.width = 0;
    domain.whole = false;
    domain.divisor = domain.modulus = domain.limit = 0;
  }
  for (const MoveBlock::Access& access : step.accesses) {
    const std::vector<int64_t>& shape =
        shapes_[static_cast<size_t>(access.region.buffer)];
    for (size_t d = 0; d < access.region.mins.size(); ++d) {
      const IndexExpr& own = access.region.mins[d];
      if (own.terms.empty()) continue;
      Interval& need = need_;
      for (size_t n = 0; n < access.needs.size(); ++n) {
        const MoveBlock::Need& from = access.needs[n];
        IntervalOf(pool_[static_cast<size_t>(from.block)], from.region, d,
                   step.loop, step.reverse, n == 0 ? need : other_need_);
        if (n > 0) Join(need, other_need_);
      }
      if (unsure_) return;
      Domain& domain = domains_[static_cast<size_t>(own.terms[0].first)];
      const bool part = own.divisor > 1 || own.modulus > 1;
      if (domain.whole || (part ? (own.divisor > 1 && domain.divisor > 0) ||
                                      (own.modulus > 1 && domain.modulus > 0)
                                : domain.divisor > 0 || domain.modulus > 0)) {
        unsure_ = "a variable that comes twice";
        return;
      }
      const int64_t scale = own.divisor;
      if (!part) domain.whole = true;
      if (own.divisor > 1) domain.divisor = own.divisor;
      if (own.modulus > 1) {
        domain.modulus = own.modulus;
        if (need.width != own.modulus || !need.outer.empty()) {
          unsure_ = "a part of a remainder";
          return;
        }
      } else {
        domain.limit = shape[d] * scale;
      }
      for (const LoopPart& term : need.outer) {
        domain.interval.outer.push_back({term.loop, term.coefficient * scale});
      }
      domain.interval.constant += need.constant * scale;
      domain.interval.width += (need.width - 1) * scale;
    }
  }

  // The place, below the loops of a block that is there.
  block.guarded = block.reduce_guarded = false;
  for (size_t b = 0; b < order_.size(); ++b) {
    const std::vector<int>& loops = At(b).loops;
    const auto at = std::ranges::find(loops, step.loop);
    if (at == loops.end()) continue;
    block.loops.assign(loops.begin(), at + 1);
    break;
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    Domain& domain = domains_[i];
    const int64_t extent = block.iters[i].extent;
    std::vector<LoopPart>& parts = block.bindings[i];
    parts.clear();
    block.constants[i] = 0;
    int64_t width = extent;
    if (domain.whole || domain.divisor > 0) {
      if (!domain.whole && domain.modulus == 0) {
        domain.interval.width += domain.divisor - 1;
      } else if (domain.modulus > 0 && domain.modulus != domain.divisor) {
        unsure_ = "a quotient and a remainder by other numbers";
        return;
      }
      const int64_t limit = std::min(extent, domain.limit);
      int64_t top = 0;
      for (const LoopPart& term : domain.interval.outer) {
        top += term.coefficient * (loops_[term.loop].extent - 1);
        parts.push_back(term);
      }
      width = domain.interval.width + 1;
      block.constants[i] = domain.interval.constant;
      // Beyond the domain it is clipped where no loop moves it, else guarded.
      if (top == 0 && block.constants[i] == 0) width = std::min(width, limit);
      if (top + width + block.constants[i] > limit) {
        block.guarded = true;
        Note(kTail);
      }
    }
    parts.push_back({NewLoop(width)});
    block.loops.push_back(parts.back().loop);
  }
  order_.insert(order_.begin() + static_cast<ptrdiff_t>(step.position),
                step.block);
  if (!step.reverse) return;
  const bool reduces =
      std::ranges::any_of(block.iters, [](const NestedIter& iter) {
        return iter.type != ir::IterType::kSpatial;
      });
  if (reduces && !RunsOnce(block)) {
    unsure_ = "a reduction that moves to its producer";
  }
}

}  // namespace tilefarm::skeleton
