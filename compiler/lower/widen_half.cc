#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::DataType;
using ir::Expr;

DataType Widened(DataType dtype) {
  return IsHalf(dtype) ? DataType::Float(32).with_lanes(dtype.lanes) : dtype;
}

// Finds intermediate buffers that contain only copies of 16-bit floats, such as
// packed operands. They may contain the widened values instead, so that readers
// need not widen an element repeatedly. Excludes buffers that dot products of
// the narrow type read, and those between kernels, which are limited by the
// bytes that they read, and whose engines copy what is there.
class CopyFinder : public ir::Visitor {
 public:
  using Visitor::Visit;

  std::set<const ir::BufferNode*> Take() {
    for (const ir::BufferNode* buffer : others_) copies_.erase(buffer);
    return std::move(copies_);
  }

 protected:
  void VisitAlloc(const ir::AllocNode& s) override {
    // Memory that threads share is too small for it.
    if (IsHalf(s.buffer->dtype) && !ir::IsInShared(*s.buffer) &&
        (in_kernel_ || !HasKernels(s.body))) {
      copies_.insert(s.buffer.get());
    }
    Visitor::VisitAlloc(s);
  }
  void VisitFor(const ir::ForNode& s) override {
    const bool outer = in_dot_, outer_kernel = in_kernel_;
    in_kernel_ |= s.for_kind == ir::ForKind::kThreadBinding;
    in_dot_ |= s.annotations.contains(ir::kDotProduct) ||
               s.annotations.contains(ir::kMatrixProduct) ||
               s.annotations.contains(ir::kOfQuad);
    Visitor::VisitFor(s);
    in_dot_ = outer;
    in_kernel_ = outer_kernel;
  }
  void VisitLoad(const ir::LoadNode& e) override {
    if (in_dot_) others_.insert(e.buffer.get());
    Visitor::VisitLoad(e);
  }
  void VisitStore(const ir::StoreNode& s) override {
    if (!IsHalf(s.buffer->dtype) || !IsCopy(s.value)) {
      others_.insert(s.buffer.get());
    }
    Visitor::VisitStore(s);
  }

 private:
  static bool HasKernels(const ir::Stmt& stmt) {
    bool has = false;
    ir::PreOrder(stmt, [&](const ir::Stmt& s) {
      const auto* loop = ir::As<ir::ForNode>(s);
      has |= loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding;
      return !has;
    });
    return has;
  }

  // A selection of values without arithmetic on them.
  static bool IsCopy(const Expr& e) {
    if (e->kind == ir::ExprKind::kLoad ||
        e->kind == ir::ExprKind::kFloatConst) {
      return true;
    }
    if (const auto* select = ir::As<ir::SelectNode>(e)) {
      return IsCopy(select->true_value) && IsCopy(select->false_value);
    }
    const auto* call = ir::As<ir::CallNode>(e);
    return call != nullptr && call->op == ir::Intrinsic::kIfThenElse &&
           IsCopy(call->args[1]) && IsCopy(call->args[2]);
  }

  std::set<const ir::BufferNode*> copies_, others_;
  bool in_dot_ = false, in_kernel_ = false;
};

// The result of every expression has the widened type.
class HalfWidener : public ir::Mutator {
 public:
  explicit HalfWidener(std::set<const ir::BufferNode*> copies)
      : copies_(std::move(copies)) {}
  using Mutator::Mutate;

