#include <set>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

class ScopeRenewer : public ir::Mutator {
 public:
  using Mutator::Mutate;

 protected:
  Expr MutateVar(const ir::VarNode& e, const Expr& self) override {
    const auto found = vars_.find(&e);
    return found == vars_.end() ? self : found->second;
  }
  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    const auto found = buffers_.find(buffer.get());
    return found == buffers_.end() ? buffer : found->second;
  }

  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    if (seen_.insert(s.var.get()).second) return Mutator::MutateFor(s, self);
    Expr min = Mutate(s.min);
    Expr extent = Mutate(s.extent);
    const ir::Var var = Renew(s.var);
    return std::make_shared<const ir::ForNode>(
        var, std::move(min), std::move(extent), s.for_kind, Mutate(s.body),
        s.annotations, s.thread_tag);
  }
  Stmt MutateLetStmt(const ir::LetStmtNode& s, const Stmt& self) override {
    if (seen_.insert(s.var.get()).second) {
      return Mutator::MutateLetStmt(s, self);
    }
    Expr value = Mutate(s.value);
    const ir::Var var = Renew(s.var);
    return std::make_shared<const ir::LetStmtNode>(var, std::move(value),
                                                   Mutate(s.body));
  }
  Expr MutateLet(const ir::LetNode& e, const Expr& self) override {
    if (seen_.insert(e.var.get()).second) return Mutator::MutateLet(e, self);
    Expr value = Mutate(e.value);
    const ir::Var var = Renew(e.var);
    return ir::MakeLet(var, std::move(value), Mutate(e.body));
  }
  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    if (seen_.insert(s.buffer.get()).second) {
      return Mutator::MutateAlloc(s, self);
    }
    const ir::Buffer copy = std::make_shared<const ir::BufferNode>(*s.buffer);
    buffers_[s.buffer.get()] = copy;
    return ir::MakeAlloc(copy, Mutate(s.body));
  }

 private:
  ir::Var Renew(const ir::Var& var) {
    ir::Var fresh = std::make_shared<const ir::VarNode>(*var);
    vars_[var.get()] = fresh;
    return fresh;
  }

  std::set<const void*> seen_;
  // The latest definition is in scope, since copies are never nested.
  ir::VarMap vars_;
  ir::BufferMap buffers_;
};

}  // namespace

Stmt RenewScopes(const Stmt& stmt) { return ScopeRenewer().Mutate(stmt); }

}  // namespace tilefarm::lower
