// The passes that rewrite calls before fusion: what each changes, and what it
// must leave.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/graph/passes.h"
#include "compiler/te/convolution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

std::vector<float> Varied(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.25f * static_cast<float>(i % 7) + 0.25f;
  }
  return values;
}
ValueId PositiveWeights(GraphBuilder& builder, std::vector<int64_t> shape) {
  const TensorType type = F32(std::move(shape));
  return builder.Constant("w", type, Varied(type.num_elements()));
}
ValueId Filled(GraphBuilder& builder, std::vector<int64_t> shape, float value) {
  const TensorType type = F32(std::move(shape));
  return builder.Constant(
      "c", type,
      std::vector<float>(static_cast<size_t>(type.num_elements()), value));
}
ValueId Define(GraphBuilder& builder, const std::string& op,
               const std::vector<ValueId>& inputs,
               const std::function<te::Tensor(const Tensors&)>& define) {
  return Must(builder.Compute(op, {}, inputs, define));
}
ValueId Permute(GraphBuilder& builder, ValueId x, std::vector<int> axes) {
  return Define(builder, "permute_dims", {x},
                [&](const Tensors& in) { return te::Transpose(in[0], axes); });
}
ValueId Slice(GraphBuilder& builder, ValueId x, size_t d, int64_t begin,
              int64_t end) {
  std::vector<int64_t> shape = builder.shape(x);
  shape[d] = end - begin;
  return Define(builder, "strided_slice", {x}, [&](const Tensors& in) {
    return te::Compute("T_slice", shape, [&](const te::Indices& i) {
      te::Indices at = i;
      at[d] = i[d] + begin;
      return te::Body(in[0](at));
    });
  });
}
// As the importer makes it: the scale is a nest of its own.
ValueId BatchNorm(GraphBuilder& builder, ValueId x) {
  const std::vector<int64_t> shape = builder.shape(x);
  const std::vector<int64_t> channels = {shape[1]};
  return Define(
      builder, "nn.batch_norm",
      {x, PositiveWeights(builder, channels),
       PositiveWeights(builder, channels), PositiveWeights(builder, channels),
       PositiveWeights(builder, channels)},
      [&](const Tensors& in) {
        const te::Tensor scale =
            te::Compute("scale", channels, [&](const te::Indices& i) {
              return te::Body(in[1](i) *
                              ir::MakeCall(ir::Intrinsic::kRsqrt, {in[4](i)}));
            });
        return te::Compute("norm", shape, [&](const te::Indices& i) {
          return te::Body((in[0](i) - in[3]({i[1]})) * scale({i[1]}) +
                          in[2]({i[1]}));
        });
      });
}

// `graph` must also have kept every bit.
Graph Exact(const Graph& before, absl::StatusOr<Graph> after) {
  Graph graph = Checked(std::move(after));
  ExpectEqualResults(before, graph, 1);
  ExpectEqualResults(before, graph, 2);
  return graph;
}
Graph Close(const Graph& before, absl::StatusOr<Graph> after) {
  Graph graph = Checked(std::move(after));
  ExpectCloseResults(before, graph, 1);
  return graph;
}

TEST(Simplify, DropsFactorsOfOneAndAddendsOfZero) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3}));
  ValueId y = Multiply(builder, x, Filled(builder, {3}, 1));
  y = Add(builder, Filled(builder, {2, 1}, 0), y);
  y = Define(builder, "divide", {y, Filled(builder, {}, 1)},
             [](const Tensors& in) { return te::Divide(in[0], in[1]); });
  const Graph graph = *builder.Finish({Relu(builder, y)}, {"y"});
  const Graph simple = Exact(graph, Simplify(graph));
  EXPECT_THAT(Ops(simple), ElementsAre("nn.relu"));
  EXPECT_EQ(simple.calls[0].inputs[0], x);
}

TEST(Simplify, KeepsOtherConstantsAndWidening) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3}));
  // One element differs.
  std::vector<float> ones(3, 1);
  ones[2] = 1.5f;
  const ValueId a = Multiply(builder, x, builder.Constant("c", F32({3}), ones));
  // The zeros make more elements of x.
  const ValueId b = Add(builder, x, Filled(builder, {2, 3}, 0));
  // 1 - x is not x - 1, and 0 - x is not x.
  const ValueId c =
      Define(builder, "subtract", {Filled(builder, {3}, 0), x},
             [](const Tensors& in) { return te::Subtract(in[0], in[1]); });
  const Graph graph = *builder.Finish({a, b, c}, {"a", "b", "c"});
  EXPECT_THAT(Ops(Exact(graph, Simplify(graph))),
              ElementsAre("multiply", "add", "subtract"));
}

