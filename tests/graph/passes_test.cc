// The passes: what each changes, and what it must leave.
#include "compiler/graph/passes.h"

#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

ValueId Broadcast(GraphBuilder& builder, ValueId x,
                  std::vector<int64_t> shape) {
  return Must(builder.Compute("broadcast_to", {}, {x}, [&](const Tensors& in) {
    return te::Compute("T_broadcast", shape,
                       [&](const te::Indices& i) { return in[0]({i.back()}); });
  }));
}

// The fused graph computes what the graph computes.
Graph Fused(const Graph& graph) {
  absl::StatusOr<Graph> fused = FuseCalls(graph);
  EXPECT_TRUE(fused.ok()) << fused.status();
  ExpectEqualResults(graph, *fused, 1);
  ExpectEqualResults(graph, *fused, 2);
  return *std::move(fused);
}

TEST(FoldConstants, ReplacesCallsOfConstants) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId folded = Relu(builder, Relu(builder, Weights(builder, {4})));
  const Graph graph = *builder.Finish({Add(builder, x, folded)}, {"y"});
  ASSERT_EQ(graph.calls.size(), 3u);
  const auto result = FoldConstants(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Ops(*result), ElementsAre("add"));
  ExpectEqualResults(graph, *result, 1);
}

TEST(FoldConstants, LeavesLargeBroadcasts) {
  GraphBuilder builder(Interpreted);
  const ValueId large = Broadcast(builder, Weights(builder, {64}), {1024, 64});
  const ValueId small = Broadcast(builder, Weights(builder, {64}), {4, 64});
  const Graph graph = *builder.Finish({large, small}, {"large", "small"});
  const auto result = FoldConstants(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->calls.size(), 1u);
  EXPECT_EQ(result->calls[0].outputs[0], large);
  EXPECT_NE(result->values[small].constant, nullptr);
}

// Weights that a model fills, as its initialisers' shapes say.
TEST(FoldConstants, FoldsLargeBroadcastsThatProductsRead) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 256}));
  // Through other calls of constants, too.
  const ValueId w =
      Relu(builder, Broadcast(builder, Weights(builder, {128}), {256, 128}));
  const ValueId added = Broadcast(builder, Weights(builder, {64}), {1024, 64});
  const ValueId z = builder.Input("z", F32({1024, 64}));
  const Graph graph =
      Finish(builder, {Matmul(builder, x, w), Add(builder, z, added)});
  const auto result = FoldConstants(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Ops(*result),
              UnorderedElementsAre("broadcast_to", "matmul", "add"));
  EXPECT_NE(result->values[w].constant, nullptr);
  EXPECT_EQ(result->values[added].constant, nullptr);
  ExpectEqualResults(graph, *result, 1);
}

// Weights of few bits are read as they are.
TEST(FoldConstants, LeavesDequantizedWeights) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 256}));
  const TensorType packed{ir::DataType::UInt(8), {256, 64}};
  const ValueId bytes = builder.Constant(
      "packed", packed,
      TensorData(std::vector<std::byte>(256 * 64, std::byte{0x5a})));
  const ValueId w =
      Must(builder.Compute("unpack", {}, {bytes}, [](const Tensors& in) {
        return te::Compute("T_unpack", {256, 128}, [&](const te::Indices& i) {
          return te::Body(ir::MakeCast(
              kFloat, in[0]({i[0], ir::FloorDiv(i[1], ir::IntConst(2))})));
        });
      }));
  const Graph graph = *builder.Finish({Matmul(builder, x, w)}, {"y"});
  const auto result = FoldConstants(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Ops(*result), ElementsAre("unpack", "matmul"));
}

// A mask that only a product could have read from what it is made of.
TEST(FoldUnfused, FoldsWhatFusionLeft) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 1024}));
  const ValueId mask = Broadcast(builder, Weights(builder, {64}), {1024, 64});
  const ValueId out = Broadcast(builder, Weights(builder, {32}), {1024, 32});
  const Graph graph = Finish(builder, {Matmul(builder, x, mask), out});
  const Graph folded = Checked(FoldUnfused(graph, Interpreted));
  EXPECT_THAT(Ops(folded), UnorderedElementsAre("broadcast_to", "matmul"));
  EXPECT_NE(folded.values[mask].constant, nullptr);
  EXPECT_EQ(folded.values[out].constant, nullptr);
  // Its own constant is of no use to anybody.
  int constants = 0;
  for (const Value& value : folded.values) {
    constants += value.constant != nullptr;
  }
  EXPECT_EQ(constants, 2);
  ExpectEqualResults(graph, folded, 1);
}

