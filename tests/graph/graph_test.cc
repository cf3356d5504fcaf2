// GraphBuilder, and what Verify rejects.
#include "compiler/graph/graph.h"

#include "absl/strings/match.h"
#include "compiler/graph/builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// y = relu(x) + w, where x and w are [2, 3].
Graph ReluPlusConstant() {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2, 3}));
  const ValueId w =
      builder.Constant("w", F32({2, 3}), std::vector<float>(6, 0.5f));
  return *builder.Finish({Add(builder, Relu(builder, x), w)}, {"y"});
}

void ExpectInternal(const Graph& graph, const std::string& message) {
  const absl::Status status = Verify(graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(TensorType, CountsElementsAndBytes) {
  EXPECT_EQ(F32({}).num_elements(), 1);
  EXPECT_EQ(F32({2, 3}).num_bytes(), 24);
  // The other extents need not have a product.
  EXPECT_EQ(F32({int64_t{1} << 40, int64_t{1} << 40, 0}).num_elements(), 0);
}

TEST(TensorType, PrintsAsInRelax) {
  EXPECT_EQ(F32({1, 8}).ToString(), "R.Tensor((1, 8), dtype=\"float32\")");
  EXPECT_EQ(F32({8}).ToString(), "R.Tensor((8,), dtype=\"float32\")");
  EXPECT_EQ(F32({}).ToString(), "R.Tensor((), dtype=\"float32\")");
}

TEST(Verify, AcceptsWhatTheBuilderMakes) {
  EXPECT_TRUE(Verify(ReluPlusConstant()).ok());
}

TEST(Verify, RejectsUseBeforeComputation) {
  Graph graph = ReluPlusConstant();
  std::swap(graph.calls[0], graph.calls[1]);
  ExpectInternal(graph, "is used before it is computed");
}

TEST(Verify, RejectsAValueThatIsComputedTwice) {
  Graph graph = ReluPlusConstant();
  graph.calls.push_back(graph.calls[0]);
  ExpectInternal(graph, "is computed twice");
}

TEST(Verify, RejectsACallThatComputesAConstant) {
  Graph graph = ReluPlusConstant();
  graph.calls[0].outputs = {graph.calls[1].inputs[1]};
  ExpectInternal(graph, "is computed twice");
}

TEST(Verify, RejectsOtherNumbersOfParameters) {
  Graph graph = ReluPlusConstant();
  graph.calls[1].inputs.pop_back();
  ExpectInternal(graph, "3 parameters for 2 tensors");
}

TEST(Verify, RejectsOtherTypesOfParameters) {
  Graph graph = ReluPlusConstant();
  graph.values[graph.inputs[0]].type.shape = {3, 2};
  ExpectInternal(graph, "is R.Tensor((2, 3), dtype=\"float32\"), x is");
}

TEST(Verify, RejectsValuesThatDoNotExist) {
  Graph graph = ReluPlusConstant();
  graph.calls[0].inputs[0] = 99;
  ExpectInternal(graph, "no value 99");
  graph = ReluPlusConstant();
  graph.outputs[0] = 99;
  ExpectInternal(graph, "no value 99");
  graph = ReluPlusConstant();
  graph.inputs[0] = -1;
  ExpectInternal(graph, "no value -1");
}

TEST(Verify, RejectsAConstantOfAnotherSize) {
  Graph graph = ReluPlusConstant();
  for (Value& value : graph.values) {
    if (value.constant == nullptr) continue;
    value.constant =
        std::make_shared<const TensorData>(DataOf(std::vector<float>(5)));
  }
  ExpectInternal(graph, "constant w has 20 bytes");
}

TEST(Verify, RejectsAnOutputThatNothingComputes) {
  Graph graph = ReluPlusConstant();
  graph.calls.pop_back();
  ExpectInternal(graph, "is never computed");
}

TEST(Verify, RejectsOutputsWithoutNames) {
  Graph graph = ReluPlusConstant();
  graph.output_names.clear();
  ExpectInternal(graph, "differ in number");
}

TEST(GraphBuilder, CallsTheProgramOfAnExpression) {
  const Graph graph = ReluPlusConstant();
  EXPECT_THAT(Ops(graph), ElementsAre("nn.relu", "add"));
  EXPECT_EQ(graph.calls[0].function->name, "nn_relu");
  const std::vector<TensorData> x = {
      DataOf(std::vector<float>{-1, 2, -3, 4, -5, 6})};
  const auto y = RunGraph(graph, x, Interpreted);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(Elements<float>((*y)[0]),
              ElementsAre(0.5f, 2.5f, 0.5f, 4.5f, 0.5f, 6.5f));
}

TEST(GraphBuilder, OneCallMayHaveSeveralResults) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const auto both = builder.ComputeAll("both", {}, {x}, [](const Tensors& in) {
    return Tensors{te::Relu(in[0]), te::Add(in[0], in[0])};
  });
  ASSERT_TRUE(both.ok()) << both.status();
  const Graph graph = *builder.Finish(*both, {"a", "b"});
  ASSERT_EQ(graph.calls.size(), 1u);
  const std::vector<TensorData> data = {
      DataOf(std::vector<float>{-1, 1, -2, 2})};
  const auto results = RunGraph(graph, data, Interpreted);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(Elements<float>((*results)[0]), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(Elements<float>((*results)[1]), ElementsAre(-2, 2, -4, 4));
}

constexpr char kTwice[] = R"(
@T.prim_func
def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            b[v] = a[v] * T.float32(2)
)";

TEST(GraphBuilder, CallsAProgramInText) {
  GraphBuilder builder(Interpreted);
  const ValueId x =
      builder.Constant("x", F32({4}), std::vector<float>{1, 2, 3, 4});
  const auto y = builder.CallText("twice", {}, {x}, kTwice);
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->size(), 1u);
  EXPECT_EQ(builder.type((*y)[0]), F32({4}));
  EXPECT_THAT(*builder.EvaluateDoubles((*y)[0]), ElementsAre(2, 4, 6, 8));
}

