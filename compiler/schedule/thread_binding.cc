#include "compiler/schedule/thread_binding.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/reducer.h"

namespace tilefarm::schedule {
namespace {

// The bound loops around a statement, outermost first; through all scopes.
std::vector<const ir::ForNode*> BoundLoopsAbove(const ScheduleState& state,
                                                const ir::StmtNode* stmt) {
  std::vector<const ir::ForNode*> loops;
  for (ir::Stmt at = state.Parent(stmt); at != nullptr;
       at = state.Parent(at.get())) {
    const auto* loop = ir::As<ir::ForNode>(at);
    if (loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding) {
      loops.push_back(loop);
    }
  }
  std::ranges::reverse(loops);
  return loops;
}

bool DependsOn(const ir::BlockNode& block, const ir::Var& var) {
  return ir::UsesVar(block.predicate, var.get()) ||
         std::ranges::any_of(block.iters, [&](const ir::IterVar& iter) {
           return ir::UsesVar(iter.binding, var.get());
         });
}

// The loop is inside of `outer`, which has the same thread axis.
absl::Status CheckSameThreads(const ScheduleState& state,
                              const ir::ForPtr& loop,
                              const ir::ForNode& outer) {
  const auto inner_extent = ExtentOf(loop),
             outer_extent = ir::AsInt(outer.extent);
  if (!inner_extent || !outer_extent || *inner_extent > *outer_extent) {
    return state.Illegal(loop.get(), "it is inside of loop ", outer.var->name,
                         ", which has the same axis ", loop->thread_tag,
                         " and fewer threads");
  }
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    if (*outer_extent > 1 && DependsOn(*block, outer.var)) {
      return state.Illegal(loop.get(), "block ", block->name,
                           " depends on loop ", outer.var->name,
                           " around it, which has the same axis ",
                           loop->thread_tag,
                           ": threads cannot fetch for each other what each "
                           "of them needs alone");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNesting(const ScheduleState& state, const ir::ForPtr& loop) {
  const bool over_blocks = IsBlockAxis(loop->thread_tag);
  for (const ir::ForNode* outer : BoundLoopsAbove(state, loop.get())) {
    if (over_blocks && !IsBlockAxis(outer->thread_tag)) {
      return state.Illegal(loop.get(), "a loop over ", loop->thread_tag,
                           " cannot be inside of loop ", outer->var->name,
                           " over ", outer->thread_tag);
    }
    if (outer->thread_tag != loop->thread_tag) continue;
    if (!IsThreadAxis(loop->thread_tag)) {
      return state.Illegal(loop.get(), "it is inside of loop ",
                           outer->var->name, ", which has the same axis ",
                           loop->thread_tag);
    }
    TF_RETURN_IF_ERROR(CheckSameThreads(state, loop, *outer));
  }
  return absl::OkStatus();
}

// Threads that share a reduction each have a part of it, which are combined.
absl::Status CheckSharedReductions(const ScheduleState& state,
                                   const ir::ForPtr& loop) {
  if (!IsThreadAxis(loop->thread_tag) || ExtentOf(loop) == 1) {
    return absl::OkStatus();
  }
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    if (!LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce)) {
      continue;
    }
    if (!MatchTuple(*block).has_value()) {
      return state.Illegal(
          loop.get(), "threads cannot share the reduction of block ",
          block->name,
          ", which is not a known commutative one (sum, product, min, max, "
          "and, or) that starts from the identity");
    }
    if (LoopFeedsIter(loop.get(), block.get(), ir::IterType::kSpatial)) {
      return state.Illegal(loop.get(),
                           "the loop feeds both spatial and reduce "
                           "variables of block ",
                           block->name);
    }
  }
  return absl::OkStatus();
}

// Blocks outside of all thread loops count as not bound yet.
absl::Status CheckLocalBuffers(const ScheduleState& state,
                               const ir::PrimFunc& function) {
  struct Use {
    const ir::BlockNode* block;
    std::vector<const ir::ForNode*> threads;
  };
  std::unordered_map<const ir::BufferNode*, Use> first;
  for (const ir::BlockPtr& block : state.BlocksOf(&function)) {
    std::vector<const ir::ForNode*> threads;
    for (const ir::ForNode* loop : BoundLoopsAbove(state, block.get())) {
      if (IsThreadAxis(loop->thread_tag) && !ir::IsConstInt(loop->extent, 1)) {
        threads.push_back(loop);
      }
    }
    if (threads.empty()) continue;
    for (const auto* regions : {&block->reads, &block->writes}) {
      for (const ir::BufferRegion& region : *regions) {
        if (region.buffer->scope != "local") continue;
        const auto [use, added] =
            first.insert({region.buffer.get(), {block.get(), threads}});
        if (added || use->second.threads == threads) continue;
        return state.Illegal(block.get(), "buffer ", region.buffer->name,
                             " is local to each thread, and block ",
                             use->second.block->name,
                             " uses it in other loops over threads");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsBlockAxis(std::string_view thread_tag) {
  return thread_tag.starts_with("blockIdx") || IsClusterAxis(thread_tag);
}

bool IsClusterAxis(std::string_view thread_tag) {
  return thread_tag.starts_with("clusterCtaIdx");
}

bool IsThreadAxis(std::string_view thread_tag) {
  return thread_tag.starts_with("threadIdx");
}

absl::Status CheckThreadBindings(const ScheduleState& state,
                                 const ir::PrimFunc& function) {
  std::vector<ir::ForPtr> loops;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    const auto* loop = ir::As<ir::ForNode>(stmt);
    if (loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding &&
        state.Contains(loop)) {
      loops.push_back(state.Ref(loop));
    }
    return true;
  });
  if (loops.empty()) return absl::OkStatus();
  for (const ir::ForPtr& loop : loops) {
    TF_RETURN_IF_ERROR(CheckNesting(state, loop));
    TF_RETURN_IF_ERROR(CheckSharedReductions(state, loop));
  }
  return CheckLocalBuffers(state, function);
}

}  // namespace tilefarm::schedule
