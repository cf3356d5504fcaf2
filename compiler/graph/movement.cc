#include "compiler/graph/movement.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::Expr;

arith::Analyzer BoundsOf(const Movement& movement) {
  arith::Analyzer analyzer;
  for (size_t d = 0; d < movement.vars.size(); ++d) {
    analyzer.Bind(movement.vars[d], 0, movement.result_shape[d]);
  }
  return analyzer;
}

int64_t Volume(const std::vector<int64_t>& shape) {
  int64_t volume = 1;
  for (const int64_t extent : shape) volume *= extent;
  return volume;
}

// The position of an element in row-major order.
template <typename Index>
Expr Position(const std::vector<Index>& indices,
              const std::vector<int64_t>& shape) {
  Expr position = ir::IntConst(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    position = position * shape[d] + indices[d];
  }
  return position;
}

}  // namespace

std::optional<Movement> MovementOf(const ir::PrimFunc& function) {
  if (function.params.size() != 2 || !PatternOf(function).injective) {
    return std::nullopt;
  }
  const auto nests = NestsOf(function);
  if (!nests) return std::nullopt;
  const Nest& nest = (*nests)[0];
  const auto* load = As<ir::LoadNode>(nest.store->value);
  if (load == nullptr || load->buffer != function.params[0]) {
    return std::nullopt;
  }
  // Indices that are read from memory are no map.
  for (const Expr& index : load->indices) {
    bool loads = false;
    ir::PostOrderExprs(index, [&](const Expr& part) {
      loads |= part->kind == ir::ExprKind::kLoad;
    });
    if (loads) return std::nullopt;
  }
  Movement movement{.input_shape = load->buffer->shape,
                    .result_shape = nest.store->buffer->shape,
                    .indices = load->indices};
  for (const ir::IterVar& iter : nest.block->iters) {
    movement.vars.push_back(iter.var);
  }
  return movement;
}

Movement Compose(const Movement& first, const Movement& second) {
  arith::Analyzer analyzer = BoundsOf(second);
  ir::VarMap values;
  for (size_t d = 0; d < first.vars.size(); ++d) {
    values[first.vars[d].get()] = second.indices[d];
  }
  Movement both{.input_shape = first.input_shape,
                .result_shape = second.result_shape,
                .vars = second.vars};
  for (const Expr& index : first.indices) {
    both.indices.push_back(analyzer.Simplify(ir::Substitute(index, values)));
  }
  return both;
}

Movement ReshapeMovement(std::vector<int64_t> from, std::vector<int64_t> to,
                         std::vector<ir::Var> vars) {
  Movement movement{.input_shape = std::move(from),
                    .result_shape = std::move(to),
                    .vars = std::move(vars)};
  arith::Analyzer analyzer = BoundsOf(movement);
  Expr position = Position(movement.vars, movement.result_shape);
  movement.indices.resize(movement.input_shape.size());
  for (size_t d = movement.input_shape.size(); d-- > 0;) {
    const Expr extent = ir::IntConst(movement.input_shape[d]);
    movement.indices[d] = analyzer.Simplify(ir::FloorMod(position, extent));
    position = ir::FloorDiv(position, extent);
  }
  return movement;
}

absl::StatusOr<Call> MakeRearrange(Graph& graph, ValueId input,
                                   const Movement& movement, ValueId output) {
  return MakeCall(
      graph, "rearrange", {}, {input},
      [&](const Tensors& in) {
        return te::Compute("T_rearrange", movement.result_shape,
                           [&](const te::Indices& i) {
                             ir::VarMap values;
                             for (size_t d = 0; d < i.size(); ++d) {
                               values[movement.vars[d].get()] = i[d];
                             }
                             te::Indices at;
                             for (const Expr& index : movement.indices) {
                               at.push_back(ir::Substitute(index, values));
                             }
                             return te::Body(in[0](at));
                           });
      },
      output);
}

bool IsPlainIndex(const Expr& index) {
  bool plain = true;
  ir::PostOrderExprs(index, [&](const Expr& part) {
    const auto* binary = As<ir::BinaryNode>(part);
    plain &= binary != nullptr ? binary->op == ir::BinaryOp::kAdd ||
                                     binary->op == ir::BinaryOp::kSub ||
                                     binary->op == ir::BinaryOp::kMul
                               : part->kind == ir::ExprKind::kVar ||
                                     part->kind == ir::ExprKind::kIntConst;
  });
  return plain;
}

bool HasPlainIndices(const Movement& movement) {
  return std::ranges::all_of(movement.indices, IsPlainIndex);
}

bool KeepsBytes(const Movement& movement) {
  if (Volume(movement.input_shape) != Volume(movement.result_shape)) {
    return false;
  }
  return BoundsOf(movement).ProveEqual(
      Position(movement.indices, movement.input_shape),
      Position(movement.vars, movement.result_shape));
}

bool IsIdentity(const Movement& movement) {
  return movement.input_shape == movement.result_shape && KeepsBytes(movement);
}

}  // namespace tilefarm::graph
