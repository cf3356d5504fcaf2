// Random graphs: the optimised graph and the compiled model compute what the
// graph computes.
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/passes.h"
#include "compiler/target/target.h"
#include "compiler/te/convolution.h"
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

  // Two or three values, if others with as many rows or columns are found, and
  // not too large.
  ValueId Joined(ValueId x, size_t axis) {
    std::vector<ValueId> parts = {x};
    int64_t extent = builder_.shape(x)[axis];
    for (int attempt = 0; attempt < 6 && parts.size() < 3; ++attempt) {
      const ValueId y = Any();
      const std::vector<int64_t> shape = builder_.shape(y);
      if (shape[1 - axis] != builder_.shape(x)[1 - axis]) continue;
      extent += shape[axis];
      if (extent > 24) break;
      parts.push_back(y);
    }
    return parts.size() < 2 ? x : Concat(builder_, parts, axis);
  }

  // Results stay in [-1, 1], so that long chains lose no accuracy.
  ValueId Next() {
    const ValueId x = Any();
    const std::vector<int64_t> shape = builder_.shape(x);
    switch (rng_.Below(9)) {
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
      case 7:
        return Joined(x, rng_.Below(2));
      default:
        return Unary(builder_, "tanh",
                     Matmul(builder_, x, Transpose(builder_, x)), te::Tanh);
    }
  }

  Rng rng_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
};

// Calls on images, [1, channels, rows, columns], as convolutional networks make
// them.
class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed) : rng_(seed), builder_(Interpreted) {}

  Graph Make() {
    const int64_t rows = rng_.Between(2, 6), columns = rng_.Between(2, 6);
    values_.push_back(builder_.Input("x", F32({1, 3, rows, columns})));
    for (int64_t i = rng_.Between(5, 25); i > 0; --i) values_.push_back(Next());
    std::vector<ValueId> outputs = {values_.back()};
    if (rng_.Chance(0.3)) outputs.push_back(Any());
    const std::vector<std::string> names(outputs.size(), "y");
    return *builder_.Finish(outputs, names);
  }

 private:
  ValueId Any() {
    const size_t count = std::min<size_t>(4, values_.size());
    return values_[values_.size() - 1 - rng_.Below(count)];
  }
  ValueId Weights(std::vector<int64_t> shape) {
    const TensorType type = F32(std::move(shape));
    std::vector<float> values(static_cast<size_t>(type.num_elements()));
    for (float& value : values) {
      value = static_cast<float>(rng_.Uniform() - 0.5);
    }
    return builder_.Constant("w", type, values);
  }
  ValueId Compute(const std::string& op, const std::vector<ValueId>& inputs,
                  const std::function<te::Tensor(const Tensors&)>& define) {
    return Must(builder_.Compute(op, {}, inputs, define));
  }

  ValueId Convolution(ValueId x) {
    const int64_t in = builder_.shape(x)[1];
    te::ConvOptions options;
    int64_t out = rng_.Between(1, 5), taps = rng_.Chance(0.5) ? 3 : 1;
    if (taps == 3) options.padding = {1, 1};
    if (rng_.Chance(0.2)) options.stride = {2, 2};
    if (rng_.Chance(0.3)) {
      options.groups = in;  // depthwise, perhaps with a multiplier
      out = in * rng_.Between(1, 2);
    }
    const ValueId w = Weights({out, in / options.groups, taps, taps});
    const ValueId y = Compute("nn.conv2d", {x, w}, [&](const Tensors& t) {
      return te::Conv2dNchw(t[0], t[1], options);
    });
    const ValueId bias = Weights({out, 1, 1});
    return Unary(builder_, "tanh", Add(builder_, y, bias), te::Tanh);
  }

  ValueId Upsample(ValueId x) {
    const std::vector<int64_t> shape = builder_.shape(x);
    const ValueId w = Weights({shape[1], rng_.Between(1, 3), 2, 2});
    const te::SlidingWindow window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
    const ValueId y =
        Compute("nn.conv2d_transpose", {x, w}, [&](const Tensors& t) {
          return te::ConvTranspose(t[0], t[1], window,
                                   {2 * shape[2], 2 * shape[3]}, 1,
                                   ir::DataType::Float(32));
        });
    return Unary(builder_, "tanh", y, te::Tanh);
  }

  // Another value with the same rows and columns; `x` if none is found.
  ValueId Partner(ValueId x, bool same_channels) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      const ValueId y = Any();
      const std::vector<int64_t>&a = builder_.shape(x), &b = builder_.shape(y);
      if (a[2] == b[2] && a[3] == b[3] && (!same_channels || a[1] == b[1])) {
        return y;
      }
    }
    return x;
  }

  ValueId Next() {
    const ValueId x = Any();
    const std::vector<int64_t> shape = builder_.shape(x);
    switch (rng_.Below(10)) {
      case 0:
        return Relu(builder_, x);
      case 1:
        return Multiply(builder_, x, Partner(x, /*same_channels=*/true));
      case 2:
        return Concat(builder_, {x, Partner(x, /*same_channels=*/false)}, 1);
      case 3:  // squeeze and excite
        return Multiply(
            builder_, x,
            Sigmoid(builder_,
                    Compute("nn.global_avg_pool2d", {x}, [](const Tensors& t) {
                      return te::GlobalAveragePoolNchw(t[0]);
                    })));
      case 4:
        if (std::min(shape[2], shape[3]) < 2) return Sigmoid(builder_, x);
        return Compute("nn.max_pool2d", {x}, [](const Tensors& t) {
          return te::Pool2dNchw(t[0], te::Pooling::kMax, {});
        });
      case 5:
        if (shape[2] * shape[3] > 64) return Relu(builder_, x);
        return Upsample(x);
      case 6:
        return rng_.Chance(0.5)
                   ? Reshape(builder_, x, {1, shape[1], shape[3], shape[2]})
                   : Compute("transpose", {x}, [](const Tensors& t) {
                       return te::Transpose(t[0], {0, 2, 1, 3});
                     });
      default:
        return Convolution(x);
    }
  }

  Rng rng_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;
};

TEST(RandomNetworks, OptimizeKeepsResults) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const Graph graph = RandomNetwork(seed).Make();
    const auto optimized = Optimize(graph, Interpreted);
    ASSERT_TRUE(optimized.ok()) << optimized.status() << ", seed " << seed;
    ExpectCloseResults(graph, *optimized, seed);
    if (testing::Test::HasFailure()) break;
    for (size_t id = 0; id < graph.values.size(); ++id) {
      changed += graph.values[id].type != optimized->values[id].type;
    }
  }
  // The graphs are such that there are layouts to choose.
  EXPECT_GT(changed, 1000);
}

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
  for (uint64_t seed = 1001; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph =
        seed % 2 == 0 ? RandomGraph(seed).Make() : RandomNetwork(seed).Make();
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
