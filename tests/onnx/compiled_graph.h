// A graph compiled as tunec compiles it, loaded into this process.
#ifndef TILEFARM_TESTS_ONNX_COMPILED_GRAPH_H_
#define TILEFARM_TESTS_ONNX_COMPILED_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/graph.h"

namespace tilefarm::testing {

enum class Schedules : uint8_t {
  kDefault,    // as tunec chooses without records; slow for many graphs
  kAsWritten,  // the kernels' loops as they are
};

// Not thread-safe.
class CompiledGraph {
 public:
  // All passes over the graph, schedules for its kernels, and code. Kernels of
  // GPUs have no loops as they are written.
  static absl::StatusOr<CompiledGraph> Compile(
      graph::Graph graph, Schedules schedules = Schedules::kDefault,
      const std::string& target = "host,cores=1");

  // The outputs for the inputs, each dense and row-major, as RunGraph. Bytes
  // around the outputs are checked: Internal if the model wrote them.
  absl::StatusOr<std::vector<graph::TensorData>> Run(
      std::span<const graph::TensorData> inputs) const;

 private:
  CompiledGraph(graph::Graph graph, driver::LoadedModel model)
      : graph_(std::move(graph)), model_(std::move(model)) {}

  graph::Graph graph_;
  driver::LoadedModel model_;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_ONNX_COMPILED_GRAPH_H_
