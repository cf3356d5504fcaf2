// Channels last: which values change, and that the results are the same.
#include "compiler/graph/passes.h"
#include "compiler/te/convolution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

ValueId ConvTo(GraphBuilder& builder, ValueId x, int64_t channels,
               te::ConvOptions options = {.padding = {1, 1}}) {
  const ValueId w =
      Weights(builder, {channels, builder.shape(x)[1] / options.groups, 3, 3});
  return Must(builder.Compute("nn.conv2d", {}, {x, w}, [&](const Tensors& in) {
    return te::Conv2dNchw(in[0], in[1], options);
  }));
}

ValueId MaxPool(GraphBuilder& builder, ValueId x) {
  return Must(builder.Compute("nn.max_pool2d", {}, {x}, [](const Tensors& in) {
    return te::Pool2dNchw(in[0], te::Pooling::kMax, {});
  }));
}

ValueId Moved(GraphBuilder& builder, ValueId x, std::vector<int> axes) {
  return Must(builder.Compute("transpose", {}, {x}, [&](const Tensors& in) {
    return te::Transpose(in[0], axes);
  }));
}

Graph ChannelsLast(const Graph& graph) {
  absl::StatusOr<Graph> changed = PutChannelsLast(graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  ExpectCloseResults(graph, *changed, 1);
  ExpectCloseResults(graph, *changed, 2);
  return *std::move(changed);
}

TEST(PutChannelsLast, ChangesWhatIsBetweenConvolutions) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 8, 6}));
  const ValueId a = ConvTo(builder, x, 4);
  const ValueId bias = Weights(builder, {4, 1, 1});
  const ValueId b = Relu(builder, Add(builder, a, bias));
  const ValueId c = MaxPool(builder, b);
  const ValueId y = ConvTo(builder, c, 5);
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[x].type.shape, ElementsAre(1, 3, 8, 6));
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(1, 8, 6, 4));
  EXPECT_THAT(changed.values[b].type.shape, ElementsAre(1, 8, 6, 4));
  EXPECT_THAT(changed.values[c].type.shape, ElementsAre(1, 4, 3, 4));
  EXPECT_THAT(changed.values[y].type.shape, ElementsAre(1, 5, 4, 3));
  EXPECT_THAT(changed.values[bias].type.shape, ElementsAre(4, 1, 1));
  // The padded copy of the data changes with it.
  EXPECT_THAT(changed.calls.back().function->root()->allocs[0]->shape,
              ElementsAre(1, 6, 5, 4));
}

TEST(PutChannelsLast, LoopsFollowWhatTheyWrite) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3, 4, 5}));
  const ValueId a = Relu(builder, ConvTo(builder, x, 6));
  const Graph graph = *builder.Finish({ConvTo(builder, a, 3)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  ASSERT_EQ(changed.calls[1].op, "nn.relu");
  std::vector<int64_t> extents;
  ir::Stmt stmt = changed.calls[1].function->root()->body;
  while (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    extents.push_back(*ir::AsInt(loop->extent));
    stmt = loop->body;
  }
  EXPECT_THAT(extents, ElementsAre(2, 4, 5, 6));
}

TEST(PutChannelsLast, SumsFollowWhatTheyRead) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3, 4, 5}));
  const ValueId a = ConvTo(builder, x, 6);
  const Graph graph = *builder.Finish({ConvTo(builder, a, 7)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  // The padding's nest, then the sum's: rows, columns, taps, channels last.
  const auto* nests =
      ir::As<ir::SeqNode>(changed.calls[0].function->root()->body);
  ASSERT_NE(nests, nullptr);
  std::vector<int64_t> extents;
  ir::Stmt stmt = nests->stmts[1];
  while (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    extents.push_back(*ir::AsInt(loop->extent));
    stmt = loop->body;
  }
  EXPECT_THAT(extents, ElementsAre(2, 4, 5, 6, 3, 3, 3));
}

TEST(PutChannelsLast, JoinsBranchesAlongChannels) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 5, 5}));
  const ValueId a = ConvTo(builder, x, 3);
  const ValueId b = ConvTo(builder, x, 2);
  const ValueId joined = Concat(builder, {a, b}, 1);
  const Graph graph = *builder.Finish({ConvTo(builder, joined, 4)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[joined].type.shape, ElementsAre(1, 5, 5, 5));
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(1, 5, 5, 3));
}

TEST(PutChannelsLast, KeepsGroupsAndStridesApart) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 7, 7}));
  const ValueId a = ConvTo(builder, x, 4);
  const ValueId depthwise =
      ConvTo(builder, a, 4, {.stride = {2, 2}, .padding = {1, 1}, .groups = 4});
  const ValueId grouped =
      ConvTo(builder, depthwise, 6, {.padding = {1, 1}, .groups = 2});
  const Graph graph = *builder.Finish({ConvTo(builder, grouped, 2)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[depthwise].type.shape, ElementsAre(1, 4, 4, 4));
  EXPECT_THAT(changed.values[grouped].type.shape, ElementsAre(1, 4, 4, 6));
}

