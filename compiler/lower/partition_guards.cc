#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/guard_math.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/simplify.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

// The maximum number of stores, after T.unroll, that copies may add to a
// function.
constexpr int64_t kMaxAddedStores = 1024;

// Up to this many iterations at a border are peeled, so that the guards of
// register tiles inside are decided at compile time.
constexpr int64_t kMaxPeeledIterations = 4;

// Copies that run for at most this share of a nest's iterations are not
// unrolled by pragmas: unrolling them gains nothing and would take longer to
// compile than the rest of the kernel.
constexpr double kSeldom = 1.0 / 16;

// Guards of at most this share of the function's work stay: evaluating them
// costs less than compiling the copies, which would also copy work without
// guards (such as Winograd's products next to its transforms).
constexpr double kSmallShare = 1.0 / 64;

// A condition under which guards below a loop always hold.
struct Steady {
  Linear bound;  // <= 0; in terms known at the loop
  Expr condition;
  bool is_sole;  // no inner loop occurs in its guards
};

// Collects the guards below a loop that depend on it: the conditions, in terms
// known at the loop, under which they always hold.
class SteadyConditions : public ir::Visitor {
 public:
  // `runs`: executions of the loop's body. Ignores guards of fewer than `least`
  // store executions.
  SteadyConditions(IndexMath& math, const ForNode& loop, double runs,
                   double least)
      : math_(math), loop_(loop), runs_(runs), least_(least) {
    Visit(loop.body);
  }
  using Visitor::Visit;
  void Visit(const Expr&) override {}

  const std::vector<Steady>& conditions() const { return conditions_; }

 protected:
  void VisitFor(const ForNode& s) override {
    const size_t mark = math_.Mark();
    const double outer_runs = runs_;
    runs_ *= Iterations(math_, s);
    BindLoop(math_, s);
    inner_.insert(s.var.get());
    Visitor::VisitFor(s);
    math_.Restore(mark);
    runs_ = outer_runs;
  }
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    inner_.insert(s.var.get());
    Visitor::VisitLetStmt(s);
  }
  void VisitIf(const ir::IfNode& s) override {
    std::vector<Expr> parts;
    // A statement with two cases is a choice that the program makes.
    if (s.else_case == nullptr &&
        runs_ * StoresRun(math_, s.then_case) >= least_) {
      SplitConjunction(s.condition, parts);
    }
    for (const Expr& part : parts) Consider(part);
    Visitor::VisitIf(s);
  }
  // Values that are read under a condition, such as those of padded inputs.
  void VisitStore(const ir::StoreNode& s) override {
    if (runs_ < least_) return;
    ir::PostOrderExprs(s.value, [&](const Expr& e) {
      const auto* call = ir::As<ir::CallNode>(e);
      if (call == nullptr || call->op != ir::Intrinsic::kIfThenElse) return;
      std::vector<Expr> parts;
      SplitConjunction(call->args[0], parts);
      for (const Expr& part : parts) Consider(part);
    });
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
    if (!uses_loop) return;
    const Interval reach = math_.Bounds(inner);
    if (!reach.has_hi()) return;
    outer.constant += reach.hi;
    // The guard never or always holds: a copy gains nothing.
    const Interval known = math_.Bounds(outer);
    if (known.lo > 0 || known.hi <= 0) return;
    Linear left = outer;
    left.constant = 0;
    Expr steady = ir::LE(left.ToExpr(), ir::IntConst(-outer.constant));
    const bool is_sole = inner.is_constant();
    for (Steady& other : conditions_) {
      if (!SameExpr(other.condition, steady)) continue;
      other.is_sole &= is_sole;
      return;
    }
    conditions_.push_back({std::move(outer), std::move(steady), is_sole});
  }

  IndexMath& math_;
  const ForNode& loop_;
  double runs_;
  const double least_;
  std::set<const ir::VarNode*> inner_;
  std::vector<Steady> conditions_;
};

