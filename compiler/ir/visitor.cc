#include "compiler/ir/visitor.h"

#include "compiler/ir/machine_op.h"

namespace tilefarm::ir {

// --- Visitor -------------------------------------------------------------

void Visitor::Visit(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
      return VisitVar(static_cast<const VarNode&>(*expr));
    case ExprKind::kIntConst:
      return VisitIntConst(static_cast<const IntConstNode&>(*expr));
    case ExprKind::kFloatConst:
      return VisitFloatConst(static_cast<const FloatConstNode&>(*expr));
    case ExprKind::kBinary:
      return VisitBinary(static_cast<const BinaryNode&>(*expr));
    case ExprKind::kNot:
      return VisitNot(static_cast<const NotNode&>(*expr));
    case ExprKind::kCast:
      return VisitCast(static_cast<const CastNode&>(*expr));
    case ExprKind::kSelect:
      return VisitSelect(static_cast<const SelectNode&>(*expr));
    case ExprKind::kCall:
      return VisitCall(static_cast<const CallNode&>(*expr));
    case ExprKind::kLoad:
      return VisitLoad(static_cast<const LoadNode&>(*expr));
    case ExprKind::kLet:
      return VisitLet(static_cast<const LetNode&>(*expr));
    case ExprKind::kRamp:
      return VisitRamp(static_cast<const RampNode&>(*expr));
    case ExprKind::kBroadcast:
      return VisitBroadcast(static_cast<const BroadcastNode&>(*expr));
    case ExprKind::kMachineOp:
      return VisitMachineOp(static_cast<const MachineOpNode&>(*expr));
  }
}

void Visitor::Visit(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kStore:
      return VisitStore(static_cast<const StoreNode&>(*stmt));
    case StmtKind::kFor:
      return VisitFor(static_cast<const ForNode&>(*stmt));
    case StmtKind::kBlock:
      return VisitBlock(static_cast<const BlockNode&>(*stmt));
    case StmtKind::kSeq:
      return VisitSeq(static_cast<const SeqNode&>(*stmt));
    case StmtKind::kIf:
      return VisitIf(static_cast<const IfNode&>(*stmt));
    case StmtKind::kLetStmt:
      return VisitLetStmt(static_cast<const LetStmtNode&>(*stmt));
    case StmtKind::kEvaluate:
      return VisitEvaluate(static_cast<const EvaluateNode&>(*stmt));
    case StmtKind::kAlloc:
      return VisitAlloc(static_cast<const AllocNode&>(*stmt));
  }
}

void Visitor::VisitBinary(const BinaryNode& e) {
  Visit(e.a);
  Visit(e.b);
}
void Visitor::VisitNot(const NotNode& e) { Visit(e.a); }
void Visitor::VisitCast(const CastNode& e) { Visit(e.value); }
void Visitor::VisitSelect(const SelectNode& e) {
  Visit(e.condition);
  Visit(e.true_value);
  Visit(e.false_value);
}
void Visitor::VisitCall(const CallNode& e) {
  for (const Expr& arg : e.args) Visit(arg);
}
void Visitor::VisitLoad(const LoadNode& e) {
  for (const Expr& index : e.indices) Visit(index);
  if (e.predicate != nullptr) Visit(e.predicate);
}
void Visitor::VisitLet(const LetNode& e) {
  Visit(e.value);
  Visit(e.body);
}
void Visitor::VisitRamp(const RampNode& e) {
  Visit(e.base);
  Visit(e.stride);
}
void Visitor::VisitBroadcast(const BroadcastNode& e) { Visit(e.value); }
void Visitor::VisitMachineOp(const MachineOpNode& e) {
  for (const Expr& arg : e.args) Visit(arg);
}

void Visitor::VisitStore(const StoreNode& s) {
  for (const Expr& index : s.indices) Visit(index);
  Visit(s.value);
  if (s.predicate != nullptr) Visit(s.predicate);
}
void Visitor::VisitFor(const ForNode& s) {
  Visit(s.min);
  Visit(s.extent);
  Visit(s.body);
}
void Visitor::VisitBlock(const BlockNode& s) {
  for (const IterVar& iter : s.iters) {
    Visit(iter.dom.min);
    Visit(iter.dom.extent);
    Visit(iter.binding);
  }
  Visit(s.predicate);
  for (const auto* regions : {&s.reads, &s.writes}) {
    for (const BufferRegion& region : *regions) {
      for (const Range& range : region.region) {
        Visit(range.min);
        Visit(range.extent);
      }
    }
  }
  if (s.init != nullptr) Visit(s.init);
  Visit(s.body);
}
void Visitor::VisitSeq(const SeqNode& s) {
  for (const Stmt& stmt : s.stmts) Visit(stmt);
}
void Visitor::VisitIf(const IfNode& s) {
  Visit(s.condition);
  Visit(s.then_case);
  if (s.else_case != nullptr) Visit(s.else_case);
}
void Visitor::VisitLetStmt(const LetStmtNode& s) {
  Visit(s.value);
  Visit(s.body);
}
void Visitor::VisitEvaluate(const EvaluateNode& s) { Visit(s.value); }
void Visitor::VisitAlloc(const AllocNode& s) { Visit(s.body); }