TEST(PutChannelsLast, ChangesBothSidesOfATransposedConvolution) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 5, 5}));
  const ValueId a = ConvTo(builder, x, 4);
  const ValueId w = Weights(builder, {4, 3, 2, 2});
  const ValueId up = Must(
      builder.Compute("nn.conv2d_transpose", {}, {a, w}, [](const Tensors& in) {
        te::SlidingWindow window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
        return te::ConvTranspose(in[0], in[1], window, {10, 10}, 1,
                                 ir::DataType::Float(32));
      }));
  const Graph graph = *builder.Finish({ConvTo(builder, up, 2)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(1, 5, 5, 4));
  EXPECT_THAT(changed.values[up].type.shape, ElementsAre(1, 10, 10, 3));
}

TEST(PutChannelsLast, KeepsTheBytesThatReshapesRead) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 4, 4}));
  const ValueId a = ConvTo(builder, x, 6);
  const ValueId flat = Reshape(builder, a, {1, 96});
  // One position: its bytes are the same in both orders.
  const ValueId pooled = Must(builder.Compute(
      "nn.global_avg_pool2d", {}, {ConvTo(builder, x, 5)},
      [](const Tensors& in) { return te::GlobalAveragePoolNchw(in[0]); }));
  const ValueId row = Reshape(builder, pooled, {1, 5});
  const Graph graph = *builder.Finish({flat, row}, {"flat", "row"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(1, 6, 4, 4));
  EXPECT_THAT(changed.values[pooled].type.shape, ElementsAre(1, 1, 1, 5));
}

// A shuffle of channels between convolutions in groups.
TEST(PutChannelsLast, ChannelsMayBeSeveralDimensions) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3, 4, 5}));
  const ValueId a = ConvTo(builder, x, 6);
  const ValueId apart = Reshape(builder, a, {2, 2, 3, 4, 5});
  const ValueId moved = Moved(builder, apart, {0, 2, 1, 3, 4});
  const ValueId together = Reshape(builder, moved, {2, 6, 4, 5});
  const ValueId y = ConvTo(builder, together, 4);
  const Graph graph = *builder.Finish({Sigmoid(builder, y)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(2, 4, 5, 6));
  EXPECT_THAT(changed.values[apart].type.shape, ElementsAre(2, 4, 5, 2, 3));
  EXPECT_THAT(changed.values[moved].type.shape, ElementsAre(2, 4, 5, 3, 2));
  EXPECT_THAT(changed.values[together].type.shape, ElementsAre(2, 4, 5, 6));
  for (const Call& call : changed.calls) {
    if (call.inputs[0] != a && call.inputs[0] != moved) continue;
    EXPECT_EQ(call.op, "reshape");
  }
}

// Patches of an image become rows: nothing is moved.
TEST(PutChannelsLast, PositionsMayBecomeOneDimension) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 4, 6}));
  const ValueId a = ConvTo(builder, x, 5);
  const ValueId rows =
      Moved(builder, Reshape(builder, a, {1, 5, 24}), {0, 2, 1});
  const ValueId w = Weights(builder, {5, 7});
  const ValueId flat = Reshape(builder, rows, {24, 5});
  const Graph graph = *builder.Finish({Matmul(builder, flat, w)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[a].type.shape, ElementsAre(1, 4, 6, 5));
  const Graph simple = Checked(Simplify(changed));
  ExpectCloseResults(graph, simple, 3);
  for (const Call& call : simple.calls) EXPECT_NE(call.op, "transpose");
}

// Windows of positions, and back.
TEST(PutChannelsLast, PositionsMayBecomeSeveralDimensions) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 3, 4, 6}));
  const ValueId a = ConvTo(builder, x, 5);
  const ValueId windows = Reshape(builder, a, {1, 5, 2, 2, 3, 2});
  const ValueId moved = Moved(builder, windows, {0, 2, 4, 3, 5, 1});
  const ValueId wider = Relu(builder, Reshape(builder, moved, {6, 4, 5}));
  const ValueId back = Moved(
      builder, Reshape(builder, wider, {1, 2, 3, 2, 2, 5}), {0, 5, 1, 3, 2, 4});
  const ValueId y = ConvTo(builder, Reshape(builder, back, {1, 5, 4, 6}), 4);
  const Graph graph = *builder.Finish({Sigmoid(builder, y)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[windows].type.shape,
              ElementsAre(1, 2, 2, 3, 2, 5));
  EXPECT_THAT(changed.values[moved].type.shape, ElementsAre(1, 2, 3, 2, 2, 5));
  EXPECT_THAT(changed.values[wider].type.shape, ElementsAre(6, 4, 5));
  EXPECT_THAT(changed.values[back].type.shape, ElementsAre(1, 2, 2, 3, 2, 5));
}

