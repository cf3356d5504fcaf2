// Gather with known indices: a slice where they lie in equal steps.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/run_graph.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "tests/onnx/model_writer.h"

namespace tilefarm::onnx {
namespace {

absl::Status Interpret(const ir::PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

constexpr int64_t kRows = 6, kColumns = 3;

// y = x[places, :], for x[6, 3].
class GatherModel : ModelWriter {
 public:
  GatherModel(const Shape& shape, const std::vector<int64_t>& places)
      : ModelWriter(0) {
    Declare(graph_->add_input(), {"x", {kRows, kColumns}});
    pb::TensorProto* indices = NewConstant(pb::TensorProto::INT64, shape);
    for (const int64_t place : places) indices->add_int64_data(place);
    Shape result = shape;
    result.push_back(kColumns);
    Declare(graph_->add_output(),
            Node("Gather", {"x", indices->name()}, result));
  }

  absl::StatusOr<graph::Graph> Import() const {
    return ImportBytes(model_.SerializeAsString(), "", {}, Interpret);
  }
};

struct Case {
  std::string name;
  Shape shape;
  std::vector<int64_t> places;
  std::string op;
};

class KnownPlaces : public testing::TestWithParam<Case> {};

TEST_P(KnownPlaces, GivesTheElements) {
  const Case& with = GetParam();
  auto graph = GatherModel(with.shape, with.places).Import();
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->calls.size(), 1u);
  EXPECT_EQ(graph->calls[0].op, with.op);

  std::vector<float> x(kRows * kColumns);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<graph::TensorData> inputs;
  const auto bytes = std::as_bytes(std::span(x));
  inputs.emplace_back(std::vector(bytes.begin(), bytes.end()));
  const auto outputs = graph::RunGraph(*graph, inputs, Interpret);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<float> y(with.places.size() * kColumns);
  ASSERT_EQ(outputs->at(0).bytes().size(), y.size() * sizeof(float));
  std::memcpy(y.data(), outputs->at(0).bytes().data(),
              y.size() * sizeof(float));
  for (size_t i = 0; i < with.places.size(); ++i) {
    const int64_t row = (with.places[i] + kRows) % kRows;
    for (int64_t j = 0; j < kColumns; ++j) {
      EXPECT_EQ(y[i * kColumns + static_cast<size_t>(j)],
                x[static_cast<size_t>(row * kColumns + j)])
          << "place " << i << ", column " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gather, KnownPlaces,
    testing::Values(
        Case{"One", {}, {4}, "strided_slice"},
        Case{"All", {6}, {0, 1, 2, 3, 4, 5}, "strided_slice"},
        Case{"AllWithOnes", {1, 3, 1}, {1, 2, 3}, "strided_slice"},
        Case{"FromTheEnd", {3}, {-1, -2, -3}, "strided_slice"},
        Case{"EverySecond", {3}, {-6, 2, 4}, "strided_slice"},
        Case{"Repeated", {4}, {2, 2, 2, 2}, "strided_slice"},
        Case{"Windows", {3, 2}, {0, 1, 2, 3, 4, 5}, "strided_slice"},
        Case{"OverlappingWindows", {2, 3}, {0, 2, 4, 1, 3, 5}, "strided_slice"},
        Case{"UnequalSteps", {3}, {0, 1, 3}, "take"},
        Case{"UnequalRows", {2, 2}, {0, 1, 2, 4}, "take"},
        Case{"WrapsAround", {3}, {4, 5, 0}, "take"}),
    [](const auto& info) { return info.param.name; });

TEST(KnownPlacesErrors, NameThePlace) {
  for (const int64_t place : {int64_t{6}, int64_t{-7}, int64_t{1} << 62}) {
    const auto graph = GatherModel({2}, {0, place}).Import();
    ASSERT_FALSE(graph.ok());
    EXPECT_NE(graph.status().message().find(
                  absl::StrCat("index ", place, " of ", kRows, " elements")),
              std::string::npos)
        << graph.status();
  }
}

}  // namespace
}  // namespace tilefarm::onnx
