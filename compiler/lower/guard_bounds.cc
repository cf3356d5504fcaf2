#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

class BoundsGuard : public ir::Mutator {
 public:
  using Mutator::Mutate;
  absl::Status status;

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const Interval first = math_.Bounds(s.min);
    const Interval count = math_.Bounds(s.extent);
    const size_t mark = math_.Mark();
    math_.Bind(s.var.get(), first.lo, first.hi + count.hi - 1);
    const bool outer = empty_;
    empty_ |= count.hi <= 0;
    Stmt out = Mutator::MutateFor(s, self);
    empty_ = outer;
    math_.Restore(mark);
    return out;
  }

  // Replaces block variables by their bindings, so that bounds of the loops
  // apply.
  Stmt MutateBlock(const ir::BlockNode& s, const Stmt&) override {
    const std::string outer_name = std::exchange(block_, s.name);
    for (const ir::IterVar& iter : s.iters) {
      bindings_[iter.var.get()] = ir::Substitute(iter.binding, bindings_);
    }
    const size_t mark = math_.Mark();
    const bool outer = conditional_;
    conditional_ |= !ir::IsConstInt(s.predicate, 1);
    math_.Assume(ir::Substitute(s.predicate, bindings_));
    ir::BlockNode block(s);
    if (s.init != nullptr) block.init = Mutate(s.init);
    block.body = Mutate(s.body);
    conditional_ = outer;
    math_.Restore(mark);
    block_ = outer_name;
    return ir::BlockOf(std::move(block));
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    Expr condition = Mutate(s.condition);
    const Expr known = ir::Substitute(s.condition, bindings_);
    const size_t mark = math_.Mark();
    const bool outer = std::exchange(conditional_, true);
    math_.Assume(known);
    Stmt then_case = Mutate(s.then_case);
    math_.Restore(mark);
    Stmt else_case;
    if (s.else_case != nullptr) {
      math_.AssumeNot(known);
      else_case = Mutate(s.else_case);
      math_.Restore(mark);
    }
    conditional_ = outer;
    return ir::MakeIf(std::move(condition), std::move(then_case),
                      std::move(else_case));
  }

  Stmt MutateLetStmt(const ir::LetStmtNode& s, const Stmt& self) override {
    BindLet(s.var, s.value);
    return Mutator::MutateLetStmt(s, self);
  }
  Expr MutateLet(const ir::LetNode& e, const Expr& self) override {
    BindLet(e.var, e.value);
    return Mutator::MutateLet(e, self);
  }

  Expr MutateCall(const ir::CallNode& e, const Expr& self) override {
    if (e.op != ir::Intrinsic::kIfThenElse) {
      return Mutator::MutateCall(e, self);
    }
    Expr condition = Mutate(e.args[0]);
    const Expr known = ir::Substitute(e.args[0], bindings_);
    const size_t mark = math_.Mark();
    const bool outer = std::exchange(conditional_, true);
    math_.Assume(known);
    Expr then_value = Mutate(e.args[1]);
    math_.Restore(mark);
    math_.AssumeNot(known);
    Expr else_value = Mutate(e.args[2]);
    math_.Restore(mark);
    conditional_ = outer;
    return ir::IfThenElseExpr(std::move(condition), std::move(then_value),
                              std::move(else_value));
  }

  Expr MutateSelect(const ir::SelectNode& e, const Expr& self) override {
    // Both operands are evaluated, but one that is not selected may be out of
    // bounds.
    const bool outer = std::exchange(conditional_, true);
    Expr out = Mutator::MutateSelect(e, self);
    conditional_ = outer;
    return out;
  }

  Expr MutateBinary(const ir::BinaryNode& e, const Expr& self) override {
    if (e.op != ir::BinaryOp::kAnd && e.op != ir::BinaryOp::kOr) {
      return Mutator::MutateBinary(e, self);
    }
    Expr a = Mutate(e.a);
    const Expr known = ir::Substitute(e.a, bindings_);
    const size_t mark = math_.Mark();
    const bool outer = std::exchange(conditional_, true);
    if (e.op == ir::BinaryOp::kAnd) {
      math_.Assume(known);
    } else {
      math_.AssumeNot(known);
    }
    Expr b = Mutate(e.b);
    math_.Restore(mark);
    conditional_ = outer;
    if (a == e.a && b == e.b) return self;
    return ir::FoldBinary(e.op, std::move(a), std::move(b));
  }

  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    Expr load = Mutator::MutateLoad(e, self);
    Expr guard = Guard(*e.buffer, e.indices, "read");
    if (guard == nullptr) return load;
    return ir::IfThenElseExpr(std::move(guard), std::move(load),
                              ir::ConstOf(e.dtype, 0));
  }

  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    Stmt store = Mutator::MutateStore(s, self);
    Expr guard = Guard(*s.buffer, s.indices, "write");
    return guard == nullptr ? store
                            : ir::MakeIf(std::move(guard), std::move(store));
  }

 private:
  void BindLet(const ir::Var& var, const Expr& value) {
    bool reads = false;
    ir::PostOrderExprs(
        value, [&](const Expr& e) { reads |= e->kind == ir::ExprKind::kLoad; });
    if (!var->dtype.is_index()) return;
    const Expr known = ir::Substitute(value, bindings_);
    if (!reads) {
      bindings_[var.get()] = known;
      return;
    }
    // What is read may have changed where the variable is used, so that the
    // variable stays. Its bounds are those of the value, which is known no
    // better.
    const Interval reach = math_.Bounds(known);
    math_.Bind(var.get(), reach.lo, reach.hi);
    read_.insert(var.get());
  }

  // The condition that the indices are in bounds; null if that is proven.
  Expr Guard(const ir::BufferNode& buffer, const std::vector<Expr>& indices,
             const char* what) {
    Expr guard;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr& index = indices[d];
      const Linear linear = math_.Decompose(ir::Substitute(index, bindings_));
      const Interval reach = math_.Bounds(linear);
      const int64_t extent = buffer.shape[d];
      if (reach.Within(0, extent - 1) || empty_) continue;
      const bool outside = reach.lo >= extent || reach.hi < 0;
      if (!conditional_ && (outside || Exact(linear))) {
        Fail(absl::StrCat("block \"", block_, "\": index ", d, " of ", what,
                          " of ", buffer.name, " reaches from ", reach.lo,
                          " to ", reach.hi, ", outside of 0 to ", extent - 1));
        return nullptr;
      }
      const auto add = [&](Expr condition) {
        guard =
            guard == nullptr ? std::move(condition) : ir::And(guard, condition);
      };
      if (reach.lo < 0) add(ir::LE(ir::IntConst(0), index));
      if (reach.hi >= extent) add(ir::LT(index, ir::IntConst(extent)));
    }
    return guard;
  }

  // A sum of independent variables takes both of its bounds, unless data
  // decides the value of one.
  bool Exact(const Linear& linear) const {
    for (const auto& [atom, scale] : linear.terms) {
      if (atom->kind != ir::ExprKind::kVar ||
          read_.contains(static_cast<const ir::VarNode*>(atom.get()))) {
        return false;
      }
    }
    return true;
  }

  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }

  IndexMath math_;
  ir::VarMap bindings_;
  std::set<const ir::VarNode*> read_;  // variables whose value reads buffers
  std::string block_;
  bool conditional_ = false;
  bool empty_ = false;  // inside a loop without iterations
};

}  // namespace

absl::StatusOr<Stmt> GuardBounds(const Stmt& root) {
  BoundsGuard guard;
  Stmt out = guard.Mutate(root);
  if (!guard.status.ok()) return guard.status;
  return out;
}

}  // namespace tilefarm::lower
