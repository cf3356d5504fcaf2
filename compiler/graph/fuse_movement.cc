// Fuses what moves the operands and the result of a call into it: the heads of
// attention that a model takes out of the rows of one product, and puts back
// into rows; slices of channels; the windows of an image.
//
//   q[h, i, d] = x[i, h * 64 + d]        ->  z = one call of x; in it, k is
//   k[h, d, j] = x[j, 768 + h * 64 + d]      [h, j, d]: its rows are rows of x
//   v[h, j, d] = x[j, 1536 + h * 64 + d]
//   y = attention(q, k, v)
//   z[i, h, d] = y[h, i, d]
//
// For targets whose kernels read and write rows anywhere at no cost. What
// computes something before a product stays apart: such a copy would not be
// asynchronous.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/iter_map.h"
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
using ir::Expr;

// How a call reads an operand.
enum class Use : uint8_t {
  kRows,      // a product stages it: rows in any order, without divisions
  kElements,  // element by element, at indices that are variables
  kWindows,   // otherwise
};

// What a function does with its operands, found from its nests.
class Reading {
 public:
  explicit Reading(const ir::PrimFunc& function) {
    const std::vector<Nest> nests =
        NestsOf(function).value_or(std::vector<Nest>());
    std::set<const ir::BufferNode*> staged;  // that a product reads, or makes
    for (size_t n = nests.size(); n-- > 0;) {
      const Nest& nest = nests[n];
      if (SummedProductOf(nest)) ++products_;
      if (IsStagedProduct(nest) ||
          (!Sums(nest) && staged.contains(nest.store->buffer.get()))) {
        for (const ir::Buffer& read : nest.reads) staged.insert(read.get());
      }
    }
    for (const ir::Buffer& param : function.params) {
      uses_.push_back(is_chain() || staged.contains(param.get())
                          ? Use::kRows
                          : DirectUse(function, param));
    }
  }

  bool is_product() const { return products_ > 0; }
  bool is_chain() const { return products_ > 1; }

  // Of the parameter, in all that reads it.
  Use UseOf(size_t param) const { return uses_[param]; }

 private:
  static Use DirectUse(const ir::PrimFunc& function, const ir::Buffer& param) {
    Use use = Use::kElements;
    ir::PostOrderExprs(function.body, [&](const Expr& expr) {
      const auto* load = As<ir::LoadNode>(expr);
      if (load == nullptr || load->buffer != param) return;
      const auto is_plain = [](const Expr& index) {
        return As<ir::VarNode>(index) != nullptr ||
               index->kind == ir::ExprKind::kIntConst;
      };
      if (!std::ranges::all_of(load->indices, is_plain)) use = Use::kWindows;
    });
    return use;
  }

  static bool Sums(const Nest& nest) {
    return std::ranges::any_of(nest.block->iters, [](const ir::IterVar& iter) {
      return iter.type != ir::IterType::kSpatial;
    });
  }

  // Whether each factor is used for several results, so that kernels copy
  // tiles of it.
  static bool IsStagedProduct(const Nest& nest) {
    const std::optional<Factors> factors = SummedProductOf(nest);
    if (!factors) return false;
    const auto is_reused = [&](const Expr& factor) {
      return std::ranges::any_of(nest.block->iters,
                                 [&](const ir::IterVar& iter) {
                                   return iter.type == ir::IterType::kSpatial &&
                                          !ir::IsConstInt(iter.dom.extent, 1) &&
                                          !ir::UsesVar(factor, iter.var.get());
                                 });
    };
    return is_reused(factors->a) && is_reused(factors->b);
  }

  int products_ = 0;
  std::vector<Use> uses_;  // per parameter
};

