// Fuses what moves the operands and the result of a chain of products, such as
// attention, into it: the heads that a model takes out of the rows of one
// product, and puts back into rows.
//
//   q[h, i, d] = x[i, h * 64 + d]        ->  z = one call of x; in it, k is
//   k[h, d, j] = x[j, 768 + h * 64 + d]      [h, j, d]: its rows are rows of x
//   v[h, j, d] = x[j, 1536 + h * 64 + d]
//   y = attention(q, k, v)
//   z[i, h, d] = y[h, i, d]
//
// For targets whose kernels copy the rows of operands anyway. What also
// computes something stays apart: such a copy would not be asynchronous.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/merge_calls.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/reorder_dims.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

bool IsChainOfProducts(const ir::PrimFunc& function) {
  const auto nests = NestsOf(function);
  return nests && std::ranges::count_if(*nests, [](const Nest& nest) {
                    return SummedProductOf(nest).has_value();
                  }) > 1;
}

// Whether each element of the result is one of the input, in another order of
// dimensions.
bool IsTransposition(const Movement& movement) {
  std::set<const ir::ExprNode*> used;
  for (size_t d = 0; d < movement.indices.size(); ++d) {
    const ir::Expr& index = movement.indices[d];
    if (movement.input_shape[d] == 1 && ir::IsConstInt(index, 0)) continue;
    if (As<ir::VarNode>(index) == nullptr || !used.insert(index.get()).second) {
      return false;
    }
  }
  const auto elements = [](const std::vector<int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                           std::multiplies<>());
  };
  return elements(movement.input_shape) == elements(movement.result_shape);
}

// The order of the result's dimensions in which the one along which neighbours
// read neighbours is the last; nullopt: it is so, or there is none.
std::optional<DimOrder> RowsLast(const Movement& movement) {
  const size_t dims = movement.vars.size();
  for (size_t row = 0; row < dims && !movement.indices.empty(); ++row) {
    const auto uses = [&](const ir::Expr& index) {
      return ir::UsesVar(index, movement.vars[row].get());
    };
    if (!StepsWith(movement.indices.back(), movement.vars[row]) ||
        std::ranges::count_if(movement.indices, uses) != 1) {
      continue;
    }
    if (row + 1 == dims) break;
    DimOrder order(dims);
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(row),
                order.begin() + static_cast<std::ptrdiff_t>(row) + 1,
                order.end());
    return order;
  }
  return std::nullopt;
}

// The call that moves elements to an operand, from where `movement` reads them.
struct Mover {
  int call = 0;
  ValueId source = 0;
  Movement movement;
};

class MovementFuser {
 public:
  explicit MovementFuser(Graph& graph)
      : graph_(graph), uses_(graph), taken_(graph.calls.size()) {}

  // The calls that become one with the chain, ascending; empty: none. Their
  // operands get the order of dimensions in which their rows are rows.
  absl::StatusOr<std::vector<int>> GroupOf(int chain) {
    std::vector<int> group{chain};
    if (CallAt(chain).outputs.size() != 1 ||
        !IsChainOfProducts(*CallAt(chain).function)) {
      return std::vector<int>();
    }
    const std::vector<ValueId> inputs = CallAt(chain).inputs;
    for (const ValueId input : std::set(inputs.begin(), inputs.end())) {
      std::optional<Mover> mover = MoverOf(input, chain);
      if (!mover) continue;
      group.push_back(mover->call);
      TF_RETURN_IF_ERROR(PutRowsLast(*std::move(mover), chain));
    }
    if (const auto reader = uses_.OnlyReader(CallAt(chain).outputs[0]);
        reader && MovesResult(*reader)) {
      group.push_back(*reader);
    }
    if (group.size() < 2) return std::vector<int>();
    std::ranges::sort(group);
    for (const int call : group) taken_[static_cast<size_t>(call)] = true;
    return group;
  }

 private:
  Call& CallAt(int call) { return graph_.calls[static_cast<size_t>(call)]; }

  // A reshape behind the call becomes part of it, if that takes no divisions.
  // nullopt: there is no such call, or another one reads what it moves.
  std::optional<Mover> MoverOf(ValueId operand, int reader) {
    std::optional<Mover> mover;
    for (bool free = true; free;) {
      const int call = uses_.producer(operand);
      if (call < 0 || taken_[static_cast<size_t>(call)] ||
          uses_.OnlyReader(operand) != reader) {
        return std::nullopt;
      }
      const Call& made = CallAt(call);
      std::optional<Movement> movement = MovementOf(*made.function);
      if (!movement) return std::nullopt;
      free = made.op == "reshape";
      if (mover) {
        mover->movement = Compose(*movement, mover->movement);
      } else {
        mover = {.call = call, .movement = *std::move(movement)};
      }
      reader = call;
      operand = mover->source = made.inputs[0];
    }
    return HasPlainIndices(mover->movement) ? mover : std::nullopt;
  }

  bool MovesResult(int reader) {
    const Call& call = CallAt(reader);
    const std::optional<Movement> movement = MovementOf(*call.function);
    return call.op != "reshape" && movement && IsTransposition(*movement);
  }

  absl::Status PutRowsLast(Mover mover, int chain) {
    Call& reads = CallAt(chain);
    const ValueId operand = CallAt(mover.call).outputs[0];
    if (const std::optional<DimOrder> order = RowsLast(mover.movement)) {
      Movement& movement = mover.movement;
      movement.result_shape = InOrder(movement.result_shape, *order);
      movement.vars = InOrder(movement.vars, *order);
      graph_.values[static_cast<size_t>(operand)].type.shape =
          movement.result_shape;
      DimOrders orders;
      for (size_t i = 0; i < reads.inputs.size(); ++i) {
        if (reads.inputs[i] != operand) continue;
        orders[reads.function->params[i].get()] = *order;
      }
      reads.function = ReorderDims(*reads.function, orders);
    }
    TF_ASSIGN_OR_RETURN(
        CallAt(mover.call),
        MakeRearrange(graph_, mover.source, mover.movement, operand));
    return absl::OkStatus();
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<bool> taken_;  // per call: in a group
};

}  // namespace

absl::StatusOr<Graph> FuseMovement(Graph graph) {
  std::vector<std::vector<int>> groups;
  MovementFuser fuser(graph);
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    TF_ASSIGN_OR_RETURN(std::vector<int> group,
                        fuser.GroupOf(static_cast<int>(c)));
    if (!group.empty()) groups.push_back(std::move(group));
  }
  TF_ASSIGN_OR_RETURN(graph, MergeGroups(std::move(graph), groups));
  return DropUnused(std::move(graph));
}

}  // namespace tilefarm::graph
