// Concatenations without copies: which values become parts, and that the
// results are the same.
#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/passes.h"
#include "compiler/graph/plan_memory.h"
#include "compiler/graph/printer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Graph Joined(const Graph& graph) {
  absl::StatusOr<Graph> joined = JoinInPlace(graph);
  EXPECT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(Verify(*joined).ok()) << Verify(*joined);
  ExpectEqualResults(graph, *joined, 1);
  ExpectEqualResults(graph, *joined, 2);
  return *std::move(joined);
}

TEST(JoinInPlace, PartsAreComputedInTheResult) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId b = Sigmoid(builder, x);
  const ValueId y = Concat(builder, {a, b}, 1);
  const Graph graph =
      *builder.Finish({Relu(builder, Add(builder, y, y))}, {"y"});
  const Graph joined = Joined(graph);
  EXPECT_THAT(Ops(joined),
              ElementsAre("nn.relu", "sigmoid", kJoin, "add", "nn.relu"));
  EXPECT_EQ(*joined.values[a].part, (Part{y, {8, 1}, 0}));
  EXPECT_EQ(*joined.values[b].part, (Part{y, {8, 1}, 4}));
  EXPECT_FALSE(joined.values[y].part);
  const std::string text = Print(joined);
  EXPECT_THAT(text, HasSubstr("# in "));
  EXPECT_THAT(text, HasSubstr("strides=(8, 1), elem_offset=4)"));
  const MemoryPlan plan = PlanMemory(joined);
  EXPECT_EQ(plan.is_alias,
            (std::vector<bool>{false, false, true, false, false}));
  for (const ValueId part : {a, b}) {
    EXPECT_EQ(plan.places[part].storage, Storage::kArena);
    EXPECT_EQ(plan.places[part].at, plan.places[y].at);
  }
}

TEST(JoinInPlace, APartWithoutGapsHasNoStrides) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1, 2, 5}));
  const ValueId a = Relu(builder, x);
  const ValueId b = Sigmoid(builder, x);
  const ValueId y = Concat(builder, {a, b}, 1);
  const Graph joined = Joined(*builder.Finish({y}, {"y"}));
  const ir::BufferNode& param = *joined.calls[1].function->params[1];
  EXPECT_TRUE(param.strides.empty());
  EXPECT_EQ(param.elem_offset, 10);
  // Both are written to the caller's memory.
  EXPECT_EQ(PlanMemory(joined).places[a].storage, Storage::kOutput);
}

TEST(JoinInPlace, OtherReadersFindThePart) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId b = Sigmoid(builder, a);
  const ValueId c = Multiply(builder, a, b);
  const ValueId y = Concat(builder, {b, a}, 0);
  const ValueId z = Concat(builder, {c, y}, 0);
  const Graph joined = Joined(*builder.Finish({z}, {"z"}));
  EXPECT_THAT(Ops(joined),
              ElementsAre("nn.relu", "sigmoid", "multiply", kJoin, kJoin));
  // y is itself a part of z.
  EXPECT_EQ(*joined.values[y].part, (Part{z, {4, 1}, 12}));
  EXPECT_EQ(*joined.values[b].part, (Part{z, {4, 1}, 12}));
  EXPECT_EQ(*joined.values[a].part, (Part{z, {4, 1}, 24}));
  // The memory of z is needed from its first part on.
  EXPECT_EQ(PlanMemory(joined).arena_bytes, 0);
}

TEST(JoinInPlace, CopiesWhatCannotBeComputedThere) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId w =
      builder.Constant("w", F32({3, 1}), std::vector<float>{1, 2, 3});
  const ValueId a = Relu(builder, x);
  const ValueId renamed = Reshape(builder, Sigmoid(builder, x), {6, 2});
  const ValueId kept = Reshape(builder, renamed, {3, 4});
  const ValueId y = Concat(builder, {x, a, w, kept}, 1);
  const Graph joined = Joined(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Ops(joined), ElementsAre("nn.relu", "sigmoid", "reshape",
                                       "reshape", "permute_dims",
                                       "permute_dims", "permute_dims", kJoin));
  EXPECT_EQ(*joined.values[a].part, (Part{y, {13, 1}, 4}));
}

