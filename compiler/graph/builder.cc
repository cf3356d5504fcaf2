#include "compiler/graph/builder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::graph {
namespace {

// Larger programs run faster compiled than interpreted: compiling takes some
// 20 ms, and the interpreter does about ten million steps a second.
constexpr int64_t kInterpretedSteps = 200'000;

// A C identifier from an operator's name: "nn.conv2d" gives "nn_conv2d".
std::string FunctionName(const std::string& op) {
  std::string name = op;
  for (char& c : name) {
    if (c == '.') c = '_';
  }
  return name;
}

template <typename T>
T At(std::span<const std::byte> bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double ElementAsDouble(ir::DataType dtype, std::span<const std::byte> bytes,
                       size_t i) {
  if (dtype.code == ir::TypeCode::kBFloat) {
    return ir::BFloatToFloat(At<uint16_t>(bytes, i));
  }
  if (dtype.is_float()) {
    switch (dtype.bits) {
      case 16:
        return ir::HalfToFloat(At<uint16_t>(bytes, i));
      case 32:
        return At<float>(bytes, i);
      default:
        return At<double>(bytes, i);
    }
  }
  const bool is_signed = dtype.is_int();
  switch (dtype.bytes()) {
    case 1:
      return is_signed ? At<int8_t>(bytes, i) : At<uint8_t>(bytes, i);
    case 2:
      return is_signed ? At<int16_t>(bytes, i) : At<uint16_t>(bytes, i);
    case 4:
      return is_signed ? At<int32_t>(bytes, i) : At<uint32_t>(bytes, i);
    default:
      return is_signed ? static_cast<double>(At<int64_t>(bytes, i))
                       : static_cast<double>(At<uint64_t>(bytes, i));
  }
}

}  // namespace

absl::StatusOr<std::vector<TensorData>> EvaluateCall(const Graph& graph,
                                                     const Call& call,
                                                     const RunFunction& run) {
  std::vector<std::vector<std::byte>> storage;
  for (ValueId input : call.inputs) {
    const std::span<const std::byte> bytes =
        graph.values[input].constant->bytes();
    storage.emplace_back(bytes.begin(), bytes.end());
  }
  for (ValueId output : call.outputs) {
    storage.emplace_back(
        static_cast<size_t>(graph.values[output].type.num_bytes()));
  }
  const std::vector<std::span<std::byte>> buffers(storage.begin(),
                                                  storage.end());
  absl::Status done =
      ir::Interpret(*call.function, buffers, {.max_steps = kInterpretedSteps});
  if (absl::IsResourceExhausted(done)) done = run(*call.function, buffers);
  TF_RETURN_IF_ERROR(done);
  std::vector<TensorData> results;
  for (size_t i = call.inputs.size(); i < storage.size(); ++i) {
    results.emplace_back(std::move(storage[i]));
  }
  return results;
}

ValueId GraphBuilder::AddValue(std::string name, TensorType type) {
  graph_.values.push_back({std::move(name), std::move(type), nullptr});
  producer_.push_back(-1);
  return static_cast<ValueId>(graph_.values.size()) - 1;
}

ValueId GraphBuilder::Input(std::string name, TensorType type) {
  const ValueId id = AddValue(std::move(name), std::move(type));
  graph_.inputs.push_back(id);
  return id;
}

ValueId GraphBuilder::Constant(std::string name, TensorType type,
                               TensorData data) {
  TF_CHECK(static_cast<int64_t>(data.bytes().size()) == type.num_bytes());
  const ValueId id = AddValue(std::move(name), std::move(type));
  graph_.values[id].constant =
      std::make_shared<const TensorData>(std::move(data));
  return id;
}

ValueId GraphBuilder::Int64s(std::string name,
                             const std::vector<int64_t>& values) {
  return Constant(
      std::move(name),
      {ir::DataType::Int(64), {static_cast<int64_t>(values.size())}}, values);
}

absl::StatusOr<ValueId> GraphBuilder::Compute(
    std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
    const std::function<te::Tensor(const Tensors&)>& define) {
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      ComputeAll(std::move(op), std::move(attrs), inputs,
                 [&](const Tensors& in) { return Tensors{define(in)}; }));
  return outputs[0];
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::ComputeAll(
    std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
    const std::function<Tensors(const Tensors&)>& define) {
  Tensors placeholders, params;
  std::vector<ValueId> call_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = this->type(inputs[i]);
    placeholders.push_back(
        te::Placeholder(absl::StrCat("in", i), type.shape, type.dtype));
    // A program cannot have a buffer without elements.
    if (type.num_elements() == 0) continue;
    params.push_back(placeholders.back());
    call_inputs.push_back(inputs[i]);
  }
  const Tensors results = define(placeholders);
  std::vector<ValueId> all_outputs, call_outputs;
  for (const te::Tensor& result : results) {
    const TensorType type{result.dtype(), result.shape()};
    const bool empty =
        std::find(type.shape.begin(), type.shape.end(), 0) != type.shape.end();
    if (empty) {
      all_outputs.push_back(Constant(op, type, TensorData()));
      continue;
    }
    TF_CHECK(result.op() != nullptr);  // a parameter cannot be a result
    // Shapes come from a model: their product may overflow.
    TF_RETURN_IF_ERROR(ir::CheckBufferSize(*result.buffer()));
    params.push_back(result);
    all_outputs.push_back(AddValue(op, type));
    call_outputs.push_back(all_outputs.back());
  }
  if (call_outputs.empty()) return all_outputs;
  TF_ASSIGN_OR_RETURN(ir::PrimFuncPtr function,
                      te::CreatePrimFunc(FunctionName(op), params));
  for (ValueId id : call_outputs) {
    producer_[id] = static_cast<int>(graph_.calls.size());
  }
  graph_.calls.push_back({std::move(op), std::move(attrs), std::move(function),
                          std::move(call_inputs), std::move(call_outputs)});
  return all_outputs;
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::CallText(
    std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
    const std::string& text) {
  TF_ASSIGN_OR_RETURN(ir::PrimFuncPtr function, ir::ParseFunction(text, op));
  return CallFunction(std::move(op), std::move(attrs), inputs,
                      std::move(function));
}

absl::StatusOr<std::vector<ValueId>> GraphBuilder::CallFunction(
    std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
    ir::PrimFuncPtr function) {
  const std::vector<ir::Buffer>& params = function->params;
  if (params.size() <= inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, ": ", params.size(), " parameters for ", inputs.size(),
                     " inputs and the results"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType expected{params[i]->dtype, params[i]->shape};
    if (expected != type(inputs[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          op, ": parameter ", params[i]->name, " is ", expected.ToString(),
          ", its argument is ", type(inputs[i]).ToString()));
    }
  }
  std::vector<ValueId> outputs;
  for (size_t i = inputs.size(); i < params.size(); ++i) {
    outputs.push_back(AddValue(op, {params[i]->dtype, params[i]->shape}));
    producer_[outputs.back()] = static_cast<int>(graph_.calls.size());
  }
  graph_.calls.push_back(
      {std::move(op), std::move(attrs), std::move(function), inputs, outputs});
  return outputs;
}

bool GraphBuilder::IsConstant(ValueId id) const {
  // Without recursion, since graphs may be deep.
  std::vector<ValueId> stack{id};
  std::vector<bool> seen(graph_.values.size());
  while (!stack.empty()) {
    const ValueId next = stack.back();
    stack.pop_back();
    if (seen[next] || graph_.values[next].constant != nullptr) continue;
    seen[next] = true;
    if (producer_[next] < 0) return false;
    for (ValueId input : graph_.calls[producer_[next]].inputs) {
      stack.push_back(input);
    }
  }
  return true;
}

absl::StatusOr<TensorData> GraphBuilder::Evaluate(ValueId id) {
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId next = stack.back();
    if (graph_.values[next].constant != nullptr) {
      stack.pop_back();
      continue;
    }
    if (producer_[next] < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(name(id), " depends on the input ", name(next)));
    }
    const Call& call = graph_.calls[producer_[next]];
    bool ready = true;
    for (ValueId input : call.inputs) {
      if (graph_.values[input].constant != nullptr) continue;
      stack.push_back(input);
      ready = false;
    }
    if (!ready) continue;
    for (ValueId output : call.outputs) {
      if (type(output).num_bytes() > kMaxEvaluatedBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat(name(id), " is needed at compile time and depends on ",
                         name(output), ", ", type(output).ToString(),
                         ", more than ", kMaxEvaluatedBytes, " bytes"));
      }
    }
    TF_ASSIGN_OR_RETURN(std::vector<TensorData> results,
                        EvaluateCall(graph_, call, run_));
    for (size_t i = 0; i < results.size(); ++i) {
      graph_.values[call.outputs[i]].constant =
          std::make_shared<const TensorData>(std::move(results[i]));
    }
  }
  return *graph_.values[id].constant;
}

