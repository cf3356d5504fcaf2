// Products of quantised tensors: what the passes change, what they must leave,
// and how such graphs are fused.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/passes.h"
#include "compiler/te/convolution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using ir::DataType;
using ir::Expr;
using testing::ElementsAre;

const DataType kInt8 = DataType::Int(8);
const DataType kUInt8 = DataType::UInt(8);
const DataType kInt32 = DataType::Int(32);

// Elements that are spread over all values of 8 bits.
ValueId Bytes(GraphBuilder& builder, DataType dtype,
              std::vector<int64_t> shape) {
  const TensorType type{dtype, std::move(shape)};
  std::vector<uint8_t> values(static_cast<size_t>(type.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint8_t>(37 * i + 11);
  }
  return builder.Constant("q", type, values);
}
ValueId Byte(GraphBuilder& builder, DataType dtype, int value) {
  return builder.Constant(
      "zero", {dtype, {}},
      std::vector<uint8_t>{static_cast<uint8_t>(static_cast<int8_t>(value))});
}
ValueId Float(GraphBuilder& builder, float value) {
  return builder.Constant("scale", F32({}), std::vector<float>{value});
}
ValueId Scales(GraphBuilder& builder, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.0625f * static_cast<float>(i + 1);
  }
  return builder.Constant("scales", F32({count}), values);
}

// (x - zero) * scale, as the importer writes it; one scale and zero point for
// each index of dimension `axis`, if that is given.
ValueId Dequantize(GraphBuilder& builder, ValueId x, ValueId scale,
                   std::optional<ValueId> zero,
                   std::optional<size_t> axis = std::nullopt) {
  std::vector<ValueId> inputs{x, scale};
  if (zero) inputs.push_back(*zero);
  return Must(builder.Compute("dequantize", {}, inputs, [&](const Tensors& in) {
    return te::Compute(
        "T_dequantize", in[0].shape(), [&](const te::Indices& i) {
          const te::Indices at = axis ? te::Indices{i[*axis]} : te::Indices();
          Expr value = ir::MakeCast(kInt32, in[0](i));
          if (zero) value = value - ir::MakeCast(kInt32, in[2](at));
          return te::Body(ir::MakeBinary(
              ir::BinaryOp::kMul, ir::MakeCast(DataType::Float(32), value),
              in[1](at)));
        });
  }));
}

// uint8(clip(round(x * 8) + 100)).
ValueId Quantize(GraphBuilder& builder, ValueId x) {
  return Must(builder.Compute("quantize", {}, {x}, [&](const Tensors& in) {
    return te::Map(in[0], [](const Expr& e) {
      const DataType f32 = DataType::Float(32);
      const auto number = [&](double n) { return ir::FloatConst(n, f32); };
      const Expr rounded =
          ir::MakeCall(ir::Intrinsic::kNearbyint, {e * number(8)});
      return ir::MakeCast(
          kUInt8,
          ir::Min(ir::Max(rounded + number(100), number(0)), number(255)));
    });
  }));
}

// sum over k of (a - za) * (b - zb), int32; zero points may be missing.
ValueId IntegerMatmul(GraphBuilder& builder, ValueId a,
                      std::optional<ValueId> za, ValueId b,
                      std::optional<ValueId> zb) {
  std::vector<ValueId> inputs{a, b};
  if (za) inputs.push_back(*za);
  if (zb) inputs.push_back(*zb);
  return Must(builder.Compute("matmul", {}, inputs, [&](const Tensors& in) {
    const te::ReduceAxis k("k", in[0].dim(1));
    return te::Compute(
        "T_matmul", {in[0].dim(0), in[1].dim(1)}, [&](const te::Indices& i) {
          const auto centred = [&](const Expr& value, const te::Tensor* zero) {
            const Expr wide = ir::MakeCast(kInt32, value);
            if (zero == nullptr) return wide;
            const te::Indices at =
                zero->ndim() == 0 ? te::Indices() : te::Indices{i[1]};
            return wide - ir::MakeCast(kInt32, (*zero)(at));
          };
          return te::Sum(
              ir::MakeBinary(
                  ir::BinaryOp::kMul,
                  centred(in[0]({i[0], k}), za ? &in[2] : nullptr),
                  centred(in[1]({k, i[1]}), zb ? &in.back() : nullptr)),
              {k});
        });
  }));
}

