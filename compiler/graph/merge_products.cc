// Products of the same data by several constant matrices become one by all of
// them, if what moves the results anyway reads them out of it: the queries,
// keys and values of attention.
//
//   q = matmul(x, wq) + bq     ->   y = matmul(x, [wq wk wv]) + [bq bk bv]
//   k = matmul(x, wk) + bk          q = y[:, 0:n], k = y[:, n:2n], ...
//   v = matmul(x, wv) + bv
//
// The parts are movements, which compose_movement.cc joins with those behind
// them. Each element is computed as before.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

// The dimensions of buffers along which a function computes each channel alone,
// and the block variables that are the channel.
struct Channels {
  std::map<const ir::BufferNode*, size_t> dims;
  std::vector<const ir::VarNode*> vars;
};

// The dimension that is exactly the variable; nullopt: there is none, or
// another one uses it, too.
std::optional<size_t> DimOf(const std::vector<ir::Expr>& indices,
                            const ir::VarNode* var) {
  std::optional<size_t> found;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!ir::UsesVar(indices[d], var)) continue;
    if (found || indices[d].get() != var) return std::nullopt;
    found = d;
  }
  return found;
}

// Adds what a nest reads and writes along channels; false: it does not compute
// each channel alone.
bool AddNest(const Nest& nest, Channels& channels) {
  const ir::VarNode* channel = nullptr;
  std::vector<const ir::LoadNode*> loads;
  ir::PostOrderExprs(nest.store->value, [&](const ir::Expr& expr) {
    const auto* load = As<ir::LoadNode>(expr);
    if (load == nullptr) return;
    loads.push_back(load);
    const auto known = channels.dims.find(load->buffer.get());
    if (known == channels.dims.end()) return;
    channel = As<ir::VarNode>(load->indices[known->second]);
  });
  if (channel == nullptr) return false;
  const auto iter = std::ranges::find_if(
      nest.block->iters,
      [&](const ir::IterVar& i) { return i.var.get() == channel; });
  const std::optional<size_t> stored = DimOf(nest.store->indices, channel);
  if (!HasPlainLoops(nest) || iter == nest.block->iters.end() ||
      iter->type != ir::IterType::kSpatial || !stored) {
    return false;
  }
  channels.dims[nest.store->buffer.get()] = *stored;
  size_t indices = 0;
  for (const ir::LoadNode* load : loads) {
    const auto known = channels.dims.find(load->buffer.get());
    const std::optional<size_t> dim = DimOf(load->indices, channel);
    if (known != channels.dims.end() && dim != known->second) return false;
    if (dim) channels.dims[load->buffer.get()] = *dim;
    indices += dim ? 1 : 0;
  }
  // Nothing else depends on the channel's number.
  size_t uses = 0;
  ir::PostOrderExprs(nest.store->value, [&](const ir::Expr& expr) {
    uses += expr.get() == channel ? 1 : 0;
  });
  if (uses != indices) return false;
  channels.vars.push_back(channel);
  return true;
}

// Of a function whose parameter has the channels along the dimension; nullopt:
// it does not compute each channel of its result alone.
std::optional<Channels> ChannelsOf(const ir::PrimFunc& function, size_t param,
                                   size_t dim) {
  const auto nests = NestsOf(function);
  if (!nests) return std::nullopt;
  Channels channels;
  channels.dims[function.params[param].get()] = dim;
  for (const Nest& nest : *nests) {
    if (!AddNest(nest, channels)) return std::nullopt;
  }
  return channels.dims.contains(function.params.back().get())
             ? std::optional(std::move(channels))
             : std::nullopt;
}

// Gives a function so many channels.
class Widen : public ir::Mutator {
 public:
  Widen(const Channels& channels, int64_t count)
      : channels_(channels), count_(count) {}

  ir::PrimFuncPtr Function(const ir::PrimFunc& function) {
    auto result = std::make_shared<ir::PrimFunc>(function);
    for (ir::Buffer& param : result->params) param = MutateBuffer(param);
    result->body = Mutate(function.body);
    return result;
  }

