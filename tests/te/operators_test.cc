// Compares operators with plain loops over the same numbers, in the
// interpreter.
#include "compiler/te/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"

namespace tilefarm::te {
namespace {

using ir::DataType;
using Values = std::vector<float>;

constexpr DataType kFloat = DataType::Float(32);

Values Random(const Tensor& tensor, uint64_t seed) {
  Rng rng(seed);
  Values values(tensor.buffer()->num_elements());
  for (float& value : values) value = static_cast<float>(rng.Uniform() * 2 - 1);
  return values;
}

// Runs the program on `inputs` and returns its last parameter.
Values Evaluate(const std::vector<Tensor>& params, std::vector<Values> inputs) {
  auto function = CreatePrimFunc("main", params);
  EXPECT_TRUE(function.ok()) << function.status();
  if (!function.ok()) return {};
  inputs.emplace_back(params.back().buffer()->num_elements());
  std::vector<std::span<std::byte>> buffers;
  for (Values& values : inputs) {
    buffers.push_back(std::as_writable_bytes(std::span(values)));
  }
  const absl::Status status = ir::Interpret(**function, buffers);
  EXPECT_TRUE(status.ok()) << status;

  // te makes ordinary programs: their text parses to the same program.
  const std::string text = ir::Print(**function);
  auto parsed = ir::ParseFunction(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  if (parsed.ok()) {
    EXPECT_EQ(ir::Print(**parsed), text);
    EXPECT_EQ(ir::WorkloadHash(**parsed), ir::WorkloadHash(**function));
  }
  return inputs.back();
}

void ExpectNear(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4) << "element " << i;
  }
}

TEST(OperatorsTest, MatmulWithBothTransposes) {
  constexpr int m = 5, k = 7, n = 3;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      using Shape = std::vector<int64_t>;
      const Tensor a = Placeholder("A", ta ? Shape{k, m} : Shape{m, k}, kFloat);
      const Tensor b = Placeholder("B", tb ? Shape{n, k} : Shape{k, n}, kFloat);
      MatmulOptions options;
      options.transpose_a = ta;
      options.transpose_b = tb;
      const Tensor c = Matmul(a, b, options);
      const Values x = Random(a, 1), y = Random(b, 2);
      Values expected(m * n);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          for (int l = 0; l < k; ++l) {
            expected[i * n + j] += (ta ? x[l * m + i] : x[i * k + l]) *
                                   (tb ? y[j * k + l] : y[l * n + j]);
          }
        }
      }
      ExpectNear(Evaluate({a, b, c}, {x, y}), expected);
    }
  }
}

TEST(OperatorsTest, DenseWithBiasAndGelu) {
  const Tensor x = Placeholder("x", {2, 4}, kFloat);
  const Tensor w = Placeholder("w", {3, 4}, kFloat);
  const Tensor b = Placeholder("b", {3}, kFloat);
  const Tensor out = Dense(x, w, &b, Activation::kGelu);
  const Values xs = Random(x, 1), ws = Random(w, 2), bs = Random(b, 3);
  Values expected;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      float sum = bs[j];
      for (int k = 0; k < 4; ++k) sum += xs[i * 4 + k] * ws[j * 4 + k];
      expected.push_back(0.5f * sum * (1 + std::erf(sum / std::sqrt(2.0f))));
    }
  }
  ExpectNear(Evaluate({x, w, b, out}, {xs, ws, bs}), expected);
}

struct ConvCase {
  int64_t channels, out_channels, height, width, rows, columns;
  ConvOptions options;
};

class ConvTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, BothLayoutsMatchPlainLoops) {
  const ConvCase& c = GetParam();
  const int64_t group_in = c.channels / c.options.groups;
  const int64_t group_out = c.out_channels / c.options.groups;
  const Tensor data =
      Placeholder("data", {1, c.channels, c.height, c.width}, kFloat);
  const Tensor weight = Placeholder(
      "weight", {c.out_channels, group_in, c.rows, c.columns}, kFloat);
  const Tensor out = Conv2dNchw(data, weight, c.options);
  const Values x = Random(data, 1), w = Random(weight, 2);
  const int64_t p = out.dim(2), q = out.dim(3);
  Values expected(out.buffer()->num_elements());
  Values expected_nhwc(expected.size());
  for (int64_t o = 0; o < c.out_channels; ++o) {
    for (int64_t y = 0; y < p * q; ++y) {
      const int64_t row = y / q, column = y % q;
      float sum = 0;
      for (int64_t i = 0; i < group_in * c.rows * c.columns; ++i) {
        const int64_t rc = i / (c.rows * c.columns);
        const int64_t r = i / c.columns % c.rows, s = i % c.columns;
        const int64_t h = row * c.options.stride[0] +
                          r * c.options.dilation[0] - c.options.padding[0];
        const int64_t v = column * c.options.stride[1] +
                          s * c.options.dilation[1] - c.options.padding[1];
        if (h < 0 || h >= c.height || v < 0 || v >= c.width) continue;
        const int64_t channel = o / group_out * group_in + rc;
        sum += x[(channel * c.height + h) * c.width + v] *
               w[((o * group_in + rc) * c.rows + r) * c.columns + s];
      }
      expected[o * p * q + y] = sum;
      expected_nhwc[y * c.out_channels + o] = sum;
    }
  }
  ExpectNear(Evaluate({data, weight, out}, {x, w}), expected);

  const Tensor data2 =
      Placeholder("data", {1, c.height, c.width, c.channels}, kFloat);
  const Tensor weight2 = Placeholder(
      "weight", {c.rows, c.columns, group_in, c.out_channels}, kFloat);
  const Tensor out2 = Conv2dNhwc(data2, weight2, c.options);
  Values x2(x.size()), w2(w.size());
  for (int64_t i = 0; i < c.channels; ++i) {
    for (int64_t j = 0; j < c.height * c.width; ++j) {
      x2[j * c.channels + i] = x[i * c.height * c.width + j];
    }
  }
  for (int64_t o = 0; o < c.out_channels; ++o) {
    for (int64_t i = 0; i < group_in; ++i) {
      for (int64_t j = 0; j < c.rows * c.columns; ++j) {
        w2[(j * group_in + i) * c.out_channels + o] =
            w[(o * group_in + i) * c.rows * c.columns + j];
      }
    }
  }
  ExpectNear(Evaluate({data2, weight2, out2}, {x2, w2}), expected_nhwc);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvTest,
    testing::Values(ConvCase{3, 4, 6, 5, 3, 3, {}},
                    ConvCase{4, 2, 7, 7, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1}},
                    ConvCase{2, 2, 9, 8, 3, 2, {{1, 2}, {2, 0}, {2, 1}, 1}},
                    ConvCase{4, 8, 5, 5, 1, 1, {{1, 1}, {0, 0}, {1, 1}, 4}}));

TEST(OperatorsTest, DepthwiseWithMultiplier) {
  const Tensor data = Placeholder("data", {1, 5, 5, 2}, kFloat);
  const Tensor weight = Placeholder("weight", {3, 3, 2, 3}, kFloat);
  ConvOptions options;
  options.padding = {1, 1};
  const Tensor out = DepthwiseConv2dNhwc(data, weight, options);
  const Values x = Random(data, 1), w = Random(weight, 2);
  Values expected;
  for (int h = 0; h < 5; ++h) {
    for (int v = 0; v < 5; ++v) {
      for (int o = 0; o < 6; ++o) {
        float sum = 0;
        for (int r = 0; r < 9; ++r) {
          const int y = h + r / 3 - 1, z = v + r % 3 - 1;
          if (y < 0 || y > 4 || z < 0 || z > 4) continue;
          sum += x[(y * 5 + z) * 2 + o / 3] * w[(r * 2 + o / 3) * 3 + o % 3];
        }
        expected.push_back(sum);
      }
    }
  }
  ExpectNear(Evaluate({data, weight, out}, {x, w}), expected);
}