TEST(Simplify, ATransposeOfUnitDimensionsIsAReshape) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 1, 3}));
  const ValueId moved = Permute(builder, x, {1, 0, 2});
  const ValueId turned = Permute(builder, x, {2, 1, 0});
  const Graph graph = *builder.Finish({moved, turned}, {"a", "b"});
  EXPECT_THAT(Ops(Exact(graph, Simplify(graph))),
              ElementsAre("reshape", "permute_dims"));
}

TEST(Simplify, AnOutputKeepsAValueOfItsOwn) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3}));
  const ValueId y = Multiply(builder, x, Filled(builder, {3}, 1));
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph simple = Exact(graph, Simplify(graph));
  EXPECT_EQ(simple.outputs[0], y);
  EXPECT_THAT(Ops(simple), ElementsAre("reshape"));
}

TEST(HoistConstants, ABatchNormBecomesElementwise) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 4, 4}));
  const ValueId norm = BatchNorm(builder, Relu(builder, x));
  const Graph graph = *builder.Finish({norm}, {"y"});
  const Graph hoisted = Exact(graph, HoistConstants(graph, Interpreted));
  // x, beta, mean and the scale.
  EXPECT_EQ(hoisted.calls[1].inputs.size(), 4u);
  EXPECT_THAT(Ops(Checked(FuseCalls(hoisted))),
              ElementsAre("nn.relu+nn.batch_norm"));
}

TEST(HoistConstants, KeepsWhatWouldTakeMoreMemory) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({8, 4}));
  const ValueId w = PositiveWeights(builder, {4});
  // The first nest repeats the constant for every row.
  const ValueId y = Define(builder, "spread", {x, w}, [](const Tensors& in) {
    const te::Tensor wide =
        te::Compute("wide", {8, 4}, [&](const te::Indices& i) {
          return te::Body(in[1]({i[1]}) * in[1]({i[1]}));
        });
    return te::Multiply(in[0], wide);
  });
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph same = Exact(graph, HoistConstants(graph, Interpreted));
  EXPECT_EQ(same.calls[0].function, graph.calls[0].function);
}

TEST(FoldScales, ABatchNormGoesIntoTheConvolution) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 2, 4, 4}));
  const ValueId w = PositiveWeights(builder, {3, 2, 3, 3});
  const ValueId y = BatchNorm(
      builder,
      Add(builder, Conv(builder, x, w), PositiveWeights(builder, {3, 1, 1})));
  const Graph graph = *builder.Finish({Relu(builder, y)}, {"y"});
  const Graph hoisted = Checked(HoistConstants(graph, Interpreted));
  const Graph folded = Close(graph, FoldScales(hoisted, Interpreted));
  EXPECT_THAT(Ops(folded), ElementsAre("nn.conv2d", "add", "nn.relu"));
  EXPECT_NE(folded.calls[0].inputs[1], w);
}

TEST(FoldScales, AScaleAloneNeedsNoAddend) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId y = Matmul(builder, x, PositiveWeights(builder, {5, 3}));
  const Graph graph = *builder.Finish(
      {Relu(builder, Multiply(builder, y, Filled(builder, {}, 0.25f)))}, {"y"});
  // A power of two: no bit changes.
  EXPECT_THAT(Ops(Exact(graph, FoldScales(graph, Interpreted))),
              ElementsAre("matmul", "nn.relu"));
}

TEST(FoldScales, KeepsScalesOfOtherDimensionsAndSharedResults) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  // One factor for each row.
  const ValueId rows =
      Multiply(builder, Matmul(builder, x, PositiveWeights(builder, {5, 3})),
               PositiveWeights(builder, {4, 1}));
  // The product is needed without the scale, too.
  const ValueId shared = Matmul(builder, x, PositiveWeights(builder, {5, 3}));
  const ValueId scaled =
      Multiply(builder, shared, PositiveWeights(builder, {3}));
  // The weights are computed.
  const ValueId computed =
      Multiply(builder, Matmul(builder, x, Transpose(builder, x)),
               PositiveWeights(builder, {4}));
  const Graph graph =
      *builder.Finish({rows, shared, scaled, computed}, {"a", "b", "c", "d"});
  EXPECT_EQ(Ops(Exact(graph, FoldScales(graph, Interpreted))), Ops(graph));
}

