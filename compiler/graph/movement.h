// Calls that only move elements: transposes, slices, broadcasts, reshapes.
#ifndef TILEFARM_COMPILER_GRAPH_MOVEMENT_H_
#define TILEFARM_COMPILER_GRAPH_MOVEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

// result[vars...] = input[indices...], for vars from 0 to the extents of the
// result.
struct Movement {
  std::vector<int64_t> input_shape, result_shape;
  std::vector<ir::Var> vars;
  std::vector<ir::Expr> indices;
};

// nullopt if the function has several inputs, or computes anything.
std::optional<Movement> MovementOf(const ir::PrimFunc& function);

// `second` of the result of `first`. Its indices are simplified.
Movement Compose(const Movement& first, const Movement& second);

// The movement of a reshape: `vars` are of `to`.
Movement ReshapeMovement(std::vector<int64_t> from, std::vector<int64_t> to,
                         std::vector<ir::Var> vars);

// A call that moves elements of `input` so to `output`.
absl::StatusOr<Call> MakeRearrange(Graph& graph, ValueId input,
                                   const Movement& movement, ValueId output);

// Whether an index is made of sums and products: a kernel steps through its
// input without divisions.
bool IsPlainIndex(const ir::Expr& index);
bool HasPlainIndices(const Movement& movement);

// Whether the result has the bytes of the input, in their order.
bool KeepsBytes(const Movement& movement);

// Whether each element of the result is read at its own place, and the shapes
// are equal.
bool IsIdentity(const Movement& movement);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_MOVEMENT_H_