// --- Mutator -------------------------------------------------------------

Expr Mutator::Mutate(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar:
      return MutateVar(static_cast<const VarNode&>(*expr), expr);
    case ExprKind::kIntConst:
      return MutateIntConst(static_cast<const IntConstNode&>(*expr), expr);
    case ExprKind::kFloatConst:
      return MutateFloatConst(static_cast<const FloatConstNode&>(*expr), expr);
    case ExprKind::kBinary:
      return MutateBinary(static_cast<const BinaryNode&>(*expr), expr);
    case ExprKind::kNot:
      return MutateNot(static_cast<const NotNode&>(*expr), expr);
    case ExprKind::kCast:
      return MutateCast(static_cast<const CastNode&>(*expr), expr);
    case ExprKind::kSelect:
      return MutateSelect(static_cast<const SelectNode&>(*expr), expr);
    case ExprKind::kCall:
      return MutateCall(static_cast<const CallNode&>(*expr), expr);
    case ExprKind::kLoad:
      return MutateLoad(static_cast<const LoadNode&>(*expr), expr);
    case ExprKind::kLet:
      return MutateLet(static_cast<const LetNode&>(*expr), expr);
    case ExprKind::kRamp:
      return MutateRamp(static_cast<const RampNode&>(*expr), expr);
    case ExprKind::kBroadcast:
      return MutateBroadcast(static_cast<const BroadcastNode&>(*expr), expr);
    case ExprKind::kMachineOp:
      return MutateMachineOp(static_cast<const MachineOpNode&>(*expr), expr);
  }
  return expr;
}

Stmt Mutator::Mutate(const Stmt& stmt) {
  switch (stmt->kind) {
    case StmtKind::kStore:
      return MutateStore(static_cast<const StoreNode&>(*stmt), stmt);
    case StmtKind::kFor:
      return MutateFor(static_cast<const ForNode&>(*stmt), stmt);
    case StmtKind::kBlock:
      return MutateBlock(static_cast<const BlockNode&>(*stmt), stmt);
    case StmtKind::kSeq:
      return MutateSeq(static_cast<const SeqNode&>(*stmt), stmt);
    case StmtKind::kIf:
      return MutateIf(static_cast<const IfNode&>(*stmt), stmt);
    case StmtKind::kLetStmt:
      return MutateLetStmt(static_cast<const LetStmtNode&>(*stmt), stmt);
    case StmtKind::kEvaluate:
      return MutateEvaluate(static_cast<const EvaluateNode&>(*stmt), stmt);
    case StmtKind::kAlloc:
      return MutateAlloc(static_cast<const AllocNode&>(*stmt), stmt);
  }
  return stmt;
}

std::vector<Expr> Mutator::MutateAll(const std::vector<Expr>& exprs) {
  std::vector<Expr> out;
  out.reserve(exprs.size());
  for (const Expr& expr : exprs) out.push_back(Mutate(expr));
  return out;
}

BufferRegion Mutator::MutateRegion(const BufferRegion& region) {
  BufferRegion out{MutateBuffer(region.buffer), {}};
  out.region.reserve(region.region.size());
  for (const Range& range : region.region) {
    out.region.push_back({Mutate(range.min), Mutate(range.extent)});
  }
  return out;
}

