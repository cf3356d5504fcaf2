// If, Loop and Scan. Loops must have a number of iterations that is known when
// the model is compiled; they are unrolled.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/joins.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/scope.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

// Enough for loops over the positions of a sequence; each iteration is a copy
// of the body.
constexpr int64_t kMaxIterations = 4096;

// The value of `a` where `condition` (one bool) is true, otherwise of `b`.
Outputs ChooseBranch(Node& node, ValueId condition, const Imported& a,
                     const Imported& b) {
  GraphBuilder& builder = node.builder();
  if (!a.is_tensor() || !b.is_tensor() ||
      builder.type(a.tensor) != builder.type(b.tensor)) {
    return node.Unsupported(
        "the condition is known at run time only, and the branches have "
        "results "
        "of different types");
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId chosen,
      builder.Compute(
          "where", {}, {condition, a.tensor, b.tensor},
          [](const graph::Tensors& in) {
            return te::Compute(
                "T_where", in[1].shape(), [&](const te::Indices& i) {
                  const te::Indices at(in[0].ndim(), ir::IntConst(0));
                  return ir::MakeSelect(in[0](at), in[1](i), in[2](i));
                });
          }));
  return std::vector<Imported>{chosen};
}

Outputs ConvertIf(Node& node) {
  const pb::GraphProto* then_branch = node.Graph("then_branch");
  const pb::GraphProto* else_branch = node.Graph("else_branch");
  if (then_branch == nullptr || else_branch == nullptr) {
    return node.Invalid("a branch is missing");
  }
  const ValueId condition = node.Input(0);
  TF_RETURN_IF_ERROR(node.status());
  if (!node.Dtype(0).is_bool() || node.Type(0).num_elements() != 1) {
    return node.Invalid("the condition is no single bool");
  }
  if (node.IsConstant(0)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> value, node.ConstInts(0));
    return node.scope().ImportSubgraph(
        value[0] != 0 ? *then_branch : *else_branch, {});
  }
  // Programs have no side effects: both branches are computed.
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> then_results,
                      node.scope().ImportSubgraph(*then_branch, {}));
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> else_results,
                      node.scope().ImportSubgraph(*else_branch, {}));
  if (then_results.size() != else_results.size()) {
    return node.Invalid("the branches have different numbers of results");
  }
  std::vector<Imported> results;
  for (size_t i = 0; i < then_results.size(); ++i) {
    TF_ASSIGN_OR_RETURN(
        const std::vector<Imported> chosen,
        ChooseBranch(node, condition, then_results[i], else_results[i]));
    results.push_back(chosen[0]);
  }
  return results;
}

// The one value of a constant input; nullopt if the input is left out.
absl::StatusOr<std::optional<int64_t>> OptionalInt(Node& node, int input) {
  if (!node.HasInput(input)) return std::optional<int64_t>();
  if (node.Type(input).num_elements() != 1) {
    return node.Invalid("input ", input, " is no single value");
  }
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.ConstInts(input));
  return std::optional<int64_t>(values[0]);
}

