#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/block_analysis.h"
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

// The blocks to tensorize; initialisations of their own have the annotation,
// too, but reduce nothing.
std::vector<ir::BlockPtr> BlocksToTensorize(const ir::PrimFunc& function) {
  std::vector<ir::BlockPtr> blocks;
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    const bool reduces = std::any_of(
        block->iters.begin(), block->iters.end(), [](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce;
        });
    if (IntrinOf(*block) != nullptr && reduces) blocks.push_back(block);
  }
  return blocks;
}

absl::StatusOr<int64_t> ExtentOf(const Schedule& schedule, LoopRv loop) {
  TF_ASSIGN_OR_RETURN(ir::ForPtr node, schedule.Get(loop));
  return ir::AsInt(node->extent).value_or(0);
}

// What the postprocs ask of an intrinsic.
struct Shape {
  size_t loops = 2;   // its own, innermost in the nest: rows, lanes, group
  int64_t group = 0;  // numbers side by side in the packed operand
};
absl::StatusOr<Shape> ShapeOf(const ir::BlockNode& block) {
  TF_ASSIGN_OR_RETURN(const schedule::TensorIntrin* intrin,
                      schedule::FindTensorIntrin(*IntrinOf(block)));
  const auto& params = intrin->description->params;
  if (params.size() != 3) {
    return absl::FailedPreconditionError(
        absl::StrCat("intrinsic ", intrin->name, " is no dot product"));
  }
  return Shape{static_cast<size_t>(params[2]->ndim()) + 1,
               params[1]->shape.back()};
}

// Dimensions of the packed operand, as the reader indexes it.
struct PackedDims {
  int lane = -1;
  int group = -1;
};
PackedDims FindDims(const ir::BlockNode& reader, const ir::Buffer& buffer,
                    const ir::VarNode* lane_loop,
                    const ir::VarNode* group_loop) {
  PackedDims dims;
  const auto iter_of = [&](const ir::VarNode* loop) -> const ir::VarNode* {
    for (const ir::IterVar& iter : reader.iters) {
      if (ir::UsesVar(iter.binding, loop)) return iter.var.get();
    }
    return nullptr;
  };
  const ir::VarNode* lane = iter_of(lane_loop);
  const ir::VarNode* group = iter_of(group_loop);
  ir::PostOrderExprs(reader.body, [&](const ir::Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    if (load == nullptr || load->buffer != buffer) return;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      if (load->indices[i].get() == lane) dims.lane = static_cast<int>(i);
      if (load->indices[i].get() == group) dims.group = static_cast<int>(i);
    }
  });
  return dims;
}

// The shape of a panel.
struct Panel {
  int64_t vectors, lanes, group;
};

// "lambda i0, i1: (i1 // 64, i0 // 4, i1 % 64 // 16, i1 % 16, i0 % 4)" for
// lanes in dimension 1 and groups in dimension 0: panels, what else there is,
// groups, registers, lanes, numbers of a group.
std::string PanelMap(const ir::BufferNode& buffer, const PackedDims& dims,
                     const Panel& panel) {
  const int64_t width = panel.vectors * panel.lanes;
  std::string args, others;
  for (int i = 0; i < buffer.ndim(); ++i) {
    absl::StrAppend(&args, i == 0 ? "" : ", ", "i", i);
    if (i != dims.lane && i != dims.group) {
      absl::StrAppend(&others, "i", i, ", ");
    }
  }
  const std::string lane = absl::StrCat("i", dims.lane);
  std::string outer, registers;
  std::string within = lane;
  if (width < buffer.shape[static_cast<size_t>(dims.lane)]) {
    outer = absl::StrCat(lane, " // ", width, ", ");
    within = absl::StrCat(lane, " % ", width);
  }
  if (panel.vectors > 1) {
    registers = absl::StrCat(within, " // ", panel.lanes, ", ");
  }
  return absl::StrCat("lambda ", args, ": (", outer, others, "i", dims.group,
                      " // ", panel.group, ", ", registers, lane, " % ",
                      panel.lanes, ", i", dims.group, " % ", panel.group, ")");
}

