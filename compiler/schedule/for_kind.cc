// parallel, vectorize, unroll, bind: how a loop is executed.
//
//   for i in range(16): C        ->   for i in T.parallel(16): C
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/independence.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/thread_binding.h"

namespace tilefarm::schedule {
namespace {

absl::StatusOr<ir::ForPtr> SerialLoop(ScheduleState& state, LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, state.Get(loop_rv));
  if (loop->for_kind != ir::ForKind::kSerial) {
    static constexpr std::array kNames = {"serial", "parallel", "vectorized",
                                          "unrolled", "bound to a thread axis"};
    return state.Illegal(loop.get(), "the loop is already ",
                         kNames[static_cast<size_t>(loop->for_kind)]);
  }
  return loop;
}

// Some value of the loop gives the block's spatial variables other values.
bool MovesInstances(const ScheduleState& state, const ir::ForPtr& loop,
                    const ir::BlockNode* block) {
  if (ExtentOf(loop) == 1) return true;
  arith::Analyzer analyzer(RangesOf(state.LoopsAbove(block)));
  return std::ranges::any_of(block->iters, [&](const ir::IterVar& iter) {
    return iter.type == ir::IterType::kSpatial &&
           ir::UsesVar(analyzer.Simplify(iter.binding), loop->var.get());
  });
}

// An instance of the block computes the same value in whichever iteration of
// the loop it runs: what it reads of buffers that blocks below the loop write,
// and what these read in turn, depends on the element alone.
bool RepeatsItsValues(const ScheduleState& state, const ir::ForPtr& loop,
                      const ir::BlockPtr& block) {
  const std::vector<ir::BlockPtr> below = state.ChildBlocks(loop.get());
  std::vector<ir::BlockPtr> readers = {block};
  for (size_t i = 0; i < readers.size(); ++i) {
    for (const ir::BlockPtr& writer : below) {
      const bool feeds = std::ranges::any_of(
          writer->writes, [&](const ir::BufferRegion& write) {
            return FindRegion(readers[i]->reads, write.buffer.get()) != nullptr;
          });
      if (!feeds) continue;
      if (!WritesAreDistinct(*writer)) return false;
      if (!absl::c_linear_search(readers, writer)) readers.push_back(writer);
    }
  }
  return true;
}

// Iterations may run at the same time: the blocks below use the loop in
// data-parallel variables alone (the threads of one GPU block may also share a
// reduction), and no two iterations write the same element, unless each has its
// own copy of the buffer or they write the same value.
absl::Status CheckParallelizable(const ScheduleState& state,
                                 const ir::ForPtr& loop) {
  const bool over_threads = IsThreadAxis(loop->thread_tag);
  const BlockScope scope(state, state.Scope(loop.get()).get());
  TF_RETURN_IF_ERROR(CheckIterationsIndependent(state, scope, loop, {loop}));
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    TF_RETURN_IF_ERROR(CheckIterationsCommute(state, block.get()));
    for (const ir::IterVar& iter : block->iters) {
      if (iter.type == ir::IterType::kSpatial ||
          (over_threads && iter.type == ir::IterType::kReduce) ||
          !ir::UsesVar(iter.binding, loop->var.get())) {
        continue;
      }
      return state.Illegal(loop.get(), "block ", block->name,
                           " uses the loop in ", iter.var->name,
                           ", which is not data parallel");
    }
    const auto is_apart = [&](const ir::BufferRegion& write) {
      return AreApart(state, {loop}, *block, write, *block, write);
    };
    if ((over_threads &&
         LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce)) ||
        std::ranges::all_of(block->writes, [&](const ir::BufferRegion& write) {
          return is_apart(write) ||
                 IsPrivate(state, scope, loop, write.buffer.get());
        })) {
      continue;
    }
    // A complete block may write an element again, with the same value, where
    // tiles overlap, but not the same elements in every iteration. The threads
    // of a GPU block may: those that have nothing else to do would wait.
    if (WritesAreDistinct(*block) && IsComplete(scope, block.get()) &&
        (over_threads || MovesInstances(state, loop, block.get())) &&
        RepeatsItsValues(state, loop, block)) {
      continue;
    }
    return state.Illegal(loop.get(), "iterations of block ", block->name,
                         " would write the same elements at the same time");
  }
  return absl::OkStatus();
}

