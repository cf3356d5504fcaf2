// Chains of products with sums over rows between them become one call.
#include <gmock/gmock.h>

#include "compiler/graph/passes.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

ValueId Softmax(GraphBuilder& builder, ValueId x) {
  return Must(builder.Compute("nn.softmax", {}, {x}, [](const Tensors& in) {
    return te::Softmax(in[0]);
  }));
}

// Over the columns, for each of which the largest element is found.
ValueId LessTheLargestOfColumns(GraphBuilder& builder, ValueId x) {
  return Must(builder.Compute("columns", {}, {x}, [](const Tensors& in) {
    return te::Subtract(
        in[0], te::ReduceOver(in[0], te::Reducer::kMax, {0}, true, "M"));
  }));
}

struct Inputs {
  ValueId q, k, v;
};
Inputs AddInputs(GraphBuilder& builder) {
  return {builder.Input("q", F32({5, 4})), builder.Input("k", F32({4, 7})),
          builder.Input("v", F32({7, 3}))};
}

std::vector<std::string> FusedOps(const Graph& graph) {
  const auto fused = FuseCalls(graph);
  EXPECT_TRUE(fused.ok()) << fused.status();
  ExpectEqualResults(graph, *fused, 1);
  return Ops(*fused);
}

TEST(FuseChains, AttentionIsOneCall) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId scores = Matmul(builder, q, k);
  const ValueId mask = builder.Input("mask", F32({5, 7}));
  const ValueId rows = Softmax(builder, Add(builder, scores, mask));
  const Graph graph =
      Finish(builder, {Relu(builder, Matmul(builder, rows, v))});
  EXPECT_THAT(FusedOps(graph),
              ElementsAre("matmul+add+nn.softmax+matmul+nn.relu"));
}

TEST(FuseChains, AlsoWithSeveralSumsBetween) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId twice =
      Softmax(builder, Softmax(builder, Matmul(builder, q, k)));
  const Graph graph = Finish(builder, {Matmul(builder, twice, v)});
  EXPECT_THAT(FusedOps(graph),
              ElementsAre("matmul+nn.softmax+nn.softmax+matmul"));
}

// A softmax of several calls, of which the exponents are read twice.
TEST(FuseChains, AlsoWithBranchesThatJoin) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId e = Sigmoid(builder, Matmul(builder, q, k));
  const ValueId sum =
      Must(builder.Compute("sum", {}, {e}, [](const Tensors& in) {
        return te::ReduceOver(in[0], te::Reducer::kSum, {1}, true, "sum");
      }));
  const ValueId rows =
      Must(builder.Compute("divide", {}, {e, sum}, [](const Tensors& in) {
        return te::Divide(in[0], in[1]);
      }));
  const Graph graph = Finish(builder, {Matmul(builder, rows, v)});
  EXPECT_THAT(FusedOps(graph), ElementsAre("matmul+sigmoid+sum+divide+matmul"));
}

TEST(FuseChains, TwoProductsBeforeStayApart) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId a = Softmax(builder, Matmul(builder, q, k));
  const ValueId b = Softmax(builder, Relu(builder, Matmul(builder, q, k)));
  const Graph graph = Finish(builder, {Matmul(builder, Add(builder, a, b), v)});
  const std::vector<std::string> ops = FusedOps(graph);
  EXPECT_THAT(ops, testing::Contains("nn.softmax"));
}

TEST(FuseChains, ProductsWithoutSumsBetweenStayApart) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId hidden = Relu(builder, Matmul(builder, q, k));
  const Graph graph = Finish(builder, {Matmul(builder, hidden, v)});
  EXPECT_THAT(FusedOps(graph), ElementsAre("matmul+nn.relu", "matmul"));
}

TEST(FuseChains, SumsOverColumnsEndAChain) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId columns =
      LessTheLargestOfColumns(builder, Matmul(builder, q, k));
  const Graph graph = Finish(builder, {Matmul(builder, columns, v)});
  EXPECT_THAT(FusedOps(graph), ElementsAre("matmul", "columns", "matmul"));
}

TEST(FuseChains, RowsThatAreReadAsColumnsEndAChain) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId w = builder.Input("w", F32({3, 5}));
  const ValueId rows = Softmax(builder, Matmul(builder, q, k));
  const Graph graph = Finish(builder, {Matmul(builder, w, rows)});
  EXPECT_THAT(FusedOps(graph), ElementsAre("matmul", "nn.softmax", "matmul"));
}

TEST(FuseChains, WhatIsReadElsewhereIsComputed) {
  for (const bool output : {true, false}) {
    GraphBuilder builder(Interpreted);
    const auto [q, k, v] = AddInputs(builder);
    const ValueId rows = Softmax(builder, Matmul(builder, q, k));
    const ValueId product = Matmul(builder, rows, v);
    const Graph graph =
        Finish(builder, {product, output ? rows : Matmul(builder, rows, v)});
    const std::vector<std::string> ops = FusedOps(graph);
    EXPECT_THAT(ops, testing::Contains("nn.softmax"));
  }
}

TEST(FuseChains, ProductsWithConstantsStayApart) {
  GraphBuilder builder(Interpreted);
  const auto [q, k, v] = AddInputs(builder);
  const ValueId rows = Softmax(builder, Matmul(builder, q, k));
  const ValueId w =
      builder.Constant("w", F32({7, 3}), std::vector<float>(21, 0.5f));
  const Graph graph = Finish(builder, {Matmul(builder, rows, w)});
  EXPECT_THAT(FusedOps(graph), ElementsAre("matmul", "nn.softmax", "matmul"));
}

}  // namespace
}  // namespace tilefarm::graph
