// rfactor: a reduction is split into partial results, one for each iteration of
// a loop, and a second reduction that combines them.
//
//   rfactor(k_0, factor_axis=1)
//
//   for i, k_0, k_1:                       for i, k_0, k_1:
//     C: init C[i] = 0                       C_rf: init C_rf[i, k_0] = 0
//        C[i] += A[i, k_0, k_1]     ->             C_rf[i, k_0] += A[...]
//                                          for i, k_0:
//                                            C: init C[i] = 0
//                                               C[i] += C_rf[i, k_0]
//
// Steps:
//   1. Check that the block is a reduction with a known commutative reducer
//      whose init is its identity, that it is the only block below its loops,
//      and that the loop feeds only reduce variables.
//   2. Make the factored block: the loop becomes a spatial variable, and reduce
//      variables that use it are expressed by the loops in their bindings. If
//      no reduction is left, the block just stores each value. Where these
//      loops leave a rest, the value beyond it is the identity, so that all
//      instances run.
//   3. Check for the conditions that the block keeps that each iteration of the
//      loop runs an instance for every output element: otherwise a partial
//      result would not be initialised.
//   4. Make the combining block: the loop becomes its reduce variable.
//   5. Copy the loops for both blocks; those of the combining block keep the
//      old variables, without the other reduce loops.
//
// The result is the factored block; trace variables of the old block follow the
// combining one. Only the order of the reduction changes.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

struct Factoring {
  ir::BlockPtr block;
  ir::BlockPtr scope;
  ir::ForPtr loop;
  std::vector<ir::ForPtr> loops;  // all above the block, in its scope
  // Of what the block updates, by position: one element, or several at once.
  arith::TupleReducer reducer;
  std::string name;                  // of the new block
  std::vector<ir::Buffer> partials;  // new buffers of the partial results
  int axis = 0;

  const ir::Buffer& buffer(size_t k) const { return reducer.stores[k]->buffer; }
};

bool FeedsReduce(const ir::BlockNode& block, const ir::ForPtr& loop) {
  return LoopFeedsIter(loop.get(), &block, ir::IterType::kReduce);
}

// Step 1: check the block and the loop.
absl::StatusOr<Factoring> CheckFactoring(const ScheduleState& state,
                                         const ir::ForPtr& loop,
                                         int factor_axis) {
  Factoring f;
  f.loop = loop;
  const std::vector<ir::BlockPtr> below = state.ChildBlocks(loop.get());
  if (below.size() != 1) {
    return state.Illegal(loop.get(), "there must be one block below the loop");
  }
  f.block = below[0];
  f.scope = state.Scope(f.block.get());
  const BlockScope deps(state, f.scope.get());
  TF_RETURN_IF_ERROR(CheckReduction(state, deps, f.block.get()));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, f.block.get()));
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, f.scope.get()));
  f.loops = state.LoopsAbove(f.block.get());
  if (!IsOnlyChild(state, f.loops[0].get(), f.block.get())) {
    return state.Illegal(f.loops[0].get(),
                         "the loops have other blocks below them");
  }
  for (const ir::ForPtr& candidate : f.loops) {
    const bool reduce = FeedsReduce(*f.block, candidate);
    const bool spatial =
        LoopFeedsIter(candidate.get(), f.block.get(), ir::IterType::kSpatial);
    if (reduce && spatial) {
      return state.Illegal(candidate.get(),
                           "the loop feeds both spatial and reduce variables");
    }
    if (!reduce && !spatial && !ir::IsConstInt(candidate->extent, 1)) {
      return state.Illegal(candidate.get(), "the loop repeats the reduction");
    }
  }
  if (!ir::IsConstInt(loop->min, 0)) {
    return state.Illegal(loop.get(), "the loop does not start at 0");
  }
  if (!FeedsReduce(*f.block, loop)) {
    return state.Illegal(loop.get(),
                         "the loop does not belong to the reduction");
  }
  // An instance that runs twice at the start of a reduction starts it again.
  if (!WritesAreDistinct(*f.block) ||
      !RunsAtMostOnce(state, *f.block, f.loops)) {
    return state.Illegal(f.block.get(),
                         "several reductions end in the same element");
  }
  std::optional<arith::TupleReducer> reducer = MatchTuple(*f.block);
  if (!reducer.has_value()) {
    return state.Illegal(f.block.get(),
                         "its update is not a known commutative reduction "
                         "(sum, product, min, max, and, or) that starts from "
                         "the identity, nor a choice whose order does not "
                         "matter");
  }
  f.reducer = *std::move(reducer);
  int ndim = f.buffer(0)->ndim();
  for (const ir::StoreNode* store : f.reducer.stores) {
    ndim = std::min(ndim, store->buffer->ndim());
  }
  if (factor_axis < -(ndim + 1) || factor_axis > ndim) {
    return state.Invalid(f.block.get(), "factor_axis ", factor_axis,
                         " is not within [", -(ndim + 1), ", ", ndim, "]");
  }
  f.axis = factor_axis < 0 ? factor_axis + ndim + 1 : factor_axis;
  return f;
}