// Whether a single thread of a GPU runs the loop.
bool IsOneThread(const ir::ForPtr& loop) {
  return loop->for_kind == ir::ForKind::kThreadBinding && ExtentOf(loop) == 1;
}

absl::Status SetKind(ScheduleState& state, LoopRv loop_rv, ir::ForKind kind,
                     std::string thread_tag = "") {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, SerialLoop(state, loop_rv));
  const ir::ForPtr changed = WithKind(*loop, kind, std::move(thread_tag));
  // Several blocks of a program may write parts of one buffer (a concatenation,
  // an update in place). Each of them may still run on a GPU's threads, if no
  // two of its own iterations meet.
  if (kind != ir::ForKind::kThreadBinding) {
    TF_RETURN_IF_ERROR(CheckCompactDataflow(state, loop.get()));
  }
  state.Replace(loop.get(), changed);
  loop = state.Latest(loop);
  if (!IsOneThread(loop)) {
    TF_RETURN_IF_ERROR(CheckParallelizable(state, loop));
  }
  if (kind != ir::ForKind::kThreadBinding) return absl::OkStatus();
  return CheckThreadBindings(state, *state.FunctionOf(loop.get()));
}

}  // namespace

absl::Status CheckConcurrentLoops(const ScheduleState& state) {
  for (const ir::PrimFuncPtr& function : state.module().functions) {
    std::vector<ir::ForPtr> loops;
    ir::PreOrder(function->body, [&](const ir::Stmt& stmt) {
      // Primitives see no loops of an init.
      const auto* loop = ir::As<ir::ForNode>(stmt);
      if (loop != nullptr && loop->for_kind != ir::ForKind::kSerial &&
          loop->for_kind != ir::ForKind::kUnrolled && state.Contains(loop)) {
        loops.push_back(state.Ref(loop));
      }
      return true;
    });
    for (const ir::ForPtr& loop : loops) {
      // A single thread runs everything in order.
      if (IsOneThread(loop)) continue;
      TF_RETURN_IF_ERROR(CheckParallelizable(state, loop));
    }
    TF_RETURN_IF_ERROR(CheckThreadBindings(state, *function));
  }
  return absl::OkStatus();
}

absl::Status Parallel(ScheduleState& state, LoopRv loop) {
  return SetKind(state, loop, ir::ForKind::kParallel);
}

absl::Status Vectorize(ScheduleState& state, LoopRv loop) {
  return SetKind(state, loop, ir::ForKind::kVectorized);
}

// Unrolling keeps the order of everything: any serial loop will do.
absl::Status Unroll(ScheduleState& state, LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, SerialLoop(state, loop_rv));
  state.Replace(loop.get(), WithKind(*loop, ir::ForKind::kUnrolled));
  return absl::OkStatus();
}

absl::Status Bind(ScheduleState& state, LoopRv loop_rv,
                  std::string_view thread_axis) {
  static constexpr std::array<std::string_view, 10> kAxes = {
      "blockIdx.x",  "blockIdx.y",  "blockIdx.z",  "clusterCtaIdx.x",
      "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread.x",
      "vthread.y",   "vthread.z"};
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, SerialLoop(state, loop_rv));
  if (!absl::c_linear_search(kAxes, thread_axis) && thread_axis != "vthread") {
    return state.Invalid(loop.get(), "unknown thread axis \"",
                         std::string(thread_axis), "\"");
  }
  return SetKind(state, loop_rv, ir::ForKind::kThreadBinding,
                 std::string(thread_axis));
}

}  // namespace tilefarm::schedule