// Both passes, with results that differ by rounding at most.
Graph Integers(const Graph& graph) {
  const Graph after = Checked(SplitZeroPoints(
      Checked(MultiplyIntegers(graph, Interpreted)), Interpreted));
  for (const uint64_t seed : {1, 2, 3}) ExpectCloseResults(graph, after, seed);
  return after;
}
// One pass that keeps every bit.
Graph Split(const Graph& graph) {
  const Graph after = Checked(SplitZeroPoints(graph, Interpreted));
  for (const uint64_t seed : {1, 2, 3}) ExpectEqualResults(graph, after, seed);
  return after;
}
bool MultipliesIntegers(const Graph& graph) {
  const Graph after = Checked(MultiplyIntegers(graph, Interpreted));
  return std::any_of(after.calls.begin(), after.calls.end(),
                     [&](const Call& c) {
                       return after.values[c.outputs[0]].type.dtype == kInt32;
                     });
}

std::vector<DataType> Dtypes(const Graph& graph, const Call& call) {
  std::vector<DataType> dtypes;
  for (const ValueId id : call.inputs) {
    dtypes.push_back(graph.values[id].type.dtype);
  }
  return dtypes;
}

TEST(MultiplyIntegers, AConvolutionOfQuantisedTensors) {
  for (const int zero : {0, 117}) {
    GraphBuilder builder(Interpreted);
    const ValueId x = builder.Input("x", {kUInt8, {1, 4, 5, 6}});
    const ValueId y =
        Conv(builder,
             Dequantize(builder, x, Float(builder, 0.03f),
                        Byte(builder, kUInt8, zero)),
             Dequantize(builder, Bytes(builder, kInt8, {3, 4, 3, 3}),
                        Scales(builder, 3), Bytes(builder, kInt8, {3}), 0));
    const Graph graph = *builder.Finish({Relu(builder, y)}, {"y"});
    const Graph after = Checked(MultiplyIntegers(graph, Interpreted));
    ExpectCloseResults(graph, after, 1);
    EXPECT_THAT(Ops(after), ElementsAre("nn.conv2d", "dequantize", "nn.relu"));
    const Call& sum = after.calls[0];
    EXPECT_EQ(after.values[sum.outputs[0]].type.dtype, kInt32);
    EXPECT_EQ(sum.inputs[0], x);
  }
}

TEST(MultiplyIntegers, WeightsMayBeQuantisedInTheGraph) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kInt8, {3, 4}});
  const ValueId w = builder.Constant(
      "w", F32({4, 2}), std::vector<float>{1, -2, 3, 4, 5, -6, 7, 8});
  const ValueId y = Matmul(
      builder, Dequantize(builder, x, Float(builder, 0.5f), std::nullopt),
      Dequantize(builder, Quantize(builder, w), Float(builder, 0.125f),
                 Byte(builder, kUInt8, 100)));
  const Graph after = Integers(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Ops(after), ElementsAre("matmul", "dequantize"));
  // 100 came off the weights.
  EXPECT_THAT(Dtypes(after, after.calls[0]), ElementsAre(kInt8, kInt8));
}

TEST(MultiplyIntegers, ZeroPointsBecomeOneSumPerChannel) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kUInt8, {1, 4, 5, 6}});
  const ValueId y = Conv(
      builder,
      Dequantize(builder, x, Float(builder, 0.03f), Byte(builder, kUInt8, 117)),
      Dequantize(builder, Bytes(builder, kInt8, {3, 4, 3, 3}),
                 Scales(builder, 3), std::nullopt, 0),
      {.stride = {2, 1}, .padding = {1, 2}});
  const Graph after = Integers(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Ops(after), ElementsAre("nn.conv2d", "dequantize"));
  // x, what pads it, w, and the sums.
  EXPECT_THAT(Dtypes(after, after.calls[0]),
              ElementsAre(kUInt8, kUInt8, kInt8, kInt32));
}