Outputs ConvertLoop(Node& node) {
  const pb::GraphProto* body = node.Graph("body");
  if (body == nullptr) return node.Invalid("the body is missing");
  TF_ASSIGN_OR_RETURN(const std::optional<int64_t> trips, OptionalInt(node, 0));
  TF_ASSIGN_OR_RETURN(const std::optional<int64_t> initial,
                      OptionalInt(node, 1));
  const auto carried = static_cast<size_t>(std::max(0, node.num_inputs() - 2));
  if (body->output_size() < static_cast<int>(carried) + 1) {
    return node.Invalid("the body has ", body->output_size(),
                        " outputs for the condition and ", carried,
                        " carried values");
  }
  GraphBuilder& builder = node.builder();
  std::vector<Imported> state;
  for (size_t i = 0; i < carried; ++i) {
    state.push_back(node.RawInput(static_cast<int>(i) + 2));
  }
  const size_t scans = static_cast<size_t>(body->output_size()) - 1 - carried;
  std::vector<std::vector<ValueId>> collected(scans);
  bool goes_on = initial.value_or(1) != 0;
  for (int64_t trip = 0; goes_on && (!trips.has_value() || trip < *trips);
       ++trip) {
    if (trip >= kMaxIterations) {
      return node.Unsupported("more than ", kMaxIterations, " iterations");
    }
    std::vector<Imported> inputs = {
        builder.Constant("iteration", {ir::DataType::Int(64), {}},
                         std::vector<int64_t>{trip}),
        builder.Constant("condition", {ir::DataType::Bool(), {}},
                         std::vector<uint8_t>{1})};
    inputs.insert(inputs.end(), state.begin(), state.end());
    TF_ASSIGN_OR_RETURN(const std::vector<Imported> results,
                        node.scope().ImportSubgraph(*body, inputs));
    if (!results[0].is_tensor() ||
        builder.type(results[0].tensor).num_elements() != 1 ||
        !builder.type(results[0].tensor).dtype.is_bool()) {
      return node.Invalid("the body's condition is no single bool");
    }
    if (!builder.IsConstant(results[0].tensor)) {
      return node.Unsupported(
          "whether the loop goes on is known at run time only");
    }
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> condition,
                        builder.EvaluateInts(results[0].tensor));
    goes_on = condition[0] != 0;
    for (size_t i = 0; i < carried; ++i) state[i] = results[i + 1];
    for (size_t i = 0; i < scans; ++i) {
      const Imported& result = results[1 + carried + i];
      if (!result.is_tensor())
        return node.Invalid("a scan output is no tensor");
      collected[i].push_back(result.tensor);
    }
  }
  std::vector<Imported> outputs = state;
  for (size_t i = 0; i < scans; ++i) {
    if (collected[i].empty()) {
      const auto declared = node.DeclaredOutput(static_cast<int>(carried + i));
      if (!declared.has_value() || declared->num_elements() != 0) {
        return node.Unsupported(
            "a loop without iterations has a scan output of "
            "unknown shape");
      }
      outputs.push_back(builder.Constant("empty", *declared, {}));
      continue;
    }
    TF_ASSIGN_OR_RETURN(const ValueId stacked, Stack(builder, collected[i], 0));
    outputs.push_back(stacked);
  }
  return outputs;
}

