// Convolutions whose taps partly meet padding only, against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/graph/run_graph.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "tests/onnx/model_writer.h"

namespace tilefarm::onnx {
namespace {

absl::Status Run(const ir::PrimFunc& function,
                 std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

// One dimension of a window.
struct Dimension {
  int64_t in = 1, taps = 1, stride = 1, dilation = 1, before = 0, after = 0;

  int64_t Windows() const {
    const int64_t range = in + before + after - (taps - 1) * dilation - 1;
    return range < 0 ? 0 : range / stride + 1;
  }
};

// x[1, 2, H, W] -> Conv -> y[1, 3, P, Q], of small integers.
class ConvModel : ModelWriter {
 public:
  ConvModel(Dimension h, Dimension w, uint64_t seed, bool has_constant_weights)
      : ModelWriter(seed), h_(h), w_(w) {
    const Shape weight_shape{3, 2, h.taps, w.taps};
    Declare(graph_->add_input(), {"x", {1, 2, h.in, w.in}});
    std::string weights = "w";
    if (has_constant_weights) {
      pb::TensorProto* tensor =
          NewConstant(pb::TensorProto::FLOAT, weight_shape);
      weights = tensor->name();
      weights_ = tensor;
    } else {
      Declare(graph_->add_input(), {"w", weight_shape});
    }
    const Tensor y =
        Node("Conv", {"x", weights}, {1, 3, h.Windows(), w.Windows()});
    Attr("strides", std::vector<int64_t>{h.stride, w.stride});
    Attr("dilations", std::vector<int64_t>{h.dilation, w.dilation});
    Attr("pads", std::vector<int64_t>{h.before, w.before, h.after, w.after});
    Declare(graph_->add_output(), y);
    data_ = Draw(2 * h.in * w.in);
    taps_ = Draw(3 * 2 * h.taps * w.taps);
  }

  std::vector<float>& taps() { return taps_; }

  absl::StatusOr<graph::Graph> Import() {
    if (weights_ != nullptr) {
      weights_->clear_float_data();
      for (const float value : taps_) weights_->add_float_data(value);
    }
    return ImportBytes(model_.SerializeAsString(), "", {}, Run);
  }

  std::vector<float> Answer(const graph::Graph& graph) const {
    std::vector<graph::TensorData> inputs{Bytes(data_)};
    if (weights_ == nullptr) inputs.push_back(Bytes(taps_));
    const auto outputs = graph::RunGraph(graph, inputs, Run);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) return {};
    const std::span<const std::byte> bytes = outputs->at(0).bytes();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  std::vector<float> Definition() const {
    std::vector<float> y;
    for (int64_t o = 0; o < 3; ++o) {
      for (int64_t p = 0; p < h_.Windows(); ++p) {
        for (int64_t q = 0; q < w_.Windows(); ++q) y.push_back(Sum(o, p, q));
      }
    }
    return y;
  }

 private:
  std::vector<float> Draw(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<float>(rng_.Below(9)) - 4);
    }
    return values;
  }

  static graph::TensorData Bytes(const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return graph::TensorData(std::vector(bytes.begin(), bytes.end()));
  }

  float Sum(int64_t o, int64_t p, int64_t q) const {
    float sum = 0;
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t k = 0; k < h_.taps; ++k) {
        for (int64_t l = 0; l < w_.taps; ++l) {
          const int64_t y = p * h_.stride + k * h_.dilation - h_.before;
          const int64_t x = q * w_.stride + l * w_.dilation - w_.before;
          const bool inside = y >= 0 && y < h_.in && x >= 0 && x < w_.in;
          const int64_t tap = ((o * 2 + c) * h_.taps + k) * w_.taps + l;
          const int64_t at = (c * h_.in + y) * w_.in + x;
          sum += taps_[static_cast<size_t>(tap)] *
                 (inside ? data_[static_cast<size_t>(at)] : 0.0f);
        }
      }
    }
    return sum;
  }

  Dimension h_, w_;
  pb::TensorProto* weights_ = nullptr;
  std::vector<float> data_, taps_;
};

// The extents of the weights that the convolution reads.
std::vector<int64_t> TapsOf(const graph::Graph& graph) {
  for (const graph::Call& call : graph.calls) {
    if (call.op != "nn.conv2d") continue;
    const auto& shape =
        graph.values[static_cast<size_t>(call.inputs[1])].type.shape;
    return {shape[2], shape[3]};
  }
  return {};
}

TEST(DeadTapsTest, ADilationBeyondTheDataLeavesTheMiddle) {
  const Dimension wide{
      .in = 5, .taps = 3, .dilation = 6, .before = 6, .after = 6};
  ConvModel model(wide, wide, 1, true);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TapsOf(*graph), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(model.Answer(*graph), model.Definition());
}

TEST(DeadTapsTest, OneElementMeetsOneTap) {
  const Dimension one{.in = 1, .taps = 3, .before = 1, .after = 1};
  ConvModel model(one, {.in = 4, .taps = 3, .before = 1, .after = 1}, 2, true);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TapsOf(*graph), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(model.Answer(*graph), model.Definition());
}

TEST(DeadTapsTest, InfinityTimesPaddingStays) {
  const Dimension wide{
      .in = 3, .taps = 3, .dilation = 4, .before = 4, .after = 4};
  ConvModel model(wide, wide, 3, true);
  model.taps()[0] = std::numeric_limits<float>::infinity();
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TapsOf(*graph), (std::vector<int64_t>{3, 3}));
  EXPECT_TRUE(std::isnan(model.Answer(*graph)[0]));
}

TEST(DeadTapsTest, WeightsThatAreAnInputStay) {
  const Dimension one{.in = 1, .taps = 3, .before = 1, .after = 1};
  ConvModel model(one, one, 4, false);
  const auto graph = model.Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(TapsOf(*graph), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(model.Answer(*graph), model.Definition());
}

TEST(DeadTapsTest, AnyWindow) {
  Rng rng(5);
  int cut = 0;
  for (int i = 0; i < 400; ++i) {
    const auto draw = [&] {
      return Dimension{.in = 1 + static_cast<int64_t>(rng.Below(6)),
                       .taps = 1 + static_cast<int64_t>(rng.Below(5)),
                       .stride = 1 + static_cast<int64_t>(rng.Below(4)),
                       .dilation = 1 + static_cast<int64_t>(rng.Below(7)),
                       .before = static_cast<int64_t>(rng.Below(14)),
                       .after = static_cast<int64_t>(rng.Below(14))};
    };
    const Dimension h = draw(), w = draw();
    if (h.Windows() == 0 || w.Windows() == 0) continue;
    ConvModel model(h, w, 100 + static_cast<uint64_t>(i), true);
    const auto graph = model.Import();
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_EQ(model.Answer(*graph), model.Definition()) << "case " << i;
    cut += TapsOf(*graph) != std::vector<int64_t>{h.taps, w.taps} ? 1 : 0;
  }
  EXPECT_GT(cut, 40);
}

}  // namespace
}  // namespace tilefarm::onnx