 protected:
  using ir::Mutator::Mutate;

  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    const auto dim = channels_.dims.find(buffer.get());
    if (dim == channels_.dims.end()) return buffer;
    ir::Buffer& made = made_[buffer.get()];
    if (made == nullptr) {
      auto copy = std::make_shared<ir::BufferNode>(*buffer);
      copy->shape[dim->second] = count_;
      made = std::move(copy);
    }
    return made;
  }

  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt&) override {
    auto copy = std::make_shared<ir::ForNode>(loop);
    copy->body = Mutate(loop.body);
    // The block inside has been seen.
    if (loops_.contains(loop.var.get())) copy->extent = ir::IntConst(count_);
    return copy;
  }

  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    ir::BlockNode copy(
        *As<ir::BlockNode>(ir::Mutator::MutateBlock(block, self)));
    for (ir::IterVar& iter : copy.iters) {
      if (!std::ranges::count(channels_.vars, iter.var.get())) continue;
      iter.dom.extent = ir::IntConst(count_);
      loops_.insert(As<ir::VarNode>(iter.binding));
    }
    return ir::BlockOf(std::move(copy));
  }

 private:
  const Channels& channels_;
  const int64_t count_;
  ir::BufferMap made_;
  std::set<const ir::VarNode*> loops_;
};

// The tensors one after another along the dimension.
Value Joined(const Graph& graph, const std::vector<ValueId>& parts,
             size_t dim) {
  const auto value = [&](ValueId id) -> const Value& {
    return graph.values[static_cast<size_t>(id)];
  };
  Value joined = value(parts[0]);
  std::vector<int64_t>& shape = joined.type.shape;
  int64_t outer = 1;
  for (size_t d = 0; d < dim; ++d) outer *= shape[d];
  shape[dim] = 0;
  std::vector<std::byte> bytes;
  for (const ValueId part : parts) shape[dim] += value(part).type.shape[dim];
  for (int64_t o = 0; o < outer; ++o) {
    for (const ValueId part : parts) {
      const auto all = value(part).constant->bytes();
      const size_t row = all.size() / static_cast<size_t>(outer);
      const auto from = all.subspan(static_cast<size_t>(o) * row, row);
      bytes.insert(bytes.end(), from.begin(), from.end());
    }
  }
  joined.constant = std::make_shared<const TensorData>(std::move(bytes));
  return joined;
}

// Calls that differ in constants by channel alone: parameter `data`, which is
// the same or has their channels, and others.
struct Siblings {
  std::vector<int> calls;
  std::vector<Channels> channels;  // of each
  size_t data = 0;
};

class ProductMerger {
 public:
  explicit ProductMerger(Graph& graph)
      : graph_(graph), uses_(graph), made_(graph.calls.size()) {}

  absl::Status Apply();

 private:
  const Call& CallAt(int call) const {
    return graph_.calls[static_cast<size_t>(call)];
  }
  const Value& ValueAt(ValueId id) const {
    return graph_.values[static_cast<size_t>(id)];
  }
  size_t RankOf(const Call& call) const {
    return call.function->params.back()->shape.size();
  }

  // The channels of what a call makes of the data by constant matrices.
  std::optional<Channels> ProductChannels(const Call& call, size_t data) const {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Value& weights = ValueAt(call.inputs[i]);
      if (weights.constant == nullptr || weights.type.shape.size() < 2)
        continue;
      for (size_t d = 0; d < weights.type.shape.size(); ++d) {
        const auto channels = ChannelsOf(*call.function, i, d);
        if (channels && IsLast(call, *channels) &&
            !channels->dims.contains(call.function->params[data].get())) {
          return channels;
        }
      }
    }
    return std::nullopt;
  }

  // Whether the channels of the result are neighbours.
  bool IsLast(const Call& call, const Channels& channels) const {
    const ir::Buffer& result = call.function->params.back();
    return channels.dims.at(result.get()) + 1 == result->shape.size();
  }

  // Whether the call differs from the first one in constants by channel alone.
  bool IsSibling(const Call& call, const Channels& channels,
                 const Siblings& others) const;
  // Adds a call that reads the data; the products found so far are `found`.
  void AddProduct(int call, ValueId data, std::vector<Siblings>& found) const;
  // The calls behind the siblings, each of which reads what one of them made.
  std::optional<Siblings> Behind(const Siblings& before) const;
  // How the part from channel `first` on moves until it is copied; nullopt:
  // others read it, or indices would need divisions.
  bool IsMoved(ValueId part, int64_t first, int64_t all) const;
  // result[..., c] = whole[..., first + c]
  Movement PartOf(ValueId part, int64_t first, int64_t all) const;
  absl::Status Merge(const std::vector<Siblings>& stages, ValueId data);

  Graph& graph_;
  const Uses uses_;
  // Per call: what is there instead.
  std::vector<std::optional<std::vector<Call>>> made_;
};