Outputs ConvertScan(Node& node) {
  const pb::GraphProto* body = node.Graph("body");
  if (body == nullptr) return node.Invalid("the body is missing");
  GraphBuilder& builder = node.builder();
  // Before operator set 9 there was a batch dimension and an optional first
  // input with lengths.
  const bool batched = node.opset() < 9;
  const int first = batched ? 1 : 0;
  if (batched && node.HasInput(0)) {
    return node.Unsupported("sequence lengths");
  }
  const int scan_inputs = static_cast<int>(node.Int("num_scan_inputs", 0));
  const int states = node.num_inputs() - first - scan_inputs;
  const int scan_outputs = body->output_size() - states;
  if (scan_inputs < 1 || states < 0 || scan_outputs < 0) {
    return node.Invalid("num_scan_inputs is ", scan_inputs, " for ",
                        node.num_inputs(), " inputs");
  }
  const std::vector<int64_t> input_directions =
      node.Ints(batched ? "directions" : "scan_input_directions");
  const std::vector<int64_t> output_directions =
      node.Ints("scan_output_directions");
  const std::vector<int64_t> input_axes = node.Ints("scan_input_axes");
  const std::vector<int64_t> output_axes = node.Ints("scan_output_axes");
  const auto at = [](const std::vector<int64_t>& list, int i) {
    return i < static_cast<int>(list.size()) ? list[i] : 0;
  };
  int64_t batches = 1;
  if (batched) {
    if (node.Rank(first + states) < 2)
      return node.Invalid("no batch dimension");
    batches = node.Shape(first + states)[0];
  }
  std::vector<std::vector<ValueId>> by_batch(
      static_cast<size_t>(states + scan_outputs));
  for (int64_t batch = 0; batch < batches; ++batch) {
    const auto of_batch = [&](int input) -> absl::StatusOr<ValueId> {
      if (!batched) return node.Input(input);
      return TakeAt(builder, node.Input(input), 0, batch);
    };
    std::vector<Imported> state;
    for (int i = 0; i < states; ++i) {
      TF_ASSIGN_OR_RETURN(const ValueId value, of_batch(first + i));
      state.emplace_back(value);
    }
    std::vector<ValueId> scanned;
    std::vector<int64_t> axes;
    int64_t length = -1;
    for (int i = 0; i < scan_inputs; ++i) {
      TF_ASSIGN_OR_RETURN(const ValueId value, of_batch(first + states + i));
      const auto& shape = builder.shape(value);
      axes.push_back(node.NormalizeAxis(batched ? 0 : at(input_axes, i),
                                        static_cast<int64_t>(shape.size())));
      TF_RETURN_IF_ERROR(node.status());
      if (length >= 0 && shape[axes.back()] != length) {
        return node.Invalid("the scanned inputs have different lengths");
      }
      length = shape[axes.back()];
      scanned.push_back(value);
    }
    if (length > kMaxIterations) {
      return node.Unsupported("more than ", kMaxIterations, " iterations");
    }
    if (length < 1) return node.Unsupported("a scan without iterations");
    std::vector<std::vector<ValueId>> collected(
        static_cast<size_t>(scan_outputs));
    for (int64_t step = 0; step < length; ++step) {
      std::vector<Imported> inputs = state;
      for (int i = 0; i < scan_inputs; ++i) {
        const bool reverse = at(input_directions, i) != 0;
        TF_ASSIGN_OR_RETURN(const ValueId element,
                            TakeAt(builder, scanned[i], axes[i],
                                   reverse ? length - 1 - step : step));
        inputs.emplace_back(element);
      }
      TF_ASSIGN_OR_RETURN(const std::vector<Imported> results,
                          node.scope().ImportSubgraph(*body, inputs));
      for (int i = 0; i < states; ++i) state[i] = results[i];
      for (int i = 0; i < scan_outputs; ++i) {
        if (!results[states + i].is_tensor()) {
          return node.Invalid("a scan output is no tensor");
        }
        collected[i].push_back(results[states + i].tensor);
      }
    }
    for (int i = 0; i < states; ++i) {
      if (!state[i].is_tensor()) return node.Invalid("a state is no tensor");
      by_batch[i].push_back(state[i].tensor);
    }
    for (int i = 0; i < scan_outputs; ++i) {
      if (at(output_directions, i) != 0) {
        std::reverse(collected[i].begin(), collected[i].end());
      }
      const int64_t axis = node.NormalizeAxis(
          at(output_axes, i), builder.type(collected[i][0]).ndim() + 1);
      TF_RETURN_IF_ERROR(node.status());
      TF_ASSIGN_OR_RETURN(const ValueId stacked,
                          Stack(builder, collected[i], axis));
      by_batch[states + i].push_back(stacked);
    }
  }
  std::vector<Imported> outputs;
  for (const std::vector<ValueId>& values : by_batch) {
    if (!batched) {
      outputs.emplace_back(values[0]);
      continue;
    }
    TF_ASSIGN_OR_RETURN(const ValueId stacked, Stack(builder, values, 0));
    outputs.emplace_back(stacked);
  }
  return outputs;
}

}  // namespace

std::vector<Converter> ControlFlowConverters() {
  return {
      {"If", ConvertIf},
      {"Loop", ConvertLoop},
      {"Scan", ConvertScan},
  };
}

}  // namespace tilefarm::onnx
