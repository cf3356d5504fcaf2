// Builds a graph, call by call, from tensor expressions; evaluates values that
// depend on constants only.
//
//   GraphBuilder builder(RunOnHost);
//   ValueId x = builder.Input("x", {DataType::Float(32), {8, 4}});
//   ValueId y = *builder.Compute("nn.relu", {}, {x},
//       [](const Tensors& in) { return te::Relu(in[0]); });
#ifndef TILEFARM_COMPILER_GRAPH_BUILDER_H_
#define TILEFARM_COMPILER_GRAPH_BUILDER_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/te/tensor.h"

namespace tilefarm::graph {

using Tensors = std::vector<te::Tensor>;

// Runs a function on dense row-major buffers, one per parameter, in place.
using RunFunction =
    std::function<absl::Status(const ir::PrimFunc& function,
                               std::span<const std::span<std::byte>> buffers)>;

// The most that a small file can make a compile evaluate at once. Shapes,
// indices and scales are far smaller, and so are most weights.
inline constexpr int64_t kMaxEvaluatedBytes = int64_t{1} << 30;

// The results of a call whose inputs are constants: by the interpreter, or by
// `run` if that would take long.
absl::StatusOr<std::vector<TensorData>> EvaluateCall(const Graph& graph,
                                                     const Call& call,
                                                     const RunFunction& run);

class GraphBuilder {
 public:
  // `run` evaluates constants that are too large for the interpreter.
  explicit GraphBuilder(RunFunction run) : run_(std::move(run)) {}

  ValueId Input(std::string name, TensorType type);
  ValueId Constant(std::string name, TensorType type, TensorData data);
  // A constant from C++ values; T is the element type in memory (bool:
  // uint8_t).
  template <typename T>
  ValueId Constant(std::string name, TensorType type,
                   const std::vector<T>& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    return Constant(std::move(name), std::move(type),
                    TensorData(std::vector(bytes.begin(), bytes.end())));
  }
  // A one-dimensional int64 constant.
  ValueId Int64s(std::string name, const std::vector<int64_t>& values);

  // Appends a call of the program that computes what `define` returns from the
  // placeholders of `inputs`. A result that has no elements becomes a constant;
  // if an input has none, the program must not read it.
  // InvalidArgument: what te::CreatePrimFunc rejects.
  absl::StatusOr<ValueId> Compute(
      std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
      const std::function<te::Tensor(const Tensors&)>& define);
  // The same with several results.
  absl::StatusOr<std::vector<ValueId>> ComputeAll(
      std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
      const std::function<Tensors(const Tensors&)>& define);
  // Appends a call of a function in TVMScript text whose parameters are the
  // inputs, then the outputs: for loops that tensor expressions cannot say.
  // InvalidArgument: the text does not parse, or does not fit the inputs.
  absl::StatusOr<std::vector<ValueId>> CallText(
      std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
      const std::string& text);
  // Appends a call of `function`.
  absl::StatusOr<std::vector<ValueId>> CallFunction(
      std::string op, ir::AttrMap attrs, const std::vector<ValueId>& inputs,
      ir::PrimFuncPtr function);

  // Whether a call computes the value: it is no input and no given constant.
  bool IsComputed(ValueId id) const { return producer_[id] >= 0; }
  // Whether the value depends on constants only.
  bool IsConstant(ValueId id) const;
  // The value's elements, computed now if need be. FailedPrecondition: the
  // value depends on an input. InvalidArgument: it takes absurdly large values.
  absl::StatusOr<TensorData> Evaluate(ValueId id);
  // The elements of an integer or bool value as int64, in row-major order.
  absl::StatusOr<std::vector<int64_t>> EvaluateInts(ValueId id);
  // The elements of a value of any type as double.
  absl::StatusOr<std::vector<double>> EvaluateDoubles(ValueId id);

  const TensorType& type(ValueId id) const { return graph_.values[id].type; }
  const std::vector<int64_t>& shape(ValueId id) const { return type(id).shape; }
  void SetName(ValueId id, std::string name) {
    graph_.values[id].name = std::move(name);
  }
  // See Value::element_type.
  void SetElementType(ValueId id, std::string type) {
    graph_.values[id].element_type = std::move(type);
  }
  const std::string& name(ValueId id) const { return graph_.values[id].name; }

  // Ends the building: calls that no output needs are gone. The builder must
  // not be used afterwards.
  absl::StatusOr<Graph> Finish(std::vector<ValueId> outputs,
                               std::vector<std::string> output_names);

 private:
  ValueId AddValue(std::string name, TensorType type);

  RunFunction run_;
  Graph graph_;
  std::vector<int> producer_;  // per value: index of its call, or -1
};

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_BUILDER_H_