TEST(MultiplyIntegers, KeepsWhatIsNoProductOfConstantScales) {
  const auto product = [](const std::function<ValueId(GraphBuilder&)>& x,
                          const std::function<ValueId(GraphBuilder&)>& w) {
    GraphBuilder builder(Interpreted);
    const ValueId left = x(builder);
    const ValueId y = Matmul(builder, left, w(builder));
    return *builder.Finish({y}, {"y"});
  };
  const auto data = [](GraphBuilder& b) {
    return Dequantize(b, b.Input("x", {kUInt8, {3, 4}}), Float(b, 0.1f),
                      Byte(b, kUInt8, 9));
  };
  const auto weight = [](GraphBuilder& b) {
    return Dequantize(b, Bytes(b, kInt8, {4, 2}), Scales(b, 2), std::nullopt,
                      1);
  };
  EXPECT_TRUE(MultipliesIntegers(product(data, weight)));
  // The scale is computed.
  EXPECT_FALSE(MultipliesIntegers(product(
      [](GraphBuilder& b) {
        return Dequantize(b, b.Input("x", {kUInt8, {3, 4}}),
                          b.Input("s", F32({})), std::nullopt);
      },
      weight)));
  // A scale for each row of x would do; for each column of x it cannot leave
  // the sum.
  EXPECT_FALSE(MultipliesIntegers(product(
      [](GraphBuilder& b) {
        return Dequantize(b, b.Input("x", {kUInt8, {3, 4}}), Scales(b, 4),
                          std::nullopt, 1);
      },
      weight)));
  // So with rows of weights.
  EXPECT_FALSE(MultipliesIntegers(product(data, [](GraphBuilder& b) {
    return Dequantize(b, Bytes(b, kInt8, {4, 2}), Scales(b, 4), std::nullopt,
                      0);
  })));
  // The weights are an input.
  EXPECT_FALSE(MultipliesIntegers(product(data, [](GraphBuilder& b) {
    return Dequantize(b, b.Input("w", {kInt8, {4, 2}}), Float(b, 0.1f),
                      std::nullopt);
  })));
  // x is float32.
  EXPECT_FALSE(MultipliesIntegers(product(
      [](GraphBuilder& b) {
        return b.Input("x", F32({3, 4}));
      },
      weight)));
}

TEST(MultiplyIntegers, KeepsSumsThatMayOverflow) {
  for (const int64_t terms : {33025, 33026}) {
    GraphBuilder builder(Interpreted);
    const ValueId y =
        Matmul(builder,
               Dequantize(builder, builder.Input("x", {kUInt8, {1, terms}}),
                          Float(builder, 0.1f), std::nullopt),
               Dequantize(builder, Bytes(builder, kUInt8, {terms, 1}),
                          Float(builder, 0.1f), std::nullopt));
    EXPECT_EQ(MultipliesIntegers(*builder.Finish({y}, {"y"})), terms == 33025);
  }
}

TEST(SplitZeroPoints, OfWeightsOfEitherSign) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kUInt8, {3, 5}});
  const ValueId y =
      IntegerMatmul(builder, x, std::nullopt, Bytes(builder, kUInt8, {5, 4}),
                    Byte(builder, kUInt8, 128));
  const Graph after = Split(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Dtypes(after, after.calls[0]), ElementsAre(kUInt8, kInt8));
}

TEST(SplitZeroPoints, TheZeroPointOfTheDataMayBeComputed) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kInt8, {3, 5}});
  const ValueId zero = builder.Input("zero", {kInt8, {}});
  const ValueId y = IntegerMatmul(builder, x, zero,
                                  Bytes(builder, kInt8, {5, 4}), std::nullopt);
  const Graph after = Split(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Dtypes(after, after.calls[0]),
              ElementsAre(kInt8, kInt8, kInt8, kInt32));
  // Sums, and what comes off them.
  EXPECT_EQ(after.calls[0].function->root()->allocs.size(), 1u);
}

