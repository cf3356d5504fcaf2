// split: one loop becomes a nest.
//
//   for i in range(32): C(i)
//   -> split(i, factors=[None, 8])
//   for i_0, i_1 in T.grid(4, 8): C(i_0 * 8 + i_1)
//
// If the product of the factors exceeds the extent, the blocks below get the
// predicate `i_0 * 8 + i_1 < extent`. Without predication this is an error,
// since iterations would run that the loop does not have.
#include <functional>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/loop_rewrite.h"

namespace tilefarm::schedule {
namespace {

// The factors as integers, the open one inferred.
absl::StatusOr<std::vector<int64_t>> Resolve(
    const ScheduleState& state, const ir::ForPtr& loop, int64_t extent,
    const std::vector<Factor>& factors) {
  if (factors.empty()) {
    return state.Invalid(loop.get(), "it needs factors");
  }
  std::vector<int64_t> out;
  int open = -1;
  int64_t product = 1;
  for (const Factor& factor : factors) {
    if (!factor.has_value()) {
      if (open >= 0) {
        return state.Invalid(loop.get(), "at most one factor may be None");
      }
      open = static_cast<int>(out.size());
      out.push_back(1);
      continue;
    }
    int64_t value = 0;
    if (const auto* number = std::get_if<int64_t>(&*factor)) {
      value = *number;
    } else {
      TF_ASSIGN_OR_RETURN(value, state.Get(std::get<ExprRv>(*factor)));
    }
    if (value <= 0) {
      return state.Invalid(loop.get(), "factor ", value, " is not positive");
    }
    if (__builtin_mul_overflow(product, value, &product)) {
      return state.Invalid(loop.get(), "the factors overflow");
    }
    out.push_back(value);
  }
  if (open >= 0) {
    out[open] = extent / product + (extent % product != 0);
    product *= out[open];
  }
  if (product > ir::Limits().max_extent) {
    return state.Illegal(loop.get(), "the factors' product ", product,
                         " is beyond what a loop may run for");
  }
  if (product < extent) {
    return state.Illegal(loop.get(), "the factors' product ", product,
                         " is less than the extent ", extent);
  }
  return out;
}

// Adds a condition to the predicates of the nearest blocks below.
class PredicateAdder : public ir::Mutator {
 public:
  explicit PredicateAdder(const ir::Expr& condition) : condition_(condition) {}
  using ir::Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

 protected:
  ir::Stmt MutateBlock(const ir::BlockNode& block, const ir::Stmt&) override {
    ir::BlockNode copy(block);
    copy.predicate = And(block.predicate, condition_);
    return ir::BlockOf(std::move(copy));
  }

 private:
  const ir::Expr& condition_;
};

}  // namespace

absl::StatusOr<std::vector<LoopRv>> Split(ScheduleState& state, LoopRv loop_rv,
                                          const std::vector<Factor>& factors,
                                          bool preserve_unit_iters,
                                          bool disable_predication) {
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(loop_rv));
  TF_ASSIGN_OR_RETURN(const int64_t extent, CheckPlainLoop(state, loop));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                      Resolve(state, loop, extent, factors));

  if (disable_predication &&
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1},
                      std::multiplies<>()) > extent) {
    return state.Illegal(loop.get(), "the factors' product exceeds the extent ",
                         extent,
                         ", and disable_predication leaves the tail unguarded");
  }

  //   1. Express the old variable in terms of the new ones.
  std::vector<ir::Var> vars;
  ir::Expr value = ir::IntConst(0);
  int64_t product = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    vars.push_back(ir::MakeVar(absl::StrCat(loop->var->name, "_", i)));
    value = value * sizes[i] + vars.back();
    product *= sizes[i];
  }
  ir::Stmt body = Substitute(loop->body, {{loop->var.get(), value}});

  //   2. Guard the tail.
  if (product > extent) {
    body = PredicateAdder(LT(value, ir::IntConst(extent))).Mutate(body);
  }

  //   3. Build the nest.
  for (size_t i = sizes.size(); i-- > 0;) {
    body = ir::MakeFor(vars[i], ir::IntConst(sizes[i]), std::move(body));
  }
  body = SimplifyBindings(body, RangesOf(state.LoopsAbove(loop.get())),
                          preserve_unit_iters);
  state.Replace(loop.get(), std::move(body));

  std::vector<LoopRv> out;
  for (const ir::Var& var : vars) {
    out.push_back(state.NewLoop(state.LoopOf(var.get())));
  }
  return out;
}

}  // namespace tilefarm::schedule
