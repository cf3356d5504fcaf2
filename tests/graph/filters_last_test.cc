// Filters last: which weights change, and that the results are the same.
#include "compiler/graph/passes.h"
#include "compiler/te/convolution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

const ir::AttrMap kFilterLayouts = {{"data_layout", ir::Attr("NCHW")},
                                    {"kernel_layout", ir::Attr("OIHW")}};

ValueId FilterConv(GraphBuilder& builder, ValueId x, ValueId w,
                   int groups = 1) {
  return Must(builder.Compute("nn.conv2d", kFilterLayouts, {x, w},
                              [&](const Tensors& in) {
                                te::ConvOptions options{.padding = {1, 0}};
                                options.groups = groups;
                                return te::Conv2dNchw(in[0], in[1], options);
                              }));
}

Graph FiltersLast(const Graph& graph) {
  absl::StatusOr<Graph> changed = PutFiltersLast(graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(Verify(*changed).ok()) << Verify(*changed);
  ExpectCloseResults(graph, *changed, 1);
  ExpectCloseResults(graph, *changed, 2);
  return *std::move(changed);
}

const std::vector<int64_t>& WeightsShape(const Graph& graph, size_t call) {
  return graph.values[graph.calls[call].inputs[1]].type.shape;
}

TEST(PutFiltersLast, ChangesConstantWeights) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 6, 5}));
  const ValueId a = FilterConv(builder, x, Weights(builder, {6, 4, 3, 2}));
  const ValueId y = FilterConv(builder, a, Weights(builder, {8, 3, 3, 1}), 2);
  const Graph changed = FiltersLast(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(WeightsShape(changed, 0), ElementsAre(4, 3, 2, 6));
  EXPECT_THAT(WeightsShape(changed, 1), ElementsAre(3, 3, 1, 8));
  EXPECT_EQ(*changed.calls[0].attrs.at("kernel_layout").AsString(), "IHWO");
}

TEST(PutFiltersLast, ChannelsAreNextWhereTheDataHasThemLast) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 6, 5}));
  const ValueId a = FilterConv(builder, x, Weights(builder, {4, 3, 3, 2}));
  const ValueId b = FilterConv(builder, a, Weights(builder, {5, 4, 3, 2}));
  const ValueId y = FilterConv(builder, b, Weights(builder, {2, 5, 3, 1}));
  const auto last = PutChannelsLast(*builder.Finish({y}, {"y"}));
  ASSERT_TRUE(last.ok()) << last.status();
  const Graph changed = FiltersLast(*last);
  EXPECT_THAT(WeightsShape(changed, 0), ElementsAre(3, 3, 2, 4));
  EXPECT_THAT(WeightsShape(changed, 1), ElementsAre(3, 2, 4, 5));
  EXPECT_EQ(*changed.calls[1].attrs.at("kernel_layout").AsString(), "HWIO");
  // Again: nothing to do.
  EXPECT_THAT(WeightsShape(FiltersLast(changed), 1), ElementsAre(3, 2, 4, 5));
}

TEST(PutFiltersLast, LeavesWhatIsComputedOrHasAnotherUse) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 6, 5}));
  const ValueId w = builder.Input("w", F32({4, 4, 3, 1}));
  const ValueId shared = Weights(builder, {4, 4, 3, 1});
  const ValueId a = FilterConv(builder, x, w);
  const ValueId b = FilterConv(builder, a, shared);
  const ValueId c = FilterConv(builder, b, shared);
  const ValueId d = Relu(builder, shared);
  const Graph graph = *builder.Finish({c, d}, {"c", "d"});
  const Graph changed = FiltersLast(graph);
  EXPECT_THAT(WeightsShape(changed, 0), ElementsAre(4, 4, 3, 1));
  EXPECT_THAT(WeightsShape(changed, 1), ElementsAre(4, 3, 1, 4));
  EXPECT_EQ(changed.calls[1].inputs[1], changed.calls[2].inputs[1]);
  EXPECT_EQ(changed.calls[3].inputs[0], shared);
}

}  // namespace
}  // namespace tilefarm::graph
