#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/panels.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

ir::BlockPtr FindReader(const ir::PrimFunc& function,
                        const ir::BufferNode* buffer) {
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    for (const ir::BufferRegion& read : block->reads) {
      if (read.buffer.get() == buffer) return block;
    }
  }
  return nullptr;
}

int DimIndexedBy(const ir::BlockNode& reader, const ir::BufferNode* buffer,
                 const ir::VarNode* var) {
  int dim = -1;
  ir::PostOrderExprs(reader.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer.get() != buffer) return;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (load->indices[i].get() == var) dim = static_cast<int>(i);
    }
  });
  return dim;
}

namespace {

// Panels that are as wide as the innermost loop around the reader.
absl::StatusOr<Panels> FindPanels(const schedule::Schedule& schedule,
                                  const std::string& function,
                                  const ir::BlockNode& reader,
                                  const ir::BufferNode& buffer) {
  TF_ASSIGN_OR_RETURN(const std::vector<LoopView> loops,
                      LoopsAround(schedule, function, reader));
  if (loops.empty() || loops.back().iters.empty()) return Panels();
  const ir::IterVar& iter =
      reader.iters[static_cast<size_t>(loops.back().iters[0])];
  return PanelsOf(buffer.shape, DimIndexedBy(reader, &buffer, iter.var.get()),
                  loops.back().extent);
}

// Splits the innermost loop of the copy at panels, so that it writes one panel
// with unit stride.
absl::Status SplitAtPanels(schedule::Schedule& schedule,
                           schedule::BlockRv block, int64_t width) {
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  TF_ASSIGN_OR_RETURN(ir::ForPtr inner, schedule.Get(loops.back()));
  const int64_t extent = ir::AsInt(inner->extent).value_or(0);
  if (extent <= width || extent % width != 0) return absl::OkStatus();
  return schedule.Split(loops.back(), {std::nullopt, width}).status();
}

}  // namespace

// Lays a packed copy out in panels: the dimension that the register tile walks
// is split into panel number and position in the panel, and the reduction runs
// along a panel with a stride of its width.
absl::Status RewritePacking(schedule::Schedule& schedule,
                            const std::string& function) {
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  for (const ir::BlockPtr& copy : AllBlocks(*program)) {
    if (copy->annotations.contains(ir::kPrepack)) {
      TF_RETURN_IF_ERROR(RewritePrepacking(schedule, function, *copy));
    }
    if (!copy->annotations.contains(kPack)) continue;
    TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                        schedule.GetBlock(copy->name, function));
    TF_RETURN_IF_ERROR(schedule.Unannotate(block, kPack));
    const ir::Buffer& buffer = copy->writes[0].buffer;
    const ir::BlockPtr reader = FindReader(*program, buffer.get());
    if (reader == nullptr) continue;
    TF_ASSIGN_OR_RETURN(const Panels panels,
                        FindPanels(schedule, function, *reader, *buffer));
    if (panels.empty()) continue;
    // If the map is illegal here, the copy keeps its row-major order.
    schedule::Schedule attempt = schedule;
    if (attempt
            .TransformLayout(block, /*read=*/false, 0,
                             panels.IndexMap(buffer->ndim()))
            .ok() &&
        SplitAtPanels(attempt, block, panels.width).ok()) {
      schedule = std::move(attempt);
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