TEST(SplitZeroPoints, TheProductMayBeFollowedByOthers) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kUInt8, {3, 5}});
  const ValueId w = Bytes(builder, kInt8, {5, 4});
  const ValueId zero = Byte(builder, kUInt8, 77);
  const ValueId y = Must(
      builder.Compute("qnn.matmul", {}, {x, w, zero}, [](const Tensors& in) {
        const te::ReduceAxis k("k", 5);
        const te::Tensor sum =
            te::Compute("sum", {3, 4}, [&](const te::Indices& i) {
              return te::Sum(
                  ir::MakeBinary(ir::BinaryOp::kMul,
                                 ir::MakeCast(kInt32, in[0]({i[0], k})) -
                                     ir::MakeCast(kInt32, in[2](te::Indices())),
                                 ir::MakeCast(kInt32, in[1]({k, i[1]}))),
                  {k});
            });
        return te::Map(sum, [](const Expr& e) {
          return ir::MakeCast(DataType::Float(32), e);
        });
      }));
  const Graph after = Split(*builder.Finish({y}, {"y"}));
  EXPECT_THAT(Dtypes(after, after.calls[0]),
              ElementsAre(kUInt8, kInt8, kInt32));
}

TEST(SplitZeroPoints, KeepsWeightsThatDoNotFitOrAreComputed) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {kUInt8, {3, 40}});
  // 255 - 100 is no int8.
  const ValueId wide =
      IntegerMatmul(builder, x, std::nullopt, Bytes(builder, kUInt8, {40, 8}),
                    Byte(builder, kUInt8, 100));
  const ValueId computed = IntegerMatmul(builder, x, std::nullopt,
                                         builder.Input("w", {kInt8, {40, 4}}),
                                         Byte(builder, kInt8, 1));
  const Graph graph = *builder.Finish({wide, computed}, {"a", "b"});
  const Graph after = Split(graph);
  EXPECT_EQ(after.calls[0].function, graph.calls[0].function);
  EXPECT_EQ(after.calls[1].function, graph.calls[1].function);
}

TEST(FuseCalls, TakesInADequantisedResidual) {
  GraphBuilder builder(Interpreted);
  const ValueId residual = builder.Input("r", {kUInt8, {3, 5}});
  const ValueId x = builder.Input("x", F32({3, 4}));
  // Its call comes first.
  const ValueId wide = Dequantize(builder, residual, Float(builder, 0.1f),
                                  Byte(builder, kUInt8, 9));
  const ValueId w =
      builder.Constant("w", F32({4, 5}), std::vector<float>(20, 0.5f));
  const ValueId y =
      Quantize(builder, Add(builder, Matmul(builder, x, w), wide));
  const Graph graph = *builder.Finish({y}, {"y"});
  const Graph fused = Checked(FuseCalls(graph));
  EXPECT_THAT(Ops(fused), ElementsAre("dequantize+matmul+add+quantize"));
  ExpectEqualResults(graph, fused, 1);
}

TEST(FuseCalls, LeavesProducersThatOthersNeed) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", F32({4, 4}));
  const ValueId w =
      builder.Constant("w", F32({4, 4}), std::vector<float>(16, 0.5f));
  // Read by a product, and moved.
  const ValueId both = Sigmoid(builder, x);
  const ValueId a = Add(builder, Matmul(builder, both, w), both);
  const ValueId moved =
      Add(builder, Matmul(builder, x, w), Transpose(builder, Relu(builder, x)));
  const Graph graph = *builder.Finish({a, moved}, {"a", "b"});
  const Graph fused = Checked(FuseCalls(graph));
  EXPECT_THAT(Ops(fused),
              testing::UnorderedElementsAre("sigmoid", "matmul+add", "nn.relu",
                                            "transpose", "matmul+add"));
  ExpectEqualResults(graph, fused, 1);
}

}  // namespace
}  // namespace tilefarm::graph
