// blockize: the nest at and below a loop becomes a block of its own, which
// outer scopes see as one unit.
//
//   blockize(i_1)
//
//   for i_0, k_0:                       for i_0, k_0:
//     for i_1, k_1:                       C_o: v_i_o = i_0, v_k_o = k_0
//       C: v_i = i_0 * 4 + i_1      ->      init: for i_1:
//          v_k = k_0 * 4 + k_1                C_init: C[v_i_o * 4 + ...] = 0
//          init: C[v_i] = 0                 for i_1, k_1:
//          C[v_i] += ...                      C: v_i_i = i_1, v_k_i = k_1
//                                                C[v_i_o * 4 + v_i_i] += ...
//
// Steps:
//   1. Check that the nest below the loop contains one block and nothing else.
//   2. Divide each binding into `outer * extent + inner`, where the inner part
//      uses only loops of the nest.
//   3. The outer block gets the outer parts; its reads and writes are the hull
//      over the inner ones. The old block gets the inner parts. Its init
//      becomes the outer block's, as a nest over the inner spatial variables.
//
// The result is the outer block; the old block's variables stay with the inner
// one.
#include "compiler/schedule/blockize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The block below the loop and the loops of the nest, the given one first.
struct Nest {
  ir::BlockPtr block;
  std::vector<ir::ForPtr> loops;
};

// Step 1.
absl::StatusOr<Nest> FindNest(const ScheduleState& state,
                              const ir::ForPtr& loop) {
  Nest nest;
  ir::Stmt at = loop;
  while (const auto* inner = ir::As<ir::ForNode>(at)) {
    nest.loops.push_back(state.Ref(inner));
    at = inner->body;
  }
  const auto* block = ir::As<ir::BlockNode>(at);
  if (block == nullptr) {
    return state.Illegal(loop.get(),
                         "the loops below it hold more than one block");
  }
  nest.block = state.Ref(block);
  return nest;
}

// The variables of the outer and inner block that replace the old ones.
struct Divided {
  std::vector<ir::IterVar> outer, inner;
  ir::VarMap vars;  // old block variable -> outer * extent + inner
};

// `analyzer` knows the loops.
Divided DivideVariables(const ir::BlockNode& block,
                        const arith::SubspaceDivision& division,
                        arith::Analyzer& analyzer) {
  Divided result;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const ir::IterVar& iter = block.iters[i];
    const arith::Division& part = division.bindings[i];
    const ir::Var outer = ir::MakeVar(iter.var->name + "_o");
    // A copy of a part of a buffer has a domain that need not start at 0, and
    // may start at another place in each iteration of what surrounds the scope.
    arith::ConstBound bounds = analyzer.Bounds(part.outer);
    if (!bounds.is_bounded()) {
      const auto whole = ir::AsInt(iter.dom.min + iter.dom.extent);
      const int64_t tiles = whole.value_or(part.outer_extent);
      bounds = {0, (tiles - 1) / part.inner_extent};
    }
    const int64_t first = std::max<int64_t>(bounds.min, 0);
    const int64_t extent =
        std::max<int64_t>(part.outer_extent, bounds.max - first + 1);
    result.outer.push_back({outer,
                            {ir::IntConst(first), ir::IntConst(extent)},
                            iter.type,
                            part.outer});
    ir::Expr value =
        extent == 1 && first == 0 ? ir::IntConst(0) : ir::Expr(outer);
    if (part.inner_extent != 1) {
      const ir::Var inner = ir::MakeVar(iter.var->name + "_i");
      result.inner.push_back(
          {inner,
           {ir::IntConst(0), ir::IntConst(part.inner_extent)},
           iter.type,
           part.inner});
      value = value * part.inner_extent + inner;
    }
    result.vars[iter.var.get()] = arith::Analyzer().Simplify(value);
  }
  return result;
}

// The hulls, over the inner variables, of regions of the old block.
std::vector<ir::BufferRegion> OuterRegions(
    const std::vector<ir::BufferRegion>& regions, const Divided& divided) {
  arith::Analyzer analyzer;
  arith::VarRanges inner;
  for (const ir::IterVar& iter : divided.outer) {
    analyzer.Bind(iter.var, iter.dom);
  }
  for (const ir::IterVar& iter : divided.inner) {
    inner.emplace_back(iter.var, iter.dom);
  }
  std::vector<ir::BufferRegion> result;
  for (const ir::BufferRegion& region : regions) {
    result.push_back(
        {region.buffer,
         arith::RelaxRegion(analyzer, SubstituteRegion(region, divided.vars),
                            inner)});
  }
  return result;
}

std::vector<ir::BufferRegion> InnerRegions(
    const std::vector<ir::BufferRegion>& regions, const ir::VarMap& vars) {
  std::vector<ir::BufferRegion> result;
  for (const ir::BufferRegion& region : regions) {
    result.push_back(SubstituteRegion(region, vars));
  }
  return result;
}

