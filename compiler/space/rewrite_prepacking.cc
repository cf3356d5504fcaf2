#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/panels.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

std::vector<ReadIndex> ReadIndices(const ir::BlockNode& reader,
                                   const ir::BufferNode* buffer) {
  std::vector<ReadIndex> indices(buffer->shape.size());
  for (const ir::BufferRegion& read : reader.reads) {
    if (read.buffer.get() != buffer) continue;
    for (size_t d = 0; d < indices.size(); ++d) {
      for (size_t i = 0; i < reader.iters.size(); ++i) {
        const ir::IterVar& iter = reader.iters[i];
        if (!ir::UsesVar(read.region[d].min, iter.var.get())) continue;
        indices[d].last_iter = static_cast<int>(i);
        indices[d].reduces |= iter.type != ir::IterType::kSpatial;
        if (read.region[d].min.get() == iter.var.get()) {
          indices[d].only_iter = static_cast<int>(i);
        }
      }
    }
  }
  return indices;
}

namespace {

// Reorders the copy's loops as the dimensions of the layout that it writes.
absl::Status OrderCopy(schedule::Schedule& schedule, schedule::BlockRv block,
                       const Panels& panels) {
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  std::vector<schedule::LoopRv> order;
  std::vector<schedule::LoopRv> parts;
  for (const PanelDim& dim : panels.dims) {
    const schedule::LoopRv loop = loops.at(static_cast<size_t>(dim.dim));
    if (dim.part == PanelDim::kWhole) {
      order.push_back(loop);
    } else if (dim.part == PanelDim::kPanel) {
      TF_ASSIGN_OR_RETURN(parts,
                          schedule.Split(loop, {std::nullopt, panels.width}));
      order.push_back(parts[0]);
    } else {
      order.push_back(parts[1]);
    }
  }
  return order.size() > 1 ? schedule.Reorder(order) : absl::OkStatus();
}

}  // namespace

absl::Status RewritePrepacking(schedule::Schedule& schedule,
                               const std::string& function,
                               const ir::BlockNode& copy) {
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  const ir::Buffer& buffer = copy.writes[0].buffer;
  const ir::BlockPtr reader = FindReader(*program, buffer.get());
  // rewrite_tensorize chooses the layout of an intrinsic's operands.
  if (reader == nullptr || reader->annotations.contains(kAutoTensorize)) {
    return absl::OkStatus();
  }
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(const std::vector<LoopView> loops,
                      LoopsAround(schedule, function, *reader));
  const Panels panels = PanelsAheadOfTime(
      buffer->shape, ReadIndices(*reader, buffer.get()), loops);
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(copy.name, function));
  // If the map is illegal, the copy keeps its row-major order.
  if (attempt
          .TransformLayout(block, /*read=*/false, 0,
                           panels.IndexMap(buffer->ndim()))
          .ok() &&
      OrderCopy(attempt, block, panels).ok()) {
    schedule = std::move(attempt);
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
