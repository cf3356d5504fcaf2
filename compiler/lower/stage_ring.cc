#include "compiler/lower/stage_ring.h"

#include <utility>

#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::lower {

using ir::Expr;
using ir::MachineOp;
using ir::Stmt;

Stmt RingLoop(const ir::ForNode& loop, Stmt body) {
  ir::AttrMap annotations = loop.annotations;
  annotations.erase(ir::kWarpgroupStages);
  annotations.erase(ir::kBoxStores);
  if (loop.for_kind == ir::ForKind::kSerial) {
    annotations[ir::kUnrollExplicit] = 0;
  }
  return std::make_shared<const ir::ForNode>(
      loop.var, loop.min, loop.extent, loop.for_kind, std::move(body),
      std::move(annotations), loop.thread_tag);
}

StageRing::StageRing(int64_t stages, bool once)
    : stages_(stages),
      once_(once),
      barriers_(ir::MakeBuffer("barriers", ir::DataType::Int(64),
                               {2 * stages + (once ? 1 : 0)}, "shared")) {}

int64_t StageRing::RowElements(const WarpgroupOperand& operand) {
  return ir::kBoxRowBytes / operand.tensor->dtype.bytes();
}

namespace {

ir::Buffer TilesOf(const WarpgroupOperand& operand, int64_t stages) {
  const int64_t row = StageRing::RowElements(operand);
  return ir::MakeBuffer(operand.tile->name, operand.tile->dtype,
                        {stages, operand.columns / row, operand.rows, row},
                        "shared");
}

}  // namespace

ir::Buffer StageRing::Tiles(const WarpgroupOperand& operand) const {
  return TilesOf(operand, stages_);
}
ir::Buffer StageRing::TileOnce(const WarpgroupOperand& operand) {
  return TilesOf(operand, 1);
}

Expr StageRing::Stage(const Expr& iteration) const {
  return ir::FloorMod(iteration, ir::IntConst(stages_));
}

Expr StageRing::Full(const Expr& stage) const {
  return ir::Load(barriers_, {stage});
}
Expr StageRing::Empty(const Expr& stage) const {
  return ir::Load(barriers_, {stage + stages_});
}
Expr StageRing::Parity(const Expr& iteration) const {
  return ir::FloorMod(ir::FloorDiv(iteration, ir::IntConst(stages_)),
                      ir::IntConst(2));
}

Expr StageRing::Once() const {
  return ir::Load(barriers_, {ir::IntConst(2 * stages_)});
}

void StageRing::CopyTiles(const std::vector<Fetched>& fetched,
                          const Expr& stage, const Expr& barrier,
                          std::vector<Stmt>& out) {
  int64_t bytes = 0;
  for (const Fetched& one : fetched) {
    bytes += one.operand->rows * one.operand->columns *
             one.operand->tensor->dtype.bytes();
  }
  out.push_back(
      Effect(MachineOp::kBarrierExpect, {barrier, ir::IntConst(bytes)}));
  for (const auto& [operand, tiles] : fetched) {
    const int64_t row = RowElements(*operand);
    ir::TensorMap map = operand->copy.map;
    map.box[operand->copy.row_dim] = operand->rows;
    map.box.back() = row;
    for (int64_t panel = 0; panel < operand->columns / row; ++panel) {
      auto origin = operand->copy.origin;
      origin.back() = origin.back() + panel * row;
      const Expr zero = ir::IntConst(0);
      const Expr to = ir::Load(tiles, {stage, ir::IntConst(panel), zero, zero});
      out.push_back(Effect(
          map.spatial > 0
              ? ir::CopyWindows(map, origin, operand->copy.offsets, to, barrier)
              : ir::CopyBox(map, {origin.begin(), origin.end()}, to, barrier)));
    }
  }
}

Stmt StageRing::Fetch(const Expr& iteration,
                      const std::vector<Fetched>& fetched) const {
  const Expr stage = Stage(iteration);
  // The stages are empty at first: the wait for the phase before.
  std::vector<Stmt> body = {Effect(
      MachineOp::kBarrierWait,
      {Empty(stage), ir::FloorMod(Parity(iteration) + 1, ir::IntConst(2))})};
  CopyTiles(fetched, stage, Full(stage), body);
  return ir::MakeSeq(std::move(body));
}

Stmt StageRing::FetchOnce(const std::vector<Fetched>& fetched) const {
  std::vector<Stmt> body;
  CopyTiles(fetched, ir::IntConst(0), Once(), body);
  return ir::MakeSeq(std::move(body));
}

Stmt StageRing::WaitForOnce() const {
  return Effect(MachineOp::kBarrierWait, {Once(), ir::IntConst(0)});
}

Stmt StageRing::WaitForTiles(const Expr& iteration) const {
  return Effect(MachineOp::kBarrierWait,
                {Full(Stage(iteration)), Parity(iteration)});
}

Stmt StageRing::Release(const Expr& stage, const Expr& condition) const {
  return Effect(MachineOp::kBarrierArrive, {Empty(stage), condition});
}

Stmt StageRing::Init(const Expr& is_first_thread, int64_t warps) const {
  std::vector<Stmt> inits;
  if (once_) {
    inits.push_back(Effect(MachineOp::kBarrierInit, {Once(), ir::IntConst(1)}));
  }
  for (int64_t i = 0; i < stages_; ++i) {
    inits.push_back(Effect(MachineOp::kBarrierInit,
                           {Full(ir::IntConst(i)), ir::IntConst(1)}));
    inits.push_back(Effect(MachineOp::kBarrierInit,
                           {Empty(ir::IntConst(i)), ir::IntConst(warps)}));
  }
  return ir::MakeIf(is_first_thread, ir::MakeSeq(std::move(inits)));
}

}  // namespace tilefarm::lower