// The copy's loops in the order of the panels, a register at a time: the rows
// of a group are read side by side and written interleaved.
absl::Status OrderCopy(Schedule& schedule, BlockRv copy, int ndim,
                       const PackedDims& dims, const Panel& panel) {
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(copy));
  loops.erase(loops.begin(), loops.end() - ndim);
  TF_ASSIGN_OR_RETURN(
      std::vector<LoopRv> lanes,
      schedule.Split(loops[static_cast<size_t>(dims.lane)],
                     {std::nullopt, panel.vectors, panel.lanes}));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> groups,
                      schedule.Split(loops[static_cast<size_t>(dims.group)],
                                     {std::nullopt, panel.group}));
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
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
  TF_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(reader));
  if (loops.size() <= shape.loops) return absl::OkStatus();
  const LoopRv group_loop = loops.back();
  const LoopRv lane_loop = loops[loops.size() - 2];
  Panel panel;
  panel.group = shape.group;
  TF_ASSIGN_OR_RETURN(panel.lanes, ExtentOf(schedule, lane_loop));
  // A matrix unit's panels are one register wide.
  panel.vectors = 1;
  if (shape.loops == 2) {
    TF_ASSIGN_OR_RETURN(panel.vectors,
                        ExtentOf(schedule, loops[loops.size() - 3]));
  }
  TF_ASSIGN_OR_RETURN(ir::ForPtr lane_node, schedule.Get(lane_loop));
  TF_ASSIGN_OR_RETURN(ir::ForPtr group_node, schedule.Get(group_loop));
  for (const ir::BlockPtr& copy :
       AllBlocks(*schedule.module().Find(function))) {
    const bool in_call = copy->annotations.contains(kPack);
    if (!in_call && !copy->annotations.contains(ir::kPrepack)) continue;
    const ir::Buffer& buffer = copy->writes[0].buffer;
    const bool read = std::any_of(reader.reads.begin(), reader.reads.end(),
                                  [&](const ir::BufferRegion& region) {
                                    return region.buffer == buffer;
                                  });
    if (!read) continue;
    const PackedDims dims =
        FindDims(reader, buffer, lane_node->var.get(), group_node->var.get());
    if (dims.lane < 0 || dims.group < 0) continue;
    TF_ASSIGN_OR_RETURN(BlockRv copy_rv,
                        schedule.GetBlock(copy->name, function));
    if (in_call) TF_RETURN_IF_ERROR(schedule.Unannotate(copy_rv, kPack));
    TF_RETURN_IF_ERROR(schedule.TransformLayout(
        copy_rv, /*read=*/false, 0, PanelMap(*buffer, dims, panel)));
    TF_RETURN_IF_ERROR(
        OrderCopy(schedule, copy_rv, buffer->ndim(), dims, panel));
  }
  return absl::OkStatus();
}

// The register tile: what lies between the innermost reduce loop and the
// intrinsic's own. The lanes are a vector from here on, so that an
// initialisation split off writes vectors.
absl::Status UnrollTile(Schedule& schedule, const std::string& function,
                        const ir::BlockNode& tiled) {
  TF_ASSIGN_OR_RETURN(BlockRv block, schedule.GetBlock(tiled.name, function));
  TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
  TF_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(tiled));
  int64_t statements = 1;
  size_t first = loops.size() - shape.loops;
  for (; first > 0; --first) {
    TF_ASSIGN_OR_RETURN(ir::ForPtr loop, schedule.Get(loops[first - 1]));
    const bool reduces = std::any_of(
        tiled.iters.begin(), tiled.iters.end(), [&](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce &&
                 ir::UsesVar(iter.binding, loop->var.get());
        });
    if (reduces) break;
    statements *= ir::AsInt(loop->extent).value_or(1);
    if (statements > kMaxTileStatements) break;
  }
  for (size_t i = first; i + shape.loops < loops.size(); ++i) {
    TF_ASSIGN_OR_RETURN(const int64_t extent, ExtentOf(schedule, loops[i]));
    if (extent > 1) TF_RETURN_IF_ERROR(schedule.Unroll(loops[i]));
  }
  return schedule.Vectorize(loops[loops.size() - 2]);
}

}  // namespace

size_t IntrinsicLoops(const ir::BlockNode& block) {
  if (IntrinOf(block) == nullptr) return 0;
  const absl::StatusOr<Shape> shape = ShapeOf(block);
  return shape.ok() ? shape->loops : 0;
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
    // Padding that is inlined is a call.
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
    TF_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(*node));
    TF_RETURN_IF_ERROR(schedule.Unannotate(block, kAutoTensorize));
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, schedule.GetLoops(block));
    TF_RETURN_IF_ERROR(
        schedule.Tensorize(loops[loops.size() - shape.loops], intrin));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
