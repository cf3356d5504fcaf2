#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/reducer.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// With so many outputs for each term, one thread for each output is fast enough
// if neighbours then read neighbouring elements.
constexpr int64_t kManyForEachTerm = 32;
// Rows of intermediate results that take more of a block's shared memory
// stay in global memory, so that several blocks fit a multiprocessor.
constexpr int64_t kSharedShare = 4;

// Blocks that are computed row by row, each row by one block of threads. The
// last one is the consumer, which has the loops over rows.
struct RowBlocks {
  std::vector<BlockRv> blocks;
  size_t loops = 0;     // over rows: the outermost ones of the consumer
  int64_t longest = 0;  // reduction over a row
};

bool IsAlone(Schedule& schedule, const std::vector<LoopRv>& loops,
             BlockRv block) {
  if (loops.empty() || PerfectLoops(schedule, loops) != loops.size()) {
    return false;
  }
  const auto innermost = schedule.Get(loops.back());
  const auto node = schedule.Get(block);
  return innermost.ok() && node.ok() && (*innermost)->body.get() == node->get();
}

// A block of a program, in a nest of its own, that no other rule took.
absl::StatusOr<bool> IsFree(Schedule schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  return (node->writes.size() == 1 ||
          schedule::MatchTuple(*node).has_value()) &&
         HasTrivialBindings(*node) && !IsTiled(*node) &&
         (!HasDataReuse(*node) || IsMatrixVector(*node)) &&
         IsAlone(schedule, loops.rvs, block) &&
         std::ranges::all_of(loops.views, [](const LoopView& loop) {
           return loop.kind == ir::ForKind::kSerial;
         });
}

// The loops of a block inside of those over rows.
absl::StatusOr<BlockLoops> OwnLoops(Schedule& schedule, BlockRv block,
                                    size_t rows) {
  TF_ASSIGN_OR_RETURN(BlockLoops loops, ViewLoops(schedule, block));
  loops.views.erase(loops.views.begin(),
                    loops.views.begin() + static_cast<ptrdiff_t>(rows));
  loops.rvs.erase(loops.rvs.begin(),
                  loops.rvs.begin() + static_cast<ptrdiff_t>(rows));
  return loops;
}

// Whether the block has few sums in a row, each a reduction that threads would
// not share: parts of one sum, which blocks of their own compute.
absl::StatusOr<bool> HasFewLongSums(Schedule& schedule, BlockRv block,
                                    size_t rows) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  if (!IsReduction(*node)) return false;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, OwnLoops(schedule, block, rows));
  int64_t results = 1, terms = 1;
  for (const LoopView& loop : loops.views) {
    (loop.sums ? terms : results) *= loop.extent;
  }
  return results > 1 && results < kMinSharedReduction && terms > results;
}

// Moves the producers of the consumer, and theirs, below its loop if that
// computes nothing twice.
absl::StatusOr<std::vector<BlockRv>> MoveProducers(const RuleContext& context,
                                                   Schedule& schedule,
                                                   LoopRv loop, size_t rows) {
  std::vector<BlockRv> moved;
  const ir::PrimFuncPtr function = schedule.module().Find(context.function);
  for (const std::string& name : TopBlockNames(*function)) {
    Schedule attempt = schedule;
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        attempt.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(const bool is_free, IsFree(attempt, block));
    if (!is_free) continue;
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, attempt.Get(block));
    if (std::ranges::any_of(node->writes, [&](const ir::BufferRegion& write) {
          return IsOutput(*function, write.buffer.get());
        })) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(const bool fits,
                        MoveWithoutRepeats(attempt, block, loop));
    if (!fits) continue;
    TF_ASSIGN_OR_RETURN(const bool long_sums,
                        HasFewLongSums(attempt, block, rows));
    if (long_sums) continue;
    schedule = std::move(attempt);
    moved.push_back(block);
  }
  return moved;
}

// The terms of a reduction over one row; 0: the block is none.
absl::StatusOr<int64_t> TermsOfRow(Schedule schedule, BlockRv block,
                                   size_t rows) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  if (!IsReduction(*node)) return 0;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, OwnLoops(schedule, block, rows));
  int64_t terms = 1;
  for (const LoopView& loop : loops.views) {
    if (loop.sums) terms *= loop.extent;
  }
  return terms;
}

// The terms of the block's sum that one load brings; 1: it adds nothing.
int64_t TermsOfLoad(const ir::BlockNode& node, const BlockLoops& own) {
  for (size_t i = own.size(); i-- > 0;) {
    if (!own[i].sums) continue;
    return TermWidth(node, node.iters[static_cast<size_t>(own[i].iters[0])]);
  }
  return 1;
}

