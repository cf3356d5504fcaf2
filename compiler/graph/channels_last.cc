// Channels last: what convolutions read and write has its channels innermost,
// so that a vector of channels is contiguous for every position.
//
//   y = conv2d(x, w)        x, y: [N, C, H, W]
//   ->                      x, y: [N, H, W, C]
//
// Any value inside of the graph may have its dimensions in another order:
// functions are rewritten to read and write it so (reorder_dims.h). Inputs and
// outputs of the graph stay as they are; the calls at the border convert while
// they compute.
//
// Channels may be several dimensions, behind the first one: what a reshape
// makes of the channels and of the positions, each by themselves, is a reshape
// in the new order, too.
//
//   z = reshape(y, [N, 4, C/4, H*W])     a reshape of [N, H, W, C] to
//                                        [N, H*W, 4, C/4]
//
// Steps:
//   1. From the data and the results of convolutions, collect the values to
//      change, through calls that keep channels apart: each channel of the
//      result comes from data at positions of the same channel, or from all
//      channels. What a transpose makes of channels that are last, and other
//      movements alone read, changes, too.
//   2. A value is changed with all that has its bytes, by reshapes, or not at
//      all: not if one of them is of the graph's interface, or mixes channels
//      and positions.
//   3. Rewrite the functions, with what they allocate between their inputs and
//      results.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/reorder_dims.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

bool IsConvolution(const Call& call) {
  return call.op.starts_with("nn.conv") || call.op == "qnn.conv";
}

// `channels`: how many dimensions they are.
DimOrder ChannelsLast(int ndim, int channels) {
  DimOrder order(static_cast<size_t>(ndim));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 1 + channels, order.end());
  return order;
}

int64_t Product(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= shape[d];
  return product;
}

// How many elements a batch has: as channels, and as positions.
struct Sides {
  int64_t channels, positions;

  // Whether the bytes are the same in both orders.
  bool one_is_single() const { return channels == 1 || positions == 1; }
};

Sides SidesOf(const std::vector<int64_t>& shape, int channels) {
  const size_t split = 1 + static_cast<size_t>(channels);
  return {Product(shape, 1, split), Product(shape, split, shape.size())};
}

// How many dimensions of `to` the channels are that are `channels` dimensions
// of `from`, which has the same elements; 0 if they are not dimensions of their
// own.
int ChannelsAfterReshape(const std::vector<int64_t>& from, int channels,
                         const std::vector<int64_t>& to) {
  if (to.empty() || to[0] != from[0]) return 0;
  const Sides sides = SidesOf(from, channels);
  for (int n = 1; n + 1 < static_cast<int>(to.size()); ++n) {
    const Sides split = SidesOf(to, n);
    if (split.channels == sides.channels &&
        split.positions == sides.positions) {
      return n;
    }
  }
  return 0;
}

// The parameters and allocations of a call's function that hold activations:
// all but constants, and what is computed from constants alone.
std::vector<ir::Buffer> Activations(const Graph& graph, const Call& call) {
  const ir::PrimFunc& function = *call.function;
  std::vector<ir::Buffer> found;
  const auto holds = [&](const ir::Buffer& buffer) {
    return std::find(found.begin(), found.end(), buffer) != found.end();
  };
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (i >= call.inputs.size() ||
        graph.values[call.inputs[i]].constant == nullptr) {
      found.push_back(function.params[i]);
    }
  }
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    const auto* block = As<ir::BlockNode>(stmt);
    if (block == nullptr) return true;
    if (std::any_of(block->reads.begin(), block->reads.end(),
                    [&](const auto& read) { return holds(read.buffer); })) {
      for (const ir::BufferRegion& write : block->writes) {
        if (!holds(write.buffer)) found.push_back(write.buffer);
      }
    }
    return true;
  });
  return found;
}

