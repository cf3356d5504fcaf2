#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// What a lane of a warp loads at least, so that the warp reads a whole line.
constexpr int64_t kLaneBytes = 4;
// Loads of a thread that are on their way together.
constexpr int64_t kLoadsAtOnce = 16;

// The loop over what lies side by side in the operand that is read most, and
// what the reduction has: columns, other outputs, and terms.
struct Columns {
  size_t loop = 0;
  size_t place = 0;  // of its variable among the spatial ones
  int64_t count = 1, others = 1, terms = 1;
  int64_t element_bytes = 1;
  int64_t vector = 1;  // elements that a lane may load at once
};

std::optional<Columns> FindColumns(const ir::BlockNode& node,
                                   const BlockLoops& loops) {
  const ir::BufferRegion* const operand = LargestRead(node);
  if (operand == nullptr || operand->region.empty()) return std::nullopt;
  std::optional<Columns> columns;
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto at = static_cast<ptrdiff_t>(loops[i].iters[0]);
    const ir::IterVar& iter = node.iters[static_cast<size_t>(at)];
    if (loops[i].reduces || loops[i].extent == 1 ||
        !ir::UsesVar(operand->region.back().min, iter.var.get())) {
      continue;
    }
    if (columns) return std::nullopt;
    columns = Columns{.loop = i, .count = loops[i].extent};
    columns->place = static_cast<size_t>(std::count_if(
        node.iters.begin(), node.iters.begin() + at,
        [](const ir::IterVar& v) { return v.type == ir::IterType::kSpatial; }));
    columns->element_bytes = operand->buffer->dtype.bytes();
    columns->vector = TermWidth(node, iter);
  }
  if (columns) {
    columns->others = ProductOf(node, ir::IterType::kSpatial) / columns->count;
    columns->terms = ProductOf(node, ir::IterType::kReduce);
  }
  return columns;
}