TEST(OperatorsTest, PoolingPadsMaxWithTheLowestValue) {
  const Tensor data = Placeholder("data", {1, 1, 4, 4}, kFloat);
  PoolOptions options;
  options.window = {3, 3};
  options.stride = {2, 2};
  options.padding = {1, 1};
  Values x(16, -5);
  x[5] = -2;
  ExpectNear(Evaluate({data, Pool2dNchw(data, Pooling::kMax, options)}, {x}),
             {-2, -2, -2, -2});
  options.padding = {0, 0};
  options.window = {2, 2};
  const Values means =
      Evaluate({data, Pool2dNchw(data, Pooling::kAverage, options)}, {x});
  ExpectNear(means, {-4.25, -5, -5, -5});
  ExpectNear(Evaluate({data, GlobalAveragePoolNchw(data)}, {x}), {-77.0f / 16});
}

TEST(OperatorsTest, SoftmaxRowsSumToOne) {
  const Tensor a = Placeholder("A", {3, 8}, kFloat);
  const Values x = Random(a, 4);
  const Values y = Evaluate({a, Softmax(a)}, {x});
  for (int i = 0; i < 3; ++i) {
    double total = 0;
    for (int j = 0; j < 8; ++j) total += std::exp(x[i * 8 + j]);
    for (int j = 0; j < 8; ++j) {
      EXPECT_NEAR(y[i * 8 + j], std::exp(x[i * 8 + j]) / total, 1e-6);
    }
  }
}

TEST(OperatorsTest, LayerNorm) {
  const Tensor a = Placeholder("A", {2, 6}, kFloat);
  const Tensor gamma = Placeholder("gamma", {6}, kFloat);
  const Tensor beta = Placeholder("beta", {6}, kFloat);
  const Values x = Random(a, 1), g = Random(gamma, 2), b = Random(beta, 3);
  const Values y =
      Evaluate({a, gamma, beta, LayerNorm(a, gamma, beta)}, {x, g, b});
  for (int i = 0; i < 2; ++i) {
    double mean = 0, variance = 0;
    for (int j = 0; j < 6; ++j) mean += x[i * 6 + j] / 6;
    for (int j = 0; j < 6; ++j) {
      variance += (x[i * 6 + j] - mean) * (x[i * 6 + j] - mean) / 6;
    }
    for (int j = 0; j < 6; ++j) {
      EXPECT_NEAR(
          y[i * 6 + j],
          (x[i * 6 + j] - mean) / std::sqrt(variance + 1e-5) * g[j] + b[j],
          1e-4);
    }
  }
}

TEST(OperatorsTest, TransposeAndReduce) {
  const Tensor a = Placeholder("A", {2, 3, 4}, kFloat);
  const Values x = Random(a, 1);
  const Values y = Evaluate({a, Transpose(a, {2, 0, 1})}, {x});
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(y[(i % 4) * 6 + i / 4], x[i]);
  }
  const Values top = Evaluate({a, ReduceOver(a, Reducer::kMax, {0, 2})}, {x});
  for (int j = 0; j < 3; ++j) {
    float expected = -2;
    for (int i = 0; i < 8; ++i) {
      expected = std::max(expected, x[i / 4 * 12 + j * 4 + i % 4]);
    }
    EXPECT_EQ(top[j], expected);
  }
}

TEST(OperatorsTest, BroadcastingAddsABias) {
  const Tensor a = Placeholder("A", {2, 3}, kFloat);
  const Tensor b = Placeholder("B", {3}, kFloat);
  ExpectNear(Evaluate({a, b, Add(a, b)}, {{0, 1, 2, 3, 4, 5}, {10, 20, 30}}),
             {10, 21, 32, 13, 24, 35});
}

TEST(CreatePrimFuncTest, UnboundPlaceholderIsInvalid) {
  const Tensor a = Placeholder("A", {4}, kFloat);
  const Tensor b = Relu(a);
  EXPECT_EQ(CreatePrimFunc("main", {b}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CreatePrimFunc("main", {a, a}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tilefarm::te