TEST(FoldConstants, ReportsARunThatFails) {
  GraphBuilder builder(Interpreted);
  const ValueId w = Weights(builder, {300, 300});
  const Graph graph = *builder.Finish({Relu(builder, w)}, {"y"});
  const auto result = FoldConstants(graph, [](const auto&, auto) {
    return absl::UnavailableError("no memory");
  });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
}

TEST(MergeEqualCalls, ComputesEqualCallsOnce) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId a = Sigmoid(builder, Relu(builder, x));
  const ValueId b = Sigmoid(builder, Relu(builder, x));
  const Graph graph =
      *builder.Finish({Add(builder, a, b), a, b}, {"sum", "a", "b"});
  const Graph merged = MergeEqualCalls(graph);
  EXPECT_THAT(Ops(merged), ElementsAre("nn.relu", "sigmoid", "add"));
  EXPECT_EQ(merged.outputs[1], merged.outputs[2]);
  EXPECT_TRUE(Verify(merged).ok());
  ExpectEqualResults(graph, merged, 1);
}

TEST(MergeEqualCalls, KeepsOtherFunctionsAndOtherInputs) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId y = builder.Input("y", F32({4}));
  const Graph graph =
      *builder.Finish({Relu(builder, x), Relu(builder, y), Sigmoid(builder, x),
                       Add(builder, x, y), Add(builder, y, x)},
                      {"a", "b", "c", "d", "e"});
  EXPECT_EQ(MergeEqualCalls(graph).calls.size(), 5u);
}

TEST(DropUnused, DropsCallsAndConstants) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId w = Weights(builder, {4});
  const ValueId y = Relu(builder, x);
  Graph graph = *builder.Finish({y, Add(builder, y, w)}, {"y", "z"});
  graph.outputs.pop_back();
  graph.output_names.pop_back();
  const Graph result = DropUnused(graph);
  EXPECT_THAT(Ops(result), ElementsAre("nn.relu"));
  EXPECT_EQ(result.values[w].constant, nullptr);
  EXPECT_TRUE(Verify(result).ok());
}

TEST(FuseCalls, AProductWithBiasAndReluIsOneCall) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 6, 6}));
  const ValueId w = Weights(builder, {4, 3, 3, 3});
  const ValueId bias = Weights(builder, {4, 1, 1});
  const ValueId conv =
      Must(builder.Compute("nn.conv2d", {}, {x, w}, [](const Tensors& in) {
        return te::Conv2dNchw(in[0], in[1]);
      }));
  const Graph graph =
      *builder.Finish({Relu(builder, Add(builder, conv, bias))}, {"y"});
  const Graph fused = Fused(graph);
  EXPECT_THAT(Ops(fused), ElementsAre("nn.conv2d+add+nn.relu"));
  EXPECT_THAT(fused.calls[0].inputs, ElementsAre(x, w, bias));
}

TEST(FuseCalls, AValueThatBranchesAndJoinsIsOneCall) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const Graph graph =
      *builder.Finish({Multiply(builder, x, Sigmoid(builder, x))}, {"y"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("sigmoid+multiply"));

  // The same where x is computed, too.
  GraphBuilder other(Interpreted);
  const ValueId a = other.Input("a", F32({3, 4}));
  const ValueId b = other.Input("b", F32({4, 5}));
  const ValueId product = Matmul(other, a, b);
  const Graph swish =
      *other.Finish({Multiply(other, product, Sigmoid(other, product))}, {"y"});
  EXPECT_THAT(Ops(Fused(swish)), ElementsAre("matmul+sigmoid+multiply"));
}

TEST(FuseCalls, KeepsAValueThatIsAnOutput) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId h = Relu(builder, x);
  const Graph graph = *builder.Finish({Sigmoid(builder, h), h}, {"y", "h"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("nn.relu", "sigmoid"));
}

TEST(FuseCalls, KeepsAValueWithAUseOutside) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId h = Relu(builder, x);
  const ValueId y = Sigmoid(builder, h);
  // The product reads rows and columns of h, so it cannot join.
  const ValueId z = Matmul(builder, h, h);
  const Graph graph = *builder.Finish({y, z}, {"y", "z"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("nn.relu", "sigmoid", "matmul"));
}

