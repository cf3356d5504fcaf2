#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;

class LoopLegalizer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    if (s.for_kind == ForKind::kThreadBinding) {
      Fail(absl::StrCat("loop ", s.var->name, " is bound to ", s.thread_tag,
                        "; bind is for GPU targets, use parallel on a CPU"));
      return self;
    }
    ForKind kind = s.for_kind;
    if (kind == ForKind::kVectorized && NeedsOrder(s)) kind = ForKind::kSerial;
    if (kind == ForKind::kParallel && in_parallel_) kind = ForKind::kSerial;
    const bool outer = in_parallel_;
    in_parallel_ |= kind == ForKind::kParallel;
    Stmt body = Mutate(s.body);
    in_parallel_ = outer;
    if (!ir::IsConstInt(s.min, 0)) {
      body = ir::Substitute(body, {{s.var.get(), Expr(s.var) + s.min}});
    }
    return ir::MakeFor(s.var, s.extent, std::move(body), kind, s.annotations);
  }

 private:
  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }

  bool in_parallel_ = false;
};

}  // namespace

bool NeedsOrder(const ir::ForNode& loop) {
  bool found = false;
  ir::PreOrder(loop.body, [&](const Stmt& s) {
    if (const auto* inner = ir::As<ir::ForNode>(s)) {
      found |= inner->for_kind == ForKind::kVectorized ||
               inner->for_kind == ForKind::kParallel;
    }
    if (const auto* block = ir::As<ir::BlockNode>(s)) {
      found |= std::any_of(block->iters.begin(), block->iters.end(),
                           [&](const ir::IterVar& iter) {
                             return iter.type != ir::IterType::kSpatial &&
                                    ir::UsesVar(iter.binding, loop.var.get());
                           });
    }
    return !found;
  });
  return found;
}

absl::StatusOr<Stmt> LegalizeLoops(const ir::PrimFunc& function) {
  LoopLegalizer legalizer;
  Stmt body = legalizer.Mutate(function.body);
  if (!legalizer.status.ok()) return legalizer.status;
  return body;
}

}  // namespace tilefarm::lower