TEST(FoldScales, KeepsAScaleThatOverflowsTheWeights) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3}));
  const ValueId y =
      Multiply(builder, Matmul(builder, x, Filled(builder, {3, 2}, 1e30f)),
               Filled(builder, {2}, 1e30f));
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph kept = Checked(FoldScales(graph, Interpreted));
  EXPECT_THAT(Ops(kept), ElementsAre("matmul", "multiply"));
}

// Rows of a product, in two heads: those of columns [first, first + 6).
ValueId HeadsOf(GraphBuilder& builder, ValueId product, int64_t first) {
  return Permute(
      builder,
      Reshape(builder, Slice(builder, product, 1, first, first + 6), {4, 2, 3}),
      {1, 0, 2});
}

ValueId Projected(GraphBuilder& builder, ValueId x) {
  return Add(builder, Matmul(builder, x, PositiveWeights(builder, {5, 18})),
             PositiveWeights(builder, {18}));
}

TEST(HoistScales, QueriesAndKeysAreScaledBeforeTheyAreMoved) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId all = Projected(builder, x);
  const ValueId q = Multiply(builder, HeadsOf(builder, all, 0),
                             Filled(builder, {1}, 0.3f)),
                k = Multiply(builder, Filled(builder, {}, 0.7f),
                             HeadsOf(builder, all, 6)),
                v = HeadsOf(builder, all, 12);
  const Graph graph = *builder.Finish(
      {Relu(builder, q), Sigmoid(builder, k), v}, {"q", "k", "v"});
  const Graph hoisted = Exact(graph, HoistScales(graph, Interpreted));
  const std::vector<std::string> ops = Ops(hoisted);
  EXPECT_EQ(ops[2], "multiply");
  EXPECT_EQ(std::ranges::count(ops, "multiply"), 1);
  const Value& scales = hoisted.values[hoisted.calls[2].inputs[1]];
  ASSERT_NE(scales.constant, nullptr);
  std::array<float, 18> values;
  std::memcpy(values.data(), scales.constant->bytes().data(), sizeof(values));
  EXPECT_EQ(values[5], 0.3f);
  EXPECT_EQ(values[6], 0.7f);
  EXPECT_EQ(values[12], 1.0f);
  // Then the weights and the addend have them.
  const Graph folded = Close(graph, FoldScales(hoisted, Interpreted));
  EXPECT_EQ(std::ranges::count(Ops(folded), "multiply"), 0);
}

TEST(HoistScales, KeepsOtherScales) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId third = Filled(builder, {}, 0.3f);
  // Elements that something else reads, too.
  const ValueId shared = Projected(builder, x);
  const ValueId a = Multiply(builder, HeadsOf(builder, shared, 0), third);
  const ValueId b = HeadsOf(builder, shared, 5);
  // A scale of each column.
  const ValueId columns =
      Multiply(builder, HeadsOf(builder, Projected(builder, x), 0),
               PositiveWeights(builder, {3}));
  // What is scaled is moved, but no product; a product, but not moved.
  const ValueId moved =
      Multiply(builder, Transpose(builder, Relu(builder, x)), third);
  const ValueId product = Multiply(builder, Projected(builder, x), third);
  // What is divided by the elements.
  const ValueId inverse = Must(builder.Compute(
      "divide", {}, {third, HeadsOf(builder, Projected(builder, x), 0)},
      [](const Tensors& in) { return te::Divide(in[0], in[1]); }));
  const Graph graph = *builder.Finish(
      {Relu(builder, a), b, Relu(builder, columns), Relu(builder, moved),
       Relu(builder, product), Relu(builder, inverse)},
      {"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(Ops(Exact(graph, HoistScales(graph, Interpreted))), Ops(graph));
}

TEST(HoistScales, KeepsAScaledResultOfTheGraph) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId y =
      Multiply(builder, HeadsOf(builder, Projected(builder, x), 0),
               Filled(builder, {}, 0.3f));
  const Graph graph = *builder.Finish({y}, {"y"});
  EXPECT_EQ(Ops(Exact(graph, HoistScales(graph, Interpreted))), Ops(graph));
}

