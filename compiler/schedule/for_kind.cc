// parallel, vectorize, unroll, bind: how a loop is executed.
//
//   for i in range(16): C        ->   for i in T.parallel(16): C
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

std::string_view KindName(ir::ForKind kind) {
  switch (kind) {
    case ir::ForKind::kSerial:
      return "serial";
    case ir::ForKind::kParallel:
      return "parallel";
    case ir::ForKind::kVectorized:
      return "vectorized";
    case ir::ForKind::kUnrolled:
      return "unrolled";
    case ir::ForKind::kThreadBinding:
      return "bound to a thread axis";
  }
  return "";
}

absl::StatusOr<ir::ForPtr> SerialLoop(ScheduleState& state,
                                      std::string_view primitive,
                                      LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, state.Get(primitive, loop_rv));
  if (loop->for_kind != ir::ForKind::kSerial) {
    return state.Illegal(primitive, loop.get(),
                         absl::StrCat("the loop is already ",
                                      std::string(KindName(loop->for_kind))));
  }
  return loop;
}

// Whether anything outside of a loop reads or writes a buffer.
class OutsideAccess : public ir::Visitor {
 public:
  OutsideAccess(const ir::ForNode* loop, const ir::BufferNode* buffer)
      : loop_(loop), buffer_(buffer) {}
  using Visitor::Visit;
  bool found = false;

 protected:
  void VisitFor(const ir::ForNode& loop) override {
    if (&loop != loop_ && !found) Visitor::VisitFor(loop);
  }
  void VisitLoad(const ir::LoadNode& load) override {
    found |= load.buffer.get() == buffer_;
    Visitor::VisitLoad(load);
  }
  void VisitStore(const ir::StoreNode& store) override {
    found |= store.buffer.get() == buffer_;
    Visitor::VisitStore(store);
  }

 private:
  const ir::ForNode* loop_;
  const ir::BufferNode* buffer_;
};

// Each iteration of the loop has a copy of the buffer of its own (schedule
// semantics, and what lowering allocates): every access lies below the loop,
// and an iteration reads nothing that it has not written before.
bool IsPrivate(const ScheduleState& state, const BlockScope& scope,
               const ir::ForPtr& loop, const ir::BufferNode* buffer) {
  if (state.AllocSite(buffer) == nullptr) return false;
  OutsideAccess outside(loop.get(), buffer);
  outside.Visit(state.FunctionOf(loop.get())->body);
  if (outside.found) return false;
  bool written = false;
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    const bool writes = FindRegion(block->writes, buffer) != nullptr;
    // Behind a condition it may not write at all; an init may begin another
    // element than the one that is updated.
    if (writes && (!CheckOnlyLoopsAbove(state, "", block.get()).ok() ||
                   !PredicateOnlyGuardsDomain(state, *block) ||
                   (block->init && !IsReduction(state, scope, block.get())))) {
      return false;
    }
    if (FindRegion(block->reads, buffer) != nullptr &&
        (!written || !IsRegionCovered(state, block.get()))) {
      return false;
    }
    if (writes && block->init != nullptr) {
      // The iteration must begin the reduction, too.
      std::vector<ir::ForPtr> loops = state.LoopsAbove(loop.get());
      loops.push_back(loop);
      for (const ir::ForPtr& outer : loops) {
        if (ExtentOf(outer) == 1) continue;
        if (LoopFeedsIter(outer.get(), block.get(), ir::IterType::kReduce)) {
          return false;
        }
      }
    }
    written |= writes;
  }
  return true;
}

bool WritesArePrivate(const ScheduleState& state, const BlockScope& scope,
                      const ir::ForPtr& loop, const ir::BlockNode* block) {
  return std::all_of(block->writes.begin(), block->writes.end(),
                     [&](const ir::BufferRegion& write) {
                       return IsPrivate(state, scope, loop, write.buffer.get());
                     });
}

// Each value of the loop gives the block's spatial variables other values,
// whatever the loops around and below do.
bool SeparatesIterations(const ScheduleState& state, const ir::ForPtr& loop,
                         const ir::BlockNode* block) {
  if (ExtentOf(loop) == 1) return true;
  std::vector<ir::Expr> bindings;
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type == ir::IterType::kSpatial) bindings.push_back(iter.binding);
  }
  // The other loops are constants with known bounds.
  arith::Analyzer analyzer(RangesOf(state.LoopsAbove(block)));
  std::vector<ir::Expr> relevant;
  for (const ir::Expr& binding : bindings) {
    if (ir::UsesVar(binding, loop->var.get())) {
      relevant.push_back(analyzer.Simplify(binding));
    }
  }
  return arith::DetectIterMap(relevant, RangesOf({loop}), nullptr,
                              arith::IterMapLevel::kBijective, analyzer)
      .ok();
}