// The blocks that are computed row by row with the consumer; nullopt if there
// is no reduction among them. Moves them below its loops.
absl::StatusOr<std::optional<RowBlocks>> FindRows(const RuleContext& context,
                                                  Schedule& schedule,
                                                  BlockRv consumer) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(consumer));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, consumer));
  size_t spatial = 0;
  while (spatial < loops.size() && !loops[spatial].reduces) ++spatial;
  const bool reduces = IsReduction(*node);
  if (std::any_of(loops.views.begin() + static_cast<ptrdiff_t>(spatial),
                  loops.views.end(),
                  [](const LoopView& loop) { return !loop.sums; })) {
    return std::optional<RowBlocks>();
  }
  // A reduction keeps all spatial loops outside; other consumers keep as many
  // as possible, such as all after the product of a matrix and a vector.
  for (size_t count = reduces ? spatial : loops.size(); count > 0; --count) {
    Schedule attempt = schedule;
    RowBlocks rows;
    rows.loops = count;
    TF_ASSIGN_OR_RETURN(
        rows.blocks,
        MoveProducers(context, attempt, loops.rvs[count - 1], count));
    rows.blocks.push_back(consumer);
    // Where sums are over columns, threads for the consumer's elements read
    // side by side.
    bool along = reduces;
    for (const BlockRv block : rows.blocks) {
      TF_ASSIGN_OR_RETURN(const int64_t terms,
                          TermsOfRow(attempt, block, count));
      rows.longest = std::max(rows.longest, terms);
      TF_ASSIGN_OR_RETURN(const ir::BlockPtr moved, attempt.Get(block));
      along |= ReadsRows(*moved);
    }
    if (rows.longest >= kMinSharedReduction && along) {
      schedule = std::move(attempt);
      return std::optional<RowBlocks>(std::move(rows));
    }
    if (reduces) break;
  }
  return std::optional<RowBlocks>();
}

// Splits the block's loops inside of those over rows for the threads: reduce
// loops if it has one result a row, else spatial ones.
absl::Status Distribute(Schedule& schedule, BlockRv block, size_t rows,
                        schedule::ExprRv threads) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops own, OwnLoops(schedule, block, rows));
  std::vector<LoopRv> spatial, reduce;
  int64_t results = 1;
  for (size_t i = 0; i < own.size(); ++i) {
    (own[i].sums ? reduce : spatial).push_back(own.rvs[i]);
    if (!own[i].sums) results *= own[i].extent;
  }
  const bool shares = !reduce.empty() && results == 1;
  const std::vector<LoopRv>& split = shares ? reduce : spatial;
  if (split.empty()) {
    // One result a row, which needs no loop.
    TF_ASSIGN_OR_RETURN(const LoopRv unit, schedule.AddUnitLoop(block));
    return schedule.Bind(unit, "threadIdx.x");
  }
  LoopRv fused = split[0];
  if (split.size() > 1) {
    TF_ASSIGN_OR_RETURN(fused, schedule.Fuse(split));
  }
  // What a thread accesses at once, split off first, so that all of it is
  // within the row, or nothing.
  const int64_t width = shares           ? TermsOfLoad(*node, own)
                        : reduce.empty() ? VectorWidth(*node)
                                         : 1;
  std::optional<LoopRv> side_by_side;
  if (width > 1) {
    TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                        schedule.Split(fused, {std::nullopt, width}));
    fused = parts[0];
    side_by_side = parts[1];
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> parts,
                      schedule.Split(fused, {std::nullopt, threads}));
  TF_RETURN_IF_ERROR(schedule.Bind(parts[1], "threadIdx.x"));
  if (!side_by_side) return absl::OkStatus();
  return shares ? schedule.Unroll(*side_by_side)
                : schedule.Vectorize(*side_by_side);
}

// Copies what several of the blocks read of a row into shared memory, once for
// all of them. NotFound: there is nothing, or it has no room.
absl::Status StageRows(Schedule& schedule, const target::GpuLimits& limits,
                       RowBlocks& rows) {
  std::vector<const ir::BufferNode*> written;
  std::map<const ir::BufferNode*, int> readers;
  for (const BlockRv block : rows.blocks) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    for (const ir::BufferRegion& write : node->writes) {
      written.push_back(write.buffer.get());
    }
    for (const ir::BufferRegion& read : node->reads) {
      ++readers[read.buffer.get()];
    }
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(rows.blocks.back()));
  std::vector<BlockRv> copies;
  int64_t bytes = 0;
  for (const BlockRv block : rows.blocks) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    for (size_t i = 0; i < node->reads.size(); ++i) {
      const ir::BufferNode& buffer = *node->reads[i].buffer;
      if (readers[&buffer] < 2 ||
          std::ranges::find(written, &buffer) != written.end()) {
        continue;
      }
      TF_ASSIGN_OR_RETURN(
          const BlockRv copy,
          schedule.CacheRead(block, static_cast<int>(i), "shared"));
      TF_RETURN_IF_ERROR(schedule.ComputeAt(copy, loops[rows.loops - 1],
                                            /*preserve_unit_loops=*/true));
      TF_ASSIGN_OR_RETURN(const BlockLoops own,
                          OwnLoops(schedule, copy, rows.loops));
      int64_t size = buffer.dtype.bytes();
      for (const LoopView& loop : own.views) size *= loop.extent;
      bytes += size;
      copies.push_back(copy);
      break;  // the block's other reads have new numbers
    }
  }
  if (copies.empty() || bytes > limits.block_shared / kSharedShare) {
    return absl::NotFoundError("no rows to stage");
  }
  rows.blocks.insert(rows.blocks.begin(), copies.begin(), copies.end());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountOfRows(Schedule& schedule, BlockRv consumer,
                                    size_t row_loops) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, consumer));
  int64_t count = 1;
  for (size_t i = 0; i < row_loops; ++i) count *= loops[i].extent;
  return count;
}

