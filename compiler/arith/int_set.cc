#include "compiler/arith/int_set.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/canonical.h"

namespace tilefarm::arith {
namespace {

using ir::BinaryNode;
using ir::BinaryOp;
using ir::Expr;

Expr AddEnds(const Expr& a, const Expr& b) {
  return a == nullptr || b == nullptr ? nullptr : a + b;
}

// Interval arithmetic with symbolic ends. Input is in canonical form, in which
// repeated occurrences of an iterator are merged if possible.
class Evaluator {
 public:
  Evaluator(Analyzer& analyzer, const VarRanges& relaxed)
      : analyzer_(analyzer), relaxed_(relaxed), all_(analyzer) {
    for (const auto& [var, range] : relaxed) all_.Bind(var, range);
  }

  IntSet Eval(const ir::Range& range) {
    const IntSet low = Eval(range.min);
    if (ir::IsConstInt(range.extent, 1)) return low;
    const IntSet high = Eval(range.min + range.extent - ir::IntConst(1));
    return {low.min, high.max};
  }

  IntSet Eval(const Expr& expr) {
    // Simplifies with the relaxed ranges, which removes the modulo from (i * 4
    // + j) % 8 and similar expressions.
    IntSet set = EvalCanonical(all_.Simplify(expr));
    if (set.min != nullptr) set.min = analyzer_.Simplify(set.min);
    if (set.max != nullptr) set.max = analyzer_.Simplify(set.max);
    return set;
  }

 private:
  const ir::Range* Relaxed(const ir::VarNode* var) const {
    for (const auto& [candidate, range] : relaxed_) {
      if (candidate.get() == var) return &range;
    }
    return nullptr;
  }

  bool Depends(const Expr& expr) const {
    bool found = false;
    ir::PostOrderExprs(expr, [&](const Expr& e) {
      const auto* var = ir::As<ir::VarNode>(e);
      found |= var != nullptr && Relaxed(var) != nullptr;
    });
    return found;
  }

  IntSet FromBounds(const Expr& expr) {
    const ConstBound bound = all_.Bounds(expr);
    IntSet out;
    if (bound.min != ConstBound::kNegInf) out.min = ir::IntConst(bound.min);
    if (bound.max != ConstBound::kPosInf) out.max = ir::IntConst(bound.max);
    return out;
  }

  IntSet EvalCanonical(const Expr& expr) {
    if (ir::As<ir::IntConstNode>(expr) != nullptr) return IntSet::Point(expr);
    if (const auto* var = ir::As<ir::VarNode>(expr)) {
      const ir::Range* range = Relaxed(var);
      if (range == nullptr) return IntSet::Point(expr);
      // Ends may depend on other relaxed variables.
      const IntSet min = EvalCanonical(range->min);
      const IntSet last = EvalCanonical(
          analyzer_.Simplify(range->min + range->extent - ir::IntConst(1)));
      return {min.min, last.max};
    }
    if (!Depends(expr)) return IntSet::Point(expr);
    if (const auto* node = ir::As<BinaryNode>(expr))
      return EvalBinary(*node, expr);
    if (const auto* node = ir::As<ir::SelectNode>(expr)) {
      return Union(analyzer_, EvalCanonical(node->true_value),
                   EvalCanonical(node->false_value));
    }
    if (const auto* node = ir::As<ir::CallNode>(expr)) {
      if (node->op == ir::Intrinsic::kIfThenElse) {
        return Union(analyzer_, EvalCanonical(node->args[1]),
                     EvalCanonical(node->args[2]));
      }
    }
    return FromBounds(expr);
  }

