#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

// Moves a loop of virtual threads to the blocks below a statement. Its
// iterations are independent, so their order among those of other loops is
// free.
class VirtualThreadSinker : public ir::Mutator {
 public:
  explicit VirtualThreadSinker(const ForNode& loop) : loop_(loop) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    bool uses = ir::UsesVar(s.predicate, loop_.var.get());
    for (const ir::IterVar& iter : s.iters) {
      uses |= ir::UsesVar(iter.binding, loop_.var.get());
    }
    return uses ? WithBody(loop_, ForKind::kUnrolled, self) : self;
  }

 private:
  const ForNode& loop_;
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
    const ForNode loop(s.var, ir::IntConst(0), s.extent, s.for_kind, body,
                       s.annotations, s.thread_tag);
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
  Stmt out = legalizer.Mutate(function.body);
  if (!legalizer.status.ok()) return legalizer.status;
  return out;
}

}  // namespace tilefarm::lower
