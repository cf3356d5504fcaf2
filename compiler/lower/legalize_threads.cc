#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

Stmt WithBody(const ForNode& loop, ForKind kind, Stmt body) {
  return std::make_shared<const ForNode>(
      loop.var, loop.min, loop.extent, kind, std::move(body), loop.annotations,
      kind == ForKind::kThreadBinding ? loop.thread_tag : "");
}

// Moves a loop of virtual threads to the blocks below a statement, or to what
// uses its variable around them. Its iterations are independent, so their order
// among those of other loops is free.
class VirtualThreadSinker : public ir::Mutator {
 public:
  explicit VirtualThreadSinker(const ForNode& loop) : loop_(loop) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    bool uses = Uses(s.predicate);
    for (const ir::IterVar& iter : s.iters) uses |= Uses(iter.binding);
    return uses ? Around(self) : self;
  }
  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    return Uses(s.condition) ? Around(self) : Mutator::MutateIf(s, self);
  }
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    return Uses(s.min) || Uses(s.extent) ? Around(self)
                                         : Mutator::MutateFor(s, self);
  }

 private:
  bool Uses(const Expr& expr) const {
    return ir::UsesVar(expr, loop_.var.get());
  }
  Stmt Around(const Stmt& stmt) const {
    return WithBody(loop_, ForKind::kUnrolled, stmt);
  }

  const ForNode& loop_;
};

// Annotates serial loops around loops of threads whose only block writes other
// elements in each iteration (ir::kWritesApart). While indices still show that:
// later, remainders of fused loops are simplified one by one.
class ApartLoops : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    if (s.for_kind == ForKind::kThreadBinding || !WritesApart(s)) {
      return Mutator::MutateFor(s, self);
    }
    ir::AttrMap annotations = s.annotations;
    annotations[ir::kWritesApart] = 1;
    return std::make_shared<const ForNode>(s.var, s.min, s.extent, s.for_kind,
                                           s.body, std::move(annotations));
  }

 private:
  // A perfect nest of the loop, loops of threads and others.
  static bool WritesApart(const ForNode& outermost) {
    arith::VarRanges loops;
    const ir::StmtNode* at = &outermost;
    bool threads = false;
    while (const auto* loop = ir::As<ForNode>(at)) {
      loops.emplace_back(loop->var, ir::Range{loop->min, loop->extent});
      threads |= loop->for_kind == ForKind::kThreadBinding;
      at = loop->body.get();
    }
    const auto* block = ir::As<ir::BlockNode>(at);
    if (!threads || block == nullptr || block->init != nullptr) return false;
    const auto* store = ir::As<ir::StoreNode>(block->body);
    if (store == nullptr) return false;
    ir::VarMap bindings;
    for (const ir::IterVar& iter : block->iters) {
      bindings[iter.var.get()] = iter.binding;
    }
    std::vector<Expr> indices;
    for (const Expr& index : store->indices) {
      indices.push_back(ir::Substitute(index, bindings));
    }
    // Conditions that other loops decide say nothing about these.
    Expr predicate;
    for (const Expr& part : arith::Conjuncts(block->predicate)) {
      bool inside = true;
      ir::PostOrderExprs(part, [&](const Expr& e) {
        inside &= e->kind != ir::ExprKind::kVar ||
                  std::ranges::any_of(loops, [&](const auto& loop) {
                    return loop.first.get() == e.get();
                  });
      });
      if (!inside) continue;
      predicate = predicate == nullptr ? part : ir::And(predicate, part);
    }
    arith::Analyzer analyzer;
    return arith::DetectIterMap(indices, loops, predicate,
                                arith::IterMapLevel::kBijective, analyzer)
        .ok();
  }
};

class ThreadLegalizer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt&) override {
    Stmt body = Mutate(s.body);
    if (!ir::IsConstInt(s.min, 0)) {
      body = ir::Substitute(body, {{s.var.get(), Expr(s.var) + s.min}});
    }
    ir::AttrMap annotations = s.annotations;
    TakeStages(body, annotations);
    const ForNode loop(s.var, ir::IntConst(0), s.extent, s.for_kind, body,
                       std::move(annotations), s.thread_tag);
    if (s.annotations.contains(ir::kWarpMatrix) &&
        ir::IsConstInt(s.extent, 1)) {
      // Which would vanish, and the annotation with it.
      Fail(absl::StrCat("loop ", s.var->name, ": ", ir::kWarpMatrix,
                        ": it has one iteration, not the terms of an "
                        "instruction"));
    }
    switch (s.for_kind) {
      case ForKind::kThreadBinding:
        if (ir::IsVirtualThread(s.thread_tag)) {
          return VirtualThreadSinker(loop).Mutate(body);
        }
        if (!ir::AsInt(s.extent)) {
          Fail(absl::StrCat("loop ", s.var->name, " is bound to ", s.thread_tag,
                            ", but its extent is no constant"));
        }
        return WithBody(loop, s.for_kind, std::move(body));
      case ForKind::kParallel:
        return WithBody(loop, ForKind::kSerial, std::move(body));
      case ForKind::kVectorized:
        if (NeedsOrder(s)) {
          return WithBody(loop, ForKind::kSerial, std::move(body));
        }
        break;
      case ForKind::kSerial:
      case ForKind::kUnrolled:
        break;
    }
    return WithBody(loop, s.for_kind, std::move(body));
  }

 private:
  // The fetches of a loop of one iteration are overlapped in the loop around
  // it.
  static void TakeStages(Stmt& body, ir::AttrMap& annotations) {
    const auto* inner = ir::As<ForNode>(body);
    if (inner == nullptr || !ir::IsConstInt(inner->extent, 1)) return;
    const auto stages = inner->annotations.find(ir::kSharedStages);
    if (stages == inner->annotations.end()) return;
    annotations.insert(*stages);
    ir::AttrMap rest = inner->annotations;
    rest.erase(ir::kSharedStages);
    body = std::make_shared<const ForNode>(
        inner->var, inner->min, inner->extent, inner->for_kind, inner->body,
        std::move(rest), inner->thread_tag);
  }

  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }
};

bool HasBoundLoop(const Stmt& stmt) {
  bool found = false;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* loop = ir::As<ForNode>(s);
    found |= loop != nullptr && loop->for_kind == ForKind::kThreadBinding &&
             !ir::IsVirtualThread(loop->thread_tag);
    return !found;
  });
  return found;
}

std::string FirstBlock(const Stmt& stmt) {
  std::string name;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* block = ir::As<ir::BlockNode>(s);
    if (block != nullptr && name.empty()) name = block->name;
    return name.empty();
  });
  return name;
}

}  // namespace

absl::StatusOr<Stmt> LegalizeThreads(const ir::PrimFunc& function) {
  const Stmt& body = function.root()->body;
  const auto* seq = ir::As<ir::SeqNode>(body);
  for (const Stmt& nest : seq != nullptr ? seq->stmts : std::vector{body}) {
    if (HasBoundLoop(nest) || ir::IsNoOp(nest)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "block ", FirstBlock(nest),
        " is in no loop that is bound to threads; a GPU needs one around every "
        "block, such as bind(loop, \"blockIdx.x\")"));
  }
  ThreadLegalizer legalizer;
  Stmt out = legalizer.Mutate(ApartLoops().Mutate(function.body));
  if (!legalizer.status.ok()) return legalizer.status;
  return out;
}

}  // namespace tilefarm::lower
