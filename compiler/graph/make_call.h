// Calls and constants that passes add to a graph.
#ifndef TILEFARM_COMPILER_GRAPH_MAKE_CALL_H_
#define TILEFARM_COMPILER_GRAPH_MAKE_CALL_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {

using Define = std::function<te::Tensor(const Tensors&)>;

// A call of the program that computes what `define` returns from the
// placeholders of `inputs`, which must have elements. Its result is `output`,
// or a new value of the graph; the caller places the call.
absl::StatusOr<Call> MakeCall(Graph& graph, std::string op, ir::AttrMap attrs,
                              const std::vector<ValueId>& inputs,
                              const Define& define,
                              std::optional<ValueId> output = std::nullopt);

// The result of such a call of constants, computed now: a new constant.
absl::StatusOr<ValueId> MakeConstant(Graph& graph, std::string name,
                                     const std::vector<ValueId>& inputs,
                                     const RunFunction& run,
                                     const Define& define);

// Whether no element of the constant, of float32 or float64, is infinite or not
// a number.
bool AllFinite(const Value& constant);

// An expression of a function within a tensor expression: what it loads from
// `params` is read from `tensors`, which are as many or more, and variables are
// replaced. It must not load other buffers.
ir::Expr ReadInTensors(const ir::Expr& expr,
                       const std::vector<ir::Buffer>& params,
                       const Tensors& tensors, const ir::VarMap& vars);

// A call that makes `output` of the elements of `input`, in their order.
absl::StatusOr<Call> MakeReshape(Graph& graph, ValueId input, ValueId output);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_MAKE_CALL_H_
