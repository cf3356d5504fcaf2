#include "compiler/schedule/loop_rewrite.h"

#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

class BindingSimplifier : public ir::Mutator {
 public:
  BindingSimplifier(arith::VarRanges outer, bool preserve_unit_iters)
      : loops_(std::move(outer)), preserve_(preserve_unit_iters) {}
  using ir::Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

 protected:
  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt& self) override {
    loops_.push_back({loop.var, {loop.min, loop.extent}});
    ir::Stmt out = ir::Mutator::MutateFor(loop, self);
    loops_.pop_back();
    return out;
  }

  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    // A block without variables is transparent: visit its loops, too.
    if (block.iters.empty()) return ir::Mutator::MutateBlock(block, self);
    const std::vector<ir::Expr> bindings = BindingList(block);
    arith::Analyzer analyzer;
    const std::vector<ir::Expr> simple = arith::IterMapSimplify(
        bindings, loops_, block.predicate, arith::IterMapLevel::kSurjective,
        analyzer, !preserve_);
    bool changed = false;
    for (size_t i = 0; i < simple.size(); ++i) {
      changed |= simple[i] != bindings[i];
    }
    if (!changed) return self;
    ir::BlockNode copy(block);
    for (size_t i = 0; i < simple.size(); ++i) {
      copy.iters[i].binding = simple[i];
    }
    return ir::BlockOf(std::move(copy));
  }

 private:
  arith::VarRanges loops_;
  const bool preserve_;
};

}  // namespace

absl::StatusOr<int64_t> CheckPlainLoop(const ScheduleState& state,
                                       const ir::ForPtr& loop) {
  if (loop->for_kind == ir::ForKind::kThreadBinding) {
    return state.Illegal(loop.get(), "the loop is bound to a thread axis");
  }
  if (!loop->annotations.empty()) {
    return state.Illegal(loop.get(), "the loop has annotations");
  }
  if (!ir::IsConstInt(loop->min, 0)) {
    return state.Illegal(loop.get(), "the loop does not start at 0");
  }
  const auto extent = ExtentOf(loop);
  if (!extent) {
    return state.Illegal(loop.get(), "the loop's extent is not a constant");
  }
  return *extent;
}

ir::Stmt SimplifyBindings(const ir::Stmt& stmt, const arith::VarRanges& outer,
                          bool preserve_unit_iters) {
  return BindingSimplifier(outer, preserve_unit_iters).Mutate(stmt);
}

}  // namespace tilefarm::schedule