Expr Mutator::MutateBinary(const BinaryNode& e, const Expr& self) {
  Expr a = Mutate(e.a);
  Expr b = Mutate(e.b);
  if (a == e.a && b == e.b) return self;
  return FoldBinary(e.op, std::move(a), std::move(b));
}
Expr Mutator::MutateNot(const NotNode& e, const Expr& self) {
  Expr a = Mutate(e.a);
  return a == e.a ? self : MakeNot(std::move(a));
}
Expr Mutator::MutateCast(const CastNode& e, const Expr& self) {
  Expr value = Mutate(e.value);
  return value == e.value ? self : MakeCast(e.dtype, std::move(value));
}
Expr Mutator::MutateSelect(const SelectNode& e, const Expr& self) {
  Expr condition = Mutate(e.condition);
  if (condition != e.condition) {
    if (const auto known = AsUniformInt(condition)) {
      return Mutate(*known != 0 ? e.true_value : e.false_value);
    }
  }
  Expr true_value = Mutate(e.true_value);
  Expr false_value = Mutate(e.false_value);
  if (condition == e.condition && true_value == e.true_value &&
      false_value == e.false_value) {
    return self;
  }
  return MakeSelect(std::move(condition), std::move(true_value),
                    std::move(false_value));
}
Expr Mutator::MutateCall(const CallNode& e, const Expr& self) {
  std::vector<Expr> args = MutateAll(e.args);
  return args == e.args ? self : MakeCallLike(e, std::move(args));
}
Expr Mutator::MutateLoad(const LoadNode& e, const Expr& self) {
  Buffer buffer = MutateBuffer(e.buffer);
  std::vector<Expr> indices = MutateAll(e.indices);
  Expr predicate = e.predicate == nullptr ? nullptr : Mutate(e.predicate);
  if (buffer == e.buffer && indices == e.indices && predicate == e.predicate) {
    return self;
  }
  DataType dtype = e.dtype;
  if (indices.size() == 1) dtype = dtype.with_lanes(indices[0]->dtype.lanes);
  return std::make_shared<const LoadNode>(std::move(buffer), std::move(indices),
                                          dtype, std::move(predicate));
}
Expr Mutator::MutateLet(const LetNode& e, const Expr& self) {
  Expr value = Mutate(e.value);
  Expr body = Mutate(e.body);
  if (value == e.value && body == e.body) return self;
  return MakeLet(e.var, std::move(value), std::move(body));
}
Expr Mutator::MutateRamp(const RampNode& e, const Expr& self) {
  Expr base = Mutate(e.base);
  Expr stride = Mutate(e.stride);
  if (base == e.base && stride == e.stride) return self;
  return MakeRamp(std::move(base), std::move(stride), e.dtype.lanes);
}
Expr Mutator::MutateBroadcast(const BroadcastNode& e, const Expr& self) {
  Expr value = Mutate(e.value);
  return value == e.value ? self
                          : MakeBroadcast(std::move(value), e.dtype.lanes);
}
Expr Mutator::MutateMachineOp(const MachineOpNode& e, const Expr& self) {
  std::vector<Expr> args = MutateAll(e.args);
  return args == e.args ? self : MakeMachineOp(e.op, std::move(args));
}

Stmt Mutator::MutateStore(const StoreNode& s, const Stmt& self) {
  Buffer buffer = MutateBuffer(s.buffer);
  std::vector<Expr> indices = MutateAll(s.indices);
  Expr value = Mutate(s.value);
  Expr predicate = s.predicate == nullptr ? nullptr : Mutate(s.predicate);
  if (buffer == s.buffer && indices == s.indices && value == s.value &&
      predicate == s.predicate) {
    return self;
  }
  return MakeStore(std::move(buffer), std::move(indices), std::move(value),
                   std::move(predicate));
}
Stmt Mutator::MutateFor(const ForNode& s, const Stmt& self) {
  Expr min = Mutate(s.min);
  Expr extent = Mutate(s.extent);
  Stmt body = Mutate(s.body);
  if (min == s.min && extent == s.extent && body == s.body) return self;
  return std::make_shared<const ForNode>(
      s.var, std::move(min), std::move(extent), s.for_kind, std::move(body),
      s.annotations, s.thread_tag);
}
Stmt Mutator::MutateBlock(const BlockNode& s, const Stmt& self) {
  bool changed = false;
  const auto expr = [&](const Expr& old) {
    Expr out = Mutate(old);
    changed |= out != old;
    return out;
  };
  BlockNode block(s);
  for (IterVar& iter : block.iters) {
    iter.dom.min = expr(iter.dom.min);
    iter.dom.extent = expr(iter.dom.extent);
    iter.binding = expr(iter.binding);
  }
  block.predicate = expr(s.predicate);
  for (auto* regions : {&block.reads, &block.writes}) {
    for (BufferRegion& region : *regions) {
      BufferRegion out = MutateRegion(region);
      changed |= out.buffer != region.buffer;
      for (size_t i = 0; i < out.region.size(); ++i) {
        changed |= out.region[i].min != region.region[i].min ||
                   out.region[i].extent != region.region[i].extent;
      }
      region = std::move(out);
    }
  }
  for (Buffer& buffer : block.allocs) {
    Buffer out = MutateBuffer(buffer);
    changed |= out != buffer;
    buffer = std::move(out);
  }
  if (s.init != nullptr) {
    block.init = Mutate(s.init);
    changed |= block.init != s.init;
  }
  block.body = Mutate(s.body);
  changed |= block.body != s.body;
  return changed ? BlockOf(std::move(block)) : self;
}
Stmt Mutator::MutateSeq(const SeqNode& s, const Stmt& self) {
  std::vector<Stmt> stmts;
  stmts.reserve(s.stmts.size());
  bool changed = false;
  for (const Stmt& stmt : s.stmts) {
    stmts.push_back(Mutate(stmt));
    changed |= stmts.back() != stmt;
  }
  return changed ? MakeSeq(std::move(stmts)) : self;
}
Stmt Mutator::MutateIf(const IfNode& s, const Stmt& self) {
  Expr condition = Mutate(s.condition);
  Stmt then_case = Mutate(s.then_case);
  Stmt else_case = s.else_case == nullptr ? nullptr : Mutate(s.else_case);
  if (condition == s.condition && then_case == s.then_case &&
      else_case == s.else_case) {
    return self;
  }
  return MakeIf(std::move(condition), std::move(then_case),
                std::move(else_case));
}
Stmt Mutator::MutateLetStmt(const LetStmtNode& s, const Stmt& self) {
  Expr value = Mutate(s.value);
  Stmt body = Mutate(s.body);
  if (value == s.value && body == s.body) return self;
  return std::make_shared<const LetStmtNode>(s.var, std::move(value),
                                             std::move(body));
}
Stmt Mutator::MutateEvaluate(const EvaluateNode& s, const Stmt& self) {
  Expr value = Mutate(s.value);
  return value == s.value
             ? self
             : std::make_shared<const EvaluateNode>(std::move(value));
}
Stmt Mutator::MutateAlloc(const AllocNode& s, const Stmt& self) {
  Buffer buffer = MutateBuffer(s.buffer);
  Stmt body = Mutate(s.body);
  if (buffer == s.buffer && body == s.body) return self;
  return MakeAlloc(std::move(buffer), std::move(body));
}