// Whether in every block of the function, variables that are a channel of what
// it writes occur in what it reads as channels alone, and other variables of
// what it writes not as channels. These are `channels` dimensions.
bool KeepsChannelsApart(const ir::PrimFunc& function,
                        const std::vector<ir::Buffer>& activations,
                        int channels) {
  const auto has_channels = [&](const ir::Buffer& buffer) {
    return buffer->ndim() >= channels + 2;
  };
  // Several are dimensions of the same meaning only where all have as many.
  const auto first =
      std::find_if(activations.begin(), activations.end(), has_channels);
  if (channels > 1 &&
      !std::all_of(first, activations.end(), [&](const ir::Buffer& buffer) {
        return buffer->ndim() == (*first)->ndim();
      })) {
    return false;
  }
  bool apart = true;
  const auto is_activation = [&](const ir::Buffer& buffer) {
    return has_channels(buffer) &&
           std::find(activations.begin(), activations.end(), buffer) !=
               activations.end();
  };
  const auto is_channel = [&](size_t d) {
    return d >= 1 && d <= static_cast<size_t>(channels);
  };
  const auto check = [&](const ir::StoreNode& store, const ir::LoadNode& load) {
    for (size_t d = 0; d < store.indices.size(); ++d) {
      ir::PostOrderExprs(store.indices[d], [&](const ir::Expr& part) {
        const auto* var = As<ir::VarNode>(part);
        if (var == nullptr) return;
        for (size_t i = 0; i < load.indices.size(); ++i) {
          apart &= is_channel(d) == is_channel(i) ||
                   !ir::UsesVar(load.indices[i], var);
        }
      });
    }
  };
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    const auto* store = As<ir::StoreNode>(stmt);
    if (store == nullptr || !is_activation(store->buffer)) return true;
    ir::PostOrderExprs(store->value, [&](const ir::Expr& expr) {
      const auto* load = As<ir::LoadNode>(expr);
      if (load != nullptr && is_activation(load->buffer)) check(*store, *load);
    });
    return true;
  });
  return apart;
}

// "NCHW" -> "NHWC", for what the call reads or writes.
void NameLayout(Call& call, const std::string& key, bool changed) {
  const auto layout = call.attrs.find("data_layout");
  if (layout == call.attrs.end() || !changed) return;
  std::string name = *layout->second.AsString();
  const size_t channel = name.find('C');
  if (channel == 1) name = name.substr(0, 1) + name.substr(2) + "C";
  call.attrs[key] = ir::Attr(std::move(name));
}

class Layouter {
 public:
  explicit Layouter(const Graph& graph)
      : graph_(graph),
        uses_(graph),
        may_change_(graph.values.size()),
        reshapes_(graph.values.size()),
        channels_(graph.values.size()) {
    for (const Call& call : graph.calls) {
      activations_.push_back(Activations(graph, call));
      for (const ValueId id : call.outputs) may_change_[id] = true;
      if (call.op != "reshape") continue;
      reshapes_[call.inputs[0]].push_back(call.outputs[0]);
      reshapes_[call.outputs[0]].push_back(call.inputs[0]);
    }
    for (const ValueId id : graph_.outputs) may_change_[id] = false;
  }