TEST(FuseCalls, DoesNotJoinAConsumerThatReadsOtherElements) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId bias = builder.Input("bias", F32({4}));
  // A transpose of the value.
  const ValueId t = Transpose(builder, Relu(builder, x));
  // The value, broadcast.
  const ValueId u = Add(builder, t, Sigmoid(builder, bias));
  const Graph graph = *builder.Finish({u}, {"u"});
  EXPECT_THAT(Ops(Fused(graph)),
              ElementsAre("nn.relu", "sigmoid", "transpose+add"));
}

// x[rows[i], j] for the values i, j.
ValueId GatherRows(GraphBuilder& builder, ValueId x, ValueId rows) {
  return Must(builder.Compute("take", {}, {x, rows}, [](const Tensors& in) {
    const int64_t count = in[1].shape()[0], width = in[0].shape()[1];
    return te::Compute("T_take", {count, width}, [&](const te::Indices& i) {
      return te::Body(in[0]({in[1]({i[0]}), i[1]}));
    });
  }));
}

TEST(FuseCalls, TakesInWhatReadsAlongRows) {
  GraphBuilder builder(Interpreted);
  const ValueId rows = builder.Input("rows", {ir::DataType::Int(64), {3}});
  const ValueId other = builder.Input("other", {ir::DataType::Int(64), {3}});
  const ValueId table = builder.Input("table", F32({5, 4}));
  const ValueId first = GatherRows(builder, table, rows);
  const ValueId second = GatherRows(builder, table, other);
  const Graph graph = *builder.Finish({Add(builder, first, second)}, {"y"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("take+take+add"));
}

TEST(FuseCalls, DoesNotTakeInATranspose) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId y = builder.Input("y", F32({4, 4}));
  const ValueId first = Relu(builder, x);
  const ValueId second = Transpose(builder, y);
  const Graph graph = *builder.Finish({Add(builder, first, second)}, {"z"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("transpose", "nn.relu+add"));
}

TEST(FuseCalls, DoesNotJoinReductions) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId sums = Must(
      builder.Compute("sum", {}, {Relu(builder, x)}, [](const Tensors& in) {
        return te::ReduceOver(in[0], te::Reducer::kSum, {1});
      }));
  const Graph graph = *builder.Finish({Sigmoid(builder, sums)}, {"y"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("nn.relu", "sum+sigmoid"));
}

TEST(FuseCalls, LeavesReshapesAlone) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 6}));
  const ValueId r = Reshape(builder, Relu(builder, x), {3, 8});
  const Graph graph = *builder.Finish({Sigmoid(builder, r)}, {"y"});
  EXPECT_THAT(Ops(Fused(graph)), ElementsAre("nn.relu", "reshape", "sigmoid"));
}

TEST(FuseCalls, KeepsWhatItHadWhereBranchesDoNotJoin) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId h = Sigmoid(builder, Relu(builder, x));
  // From here two branches lead to two outputs.
  const ValueId a = Relu(builder, h);
  const ValueId b = Add(builder, h, h);
  const Graph graph = *builder.Finish({a, b}, {"a", "b"});
  EXPECT_THAT(Ops(Fused(graph)),
              ElementsAre("nn.relu+sigmoid", "nn.relu", "add"));
}

TEST(FuseCalls, BlocksOfAFusedFunctionHaveNamesOfTheirOwn) {
  GraphBuilder builder(Interpreted);
  ValueId x = builder.Input("x", F32({4}));
  for (int i = 0; i < 12; ++i) x = Relu(builder, x);
  const Graph graph = *builder.Finish({x}, {"y"});
  const Graph fused = Fused(graph);
  ASSERT_EQ(fused.calls.size(), 1u);
  EXPECT_LE(fused.calls[0].function->name.size(), 60u);
}

TEST(Optimize, MergesBeforeItFuses) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId w = Relu(builder, Weights(builder, {4}));
  // Two equal calls: without their merge neither branch could be joined.
  const ValueId a = Multiply(builder, x, w);
  const ValueId b = Multiply(builder, x, w);
  const Graph graph =
      *builder.Finish({Add(builder, Sigmoid(builder, a), b)}, {"y"});
  const auto result = Optimize(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(Ops(*result), ElementsAre("multiply+sigmoid+add"));
  ExpectEqualResults(graph, *result, 1);
}

TEST(Optimize, AGraphOfConstantsNeedsNoCalls) {
  GraphBuilder builder(Interpreted);
  const Graph graph =
      *builder.Finish({Relu(builder, Weights(builder, {4}))}, {"y"});
  const auto result = Optimize(graph, Interpreted);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->calls, IsEmpty());
  ExpectEqualResults(graph, *result, 1);
}

}  // namespace
}  // namespace tilefarm::graph
