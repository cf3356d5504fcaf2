#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/guard_math.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

// A nest of nothing but loops and conditions around one store.
struct Nest {
  std::vector<const ForNode*> loops;
  std::vector<Expr> guards;
  const ir::StoreNode* store = nullptr;
};

std::optional<Nest> MatchNest(const Stmt& stmt) {
  Nest nest;
  const Stmt* at = &stmt;
  for (;;) {
    if (const auto* loop = ir::As<ForNode>(*at)) {
      nest.loops.push_back(loop);
      at = &loop->body;
    } else if (const auto* branch = ir::As<ir::IfNode>(*at)) {
      if (branch->else_case != nullptr) return std::nullopt;
      SplitConjunction(branch->condition, nest.guards);
      at = &branch->then_case;
    } else {
      nest.store = ir::As<ir::StoreNode>(*at);
      if (nest.store == nullptr) return std::nullopt;
      return nest;
    }
  }
}

bool UsesAny(const Expr& e, const std::vector<const ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const ForNode* loop) {
    return ir::UsesVar(e, loop->var.get());
  });
}

bool Addresses(const ir::StoreNode& store, const ir::VarNode* var) {
  return std::any_of(store.indices.begin(), store.indices.end(),
                     [&](const Expr& e) { return ir::UsesVar(e, var); });
}

// Takes conditions away from the guards of a nest.
class GuardRemover : public ir::Mutator {
 public:
  explicit GuardRemover(const std::vector<Expr>& gone) : gone_(gone) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    std::vector<Expr> parts, kept;
    SplitConjunction(s.condition, parts);
    for (const Expr& part : parts) {
      if (std::find(gone_.begin(), gone_.end(), part) == gone_.end()) {
        kept.push_back(part);
      }
    }
    Stmt body = Mutate(s.then_case);
    return kept.empty() ? body : ir::MakeIf(Conjunction(kept), std::move(body));
  }

 private:
  const std::vector<Expr>& gone_;
};

class ReductionBounder : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const UnrollPragma outer = pragma_;
    pragma_.Enter(s);
    const size_t mark = math_.Mark();
    const Interval first = math_.Bounds(s.min);
    const Interval count = math_.Bounds(s.extent);
    if (first.bounded() && count.has_hi()) {
      math_.Bind(s.var.get(), first.lo, first.hi + count.hi - 1);
    }
    around_.push_back(s.var.get());
    Stmt mutated = Mutator::MutateFor(s, self);
    around_.pop_back();
    math_.Restore(mark);
    Stmt out = Bound(*ir::As<ForNode>(mutated), mutated);
    pragma_ = outer;
    return out;
  }

  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    scopes_[s.buffer.get()] = around_.size();
    return Mutator::MutateAlloc(s, self);
  }

 private:
  // for r in n: if (lo <= r and r < hi) S  ->  for r in hi - lo: S(r + lo)
  Stmt Bound(const ForNode& s, const Stmt& self) {
    const auto extent = ir::AsInt(s.extent);
    if (s.for_kind != ForKind::kSerial || !extent || *extent <= 1 ||
        !ir::IsConstInt(s.min, 0) || pragma_.Unrolls(s)) {
      return self;
    }
    const std::optional<Nest> nest = MatchNest(s.body);
    if (!nest || Addresses(*nest->store, s.var.get())) return self;
    Expr from = ir::IntConst(0), end = s.extent;
    std::vector<Expr> taken;
    for (const Expr& guard : nest->guards) {
      if (UsesAny(guard, nest->loops) || !DependsOnElement(*nest, guard)) {
        continue;
      }
      if (Take(s, guard, from, end)) taken.push_back(guard);
    }
    if (taken.empty()) return self;
    from = math_.Simplify(from);
    Expr trips = math_.Simplify(end - from);
    if (math_.Bounds(trips).lo < 0) {
      trips = ir::Max(std::move(trips), ir::IntConst(0));
    }
    Stmt body = GuardRemover(taken).Mutate(s.body);
    const ir::Var var = ir::MakeVar(s.var->name);
    body = ir::Substitute(body, {{s.var.get(), Expr(var) + from}});
    return std::make_shared<const ForNode>(var, s.min, std::move(trips),
                                           s.for_kind, std::move(body),
                                           s.annotations, s.thread_tag);
  }

  // Whether the guard depends on a loop that tells elements apart, by their
  // indices or as one in which they live. Where only reductions meet, cutting
  // loops gives constant bounds.
  bool DependsOnElement(const Nest& nest, const Expr& guard) const {
    const auto lives = scopes_.find(nest.store->buffer.get());
    const size_t outside = lives == scopes_.end() ? 0 : lives->second;
    for (size_t i = 0; i < around_.size(); ++i) {
      if (ir::UsesVar(guard, around_[i]) &&
          (i < outside || Addresses(*nest.store, around_[i]))) {
        return true;
      }
    }
    return false;
  }

  // Takes one comparison of the loop's variable into its bounds.
  bool Take(const ForNode& s, const Expr& guard, Expr& from, Expr& end) {
    auto bound = AsUpperBound(math_, guard);
    if (!bound) return false;
    const int64_t scale = bound->CoefficientOf(s.var.get());
    if (scale == 0) return false;
    bound->AddTerm(s.var, -scale);
    for (const auto& [atom, coefficient] : bound->terms) {
      if (ir::UsesVar(atom, s.var.get())) return false;
    }
    Linear rest;
    if (scale > 0) {  // r < floor(-rest / scale) + 1
      rest.Add(*bound, -1);
      end = ir::Min(end, ir::FloorDiv(rest.ToExpr(), ir::IntConst(scale)) + 1);
    } else {  // r >= ceil(rest / -scale)
      rest.Add(*bound, 1);
      rest.constant += -scale - 1;
      from = ir::Max(from, ir::FloorDiv(rest.ToExpr(), ir::IntConst(-scale)));
    }
    return true;
  }

  IndexMath math_;
  UnrollPragma pragma_;
  std::vector<const ir::VarNode*> around_;
  // How many loops are around the allocation.
  std::map<const ir::BufferNode*, size_t> scopes_;
};

}  // namespace

Stmt BoundReductions(const Stmt& stmt) {
  return ReductionBounder().Mutate(stmt);
}

}  // namespace tilefarm::lower