absl::StatusOr<std::vector<int64_t>> GraphBuilder::EvaluateInts(ValueId id) {
  const ir::DataType dtype = type(id).dtype;
  TF_CHECK(!dtype.is_float());
  TF_ASSIGN_OR_RETURN(const TensorData data, Evaluate(id));
  std::vector<int64_t> values(static_cast<size_t>(type(id).num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    // Doubles do not hold every 64-bit integer.
    values[i] =
        dtype.bits == 64
            ? At<int64_t>(data.bytes(), i)
            : static_cast<int64_t>(ElementAsDouble(dtype, data.bytes(), i));
  }
  return values;
}

absl::StatusOr<std::vector<double>> GraphBuilder::EvaluateDoubles(ValueId id) {
  TF_ASSIGN_OR_RETURN(const TensorData data, Evaluate(id));
  std::vector<double> values(static_cast<size_t>(type(id).num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ElementAsDouble(type(id).dtype, data.bytes(), i);
  }
  return values;
}

absl::StatusOr<Graph> GraphBuilder::Finish(
    std::vector<ValueId> outputs, std::vector<std::string> output_names) {
  std::vector<bool> needed(graph_.values.size());
  for (ValueId id : outputs) needed[id] = true;
  std::vector<Call> kept;
  for (auto call = graph_.calls.rbegin(); call != graph_.calls.rend(); ++call) {
    bool wanted = false;
    for (ValueId id : call->outputs) {
      // What was evaluated is a constant now.
      wanted |= needed[id] && graph_.values[id].constant == nullptr;
    }
    if (!wanted) continue;
    for (ValueId id : call->outputs) graph_.values[id].constant = nullptr;
    for (ValueId id : call->inputs) needed[id] = true;
    kept.push_back(std::move(*call));
  }
  graph_.calls.assign(std::make_move_iterator(kept.rbegin()),
                      std::make_move_iterator(kept.rend()));
  graph_.outputs = std::move(outputs);
  graph_.output_names = std::move(output_names);
  TF_RETURN_IF_ERROR(Verify(graph_));
  return std::move(graph_);
}

}  // namespace tilefarm::graph
