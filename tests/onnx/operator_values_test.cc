// Operators of new operator sets, whose tests Debian does not have yet, against
// their definition.
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/graph/run_graph.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "compiler/onnx/schema.h"

namespace tilefarm::onnx {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

absl::Status Interpret(const ir::PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

template <typename T>
graph::TensorData Data(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return graph::TensorData(std::vector(bytes.begin(), bytes.end()));
}

// An input in protobuf's text format; `type` is TensorProto's number.
std::string Input(const std::string& name, int type,
                  const std::vector<int64_t>& shape) {
  std::string dims;
  for (const int64_t extent : shape) {
    absl::StrAppend(&dims, "dim { dim_value: ", extent, " } ");
  }
  return absl::StrCat("input { name: '", name,
                      "' type { tensor_type { elem_type: ", type, " shape { ",
                      dims, "} } } }");
}

// The output of a model with one node, which is without its output in the text.
template <typename T>
std::vector<T> RunNode(int opset, const std::string& inputs,
                       const std::string& node,
                       const std::vector<graph::TensorData>& data) {
  pb::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("ir_version: 8 opset_import { version: ", opset,
                   " } graph { name: 'g' ", inputs, " node { ", node,
                   " output: 'z' } output { name: 'z' } }"),
      &model));
  const auto graph = ImportBytes(model.SerializeAsString(), "", {}, Interpret);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const auto outputs = graph::RunGraph(*graph, data, Interpret);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  const auto bytes = outputs->at(0).bytes();
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string IntAttribute(const std::string& name, int64_t value) {
  return absl::StrCat(" attribute { name: '", name, "' type: INT i: ", value,
                      " }");
}

std::string TextAttribute(const std::string& name, const std::string& value) {
  return absl::StrCat(" attribute { name: '", name, "' type: STRING s: '",
                      value, "' }");
}

// --- Attention -----------------------------------------------------------

constexpr int64_t kBatch = 2, kQueries = 3, kKeys = 5, kSize = 2;

struct Keys {
  bool is_causal = false;
  int64_t left = -1, right = -1;
  std::vector<int64_t> lengths;  // of each batch; empty: all keys
  std::vector<bool> mask;        // [kQueries, kKeys]; empty: all
  bool has_nan = false;          // in the last key