TEST(JoinInPlace, CopiesElementsInAnotherOrder) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId b = Sigmoid(builder, Transpose(builder, x));
  const ValueId y =
      Must(builder.Compute("concat", {}, {a, b}, [&](const Tensors& in) {
        return te::Compute("T_concat", {3, 8}, [&](const te::Indices& i) {
          return te::Body(ir::IfThenElseExpr(ir::LT(i[1], ir::IntConst(4)),
                                             in[0]({i[0], i[1]}),
                                             in[1]({i[1] - 4, i[0]})));
        });
      }));
  const Graph joined = Joined(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Ops(joined), ElementsAre("nn.relu", "transpose", "sigmoid",
                                       "permute_dims", kJoin));
}

TEST(JoinInPlace, AValueIsAPartOfOneResult) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId b = Sigmoid(builder, x);
  const ValueId y = Concat(builder, {a, b}, 1);
  const ValueId z = Concat(builder, {b, Relu(builder, y), a}, 1);
  const Graph joined = Joined(*builder.Finish({z}, {"z"}));
  // a and b are parts of z, and are not copied for y, which is made as before.
  EXPECT_THAT(Ops(joined),
              ElementsAre("nn.relu", "sigmoid", "concat", "nn.relu", kJoin));
  EXPECT_EQ(joined.values[a].part->whole, z);
  EXPECT_FALSE(joined.values[y].part);
}

TEST(JoinInPlace, LeavesWhatIsNoJoinOfComputedValues) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId inputs = Concat(builder, {x, Reshape(builder, a, {3, 4})}, 1);
  const ValueId b = Sigmoid(builder, x);
  // The same choice, but of sums.
  const ValueId sums =
      Must(builder.Compute("concat", {}, {a, b}, [&](const Tensors& in) {
        return te::Compute("T_concat", {3, 8}, [&](const te::Indices& i) {
          return te::Body(ir::IfThenElseExpr(ir::LT(i[1], ir::IntConst(4)),
                                             in[0]({i[0], i[1]}) * 2.0f,
                                             in[1]({i[0], i[1] - 4})));
        });
      }));
  // Elements come twice.
  const ValueId twice =
      Must(builder.Compute("concat", {}, {a, b}, [&](const Tensors& in) {
        return te::Compute("T_concat", {3, 8}, [&](const te::Indices& i) {
          return te::Body(ir::IfThenElseExpr(
              ir::LT(i[1], ir::IntConst(5)),
              in[0]({i[0], ir::FloorMod(i[1], ir::IntConst(4))}),
              in[1]({i[0], i[1] - 5})));
        });
      }));
  // An output of the graph is where the caller wants it.
  const ValueId out = Sigmoid(builder, a);
  const ValueId outputs = Concat(builder, {out, x}, 1);
  const Graph graph = *builder.Finish({inputs, sums, twice, out, outputs},
                                      {"a", "b", "c", "d", "e"});
  const Graph joined = Joined(graph);
  EXPECT_EQ(Ops(joined), Ops(graph));
}

TEST(Verify, FindsParametersThatAreNotWhereTheirValueIs) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({3, 4}));
  const ValueId a = Relu(builder, x);
  const ValueId y = Concat(builder, {a, Sigmoid(builder, x)}, 1);
  Graph joined = Joined(*builder.Finish({y}, {"y"}));
  Graph moved = joined;
  moved.values[a].part->elem_offset = 1;
  EXPECT_THAT(std::string(Verify(moved).message()), HasSubstr("is not where"));
  Graph apart = joined;
  auto function = std::make_shared<ir::PrimFunc>(*apart.calls[0].function);
  function->params[1] = ir::MakeBuffer("a", ir::DataType::Float(32), {3, 4});
  apart.calls[0].function = function;
  EXPECT_THAT(std::string(Verify(apart).message()), HasSubstr("is not where"));
}

}  // namespace
}  // namespace tilefarm::graph
