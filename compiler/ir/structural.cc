#include "compiler/ir/structural.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/function_attrs.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// Compares two trees in parallel. Variables and buffers correspond if they were
// declared at the same place; free ones must be equal by pointer.
class Comparer {
 public:
  bool Equal(const Expr& a, const Expr& b);
  bool Equal(const Stmt& a, const Stmt& b);

  bool BindBuffer(const Buffer& a, const Buffer& b) {
    if (a->dtype != b->dtype || a->shape != b->shape || a->scope != b->scope ||
        a->dim_align != b->dim_align || a->strides != b->strides ||
        a->elem_offset != b->elem_offset) {
      return false;
    }
    return buffers_.emplace(a.get(), b.get()).second &&
           buffers_back_.emplace(b.get(), a.get()).second;
  }

 private:
  bool Equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Equal(a[i], b[i])) return false;
    }
    return true;
  }
  bool EqualOrNull(const Expr& a, const Expr& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return Equal(a, b);
  }
  bool EqualOrNull(const Stmt& a, const Stmt& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return Equal(a, b);
  }
  bool Same(const Range& a, const Range& b) {
    return Equal(a.min, b.min) && Equal(a.extent, b.extent);
  }
  bool Same(const Buffer& a, const Buffer& b) {
    const auto found = buffers_.find(a.get());
    if (found != buffers_.end()) return found->second == b.get();
    return a == b && !buffers_back_.contains(b.get());
  }
  bool Same(const std::vector<BufferRegion>& a,
            const std::vector<BufferRegion>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Same(a[i].buffer, b[i].buffer) ||
          a[i].region.size() != b[i].region.size()) {
        return false;
      }
      for (size_t j = 0; j < a[i].region.size(); ++j) {
        if (!Same(a[i].region[j], b[i].region[j])) return false;
      }
    }
    return true;
  }
  bool Bind(const Var& a, const Var& b) {
    if (a->dtype != b->dtype) return false;
    vars_[a.get()] = b.get();
    vars_back_[b.get()] = a.get();
    return true;
  }
  bool EqualBlock(const BlockNode& a, const BlockNode& b);

  std::unordered_map<const VarNode*, const VarNode*> vars_, vars_back_;
  std::unordered_map<const BufferNode*, const BufferNode*> buffers_,
      buffers_back_;
};

bool Comparer::Equal(const Expr& a, const Expr& b) {
  if (a->kind != b->kind || a->dtype != b->dtype) return false;
  switch (a->kind) {
    case ExprKind::kVar: {
      const auto* x = static_cast<const VarNode*>(a.get());
      const auto* y = static_cast<const VarNode*>(b.get());
      const auto found = vars_.find(x);
      if (found != vars_.end()) return found->second == y;
      return x == y && !vars_back_.contains(y);
    }
    case ExprKind::kIntConst:
      return static_cast<const IntConstNode&>(*a).value ==
             static_cast<const IntConstNode&>(*b).value;
    case ExprKind::kFloatConst:
      // By bits: NaN equals itself, -0 differs from 0.
      return std::bit_cast<uint64_t>(
                 static_cast<const FloatConstNode&>(*a).value) ==
             std::bit_cast<uint64_t>(
                 static_cast<const FloatConstNode&>(*b).value);
    case ExprKind::kBinary: {
      const auto& x = static_cast<const BinaryNode&>(*a);
      const auto& y = static_cast<const BinaryNode&>(*b);
      return x.op == y.op && Equal(x.a, y.a) && Equal(x.b, y.b);
    }
    case ExprKind::kNot:
      return Equal(static_cast<const NotNode&>(*a).a,
                   static_cast<const NotNode&>(*b).a);
    case ExprKind::kCast:
      return Equal(static_cast<const CastNode&>(*a).value,
                   static_cast<const CastNode&>(*b).value);
    case ExprKind::kSelect: {
      const auto& x = static_cast<const SelectNode&>(*a);
      const auto& y = static_cast<const SelectNode&>(*b);
      return Equal(x.condition, y.condition) &&
             Equal(x.true_value, y.true_value) &&
             Equal(x.false_value, y.false_value);
    }
    case ExprKind::kCall: {
      const auto& x = static_cast<const CallNode&>(*a);
      const auto& y = static_cast<const CallNode&>(*b);
      return x.op == y.op && Equal(x.args, y.args);
    }
    case ExprKind::kMachineOp: {
      const auto& x = static_cast<const MachineOpNode&>(*a);
      const auto& y = static_cast<const MachineOpNode&>(*b);
      return x.op == y.op && Equal(x.args, y.args);
    }
    case ExprKind::kLoad: {
      const auto& x = static_cast<const LoadNode&>(*a);
      const auto& y = static_cast<const LoadNode&>(*b);
      return Same(x.buffer, y.buffer) && Equal(x.indices, y.indices) &&
             EqualOrNull(x.predicate, y.predicate);
    }
    case ExprKind::kLet: {
      const auto& x = static_cast<const LetNode&>(*a);
      const auto& y = static_cast<const LetNode&>(*b);
      return Equal(x.value, y.value) && Bind(x.var, y.var) &&
             Equal(x.body, y.body);
    }
    case ExprKind::kRamp: {
      const auto& x = static_cast<const RampNode&>(*a);
      const auto& y = static_cast<const RampNode&>(*b);
      return Equal(x.base, y.base) && Equal(x.stride, y.stride);
    }
    case ExprKind::kBroadcast:
      return Equal(static_cast<const BroadcastNode&>(*a).value,
                   static_cast<const BroadcastNode&>(*b).value);
  }
  return false;
}