// Some value of the loop gives the block's spatial variables other values.
bool MovesInstances(const ScheduleState& state, const ir::ForPtr& loop,
                    const ir::BlockNode* block) {
  if (ExtentOf(loop) == 1) return true;
  arith::Analyzer analyzer(RangesOf(state.LoopsAbove(block)));
  return std::any_of(
      block->iters.begin(), block->iters.end(), [&](const ir::IterVar& iter) {
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
      const bool feeds = std::any_of(
          writer->writes.begin(), writer->writes.end(),
          [&](const ir::BufferRegion& write) {
            return FindRegion(readers[i]->reads, write.buffer.get()) != nullptr;
          });
      if (!feeds) continue;
      if (!WritesAreDistinct(*writer)) return false;
      if (std::find(readers.begin(), readers.end(), writer) == readers.end()) {
        readers.push_back(writer);
      }
    }
  }
  return true;
}

// Iterations may run at the same time: the blocks below use the loop in
// data-parallel variables alone (`reduce_too`: the threads of one GPU block may
// also share a reduction), and no two iterations write one element, unless it
// is their own copy or they write the same value.
absl::Status CheckParallelizable(const ScheduleState& state,
                                 std::string_view primitive,
                                 const ir::ForPtr& loop, bool reduce_too) {
  const BlockScope scope(state, state.Scope(loop.get()).get());
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    TF_RETURN_IF_ERROR(CheckIterationsCommute(state, primitive, block.get()));
    for (const ir::IterVar& iter : block->iters) {
      if (iter.type == ir::IterType::kSpatial ||
          (reduce_too && iter.type == ir::IterType::kReduce) ||
          !ir::UsesVar(iter.binding, loop->var.get())) {
        continue;
      }
      return state.Illegal(
          primitive, loop.get(),
          absl::StrCat("block ", block->name, " uses the loop in ",
                       iter.var->name, ", which is not data parallel"));
    }
    if (reduce_too || WritesArePrivate(state, scope, loop, block.get()))
      continue;
    // A complete block may write an element again, with the same value, where
    // tiles overlap, but not the same elements in every iteration.
    if (WritesAreDistinct(*block) &&
        ((IsComplete(scope, block.get()) &&
          MovesInstances(state, loop, block.get()) &&
          RepeatsItsValues(state, loop, block)) ||
         SeparatesIterations(state, loop, block.get()))) {
      continue;
    }
    return state.Illegal(
        primitive, loop.get(),
        absl::StrCat("iterations of block ", block->name,
                     " would write the same elements at the same time"));
  }
  return absl::OkStatus();
}

absl::Status SetKind(ScheduleState& state, std::string_view primitive,
                     LoopRv loop_rv, ir::ForKind kind) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, SerialLoop(state, primitive, loop_rv));
  TF_RETURN_IF_ERROR(CheckCompactDataflow(state, primitive, loop.get()));
  // What else must hold, the transaction asks (CheckConcurrentLoops).
  state.Replace(loop.get(), WithKind(*loop, kind));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConcurrentLoops(const ScheduleState& state,
                                  std::string_view primitive) {
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
      TF_RETURN_IF_ERROR(CheckParallelizable(
          state, primitive, loop, loop->thread_tag.rfind("threadIdx", 0) == 0));
    }
  }
  return absl::OkStatus();
}

absl::Status Parallel(ScheduleState& state, LoopRv loop) {
  return SetKind(state, "parallel", loop, ir::ForKind::kParallel);
}

absl::Status Vectorize(ScheduleState& state, LoopRv loop) {
  return SetKind(state, "vectorize", loop, ir::ForKind::kVectorized);
}

// Unrolling keeps the order of everything: any serial loop will do.
absl::Status Unroll(ScheduleState& state, LoopRv loop_rv) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, SerialLoop(state, "unroll", loop_rv));
  state.Replace(loop.get(), WithKind(*loop, ir::ForKind::kUnrolled));
  return absl::OkStatus();
}

absl::Status Bind(ScheduleState& state, LoopRv loop_rv,
                  std::string_view thread_axis) {
  static constexpr std::array<std::string_view, 9> kAxes = {
      "blockIdx.x",  "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y",
      "threadIdx.z", "vthread.x",  "vthread.y",  "vthread.z"};
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, SerialLoop(state, "bind", loop_rv));
  if (std::find(kAxes.begin(), kAxes.end(), thread_axis) == kAxes.end() &&
      thread_axis != "vthread") {
    return state.Invalid(
        "bind", loop.get(),
        absl::StrCat("unknown thread axis \"", std::string(thread_axis), "\""));
  }
  TF_RETURN_IF_ERROR(CheckCompactDataflow(state, "bind", loop.get()));
  state.Replace(loop.get(), WithKind(*loop, ir::ForKind::kThreadBinding,
                                     std::string(thread_axis)));
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