// --- Functions -----------------------------------------------------------

namespace {

class Substituter : public Mutator {
 public:
  explicit Substituter(const VarMap& vars) : vars_(vars) {}

 protected:
  Expr MutateVar(const VarNode& var, const Expr& self) override {
    const auto found = vars_.find(&var);
    return found == vars_.end() ? self : found->second;
  }

 private:
  const VarMap& vars_;
};

class BufferReplacer : public Mutator {
 public:
  explicit BufferReplacer(const BufferMap& buffers) : buffers_(buffers) {}

 protected:
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto found = buffers_.find(buffer.get());
    return found == buffers_.end() ? buffer : found->second;
  }

 private:
  const BufferMap& buffers_;
};

class PreOrderVisitor : public Visitor {
 public:
  explicit PreOrderVisitor(const std::function<bool(const Stmt&)>& visit)
      : visit_(visit) {}
  void Visit(const Expr&) override {}
  void Visit(const Stmt& stmt) override {
    if (visit_(stmt)) Visitor::Visit(stmt);
  }

 private:
  const std::function<bool(const Stmt&)>& visit_;
};

class ExprVisitor : public Visitor {
 public:
  explicit ExprVisitor(const std::function<void(const Expr&)>& visit)
      : visit_(visit) {}
  using Visitor::Visit;
  void Visit(const Expr& expr) override {
    Visitor::Visit(expr);
    visit_(expr);
  }

 private:
  const std::function<void(const Expr&)>& visit_;
};

}  // namespace

Expr Substitute(const Expr& expr, const VarMap& vars) {
  return vars.empty() ? expr : Substituter(vars).Mutate(expr);
}
Stmt Substitute(const Stmt& stmt, const VarMap& vars) {
  return vars.empty() ? stmt : Substituter(vars).Mutate(stmt);
}
Stmt ReplaceBuffers(const Stmt& stmt, const BufferMap& buffers) {
  return buffers.empty() ? stmt : BufferReplacer(buffers).Mutate(stmt);
}

void PreOrder(const Stmt& stmt, const std::function<bool(const Stmt&)>& visit) {
  PreOrderVisitor(visit).Visit(stmt);
}
void PostOrderExprs(const Stmt& stmt,
                    const std::function<void(const Expr&)>& visit) {
  ExprVisitor visitor(visit);
  visitor.Visit(stmt);
}
void PostOrderExprs(const Expr& expr,
                    const std::function<void(const Expr&)>& visit) {
  ExprVisitor visitor(visit);
  visitor.Visit(expr);
}
bool UsesVar(const Expr& expr, const VarNode* var) {
  bool found = false;
  PostOrderExprs(expr, [&](const Expr& e) { found |= e.get() == var; });
  return found;
}

namespace {

template <typename Node>
bool AnyLoad(const Node& node, const BufferNode* buffer) {
  bool found = false;
  PostOrderExprs(node, [&](const Expr& e) {
    const auto* load = As<LoadNode>(e);
    found |= load != nullptr && load->buffer.get() == buffer;
  });
  return found;
}

}  // namespace

bool Loads(const Expr& expr, const BufferNode* buffer) {
  return AnyLoad(expr, buffer);
}
bool Loads(const Stmt& stmt, const BufferNode* buffer) {
  return AnyLoad(stmt, buffer);
}

}  // namespace tilefarm::ir