 protected:
  Expr MutateVar(const ir::VarNode& e, const Expr& self) override {
    const auto found = vars_.find(&e);
    return found == vars_.end() ? self : found->second;
  }
  Expr MutateFloatConst(const ir::FloatConstNode& e,
                        const Expr& self) override {
    return IsHalf(e.dtype) && !moves_bytes_
               ? ir::FloatConst(e.value, Widened(e.dtype))
               : self;
  }
  Expr MutateCast(const ir::CastNode& e, const Expr&) override {
    // Code generation keeps 16-bit floats as float32; a cast to them rounds.
    return Wide(ir::MakeCast(e.dtype, Mutate(e.value)));
  }
  ir::Stmt MutateAlloc(const ir::AllocNode& s, const ir::Stmt& self) override {
    if (!copies_.contains(s.buffer.get())) return Mutator::MutateAlloc(s, self);
    const ir::Buffer wide =
        ir::MakeBuffer(s.buffer->name, Widened(s.buffer->dtype),
                       s.buffer->shape, s.buffer->scope);
    widened_[s.buffer.get()] = wide;
    return ir::MakeAlloc(wide, Mutate(s.body));
  }
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    const auto found = widened_.find(e.buffer.get());
    if (found != widened_.end()) {
      return ir::Load(found->second, MutateAll(e.indices));
    }
    Expr load = Mutator::MutateLoad(e, self);
    return moves_bytes_ ? load : Wide(load);
  }
  // Addresses stay loads.
  Expr MutateMachineOp(const ir::MachineOpNode& e, const Expr& self) override {
    if (!ir::TakesAddresses(e.op)) return Mutator::MutateMachineOp(e, self);
    std::vector<Expr> args;
    for (const Expr& arg : e.args) {
      const auto* load = ir::As<ir::LoadNode>(arg);
      args.push_back(load == nullptr ? Mutate(arg)
                                     : Mutator::MutateLoad(*load, arg));
    }
    return ir::MakeMachineOp(e.op, std::move(args));
  }
  Expr MutateLet(const ir::LetNode& e, const Expr& self) override {
    Expr value = Mutate(e.value);
    if (!IsHalf(e.var->dtype)) return Mutator::MutateLet(e, self);
    const ir::Var var = Rename(e.var);
    return ir::MakeLet(var, std::move(value), Mutate(e.body));
  }
  ir::Stmt MutateLetStmt(const ir::LetStmtNode& s,
                         const ir::Stmt& self) override {
    if (!IsHalf(s.var->dtype)) return Mutator::MutateLetStmt(s, self);
    Expr value = Mutate(s.value);
    const ir::Var var = Rename(s.var);
    return std::make_shared<const ir::LetStmtNode>(var, std::move(value),
                                                   Mutate(s.body));
  }
  ir::Stmt MutateStore(const ir::StoreNode& s, const ir::Stmt& self) override {
    if (!IsHalf(s.buffer->dtype)) return Mutator::MutateStore(s, self);
    const Expr stored = WithoutDetour(s.value);
    if (MovesBytes(s, stored)) {
      moves_bytes_ = true;
      ir::Stmt copy =
          ir::MakeStore(s.buffer, MutateAll(s.indices), Mutate(stored),
                        s.predicate == nullptr ? nullptr : Mutate(s.predicate));
      moves_bytes_ = false;
      return copy;
    }
    Expr value = Mutate(stored);
    const auto found = widened_.find(s.buffer.get());
    if (found != widened_.end()) {
      return ir::MakeStore(found->second, MutateAll(s.indices),
                           std::move(value), s.predicate);
    }
    const auto* cast = ir::As<ir::CastNode>(value);
    // A copy needs no rounding.
    value = cast != nullptr && cast->value->dtype == s.value->dtype
                ? cast->value
                : ir::MakeCast(s.value->dtype, std::move(value));
    return ir::MakeStore(s.buffer, MutateAll(s.indices), std::move(value),
                         s.predicate);
  }

 private:
  static Expr Wide(const Expr& e) {
    return IsHalf(e->dtype) ? ir::MakeCast(Widened(e->dtype), e) : e;
  }
  // A copy between buffers of one type that they keep, asynchronous or with
  // zeros where a condition on indices does not hold.
  bool MovesBytes(const ir::StoreNode& s, const Expr& value) const {
    const auto* op = ir::As<ir::MachineOpNode>(value);
    const bool async = op != nullptr && op->op == ir::MachineOp::kAsync;
    const auto copied = ir::AsCopiedLoad(async ? op->args[0] : value);
    if (!copied || widened_.contains(copied->load->buffer.get()) ||
        widened_.contains(s.buffer.get())) {
      return false;
    }
    bool of_data = copied->condition == nullptr ||
                   copied->load->buffer->dtype != s.buffer->dtype;
    if (copied->condition != nullptr) {
      ir::PostOrderExprs(copied->condition, [&](const Expr& e) {
        of_data |= e->kind == ir::ExprKind::kLoad ||
                   (e->kind == ir::ExprKind::kVar && !e->dtype.is_index());
      });
    }
    return async || !of_data;
  }
  ir::Var Rename(const ir::Var& var) {
    ir::Var wide = ir::MakeLetVar(var->name, Widened(var->dtype));
    vars_[var.get()] = wide;
    return wide;
  }

  ir::VarMap vars_;
  const std::set<const ir::BufferNode*> copies_;
  std::map<const ir::BufferNode*, ir::Buffer> widened_;
  bool moves_bytes_ = false;
};

}  // namespace

Expr WithoutDetour(const Expr& value) {
  const auto* narrow = ir::As<ir::CastNode>(value);
  const auto* wide =
      narrow == nullptr ? nullptr : ir::As<ir::CastNode>(narrow->value);
  const bool detour = wide != nullptr && narrow->dtype.is_float() &&
                      narrow->dtype == wide->value->dtype &&
                      wide->dtype.element() == DataType::Float(32);
  return detour ? wide->value : value;
}

ir::Stmt WidenHalf(const ir::Stmt& stmt) {
  CopyFinder finder;
  finder.Visit(stmt);
  return HalfWidener(finder.Take()).Mutate(stmt);
}

}  // namespace tilefarm::lower
