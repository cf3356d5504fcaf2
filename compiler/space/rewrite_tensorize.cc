#include <algorithm>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/panels.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

const std::string* IntrinOf(const ir::BlockNode& block) {
  const auto found = block.annotations.find(kAutoTensorize);
  return found == block.annotations.end() ? nullptr : found->second.AsString();
}

// The blocks to tensorize. Initialisations that were split off have the
// annotation, too, but no reduce variable.
std::vector<ir::BlockPtr> BlocksToTensorize(const ir::PrimFunc& function) {
  std::vector<ir::BlockPtr> blocks;
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    if (IntrinOf(*block) != nullptr && schedule::HasReduceIter(block.get())) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

absl::StatusOr<schedule::ProductShape> ShapeOf(const ir::BlockNode& block) {
  TF_ASSIGN_OR_RETURN(const schedule::TensorIntrin* intrin,
                      schedule::FindTensorIntrin(*IntrinOf(block)));
  const auto shape = schedule::ShapeOf(*intrin);
  if (shape) return *shape;
  return absl::FailedPreconditionError(
      absl::StrCat("intrinsic ", intrin->name, " is no dot product"));
}

// Dimensions of the packed operand, in the reader's indices.
struct PackedDims {
  int lane = -1;
  int group = -1;
};

// Orders the copy's loops as the panels, one register at a time: reads the rows
// of a group one after the other and writes them interleaved.
absl::Status OrderCopy(Schedule& schedule, BlockRv copy, int ndim,
                       const PackedDims& dims, const Panels& panels) {
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(copy));
  loops.erase(loops.begin(), loops.end() - ndim);
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> lanes,
                      schedule.Split(loops[static_cast<size_t>(dims.lane)],
                                     {std::nullopt, panels.width / panels.lanes,
                                      panels.lanes}));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> groups,
                      schedule.Split(loops[static_cast<size_t>(dims.group)],
                                     {std::nullopt, panels.group}));
  std::vector<LoopRv> order = {lanes[0]};
  for (int i = 0; i < ndim; ++i) {
    if (i != dims.lane && i != dims.group) {
      order.push_back(loops[static_cast<size_t>(i)]);
    }
  }
  order.insert(order.end(), {groups[0], lanes[1], groups[1], lanes[2]});
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  TF_RETURN_IF_ERROR(schedule.Unroll(lanes[1]));
  TF_RETURN_IF_ERROR(schedule.Unroll(groups[1]));
  return schedule.Vectorize(lanes[2]);
}

absl::Status PackForIntrin(Schedule& schedule, const std::string& function,
                           const ir::BlockNode& reader) {
  TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(reader.name, function));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  TF_ASSIGN_OR_RETURN(const schedule::ProductShape shape, ShapeOf(reader));
  if (loops.size() <= shape.loops()) return absl::OkStatus();
  const LoopView& lanes = loops[loops.size() - 2];
  const LoopView& group = loops.views.back();
  if (lanes.iters.empty() || group.iters.empty()) return absl::OkStatus();
  const auto dim_of = [&](const ir::Buffer& buffer, const LoopView& loop) {
    const size_t iter = static_cast<size_t>(loop.iters[0]);
    return DimIndexedBy(reader, buffer.get(), reader.iters[iter].var.get());
  };
  // Panels of a matrix unit are one register wide.
  const int64_t vectors = !shape.is_tile() ? loops[loops.size() - 3].extent : 1;
  for (const ir::BlockPtr& copy :
       AllBlocks(*schedule.module().Find(function))) {
    const bool in_call = copy->annotations.contains(kPack);
    if (!in_call && !copy->annotations.contains(ir::kPrepack)) continue;
    const ir::Buffer& buffer = copy->writes[0].buffer;
    const bool read =
        std::ranges::any_of(reader.reads, [&](const ir::BufferRegion& region) {
          return region.buffer == buffer;
        });
    if (!read) continue;
    const PackedDims dims = {dim_of(buffer, lanes), dim_of(buffer, group)};
    if (dims.lane < 0 || dims.group < 0) continue;
    TF_ASSIGN_OR_RETURN(BlockRv copy_rv,
                        schedule.GetBlock(copy->name, function));
    if (in_call) TF_RETURN_IF_ERROR(schedule.Unannotate(copy_rv, kPack));
    const Panels panels =
        InstructionPanels(buffer->shape, dims.lane, dims.group, vectors,
                          lanes.extent, shape.group);
    TF_RETURN_IF_ERROR(schedule.TransformLayout(
        copy_rv, /*read=*/false, 0, panels.IndexMap(buffer->ndim())));
    TF_RETURN_IF_ERROR(
        OrderCopy(schedule, copy_rv, buffer->ndim(), dims, panels));
  }
  return absl::OkStatus();
}

