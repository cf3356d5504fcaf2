// reindex: a block reads (writes) a buffer through a copy whose indices are the
// block's own variables, one for each dimension.
//
//   reindex(C, read buffer 0)
//
//   for i, r: C[i] += P[i * 2 + r]     for ax0, ax1: P_reindex_reindex:
//                                  ->    P_reindex[v0, v1] = P[v0 * 2 + v1]
//                                      for i, r: C[i] += P_reindex[i, r]
//
// The new dimensions are the block variables that the access uses, in the
// block's order. Steps:
//   1. Check that all accesses to the buffer in the block are to the same
//      element, in bounds for every instance.
//   2. For a read, check that the buffer has at most one writer, which comes
//      before and whose value is final at the place of the copy. For a write,
//      check that the block is the only writer, runs all instances, and writes
//      a different element in each.
//   3. Put the copy at the start of the scope or after the writer, and
//      redirect this block only.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/cache_block.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The indices of all accesses to the buffer in the block; nullopt if they
// differ or change within an instance of the block.
std::optional<std::vector<ir::Expr>> CommonIndices(
    const ir::BlockNode& block, const ir::BufferNode* buffer) {
  std::vector<ir::Expr> common;
  bool first = true;
  bool equal = true;
  const auto add = [&](const std::vector<ir::Expr>& indices) {
    if (first) {
      common = indices;
      first = false;
      return;
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      equal = equal && arith::ExprEqual(common[i], indices[i]);
    }
  };
  for (const ir::Stmt& part : {block.init, block.body}) {
    if (part == nullptr) continue;
    ir::PreOrder(part, [&](const ir::Stmt& stmt) {
      const auto* store = ir::As<ir::StoreNode>(stmt);
      if (store != nullptr && store->buffer.get() == buffer) {
        add(store->indices);
      }
      return true;
    });
    ir::PostOrderExprs(part, [&](const ir::Expr& expr) {
      const auto* load = ir::As<ir::LoadNode>(expr);
      if (load != nullptr && load->buffer.get() == buffer) add(load->indices);
    });
  }
  if (first || !equal) return std::nullopt;
  // The copy is outside of the block, where only the block's variables have a
  // counterpart, and loads in an index may read values not yet computed.
  bool outside = true;
  for (const ir::Expr& index : common) {
    ir::PostOrderExprs(index, [&](const ir::Expr& expr) {
      outside &=
          expr->kind != ir::ExprKind::kLoad &&
          (expr->kind != ir::ExprKind::kVar ||
           std::ranges::any_of(block.iters, [&](const ir::IterVar& iter) {
             return iter.var == expr;
           }));
    });
  }
  return outside ? std::optional(common) : std::nullopt;
}

// The copy block; `copied` is the reindexed buffer.
BlockNest MakeReindexCopy(const ir::Buffer& buffer, const ir::Buffer& copied,
                          const std::vector<ir::Expr>& indices,
                          const std::vector<ir::IterVar>& used, bool read,
                          const std::string& name) {
  ir::BlockNode block;
  block.name = name;
  ir::VarMap vars;
  std::vector<ir::Var> loops;
  std::vector<ir::Expr> own;
  std::vector<ir::Range> own_region, buffer_region;
  for (size_t i = 0; i < used.size(); ++i) {
    loops.push_back(ir::MakeVar(absl::StrCat("ax", i)));
    const ir::Var var = ir::MakeVar(absl::StrCat("v", i));
    vars[used[i].var.get()] = var;
    block.iters.push_back(
        {var, used[i].dom, ir::IterType::kSpatial, loops.back()});
    own.push_back(var);
    own_region.push_back({var, ir::IntConst(1)});
  }
  std::vector<ir::Expr> theirs;
  for (const ir::Expr& index : indices) {
    theirs.push_back(ir::Substitute(index, vars));
    buffer_region.push_back({theirs.back(), ir::IntConst(1)});
  }
  block.predicate = ir::BoolConst(true);
  if (read) {
    block.reads.push_back({buffer, buffer_region});
    block.writes.push_back({copied, own_region});
    block.body = ir::MakeStore(copied, own, ir::Load(buffer, theirs));
  } else {
    block.reads.push_back({copied, own_region});
    block.writes.push_back({buffer, buffer_region});
    block.body = ir::MakeStore(buffer, theirs, ir::Load(copied, own));
  }
  BlockNest result;
  result.block = ir::BlockOf(std::move(block));
  result.nest = result.block;
  for (size_t i = used.size(); i > 0; --i) {
    result.nest = ir::MakeFor(loops[i - 1], used[i - 1].dom.extent,
                              std::move(result.nest));
  }
  return result;
}