bool ProductMerger::IsSibling(const Call& call, const Channels& channels,
                              const Siblings& others) const {
  const Call& first = CallAt(others.calls[0]);
  const ir::PrimFunc& a = *first.function;
  const ir::PrimFunc& b = *call.function;
  if (first.op != call.op || a.params.size() != b.params.size()) return false;
  for (size_t p = 0; p < a.params.size(); ++p) {
    const auto in_a = others.channels[0].dims.find(a.params[p].get());
    const auto in_b = channels.dims.find(b.params[p].get());
    const bool has = in_a != others.channels[0].dims.end();
    if (has != (in_b != channels.dims.end()) ||
        (has && in_a->second != in_b->second)) {
      return false;
    }
    if (p == others.data || p >= call.inputs.size()) continue;
    if (has ? ValueAt(call.inputs[p]).constant == nullptr ||
                  ValueAt(first.inputs[p]).constant == nullptr
            : call.inputs[p] != first.inputs[p]) {
      return false;
    }
  }
  return ir::StructuralEqual(*Widen(others.channels[0], 1).Function(a),
                             *Widen(channels, 1).Function(b));
}

void ProductMerger::AddProduct(int call, ValueId data,
                               std::vector<Siblings>& found) const {
  const Call& product = CallAt(call);
  if (product.outputs.size() != 1 ||
      std::ranges::count(product.inputs, data) != 1) {
    return;
  }
  const auto at = static_cast<size_t>(std::ranges::find(product.inputs, data) -
                                      product.inputs.begin());
  const auto channels = ProductChannels(product, at);
  if (!channels) return;
  for (Siblings& siblings : found) {
    if (siblings.data != at || !IsSibling(product, *channels, siblings)) {
      continue;
    }
    siblings.calls.push_back(call);
    siblings.channels.push_back(*channels);
    return;
  }
  found.push_back({.calls = {call}, .channels = {*channels}, .data = at});
}

std::optional<Siblings> ProductMerger::Behind(const Siblings& before) const {
  Siblings behind;
  for (const int maker : before.calls) {
    const ValueId part = CallAt(maker).outputs[0];
    const std::optional<int> reader = uses_.OnlyReader(part);
    if (!reader || std::ranges::count(behind.calls, *reader)) {
      return std::nullopt;
    }
    const Call& call = CallAt(*reader);
    const auto at = static_cast<size_t>(std::ranges::find(call.inputs, part) -
                                        call.inputs.begin());
    if (call.outputs.size() != 1 || call.op == "reshape" ||
        MovementOf(*call.function) ||
        std::ranges::count(call.inputs, part) != 1) {
      return std::nullopt;
    }
    const auto channels =
        ChannelsOf(*call.function, at, ValueAt(part).type.shape.size() - 1);
    if (!channels || !IsLast(call, *channels)) return std::nullopt;
    if (behind.calls.empty()) {
      behind.data = at;
    } else if (behind.data != at || !IsSibling(call, *channels, behind)) {
      return std::nullopt;
    }
    behind.calls.push_back(*reader);
    behind.channels.push_back(*channels);
  }
  return behind;
}

Movement ProductMerger::PartOf(ValueId part, int64_t first, int64_t all) const {
  Movement movement;
  movement.result_shape = movement.input_shape = ValueAt(part).type.shape;
  movement.input_shape.back() = all;
  for (size_t d = 0; d < movement.result_shape.size(); ++d) {
    movement.vars.push_back(ir::MakeVar("i" + std::to_string(d)));
    movement.indices.push_back(movement.vars.back());
  }
  movement.indices.back() = movement.indices.back() + first;
  return movement;
}