ir::IterVar IterOf(const ir::ForPtr& loop, ir::IterType type) {
  return {ir::MakeVar("v" + loop->var->name),
          {loop->min, loop->extent},
          type,
          loop->var};
}

// A copy of the variable, to which `vars` map the old one.
ir::IterVar FreshIter(const ir::IterVar& iter, ir::VarMap& vars) {
  ir::IterVar copy = iter;
  copy.var = ir::MakeVar(iter.var->name, iter.var->dtype);
  vars[iter.var.get()] = copy.var;
  return copy;
}

// The region of the k-th partial result that an instance accesses.
ir::BufferRegion PartialRegion(const Factoring& f, size_t k,
                               const ir::VarMap& vars, const ir::Var& factor) {
  ir::BufferRegion region =
      SubstituteRegion(*FindRegion(f.block->writes, f.buffer(k).get()), vars);
  region.buffer = f.partials[k];
  region.region.insert(region.region.begin() + f.axis,
                       ir::Range{factor, ir::IntConst(1)});
  return region;
}

// A copy of the statement that accesses partial results.
ir::Stmt OnPartials(const Factoring& f, const ir::Stmt& stmt, ir::VarMap& vars,
                    const ir::Var& factor) {
  ir::Stmt out = CopyWithFreshVars(stmt, vars);
  const auto at_factor = [&](const std::vector<ir::Expr>& indices) {
    std::vector<ir::Expr> result = indices;
    result.insert(result.begin() + f.axis, factor);
    return result;
  };
  for (size_t k = 0; k < f.partials.size(); ++k) {
    AccessRewrite to_partial;
    to_partial.buffer = f.buffer(k).get();
    to_partial.on_load = [&](const std::vector<ir::Expr>& indices) {
      return ir::Load(f.partials[k], at_factor(indices));
    };
    to_partial.on_store = [&](const std::vector<ir::Expr>& indices,
                              const ir::Expr& value) {
      return ir::MakeStore(f.partials[k], at_factor(indices), value);
    };
    out = RewriteAccesses(out, to_partial);
  }
  return out;
}

