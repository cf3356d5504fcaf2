#include "compiler/lower/allocation_regions.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/arith/canonical.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForNode;
using ir::Stmt;

class AccessCollector : public ir::Visitor {
 public:
  AccessCollector(const ir::BufferNode* buffer, IndexMath& math)
      : buffer_(buffer), math_(math) {}
  using Visitor::Visit;

  const std::vector<Access>& accesses() const { return accesses_; }

 protected:
  void VisitFor(const ForNode& s) override {
    BindLoop(math_, s);
    loops_.push_back(&s);
    Visit(s.body);
    loops_.pop_back();
  }

  void VisitBlock(const ir::BlockNode& s) override {
    for (const ir::IterVar& iter : s.iters) {
      Visit(iter.binding);
      bindings_[iter.var.get()] = ir::Substitute(iter.binding, bindings_);
    }
    Visit(s.predicate);
    if (s.init != nullptr) FindReductionLoop(s);
    const size_t outer = conditions_.size();
    const size_t outer_once = once_from_;
    if (!ir::IsConstInt(s.predicate, 1)) {
      conditions_.push_back(
          WithoutSingleIterations(s, ir::Substitute(s.predicate, bindings_)));
    }
    if (s.init != nullptr) {
      in_init_ = true;
      const size_t mark = math_.Mark();
      for (const ir::IterVar& iter : s.iters) {
        if (iter.type != ir::IterType::kReduce) continue;
        math_.Assume(ir::LE(bindings_[iter.var.get()], iter.dom.min));
      }
      Visit(s.init);
      math_.Restore(mark);
      in_init_ = false;
      has_reduction_ = false;
    }
    Visit(s.body);
    conditions_.resize(outer);
    once_from_ = outer_once;
  }

