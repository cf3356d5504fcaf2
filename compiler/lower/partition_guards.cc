#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/simplify.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

// Stores, replicated as T.unroll asks, that copies may add to a function.
constexpr int64_t kMaxAddedStores = 4096;

void SplitConjunction(const Expr& condition, std::vector<Expr>& out) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary != nullptr && binary->op == BinaryOp::kAnd) {
    SplitConjunction(binary->a, out);
    SplitConjunction(binary->b, out);
  } else {
    out.push_back(condition);
  }
}

Expr Conjunction(const std::vector<Expr>& conditions) {
  Expr out = ir::BoolConst(true);
  for (const Expr& condition : conditions) out = ir::And(out, condition);
  return out;
}

bool ReadsMemory(const Expr& e) {
  bool reads = false;
  ir::PostOrderExprs(
      e, [&](const Expr& x) { reads |= x->kind == ir::ExprKind::kLoad; });
  return reads;
}

// A comparison of indices as `linear <= 0`; nullopt for others.
std::optional<Linear> AsUpperBound(IndexMath& math, const Expr& condition) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary == nullptr || !binary->a->dtype.is_index() ||
      ReadsMemory(condition)) {
    return std::nullopt;
  }
  Linear out = math.Decompose(binary->a);
  out.Add(math.Decompose(binary->b), -1);
  switch (binary->op) {
    case BinaryOp::kLT:
      out.constant += 1;
      return out;
    case BinaryOp::kLE:
      return out;
    case BinaryOp::kGT:
    case BinaryOp::kGE: {
      Linear negated;
      negated.Add(out, -1);
      if (binary->op == BinaryOp::kGT) negated.constant += 1;
      return negated;
    }
    default:
      return std::nullopt;
  }
}

int64_t CountStores(const Stmt& stmt) {
  int64_t count = 0;
  if (ir::As<ir::StoreNode>(stmt)) return 1;
  if (const auto* loop = ir::As<ForNode>(stmt)) {
    const auto extent = ir::AsInt(loop->extent);
    const int64_t body = CountStores(loop->body);
    return loop->for_kind == ForKind::kUnrolled && extent && *extent < 1024
               ? body * *extent
               : body;
  }
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const Stmt& s : seq->stmts) count += CountStores(s);
  } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
    count = CountStores(branch->then_case);
    if (branch->else_case != nullptr) count += CountStores(branch->else_case);
  } else if (const auto* alloc = ir::As<ir::AllocNode>(stmt)) {
    count = CountStores(alloc->body);
  } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
    count = CountStores(let->body);
  }
  return count;
}

// Guards below a loop that depend on it and on loops inside of it: the
// conditions, in terms of what is known at the loop, under which they hold
// throughout.
class SteadyConditions : public ir::Visitor {
 public:
  SteadyConditions(IndexMath& math, const ForNode& loop)
      : math_(math), loop_(loop) {
    Visit(loop.body);
  }
  using Visitor::Visit;
  void Visit(const Expr&) override {}

  const std::vector<Expr>& conditions() const { return conditions_; }

 protected:
  void VisitFor(const ForNode& s) override {
    const Interval first = math_.Bounds(s.min);
    const Interval count = math_.Bounds(s.extent);
    const size_t mark = math_.Mark();
    if (first.bounded() && count.has_hi()) {
      math_.Bind(s.var.get(), first.lo, first.hi + count.hi - 1);
    }
    inner_.insert(s.var.get());
    Visitor::VisitFor(s);
    math_.Restore(mark);
  }
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    inner_.insert(s.var.get());
    Visitor::VisitLetStmt(s);
  }
  void VisitIf(const ir::IfNode& s) override {
    std::vector<Expr> parts;
    SplitConjunction(s.condition, parts);
    for (const Expr& part : parts) Consider(part);
    Visitor::VisitIf(s);
  }

 private:
  void Consider(const Expr& condition) {
    const auto bound = AsUpperBound(math_, condition);
    if (!bound) return;
    Linear outer, inner;
    outer.constant = bound->constant;
    bool uses_loop = false;
    for (const auto& [atom, scale] : bound->terms) {
      bool inside = false, here = false;
      ir::PostOrderExprs(atom, [&](const Expr& e) {
        if (e->kind != ir::ExprKind::kVar) return;
        inside |= inner_.count(static_cast<const ir::VarNode*>(e.get())) > 0;
        here |= e.get() == loop_.var.get();
      });
      if (inside && here) return;
      (inside ? inner : outer).terms.emplace_back(atom, scale);
      uses_loop |= here;
    }
    if (!uses_loop || inner.is_constant()) return;
    const Interval reach = math_.Bounds(inner);
    if (!reach.has_hi()) return;
    outer.constant += reach.hi;
    // Never true, or always: a copy gains nothing.
    const Interval known = math_.Bounds(outer);
    if (known.lo > 0 || known.hi <= 0) return;
    Linear left = outer;
    left.constant = 0;
    Expr steady = ir::LE(left.ToExpr(), ir::IntConst(-outer.constant));
    for (const Expr& other : conditions_) {
      if (SameExpr(other, steady)) return;
    }
    conditions_.push_back(std::move(steady));
  }

  IndexMath& math_;
  const ForNode& loop_;
  std::set<const ir::VarNode*> inner_;
  std::vector<Expr> conditions_;
};