TEST(ComposeMovement, ASliceAReshapeAndATransposeAreOneCall) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 12}));
  const ValueId y = Permute(
      builder,
      Reshape(builder, Slice(builder, Relu(builder, x), 1, 6, 12), {4, 2, 3}),
      {1, 0, 2});
  const Graph graph = *builder.Finish({Sigmoid(builder, y)}, {"y"});
  EXPECT_THAT(Ops(DropUnused(Exact(graph, ComposeMovement(graph)))),
              ElementsAre("nn.relu", "rearrange", "sigmoid"));
}

TEST(ComposeMovement, ATransposeThereAndBackIsAReshape) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId y = Transpose(builder, Transpose(builder, Relu(builder, x)));
  const Graph graph = *builder.Finish({Sigmoid(builder, y)}, {"y"});
  EXPECT_THAT(Ops(DropUnused(Exact(graph, ComposeMovement(graph)))),
              ElementsAre("nn.relu", "reshape", "sigmoid"));
}

TEST(ComposeMovement, KeepsWhatWouldDivideIndices) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 6}));
  // Rows of the transpose do not end where those of the reshape do.
  const ValueId y = Permute(
      builder, Reshape(builder, Transpose(builder, Relu(builder, x)), {8, 3}),
      {1, 0});
  const Graph graph = *builder.Finish({y}, {"y"});
  EXPECT_EQ(Ops(Exact(graph, ComposeMovement(graph))), Ops(graph));
}

TEST(SinkReshapes, ElementwiseCallsFollowTheirProduct) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId other = builder.Input("other", F32({1, 4, 6}));
  const ValueId product = Matmul(builder, x, PositiveWeights(builder, {5, 6}));
  const ValueId biased = Add(builder, Reshape(builder, product, {1, 4, 6}),
                             PositiveWeights(builder, {6}));
  const ValueId y =
      Add(builder, Multiply(builder, biased, Sigmoid(builder, biased)), other);
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph sunk = Exact(graph, SinkReshapes(graph));
  EXPECT_THAT(
      Ops(DropUnused(Checked(FuseCalls(DropUnused(sunk))))),
      ElementsAre("reshape", "matmul+add+sigmoid+multiply+add", "reshape"));
}

// The residual is a reshape as well, and comes first.
TEST(SinkReshapes, OfTwoReshapesTheProductsGivesTheShape) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId windows = Must(
      builder.Compute("transpose", {}, {builder.Input("w", F32({6, 2, 2}))},
                      [](const Tensors& in) {
                        return te::Transpose(in[0], {1, 2, 0});
                      }));
  const ValueId residual = Reshape(builder, windows, {1, 4, 6});
  const ValueId product = Matmul(builder, x, PositiveWeights(builder, {5, 6}));
  const ValueId y =
      Add(builder, residual, Reshape(builder, product, {1, 4, 6}));
  const Graph graph =
      *builder.Finish({y, Sigmoid(builder, windows)}, {"y", "z"});
  const Graph sunk = Exact(graph, SinkReshapes(graph));
  EXPECT_THAT(
      Ops(DropUnused(Checked(FuseCalls(DropUnused(sunk))))),
      testing::UnorderedElementsAre("transpose", "reshape", "reshape",
                                    "matmul+add", "reshape", "sigmoid"));
}

TEST(SinkReshapes, KeepsWhatFollowsAProduct) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 5}));
  const ValueId windows = Relu(builder, builder.Input("w", F32({2, 2, 6})));
  const ValueId y = Add(builder, Reshape(builder, windows, {4, 6}),
                        Matmul(builder, x, PositiveWeights(builder, {5, 6})));
  const Graph graph =
      *builder.Finish({y, Sigmoid(builder, windows)}, {"y", "z"});
  EXPECT_EQ(Ops(Exact(graph, SinkReshapes(graph))), Ops(graph));
}

TEST(SinkReshapes, KeepsWhatWouldDivideIndices) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 6}));
  // A factor for each of three columns of the reshaped matrix.
  const ValueId y =
      Multiply(builder, Reshape(builder, Relu(builder, x), {8, 3}),
               PositiveWeights(builder, {3}));
  const Graph graph = *builder.Finish({y}, {"y"});
  EXPECT_EQ(Ops(Exact(graph, SinkReshapes(graph))), Ops(graph));
}

}  // namespace
}  // namespace tilefarm::graph