  // Indices are analysed in terms of loops, so let variables are replaced.
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    Visit(s.value);
    bindings_[s.var.get()] = ir::Substitute(s.value, bindings_);
    Visit(s.body);
  }
  void VisitLet(const ir::LetNode& e) override {
    Visit(e.value);
    bindings_[e.var.get()] = ir::Substitute(e.value, bindings_);
    Visit(e.body);
  }

  void VisitIf(const ir::IfNode& s) override {
    Visit(s.condition);
    conditions_.push_back(ir::Substitute(s.condition, bindings_));
    Visit(s.then_case);
    if (s.else_case != nullptr) {
      conditions_.back() = ir::MakeNot(conditions_.back());
      Visit(s.else_case);
    }
    conditions_.pop_back();
  }

  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    if (e.buffer.get() == buffer_) Add(e.indices, false);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    if (s.buffer.get() == buffer_) Add(s.indices, true);
  }

 private:
  // The outermost reduction loop: init writes hold only for iterations inside.
  // LowerInit moves the init out of it, also where the block runs in its first
  // iteration only.
  void FindReductionLoop(const ir::BlockNode& block) {
    initialised_from_ = 0;
    for (size_t i = loops_.size(); i-- > 0;) {
      for (const ir::IterVar& iter : block.iters) {
        if (iter.type != ir::IterType::kSpatial &&
            ir::UsesVar(bindings_[iter.var.get()], loops_[i]->var.get())) {
          initialised_from_ = i;
          has_reduction_ = true;
        }
      }
    }
  }

  // Whether the condition holds in no iteration of the loop but the first: that
  // of i in i * 8 + j < 1, where j is not negative.
  bool HoldsFirstOnly(const Expr& condition, const ForNode& loop) {
    const auto* compare = ir::As<ir::BinaryNode>(condition);
    if (compare == nullptr) return false;
    if (compare->op == ir::BinaryOp::kAnd) {
      return HoldsFirstOnly(compare->a, loop) ||
             HoldsFirstOnly(compare->b, loop);
    }
    if (compare->op != ir::BinaryOp::kLT) return false;
    Linear rest = math_.Decompose(compare->a);
    rest.Add(math_.Decompose(compare->b), -1);
    const int64_t scale = rest.CoefficientOf(loop.var.get());
    const auto min = ir::AsInt(loop.min);
    if (scale <= 0 || !min) return false;
    // In the second iteration the left side is not below the right one.
    rest.AddTerm(loop.var, -scale);
    rest.constant += scale * (*min + 1);
    return math_.Bounds(rest).lo >= 0;
  }

  // What is left of the predicate where loops reach the block in their first
  // iteration only; their variables leave its bindings.
  Expr WithoutSingleIterations(const ir::BlockNode& block,
                               const Expr& predicate) {
    ir::VarMap first;
    for (size_t i = loops_.size(); i-- > 0;) {
      // Each thread has a local buffer of its own, where its part has the place
      // that it has in the threads that do without this block.
      if (IsThreadLoop(*loops_[i]) &&
          ir::ScopeOf(*buffer_) == ir::MemoryScope::kLocal) {
        continue;
      }
      if (!HoldsFirstOnly(predicate, *loops_[i])) continue;
      first[loops_[i]->var.get()] = loops_[i]->min;
      once_from_ = once_from_ == 0 ? i + 1 : std::min(once_from_, i + 1);
    }
    if (first.empty()) return predicate;
    for (const ir::IterVar& iter : block.iters) {
      Expr& binding = bindings_[iter.var.get()];
      binding = ir::Substitute(binding, first);
    }
    return math_.Simplify(ir::Substitute(predicate, first));
  }

  void Add(const std::vector<Expr>& indices, bool store) {
    Access access;
    access.store = store;
    access.loops = loops_;
    for (const Expr& index : indices) {
      access.indices.push_back(ir::Substitute(index, bindings_));
    }
    if (in_init_ && has_reduction_) {
      access.initialised_from = initialised_from_ + 1;
    }
    access.once_from = once_from_;
    for (const Expr& condition : conditions_) {
      for (const Expr& part : arith::Conjuncts(condition)) {
        access.conditions.push_back(part);
      }
    }
    for (size_t i = access.conditions.size(); i-- > 0;) {
      if (OnlyKeepsInside(access, i)) {
        access.conditions.erase(access.conditions.begin() +
                                static_cast<std::ptrdiff_t>(i));
      }
    }
    accesses_.push_back(std::move(access));
  }

  // Whether the condition holds for every element inside the buffer for which
  // the others hold, so that it only excludes elements outside.
  bool OnlyKeepsInside(const Access& access, size_t condition) {
    const size_t mark = math_.Mark();
    // First the others, with which indices may be simpler.
    for (size_t i = 0; i < access.conditions.size(); ++i) {
      if (i != condition) math_.Assume(access.conditions[i]);
    }
    for (size_t d = 0; d < access.indices.size(); ++d) {
      math_.Assume(ir::LE(ir::IntConst(0), access.indices[d]));
      math_.Assume(ir::LT(access.indices[d], ir::IntConst(buffer_->shape[d])));
    }
    const bool holds = math_.CanProve(access.conditions[condition]);
    math_.Restore(mark);
    return holds;
  }

  const ir::BufferNode* buffer_;
  IndexMath& math_;
  std::vector<const ForNode*> loops_;
  std::vector<Expr> conditions_;
  ir::VarMap bindings_;
  std::vector<Access> accesses_;
  bool in_init_ = false, has_reduction_ = false;
  size_t initialised_from_ = 0;
  size_t once_from_ = 0;
};

// Fills in the terms of the offsets.
void AddTerms(const Access& access, Box& box) {
  std::map<const ir::ExprNode*, int> uses;
  for (const Linear& offset : box.offset) {
    for (const auto& [atom, scale] : offset.terms) {
      ir::PostOrderExprs(atom, [&](const Expr& e) { ++uses[e.get()]; });
    }
  }
  for (const Linear& offset : box.offset) {
    std::vector<Box::Term>& terms = box.terms.emplace_back();
    for (const auto& [atom, scale] : offset.terms) {
      const auto loop =
          std::ranges::find_if(access.loops, [&](const ForNode* candidate) {
            return candidate->var.get() == atom.get();
          });
      const auto extent = loop == access.loops.end()
                              ? std::nullopt
                              : ir::AsInt((*loop)->extent);
      if (extent && uses[atom.get()] == 1) {
        terms.push_back({scale, *extent});
        continue;
      }
      // Loops that copies of a statement share have one variable.
      std::string name = ir::ToString(atom);
      ir::PostOrderExprs(atom, [&](const Expr& e) {
        if (e->kind == ir::ExprKind::kVar) {
          absl::StrAppend(&name, " ",
                          absl::Hex(reinterpret_cast<uintptr_t>(e.get())));
        }
      });
      terms.push_back({scale, 0, std::move(name)});
    }
    std::ranges::sort(terms);
    // Both loops of a split count as one.
    std::vector<Box::Term> merged;
    for (Box::Term& term : terms) {
      if (!merged.empty() && term.extent > 0 && merged.back().extent > 0 &&
          term.scale == merged.back().scale * merged.back().extent) {
        merged.back().extent *= term.extent;
      } else {
        merged.push_back(std::move(term));
      }
    }
    terms = std::move(merged);
  }
}

