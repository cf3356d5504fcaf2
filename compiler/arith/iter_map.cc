#include "compiler/arith/iter_map.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;
using MarkPtr = std::shared_ptr<const IterMark>;

absl::Status NoMap(std::string_view reason, const Expr& expr) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(reason), ": ", ir::ToString(expr)));
}

bool Same(const IterSplit& a, const IterSplit& b) {
  return a.mark == b.mark && a.lower_factor == b.lower_factor &&
         a.extent == b.extent;
}

bool SameSum(const IterSum& a, const IterSum& b) {
  if (a.splits.size() != b.splits.size()) return false;
  for (size_t i = 0; i < a.splits.size(); ++i) {
    if (!Same(a.splits[i], b.splits[i]) ||
        a.splits[i].scale != b.splits[i].scale) {
      return false;
    }
  }
  return true;
}

class Detector {
 public:
  Detector(Analyzer& analyzer, bool simplify_trivial)
      : analyzer_(analyzer), simplify_trivial_(simplify_trivial) {}

  absl::Status AddIters(const VarRanges& iters) {
    for (const auto& [var, range] : iters) {
      const auto extent = ir::AsInt(range.extent);
      if (!extent || *extent <= 0) {
        return NoMap("the extent of a loop is not a constant", range.extent);
      }
      Iter iter;
      iter.min = range.min;
      iter.extent = *extent;
      if (*extent > 1 || !simplify_trivial_) {
        IterMark mark;
        mark.var = var;
        if (!ir::IsConstInt(range.min, 0)) mark.var_min = range.min;
        mark.extent = *extent;
        iter.mark = NewMark(std::move(mark));
      }
      iters_[var.get()] = std::move(iter);
    }
    return absl::OkStatus();
  }

  // Splits conjunctions of `sum < c`; each adds a mark of a smaller extent.
  absl::Status AddPredicate(const Expr& predicate) {
    std::vector<std::pair<IterSum, int64_t>> limits;
    TF_RETURN_IF_ERROR(CollectLimits(predicate, limits));
    std::stable_sort(limits.begin(), limits.end(),
                     [](const auto& a, const auto& b) {
                       return a.first.splits.size() < b.first.splits.size();
                     });
    for (const auto& [sum, limit] : limits) {
      const auto base = ir::AsInt(analyzer_.Simplify(sum.base));
      if (!base) return NoMap("the predicate is not affine", predicate);
      TF_ASSIGN_OR_RETURN(IterSum fused, Fuse(sum));
      if (fused.splits.empty()) continue;
      const IterSplit split = fused.splits[0];
      // split * scale + base < limit
      const int64_t room = limit - *base;
      const int64_t extent = (room + split.scale - 1) / split.scale;
      if (extent >= split.extent) continue;
      if (room <= 0) return NoMap("the predicate is never true", predicate);
      IterMark mark;
      mark.sum.splits = {split};
      mark.sum.splits[0].scale = 1;
      mark.sum.base = ir::IntConst(0);
      mark.extent = extent;
      Constraint constraint;
      constraint.mark = NewMark(std::move(mark));
      // The form in which bindings contain it: its parts before fusion.
      constraint.parts = Scaled(Unfused(sum), split.scale);
      constraints_.push_back(std::move(constraint));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<IterSum> Binding(const Expr& expr, bool overlap) {
    TF_ASSIGN_OR_RETURN(IterSum sum, Parse(expr));
    auto fused = Fuse(sum, overlap);
    if (!fused.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          std::string(fused.status().message()), ": ", ir::ToString(expr)));
    }
    return fused;
  }

