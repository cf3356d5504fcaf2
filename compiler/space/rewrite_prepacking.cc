#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

std::vector<PrepackIndex> IndicesOf(const ir::BlockNode& reader,
                                    const ir::Buffer& buffer) {
  std::vector<PrepackIndex> indices(buffer->shape.size());
  for (size_t d = 0; d < indices.size(); ++d) {
    indices[d].extent = buffer->shape[d];
  }
  for (const ir::BufferRegion& read : reader.reads) {
    if (read.buffer != buffer) continue;
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

absl::StatusOr<std::vector<PrepackLoop>> LoopsAround(
    schedule::Schedule schedule, const std::string& function,
    const ir::BlockNode& reader) {
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      schedule.GetBlock(reader.name, function));
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  std::vector<PrepackLoop> result;
  for (const schedule::LoopRv& loop : loops) {
    TF_ASSIGN_OR_RETURN(ir::ForPtr node, schedule.Get(loop));
    PrepackLoop& made = result.emplace_back();
    made.extent = ir::AsInt(node->extent).value_or(1);
    for (size_t i = 0; i < reader.iters.size(); ++i) {
      const ir::IterVar& iter = reader.iters[i];
      if (!ir::UsesVar(iter.binding, node->var.get())) continue;
      made.iters.push_back(static_cast<int>(i));
      made.reduces |= iter.type != ir::IterType::kSpatial;
    }
  }
  return result;
}

// "lambda i0, i1: (i1 // 16, i0, i1 % 16)".
std::string MapText(const PrepackLayout& layout, size_t dims) {
  std::vector<std::string> inputs, outputs;
  for (size_t d = 0; d < dims; ++d) inputs.push_back(absl::StrCat("i", d));
  for (const PrepackDim& dim : layout.dims) {
    const char* const operation =
        dim.part == PrepackDim::kPanel ? " // " : " % ";
    outputs.push_back(
        dim.part == PrepackDim::kWhole
            ? absl::StrCat("i", dim.dim)
            : absl::StrCat("i", dim.dim, operation, layout.width));
  }
  return absl::StrCat("lambda ", absl::StrJoin(inputs, ", "), ": (",
                      absl::StrJoin(outputs, ", "), ")");
}

// The loops of the copy, one a dimension, in the order of what it writes.
absl::Status OrderCopy(schedule::Schedule& schedule, schedule::BlockRv block,
                       const PrepackLayout& layout) {
  TF_ASSIGN_OR_RETURN(std::vector<schedule::LoopRv> loops,
                      schedule.GetLoops(block));
  std::vector<schedule::LoopRv> order;
  std::vector<schedule::LoopRv> parts;
  for (const PrepackDim& dim : layout.dims) {
    const schedule::LoopRv loop = loops.at(static_cast<size_t>(dim.dim));
    if (dim.part == PrepackDim::kWhole) {
      order.push_back(loop);
    } else if (dim.part == PrepackDim::kPanel) {
      TF_ASSIGN_OR_RETURN(parts,
                          schedule.Split(loop, {std::nullopt, layout.width}));
      order.push_back(parts[0]);
    } else {
      order.push_back(parts[1]);
    }
  }
  return order.size() > 1 ? schedule.Reorder(order) : absl::OkStatus();
}

}  // namespace

PrepackLayout LayOutAhead(const std::vector<PrepackIndex>& indices,
                          const std::vector<PrepackLoop>& loops) {
  PrepackLayout layout;
  int panel = -1;
  for (size_t l = loops.size(); l-- > 0 && panel < 0;) {
    if (loops[l].extent < 2) continue;
    if (loops[l].reduces) break;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].only_iter >= 0 && !indices[d].reduces &&
          std::find(loops[l].iters.begin(), loops[l].iters.end(),
                    indices[d].only_iter) != loops[l].iters.end()) {
        panel = static_cast<int>(d);
        layout.width = loops[l].extent;
      }
    }
  }
  std::vector<int> reduced;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].reduces) {
      reduced.push_back(static_cast<int>(d));
    } else if (static_cast<int>(d) != panel) {
      layout.dims.push_back({static_cast<int>(d), PrepackDim::kWhole});
    }
  }
  std::stable_sort(reduced.begin(), reduced.end(), [&](int a, int b) {
    return indices[static_cast<size_t>(a)].last_iter <
           indices[static_cast<size_t>(b)].last_iter;
  });
  const bool is_cut =
      panel >= 0 && layout.width < indices[static_cast<size_t>(panel)].extent;
  if (is_cut) layout.dims.push_back({panel, PrepackDim::kPanel});
  for (const int dim : reduced) layout.dims.push_back({dim});
  if (panel >= 0) {
    layout.dims.push_back(
        {panel, is_cut ? PrepackDim::kWithin : PrepackDim::kWhole});
  }
  return layout;
}

absl::Status RewritePrepacking(schedule::Schedule& schedule,
                               const std::string& function,
                               const ir::BlockNode& copy) {
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  const ir::Buffer& buffer = copy.writes[0].buffer;
  const ir::BlockPtr reader = FindReader(*program, buffer.get());
  // What an intrinsic reads lies as that reads it (rewrite_tensorize).
  if (reader == nullptr || reader->annotations.contains(kAutoTensorize)) {
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(const std::vector<PrepackLoop> loops,
                      LoopsAround(schedule, function, *reader));
  const PrepackLayout layout = LayOutAhead(IndicesOf(*reader, buffer), loops);
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(copy.name, function));
  // Where the map is not legal the copy keeps its row-major order.
  if (attempt
          .TransformLayout(block, /*read=*/false, 0,
                           MapText(layout, buffer->shape.size()))
          .ok() &&
      OrderCopy(attempt, block, layout).ok()) {
    schedule = std::move(attempt);
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