// Of a * i + j < c, with what is known of j, also that of i: i * a + j may have
// been simplified to i in an index.
void AssumeWithParts(IndexMath& math, const Expr& condition) {
  math.Assume(condition);
  const auto* less = ir::As<ir::BinaryNode>(condition);
  if (less == nullptr || less->op != ir::BinaryOp::kLT ||
      !less->a->dtype.is_index()) {
    return;
  }
  Linear sum = math.Decompose(less->a);
  sum.Add(math.Decompose(less->b), -1);
  std::set<int64_t> scales;
  for (const auto& [atom, scale] : sum.terms) scales.insert(std::abs(scale));
  for (const int64_t scale : scales) {
    if (scale < 2) continue;
    Linear whole, rest;
    rest.constant = sum.constant;
    for (const auto& [atom, by] : sum.terms) {
      by % scale == 0 ? whole.AddTerm(atom, by / scale)
                      : rest.AddTerm(atom, by);
    }
    const Interval left = math.Bounds(rest);
    if (!left.has_lo()) continue;
    // whole * scale + rest < 0
    const ir::Expr most = ir::IntConst(arith::FloorDivInt(-1 - left.lo, scale));
    math.Assume(ir::LE(whole.ToExpr(), most));
  }
}

// The end of what the access reaches, where its conditions hold: the last of
// the threads that fetch a tile may be beyond it.
int64_t LastAccessed(IndexMath& math, const Access& access, const Linear& inner,
                     const Interval& reach) {
  const size_t mark = math.Mark();
  for (const Expr& condition : access.conditions) {
    AssumeWithParts(math, condition);
  }
  const int64_t last = math.Bounds(inner).hi;
  math.Restore(mark);
  return last < reach.lo ? reach.hi : std::min(last, reach.hi);
}

}  // namespace

std::vector<Access> AccessesOf(const ir::BufferNode* buffer,
                               const ir::Stmt& body, IndexMath& math) {
  AccessCollector collector(buffer, math);
  collector.Visit(body);
  return collector.accesses();
}

std::optional<Box> RegionBelow(IndexMath& math, const Access& access,
                               size_t depth, RegionOptions options) {
  Box box;
  for (const Expr& index : access.indices) {
    Linear fixed, inner;
    const Linear linear = math.Decompose(index);
    fixed.constant = linear.constant;
    for (const auto& [atom, scale] : linear.terms) {
      bool varies = false, loads = false;
      ir::PostOrderExprs(atom, [&](const Expr& e) {
        loads |= e->kind == ir::ExprKind::kLoad;
        for (size_t i = 0; i < access.loops.size(); ++i) {
          if (i <= depth &&
              !(options.all_threads && IsThreadLoop(*access.loops[i]))) {
            continue;
          }
          varies |= e.get() == access.loops[i]->var.get();
        }
      });
      if (loads) return std::nullopt;
      (varies ? inner : fixed).terms.emplace_back(atom, scale);
    }
    Interval reach = math.Bounds(inner);
    if (!reach.bounded()) return std::nullopt;
    if (options.within_conditions) {
      reach.hi = LastAccessed(math, access, inner, reach);
    }
    fixed.constant += reach.lo;
    box.first.push_back(std::move(fixed));
    box.extent.push_back(reach.hi - reach.lo + 1);
    inner.constant = -reach.lo;
    box.offset.push_back(std::move(inner));
  }
  AddTerms(access, box);
  return box;
}