// The variable at this place among the spatial ones.
int SpatialIter(const ir::BlockNode& node, size_t place) {
  for (size_t i = 0; i < node.iters.size(); ++i) {
    if (node.iters[i].type == ir::IterType::kSpatial && place-- == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int64_t PowerFrom(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

// The elements that a lane loads by default.
int64_t UsualVector(const Columns& columns, int64_t most) {
  return std::min(most,
                  std::max<int64_t>(1, kLaneBytes / columns.element_bytes));
}

// How many lanes of a warp are along the columns, first the default: the most
// for which there are blocks for all multiprocessors, as long as each reads
// whole sectors.
std::vector<int64_t> LanesAlong(const Columns& columns,
                                const target::GpuLimits& limits) {
  const int64_t vector = UsualVector(columns, columns.vector);
  const int64_t widest = std::min<int64_t>(
      limits.warp_lanes, PowerFrom(CeilDiv(columns.count, vector)));
  int64_t lanes = widest;
  while (lanes * vector * columns.element_bytes > kSectorBytes &&
         columns.others * CeilDiv(columns.count, lanes * vector) <
             kEnoughBlocks) {
    lanes /= 2;
  }
  if (lanes == widest) return {widest};
  return {lanes, widest};
}

// How the threads of a block share columns: `lanes` have `vector` elements
// each, and `parts` of the terms have threads of their own. The latter two are
// drawn, as many as a block of these lanes can have.
struct Shape {
  int64_t lanes = 1;
  ExprRv vector, parts;
};

absl::StatusOr<Shape> SampleShape(Schedule& schedule,
                                  const target::GpuLimits& limits,
                                  const Columns& columns, int64_t lanes,
                                  int64_t most_vector) {
  const int64_t vector = UsualVector(columns, most_vector);
  const int64_t blocks =
      columns.others * CeilDiv(columns.count, lanes * vector);
  const int64_t most_threads =
      blocks < limits.multiprocessors ? limits.block_threads : kDefaultThreads;
  int64_t parts = 1;
  for (int64_t threads = 2 * lanes; threads <= most_threads; threads *= 2) {
    // Beyond the usual threads, each has as many terms as it loads at once.
    const int64_t terms =
        threads > kDefaultThreads ? kLoadsAtOnce : kTermsOfThread;
    if (2 * parts * terms > columns.terms) break;
    parts *= 2;
  }
  Shape shape{.lanes = lanes};
  TF_ASSIGN_OR_RETURN(shape.vector,
                      SampleOne(schedule, PowersOfTwo(1, most_vector), vector));
  TF_ASSIGN_OR_RETURN(
      shape.parts,
      SampleOne(schedule, PowersOfTwo(1, limits.block_threads / lanes), parts));
  return shape;
}

// The loop over columns as blocks, lanes, and what each lane has.
absl::StatusOr<std::vector<LoopRv>> SplitColumns(Schedule& schedule,
                                                 LoopRv columns,
                                                 const Shape& shape) {
  return schedule.Split(columns, {std::nullopt, shape.lanes, shape.vector});
}

absl::Status VectorizeLast(Schedule& schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(block));
  return schedule.Vectorize(loops.back());
}

// The block makes its sums in registers, which are stored below the loop.
absl::Status SumInRegisters(Schedule& schedule, BlockRv block, LoopRv loop) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  for (size_t i = 0; i < node->writes.size(); ++i) {
    TF_ASSIGN_OR_RETURN(
        const BlockRv copy,
        schedule.CacheWrite(block, static_cast<int>(i), "local"));
    TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(copy, loop,
                                                 /*preserve_unit_loops=*/true));
    TF_RETURN_IF_ERROR(VectorizeLast(schedule, copy));
  }
  return absl::OkStatus();
}

// What each thread adds up for itself, and leaves in shared memory. The first
// spatial variable of `partial` is that of the parts.
absl::Status AddInThreads(Schedule& schedule, BlockRv partial, LoopRv kernel,
                          const Columns& columns, const Shape& shape) {
  TF_RETURN_IF_ERROR(
      schedule.ComputeAt(partial, kernel, /*preserve_unit_loops=*/true));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(partial));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, partial));
  std::optional<LoopRv> parts, column;
  std::vector<LoopRv> terms;
  for (size_t i = 1; i < loops.size(); ++i) {
    if (loops[i].sums) {
      terms.push_back(loops.rvs[i]);
    } else if (loops[i].Moves(SpatialIter(*node, 0))) {
      parts = loops.rvs[i];
    } else if (loops[i].Moves(SpatialIter(*node, columns.place + 1))) {
      column = loops.rvs[i];
    }
  }
  if (!parts || !column || terms.empty()) {
    return absl::NotFoundError("loops that are not the block's own");
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> lanes,
                      SplitColumns(schedule, *column, shape));
  TF_RETURN_IF_ERROR(schedule.Bind(lanes[1], "threadIdx.x"));
  TF_RETURN_IF_ERROR(schedule.Bind(*parts, "threadIdx.y"));
  std::vector<LoopRv> order = {lanes[0], lanes[1]};
  order.insert(order.end(), terms.begin(), terms.end());
  order.push_back(lanes[2]);
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  TF_RETURN_IF_ERROR(schedule.Vectorize(lanes[2]));
  for (size_t i = 0; i < node->writes.size(); ++i) {
    TF_RETURN_IF_ERROR(
        schedule.SetScope(partial, static_cast<int>(i), "shared"));
  }
  return SumInRegisters(schedule, partial, lanes[1]);
}

// The sums of these parts, by one thread for each lane, with what they are for.
absl::Status AddParts(Schedule& schedule, BlockRv block, LoopRv lanes,
                      LoopRv parts, LoopRv vector,
                      std::optional<BlockRv> consumer) {
  TF_RETURN_IF_ERROR(schedule.Reorder({parts, vector}));
  TF_RETURN_IF_ERROR(schedule.Vectorize(vector));
  TF_RETURN_IF_ERROR(schedule.Bind(lanes, "threadIdx.x"));
  TF_ASSIGN_OR_RETURN(const LoopRv unit, schedule.AddUnitLoop(lanes));
  TF_RETURN_IF_ERROR(schedule.Bind(unit, "threadIdx.y"));
  Schedule attempt = schedule;
  if (!consumer ||
      !attempt.ReverseComputeAt(*consumer, lanes, /*preserve_unit_loops=*/true)
           .ok()) {
    return SumInRegisters(schedule, block, lanes);
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, attempt.Get(block));
  for (size_t i = 0; i < node->writes.size(); ++i) {
    TF_RETURN_IF_ERROR(attempt.SetScope(block, static_cast<int>(i), "local"));
  }
  TF_RETURN_IF_ERROR(VectorizeLast(attempt, *consumer));
  schedule = std::move(attempt);
  return absl::OkStatus();
}

