// Random graphs: the optimised graph and the compiled model compute what the
// graph computes.
#include <algorithm>
#include <cmath>

#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/passes.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

// Calls on matrices whose extents are of this list, so that many fit together.
constexpr int64_t kExtents[] = {1, 3, 8};

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : rng_(seed), builder_(Interpreted) {}

  Graph Make() {
    for (int64_t i = rng_.Between(1, 3); i > 0; --i) {
      values_.push_back(builder_.Input("x", F32({Extent(), Extent()})));
    }
    values_.push_back(builder_.Constant("c", F32({3, 8}), Elements24()));
    for (int64_t i = rng_.Between(5, 60); i > 0; --i) values_.push_back(Next());
    std::vector<ValueId> outputs = {values_.back()};
    for (int64_t i = rng_.Between(0, 3); i > 0; --i) {
      outputs.push_back(Any());
    }
    const std::vector<std::string> names(outputs.size(), "y");
    return *builder_.Finish(outputs, names);
  }

 private:
  int64_t Extent() { return kExtents[rng_.Below(std::size(kExtents))]; }
  std::vector<float> Elements24() {
    std::vector<float> values(24);
    for (float& value : values) value = static_cast<float>(rng_.Uniform());
    return values;
  }
  // Prefers the latest values, so that graphs are deep.
  ValueId Any() {
    const size_t window = rng_.Chance(0.7) ? 3 : values_.size();
    const size_t count = std::min(window, values_.size());
    return values_[values_.size() - 1 - rng_.Below(count)];
  }
  // A value whose shape broadcasts with that of `x`; `x` if none is found.
  ValueId Partner(ValueId x) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      const ValueId y = Any();
      bool fits = true;
      for (int d = 0; d < 2; ++d) {
        const int64_t a = builder_.shape(x)[d], b = builder_.shape(y)[d];
        fits &= a == b || a == 1 || b == 1;
      }
      if (fits) return y;
    }
    return x;
  }

  // Results stay in [-1, 1], so that long chains lose no accuracy.
  ValueId Next() {
    const ValueId x = Any();
    const std::vector<int64_t> shape = builder_.shape(x);
    switch (rng_.Below(8)) {
      case 0:
        return Relu(builder_, x);
      case 1:
        return Sigmoid(builder_, x);
      case 2:
        return Unary(builder_, "tanh", x, te::Tanh);
      case 3:
        return Multiply(builder_, x, Partner(x));
      case 4:
        return Unary(builder_, "tanh", Add(builder_, x, Partner(x)), te::Tanh);
      case 5:
        return Must(builder_.Compute("mean", {}, {x}, [&](const Tensors& in) {
          return te::Mean(in[0], {static_cast<int>(rng_.Below(2))}, true);
        }));
      case 6:
        return Reshape(builder_, x, {shape[1], shape[0]});
      default:
        return Unary(builder_, "tanh",
                     Matmul(builder_, x, Transpose(builder_, x)), te::Tanh);
    }
  }

  Rng rng_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
};

TEST(RandomGraphs, OptimizeKeepsEveryBit) {
  int calls = 0, fused_calls = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Graph graph = RandomGraph(seed).Make();
    const auto fused = Optimize(graph, Interpreted);
    ASSERT_TRUE(fused.ok()) << fused.status() << ", seed " << seed;
    ExpectEqualResults(graph, *fused, seed);
    if (testing::Test::HasFailure()) break;
    calls += static_cast<int>(graph.calls.size());
    fused_calls += static_cast<int>(fused->calls.size());
  }
  // The graphs are such that fusion has work to do.
  EXPECT_LT(fused_calls, calls * 9 / 10);
}

TEST(RandomGraphs, CompiledModelsComputeTheSame) {
  const auto host = target::Parse("host,cores=1");
  ASSERT_TRUE(host.ok()) << host.status();
  for (uint64_t seed = 1001; seed <= 1010; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).Make();
    const auto fused = Optimize(graph, Interpreted);
    ASSERT_TRUE(fused.ok()) << fused.status();
    const driver::ModelKernels kernels = driver::ExtractKernels(*fused);
    const auto artifact = driver::CompileModel(*fused, kernels, kernels.module,
                                               {.target = *host});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const auto model =
        driver::LoadedModel::Load(artifact->shared_object, "model");
    ASSERT_TRUE(model.ok()) << model.status();
    Rng rng(seed);
    const std::vector<TensorData> inputs = RandomInputs(graph, rng);
    const auto expected = RunGraph(graph, inputs, Interpreted);
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::vector<const void*> in;
    for (const TensorData& input : inputs) in.push_back(input.bytes().data());
    std::vector<std::vector<float>> results;
    for (const TensorData& output : *expected) {
      results.emplace_back(output.bytes().size() / sizeof(float), NAN);
    }
    std::vector<void*> out;
    for (std::vector<float>& result : results) out.push_back(result.data());
    ASSERT_TRUE(model->Run(in, out).ok());
    for (size_t i = 0; i < results.size(); ++i) {
      const std::vector<float> exact = Elements<float>((*expected)[i]);
      for (size_t k = 0; k < exact.size(); ++k) {
        // Elements are at most 1; products may be fused with sums.
        ASSERT_NEAR(results[i][k], exact[k], 1e-4) << i << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace tilefarm::graph