bool Comparer::EqualBlock(const BlockNode& a, const BlockNode& b) {
  if (a.iters.size() != b.iters.size() || a.allocs.size() != b.allocs.size() ||
      a.annotations != b.annotations || !Equal(a.predicate, b.predicate)) {
    return false;
  }
  for (size_t i = 0; i < a.iters.size(); ++i) {
    const IterVar& x = a.iters[i];
    const IterVar& y = b.iters[i];
    if (x.type != y.type || !Same(x.dom, y.dom) ||
        !Equal(x.binding, y.binding)) {
      return false;
    }
  }
  for (size_t i = 0; i < a.iters.size(); ++i) {
    if (!Bind(a.iters[i].var, b.iters[i].var)) return false;
  }
  for (size_t i = 0; i < a.allocs.size(); ++i) {
    if (!BindBuffer(a.allocs[i], b.allocs[i])) return false;
  }
  return Same(a.reads, b.reads) && Same(a.writes, b.writes) &&
         EqualOrNull(a.init, b.init) && Equal(a.body, b.body);
}

bool Comparer::Equal(const Stmt& a, const Stmt& b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case StmtKind::kStore: {
      const auto& x = static_cast<const StoreNode&>(*a);
      const auto& y = static_cast<const StoreNode&>(*b);
      return Same(x.buffer, y.buffer) && Equal(x.indices, y.indices) &&
             Equal(x.value, y.value) && EqualOrNull(x.predicate, y.predicate);
    }
    case StmtKind::kFor: {
      const auto& x = static_cast<const ForNode&>(*a);
      const auto& y = static_cast<const ForNode&>(*b);
      return x.for_kind == y.for_kind && x.thread_tag == y.thread_tag &&
             x.annotations == y.annotations && Equal(x.min, y.min) &&
             Equal(x.extent, y.extent) && Bind(x.var, y.var) &&
             Equal(x.body, y.body);
    }
    case StmtKind::kBlock:
      return EqualBlock(static_cast<const BlockNode&>(*a),
                        static_cast<const BlockNode&>(*b));
    case StmtKind::kSeq: {
      const auto& x = static_cast<const SeqNode&>(*a).stmts;
      const auto& y = static_cast<const SeqNode&>(*b).stmts;
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i) {
        if (!Equal(x[i], y[i])) return false;
      }
      return true;
    }
    case StmtKind::kIf: {
      const auto& x = static_cast<const IfNode&>(*a);
      const auto& y = static_cast<const IfNode&>(*b);
      return Equal(x.condition, y.condition) &&
             Equal(x.then_case, y.then_case) &&
             EqualOrNull(x.else_case, y.else_case);
    }
    case StmtKind::kLetStmt: {
      const auto& x = static_cast<const LetStmtNode&>(*a);
      const auto& y = static_cast<const LetStmtNode&>(*b);
      return Equal(x.value, y.value) && Bind(x.var, y.var) &&
             Equal(x.body, y.body);
    }
    case StmtKind::kEvaluate:
      return Equal(static_cast<const EvaluateNode&>(*a).value,
                   static_cast<const EvaluateNode&>(*b).value);
    case StmtKind::kAlloc: {
      const auto& x = static_cast<const AllocNode&>(*a);
      const auto& y = static_cast<const AllocNode&>(*b);
      return BindBuffer(x.buffer, y.buffer) && Equal(x.body, y.body);
    }
  }
  return false;
}

// The attributes that are part of the workload.
AttrMap Meaningful(const AttrMap& attrs) {
  AttrMap out;
  for (const auto& [key, value] : attrs) {
    if (key == kLayoutFreeBuffers && value.AsList() != nullptr) {
      // This is a set: sort it, and drop it if it is empty.
      AttrList params = *value.AsList();
      std::stable_sort(params.begin(), params.end(),
                       [](const Attr& a, const Attr& b) {
                         return a.AsInt().value_or(-1) < b.AsInt().value_or(-1);
                       });
      if (!params.empty()) out.emplace(key, Attr(std::move(params)));
    } else if (key == kLayoutFreeBuffers || key == kDimAlignKey ||
               key == kResultsAreRead || key == kColdConstants) {
      out.emplace(key, value);
    }
  }
  return out;
}