// Step 2, without the loops. `loop_vars`: fresh variables for the loops.
// `kept`: the conditions of its predicate, on the old loops.
ir::BlockPtr MakeFactored(const Factoring& f, const ir::VarMap& loop_vars,
                          std::vector<ir::Expr>& kept) {
  ir::BlockNode block;
  block.name = f.name;
  block.annotations = f.block->annotations;
  ir::VarMap bindings_of_loops;  // loop variable -> new block variable
  const auto add = [&](const ir::ForPtr& loop, ir::IterType type) {
    if (bindings_of_loops.contains(loop->var.get())) return;
    block.iters.push_back(IterOf(loop, type));
    bindings_of_loops[loop->var.get()] = block.iters.back().var;
  };
  add(f.loop, ir::IterType::kSpatial);
  const ir::Var factor = block.iters[0].var;

  ir::VarMap vars;  // the old block's variables in the new one
  for (const ir::IterVar& iter : f.block->iters) {
    if (iter.type == ir::IterType::kSpatial ||
        !ir::UsesVar(iter.binding, f.loop->var.get())) {
      block.iters.push_back(FreshIter(iter, vars));
      continue;
    }
    ir::PostOrderExprs(iter.binding, [&](const ir::Expr& expr) {
      for (const ir::ForPtr& loop : f.loops) {
        if (expr.get() == loop->var.get()) add(loop, ir::IterType::kReduce);
      }
    });
    vars[iter.var.get()] = ir::Substitute(iter.binding, bindings_of_loops);
  }
  for (ir::IterVar& iter : block.iters) {
    iter.binding = ir::Substitute(iter.binding, loop_vars);
  }
  block.predicate = ir::BoolConst(true);
  ir::Expr inside;  // where a value is not the identity
  for (const ir::Expr& condition : arith::Conjuncts(f.block->predicate)) {
    if (ir::IsConstInt(condition, 1)) continue;
    const bool has_variables =
        std::ranges::all_of(f.loops, [&](const ir::ForPtr& loop) {
          return bindings_of_loops.contains(loop->var.get()) ||
                 !ir::UsesVar(condition, loop->var.get());
        });
    if (!has_variables) {
      kept.push_back(condition);
      block.predicate =
          ir::And(block.predicate, ir::Substitute(condition, loop_vars));
      continue;
    }
    const ir::Expr here = ir::Substitute(condition, bindings_of_loops);
    inside = inside == nullptr ? here : ir::And(inside, here);
  }

  const bool reduces = HasReduceIter(&block);
  if (reduces) block.init = OnPartials(f, f.block->init, vars, factor);
  if (reduces && inside == nullptr) {
    block.body = OnPartials(f, f.block->body, vars, factor);
  } else {
    std::vector<std::vector<ir::Expr>> indices;
    std::vector<ir::Expr> values, before;
    for (size_t k = 0; k < f.partials.size(); ++k) {
      std::vector<ir::Expr>& at = indices.emplace_back();
      for (const ir::Expr& index : f.reducer.stores[k]->indices) {
        at.push_back(ir::Substitute(index, vars));
      }
      at.insert(at.begin() + f.axis, factor);
      before.push_back(ir::Load(f.partials[k], at));
      values.push_back(ir::Substitute(f.reducer.terms[k], vars));
      if (inside != nullptr) {
        values.back() = ir::IfThenElseExpr(
            inside, values.back(),
            ir::Substitute(InitOf(*f.reducer.stores[k], *f.block)->value,
                           vars));
      }
    }
    // Without a reduction, each partial result has one value.
    if (reduces) {
      block.body = arith::AssignTogether(f.partials, indices,
                                         f.reducer.Combine(before, values));
    } else {
      std::vector<ir::Stmt> stores;
      for (size_t k = 0; k < f.partials.size(); ++k) {
        stores.push_back(
            ir::MakeStore(f.partials[k], indices[k], std::move(values[k])));
      }
      block.body = ir::MakeSeq(std::move(stores));
    }
  }
  for (const ir::BufferRegion& read : f.block->reads) {
    block.reads.push_back(SubstituteRegion(read, vars));
  }
  for (size_t k = 0; k < f.partials.size(); ++k) {
    block.writes.push_back(PartialRegion(f, k, vars, factor));
  }
  if (inside != nullptr && ir::SkipsExactly(block)) {
    block.annotations.insert({ir::kSkipPadding, ir::Attr(1)});
  }
  return ir::BlockOf(std::move(block));
}

// Step 3: with all other reduce loops at their start, the conditions must hold
// wherever the spatial variables are in their domains.
absl::Status CheckInitReached(const ScheduleState& state, const Factoring& f,
                              const std::vector<ir::Expr>& conditions) {
  if (conditions.empty()) return absl::OkStatus();
  arith::Analyzer analyzer;
  BindLoops(analyzer, f.loops);
  ir::VarMap starts;
  for (const ir::ForPtr& loop : f.loops) {
    if (loop != f.loop && FeedsReduce(*f.block, loop)) {
      starts[loop->var.get()] = loop->min;
    }
  }
  for (const ir::IterVar& iter : f.block->iters) {
    if (iter.type != ir::IterType::kSpatial) continue;
    analyzer.Assume(ir::GE(iter.binding, iter.dom.min));
    analyzer.Assume(ir::LT(iter.binding, iter.dom.min + iter.dom.extent));
  }
  for (const ir::Expr& condition : conditions) {
    if (!analyzer.CanProve(ir::Substitute(condition, starts))) {
      return state.Illegal(f.loop.get(), "where ", ir::ToString(condition),
                           " is false for a whole iteration of the loop, its "
                           "partial result is not initialised");
    }
  }
  return absl::OkStatus();
}