TEST(GraphBuilder, RejectsTextThatDoesNotFitItsArguments) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({5}));
  const auto other = builder.CallText("twice", {}, {x}, kTwice);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.status().message()),
              HasSubstr("twice: parameter a is R.Tensor((4,)"));
  const auto no_result = builder.CallText("twice", {}, {x, x}, kTwice);
  EXPECT_EQ(no_result.status().code(), absl::StatusCode::kInvalidArgument);
  const auto no_text = builder.CallText("twice", {}, {x}, "def twice(");
  EXPECT_EQ(no_text.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GraphBuilder, AResultWithoutElementsIsAConstant) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({0, 3}));
  const ValueId y = Relu(builder, x);
  EXPECT_FALSE(builder.IsComputed(y));
  EXPECT_TRUE(builder.IsConstant(y));
  EXPECT_THAT(*builder.EvaluateDoubles(y), IsEmpty());
  const Graph graph = *builder.Finish({y}, {"y"});
  EXPECT_THAT(graph.calls, IsEmpty());
}

TEST(GraphBuilder, AnInputWithoutElementsIsNoParameter) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({0, 3}));
  const ValueId sum = Must(builder.Compute("zero", {}, {x}, [](const Tensors&) {
    return te::Compute("T_zero", {3}, [](const te::Indices&) {
      return ir::FloatConst(0, ir::DataType::Float(32));
    });
  }));
  EXPECT_TRUE(builder.IsConstant(sum));
  const Graph graph = *builder.Finish({sum}, {"sum"});
  ASSERT_EQ(graph.calls.size(), 1u);
  EXPECT_THAT(graph.calls[0].inputs, IsEmpty());
}