  IntSet EvalBinary(const BinaryNode& node, const Expr& self) {
    switch (node.op) {
      case BinaryOp::kAdd: {
        const IntSet a = EvalCanonical(node.a);
        const IntSet b = EvalCanonical(node.b);
        return {AddEnds(a.min, b.min), AddEnds(a.max, b.max)};
      }
      case BinaryOp::kSub: {
        const IntSet a = EvalCanonical(node.a);
        const IntSet b = EvalCanonical(node.b);
        return {a.min && b.max ? a.min - b.max : nullptr,
                a.max && b.min ? a.max - b.min : nullptr};
      }
      case BinaryOp::kMul: {
        const auto factor = ir::AsInt(node.b);
        if (!factor) return FromBounds(self);
        IntSet a = EvalCanonical(node.a);
        if (*factor < 0) std::swap(a.min, a.max);
        return {a.min ? a.min * *factor : nullptr,
                a.max ? a.max * *factor : nullptr};
      }
      case BinaryOp::kFloorDiv: {
        const auto divisor = ir::AsInt(node.b);
        if (!divisor || *divisor <= 0) return FromBounds(self);
        const IntSet a = EvalCanonical(node.a);
        return {a.min ? FloorDiv(a.min, node.b) : nullptr,
                a.max ? FloorDiv(a.max, node.b) : nullptr};
      }
      case BinaryOp::kFloorMod: {
        const auto divisor = ir::AsInt(node.b);
        if (!divisor || *divisor <= 0) return FromBounds(self);
        const IntSet a = EvalCanonical(node.a);
        if (a.is_bounded() && analyzer_.ProveEqual(FloorDiv(a.min, node.b),
                                                   FloorDiv(a.max, node.b))) {
          return {FloorMod(a.min, node.b), FloorMod(a.max, node.b)};
        }
        return {ir::IntConst(0), ir::IntConst(*divisor - 1)};
      }
      case BinaryOp::kMin:
      case BinaryOp::kMax: {
        const IntSet a = EvalCanonical(node.a);
        const IntSet b = EvalCanonical(node.b);
        const bool is_min = node.op == BinaryOp::kMin;
        const auto end = [&](const Expr& x, const Expr& y, bool either) {
          if (x != nullptr && y != nullptr)
            return is_min ? Min(x, y) : Max(x, y);
          // The known end bounds the result in its own direction.
          if (either) return x != nullptr ? x : y;
          return Expr();
        };
        return {end(a.min, b.min, !is_min), end(a.max, b.max, is_min)};
      }
      default:
        return FromBounds(self);
    }
  }

  Analyzer& analyzer_;
  const VarRanges& relaxed_;
  Analyzer all_;
};

ir::Range ToRange(Analyzer& analyzer, const IntSet& set) {
  return {set.min, analyzer.Simplify(set.max - set.min + ir::IntConst(1))};
}

}  // namespace

IntSet IntSet::FromRange(const ir::Range& range) {
  return {range.min, range.min + range.extent - ir::IntConst(1)};
}

IntSet EvalSet(Analyzer& analyzer, const Expr& expr, const VarRanges& relaxed) {
  return Evaluator(analyzer, relaxed).Eval(expr);
}

IntSet EvalSet(Analyzer& analyzer, const ir::Range& range,
               const VarRanges& relaxed) {
  return Evaluator(analyzer, relaxed).Eval(range);
}

IntSet Union(Analyzer& analyzer, const IntSet& a, const IntSet& b) {
  IntSet out;
  if (a.min != nullptr && b.min != nullptr) {
    out.min = analyzer.Simplify(Min(a.min, b.min));
  }
  if (a.max != nullptr && b.max != nullptr) {
    out.max = analyzer.Simplify(Max(a.max, b.max));
  }
  return out;
}

Region RelaxRegion(Analyzer& analyzer, const ir::BufferRegion& region,
                   const VarRanges& relaxed) {
  Region out;
  out.reserve(region.region.size());
  Evaluator evaluator(analyzer, relaxed);
  for (size_t i = 0; i < region.region.size(); ++i) {
    const IntSet set = evaluator.Eval(region.region[i]);
    if (set.is_bounded()) {
      out.push_back(ToRange(analyzer, set));
    } else {
      out.push_back({ir::IntConst(0), ir::IntConst(region.buffer->shape[i])});
    }
  }
  return out;
}

Region UnionRegion(Analyzer& analyzer, const Region& a, const Region& b) {
  Region out;
  out.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    out.push_back(ToRange(analyzer, Union(analyzer, IntSet::FromRange(a[i]),
                                          IntSet::FromRange(b[i]))));
  }
  return out;
}

Region ClipRegion(Analyzer& analyzer, const Region& region,
                  const std::vector<int64_t>& shape) {
  Region out;
  out.reserve(region.size());
  for (size_t i = 0; i < region.size(); ++i) {
    const IntSet set = IntSet::FromRange(region[i]);
    const IntSet cut{
        analyzer.Simplify(Max(set.min, ir::IntConst(0))),
        analyzer.Simplify(Min(set.max, ir::IntConst(shape[i] - 1)))};
    out.push_back(ToRange(analyzer, cut));
  }
  return out;
}

bool RegionCovers(Analyzer& analyzer, const Region& outer,
                  const Region& inner) {
  if (outer.size() != inner.size()) return false;
  for (size_t i = 0; i < outer.size(); ++i) {
    if (!analyzer.ProveLE(outer[i].min, inner[i].min)) return false;
    if (!analyzer.ProveLE(inner[i].min + inner[i].extent,
                          outer[i].min + outer[i].extent)) {
      return false;
    }
  }
  return true;
}

Region FullRegion(const ir::Buffer& buffer) {
  Region out;
  for (int64_t extent : buffer->shape) {
    out.push_back({ir::IntConst(0), ir::IntConst(extent)});
  }
  return out;
}

}  // namespace tilefarm::arith
