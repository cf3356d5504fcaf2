#include "compiler/graph/graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace tilefarm::graph {
namespace {

absl::Status CheckCall(const Graph& graph, const Call& call,
                       std::vector<bool>& defined) {
  const auto fail = [&](auto... parts) {
    return absl::InternalError(
        absl::StrCat("call of ", call.function->name, ": ", parts...));
  };
  const size_t count = call.inputs.size() + call.outputs.size();
  if (call.function->params.size() != count) {
    return fail(call.function->params.size(), " parameters for ", count,
                " tensors");
  }
  for (size_t i = 0; i < count; ++i) {
    const bool is_input = i < call.inputs.size();
    const ValueId id =
        is_input ? call.inputs[i] : call.outputs[i - call.inputs.size()];
    if (id < 0 || id >= static_cast<ValueId>(graph.values.size())) {
      return fail("no value ", id);
    }
    const Value& value = graph.values[id];
    const ir::BufferNode& param = *call.function->params[i];
    if (TensorType{param.dtype, param.shape} != value.type) {
      return fail("parameter ", param.name, " is ",
                  TensorType{param.dtype, param.shape}.ToString(), ", ",
                  value.name, " is ", value.type.ToString());
    }
    ir::BufferNode placed = param;
    placed.strides.clear();
    placed.elem_offset = 0;
    if (value.part) PlaceBuffer(*value.part, placed);
    if (placed.strides != param.strides ||
        placed.elem_offset != param.elem_offset) {
      return fail("parameter ", param.name, " is not where ", value.name,
                  " is");
    }
    if (is_input && call.op == kJoin &&
        (!value.part || value.part->whole != WholeOf(graph, call.outputs[0]))) {
      return fail(value.name, " is no part of ",
                  graph.values[call.outputs[0]].name);
    }
    if (is_input != defined[id]) {
      return fail(value.name, is_input ? " is used before it is computed"
                                       : " is computed twice");
    }
    if (!is_input) defined[id] = true;
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TensorType::num_elements() const {
  // The other extents of a tensor without elements may be of any size.
  for (int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string TensorType::ToString() const {
  return absl::StrCat("R.Tensor((", absl::StrJoin(shape, ", "),
                      shape.size() == 1 ? ",)" : ")", ", dtype=\"",
                      dtype.ToString(), "\")");
}

TensorData::TensorData(std::vector<std::byte> bytes) {
  const auto owned =
      std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  owner_ = owned;
  bytes_ = *owned;
}

ValueId WholeOf(const Graph& graph, ValueId id) {
  const std::optional<Part>& part = graph.values[id].part;
  return part ? part->whole : id;
}

void PlaceBuffer(const Part& part, ir::BufferNode& param) {
  param.strides = part.strides;
  param.elem_offset = part.elem_offset;
  // Of one element, the stride does not matter: the row-major one, so that a
  // part without gaps has no strides at all.
  int64_t dense = 1;
  bool gaps = false;
  for (size_t d = param.shape.size(); d-- > 0;) {
    if (param.shape[d] == 1) param.strides[d] = dense;
    gaps |= param.strides[d] != dense;
    dense = param.strides[d] * param.shape[d];
  }
  if (!gaps) param.strides.clear();
}

absl::Status Verify(const Graph& graph) {
  for (const auto* values : {&graph.inputs, &graph.outputs}) {
    for (ValueId id : *values) {
      if (id < 0 || id >= static_cast<ValueId>(graph.values.size())) {
        return absl::InternalError(absl::StrCat("no value ", id));
      }
    }
  }
  std::vector<bool> defined(graph.values.size());
  for (ValueId id : graph.inputs) defined[id] = true;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.constant == nullptr) continue;
    defined[i] = true;
    if (static_cast<int64_t>(value.constant->bytes().size()) !=
        value.type.num_bytes()) {
      return absl::InternalError(absl::StrCat(
          "constant ", value.name, " has ", value.constant->bytes().size(),
          " bytes, ", value.type.ToString(), " has ", value.type.num_bytes()));
    }
  }
  for (const Call& call : graph.calls) {
    TF_RETURN_IF_ERROR(CheckCall(graph, call, defined));
  }
  for (ValueId id : graph.outputs) {
    if (!defined[id]) {
      return absl::InternalError(
          absl::StrCat("output ", graph.values[id].name, " is never computed"));
    }
  }
  if (graph.output_names.size() != graph.outputs.size()) {
    return absl::InternalError("outputs and their names differ in number");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::graph
