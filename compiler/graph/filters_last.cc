// Filters last: constant weights of convolutions have the channels of the
// result innermost, in front of them what is summed, in the order of its loops.
// Neighbouring threads then read neighbouring weights, by vectors:
//
//   w: [F, C, H, W]  ->  [H, W, C, F], or [C, H, W, F] where the data has its
//                        channels first
//
// For targets whose kernels read weights as they are stored. Others have
// kernels that pack them.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/passes.h"
#include "compiler/graph/reorder_dims.h"

namespace tilefarm::graph {
namespace {

constexpr size_t kData = 0, kWeights = 1;

std::string Layout(const Call& call, const char* key) {
  const auto found = call.attrs.find(key);
  const std::string* name =
      found == call.attrs.end() ? nullptr : found->second.AsString();
  return name == nullptr ? "" : *name;
}

// nullopt: it is no convolution of known layouts, or its weights are so.
std::optional<DimOrder> OrderOf(const Call& call) {
  const std::string weights = Layout(call, "kernel_layout");
  const std::string data = Layout(call, "data_layout");
  const size_t filters = weights.find('O'), channels = weights.find('I');
  if (filters == weights.npos || channels == weights.npos || data.empty()) {
    return std::nullopt;
  }
  DimOrder order;
  for (size_t d = 0; d < weights.size(); ++d) {
    if (d != filters && d != channels) order.push_back(static_cast<int>(d));
  }
  const bool channels_last = data.back() == 'C';
  order.insert(channels_last ? order.end() : order.begin(),
               static_cast<int>(channels));
  order.push_back(static_cast<int>(filters));
  if (std::ranges::is_sorted(order)) return std::nullopt;
  return order;
}

// The elements in the order of the new dimensions.
TensorData Reordered(const TensorType& type, const TensorData& data,
                     const DimOrder& order) {
  const size_t bytes = static_cast<size_t>(type.dtype.bytes());
  std::vector<int64_t> strides(type.shape.size(), 1);
  for (size_t d = type.shape.size() - 1; d-- > 0;) {
    strides[d] = strides[d + 1] * type.shape[d + 1];
  }
  const std::vector<int64_t> shape = InOrder(type.shape, order);
  const std::vector<int64_t> steps = InOrder(strides, order);
  std::vector<int64_t> at(shape.size());
  std::vector<std::byte> out(data.bytes().size());
  int64_t from = 0;
  for (size_t to = 0; to < out.size(); to += bytes) {
    std::memcpy(out.data() + to,
                data.bytes().data() + static_cast<size_t>(from) * bytes, bytes);
    for (size_t d = shape.size(); d-- > 0;) {
      from += steps[d];
      if (++at[d] < shape[d]) break;
      from -= steps[d] * shape[d];
      at[d] = 0;
    }
  }
  return TensorData(std::move(out));
}

}  // namespace

absl::StatusOr<Graph> PutFiltersLast(Graph graph) {
  std::map<std::pair<ValueId, DimOrder>, ValueId> made;
  for (Call& call : graph.calls) {
    const std::optional<DimOrder> order = OrderOf(call);
    if (!order || call.inputs.size() <= kWeights) continue;
    const ValueId old = call.inputs[kWeights];
    const Value& weights = graph.values[static_cast<size_t>(old)];
    if (weights.constant == nullptr || old == call.inputs[kData] ||
        weights.type.shape.size() != order->size() ||
        weights.type.num_elements() == 0) {
      continue;
    }
    const auto [known, is_new] = made.try_emplace({old, *order});
    if (is_new) {
      Value copy = weights;
      copy.constant = std::make_shared<const TensorData>(
          Reordered(weights.type, *weights.constant, *order));
      copy.type.shape = InOrder(weights.type.shape, *order);
      known->second = static_cast<ValueId>(graph.values.size());
      graph.values.push_back(std::move(copy));
    }
    call.inputs[kWeights] = known->second;
    call.function = ReorderDims(
        *call.function, {{call.function->params[kWeights].get(), *order}});
    const std::string layout = Layout(call, "kernel_layout");
    std::string name;
    for (const int d : *order) name += layout[static_cast<size_t>(d)];
    call.attrs["kernel_layout"] = ir::Attr(std::move(name));
  }
  return DropUnused(std::move(graph));
}

}  // namespace tilefarm::graph