// Step 4: make the combining block.
ir::BlockPtr MakeJoining(const Factoring& f) {
  ir::BlockNode block;
  block.name = f.block->name;
  block.annotations = f.block->annotations;
  block.iters.push_back(IterOf(f.loop, ir::IterType::kReduce));
  const ir::Var factor = block.iters[0].var;
  ir::VarMap vars;
  for (const ir::IterVar& iter : f.block->iters) {
    if (iter.type != ir::IterType::kSpatial) continue;
    block.iters.push_back(FreshIter(iter, vars));
  }
  // The factored block keeps the conditions on reduce loops.
  ir::Expr predicate = ir::BoolConst(true);
  for (const ir::Expr& condition : arith::Conjuncts(f.block->predicate)) {
    const bool reduce =
        std::ranges::any_of(f.loops, [&](const ir::ForPtr& loop) {
          return FeedsReduce(*f.block, loop) &&
                 ir::UsesVar(condition, loop->var.get());
        });
    if (!reduce) predicate = ir::And(predicate, condition);
  }
  block.predicate = predicate;

  std::vector<ir::Buffer> targets;
  std::vector<std::vector<ir::Expr>> places;
  std::vector<ir::Expr> before, values;
  const auto starts = [](const ir::BufferRegion& region) {
    std::vector<ir::Expr> out;
    for (const ir::Range& range : region.region) out.push_back(range.min);
    return out;
  };
  for (size_t k = 0; k < f.partials.size(); ++k) {
    const ir::BufferRegion write =
        SubstituteRegion(*FindRegion(f.block->writes, f.buffer(k).get()), vars);
    const ir::BufferRegion read = PartialRegion(f, k, vars, factor);
    targets.push_back(f.buffer(k));
    places.push_back(starts(write));
    before.push_back(ir::Load(f.buffer(k), places.back()));
    values.push_back(ir::Load(f.partials[k], starts(read)));
    block.reads.push_back(read);
    block.writes.push_back(write);
  }
  block.init = CopyWithFreshVars(f.block->init, vars);
  block.body =
      arith::AssignTogether(targets, places, f.reducer.Combine(before, values));
  return ir::BlockOf(std::move(block));
}

}  // namespace

absl::StatusOr<BlockRv> Rfactor(ScheduleState& state, LoopRv loop_rv,
                                int factor_axis) {
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(loop_rv));
  TF_ASSIGN_OR_RETURN(Factoring f, CheckFactoring(state, loop, factor_axis));
  const std::optional<int64_t> extent = ExtentOf(loop);
  if (!extent.has_value()) {
    return state.Illegal(loop.get(), "its extent is not constant");
  }
  f.name = FreshBlockName(state.FunctionOf(f.block.get())->body,
                          f.block->name + "_rf");
  for (size_t k = 0; k < f.reducer.stores.size(); ++k) {
    const ir::BufferNode& buffer = *f.buffer(k);
    std::vector<int64_t> shape = buffer.shape;
    shape.insert(shape.begin() + f.axis, *extent);
    f.partials.push_back(ir::MakeBuffer(
        FreshBufferName(*state.FunctionOf(f.block.get()), buffer.name + "_rf"),
        buffer.dtype, std::move(shape), buffer.scope));
  }

  // Step 5: make the loops.
  ir::VarMap fresh;
  std::vector<ir::Var> fresh_vars;
  for (const ir::ForPtr& old : f.loops) {
    fresh_vars.push_back(ir::MakeVar(old->var->name, old->var->dtype));
    fresh[old->var.get()] = fresh_vars.back();
  }
  std::vector<ir::Expr> kept;
  const ir::BlockPtr factored = MakeFactored(f, fresh, kept);
  TF_RETURN_IF_ERROR(CheckInitReached(state, f, kept));
  const ir::BlockPtr joining = MakeJoining(f);
  ir::Stmt factored_nest = factored;
  ir::Stmt joining_nest = joining;
  for (size_t i = f.loops.size(); i > 0; --i) {
    factored_nest =
        WithVar(*f.loops[i - 1], fresh_vars[i - 1], std::move(factored_nest));
    if (f.loops[i - 1] != loop && FeedsReduce(*f.block, f.loops[i - 1])) {
      continue;
    }
    joining_nest = WithBody(*f.loops[i - 1], std::move(joining_nest));
  }
  ScopeEditor edit;
  edit.Replace(f.loops[0].get(), joining_nest);
  edit.Insert(f.scope.get(), PositionOf(f.scope->body, f.loops[0].get()),
              factored_nest);
  for (const ir::Buffer& partial : f.partials) edit.AddAlloc(partial);
  state.Replace(f.scope.get(), edit.Apply(*f.scope),
                {{f.block.get(), joining.get()}});
  return state.NewBlock(factored);
}

}  // namespace tilefarm::schedule