class GuardPartitioner : public ir::Mutator {
 public:
  explicit GuardPartitioner(const Stmt& stmt)
      : least_(StoresRun(math_, stmt) * kSmallShare) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt&) override {
    const bool outer_unrolls = unrolls_;
    const auto unrolls = s.annotations.find(ir::kUnrollExplicit);
    if (unrolls != s.annotations.end()) {
      unrolls_ = unrolls->second.AsInt().value_or(0) != 0;
    }
    Stmt out = PartitionFor(s);
    unrolls_ = outer_unrolls;
    return out;
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
  Stmt PartitionFor(const ForNode& s) {
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    // In vector code, a branch costs more than a mask.
    std::vector<Steady> conditions;
    if (s.for_kind != ForKind::kVectorized) {
      conditions =
          SteadyConditions(math_, s, runs_ * Iterations(math_, s), least_)
              .conditions();
    }
    math_.Restore(mark);
    const std::vector<int64_t> cuts = Cuts(s, conditions);
    if (!cuts.empty()) return CutLoop(s, cuts, conditions);
    return Partition(s, conditions);
  }

  // The iterations of a serial loop at which some guard starts or stops to
  // hold, independent of outer loops; iterations at a border singly.
  std::vector<int64_t> Cuts(const ForNode& s, std::vector<Steady>& conditions) {
    const auto extent = ir::AsInt(s.extent);
    if (s.for_kind != ForKind::kSerial || !extent ||
        !ir::IsConstInt(s.min, 0)) {
      return {};
    }
    std::set<int64_t> cuts;
    const auto add = [&](int64_t cut) {
      if (cut > 0 && cut < *extent) cuts.insert(cut);
    };
    for (const Steady& steady : conditions) {
      const Linear& bound = steady.bound;
      if (bound.terms.size() != 1 ||
          bound.terms[0].first.get() != s.var.get()) {
        continue;
      }
      const auto [var, scale] = bound.terms[0];
      // scale * v + constant <= 0
      const int64_t at = scale > 0 ? FloorDivide(-bound.constant, scale) + 1
                                   : -FloorDivide(-bound.constant, -scale);
      add(at);
      const int64_t border = scale > 0 ? *extent - at : at;
      if (steady.is_sole || border > kMaxPeeledIterations) continue;
      for (int64_t i = 1; i < border; ++i) add(scale > 0 ? at + i : at - i);
    }
    return {cuts.begin(), cuts.end()};
  }

  static int64_t FloorDivide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }

  // for v in n: S  ->  for v in cut: S;  for v in n - cut: S(v + cut)
  Stmt CutLoop(const ForNode& s, const std::vector<int64_t>& cuts,
               const std::vector<Steady>& conditions) {
    const int64_t stores =
        CountStores(s.body) * static_cast<int64_t>(cuts.size());
    if (added_stores_ + stores > kMaxAddedStores) {
      return Partition(s, conditions);
    }
    added_stores_ += stores;
    std::vector<Stmt> parts;
    const int64_t extent = *ir::AsInt(s.extent);
    const double outer_share = share_;
    int64_t from = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const int64_t end = i < cuts.size() ? cuts[i] : extent;
      share_ = outer_share * static_cast<double>(end - from) /
               static_cast<double>(extent);
      ir::AttrMap annotations = s.annotations;
      if (unrolls_ && share_ <= kSeldom) {
        annotations.insert_or_assign(ir::kUnrollExplicit, int64_t{0});
      }
      const ir::Var var = ir::MakeVar(s.var->name);
      Stmt part = std::make_shared<const ForNode>(
          var, s.min, ir::IntConst(end - from), s.for_kind,
          ir::Substitute(s.body,
                         {{s.var.get(), Expr(var) + ir::IntConst(from)}}),
          std::move(annotations), s.thread_tag);
      parts.push_back(Mutate(Simplify(math_, part)));
      from = end;
    }
    share_ = outer_share;
    return ir::MakeSeq(std::move(parts));
  }

  Stmt Partition(const ForNode& s, const std::vector<Steady>& conditions) {
    const size_t mark = math_.Mark();
    const double outer_runs = runs_;
    runs_ *= Iterations(math_, s);
    BindLoop(math_, s);
    Stmt body = Mutate(Split(s.body, conditions, 0));
    math_.Restore(mark);
    runs_ = outer_runs;
    return Tighten(s, std::move(body));
  }

  // if steady: body without the guards, else: body simplified for the edge.
  Stmt Split(const Stmt& body, const std::vector<Steady>& conditions,
             size_t next) {
    if (next == conditions.size()) return body;
    // A guard that depends on this loop alone equals the condition.
    if (conditions[next].is_sole) return Split(body, conditions, next + 1);
    const int64_t stores = CountStores(body);
    if (added_stores_ + stores > kMaxAddedStores) return body;
    added_stores_ += stores;
    const Expr& steady = conditions[next].condition;
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

  // Turns an upper bound of the loop's variable into its extent.
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
  const double least_;  // store executions
  double runs_ = 1;     // executions of this place
  int64_t added_stores_ = 0;
  bool unrolls_ = false;  // a pragma applies here
  double share_ = 1;  // share of the original loops' iterations in this part
};

}  // namespace

Stmt PartitionGuards(const Stmt& stmt) {
  return GuardPartitioner(stmt).Mutate(stmt);
}

}  // namespace tilefarm::lower