// From windows to a grid, without a convolution between them.
TEST(PutChannelsLast, ChangesWhatIsBetweenMovements) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 2, 3, 2, 2, 5}));
  const ValueId image = Moved(builder, x, {0, 5, 1, 3, 2, 4});
  const ValueId grid = Reshape(builder, image, {1, 5, 2, 2, 2, 3});
  const ValueId y = Moved(builder, grid, {0, 3, 5, 2, 4, 1});
  // Not where something else reads it.
  const ValueId other = Moved(builder, x, {0, 5, 3, 1, 2, 4});
  const Graph graph = Finish(builder, {y, Sigmoid(builder, other)});
  const Graph changed = ChannelsLast(graph);
  EXPECT_THAT(changed.values[image].type.shape, ElementsAre(1, 2, 2, 3, 2, 5));
  EXPECT_THAT(changed.values[grid].type.shape, ElementsAre(1, 2, 2, 2, 3, 5));
  EXPECT_EQ(changed.values[other].type.shape, graph.values[other].type.shape);
}

// What has the bytes of a value of the interface stays, however far away, and
// so does what a reshape mixes with positions or with batches.
TEST(PutChannelsLast, ReshapesThatDoNotFollowKeepBytes) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3, 4, 6}));
  const ValueId a = ConvTo(builder, x, 4);
  const ValueId b = Reshape(builder, a, {2, 4, 24});
  const ValueId c = Reshape(builder, b, {2, 2, 2, 24});
  const ValueId mixed = ConvTo(builder, x, 4);
  const ValueId d = Reshape(builder, mixed, {2, 8, 12});
  const ValueId batches = ConvTo(builder, x, 4);
  const ValueId e = Reshape(builder, batches, {8, 1, 24});
  const Graph graph = Finish(builder, {c, Relu(builder, d), Relu(builder, e)});
  const Graph changed = ChannelsLast(graph);
  for (const ValueId id : {a, b, c, mixed, d, batches, e}) {
    EXPECT_EQ(changed.values[id].type.shape, graph.values[id].type.shape);
  }
}

TEST(PutChannelsLast, StopsWhereChannelsMix) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 4, 4}));
  const ValueId a = ConvTo(builder, x, 4);
  const ValueId moved = Moved(builder, a, {0, 2, 1, 3});
  const ValueId after = Relu(builder, moved);
  const Graph graph =
      *builder.Finish({Sigmoid(builder, after), Relu(builder, a)}, {"y", "z"});
  const Graph changed = ChannelsLast(graph);
  // The transpose reads what has changed; its result has not.
  const ValueId y = changed.calls[1].outputs[0];
  EXPECT_EQ(changed.calls[1].op, "transpose");
  EXPECT_EQ(changed.values[y].type.shape, graph.values[y].type.shape);
}

TEST(PutChannelsLast, LeavesGraphsWithoutConvolutions) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 4, 6, 3}));
  const ValueId h = MaxPool(builder, Relu(builder, x));
  const Graph graph = *builder.Finish({Sigmoid(builder, h)}, {"y"});
  const Graph changed = ChannelsLast(graph);
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    EXPECT_EQ(changed.calls[c].function, graph.calls[c].function);
  }
}

TEST(PutChannelsLast, ConvolutionsOfOneAndThreeDimensions) {
  for (const std::vector<int64_t>& spatial :
       {std::vector<int64_t>{7}, std::vector<int64_t>{3, 4, 5}}) {
    GraphBuilder builder(Interpreted);
    std::vector<int64_t> shape = {2, 3};
    shape.insert(shape.end(), spatial.begin(), spatial.end());
    ValueId y = builder.Input("x", F32(shape));
    std::vector<ValueId> made;
    for (const int64_t channels : {4, 2}) {
      std::vector<int64_t> kernel(shape.size(), 3);
      kernel[0] = channels;
      kernel[1] = builder.shape(y)[1];
      const ValueId w = Weights(builder, kernel);
      y = Must(builder.Compute("nn.conv", {}, {y, w}, [&](const Tensors& in) {
        const std::vector<int64_t> ones(spatial.size(), 1);
        const te::SlidingWindow window{std::vector<int64_t>(spatial.size(), 3),
                                       ones, ones, ones, ones};
        return te::Conv(in[0], in[1], window, 1, ir::DataType::Float(32));
      }));
      made.push_back(y);
    }
    const Graph graph = *builder.Finish({y}, {"y"});
    const Graph changed = ChannelsLast(graph);
    EXPECT_EQ(changed.values[made[0]].type.shape.back(), 4);
  }
}

}  // namespace
}  // namespace tilefarm::graph