// Whether each element of the result is one of the input, in another order of
// dimensions.
bool IsTransposition(const Movement& movement) {
  std::set<const ir::ExprNode*> used;
  for (size_t d = 0; d < movement.indices.size(); ++d) {
    const Expr& index = movement.indices[d];
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

// Whether neighbours along the last dimension of the result are neighbours in
// the input, wherever its row is.
bool KeepsRows(const Movement& movement) {
  if (movement.vars.empty() || movement.indices.empty()) return false;
  const ir::Var& row = movement.vars.back();
  const auto uses = [&](const Expr& index) {
    return ir::UsesVar(index, row.get());
  };
  return StepsWith(movement.indices.back(), row) &&
         std::ranges::count_if(movement.indices, uses) == 1;
}

// Whether no element of the input is read twice.
bool ReadsOnce(const Movement& movement) {
  arith::Analyzer analyzer;
  arith::VarRanges vars;
  for (size_t d = 0; d < movement.vars.size(); ++d) {
    const ir::Range range{ir::IntConst(0),
                          ir::IntConst(movement.result_shape[d])};
    vars.emplace_back(movement.vars[d], range);
    analyzer.Bind(movement.vars[d], 0, movement.result_shape[d]);
  }
  return arith::DetectIterMap(movement.indices, vars, /*predicate=*/nullptr,
                              arith::IterMapLevel::kBijective, analyzer)
      .ok();
}

// The order of the result's dimensions in which the one along which neighbours
// read neighbours is the last; nullopt: it is so, or there is none.
std::optional<DimOrder> RowsLast(const Movement& movement) {
  const size_t dims = movement.vars.size();
  for (size_t row = 0; row < dims && !movement.indices.empty(); ++row) {
    const auto uses = [&](const Expr& index) {
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

// A call that moves elements from `source`, or what several do together.
struct Mover {
  int call = 0;
  std::vector<int> passed;  // other calls, whose results nobody else reads
  ValueId source = 0;
  Movement movement;
};

class MovementFuser {
 public:
  explicit MovementFuser(Graph& graph)
      : graph_(graph), uses_(graph), group_(graph.calls.size(), kFree) {}

  // Of calls that become one, the first result of each. `early`: with what
  // moves results, but not those of single products.
  absl::StatusOr<std::vector<std::vector<ValueId>>> Groups(bool early) {
    // Readers first: of movement behind movement, the last is part of its
    // reader.
    for (int c = static_cast<int>(graph_.calls.size()); c-- > 0;) {
      const Reading reading(*CallAt(c).function);
      if (!early) TF_RETURN_IF_ERROR(TakeOperands(c, reading));
      if (!early || reading.is_chain() || !reading.is_product()) {
        TF_RETURN_IF_ERROR(TakeResult(c, reading));
      }
    }
    std::vector<std::vector<ValueId>> results;
    for (const std::vector<int>& group : groups_) {
      std::vector<ValueId>& members = results.emplace_back();
      for (const int call : group) members.push_back(CallAt(call).outputs[0]);
    }
    return results;
  }

 private:
  static constexpr int kFree = -1, kPassed = -2;

  Call& CallAt(int call) { return graph_.calls[static_cast<size_t>(call)]; }
  bool IsFree(int call) const {
    return group_[static_cast<size_t>(call)] == kFree;
  }

  // Whether the call is free, or others have joined it, not it others.
  bool MayLead(int call) {
    const int group = group_[static_cast<size_t>(call)];
    return CallAt(call).op != "reshape" &&
           (group == kFree ||
            (group >= 0 && groups_[static_cast<size_t>(group)][0] == call));
  }

  void Join(int leader, const Mover& mover) {
    int& group = group_[static_cast<size_t>(leader)];
    if (group == kFree) {
      group = static_cast<int>(groups_.size());
      groups_.push_back({leader});
    }
    group_[static_cast<size_t>(mover.call)] = group;
    groups_[static_cast<size_t>(group)].push_back(mover.call);
    for (const int call : mover.passed) {
      group_[static_cast<size_t>(call)] = kPassed;
    }
  }

  absl::Status TakeOperands(int leader, const Reading& reading) {
    if (!MayLead(leader)) return absl::OkStatus();
    const std::vector<ValueId> inputs = CallAt(leader).inputs;
    for (const ValueId input : std::set(inputs.begin(), inputs.end())) {
      std::optional<Mover> mover = MoverOf(input, leader);
      if (!mover) continue;
      std::optional<Use> use;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != input) continue;
        const Use another = reading.UseOf(i);
        use = use.value_or(another) == another ? another : Use::kWindows;
      }
      const bool accepted =
          use == Use::kRows
              ? HasPlainIndices(mover->movement)
              : KeepsRows(mover->movement) &&
                    (use == Use::kElements || HasPlainIndices(mover->movement));
      if (!accepted) continue;
      Join(leader, *mover);
      TF_RETURN_IF_ERROR(
          ReadFromSource(*std::move(mover), leader, use == Use::kRows));
    }
    return absl::OkStatus();
  }

  // A reshape behind the call becomes part of it. nullopt: there is no such
  // call, or another one reads what it moves.
  std::optional<Mover> MoverOf(ValueId operand, int reader) {
    std::optional<Mover> mover;
    for (bool free = true; free;) {
      const int call = uses_.producer(operand);
      if (call < 0 || !IsFree(call) || uses_.OnlyReader(operand) != reader) {
        return std::nullopt;
      }
      const Call& made = CallAt(call);
      std::optional<Movement> movement = MovementOf(*made.function);
      if (!movement) return std::nullopt;
      free = made.op == "reshape";
      if (mover) {
        mover->movement = Compose(*movement, mover->movement);
        mover->passed.push_back(call);
      } else {
        mover = {.call = call, .movement = *std::move(movement)};
      }
      reader = call;
      operand = mover->source = made.inputs[0];
    }
    return mover;
  }

  absl::Status ReadFromSource(Mover mover, int reader, bool rows_last) {
    Call& reads = CallAt(reader);
    const ValueId operand = CallAt(mover.call).outputs[0];
    const std::optional<DimOrder> order =
        rows_last ? RowsLast(mover.movement) : std::nullopt;
    if (order) {
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

  absl::Status TakeResult(int leader, const Reading& reading) {
    if (!MayLead(leader) || CallAt(leader).outputs.size() != 1) {
      return absl::OkStatus();
    }
    const ValueId result = CallAt(leader).outputs[0];
    Mover mover{.source = result};
    ValueId moved = result;
    for (bool free = true; free;) {
      const std::optional<int> reader = uses_.OnlyReader(moved);
      if (!reader || !IsFree(*reader)) return absl::OkStatus();
      const Call& call = CallAt(*reader);
      std::optional<Movement> movement = MovementOf(*call.function);
      if (!movement) return absl::OkStatus();
      free = call.op == "reshape";
      if (moved == result) {
        mover.movement = *std::move(movement);
      } else {
        mover.movement = Compose(mover.movement, *movement);
        mover.passed.push_back(mover.call);
      }
      mover.call = *reader;
      moved = call.outputs[0];
    }
    const Movement& movement = mover.movement;
    const bool accepted =
        reading.is_chain()
            ? IsTransposition(movement)
            : KeepsRows(movement) && ReadsOnce(movement) &&
                  (!reading.is_product() || HasPlainIndices(movement));
    if (!accepted) return absl::OkStatus();
    Join(leader, mover);
    if (CallAt(mover.call).inputs[0] != result) {
      TF_ASSIGN_OR_RETURN(CallAt(mover.call),
                          MakeRearrange(graph_, result, movement, moved));
    }
    return absl::OkStatus();
  }

  Graph& graph_;
  const Uses uses_;
  std::vector<int> group_;                // per call, or kFree, kPassed
  std::vector<std::vector<int>> groups_;  // the leader first
};

absl::StatusOr<Graph> FuseOnce(Graph graph, bool early) {
  TF_ASSIGN_OR_RETURN(const std::vector<std::vector<ValueId>> results,
                      MovementFuser(graph).Groups(early));
  // Reshapes that nothing reads any more would read what a group keeps inside.
  graph = DropUnused(std::move(graph));
  const Uses uses(graph);
  std::vector<std::vector<int>> groups;
  for (const std::vector<ValueId>& members : results) {
    std::vector<int>& group = groups.emplace_back();
    for (const ValueId result : members) group.push_back(uses.producer(result));
    std::ranges::sort(group);
  }
  return MergeGroups(std::move(graph), groups);
}

// Gives each call that reads what was moved a mover of its own.
Graph SeparateMovers(Graph graph) {
  std::vector<Call> last_first;
  std::vector<std::vector<size_t>> readers(graph.values.size());
  const auto add = [&](Call call) {
    for (const ValueId input : std::set(call.inputs.begin(), call.inputs.end()))
      readers[static_cast<size_t>(input)].push_back(last_first.size());
    last_first.push_back(std::move(call));
  };
  for (size_t c = graph.calls.size(); c-- > 0;) {
    Call& call = graph.calls[c];
    const ValueId moved = call.outputs[0];
    if (std::ranges::count(graph.outputs, moved) == 0 &&
        MovementOf(*call.function)) {
      const std::vector<size_t> of_moved = readers[static_cast<size_t>(moved)];
      for (size_t r = 1; r < of_moved.size(); ++r) {
        Call own = call;
        own.outputs[0] = static_cast<ValueId>(graph.values.size());
        graph.values.push_back(graph.values[static_cast<size_t>(moved)]);
        readers.emplace_back();
        std::ranges::replace(last_first[of_moved[r]].inputs, moved,
                             own.outputs[0]);
        add(std::move(own));
      }
    }
    add(std::move(call));
  }
  graph.calls.assign(std::make_move_iterator(last_first.rbegin()),
                     std::make_move_iterator(last_first.rend()));
  return graph;
}

}  // namespace

absl::StatusOr<Graph> FuseMovement(Graph graph) {
  // What leaves a norm in another order leaves products their rows.
  TF_ASSIGN_OR_RETURN(graph, FuseOnce(std::move(graph), /*early=*/true));
  graph = SeparateMovers(std::move(graph));
  for (size_t calls = 0; calls != graph.calls.size();) {
    calls = graph.calls.size();
    TF_ASSIGN_OR_RETURN(graph, FuseOnce(std::move(graph), /*early=*/false));
  }
  return MergeEqualCalls(std::move(graph));
}

}  // namespace tilefarm::graph
