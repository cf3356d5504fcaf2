// Walking and rewriting IR.
//
//   struct CountLoads : Visitor {
//     int n = 0;
//     void VisitLoad(const LoadNode& e) override {
//       ++n;
//       Visitor::VisitLoad(e);
//     }
//   };
//
// A Mutator returns its argument itself (the same pointer) if nothing changed,
// so unchanged subtrees stay shared. The parser's nesting limit bounds the
// depth.
#ifndef TILEFARM_COMPILER_IR_VISITOR_H_
#define TILEFARM_COMPILER_IR_VISITOR_H_

#include <functional>
#include <unordered_map>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct MachineOpNode;  // machine_op.h

// Visits all children by default. Declarations of loop variables, block
// variables and buffers are not visited as expressions; bindings, predicates,
// regions and extents are.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void Visit(const Expr& expr);
  virtual void Visit(const Stmt& stmt);

 protected:
  virtual void VisitVar(const VarNode&) {}
  virtual void VisitIntConst(const IntConstNode&) {}
  virtual void VisitFloatConst(const FloatConstNode&) {}
  virtual void VisitBinary(const BinaryNode&);
  virtual void VisitNot(const NotNode&);
  virtual void VisitCast(const CastNode&);
  virtual void VisitSelect(const SelectNode&);
  virtual void VisitCall(const CallNode&);
  virtual void VisitLoad(const LoadNode&);
  virtual void VisitLet(const LetNode&);
  virtual void VisitRamp(const RampNode&);
  virtual void VisitBroadcast(const BroadcastNode&);
  virtual void VisitMachineOp(const MachineOpNode&);

  virtual void VisitStore(const StoreNode&);
  virtual void VisitFor(const ForNode&);
  virtual void VisitBlock(const BlockNode&);
  virtual void VisitSeq(const SeqNode&);
  virtual void VisitIf(const IfNode&);
  virtual void VisitLetStmt(const LetStmtNode&);
  virtual void VisitEvaluate(const EvaluateNode&);
  virtual void VisitAlloc(const AllocNode&);
};

// Each method gets the node and the pointer that holds it, and returns the
// replacement. The defaults rebuild from mutated children.
class Mutator {
 public:
  virtual ~Mutator() = default;
  virtual Expr Mutate(const Expr& expr);
  virtual Stmt Mutate(const Stmt& stmt);

 protected:
  virtual Expr MutateVar(const VarNode&, const Expr& self) { return self; }
  virtual Expr MutateIntConst(const IntConstNode&, const Expr& self) {
    return self;
  }
  virtual Expr MutateFloatConst(const FloatConstNode&, const Expr& self) {
    return self;
  }
  // Rebuilds with FoldBinary.
  virtual Expr MutateBinary(const BinaryNode&, const Expr& self);
  virtual Expr MutateNot(const NotNode&, const Expr& self);
  virtual Expr MutateCast(const CastNode&, const Expr& self);
  virtual Expr MutateSelect(const SelectNode&, const Expr& self);
  virtual Expr MutateCall(const CallNode&, const Expr& self);
  virtual Expr MutateLoad(const LoadNode&, const Expr& self);
  virtual Expr MutateLet(const LetNode&, const Expr& self);
  virtual Expr MutateRamp(const RampNode&, const Expr& self);
  virtual Expr MutateBroadcast(const BroadcastNode&, const Expr& self);
  virtual Expr MutateMachineOp(const MachineOpNode&, const Expr& self);

  virtual Stmt MutateStore(const StoreNode&, const Stmt& self);
  virtual Stmt MutateFor(const ForNode&, const Stmt& self);
  virtual Stmt MutateBlock(const BlockNode&, const Stmt& self);
  virtual Stmt MutateSeq(const SeqNode&, const Stmt& self);
  virtual Stmt MutateIf(const IfNode&, const Stmt& self);
  virtual Stmt MutateLetStmt(const LetStmtNode&, const Stmt& self);
  virtual Stmt MutateEvaluate(const EvaluateNode&, const Stmt& self);
  virtual Stmt MutateAlloc(const AllocNode&, const Stmt& self);

  // Called for every buffer in accesses, regions and allocations; the default
  // returns the buffer.
  virtual Buffer MutateBuffer(const Buffer& buffer) { return buffer; }
  std::vector<Expr> MutateAll(const std::vector<Expr>& exprs);
  BufferRegion MutateRegion(const BufferRegion& region);
};

using VarMap = std::unordered_map<const VarNode*, Expr>;
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;

// Replaces variables (except at their declarations) and buffers.
Expr Substitute(const Expr& expr, const VarMap& vars);
Stmt Substitute(const Stmt& stmt, const VarMap& vars);
Stmt ReplaceBuffers(const Stmt& stmt, const BufferMap& buffers);

// Pre-order; return false from the callback to skip the node's children.
void PreOrder(const Stmt& stmt, const std::function<bool(const Stmt&)>& visit);
// Every expression below, post-order.
void PostOrderExprs(const Stmt& stmt,
                    const std::function<void(const Expr&)>& visit);
void PostOrderExprs(const Expr& expr,
                    const std::function<void(const Expr&)>& visit);
bool UsesVar(const Expr& expr, const VarNode* var);
// Whether it loads an element of the buffer.
bool Loads(const Expr& expr, const BufferNode* buffer);
bool Loads(const Stmt& stmt, const BufferNode* buffer);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_VISITOR_H_
