#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
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

namespace {

// The extent of the innermost loop around the reader and the block variable it
// walks: the width of a panel.
struct Panel {
  const ir::VarNode* var;
  int64_t width;
};
absl::StatusOr<std::optional<Panel>> FindPanel(schedule::Schedule schedule,
                                               const std::string& function,
                                               const ir::BlockNode& reader) {
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      schedule.GetBlock(reader.name, function));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  if (loops.empty()) return std::optional<Panel>();
  TF_ASSIGN_OR_RETURN(ir::ForPtr inner, schedule.Get(loops.back()));
  const std::optional<int64_t> width = ir::AsInt(inner->extent);
  for (const ir::IterVar& iter : reader.iters) {
    if (width && ir::UsesVar(iter.binding, inner->var.get())) {
      return std::optional<Panel>(Panel{iter.var.get(), *width});
    }
  }
  return std::optional<Panel>();
}

// "lambda i0, i1: (i1 // 16, i0, i1 % 16)" for dimension 1 in panels of 16.
std::string PanelMap(int ndim, int dim, int64_t width, int64_t extent) {
  std::string args, middle;
  for (int i = 0; i < ndim; ++i) {
    absl::StrAppend(&args, i == 0 ? "" : ", ", "i", i);
    if (i != dim) absl::StrAppend(&middle, "i", i, ", ");
  }
  std::string outer, inner = absl::StrCat("i", dim);
  if (width < extent) {
    outer = absl::StrCat("i", dim, " // ", width, ", ");
    inner = absl::StrCat("i", dim, " % ", width);
  }
  return absl::StrCat("lambda ", args, ": (", outer, middle, inner, ")");
}

// The innermost loop of the copy, cut where panels end, so that it writes one
// panel with unit steps.
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
// becomes panel number and place in the panel, and the reduction runs along a
// panel with unit steps of its width.
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
    TF_ASSIGN_OR_RETURN(std::optional<Panel> panel,
                        FindPanel(schedule, function, *reader));
    if (!panel || panel->width < 2) continue;
    int dim = -1;
    for (const ir::BufferRegion& read : reader->reads) {
      if (read.buffer != buffer) continue;
      for (size_t i = 0; i < read.region.size(); ++i) {
        if (read.region[i].min.get() == panel->var) dim = static_cast<int>(i);
      }
    }
    if (dim < 0 || buffer->shape[dim] % panel->width != 0) continue;
    // Already in this order: the last dimension, one panel.
    if (dim + 1 == buffer->ndim() && panel->width == buffer->shape[dim]) {
      continue;
    }
    // Not every map is legal for every buffer; without it the copy keeps its
    // row-major order.
    schedule::Schedule attempt = schedule;
    if (attempt
            .TransformLayout(
                block, /*read=*/false, 0,
                PanelMap(buffer->ndim(), dim, panel->width, buffer->shape[dim]))
            .ok() &&
        SplitAtPanels(attempt, block, panel->width).ok()) {
      schedule = std::move(attempt);
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