// Unrolls the register tile, which is between the innermost reduce loop and the
// intrinsic's loops. Also vectorises the lanes, so that an initialisation split
// off later writes vectors.
absl::Status UnrollTile(Schedule& schedule, const std::string& function,
                        const ir::BlockNode& tiled) {
  TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(tiled.name, function));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  TF_ASSIGN_OR_RETURN(const schedule::ProductShape shape, ShapeOf(tiled));
  const size_t outer = loops.size() - shape.loops();
  for (size_t i = FindInstructionTile(std::span(loops.views).first(outer));
       i < outer; ++i) {
    if (loops[i].extent > 1) TF_RETURN_IF_ERROR(schedule.Unroll(loops.rvs[i]));
  }
  return schedule.Vectorize(loops.rvs[loops.size() - 2]);
}

}  // namespace

size_t IntrinsicLoops(const ir::BlockNode& block) {
  if (IntrinOf(block) == nullptr) return 0;
  const absl::StatusOr<schedule::ProductShape> shape = ShapeOf(block);
  return shape.ok() ? shape->loops() : 0;
}

bool IntrinsicsFit(schedule::Schedule schedule) {
  const auto stands_alone = [&](const std::string& function,
                                const ir::BlockNode& node) {
    const size_t own = IntrinsicLoops(node);
    const auto block = schedule.GetBlock(node.name, function);
    if (own == 0 || !block.ok()) return false;
    const auto loops = schedule.GetLoops(*block);
    if (!loops.ok() || loops->size() < own) return false;
    const auto outer = schedule.Get((*loops)[loops->size() - own]);
    if (!outer.ok()) return false;
    int blocks = 0;
    ir::PreOrder((*outer)->body, [&](const ir::Stmt& stmt) {
      blocks += stmt->kind == ir::StmtKind::kBlock;
      return true;
    });
    // An inlined zero padding is a call.
    bool calls = false;
    ir::PostOrderExprs(node.body, [&](const ir::Expr& expr) {
      calls |= expr->kind == ir::ExprKind::kCall;
    });
    return blocks == 1 && !calls;
  };
  for (const ir::PrimFuncPtr& function : schedule.module().functions) {
    for (const ir::BlockPtr& node : BlocksToTensorize(*function)) {
      if (!stands_alone(function->name, *node)) return false;
    }
  }
  return true;
}

absl::Status RewriteTensorizeLayout(schedule::Schedule& schedule,
                                    const std::string& function) {
  for (const ir::BlockPtr& block :
       BlocksToTensorize(*schedule.module().Find(function))) {
    TF_RETURN_IF_ERROR(PackForIntrin(schedule, function, *block));
    TF_RETURN_IF_ERROR(UnrollTile(schedule, function, *block));
  }
  return absl::OkStatus();
}

absl::Status RewriteTensorize(schedule::Schedule& schedule,
                              const std::string& function) {
  for (const ir::BlockPtr& node :
       BlocksToTensorize(*schedule.module().Find(function))) {
    const std::string intrin = *IntrinOf(*node);
    TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(node->name, function));
    TF_ASSIGN_OR_RETURN(const schedule::ProductShape shape, ShapeOf(*node));
    TF_RETURN_IF_ERROR(schedule.Unannotate(block, kAutoTensorize));
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
    TF_RETURN_IF_ERROR(
        schedule.Tensorize(loops[loops.size() - shape.loops()], intrin));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