  // Step 1.
  void Choose() {
    for (const Call& call : graph_.calls) {
      if (!IsConvolution(call)) continue;
      Change(call.inputs[0], 1);
      for (const ValueId id : call.outputs) Change(id, 1);
    }
    for (const Call& call : graph_.calls) {
      if (PutsLastFirst(call) && OnlyMovesRead(call.outputs[0])) {
        Change(call.outputs[0], 1);
      }
    }
    // The list grows while values are found.
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t c = 0; c < graph_.calls.size(); ++c) {
        const Call& call = graph_.calls[c];
        const ValueId from = ChangedValue(call);
        if (from < 0 || !Joins(c, channels_[from])) continue;
        ForValues(call, [&](ValueId id) {
          if (Shape(id).size() == Shape(from).size()) {
            grown |= Change(id, channels_[from]);
          }
        });
      }
    }
  }

  bool changes(ValueId id) const { return channels_[id] > 0; }
  DimOrder OrderOf(ValueId id) const {
    return ChannelsLast(graph_.values[id].type.ndim(), channels_[id]);
  }

  // Step 3: the orders of what call number `c` reads, writes and allocates.
  DimOrders OrdersOf(size_t c) {
    const Call& call = graph_.calls[c];
    DimOrders orders;
    for (size_t i = 0; i < call.function->params.size(); ++i) {
      const ValueId id = i < call.inputs.size()
                             ? call.inputs[i]
                             : call.outputs[i - call.inputs.size()];
      if (changes(id)) orders[call.function->params[i].get()] = OrderOf(id);
    }
    const ValueId from = ChangedValue(call);
    if (from < 0 || !Joins(c, channels_[from])) return orders;
    for (const ir::Buffer& buffer : call.function->root()->allocs) {
      const bool holds =
          std::find(activations_[c].begin(), activations_[c].end(), buffer) !=
          activations_[c].end();
      if (holds && buffer->ndim() >= channels_[from] + 2) {
        orders[buffer.get()] = ChannelsLast(buffer->ndim(), channels_[from]);
      }
    }
    return orders;
  }

 private:
  template <typename Visit>
  static void ForValues(const Call& call, const Visit& visit) {
    for (const ValueId id : call.inputs) visit(id);
    for (const ValueId id : call.outputs) visit(id);
  }

  // Whether the call does nothing but make channels of the last dimension.
  static bool PutsLastFirst(const Call& call) {
    const std::optional<Movement> movement = MovementOf(*call.function);
    return movement && call.op != "reshape" && movement->vars.size() >= 3 &&
           !movement->indices.empty() &&
           movement->indices.back() == ir::Expr(movement->vars[1]);
  }

  // Whether all that reads the value, or reshapes of it, moves elements on.
  bool OnlyMovesRead(ValueId id) const {
    for (const int reader : uses_.readers(id)) {
      const Call& call = graph_.calls[static_cast<size_t>(reader)];
      if (!MovementOf(*call.function) ||
          (call.op == "reshape" && !OnlyMovesRead(call.outputs[0]))) {
        return false;
      }
    }
    return true;
  }

  // The last value that the call reads or writes and that changes; -1 if none
  // does.
  ValueId ChangedValue(const Call& call) const {
    ValueId found = -1;
    ForValues(call, [&](ValueId id) {
      if (changes(id)) found = id;
    });
    return found;
  }

  const std::vector<int64_t>& Shape(ValueId id) const {
    return graph_.values[id].type.shape;
  }

  bool Joins(size_t c, int channels) {
    const auto [known, is_new] = joins_.try_emplace({c, channels});
    if (is_new) {
      const Call& call = graph_.calls[c];
      known->second =
          call.op != "reshape" &&
          KeepsChannelsApart(*call.function, activations_[c], channels);
    }
    return known->second;
  }

  // Step 2.
  bool Change(ValueId id, int channels) {
    if (changes(id)) return false;
    std::map<ValueId, int> together{{id, channels}};
    std::vector<ValueId> pending{id};
    while (!pending.empty()) {
      const ValueId value = pending.back();
      pending.pop_back();
      const int own = together.at(value);
      const std::vector<int64_t>& shape = Shape(value);
      if (!may_change_[value] || changes(value) ||
          static_cast<int>(shape.size()) < own + 2) {
        return false;
      }
      if (SidesOf(shape, own).one_is_single()) continue;
      for (const ValueId other : reshapes_[value]) {
        if (together.contains(other)) continue;
        const int others = ChannelsAfterReshape(shape, own, Shape(other));
        if (others == 0) return false;
        together[other] = others;
        pending.push_back(other);
      }
    }
    for (const auto& [value, own] : together) channels_[value] = own;
    return true;
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<bool> may_change_;                      // by value
  std::vector<std::vector<ValueId>> reshapes_;        // by value: both ways
  std::vector<int> channels_;                         // by value; 0: stays
  std::vector<std::vector<ir::Buffer>> activations_;  // by call
  // By call and number of channels: whether it keeps them apart.
  std::map<std::pair<size_t, int>, bool> joins_;
};

}  // namespace

absl::StatusOr<Graph> PutChannelsLast(Graph graph) {
  Layouter layouter(graph);
  layouter.Choose();
  std::vector<ir::PrimFuncPtr> functions;
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    const DimOrders orders = layouter.OrdersOf(c);
    const ir::PrimFuncPtr& function = graph.calls[c].function;
    functions.push_back(orders.empty() ? function
                                       : ReorderDims(*function, orders));
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const auto value = static_cast<ValueId>(id);
    if (!layouter.changes(value)) continue;
    TensorType& type = graph.values[id].type;
    type.shape = InOrder(type.shape, layouter.OrderOf(value));
  }
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    Call& call = graph.calls[c];
    if (call.op == "reshape" && layouter.changes(call.inputs[0]) &&
        layouter.changes(call.outputs[0])) {
      TF_ASSIGN_OR_RETURN(call,
                          MakeReshape(graph, call.inputs[0], call.outputs[0]));
      continue;
    }
    call.function = std::move(functions[c]);
    if (!IsConvolution(call)) continue;
    NameLayout(call, "data_layout", layouter.changes(call.inputs[0]));
    NameLayout(call, "out_layout", layouter.changes(call.outputs[0]));
  }
  TF_RETURN_IF_ERROR(Verify(graph));
  return graph;
}

}  // namespace tilefarm::graph
