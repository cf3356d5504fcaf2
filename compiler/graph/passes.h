// Passes over graphs. Each keeps what the graph computes, but for the order in
// which the sums of convolutions are added, the sign of zeros, and the rounding
// of folded scales and steps and of products of quantised tensors.
#ifndef TILEFARM_COMPILER_GRAPH_PASSES_H_
#define TILEFARM_COMPILER_GRAPH_PASSES_H_

#include <functional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"

namespace tilefarm::graph {

// Multiplies the integers that dequantised tensors store
// (integer_products.cc).
absl::StatusOr<Graph> MultiplyIntegers(Graph graph, const RunFunction& run);

// Takes zero points out of sums of integer products (zero_points.cc).
absl::StatusOr<Graph> SplitZeroPoints(Graph graph, const RunFunction& run);

// Replaces calls whose inputs are constants by their results, but for those
// that are cheaper to compute than to load (fold_constants.cc).
absl::StatusOr<Graph> FoldConstants(Graph graph, const RunFunction& run);

// After fusion: replaces what is left of calls of constants, which would run
// every time for the same result, but for results of the graph.
absl::StatusOr<Graph> FoldUnfused(Graph graph, const RunFunction& run);

// Drops calls that change nothing, and makes reshapes of those that only rename
// elements (simplify.cc).
absl::StatusOr<Graph> Simplify(Graph graph);

// Moves reshapes behind elementwise calls (sink_reshapes.cc).
absl::StatusOr<Graph> SinkReshapes(Graph graph);

// Computes the parts of functions that depend on constants only
// (hoist_constants.cc).
absl::StatusOr<Graph> HoistConstants(Graph graph, const RunFunction& run);

// Scales the results of products before their parts are moved apart, instead of
// the parts (hoist_scales.cc).
absl::StatusOr<Graph> HoistScales(Graph graph, const RunFunction& run);

// Multiplies scales that follow a product, such as those of a batch norm, into
// its constant weights (fold_scales.cc).
absl::StatusOr<Graph> FoldScales(Graph graph, const RunFunction& run);

// Multiplies the same data by several constant matrices at once
// (merge_products.cc).
absl::StatusOr<Graph> MergeProducts(Graph graph);

// Makes one call of several that move elements one after another
// (compose_movement.cc).
absl::StatusOr<Graph> ComposeMovement(Graph graph);

// Computes equal calls of equal inputs once.
Graph MergeEqualCalls(Graph graph);

// Looks up what elementwise calls make of bytes (tabulate.cc).
absl::StatusOr<Graph> Tabulate(Graph graph, const RunFunction& run);

// Divides constants, instead of results, by the steps of quantisation
// (fold_steps.cc).
absl::StatusOr<Graph> FoldSteps(Graph graph, const RunFunction& run);

// Drops calls and constants that no output needs.
Graph DropUnused(Graph graph);

// Gives what convolutions read and write, and what is computed from it with
// channels apart, its channels as the last dimension (channels_last.cc).
absl::StatusOr<Graph> PutChannelsLast(Graph graph);

// Gives constant weights of convolutions their filters as the last dimension
// (filters_last.cc).
absl::StatusOr<Graph> PutFiltersLast(Graph graph);

// Merges calls with the elementwise calls that use their results (fuse.cc),
// then chains of products.
absl::StatusOr<Graph> FuseCalls(Graph graph);

// The second half of FuseCalls: merges two products and the sums over rows
// between them (fuse_chains.cc).
absl::StatusOr<Graph> FuseChains(Graph graph);

// Merges calls with what moves their operands and results (fuse_movement.cc).
absl::StatusOr<Graph> FuseMovement(Graph graph);

// Computes what concatenations join in their results (join_in_place.cc).
absl::StatusOr<Graph> JoinInPlace(Graph graph);

// The passes in their order, by the names that `tunec --print-after` takes.
struct Pass {
  std::string_view name;
  absl::StatusOr<Graph> (*apply)(Graph graph, const RunFunction& run);
};
std::span<const Pass> AllPasses();
// The name of the pass that fuses calls.
inline constexpr std::string_view kFusionPass = "fuse-calls";

// What the kernels of the target allow.
struct Options {
  // Results whose rows do not follow each other (join_in_place.cc).
  bool strided_results = true;
  // Kernels have constants in an order of their own, whatever it is in the
  // graph; otherwise filters_last.cc applies.
  bool packed_weights = true;
  // Kernels read and write rows wherever they are, at no cost; fuse_movement.cc
  // applies.
  bool scattered_rows = false;
};

// All passes, in order. `after` (may be empty) sees the graph after each.
absl::StatusOr<Graph> Optimize(
    Graph graph, const RunFunction& run, const Options& options = {},
    const std::function<void(std::string_view pass, const Graph&)>& after = {});

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_PASSES_H_
