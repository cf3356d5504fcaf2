#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "compiler/graph/passes.h"

namespace tilefarm::graph {
namespace {

constexpr std::string_view kJoinPass = "join-in-place",
                           kFiltersPass = "filters-last",
                           kMovementPass = "fuse-movement";

constexpr Pass kPasses[] = {
    // Constants that are folded are no longer seen to be dequantised.
    {"multiply-integers", MultiplyIntegers},
    {"fold-constants", FoldConstants},
    {"split-zero-points", SplitZeroPoints},
    {"simplify", [](Graph graph,
                    const RunFunction&) { return Simplify(std::move(graph)); }},
    // A batch norm becomes elementwise, so that its scale can be folded.
    {"hoist-constants", HoistConstants},
    {"sink-reshapes",
     [](Graph graph, const RunFunction&) {
       return SinkReshapes(std::move(graph));
     }},
    {"hoist-scales", HoistScales},
    {"fold-scales", FoldScales},
    {"merge-products",
     [](Graph graph, const RunFunction&) {
       return MergeProducts(std::move(graph));
     }},
    {"compose-movement",
     [](Graph graph, const RunFunction&) {
       return ComposeMovement(std::move(graph));
     }},
    // Equal calls must be one before fusion looks at the uses of values.
    {"merge-equal-calls",
     [](Graph graph, const RunFunction&) -> absl::StatusOr<Graph> {
       return MergeEqualCalls(std::move(graph));
     }},
    {"tabulate", Tabulate},
    // Tables have what the model's own divisions give.
    {"fold-steps", FoldSteps},
    {"drop-unused",
     [](Graph graph, const RunFunction&) -> absl::StatusOr<Graph> {
       return DropUnused(std::move(graph));
     }},
    {"channels-last",
     [](Graph graph, const RunFunction&) -> absl::StatusOr<Graph> {
       TF_ASSIGN_OR_RETURN(graph, PutChannelsLast(std::move(graph)));
       // Transposes that put channels last move nothing now.
       return Simplify(std::move(graph));
     }},
    {kFiltersPass,
     [](Graph graph, const RunFunction&) {
       return PutFiltersLast(std::move(graph));
     }},
    {kFusionPass,
     [](Graph graph, const RunFunction&) {
       return FuseCalls(std::move(graph));
     }},
    // Fusion has decided which results are made at all.
    {"fold-unfused", FoldUnfused},
    {kMovementPass,
     [](Graph graph, const RunFunction&) {
       return FuseMovement(std::move(graph));
     }},
    {kJoinPass,
     [](Graph graph, const RunFunction&) {
       return JoinInPlace(std::move(graph));
     }},
};

}  // namespace

std::span<const Pass> AllPasses() { return kPasses; }

absl::StatusOr<Graph> Optimize(
    Graph graph, const RunFunction& run, const Options& options,
    const std::function<void(std::string_view pass, const Graph&)>& after) {
  for (const Pass& pass : kPasses) {
    const bool left_out =
        (pass.name == kJoinPass && !options.strided_results) ||
        (pass.name == kFiltersPass && options.packed_weights) ||
        (pass.name == kMovementPass && !options.scattered_rows);
    if (!left_out) {
      TF_ASSIGN_OR_RETURN(graph, pass.apply(std::move(graph), run));
      TF_RETURN_IF_ERROR(Verify(graph));
    }
    if (after) after(pass.name, graph);
  }
  return graph;
}

}  // namespace tilefarm::graph
