// The graph of a model: tensors, and calls of PrimFuncs that compute them.
//
//   @R.function
//   def main(x: R.Tensor((1, 8), dtype="float32")):
//       with R.dataflow():
//           h = R.call_tir(matmul, (x, w), R.Tensor((1, 4), "float32"))
//           y = R.call_tir(nn_relu, (h,), R.Tensor((1, 4), "float32"))
//           R.output(y)
//       return y
//
// Calls are in destination-passing style: a function's parameters are the
// inputs, then the outputs. Every value is computed once (SSA); calls are in an
// order in which inputs precede uses. Shapes are static.
#ifndef TILEFARM_COMPILER_GRAPH_GRAPH_H_
#define TILEFARM_COMPILER_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

struct TensorType {
  ir::DataType dtype;
  std::vector<int64_t> shape;  // empty: one element

  int ndim() const { return static_cast<int>(shape.size()); }
  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * dtype.bytes(); }
  // `R.Tensor((1, 8), dtype="float32")`.
  std::string ToString() const;
  bool operator==(const TensorType&) const = default;
};

// The elements of a constant, dense and row-major: immutable and shared. They
// may be part of a mapped file, which the owner keeps open.
class TensorData {
 public:
  TensorData() = default;
  explicit TensorData(std::vector<std::byte> bytes);
  TensorData(std::shared_ptr<const void> owner,
             std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

using ValueId = int;  // index into Graph::values

// Where a value lies in the memory of another one that it is a part of.
struct Part {
  ValueId whole = -1;
  // As in ir::BufferNode: elements from one index of each dimension to the
  // next, and from the start of `whole` to the first element.
  std::vector<int64_t> strides;
  int64_t elem_offset = 0;

  bool operator==(const Part&) const = default;
};

struct Value {
  std::string name;  // for people; need not be unique
  TensorType type;
  std::shared_ptr<const TensorData> constant;  // null: computed or an input
  // The element type outside of the graph where the language does not have it,
  // as ONNX names it ("FLOAT8E4M3FN", "INT4"); set for inputs and outputs. The
  // graph then stores one element per byte: floats as their bits (uint8),
  // integers as their value (int8, uint8).
  std::string element_type = {};
  // Set for what is computed in the memory of a larger result: parameters for
  // it have these strides and this offset.
  std::optional<Part> part = {};
};

// The operator of calls whose inputs are the parts of their result: with all of
// them computed, it is, and the call needs no code.
inline constexpr char kJoin[] = "join";

struct Call {
  // The graph operator that `function` computes, with its attributes: what
  // passes recognise ("nn.conv2d", {"strides": [2, 2]}); operators.h says
  // which there are. The function alone determines the result.
  std::string op;
  ir::AttrMap attrs;
  ir::PrimFuncPtr function;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

struct Graph {
  std::string name = "main";
  std::vector<Value> values;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;  // one per output
  std::vector<Call> calls;
};

// The value whose memory the value lies in.
ValueId WholeOf(const Graph& graph, ValueId id);

// Gives the parameter for a value that is the part its place.
void PlaceBuffer(const Part& part, ir::BufferNode& param);

// Whether calls fit their functions and every value is computed once and before
// its uses. Internal otherwise: graphs come from our own code.
absl::Status Verify(const Graph& graph);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_GRAPH_H_
