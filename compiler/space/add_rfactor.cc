#include <algorithm>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// A reduction with at least this many outputs per core has enough parallelism
// and vector work without rfactor.
constexpr int64_t kEnoughOutputsPerCore = 64;
constexpr int64_t kMinReduction = 16;
// Limits: lanes of partial results; of dot products, outputs per tile, and
// rows. With more rows, packing an operand (multi_level_tiling) is better.
constexpr int64_t kMaxLanes = 64;
constexpr int64_t kMaxOutputs = 16;
constexpr int64_t kMaxRows = 8;

// Samples a tile in two that need not divide the loop. The sketch is made with
// one that does, because what can be moved below a loop with a rest is less.
absl::StatusOr<std::vector<schedule::ExprRv>> SampleTwo(
    schedule::Schedule& schedule, schedule::LoopRv loop, int64_t most) {
  TF_ASSIGN_OR_RETURN(const ir::ForPtr node, schedule.Get(loop));
  const int64_t extent = ir::AsInt(node->extent).value_or(1);
  int64_t inner = std::min(most, extent);
  while (extent % inner != 0) --inner;
  return schedule.SampleTile(loop, 2, static_cast<int>(most),
                             std::vector<int64_t>{extent / inner, inner});
}

// Whether every operand is contiguous along the only reduce variable and few
// outputs share one: y[j] += x[k] * W[j, k]. Vectors along j would gather.
bool IsDotProduct(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || !IsReduction(block) || !HasTrivialBindings(block)) {
    return false;
  }
  const ir::VarNode* reduce = nullptr;
  int64_t rows = 1;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const ir::IterVar& iter = block.iters[i];
    if (iter.type == ir::IterType::kReduce) {
      if (reduce != nullptr) return false;
      reduce = iter.var.get();
    } else if (i + 2 < block.iters.size()) {
      rows *= IterExtent(iter);
    }
  }
  bool along = false;
  bool otherwise = false;
  ir::PostOrderExprs(store->value, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer == store->buffer) return;
    (ir::LastIndex(load->indices).get() == reduce ? along : otherwise) = true;
  });
  return along && !otherwise && rows <= kMaxRows &&
         block.iters.back().type == ir::IterType::kReduce &&
         block.iters.size() >= 2;
}

// Computes several dot products at once, each in vectors of partial results:
//
//   for i, j, k: y[j] += x[k] * W[j, k]
//   ->  for i, j0:
//         for k0, j1, k1: y_rf[j0 j1, k1] += ...   j1, k1 in registers
//         for j1, k1:     y[j0 j1] += y_rf[j0 j1, k1]
absl::StatusOr<schedule::Schedule> FactorDotProducts(
    schedule::Schedule schedule, schedule::BlockRv block) {
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  const size_t j = loops.size() - 2, k = loops.size() - 1;
  TF_ASSIGN_OR_RETURN(auto lanes, SampleTwo(schedule, loops[k], kMaxLanes));
  TF_ASSIGN_OR_RETURN(auto inner,
                      schedule.Split(loops[k], {lanes[0], lanes[1]}));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(
      schedule::BlockRv partial,
      schedule.Rfactor(inner[1], node->writes[0].buffer->ndim()));
  TF_ASSIGN_OR_RETURN(loops, schedule.GetLoops(partial));
  TF_ASSIGN_OR_RETURN(auto tile, SampleTwo(schedule, loops[j], kMaxOutputs));
  TF_ASSIGN_OR_RETURN(auto outputs,
                      schedule.Split(loops[j], {tile[0], tile[1]}));
  TF_RETURN_IF_ERROR(
      schedule.Reorder({outputs[0], loops[k], outputs[1], loops[k + 1]}));
  TF_RETURN_IF_ERROR(
      schedule.Annotate(partial, kTilingStructure, ir::Attr("SRS")));
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(block, outputs[0],
                                               /*preserve_unit_loops=*/true));
  return schedule;
}

}  // namespace

// A reduction with few outputs and a long reduce loop may also compute partial
// results: the fused reduce loop is split in two, and either half becomes a
// spatial loop (rfactor). The first alternative is the unchanged program.
//
//   for b, i, j: C[b] += A[b, i, j]
//   ->  for b, r0, r1: C_rf[b, r1] += A[b, r0 .. r1]
//       for b, r1:     C[b] += C_rf[b, r1]
Alternatives AddRfactor(const RuleContext& context, RuleSite site) {
  const auto& [unchanged, schedule, block, node] = site;
  std::vector<schedule::Schedule> results{unchanged};
  if (HasDataReuse(*node) && IsDotProduct(*node) &&
      ProductOf(*node, ir::IterType::kReduce) >= kMinReduction) {
    auto factored = FactorDotProducts(schedule, block);
    if (factored.ok()) results.push_back(*std::move(factored));
  }
  if (!IsReduction(*node) || !HasTrivialBindings(*node) ||
      HasDataReuse(*node) ||
      ProductOf(*node, ir::IterType::kReduce) < kMinReduction ||
      InTiledNest(*schedule.module().Find(context.function), *node)) {
    return results;
  }
  // Vector lanes along the reduction are worth trying even with many outputs,
  // which are rarely contiguous in the input.
  for (const bool inner : {false, true}) {
    if (!inner && ProductOf(*node, ir::IterType::kSpatial) >=
                      kEnoughOutputsPerCore * context.target.cores) {
      continue;
    }
    schedule::Schedule attempt = schedule;
    if (!FactorReduction(attempt, block, inner).ok()) continue;
    results.push_back(std::move(attempt));
  }
  return results;
}

absl::StatusOr<schedule::BlockRv> FactorReduction(schedule::Schedule& schedule,
                                                  schedule::BlockRv block,
                                                  bool inner) {
  std::vector<schedule::LoopRv> reduce_loops, order;
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  for (size_t i = 0; i < loops.size(); ++i) {
    (loops[i].sums ? reduce_loops : order).push_back(loops.rvs[i]);
  }
  order.insert(order.end(), reduce_loops.begin(), reduce_loops.end());
  if (order.size() > 1) TF_RETURN_IF_ERROR(schedule.Reorder(order));
  schedule::LoopRv fused = reduce_loops[0];
  if (reduce_loops.size() > 1) {
    TF_ASSIGN_OR_RETURN(fused, schedule.Fuse(reduce_loops));
  }
  TF_ASSIGN_OR_RETURN(const auto factors,
                      SampleTwo(schedule, fused, kMaxLanes));
  TF_ASSIGN_OR_RETURN(const auto halves,
                      schedule.Split(fused, {factors[0], factors[1]}));
  // The partial results of one output are contiguous, for vector loads.
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  return schedule.Rfactor(halves[inner ? 1 : 0],
                          node->writes[0].buffer->ndim());
}

}  // namespace tilefarm::space