class GuardPartitioner : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt&) override {
    const Interval first = math_.Bounds(s.min);
    const Interval count = math_.Bounds(s.extent);
    const size_t mark = math_.Mark();
    if (first.bounded() && count.has_hi()) {
      math_.Bind(s.var.get(), first.lo, first.hi + count.hi - 1);
    }
    Stmt body = s.body;
    // In lanes a choice of code costs more than a mask.
    if (s.for_kind != ForKind::kVectorized) {
      body = Split(body, SteadyConditions(math_, s).conditions(), 0);
    }
    body = Mutate(body);
    math_.Restore(mark);
    return Tighten(s, std::move(body));
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    const size_t mark = math_.Mark();
    math_.Assume(s.condition);
    Stmt then_case = Mutate(s.then_case);
    math_.Restore(mark);
    Stmt else_case;
    if (s.else_case != nullptr) {
      math_.AssumeNot(s.condition);
      else_case = Mutate(s.else_case);
      math_.Restore(mark);
    }
    return ir::MakeIf(s.condition, std::move(then_case), std::move(else_case));
  }

 private:
  // if steady: body without the guards, else: body with what is known of the
  // edge.
  Stmt Split(const Stmt& body, const std::vector<Expr>& conditions,
             size_t next) {
    if (next == conditions.size()) return body;
    const int64_t stores = CountStores(body);
    if (added_stores_ + stores > kMaxAddedStores) return body;
    added_stores_ += stores;
    const Expr& steady = conditions[next];
    const size_t mark = math_.Mark();
    math_.Assume(steady);
    Stmt inside = Split(Simplify(math_, body), conditions, next + 1);
    math_.Restore(mark);
    math_.AssumeNot(steady);
    Stmt edge = Split(Simplify(math_, body), conditions, next + 1);
    math_.Restore(mark);
    return ir::MakeIf(steady, std::move(inside), std::move(edge));
  }

  // for v: if (c and d(v)) S  ->  if (c) for v up to where d holds: S
  Stmt Tighten(const ForNode& s, Stmt body) {
    const auto same = [&](Stmt inner, Expr extent) -> Stmt {
      return std::make_shared<const ForNode>(s.var, s.min, std::move(extent),
                                             s.for_kind, std::move(inner),
                                             s.annotations, s.thread_tag);
    };
    const auto* branch = ir::As<ir::IfNode>(body);
    if (branch == nullptr || branch->else_case != nullptr ||
        ReadsMemory(branch->condition) || !ir::IsConstInt(s.min, 0)) {
      return same(std::move(body), s.extent);
    }
    std::vector<Expr> parts, outside, inside;
    SplitConjunction(branch->condition, parts);
    Expr extent = s.extent;
    for (const Expr& part : parts) {
      if (!ir::UsesVar(part, s.var.get())) {
        outside.push_back(part);
      } else if (!Shorten(s, part, extent)) {
        inside.push_back(part);
      }
    }
    Stmt inner = branch->then_case;
    if (!inside.empty()) inner = ir::MakeIf(Conjunction(inside), inner);
    Stmt loop = same(std::move(inner), std::move(extent));
    if (outside.empty()) return loop;
    return ir::MakeIf(Conjunction(outside), std::move(loop));
  }

  // Takes an upper bound of the loop's variable into its extent.
  bool Shorten(const ForNode& s, const Expr& condition, Expr& extent) {
    auto bound = AsUpperBound(math_, condition);
    if (!bound) return false;
    const int64_t scale = bound->CoefficientOf(s.var.get());
    if (scale <= 0) return false;
    bound->AddTerm(s.var, -scale);
    for (const auto& [atom, coefficient] : bound->terms) {
      if (ir::UsesVar(atom, s.var.get())) return false;
    }
    // scale * v + rest <= 0  <=>  v < floor(-rest / scale) + 1
    Linear limit;
    limit.Add(*bound, -1);
    Expr count =
        math_.Simplify(ir::FloorDiv(limit.ToExpr(), ir::IntConst(scale)) + 1);
    if (const auto known = ir::AsInt(count)) {
      count = ir::IntConst(std::max<int64_t>(0, *known));
    } else if (s.for_kind != ForKind::kSerial) {
      return false;
    } else if (math_.Bounds(count).lo < 0) {
      count = ir::Max(std::move(count), ir::IntConst(0));
    }
    extent = math_.Simplify(ir::Min(std::move(extent), std::move(count)));
    return true;
  }

  IndexMath math_;
  int64_t added_stores_ = 0;
};

}  // namespace

Stmt PartitionGuards(const Stmt& stmt) {
  return GuardPartitioner().Mutate(stmt);
}

}  // namespace tilefarm::lower