// The old init as a nest over copies of the inner spatial loops.
ir::Stmt MakeInitNest(const ir::BlockNode& old_block, const Nest& nest,
                      const Divided& divided) {
  ir::BlockNode init;
  init.name = old_block.name + "_init";
  init.predicate = ir::BoolConst(true);
  ir::VarMap inner_vars;
  for (const ir::IterVar& iter : divided.inner) {
    if (iter.type != ir::IterType::kSpatial) continue;
    ir::IterVar copy = iter;
    copy.var = ir::MakeVar(iter.var->name + "_init");
    inner_vars[iter.var.get()] = copy.var;
    init.iters.push_back(std::move(copy));
  }
  ir::VarMap vars;
  for (const auto& [var, value] : divided.vars) {
    vars[var] = ir::Substitute(value, inner_vars);
  }
  init.writes = InnerRegions(old_block.writes, vars);
  init.body = CopyWithFreshVars(ir::InitAtStart(old_block), vars);
  init.reads = ir::DetectAccesses(init).reads;
  std::vector<ir::ForPtr> loops;
  ir::VarMap loop_vars;
  std::vector<ir::Var> fresh;
  for (const ir::ForPtr& loop : nest.loops) {
    const bool used =
        std::ranges::any_of(init.iters, [&](const ir::IterVar& iter) {
          return ir::UsesVar(iter.binding, loop->var.get());
        });
    if (!used) continue;
    loops.push_back(loop);
    fresh.push_back(ir::MakeVar(loop->var->name));
    loop_vars[loop->var.get()] = fresh.back();
  }
  for (ir::IterVar& iter : init.iters) {
    iter.binding = ir::Substitute(iter.binding, loop_vars);
  }
  ir::Stmt stmt = ir::BlockOf(std::move(init));
  for (size_t i = loops.size(); i > 0; --i) {
    stmt = WithVar(*loops[i - 1], fresh[i - 1], std::move(stmt));
  }
  return stmt;
}

}  // namespace

absl::StatusOr<ir::BlockPtr> BlockizeLoop(ScheduleState& state,
                                          const ir::ForPtr& loop) {
  TF_ASSIGN_OR_RETURN(const Nest nest, FindNest(state, loop));
  const ir::BlockNode& block = *nest.block;
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, &block));
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(&block);
  arith::Analyzer analyzer;
  BindLoops(analyzer, loops);
  std::vector<ir::Expr> bindings;
  for (const ir::IterVar& iter : block.iters) {
    if (!ir::IsConstInt(iter.dom.min, 0)) {
      return state.Illegal(&block, "the domain of ", iter.var->name,
                           " does not start at 0");
    }
    bindings.push_back(iter.binding);
  }
  std::vector<ir::Var> inner_vars;
  for (const ir::ForPtr& inner : nest.loops) inner_vars.push_back(inner->var);
  auto division = arith::SubspaceDivide(
      bindings, RangesOf(loops), inner_vars, block.predicate,
      arith::IterMapLevel::kSurjective, analyzer);
  if (!division.ok()) {
    return state.Illegal(
        loop.get(), "the bindings of block ", block.name,
        " cannot be divided there: ", std::string(division.status().message()));
  }
  // Overlapping iterators (a halo) cannot be written in this form.
  for (size_t i = 0; i < bindings.size(); ++i) {
    const arith::Division& part = division->bindings[i];
    if (!analyzer.ProveEqual(part.outer * part.inner_extent + part.inner,
                             bindings[i])) {
      return state.Illegal(loop.get(), "the binding ",
                           ir::ToString(bindings[i]), " of block ", block.name,
                           " cannot be divided there");
    }
  }
  if (block.init != nullptr) {
    TF_RETURN_IF_ERROR(CheckInitSeparates(state, nest.block, nest.loops));
  }
  if (block.init != nullptr && !ir::IsConstInt(division->inner_predicate, 1)) {
    return state.Illegal(loop.get(), "the initialisation of block ", block.name,
                         " would lose its predicate");
  }
  const Divided divided = DivideVariables(block, *division, analyzer);
  for (const ir::IterVar& iter : divided.outer) {
    // The new domain would start where the old one goes on: an init that never
    // runs would run.
    if (block.init != nullptr && iter.type == ir::IterType::kReduce &&
        !ir::IsConstInt(iter.dom.min, 0)) {
      return state.Illegal(loop.get(), "the reduction of block ", block.name,
                           " does not start at its first term there");
    }
  }

  ir::BlockNode inner = block;
  inner.iters = divided.inner;
  inner.predicate = division->inner_predicate;
  inner.init = nullptr;
  inner.reads.clear();
  if (block.init != nullptr) {
    for (const ir::BufferRegion& write : block.writes) {
      if (FindRegion(block.reads, write.buffer.get()) == nullptr) {
        inner.reads.push_back(SubstituteRegion(write, divided.vars));
      }
    }
  }
  for (ir::BufferRegion& read : InnerRegions(block.reads, divided.vars)) {
    inner.reads.push_back(std::move(read));
  }
  inner.writes = InnerRegions(block.writes, divided.vars);
  inner.body = ir::Substitute(block.body, divided.vars);
  const ir::BlockPtr inner_block = ir::BlockOf(std::move(inner));

  ir::BlockNode outer;
  outer.name = block.name + "_o";
  outer.iters = divided.outer;
  outer.predicate = division->outer_predicate;
  outer.reads = OuterRegions(block.reads, divided);
  outer.writes = OuterRegions(block.writes, divided);
  if (block.init != nullptr) outer.init = MakeInitNest(block, nest, divided);
  ir::Stmt body = inner_block;
  for (size_t i = nest.loops.size(); i > 0; --i) {
    body = WithBody(*nest.loops[i - 1], std::move(body));
  }
  outer.body = std::move(body);
  const ir::BlockPtr outer_block = ir::BlockOf(std::move(outer));
  state.Replace(loop.get(), outer_block, {{&block, inner_block.get()}});
  return outer_block;
}

absl::StatusOr<BlockRv> Blockize(ScheduleState& state, LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(loop_rv));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, BlockizeLoop(state, loop));
  return state.NewBlock(block);
}

}  // namespace tilefarm::schedule
