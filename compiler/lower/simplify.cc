#include "compiler/lower/simplify.h"

#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;

// Adds the annotations to the topmost loops of `stmt`; those that a loop
// already has take precedence.
Stmt Annotate(const Stmt& stmt, const ir::AttrMap& annotations) {
  if (annotations.empty()) return stmt;
  if (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    ir::AttrMap merged = loop->annotations;
    merged.insert(annotations.begin(), annotations.end());
    return std::make_shared<const ir::ForNode>(
        loop->var, loop->min, loop->extent, loop->for_kind, loop->body,
        std::move(merged), loop->thread_tag);
  }
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    std::vector<Stmt> stmts;
    for (const Stmt& s : seq->stmts) stmts.push_back(Annotate(s, annotations));
    return ir::MakeSeq(std::move(stmts));
  }
  if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
    return ir::MakeIf(branch->condition,
                      Annotate(branch->then_case, annotations),
                      branch->else_case == nullptr
                          ? nullptr
                          : Annotate(branch->else_case, annotations));
  }
  if (const auto* alloc = ir::As<ir::AllocNode>(stmt)) {
    return ir::MakeAlloc(alloc->buffer, Annotate(alloc->body, annotations));
  }
  return stmt;
}

class Simplifier : public ir::Mutator {
 public:
  explicit Simplifier(IndexMath& math) : math_(math) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return math_.Simplify(expr); }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    Expr min = Mutate(s.min);
    Expr extent = Mutate(s.extent);
    const Interval first = math_.Bounds(min);
    const Interval count = math_.Bounds(extent);
    if (count.hi <= 0) return ir::NoOp();
    const size_t mark = math_.Mark();
    if (first.bounded() && count.has_hi()) {
      math_.Bind(s.var.get(), first.lo, first.hi + count.hi - 1);
    }
    if (!ir::As<ir::IntConstNode>(extent)) {
      math_.Assume(ir::LT(s.var, min + extent));
    }
    Stmt body = Mutate(s.body);
    math_.Restore(mark);
    if (ir::IsNoOp(body)) return ir::NoOp();
    // A bound loop says which kernel its body belongs to.
    if (ir::IsConstInt(extent, 1) && s.for_kind != ForKind::kThreadBinding) {
      body = ir::Substitute(body, {{s.var.get(), min}});
      return Annotate(body, s.annotations);
    }
    if (min == s.min && extent == s.extent && body == s.body) return self;
    return std::make_shared<const ir::ForNode>(
        s.var, std::move(min), std::move(extent), s.for_kind, std::move(body),
        s.annotations, s.thread_tag);
  }

  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    ir::BlockNode block(s);
    block.predicate = Mutate(s.predicate);
    if (ir::IsConstInt(block.predicate, 0)) return ir::NoOp();
    const size_t mark = math_.Mark();
    math_.Assume(block.predicate);
    for (ir::IterVar& iter : block.iters) {
      iter.binding = Mutate(iter.binding);
      const Interval bound = math_.Bounds(iter.binding);
      if (bound.bounded()) math_.Bind(iter.var.get(), bound.lo, bound.hi);
    }
    for (auto* regions : {&block.reads, &block.writes}) {
      for (ir::BufferRegion& region : *regions) region = MutateRegion(region);
    }
    if (s.init != nullptr) block.init = Mutate(s.init);
    block.body = Mutate(s.body);
    math_.Restore(mark);
    (void)self;
    return ir::BlockOf(std::move(block));
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    Expr condition = Mutate(s.condition);
    if (const auto known = ir::AsInt(condition)) {
      if (*known != 0) return Mutate(s.then_case);
      return s.else_case == nullptr ? ir::NoOp() : Mutate(s.else_case);
    }
    const size_t mark = math_.Mark();
    math_.Assume(condition);
    Stmt then_case = Mutate(s.then_case);
    math_.Restore(mark);
    Stmt else_case;
    if (s.else_case != nullptr) {
      math_.AssumeNot(condition);
      else_case = Mutate(s.else_case);
      math_.Restore(mark);
      if (ir::IsNoOp(else_case)) else_case = nullptr;
    }
    if (ir::IsNoOp(then_case) && else_case == nullptr) return ir::NoOp();
    if (condition == s.condition && then_case == s.then_case &&
        else_case == s.else_case) {
      return self;
    }
    return ir::MakeIf(std::move(condition), std::move(then_case),
                      std::move(else_case));
  }

  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    // A constant predicate is dropped, or removes the store.
    if (s.predicate != nullptr) {
      const Expr predicate = Mutate(s.predicate);
      if (ir::IsConstInt(predicate, 0)) return ir::NoOp();
      if (ir::IsConstInt(predicate, 1)) {
        return ir::MakeStore(s.buffer, MutateAll(s.indices), Mutate(s.value));
      }
    }
    return Mutator::MutateStore(s, self);
  }

  Stmt MutateLetStmt(const ir::LetStmtNode& s, const Stmt& self) override {
    Expr value = Mutate(s.value);
    if (value->kind == ir::ExprKind::kIntConst ||
        value->kind == ir::ExprKind::kVar) {
      return Mutate(ir::Substitute(s.body, {{s.var.get(), value}}));
    }
    const size_t mark = math_.Mark();
    if (s.var->dtype.is_index()) {
      const Interval known = math_.Bounds(value);
      math_.Bind(s.var.get(), known.lo, known.hi);
    }
    Stmt body = Mutate(s.body);
    math_.Restore(mark);
    if (value == s.value && body == s.body) return self;
    return std::make_shared<const ir::LetStmtNode>(s.var, std::move(value),
                                                   std::move(body));
  }

 private:
  IndexMath& math_;
};

}  // namespace

Stmt Simplify(IndexMath& math, const Stmt& stmt) {
  return Simplifier(math).Mutate(stmt);
}

Stmt Simplify(const Stmt& stmt) {
  IndexMath math;
  return Simplify(math, stmt);
}

}  // namespace tilefarm::lower
