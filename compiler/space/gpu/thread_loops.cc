// What several rules of GPUs do with loops.
#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::LoopRv;
using schedule::Schedule;

// The most elements of an access along the variable; 0: it does not depend on
// it.
int64_t WidthOf(const ir::BlockNode& block, const ir::Buffer& buffer,
                const std::vector<ir::Expr>& indices, const ir::IterVar& iter) {
  const bool depends = std::ranges::any_of(indices, [&](const ir::Expr& index) {
    return ir::UsesVar(index, iter.var.get());
  });
  if (!depends) return 0;
  const std::optional<std::vector<int64_t>> strides =
      ir::PaddedStrides(*buffer);
  if (!strides) return 1;
  arith::Analyzer analyzer;
  for (const ir::IterVar& other : block.iters) {
    analyzer.Bind(other.var, other.dom);
  }
  // The element of the buffer's memory at which the access starts.
  ir::Expr start = ir::IntConst(0) - iter.var;
  for (size_t d = 0; d < indices.size(); ++d) {
    start = start + indices[d] * ir::IntConst((*strides)[d]);
  }
  start = analyzer.Simplify(start);
  if (ir::UsesVar(start, iter.var.get())) return 1;
  int64_t width = kVectorBytes / std::max(buffer->dtype.bytes(), 1);
  while (width > 1 && !arith::Divisible(analyzer, start, width)) width /= 2;
  return width;
}

}  // namespace

int64_t VectorWidth(const ir::BlockNode& block, bool loads_only) {
  if (block.iters.empty()) return 1;
  const ir::IterVar& last = block.iters.back();
  if (last.type != ir::IterType::kSpatial || !ir::IsConstInt(last.dom.min, 0)) {
    return 1;
  }
  int64_t width = kVectorBytes;
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr) return 1;
  const auto narrow = [&](const ir::Buffer& buffer,
                          const std::vector<ir::Expr>& indices) {
    const int64_t own = WidthOf(block, buffer, indices, last);
    if (own > 0) width = std::min(width, own);
  };
  if (WidthOf(block, store->buffer, store->indices, last) == 0) return 1;
  if (!loads_only) narrow(store->buffer, store->indices);
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    if (const auto* load = ir::As<ir::LoadNode>(expr)) {
      narrow(load->buffer, load->indices);
    } else if (const auto* call = ir::As<ir::CallNode>(expr)) {
      // Lanes may take different ways.
      if (call->op == ir::Intrinsic::kIfThenElse &&
          ir::UsesVar(call->args[0], last.var.get())) {
        width = 1;
      }
    }
  });
  const int64_t extent = ir::AsInt(last.dom.extent).value_or(1);
  while (width > 1 && extent % width != 0) width /= 2;
  return width;
}

absl::StatusOr<std::vector<LoopRv>> FuseAndBind(
    Schedule& schedule, const std::vector<LoopRv>& loops, const char* axis) {
  if (loops.empty()) return loops;
  LoopRv loop = loops[0];
  if (loops.size() > 1) {
    TF_ASSIGN_OR_RETURN(loop, schedule.Fuse(loops));
  }
  TF_RETURN_IF_ERROR(schedule.Bind(loop, axis));
  return std::vector{loop};
}

absl::StatusOr<schedule::ExprRv> SampleOne(Schedule& schedule,
                                           const std::vector<int64_t>& values,
                                           int64_t first) {
  const auto at = std::ranges::find(values, first);
  const int64_t decision = at == values.end() ? 0 : at - values.begin();
  return schedule.SampleCategorical(
      values,
      std::vector<double>(values.size(),
                          1.0 / static_cast<double>(values.size())),
      decision);
}

size_t PerfectLoops(Schedule& schedule, const std::vector<LoopRv>& loops) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    const auto loop = schedule.Get(loops[i]), next = schedule.Get(loops[i + 1]);
    if (!loop.ok() || !next.ok() || (*loop)->body.get() != next->get()) {
      return i + 1;
    }
  }
  return loops.size();
}

absl::StatusOr<bool> HasPlainLoops(RuleSite& site) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops,
                      ViewLoops(site.schedule, site.block));
  return loops.size() == site.node->iters.size() &&
         std::ranges::all_of(loops.views, [](const LoopView& loop) {
           return loop.iters.size() == 1 && loop.kind == ir::ForKind::kSerial;
         });
}

}  // namespace tilefarm::space