  bool Attends(int64_t b, int64_t i, int64_t j) const {
    const int64_t length = lengths.empty() ? 0 : lengths[b];
    const int64_t place = i + (lengths.empty() ? 0 : length - kQueries);
    if (is_causal && j > place) return false;
    if (left >= 0 && j < place - left) return false;
    if (right >= 0 && j > place + right) return false;
    if (!lengths.empty() && j >= length) return false;
    return mask.empty() || mask[i * kKeys + j];
  }
};

class AttentionTest : public ::testing::TestWithParam<Keys> {};

TEST_P(AttentionTest, AttendsToTheKeysThatItMay) {
  const Keys& keys = GetParam();
  std::vector<float> q, k, v;
  for (int64_t i = 0; i < kBatch * kQueries * kSize; ++i) {
    q.push_back(0.3F * static_cast<float>(i % 7) - 1);
  }
  for (int64_t i = 0; i < kBatch * kKeys * kSize; ++i) {
    k.push_back(0.4F * static_cast<float>(i % 5) - 0.7F);
    v.push_back(static_cast<float>((i * i) % 11) - 5);
  }
  if (keys.has_nan) k[(kKeys - 1) * kSize] = kNan;
  std::string inputs = Input("q", 1, {kBatch, 1, kQueries, kSize}) +
                       Input("k", 1, {kBatch, 1, kKeys, kSize}) +
                       Input("v", 1, {kBatch, 1, kKeys, kSize});
  std::vector<graph::TensorData> data{Data(q), Data(k), Data(v)};
  std::string names = "'q', 'k', 'v'";
  if (!keys.mask.empty()) {
    absl::StrAppend(&names, ", 'm'");
    inputs += Input("m", 9, {kQueries, kKeys});
    data.push_back(
        Data(std::vector<uint8_t>(keys.mask.begin(), keys.mask.end())));
  } else {
    absl::StrAppend(&names, ", ''");
  }
  if (!keys.lengths.empty()) {
    absl::StrAppend(&names, ", '', '', 'l'");
    inputs += Input("l", 7, {kBatch});
    data.push_back(Data(keys.lengths));
  }
  const std::vector<float> z = RunNode<float>(
      25, inputs,
      absl::StrCat("op_type: 'Attention' input: [", names, "]",
                   IntAttribute("is_causal", keys.is_causal ? 1 : 0),
                   IntAttribute("left_window_size", keys.left),
                   IntAttribute("right_window_size", keys.right)),
      data);
  ASSERT_EQ(z.size(), q.size());
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < kQueries; ++i) {
      const int64_t row = (b * kQueries + i) * kSize;
      double sum = 0, expected[kSize] = {};
      for (int64_t j = 0; j < kKeys; ++j) {
        if (!keys.Attends(b, i, j)) continue;
        const int64_t at = (b * kKeys + j) * kSize;
        const double score =
            (q[row] * k[at] + q[row + 1] * k[at + 1]) / std::sqrt(2.0);
        sum += std::exp(score);
        for (int64_t d = 0; d < kSize; ++d) {
          expected[d] += std::exp(score) * v[at + d];
        }
      }
      for (int64_t d = 0; d < kSize; ++d) {
        EXPECT_NEAR(z[row + d], sum == 0 ? 0 : expected[d] / sum, 1e-5)
            << "batch " << b << ", query " << i << ", element " << d;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Keys, AttentionTest,
    ::testing::Values(Keys{}, Keys{.is_causal = true}, Keys{.left = 1},
                      Keys{.left = 0, .right = 1},
                      Keys{.is_causal = true, .left = 1},
                      Keys{.left = 0, .right = 0, .lengths = {5, 2}},
                      Keys{.is_causal = true, .lengths = {5, 3}},
                      // The first query of the second batch has no key.
                      Keys{.is_causal = true, .lengths = {4, 2}},
                      Keys{.mask = {true, false, true, false, false,    //
                                    false, false, false, false, false,  //
                                    false, true, true, true, false},
                           .has_nan = true}));

// --- Elements ------------------------------------------------------------

TEST(OperatorValues, SpaceToDepthOrdersChannelsByItsMode) {
  // x[1, 2, 2, 4], z[1, 8, 1, 2].
  std::vector<float> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const std::string mode : {"DCR", "CRD"}) {
    const std::vector<float> z = RunNode<float>(
        28, Input("x", 1, {1, 2, 2, 4}),
        absl::StrCat("op_type: 'SpaceToDepth' input: 'x'",
                     IntAttribute("blocksize", 2), TextAttribute("mode", mode)),
        {Data(x)});
    ASSERT_EQ(z.size(), x.size());
    for (size_t c = 0; c < 2; ++c) {
      for (size_t cell = 0; cell < 4; ++cell) {
        const size_t channel = mode == "DCR" ? cell * 2 + c : c * 4 + cell;
        for (size_t w = 0; w < 2; ++w) {
          EXPECT_EQ(z[channel * 2 + w],
                    x[c * 8 + cell / 2 * 4 + w * 2 + cell % 2])
              << mode << " " << channel << " " << w;
        }
      }
    }
  }
}

TEST(OperatorValues, ShiftsBeyondTheTypeLeaveTheSign) {
  const std::vector<int32_t> a{8, -8, 8, -8, 8, -8, -8};
  const std::vector<int32_t> b{1, 1, 32, 32, -1, -1, 40};
  const auto shift = [&](const std::string& direction) {
    return RunNode<int32_t>(28, Input("a", 6, {7}) + Input("b", 6, {7}),
                            "op_type: 'BitShift' input: ['a', 'b']" +
                                TextAttribute("direction", direction),
                            {Data(a), Data(b)});
  };
  EXPECT_EQ(shift("RIGHT"), (std::vector<int32_t>{4, -4, 0, -1, 0, -1, -1}));
  EXPECT_EQ(shift("LEFT"), (std::vector<int32_t>{16, -16, 0, 0, 0, 0, 0}));
}

TEST(OperatorValues, FloatRemaindersHaveTheSignOfTheDivisor) {
  const std::vector<float> a{5.5F,      -5.5F, 5.5F, -5.5F, 6, -0.0F,
                             kInfinity, -1,    2,    kNan,  1};
  const std::vector<float> b{2, 2,         -2,        -2, -3, 4,
                             2, kInfinity, kInfinity, 2,  0};
  const std::vector<float> z = RunNode<float>(
      28, Input("a", 1, {11}) + Input("b", 1, {11}),
      "op_type: 'Mod' input: ['a', 'b']" + IntAttribute("fmod", 0),
      {Data(a), Data(b)});
  const std::vector<float> expected{1.5F, 0.5F,      -0.5F, -1.5F, -0.0F, 0.0F,
                                    kNan, kInfinity, 2,     kNan,  kNan};
  ASSERT_EQ(z.size(), expected.size());
  for (size_t i = 0; i < z.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(z[i])) << i;
      continue;
    }
    EXPECT_EQ(z[i], expected[i]) << i;
    EXPECT_EQ(std::signbit(z[i]), std::signbit(expected[i])) << i;
  }
}

}  // namespace
}  // namespace tilefarm::onnx
