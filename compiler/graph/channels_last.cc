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
// Steps:
//   1. From the data and the results of convolutions, collect the values to
//      change, through calls that keep channels apart: each channel of the
//      result comes from data at positions of the same channel, or from all
//      channels.
//   2. Leave out values whose bytes must stay in order: those of the graph's
//      interface, and those that a reshape reads or makes.
//   3. Rewrite the functions, with what they allocate between their inputs and
//      results.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/reorder_dims.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

bool IsConvolution(const Call& call) {
  return call.op.starts_with("nn.conv") || call.op == "qnn.conv";
}

DimOrder ChannelsLast(int ndim) {
  DimOrder order(static_cast<size_t>(ndim));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

// Whether the bytes are the same in both orders.
bool KeepsBytesOfShape(const std::vector<int64_t>& shape) {
  int64_t positions = 1;
  for (size_t d = 2; d < shape.size(); ++d) positions *= shape[d];
  return shape[1] == 1 || positions == 1;
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
// what it writes not as channels.
bool KeepsChannelsApart(const ir::PrimFunc& function,
                        const std::vector<ir::Buffer>& activations) {
  bool apart = true;
  const auto is_activation = [&](const ir::Buffer& buffer) {
    return buffer->ndim() >= 3 &&
           std::find(activations.begin(), activations.end(), buffer) !=
               activations.end();
  };
  const auto check = [&](const ir::StoreNode& store, const ir::LoadNode& load) {
    for (size_t d = 0; d < store.indices.size(); ++d) {
      ir::PostOrderExprs(store.indices[d], [&](const ir::Expr& part) {
        const auto* var = As<ir::VarNode>(part);
        if (var == nullptr) return;
        for (size_t i = 0; i < load.indices.size(); ++i) {
          apart &= (d == 1) == (i == 1) || !ir::UsesVar(load.indices[i], var);
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
        may_change_(graph.values.size()),
        changes_(graph.values.size()) {
    FindWhatMayChange();
    for (const Call& call : graph.calls) {
      activations_.push_back(Activations(graph, call));
      joins_.push_back(call.op != "reshape" &&
                       KeepsChannelsApart(*call.function, activations_.back()));
    }
  }

  // Step 1.
  std::vector<bool> Choose() {
    for (const Call& call : graph_.calls) {
      if (!IsConvolution(call)) continue;
      Change(call.inputs[0]);
      for (const ValueId id : call.outputs) Change(id);
    }
    // The list grows while values are found.
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t c = 0; c < graph_.calls.size(); ++c) {
        if (!joins_[c]) continue;
        const Call& call = graph_.calls[c];
        int ndim = -1;
        ForValues(call, [&](ValueId id) {
          if (changes_[id]) ndim = graph_.values[id].type.ndim();
        });
        if (ndim < 0) continue;
        ForValues(call, [&](ValueId id) {
          if (graph_.values[id].type.ndim() == ndim) grown |= Change(id);
        });
      }
    }
    return changes_;
  }

  // Step 3: the orders of what call number `c` reads, writes and allocates.
  DimOrders OrdersOf(size_t c) const {
    const Call& call = graph_.calls[c];
    DimOrders orders;
    for (size_t i = 0; i < call.function->params.size(); ++i) {
      const ValueId id = i < call.inputs.size()
                             ? call.inputs[i]
                             : call.outputs[i - call.inputs.size()];
      const ir::Buffer& param = call.function->params[i];
      if (changes_[id]) orders[param.get()] = ChannelsLast(param->ndim());
    }
    if (orders.empty() || !joins_[c]) return orders;
    for (const ir::Buffer& buffer : call.function->root()->allocs) {
      const bool holds =
          std::find(activations_[c].begin(), activations_[c].end(), buffer) !=
          activations_[c].end();
      if (holds && buffer->ndim() >= 3) {
        orders[buffer.get()] = ChannelsLast(buffer->ndim());
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

  // Step 2.
  void FindWhatMayChange() {
    for (const Call& call : graph_.calls) {
      for (const ValueId id : call.outputs) {
        const int ndim = graph_.values[id].type.ndim();
        may_change_[id] = ndim >= 3 && ndim <= 5;
      }
    }
    for (const ValueId id : graph_.outputs) may_change_[id] = false;
    for (const Call& call : graph_.calls) {
      if (call.op != "reshape") continue;
      ForValues(call, [&](ValueId id) {
        const std::vector<int64_t>& shape = graph_.values[id].type.shape;
        if (shape.size() >= 3 && !KeepsBytesOfShape(shape))
          may_change_[id] = false;
      });
    }
  }

  bool Change(ValueId id) {
    if (changes_[id] || !may_change_[id]) return false;
    return changes_[id] = true;
  }

  const Graph& graph_;
  std::vector<bool> may_change_, changes_;            // by value
  std::vector<std::vector<ir::Buffer>> activations_;  // by call
  std::vector<bool> joins_;  // by call: it keeps channels apart
};

}  // namespace

absl::StatusOr<Graph> PutChannelsLast(Graph graph) {
  Layouter layouter(graph);
  const std::vector<bool> changes = layouter.Choose();
  std::vector<ir::PrimFuncPtr> functions;
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    const DimOrders orders = layouter.OrdersOf(c);
    const ir::PrimFuncPtr& function = graph.calls[c].function;
    functions.push_back(orders.empty() ? function
                                       : ReorderDims(*function, orders));
  }
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    Call& call = graph.calls[c];
    call.function = std::move(functions[c]);
    if (!IsConvolution(call)) continue;
    NameLayout(call, "data_layout", changes[call.inputs[0]]);
    NameLayout(call, "out_layout", changes[call.outputs[0]]);
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    TensorType& type = graph.values[id].type;
    if (changes[id]) {
      type.shape = InOrder(type.shape, ChannelsLast(type.ndim()));
    }
  }
  TF_RETURN_IF_ERROR(Verify(graph));
  return graph;
}

}  // namespace tilefarm::graph
