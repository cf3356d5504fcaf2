// Random models: the passes keep what the graph computes, call by call.
#include "tests/onnx/random_model.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/printer.h"
#include "compiler/graph/run_graph.h"
#include "compiler/onnx/importer.h"
#include "gtest/gtest.h"
#include "tests/graph/random_inputs.h"

namespace tilefarm::onnx {
namespace {

using graph::Elements;
using graph::Interpreted;

TEST(RandomModels, OptimizeKeepsResults) {
  // In how many models each pass changed something.
  std::map<std::string, int> changed;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const std::string model = RandomModel(seed);
    EXPECT_GE(NodeCount(model), 5);
    const auto graph = ImportBytes(model, "", {}, Interpreted);
    ASSERT_TRUE(graph.ok()) << graph.status();
    Rng rng(seed);
    const std::vector<graph::TensorData> inputs =
        graph::RandomInputs(*graph, rng);
    const auto expected = graph::RunGraph(*graph, inputs, Interpreted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::string before = graph::Print(*graph);
    const auto optimized = graph::Optimize(
        *graph, Interpreted,
        {.packed_weights = seed % 2 == 0, .scattered_rows = seed % 3 == 0},
        [&](std::string_view pass, const auto& now) {
          if (testing::Test::HasFailure()) return;
          std::string after = graph::Print(now);
          changed[std::string(pass)] += after != before;
          before = std::move(after);
          const auto actual = graph::RunGraph(now, inputs, Interpreted);
          ASSERT_TRUE(actual.ok()) << pass << ": " << actual.status();
          for (size_t i = 0; i < expected->size(); ++i) {
            const auto exact_values = Elements<float>((*expected)[i]);
            const auto values = Elements<float>((*actual)[i]);
            for (size_t k = 0; k < exact_values.size(); ++k) {
              const float exact = exact_values[k];
              ASSERT_TRUE(std::isfinite(exact)) << "the model is no good test";
              ASSERT_NEAR(values[k], exact, 1e-3 * (1 + std::abs(exact)))
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
