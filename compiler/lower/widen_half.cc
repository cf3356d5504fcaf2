#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::DataType;
using ir::Expr;

bool IsHalf(DataType dtype) { return dtype.is_float() && dtype.bits == 16; }

DataType Widened(DataType dtype) {
  return IsHalf(dtype) ? DataType::Float(32).with_lanes(dtype.lanes) : dtype;
}

// Every expression comes out with the widened type of what went in.
class HalfWidener : public ir::Mutator {
 public:
  using Mutator::Mutate;

 protected:
  Expr MutateVar(const ir::VarNode& e, const Expr& self) override {
    const auto found = vars_.find(&e);
    return found == vars_.end() ? self : found->second;
  }
  Expr MutateFloatConst(const ir::FloatConstNode& e,
                        const Expr& self) override {
    return IsHalf(e.dtype) ? ir::FloatConst(e.value, Widened(e.dtype)) : self;
  }
  Expr MutateCast(const ir::CastNode& e, const Expr&) override {
    // A cast to a narrow type rounds, as written.
    return Wide(ir::MakeCast(e.dtype, Mutate(e.value)));
  }
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    return Wide(Mutator::MutateLoad(e, self));
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
    Expr value = Mutate(s.value);
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
  ir::Var Rename(const ir::Var& var) {
    ir::Var wide = ir::MakeVar(var->name, Widened(var->dtype));
    vars_[var.get()] = wide;
    return wide;
  }

  ir::VarMap vars_;
};

}  // namespace

ir::Stmt WidenHalf(const ir::Stmt& stmt) { return HalfWidener().Mutate(stmt); }

}  // namespace tilefarm::lower