  // Checks that every mark's splits are disjoint and (by level) cover it.
  absl::Status CheckIndependent(const std::vector<IterSum>& sums,
                                IterMapLevel level) {
    std::map<size_t, std::vector<IterSplit>, std::greater<>> uses;
    const auto use = [&](const IterSplit& split) {
      if (split.extent > 1) uses[Order(split.mark)].push_back(split);
    };
    for (const IterSum& sum : sums) {
      for (const IterSplit& split : sum.splits) use(split);
    }
    std::unordered_set<const IterMark*> reached;
    // Marks follow their parts in the list, so visit the latest first.
    for (auto it = uses.begin(); it != uses.end(); ++it) {
      const MarkPtr mark = marks_[it->first];
      reached.insert(mark.get());
      std::vector<IterSplit>& splits = it->second;
      std::sort(splits.begin(), splits.end(),
                [](const IterSplit& a, const IterSplit& b) {
                  return a.lower_factor < b.lower_factor;
                });
      int64_t filled = 1;
      for (const IterSplit& split : splits) {
        const bool fits = level == IterMapLevel::kBijective
                              ? split.lower_factor == filled
                              : split.lower_factor % filled == 0;
        if (!fits) return NoMap("iterators are not independent", Name(mark));
        filled = split.lower_factor * split.extent;
      }
      if (level == IterMapLevel::kBijective ? filled != mark->extent
                                            : mark->extent % filled != 0) {
        return NoMap("an iterator is not used in whole", Name(mark));
      }
      for (const IterSplit& split : mark->sum.splits) use(split);
    }
    for (const Constraint& constraint : constraints_) {
      if (reached.count(constraint.mark.get()) == 0) {
        return NoMap("the bindings do not follow the predicate",
                     Name(constraint.mark));
      }
    }
    if (level == IterMapLevel::kBijective) {
      for (const MarkPtr& mark : marks_) {
        if (mark->var != nullptr && mark->extent > 1 &&
            reached.count(mark.get()) == 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("loop ", mark->var->name, " is not used"));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Iter {
    Expr min;
    int64_t extent = 1;
    MarkPtr mark;
  };
  struct Constraint {
    IterSum parts;
    MarkPtr mark;
  };

  MarkPtr NewMark(IterMark mark) {
    marks_.push_back(std::make_shared<const IterMark>(std::move(mark)));
    order_[marks_.back().get()] = marks_.size() - 1;
    return marks_.back();
  }
  size_t Order(const MarkPtr& mark) const { return order_.at(mark.get()); }
  static Expr Name(const MarkPtr& mark) { return ToExpr(Whole(mark)); }

  static IterSum Constant(Expr base) { return {{}, std::move(base)}; }
  static IterSplit Whole(const MarkPtr& mark) {
    return {mark, 1, mark->extent, 1};
  }

  static void AddSplit(IterSum& sum, const IterSplit& split, int64_t scale) {
    for (size_t i = 0; i < sum.splits.size(); ++i) {
      if (!Same(sum.splits[i], split)) continue;
      sum.splits[i].scale += split.scale * scale;
      if (sum.splits[i].scale == 0) sum.splits.erase(sum.splits.begin() + i);
      return;
    }
    sum.splits.push_back(split);
    sum.splits.back().scale *= scale;
  }

  static IterSum Added(IterSum a, const IterSum& b, int64_t scale) {
    for (const IterSplit& split : b.splits) AddSplit(a, split, scale);
    a.base = scale == -1 ? a.base - b.base : a.base + b.base * scale;
    return a;
  }

  static IterSum Scaled(IterSum sum, int64_t divisor) {
    for (IterSplit& split : sum.splits) split.scale /= divisor;
    return sum;
  }

  bool HasIter(const Expr& expr) const {
    bool found = false;
    ir::PostOrderExprs(expr, [&](const Expr& e) {
      const auto* var = ir::As<ir::VarNode>(e);
      found |= var != nullptr && iters_.count(var) != 0;
    });
    return found;
  }

  absl::StatusOr<IterSum> Parse(const Expr& expr) {
    if (const auto* var = ir::As<ir::VarNode>(expr)) {
      const auto found = iters_.find(var);
      if (found == iters_.end()) return Constant(expr);
      IterSum sum = Constant(found->second.min);
      if (found->second.mark != nullptr) {
        sum.splits.push_back(Whole(found->second.mark));
      }
      return sum;
    }
    if (!HasIter(expr)) return Constant(expr);
    const auto* node = ir::As<BinaryNode>(expr);
    if (node == nullptr) return NoMap("not affine", expr);
    switch (node->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub: {
        TF_ASSIGN_OR_RETURN(IterSum a, Parse(node->a));
        TF_ASSIGN_OR_RETURN(IterSum b, Parse(node->b));
        return Added(std::move(a), b, node->op == BinaryOp::kAdd ? 1 : -1);
      }
      case BinaryOp::kMul: {
        const bool left = ir::AsInt(node->a).has_value();
        const auto factor = ir::AsInt(left ? node->a : node->b);
        if (!factor) return NoMap("not affine", expr);
        TF_ASSIGN_OR_RETURN(IterSum a, Parse(left ? node->b : node->a));
        return Added(Constant(ir::IntConst(0)), a, *factor);
      }
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod: {
        const auto divisor = ir::AsInt(node->b);
        if (!divisor || *divisor <= 0) return NoMap("not affine", expr);
        TF_ASSIGN_OR_RETURN(IterSum a, Parse(node->a));
        return DivMod(a, *divisor, node->op == BinaryOp::kFloorDiv, expr);
      }
      default:
        return NoMap("not affine", expr);
    }
  }

  absl::StatusOr<IterSum> DivMod(const IterSum& sum, int64_t divisor,
                                 bool is_div, const Expr& expr) {
    TF_ASSIGN_OR_RETURN(IterSum fused, Fuse(sum));
    if (!Divisible(analyzer_, fused.base, divisor)) {
      return NoMap("not affine (an offset is divided)", expr);
    }
    IterSum out = Constant(is_div ? analyzer_.Simplify(ir::FloorDiv(
                                        fused.base, ir::IntConst(divisor)))
                                  : ir::IntConst(0));
    if (fused.splits.empty()) return out;
    IterSplit split = fused.splits[0];
    if (split.scale % divisor == 0) {
      if (is_div) {
        split.scale /= divisor;
        out.splits.push_back(split);
      }
      return out;
    }
    if (divisor % split.scale != 0) return NoMap("not affine", expr);
    const int64_t factor = divisor / split.scale;
    if (factor >= split.extent) {
      if (!is_div) out.splits.push_back(split);
      return out;
    }
    if (split.extent % factor != 0) {
      return NoMap("an iterator is split into unequal parts", expr);
    }
    if (is_div) {
      split.lower_factor *= factor;
      split.extent /= factor;
      split.scale = 1;
    } else {
      split.extent = factor;
    }
    out.splits.push_back(split);
    return out;
  }

  // The parts of the sum, with constrained sums replaced by their marks.
  IterSum Unfused(const IterSum& sum) const {
    IterSum out = sum;
    for (const Constraint& constraint : constraints_) {
      int64_t scale = 0;
      bool all = true;
      for (const IterSplit& part : constraint.parts.splits) {
        const auto found = std::find_if(
            out.splits.begin(), out.splits.end(),
            [&](const IterSplit& split) { return Same(split, part); });
        if (found == out.splits.end() || found->scale % part.scale != 0 ||
            (scale != 0 && found->scale / part.scale != scale)) {
          all = false;
          break;
        }
        scale = found->scale / part.scale;
      }
      if (!all || scale <= 0) continue;
      IterSplit whole = Whole(constraint.mark);
      whole.scale = scale;
      bool placed = false;
      for (size_t i = 0; i < out.splits.size();) {
        const bool part = std::any_of(
            constraint.parts.splits.begin(), constraint.parts.splits.end(),
            [&](const IterSplit& p) { return Same(p, out.splits[i]); });
        if (part && !placed) {
          out.splits[i++] = whole;
          placed = true;
        } else if (part) {
          out.splits.erase(out.splits.begin() + i);
        } else {
          ++i;
        }
      }
    }
    return out;
  }

  // x // 4 * 4 + x % 4 is x: merges adjacent splits of one mark.
  static void MergeNeighbours(IterSum& parts) {
    std::vector<IterSplit>& splits = parts.splits;
    for (size_t i = 0; i < splits.size(); ++i) {
      for (size_t j = 0; j < splits.size(); ++j) {
        IterSplit& high = splits[i];
        const IterSplit& low = splits[j];
        if (i == j || high.mark != low.mark ||
            high.lower_factor != low.lower_factor * low.extent ||
            high.scale != low.scale * low.extent) {
          continue;
        }
        high.lower_factor = low.lower_factor;
        high.extent *= low.extent;
        high.scale = low.scale;
        splits.erase(splits.begin() + j);
        return MergeNeighbours(parts);
      }
    }
  }

  // The split with the smallest scale; of several, extent 1 first, then the
  // rightmost.
  static size_t BaseOf(const std::vector<IterSplit>& splits) {
    size_t base = splits.size() - 1;
    for (size_t i = base; i-- > 0;) {
      if (splits[i].scale < splits[base].scale ||
          (splits[i].scale == splits[base].scale && splits[i].extent == 1 &&
           splits[base].extent != 1)) {
        base = i;
      }
    }
    return base;
  }

  // The split with exactly this scale, or (`overlap`) the largest scale below;
  // of several, extent 1 first, then the rightmost. -1 if there is none.
  static int NextOf(const std::vector<IterSplit>& splits,
                    const std::vector<bool>& taken, int64_t scale,
                    bool overlap) {
    int exact = -1;
    int below = -1;
    for (int i = static_cast<int>(splits.size()) - 1; i >= 0; --i) {
      if (taken[i]) continue;
      if (splits[i].scale == scale) {
        if (splits[i].extent == 1) return i;
        if (exact < 0) exact = i;
      }
      if (splits[i].scale < scale &&
          (below < 0 || splits[i].scale > splits[below].scale)) {
        below = i;
      }
    }
    return exact >= 0 || !overlap ? exact : below;
  }

  // One split (of a fused mark) plus the base. `overlap`: a part may step by
  // less than the range of the inner ones, as the rows and taps of a
  // convolution do; every value of the sum is still reached.
  absl::StatusOr<IterSum> Fuse(const IterSum& sum, bool overlap = false) {
    IterSum parts = Unfused(sum);
    MergeNeighbours(parts);
    for (const IterSplit& split : parts.splits) {
      if (split.scale <= 0) {
        return absl::InvalidArgumentError("an iterator runs backwards");
      }
    }
    if (parts.splits.size() <= 1) return parts;
    const size_t base = BaseOf(parts.splits);
    const int64_t base_scale = parts.splits[base].scale;
    overlap = overlap && base_scale == 1;
    std::vector<bool> taken(parts.splits.size(), false);
    int64_t expected = base_scale;
    IterSum inner{{}, ir::IntConst(0)};
    IterMark fused;
    for (size_t n = 0; n < parts.splits.size(); ++n) {
      const int next = n == 0 ? static_cast<int>(base)
                              : NextOf(parts.splits, taken, expected, overlap);
      if (next < 0) {
        return absl::InvalidArgumentError(
            "the iterators of a sum overlap or leave gaps");
      }
      taken[next] = true;
      IterSplit split = parts.splits[next];
      expected = split.scale * split.extent;
      split.scale /= base_scale;
      fused.extent += (split.extent - 1) * split.scale;
      inner.splits.insert(inner.splits.begin(), std::move(split));
    }
    MarkPtr mark;
    for (const MarkPtr& known : fused_) {
      if (SameSum(known->sum, inner)) mark = known;
    }
    if (mark == nullptr) {
      fused.sum = std::move(inner);
      mark = NewMark(std::move(fused));
      fused_.push_back(mark);
    }
    IterSplit whole = Whole(mark);
    whole.scale = base_scale;
    return IterSum{{whole}, parts.base};
  }

  absl::Status CollectLimits(const Expr& predicate,
                             std::vector<std::pair<IterSum, int64_t>>& limits) {
    if (ir::IsConstInt(predicate, 1)) return absl::OkStatus();
    const auto* node = ir::As<BinaryNode>(predicate);
    if (node == nullptr) return NoMap("the predicate is not affine", predicate);
    if (node->op == BinaryOp::kAnd) {
      TF_RETURN_IF_ERROR(CollectLimits(node->a, limits));
      return CollectLimits(node->b, limits);
    }
    Expr small;
    Expr large;
    int64_t offset = 0;
    switch (node->op) {
      case BinaryOp::kLE:
        offset = 1;
        [[fallthrough]];
      case BinaryOp::kLT:
        small = node->a;
        large = node->b;
        break;
      case BinaryOp::kGE:
        offset = 1;
        [[fallthrough]];
      case BinaryOp::kGT:
        small = node->b;
        large = node->a;
        break;
      default:
        return NoMap("the predicate is not affine", predicate);
    }
    const auto limit = ir::AsInt(large);
    if (!limit) return NoMap("the predicate is not affine", predicate);
    TF_ASSIGN_OR_RETURN(IterSum sum, Parse(small));
    limits.push_back({std::move(sum), *limit + offset});
    return absl::OkStatus();
  }

  Analyzer& analyzer_;
  const bool simplify_trivial_;
  absl::flat_hash_map<const ir::VarNode*, Iter> iters_;
  std::vector<MarkPtr> marks_;  // parts before marks made of them
  absl::flat_hash_map<const IterMark*, size_t> order_;
  std::vector<MarkPtr> fused_;
  std::vector<Constraint> constraints_;
};

// An analyzer with the iterators bound; with `simplify_trivial`, those of
// extent 1 are replaced by their value.
Analyzer WithIters(const Analyzer& analyzer, const VarRanges& iters,
                   bool simplify_trivial) {
  Analyzer out = analyzer;
  for (const auto& [var, range] : iters) {
    if (simplify_trivial || !ir::IsConstInt(range.extent, 1)) {
      out.Bind(var, range);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<IterSum>> DetectIterMap(
    const std::vector<Expr>& bindings, const VarRanges& iters,
    const Expr& predicate, IterMapLevel level, Analyzer& analyzer,
    bool simplify_trivial) {
  const auto detect =
      [&](Analyzer& knowing,
          bool simplified) -> absl::StatusOr<std::vector<IterSum>> {
    Detector detector(knowing, simplify_trivial);
    TF_RETURN_IF_ERROR(detector.AddIters(iters));
    const auto form = [&](const Expr& expr) {
      return simplified ? knowing.Simplify(expr) : expr;
    };
    if (predicate != nullptr && !ir::IsConstInt(predicate, 1)) {
      TF_RETURN_IF_ERROR(detector.AddPredicate(form(predicate)));
    }
    std::vector<IterSum> sums;
    sums.reserve(bindings.size());
    for (const Expr& binding : bindings) {
      TF_ASSIGN_OR_RETURN(
          IterSum sum,
          detector.Binding(form(binding), level != IterMapLevel::kBijective));
      sums.push_back(std::move(sum));
    }
    if (level != IterMapLevel::kNone) {
      TF_RETURN_IF_ERROR(detector.CheckIndependent(sums, level));
    }
    return sums;
  };
  // Try the original form first: (a * 64 + b) // 48 and % 48 share a fused
  // iterator, which simplifying each would hide.
  auto written = detect(analyzer, false);
  if (written.ok()) return written;
  Analyzer knowing = WithIters(analyzer, iters, simplify_trivial);
  return detect(knowing, true);
}

std::vector<Expr> IterMapSimplify(const std::vector<Expr>& bindings,
                                  const VarRanges& iters, const Expr& predicate,
                                  IterMapLevel level, Analyzer& analyzer,
                                  bool simplify_trivial) {
  auto map = DetectIterMap(bindings, iters, predicate, level, analyzer,
                           simplify_trivial);
  if (!map.ok() && predicate != nullptr && !ir::IsConstInt(predicate, 1) &&
      level != IterMapLevel::kBijective) {
    // If the predicate does not fit a map, find a map without it.
    map = DetectIterMap(bindings, iters, nullptr, level, analyzer,
                        simplify_trivial);
  }
  std::vector<Expr> out;
  out.reserve(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (map.ok()) {
      out.push_back(ToExpr((*map)[i]));
      continue;
    }
    const auto single = DetectIterMap({bindings[i]}, iters, nullptr, level,
                                      analyzer, simplify_trivial);
    out.push_back(single.ok() ? ToExpr(single->front()) : bindings[i]);
  }
  return out;
}

}  // namespace tilefarm::arith
