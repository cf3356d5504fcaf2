// Where blocks are computed: the loops that a moved block gets follow from the
// region that is needed (or given) there, as in
// compiler/schedule/compute_at.cc.
#include <algorithm>

#include "base/status_macros.h"
#include "cost_model/skeleton/builder.h"

namespace tilefarm::skeleton {

using schedule::Instruction;
using schedule::Rv;

absl::Status Builder::Move(const Instruction& in, bool reverse) {
  const Rv* rv = RvArg(in, "loop");
  if (rv == nullptr || !loop_rvs_.contains(rv->id)) {
    return Unknown("an odd move");
  }
  const int loop = loop_rvs_[rv->id];
  if (loop == kNoLoop) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(const int block, Block(in));
  if (loop == kInlined) {
    if (reverse) return Unknown("an inlined consumer");
    out_.blocks.erase(out_.blocks.begin() + block);
    names_.erase(names_.begin() + block);
    return absl::OkStatus();
  }
  if (loop < 0) return Unknown("a loop that is gone");
  if (IntArg(in, "preserve_unit_loops", 0) == 0 ||
      IntArg(in, "index", -1) != -1) {
    return Unknown("a move that drops unit loops or names a position");
  }
  return MoveTo(block, loop, reverse);
}

// The blocks that read what the block writes, or write what it reads.
std::vector<int> Builder::Neighbours(const BlockInfo& info,
                                     bool producers) const {
  std::vector<int> out;
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto found = info_of_.find(names_[i]);
    if (found == info_of_.end()) continue;
    const BlockInfo& other = out_.infos[static_cast<size_t>(found->second)];
    if (&other == &info) continue;
    bool is = false;
    for (const BlockRegion& a : producers ? info.reads : info.writes) {
      for (const BlockRegion& b : producers ? other.writes : other.reads) {
        is |= a.buffer == b.buffer;
      }
    }
    if (is) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::vector<int> Builder::CommonLoops(int block) const {
  const auto found = info_of_.find(names_[static_cast<size_t>(block)]);
  std::vector<int> common;
  if (found == info_of_.end()) return common;
  const std::vector<int> consumers = Neighbours(
      out_.infos[static_cast<size_t>(found->second)], /*producers=*/false);
  for (size_t c = 0; c < consumers.size(); ++c) {
    const std::vector<int>& own = out_.blocks[consumers[c]].loops;
    if (c == 0) {
      common = own;
      continue;
    }
    size_t same = 0;
    while (same < common.size() && same < own.size() &&
           common[same] == own[same]) {
      ++same;
    }
    common.resize(same);
  }
  return common;
}

// compute_at and reverse_compute_at: the block gets a loop for each of its
// variables, over what one iteration of `loop` needs (gives).
absl::Status Builder::MoveTo(int number, int loop, bool reverse) {
  Formula& f = out_.formula;
  const int info_number = InfoOf(number);
  if (info_number < 0) return Unknown("a moved block that is gone");
  const BlockInfo& info = out_.infos[static_cast<size_t>(info_number)];
  if (reverse && info.init.has_value()) {
    return Unknown("a reduction that moves to its producer");
  }
  const std::vector<int> others = Neighbours(info, /*producers=*/reverse);

  // What is needed, by variable.
  SketchBlock moved;
  moved.bindings.resize(info.iters.size());
  moved.constants.assign(info.iters.size(), 0);
  std::vector<std::optional<Value>> widths(info.iters.size());
  bool found_one = false;
  for (const int other : others) {
    const int other_number = InfoOf(other);
    const BlockInfo& theirs = out_.infos[static_cast<size_t>(other_number)];
    for (const BlockRegion& need : reverse ? theirs.writes : theirs.reads) {
      for (const BlockRegion& access : reverse ? info.reads : info.writes) {
        if (access.buffer != need.buffer) continue;
        if (found_one) return Unknown("regions that would have to be joined");
        found_one = true;
        TF_RETURN_IF_ERROR(Constrain(out_.blocks[other], need, info, access,
                                     loop, reverse, moved, widths));
      }
    }
  }
  if (!found_one) return Unknown("a move without a neighbour");

  // The place: before the first consumer below the loop, else at its end.
  std::vector<int> prefix;
  const auto place = Place(number, loop, info, prefix);
  if (!place) return Unknown("a place that is not found");
  moved.loops = prefix;
  for (size_t i = 0; i < info.iters.size(); ++i) {
    const Value width = widths[i] ? *widths[i] : f.Const(info.iters[i].extent);
    const int made = NewLoop(width);
    moved.loops.push_back(made);
    moved.bindings[i].push_back({made, f.Const(1), false});
  }
  const std::string name = names_[static_cast<size_t>(number)];
  moved.info = -1;
  out_.blocks[number].loops.clear();
  out_.blocks.insert(out_.blocks.begin() + *place, std::move(moved));
  names_.insert(names_.begin() + *place, name);
  const int old = *place <= number ? number + 1 : number;
  out_.blocks.erase(out_.blocks.begin() + old);
  names_.erase(names_.begin() + old);
  return absl::OkStatus();
}

// The position among the blocks before which the moved block goes; `prefix`
// becomes the loops down to `loop`.
std::optional<int> Builder::Place(int number, int loop, const BlockInfo& info,
                                  std::vector<int>& prefix) const {
  const auto child = [&](int block) {
    const std::vector<int>& loops = out_.blocks[block].loops;
    const auto at = std::find(loops.begin(), loops.end(), loop);
    // Below the loop: the next loop, or the block itself.
    return at + 1 == loops.end() ? -2 - block : *(at + 1);
  };
  int first = -1, last = -1;
  for (int i = 0; i < static_cast<int>(out_.blocks.size()); ++i) {
    const std::vector<int>& loops = out_.blocks[i].loops;
    const auto at = std::find(loops.begin(), loops.end(), loop);
    if (i == number || at == loops.end()) continue;
    if (first < 0) {
      first = i;
      prefix.assign(loops.begin(), at + 1);
    }
    last = i;
  }
  if (first < 0) return std::nullopt;
  const std::vector<int> consumers = Neighbours(info, /*producers=*/false);
  for (int i = first; i <= last; ++i) {
    if (std::find(consumers.begin(), consumers.end(), i) == consumers.end()) {
      continue;
    }
    int at = i;
    while (at > first && child(at - 1) == child(i)) --at;
    return at;
  }
  return last + 1;
}

// Variables of `info` that index `access`, from the region `need` of block
// `other` while its loops below `loop` run.
absl::Status Builder::Constrain(const SketchBlock& other,
                                const BlockRegion& need, const BlockInfo& info,
                                const BlockRegion& access, int loop,
                                bool reverse, SketchBlock& moved,
                                std::vector<std::optional<Value>>& widths) {
  Formula& f = out_.formula;
  const auto cut = std::find(other.loops.begin(), other.loops.end(), loop);
  if (cut == other.loops.end()) return Unknown("a neighbour elsewhere");
  for (size_t d = 0; d < access.mins.size(); ++d) {
    const IndexExpr& index = access.mins[d];
    if (!index.linear) return Unknown("an index that is not linear");
    if (index.terms.empty()) continue;
    if (index.terms.size() != 1 || index.terms[0].second != 1 ||
        index.constant != 0 || access.extents[d] != 1) {
      return Unknown("an index that is not a variable");
    }
    const auto iter = static_cast<size_t>(index.terms[0].first);
    if (widths[iter]) return Unknown("a variable that comes twice");
    // Of a quotient or a remainder: by what, and what its small part reaches.
    const int64_t by = std::max(need.mins[d].divisor, need.mins[d].modulus);
    int64_t small = 0;
    if (!need.mins[d].linear &&
        (by == 1 || reverse || need.mins[d].constant != 0)) {
      return Unknown("a region that is not linear");
    }
    // A consumer needs what surely is written: steps may leave gaps.
    if (reverse && (need.mins[d].terms.size() > 1 ||
                    (need.mins[d].terms.size() == 1 &&
                     need.mins[d].terms[0].second != 1))) {
      return Unknown("a region that may have gaps");
    }
    // Hull over the loops below: constants, outer terms, a width.
    int64_t constant = static_cast<int64_t>(need.mins[d].constant);
    Value width = f.Const(need.extents[d]);
    Value top = f.Const(0);
    for (const auto& [variable, factor] : need.mins[d].terms) {
      const auto scale = static_cast<int64_t>(factor);
      if (scale <= 0) return Unknown("an index that falls");
      constant += scale * other.constants[variable];
      for (const Term& term : other.bindings[variable]) {
        Value step = f.Mul(f.Const(scale), term.coefficient);
        if (by > 1) {
          const std::optional<Value> quotient = f.Divided(step, by);
          if (quotient && need.mins[d].modulus > 1) continue;
          if (!quotient) {
            const auto size = f.AsConst(step);
            const auto count = f.AsConst(out_.extents[term.loop]);
            if (!size || !count) return Unknown("a part of a region");
            small += *size * (*count - 1);
            if (need.mins[d].divisor > 1) continue;
          } else {
            step = *quotient;
          }
        }
        const Value reach =
            f.Mul(step, f.Add(out_.extents[term.loop], f.Const(-1)));
        if (std::find(cut + 1, other.loops.end(), term.loop) !=
            other.loops.end()) {
          width = f.Add(width, reach);
        } else {
          top = f.Add(top, reach);
          moved.bindings[iter].push_back({term.loop, step, true});
        }
      }
    }
    if (constant < 0) return Unknown("a region that starts below 0");
    if (by > 1 && (small >= by || constant != 0)) {
      return Unknown("a region that does not follow its parts");
    }
    const int64_t size =
        std::min(info.iters[iter].extent,
                 out_.buffers[static_cast<size_t>(access.buffer)].shape[d]);
    // Beyond the domain it is clipped where it is the whole loop's doing,
    // else guarded.
    if (constant == 0) width = f.Clip(width, f.Const(size), top);
    moved.guards.push_back(
        {f.Add(f.Add(top, width), f.Const(constant)), f.Const(size), false});
    moved.constants[iter] = constant;
    widths[iter] = width;
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::skeleton