// Redeclares everything under names given in program order.
class Canonicalizer : public Mutator {
 public:
  PrimFuncPtr Run(const PrimFunc& function) {
    PrimFunc out;
    out.name = "main";
    out.attrs = Meaningful(function.attrs);
    for (const Buffer& param : function.params) {
      out.params.push_back(Declare(param));
    }
    out.body = Mutate(function.body);
    return std::make_shared<const PrimFunc>(std::move(out));
  }

 protected:
  using Mutator::Mutate;

  Expr MutateVar(const VarNode& var, const Expr& self) override {
    const auto found = vars_.find(&var);
    return found == vars_.end() ? self : Expr(found->second);
  }
  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto found = buffers_.find(buffer.get());
    return found == buffers_.end() ? buffer : found->second;
  }
  Expr MutateLet(const LetNode& let, const Expr&) override {
    Expr value = Mutate(let.value);
    Var var = Declare(let.var);
    return MakeLet(std::move(var), std::move(value), Mutate(let.body));
  }
  Stmt MutateLetStmt(const LetStmtNode& let, const Stmt&) override {
    Expr value = Mutate(let.value);
    Var var = Declare(let.var);
    return std::make_shared<const LetStmtNode>(std::move(var), std::move(value),
                                               Mutate(let.body));
  }
  Stmt MutateFor(const ForNode& loop, const Stmt&) override {
    Expr min = Mutate(loop.min);
    Expr extent = Mutate(loop.extent);
    Var var = Declare(loop.var);
    return std::make_shared<const ForNode>(
        std::move(var), std::move(min), std::move(extent), loop.for_kind,
        Mutate(loop.body), Meaningful(loop.annotations), loop.thread_tag);
  }
  Stmt MutateAlloc(const AllocNode& alloc, const Stmt&) override {
    Buffer buffer = Declare(alloc.buffer);
    return MakeAlloc(std::move(buffer), Mutate(alloc.body));
  }
  Stmt MutateBlock(const BlockNode& old, const Stmt&) override {
    const bool root = blocks_++ == 0;
    BlockNode block;
    block.name = root ? "root" : absl::StrCat("block", blocks_ - 1);
    block.predicate = Mutate(old.predicate);
    for (const IterVar& iter : old.iters) {
      block.iters.push_back({nullptr,
                             {Mutate(iter.dom.min), Mutate(iter.dom.extent)},
                             iter.type,
                             Mutate(iter.binding)});
    }
    for (size_t i = 0; i < old.iters.size(); ++i) {
      block.iters[i].var = Declare(old.iters[i].var);
    }
    for (const Buffer& buffer : old.allocs) {
      block.allocs.push_back(Declare(buffer));
    }
    block.annotations = Meaningful(old.annotations);
    if (old.init != nullptr) block.init = Mutate(old.init);
    block.body = Mutate(old.body);
    if (!root) {
      Accesses accesses = DetectAccesses(block);
      block.reads = std::move(accesses.reads);
      block.writes = std::move(accesses.writes);
    }
    return BlockOf(std::move(block));
  }

 private:
  Var Declare(const Var& var) {
    return vars_[var.get()] = std::make_shared<const VarNode>(
               absl::StrCat("v", next_var_++), var->dtype, var->of_let);
  }
  Buffer Declare(const Buffer& buffer) {
    BufferNode node = *buffer;
    node.name = absl::StrCat("b", next_buffer_++);
    return buffers_[buffer.get()] =
               std::make_shared<const BufferNode>(std::move(node));
  }

  std::unordered_map<const VarNode*, Var> vars_;
  std::unordered_map<const BufferNode*, Buffer> buffers_;
  int next_var_ = 0;
  int next_buffer_ = 0;
  int blocks_ = 0;
};

}  // namespace

bool StructuralEqual(const PrimFunc& a, const PrimFunc& b) {
  const auto attrs = [](const PrimFunc& f) {
    AttrMap out = f.attrs;
    out.erase("global_symbol");
    return out;
  };
  if (a.params.size() != b.params.size() || attrs(a) != attrs(b)) return false;
  Comparer comparer;
  for (size_t i = 0; i < a.params.size(); ++i) {
    if (!comparer.BindBuffer(a.params[i], b.params[i])) return false;
  }
  return comparer.Equal(a.body, b.body);
}

bool StructuralEqual(const Expr& a, const Expr& b) {
  return a == b || Comparer().Equal(a, b);
}

bool StructuralEqual(const Stmt& a, const Stmt& b) {
  return a == b || Comparer().Equal(a, b);
}

PrimFuncPtr Canonicalize(const PrimFunc& function) {
  return Canonicalizer().Run(function);
}

std::string WorkloadHash(const PrimFunc& function) {
  return Sha256Hex(Print(*Canonicalize(function)));
}

std::string ProgramHash(const PrimFunc& function) {
  return Sha256Hex(Print(function));
}

}  // namespace tilefarm::ir