absl::StatusOr<Schedule> ByColumns(const RuleContext& context, RuleSite site,
                                   const Columns& columns, int64_t lanes) {
  auto& [unchanged, schedule, block, node] = site;
  TF_RETURN_IF_ERROR(InlineProducers(schedule, block, IsCheapLoad));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  std::vector<LoopRv> order, units, terms;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].reduces) {
      // Loops of one iteration are left out: their variables would have no
      // loop of their own then.
      (loops[i].extent > 1 ? terms : units).push_back(loops.rvs[i]);
    } else if (i != columns.loop) {
      order.push_back(loops.rvs[i]);
    }
  }
  order.push_back(loops.rvs[columns.loop]);
  order.insert(order.end(), units.begin(), units.end());
  order.insert(order.end(), terms.begin(), terms.end());
  std::optional<BlockRv> consumer;
  int64_t most_vector = columns.vector;
  if (!IsOutput(*schedule.module().Find(context.function),
                node->writes[0].buffer.get())) {
    TF_ASSIGN_OR_RETURN(consumer, FusibleConsumer(schedule, block));
  }
  if (consumer) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr reader, schedule.Get(*consumer));
    most_vector = std::min(most_vector, VectorWidth(*reader));
  }
  TF_ASSIGN_OR_RETURN(
      const Shape shape,
      SampleShape(schedule, *context.target.gpu, columns, lanes, most_vector));
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  LoopRv all_terms = terms[0];
  if (terms.size() > 1) {
    TF_ASSIGN_OR_RETURN(all_terms, schedule.Fuse(terms));
  }
  // Threads side by side add terms that lie side by side, too.
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> halves,
                      schedule.Split(all_terms, {std::nullopt, shape.parts}));
  TF_ASSIGN_OR_RETURN(const BlockRv partial,
                      schedule.Rfactor(halves[1], /*factor_axis=*/0));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr sums, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops own, ViewLoops(schedule, block));
  std::vector<LoopRv> outer;
  std::optional<LoopRv> column, parts;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].sums) {
      parts = own.rvs[i];
    } else if (own[i].Moves(SpatialIter(*sums, columns.place))) {
      column = own.rvs[i];
    } else {
      outer.push_back(own.rvs[i]);
    }
  }
  if (!column || !parts) return absl::NotFoundError("no loops of its own");
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> split,
                      SplitColumns(schedule, *column, shape));
  outer.push_back(split[0]);
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> kernel,
                      FuseAndBind(schedule, outer, "blockIdx.x"));
  TF_RETURN_IF_ERROR(
      AddInThreads(schedule, partial, kernel[0], columns, shape));
  TF_RETURN_IF_ERROR(
      AddParts(schedule, block, split[1], *parts, split[2], consumer));
  return std::move(schedule);
}

}  // namespace

// A reduction of columns, such as a sum over the first dimension or the product
// of a vector with a matrix: the lanes of a warp read side by side, and several
// threads add parts of a column, which one of them adds up.
//
//   for j, k: B[j] += A[k, j]
//   for j: C[j] = relu(B[j])
//   ->  for j_0 (blockIdx.x):
//         for k_1 (threadIdx.y), j_1 (threadIdx.x):
//           for k_0: part += A[k_0 k_1, j]
//           B_rf[k_1, j] = part
//         for j_1 (threadIdx.x):
//           for k_1: sum += B_rf[k_1, j]
//           C[j] = relu(sum)
//
// By default not of outputs that fill the GPU with a thread each.
Alternatives ReduceColumns(const RuleContext& context, RuleSite site) {
  const ir::BlockNode& node = *site.node;
  if (!IsReduction(node) || IsTiled(node) || !HasTrivialBindings(node) ||
      (HasDataReuse(node) && !IsMatrixVector(node)) || ReadsRows(node) ||
      ProductOf(node, ir::IterType::kReduce) < kMinSharedReduction) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(const BlockLoops loops,
                      ViewLoops(site.schedule, site.block));
  if (PerfectLoops(site.schedule, loops.rvs) != loops.size()) {
    return DoesNotApply();
  }
  const std::optional<Columns> columns = FindColumns(node, loops);
  if (!columns) return DoesNotApply();
  std::vector<Schedule> results;
  for (const int64_t lanes : LanesAlong(*columns, *context.target.gpu)) {
    auto by_columns = ByColumns(context, site, *columns, lanes);
    if (by_columns.ok()) results.push_back(*std::move(by_columns));
  }
  if (results.empty()) return DoesNotApply();
  const bool fills = columns->count * columns->others >= kManyOutputs;
  results.insert(fills ? results.begin() : results.end(),
                 std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
