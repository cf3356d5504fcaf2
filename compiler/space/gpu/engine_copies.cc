#include "compiler/space/gpu/engine_copies.h"

#include "base/status_macros.h"
#include "compiler/arith/box_copy.h"
#include "compiler/arith/index_math.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using ir::Expr;
using schedule::BlockRv;
using schedule::Schedule;

// A copy of elements, or zeros outside of the tensor.
bool IsPaddedCopy(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  return ReadsGlobalMemory(block) && store != nullptr &&
         ir::AsCopiedLoad(store->value).has_value();
}

}  // namespace

std::optional<std::pair<size_t, size_t>> LastTwo(
    const ir::BlockNode& block, const std::vector<Expr>& indices) {
  const size_t dims = indices.size();
  if (dims < 2) return std::nullopt;
  const auto row = VariableOf(block, indices[dims - 2]);
  const auto column = VariableOf(block, indices[dims - 1]);
  if (!row || !column) return std::nullopt;
  return std::pair{*row, *column};
}

absl::StatusOr<ir::BlockPtr> CopyFromTensor(Schedule& schedule, BlockRv copy) {
  return InlineAllProducers(schedule, copy, IsPaddedCopy);
}

bool CanCopyTiles(const ir::BlockNode& block, int64_t step, bool across) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  const auto copied =
      store == nullptr ? std::nullopt : ir::AsCopiedLoad(store->value);
  if (!copied || !copied->load->buffer->is_dense() ||
      copied->load->buffer->shape.back() * copied->load->buffer->dtype.bytes() %
              ir::kTensorRowBytes !=
          0) {
    return false;
  }
  const auto place = LastTwo(block, store->indices);
  if (!place) return false;
  const auto& [row_number, column_number] = *place;
  // Along depth, what begins at a multiple of the step.
  arith::IndexMath math;
  const ir::Var part = ir::MakeVar("part"), along = ir::MakeVar("along");
  ir::VarMap in_parts;
  Expr exists = ir::BoolConst(true);  // in the last part
  for (const ir::IterVar& iter : block.iters) {
    math.Bind(iter.var.get(), 0, IterExtent(iter) - 1);
  }
  const auto bind = [&](size_t number, bool is_depth) {
    const ir::IterVar& iter = block.iters[number];
    const int64_t extent = IterExtent(iter);
    if (!is_depth) return iter.var;
    math.Bind(part.get(), 0, CeilDiv(extent, step) - 1);
    math.Bind(along.get(), 0, step - 1);
    const Expr depth = Expr(part) * step + Expr(along);
    in_parts[iter.var.get()] = depth;
    if (extent % step != 0) exists = ir::LT(depth, ir::IntConst(extent));
    return along;
  };
  const ir::Var row = bind(row_number, across);
  const ir::Var column = bind(column_number, !across);
  arith::CopiedTile tile;
  tile.row = row;
  tile.column = column;
  tile.rows = ir::kMaxBoxExtent;
  if (!across) {
    tile.is_place = [&](const Expr& atom) {
      return ir::UsesVar(atom, part.get());
    };
  }
  const Expr value = ir::Substitute(store->value, in_parts);
  auto in_tile = ir::AsCopiedLoad(value);
  if (!in_tile) return false;
  // What the engine brings instead must be zeros outside of the tensor.
  if (!ir::IsConstInt(exists, 1)) {
    in_tile->condition = in_tile->condition == nullptr
                             ? exists
                             : ir::And(in_tile->condition, exists);
  }
  tile.element = *in_tile;
  return arith::FindBoxCopy(math, tile).has_value();
}

std::optional<bool> TilesEndWithTensor(const ir::BlockNode& block, int64_t most,
                                       bool across) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  const auto copied =
      store == nullptr ? std::nullopt : ir::AsCopiedLoad(store->value);
  const auto place = copied ? LastTwo(block, store->indices) : std::nullopt;
  if (!place) return std::nullopt;
  const ir::IterVar& iter = block.iters[across ? place->second : place->first];
  const int64_t extent = IterExtent(iter);
  if (extent % most == 0) return true;
  arith::IndexMath math;
  const std::vector<Expr>& indices = copied->load->indices;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!ir::UsesVar(indices[d], iter.var.get())) continue;
    const auto offset = math.Difference(indices[d], iter.var);
    if (!offset) return std::nullopt;
    return *offset + extent == copied->load->buffer->shape[d];
  }
  return std::nullopt;
}

}  // namespace tilefarm::space
