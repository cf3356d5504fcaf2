#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// Reductions with at least this many outputs a core have parallel and vector
// work enough without factoring.
constexpr int64_t kEnoughOutputsPerCore = 64;
constexpr int64_t kMinReduction = 16;

}  // namespace

// A reduction with few outputs and a long reduce loop may also be computed in
// partial results: the fused reduce loop is split in two and either half
// becomes a spatial loop (rfactor). Keeps the plain program as a first way.
//
//   for b, i, j: C[b] += A[b, i, j]
//   ->  for b, r0, r1: C_rf[b, r1] += A[b, r0 .. r1]
//       for b, r1:     C[b] += C_rf[b, r1]
Alternatives AddRfactor(const RuleContext& context, schedule::Schedule schedule,
                        const std::string& name) {
  std::vector<schedule::Schedule> results{schedule};
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      schedule.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  if (!IsReduction(*node) || !HasTrivialBindings(*node) ||
      HasDataReuse(*node) ||
      ProductOf(*node, ir::IterType::kReduce) < kMinReduction) {
    return results;
  }
  // Vector lanes along the reduction pay even with many outputs, since the
  // outputs are rarely contiguous in the input.
  for (const bool inner : {false, true}) {
    if (!inner && ProductOf(*node, ir::IterType::kSpatial) >=
                      kEnoughOutputsPerCore * context.target.cores) {
      continue;
    }
    schedule::Schedule attempt = results[0];
    TF_ASSIGN_OR_RETURN(schedule::BlockRv reduction,
                        attempt.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                        attempt.GetLoops(reduction));
    std::vector<schedule::LoopRv> reduce_loops;
    std::vector<schedule::LoopRv> order;
    for (const schedule::LoopRv& loop : loops) {
      TF_ASSIGN_OR_RETURN(ir::ForPtr for_node, attempt.Get(loop));
      bool reduces = false;
      for (const ir::IterVar& iter : node->iters) {
        reduces |=
            iter.binding == for_node->var && iter.type == ir::IterType::kReduce;
      }
      (reduces ? reduce_loops : order).push_back(loop);
    }
    order.insert(order.end(), reduce_loops.begin(), reduce_loops.end());
    if (order.size() > 1 && !attempt.Reorder(order).ok()) continue;
    schedule::LoopRv fused = reduce_loops[0];
    if (reduce_loops.size() > 1) {
      auto status = attempt.Fuse(reduce_loops);
      if (!status.ok()) continue;
      fused = *status;
    }
    auto factors = attempt.SamplePerfectTile(fused, 2, 64);
    if (!factors.ok()) continue;
    auto halves = attempt.Split(fused, {(*factors)[0], (*factors)[1]});
    if (!halves.ok()) continue;
    // The partial results of one output lie side by side, for vectors.
    const int last_axis = node->writes[0].buffer->ndim();
    auto partial = attempt.Rfactor((*halves)[inner ? 1 : 0], last_axis);
    if (!partial.ok()) continue;
    results.push_back(std::move(attempt));
  }
  return results;
}

}  // namespace tilefarm::space
