// Random models: the passes keep what the graph computes, call by call.
#include "tests/onnx/random_model.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/printer.h"
#include "compiler/graph/run_graph.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "gtest/gtest.h"

namespace tilefarm::onnx {
namespace {

absl::Status Interpreted(const ir::PrimFunc& function,
                         std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

std::vector<graph::TensorData> Inputs(const graph::Graph& graph,
                                      uint64_t seed) {
  Rng rng(seed);
  std::vector<graph::TensorData> inputs;
  for (const graph::ValueId id : graph.inputs) {
    std::vector<float> values(
        static_cast<size_t>(graph.values[id].type.num_elements()));
    for (float& value : values) {
      value = static_cast<float>(2 * rng.Uniform() - 1);
    }
    const auto bytes = std::as_bytes(std::span(values));
    inputs.emplace_back(std::vector(bytes.begin(), bytes.end()));
  }
  return inputs;
}

float FloatAt(const graph::TensorData& data, size_t i) {
  float value;
  std::memcpy(&value, data.bytes().data() + i * sizeof(float), sizeof(float));
  return value;
}

TEST(RandomModels, OptimizeKeepsResults) {
  // In how many models each pass changed something.
  std::map<std::string, int> changed;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const std::string model = RandomModel(seed);
    EXPECT_GE(NodeCount(model), 5);
    const auto graph = ImportBytes(model, "", {}, Interpreted);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::vector<graph::TensorData> inputs = Inputs(*graph, seed);
    const auto expected = graph::RunGraph(*graph, inputs, Interpreted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::string before = graph::Print(*graph);
    const auto optimized = graph::Optimize(
        *graph, Interpreted, [&](std::string_view pass, const auto& now) {
          if (testing::Test::HasFailure()) return;
          std::string after = graph::Print(now);
          changed[std::string(pass)] += after != before;
          before = std::move(after);
          const auto actual = graph::RunGraph(now, inputs, Interpreted);
          ASSERT_TRUE(actual.ok()) << pass << ": " << actual.status();
          for (size_t i = 0; i < expected->size(); ++i) {
            const size_t count = (*expected)[i].bytes().size() / sizeof(float);
            for (size_t k = 0; k < count; ++k) {
              const float exact = FloatAt((*expected)[i], k);
              ASSERT_TRUE(std::isfinite(exact)) << "the model is no good test";
              ASSERT_NEAR(FloatAt((*actual)[i], k), exact,
                          1e-3 * (1 + std::abs(exact)))
                  << pass << ", output " << i << ", element " << k;
            }
          }
        });
    ASSERT_TRUE(optimized.ok()) << optimized.status();
    if (testing::Test::HasFailure()) break;
  }
  // The models are such that the passes have work to do.
  for (const graph::Pass& pass : graph::AllPasses()) {
    EXPECT_GE(changed[std::string(pass.name)], 20) << pass.name;
  }
}

}  // namespace
}  // namespace tilefarm::onnx