// Step 2; returns the place of the copy.
absl::StatusOr<CopyPlace> PlaceFor(const ScheduleState& state,
                                   const ir::BlockPtr& block,
                                   const ir::BlockPtr& scope,
                                   const BlockScope& deps,
                                   const ir::Buffer& buffer, bool read) {
  const std::vector<ir::BlockPtr> writers = deps.Writers(buffer.get());
  if (!read) {
    TF_RETURN_IF_ERROR(CheckCompleteOrReduction(state, deps, block.get()));
    TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
    const ir::BufferRegion& write = *FindRegion(block->writes, buffer.get());
    if (!WritesAll(state, *block, write)) {
      return state.Illegal(block.get(),
                           "it does not write every element of buffer ",
                           buffer->name, " that would be copied back");
    }
    if (!WritesAreDistinct(*block) ||
        !CoversDomain(state, *block, HasReduceIter(block.get()))) {
      return state.Illegal(block.get(),
                           "its instances do not all run or do not write "
                           "elements of their own");
    }
    CopyPlace place = PlaceAfter(
        state, scope, block, ReadersOfResult(state, deps, block, buffer.get()));
    if (!place.outer.empty()) {
      return state.Illegal(block.get(), "buffer ", buffer->name,
                           " is read in a loop around it");
    }
    return place;
  }
  if (writers.empty()) return CopyPlace{scope, 0, {}, {}};
  if (writers.size() > 1 || writers[0] == block) {
    return state.Illegal(block.get(), "buffer ", buffer->name,
                         " has other writers in the scope or is "
                         "written by the block itself");
  }
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, writers[0].get()));
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  if (!SharedLoops(state, writers[0].get(), block.get()).empty()) {
    return state.Illegal(block.get(), "buffer ", buffer->name,
                         " is written in a loop around it");
  }
  const auto& order = deps.children();
  if (std::ranges::find(order, writers[0]) > std::ranges::find(order, block)) {
    return state.Illegal(block.get(), "buffer ", buffer->name,
                         " is overwritten later");
  }
  return PlaceAfter(state, scope, writers[0], {block});
}

}  // namespace

absl::StatusOr<BlockRv> Reindex(ScheduleState& state, BlockRv block_rv,
                                bool read, int buffer_index) {
  TF_ASSIGN_OR_RETURN(const auto found,
                      GetBuffer(state, block_rv, read, buffer_index));
  const auto& [block, buffer] = found;
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  const auto indices = CommonIndices(*block, buffer.get());
  if (!indices.has_value()) {
    return state.Illegal(block.get(), "it accesses buffer ", buffer->name,
                         " at different indices, or at ones "
                         "that do not follow from its variables");
  }
  // The copy runs for every instance, even if the block's access is guarded.
  ir::BufferRegion point{buffer, {}};
  for (const ir::Expr& index : *indices) {
    point.region.push_back({index, ir::IntConst(1)});
  }
  arith::Analyzer analyzer;
  if (!arith::RegionCovers(
          analyzer, arith::FullRegion(buffer),
          arith::RelaxRegion(analyzer, point, DomainOf(*block)))) {
    return state.Illegal(block.get(), "not every instance accesses buffer ",
                         buffer->name, " in bounds");
  }
  const BlockScope deps(state, scope.get());
  TF_ASSIGN_OR_RETURN(const CopyPlace place,
                      PlaceFor(state, block, scope, deps, buffer, read));
  std::vector<ir::IterVar> used;
  std::vector<int64_t> shape;
  std::vector<ir::Expr> own;
  for (const ir::IterVar& iter : block->iters) {
    const bool occurs = std::any_of(indices->begin(), indices->end(),
                                    [&](const ir::Expr& index) {
                                      return ir::UsesVar(index, iter.var.get());
                                    });
    if (!occurs) continue;
    if (!ir::IsConstInt(iter.dom.min, 0)) {
      return state.Illegal(block.get(), "the domain of ", iter.var->name,
                           " does not start at 0");
    }
    used.push_back(iter);
    shape.push_back(ir::AsInt(iter.dom.extent).value_or(1));
    own.push_back(iter.var);
  }
  const ir::PrimFuncPtr function = state.FunctionOf(block.get());
  const ir::Buffer copied =
      ir::MakeBuffer(FreshBufferName(*function, buffer->name + "_reindex"),
                     buffer->dtype, shape);
  const std::string base =
      read ? copied->name + "_reindex" : buffer->name + "_reindex";
  std::string name = base;
  for (int i = 1; state.CountBlocks(function.get(), name) > 0; ++i) {
    name = absl::StrCat(base, "_", i);
  }
  const BlockNest copy =
      MakeReindexCopy(buffer, copied, *indices, used, read, name);

  AccessRewrite rewrite;
  rewrite.buffer = buffer.get();
  rewrite.on_load = [&](const std::vector<ir::Expr>&) {
    return ir::Load(copied, own);
  };
  rewrite.on_store = [&](const std::vector<ir::Expr>&, const ir::Expr& value) {
    return ir::MakeStore(copied, own, value);
  };
  ir::BlockNode redirected =
      *ir::As<ir::BlockNode>(RewriteAccesses(block, rewrite));
  // The regions of other accesses do not change.
  redirected.reads = block->reads;
  redirected.writes = block->writes;
  std::vector<ir::Range> own_region;
  for (const ir::Expr& var : own) own_region.push_back({var, ir::IntConst(1)});
  for (auto* regions : {&redirected.reads, &redirected.writes}) {
    for (ir::BufferRegion& region : *regions) {
      if (region.buffer == buffer) region = {copied, own_region};
    }
  }
  const ir::BlockPtr result = ir::BlockOf(std::move(redirected));
  ScopeEditor edit;
  edit.Insert(place.parent.get(), place.position, copy.nest);
  edit.Replace(block.get(), result);
  edit.AddAlloc(copied);
  state.Replace(scope.get(), edit.Apply(*scope), {{block.get(), result.get()}});
  return state.NewBlock(copy.block);
}

}  // namespace tilefarm::schedule