std::optional<Box> FilledBox(IndexMath& math, const Access& access,
                             size_t depth) {
  arith::VarRanges inner;
  arith::Analyzer analyzer;
  for (size_t i = depth + 1; i < access.loops.size(); ++i) {
    const ForNode& loop = *access.loops[i];
    inner.emplace_back(loop.var, ir::Range{loop.min, loop.extent});
  }
  Expr predicate;
  for (const Expr& condition : access.conditions) {
    // What depends on outer loops may not hold at all.
    for (size_t i = 0; i <= depth; ++i) {
      if (ir::UsesVar(condition, access.loops[i]->var.get())) {
        return std::nullopt;
      }
    }
    predicate =
        predicate == nullptr ? condition : ir::And(predicate, condition);
  }
  const auto map =
      arith::DetectIterMap(access.indices, inner, predicate,
                           arith::IterMapLevel::kSurjective, analyzer);
  if (!map.ok()) return std::nullopt;
  Box box;
  for (const arith::IterSum& index : *map) {
    if (index.splits.size() > 1 ||
        (!index.splits.empty() && index.splits[0].scale != 1)) {
      return std::nullopt;
    }
    box.first.push_back(math.Decompose(index.base));
    box.extent.push_back(index.splits.empty() ? 1 : index.splits[0].extent);
  }
  return box;
}

std::optional<int64_t> Distance(const Linear& from, const Linear& to) {
  Linear difference = to;
  difference.Add(from, -1);
  if (!difference.is_constant()) return std::nullopt;
  return difference.constant;
}

bool Covers(IndexMath& math, const ir::BufferNode& buffer, const Box& outer,
            const Box& inner) {
  for (size_t d = 0; d < outer.first.size(); ++d) {
    Linear start = inner.first[d];
    start.Add(outer.first[d], -1);
    if (math.Bounds(start).Within(0, outer.extent[d] - inner.extent[d])) {
      continue;
    }
    // `outer` covers the whole dimension.
    const Interval first = math.Bounds(outer.first[d]);
    if (first.hi <= 0 && first.lo + outer.extent[d] >= buffer.shape[d]) {
      continue;
    }
    return false;
  }
  return true;
}

bool Contains(const Box& outer, const Box& inner) {
  for (size_t d = 0; d < outer.first.size(); ++d) {
    if (Distance(outer.first[d], inner.first[d]) != 0) return false;
    std::vector<Box::Term> more, rest;
    std::ranges::set_difference(outer.terms[d], inner.terms[d],
                                std::back_inserter(more));
    std::ranges::set_difference(inner.terms[d], outer.terms[d],
                                std::back_inserter(rest));
    // With the same values of the terms that both have, `outer` has [0, dense)
    // and `inner` nothing beyond `most`.
    int64_t dense = 1, most = 0;
    for (const Box::Term& term : more) {
      if (term.extent == 0) return false;
      if (term.scale <= 0 || term.scale > dense) continue;
      dense += term.scale * (term.extent - 1);
    }
    for (const Box::Term& term : rest) {
      if (term.extent == 0 || term.scale <= 0) return false;
      most += term.scale * (term.extent - 1);
    }
    if (most >= dense) return false;
  }
  return true;
}

std::vector<Digit> DigitsWithoutGaps(IndexMath& math,
                                     const std::vector<Linear>& offsets,
                                     int64_t extent) {
  std::set<int64_t, std::greater<>> scales = {1};
  for (const Linear& offset : offsets) {
    for (const auto& [atom, scale] : offset.terms) {
      if (scale < 0) return {};
      scales.insert(scale);
    }
  }
  std::vector<Digit> digits;
  for (const int64_t scale : scales) {
    if (digits.empty() || digits.back().scale % scale == 0) {
      digits.push_back({scale, 0});
    }
  }
  for (const Linear& offset : offsets) {
    int64_t rest = offset.constant;
    for (size_t k = 0; k < digits.size(); ++k) {
      Digit& digit = digits[k];
      Linear value;
      value.constant = rest / digit.scale;
      rest %= digit.scale;
      for (const auto& [atom, scale] : offset.terms) {
        const bool larger = k > 0 && scale % digits[k - 1].scale == 0;
        if (!larger && scale % digit.scale == 0) {
          value.AddTerm(atom, scale / digit.scale);
        }
      }
      const Interval bounds = math.Bounds(value);
      const int64_t most =
          k == 0 ? bounds.hi : digits[k - 1].scale / digit.scale - 1;
      if (!bounds.bounded() || !bounds.Within(0, most)) return {};
      digit.count = std::max(digit.count, bounds.hi + 1);
    }
  }
  int64_t count = 1;
  for (const Digit& digit : digits) count *= digit.count;
  return count < extent ? digits : std::vector<Digit>{};
}

}  // namespace tilefarm::lower