absl::StatusOr<Schedule> ComputeByRows(const RuleContext& context,
                                       Schedule schedule, BlockRv consumer,
                                       bool stage) {
  const target::GpuLimits& limits = *context.target.gpu;
  TF_ASSIGN_OR_RETURN(const bool is_free, IsFree(schedule, consumer));
  if (!is_free) return absl::NotFoundError("another rule took the block");
  TF_ASSIGN_OR_RETURN(std::optional<RowBlocks> rows,
                      FindRows(context, schedule, consumer));
  if (!rows) return absl::NotFoundError("no rows");
  if (stage) TF_RETURN_IF_ERROR(StageRows(schedule, limits, *rows));
  for (const BlockRv block : rows->blocks) {
    if (block.id == consumer.id) continue;
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    TF_ASSIGN_OR_RETURN(const BlockLoops own,
                        OwnLoops(schedule, block, rows->loops));
    int64_t elements = 1;
    for (const LoopView& loop : own.views) {
      if (!loop.sums) elements *= loop.extent;
    }
    for (size_t i = 0; i < node->writes.size(); ++i) {
      const ir::BufferNode& buffer = *node->writes[i].buffer;
      if (buffer.scope != "global" || elements * buffer.dtype.bytes() >
                                          limits.block_shared / kSharedShare) {
        continue;
      }
      TF_RETURN_IF_ERROR(
          schedule.SetScope(block, static_cast<int>(i), "shared"));
    }
  }
  int64_t terms = kTermsOfThread;
  for (const BlockRv block : rows->blocks) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    TF_ASSIGN_OR_RETURN(const BlockLoops own,
                        OwnLoops(schedule, block, rows->loops));
    terms = std::max(terms, TermsOfLoad(*node, own));
  }
  TF_ASSIGN_OR_RETURN(const int64_t count,
                      CountOfRows(schedule, consumer, rows->loops));
  const int64_t most =
      count < limits.multiprocessors ? limits.block_threads : kDefaultThreads;
  int64_t usual = limits.warp_lanes;
  while (usual * 2 * terms <= rows->longest && usual * 2 <= most) usual *= 2;
  TF_ASSIGN_OR_RETURN(
      const schedule::ExprRv threads,
      SampleOne(schedule, PowersOfTwo(limits.warp_lanes, limits.block_threads),
                usual));
  for (const BlockRv block : rows->blocks) {
    TF_RETURN_IF_ERROR(Distribute(schedule, block, rows->loops, threads));
  }
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(consumer));
  loops.resize(rows->loops);
  TF_RETURN_IF_ERROR(FuseAndBind(schedule, loops, "blockIdx.x").status());
  return schedule;
}

}  // namespace

// The threads of a block compute a row together: each reduces a part of it,
// and the parts are combined. Everything that is computed of a row, such as all
// steps of a softmax, becomes one kernel; what passes between the steps is in
// shared memory.
//
//   for i, k: M[i] = max(M[i], A[i, k])     for i (blockIdx.x):
//   for i, k: S[i] += exp(A[i, k] - M[i])     for k_0, k_1 (threadIdx.x): M
//   for i, j: B[i, j] = ... / S[i]        ->  for k_0, k_1 (threadIdx.x): S
//                                             for j_0, j_1 (threadIdx.x): B
//
// What several steps read may be staged in shared memory first. The last
// alternative leaves each reduction to one thread; it is the default
// only where the threads of a warp then read consecutive elements, and outputs
// are enough to fill the GPU or to keep sums short.
Alternatives ReduceAcrossThreads(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  auto by_rows = ComputeByRows(context, schedule, block, /*stage=*/false);
  if (!by_rows.ok()) return DoesNotApply();
  auto staged = ComputeByRows(context, schedule, block, /*stage=*/true);
  const int64_t outputs = ProductOf(*node, ir::IterType::kSpatial);
  const int64_t terms = ProductOf(*node, ir::IterType::kReduce);
  const bool serial_first =
      IsReduction(*node) && !ReadsRows(*node) &&
      (outputs >= kManyOutputs || outputs >= kManyForEachTerm * terms);
  std::vector<Schedule> results{*std::move(by_rows), std::move(unchanged)};
  if (serial_first) std::swap(results[0], results[1]);
  if (staged.ok()) results.insert(results.begin(), *std::move(staged));
  return results;
}

}  // namespace tilefarm::space