TEST(GraphBuilder, RejectsAResultThatIsTooLarge) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({1}));
  const auto huge = builder.Compute("huge", {}, {x}, [](const Tensors& in) {
    const int64_t extent = int64_t{1} << 40;
    return te::Compute("T_huge", {extent, extent}, [&](const te::Indices&) {
      return in[0]({ir::IntConst(0)});
    });
  });
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kInvalidArgument)
      << huge.status();
}

TEST(GraphBuilder, EvaluatesChainsOfConstants) {
  GraphBuilder builder(Interpreted);
  ValueId last = builder.Constant("c", F32({2}), std::vector<float>{1, -1});
  // Deep enough that recursion would show.
  for (int i = 0; i < 2000; ++i) last = Relu(builder, last);
  EXPECT_TRUE(builder.IsComputed(last));
  EXPECT_TRUE(builder.IsConstant(last));
  EXPECT_THAT(*builder.EvaluateDoubles(last), ElementsAre(1, 0));
  // What was evaluated needs no call.
  const Graph graph = *builder.Finish({last}, {"y"});
  EXPECT_THAT(graph.calls, IsEmpty());
}

TEST(GraphBuilder, EvaluatesIntegersExactly) {
  GraphBuilder builder(Interpreted);
  const int64_t large = (int64_t{1} << 62) + 1;
  const ValueId c = builder.Int64s("c", {large, -large});
  EXPECT_THAT(*builder.EvaluateInts(c), ElementsAre(large, -large));
  const ValueId bytes = builder.Constant("b", {ir::DataType::UInt(8), {2}},
                                         std::vector<uint8_t>{0, 255});
  EXPECT_THAT(*builder.EvaluateInts(bytes), ElementsAre(0, 255));
  const ValueId half = builder.Constant("h", {ir::DataType::Float(16), {1}},
                                        std::vector<uint16_t>{0x3c00});
  EXPECT_THAT(*builder.EvaluateDoubles(half), ElementsAre(1));
}

TEST(GraphBuilder, RefusesToEvaluateWhatDependsOnAnInput) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2}));
  const ValueId c = builder.Constant("c", F32({2}), std::vector<float>{1, 2});
  const ValueId y = Add(builder, Relu(builder, c), Relu(builder, x));
  EXPECT_FALSE(builder.IsConstant(y));
  EXPECT_FALSE(builder.IsConstant(x));
  const auto data = builder.Evaluate(y);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(data.status().message()),
              HasSubstr("depends on the input x"));
}

TEST(GraphBuilder, GivesLongEvaluationsToTheFunctionOfItsCreator) {
  int calls = 0;
  GraphBuilder builder([&](const ir::PrimFunc& function, auto buffers) {
    ++calls;
    return Interpreted(function, buffers);
  });
  const std::vector<float> ones(600 * 600, 1);
  const ValueId c = builder.Constant("c", F32({600, 600}), ones);
  const ValueId small = builder.Constant("s", F32({1}), std::vector<float>{1});
  ASSERT_TRUE(builder.Evaluate(Relu(builder, small)).ok());
  EXPECT_EQ(calls, 0);
  const auto sums = builder.EvaluateDoubles(Add(builder, c, c));
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_THAT(*sums, testing::Each(2));
}

TEST(GraphBuilder, FinishDropsCallsThatNoOutputNeeds) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({2}));
  const ValueId y = Relu(builder, x);
  Sigmoid(builder, y);
  const Graph graph = *builder.Finish({y}, {"y"});
  EXPECT_THAT(Ops(graph), ElementsAre("nn.relu"));
}

TEST(RunGraph, RejectsOtherInputs) {
  const Graph graph = ReluPlusConstant();
  EXPECT_EQ(RunGraph(graph, {}, Interpreted).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<TensorData> five = {DataOf(std::vector<float>(5))};
  const auto result = RunGraph(graph, five, Interpreted);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("input x has 20 bytes"));
}

}  // namespace
}  // namespace tilefarm::graph