bool ProductMerger::IsMoved(ValueId part, int64_t first, int64_t all) const {
  Movement movement = PartOf(part, first, all);
  for (;;) {
    const std::optional<int> reader = uses_.OnlyReader(part);
    if (!reader) return false;
    const Call& call = CallAt(*reader);
    const std::optional<Movement> next = MovementOf(*call.function);
    if (!next) return false;
    movement = Compose(movement, *next);
    if (call.op != "reshape") return HasPlainIndices(movement);
    part = call.outputs[0];
  }
}

absl::Status ProductMerger::Merge(const std::vector<Siblings>& stages,
                                  ValueId data) {
  for (const Siblings& stage : stages) {
    for (const int call : stage.calls) {
      made_[static_cast<size_t>(call)].emplace();
    }
  }
  int64_t all = 0;
  for (const int call : stages[0].calls) {
    all += ValueAt(CallAt(call).outputs[0]).type.shape.back();
  }
  for (const Siblings& stage : stages) {
    Call merged = CallAt(stage.calls[0]);
    const std::vector<ir::Buffer> params = merged.function->params;
    merged.function = Widen(stage.channels[0], all).Function(*merged.function);
    for (size_t p = 0; p < merged.inputs.size(); ++p) {
      const auto dim = stage.channels[0].dims.find(params[p].get());
      if (p == stage.data) {
        merged.inputs[p] = data;
      } else if (dim != stage.channels[0].dims.end()) {
        std::vector<ValueId> parts;
        for (const int call : stage.calls) {
          parts.push_back(CallAt(call).inputs[p]);
        }
        merged.inputs[p] = static_cast<ValueId>(graph_.values.size());
        graph_.values.push_back(Joined(graph_, parts, dim->second));
      }
    }
    Value result = ValueAt(merged.outputs[0]);
    result.type.shape.back() = all;
    data = merged.outputs[0] = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back(std::move(result));
    const int at = *std::ranges::min_element(stage.calls);
    made_[static_cast<size_t>(at)]->push_back(std::move(merged));
  }
  int64_t first = 0;
  for (const int call : stages.back().calls) {
    const ValueId part = CallAt(call).outputs[0];
    TF_ASSIGN_OR_RETURN(
        Call moved,
        MakeRearrange(graph_, data, PartOf(part, first, all), part));
    made_[static_cast<size_t>(call)]->push_back(std::move(moved));
    first += ValueAt(part).type.shape.back();
  }
  return absl::OkStatus();
}

absl::Status ProductMerger::Apply() {
  const size_t values = graph_.values.size();
  for (ValueId data = 0; static_cast<size_t>(data) < values; ++data) {
    if (uses_.readers(data).size() < 2) continue;
    std::vector<Siblings> found;
    for (const int call : uses_.readers(data)) {
      AddProduct(call, data, found);
    }
    for (Siblings& products : found) {
      if (products.calls.size() < 2) continue;
      std::vector<Siblings> stages{std::move(products)};
      while (std::optional<Siblings> next = Behind(stages.back())) {
        stages.push_back(*std::move(next));
      }
      int64_t all = 0, first = 0;
      std::vector<ValueId> parts;
      for (const int call : stages.back().calls) {
        parts.push_back(CallAt(call).outputs[0]);
        all += ValueAt(parts.back()).type.shape.back();
      }
      bool moved = true;
      for (const ValueId part : parts) {
        moved &= IsMoved(part, first, all);
        first += ValueAt(part).type.shape.back();
      }
      if (moved) TF_RETURN_IF_ERROR(Merge(stages, data));
    }
  }
  std::vector<Call> calls;
  for (size_t c = 0; c < graph_.calls.size(); ++c) {
    if (!made_[c]) {
      calls.push_back(std::move(graph_.calls[c]));
    } else {
      std::ranges::move(*made_[c], std::back_inserter(calls));
    }
  }
  graph_.calls = std::move(calls);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> MergeProducts(Graph graph) {
  TF_RETURN_IF_ERROR(ProductMerger(graph).Apply());
  return DropUnused(std::move(graph));
}

}  // namespace tilefarm::graph
