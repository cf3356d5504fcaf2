// Divisions by steps of quantisation that move into constants. Steps are powers
// of two here unless a test says otherwise, so that no result changes.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "compiler/graph/passes.h"
#include "compiler/ir/visitor.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;

constexpr float kStep = 0.0625f;

ValueId Byte(GraphBuilder& builder) {
  return builder.Input("x", {DataType::Int(8), {4, 6}});
}
ValueId Floats(GraphBuilder& builder, std::vector<int64_t> shape,
               float first = 0.5f) {
  const TensorType type = F32(std::move(shape));
  std::vector<float> values(static_cast<size_t>(type.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = first * static_cast<float>(i + 1);
  }
  return builder.Constant("c", type, values);
}

// x * scale, of one element or one for each column.
ValueId Dequantize(GraphBuilder& builder, ValueId x, ValueId scale) {
  return Must(
      builder.Compute("dequantize", {}, {x, scale}, [&](const Tensors& in) {
        return te::Compute(
            "T_dequantize", in[0].shape(), [&](const te::Indices& i) {
              const te::Indices at =
                  in[1].ndim() == 0 ? te::Indices() : te::Indices{i[1]};
              return te::Body(ir::MakeBinary(
                  BinaryOp::kMul, ir::MakeCast(kFloat, in[0](i)), in[1](at)));
            });
      }));
}
// int8(clip(round(x / step))).
ValueId Quantize(GraphBuilder& builder, ValueId x, ValueId step) {
  return Must(
      builder.Compute("quantize", {}, {x, step}, [&](const Tensors& in) {
        return te::Compute(
            "T_quantize", in[0].shape(), [&](const te::Indices& i) {
              const te::Indices at =
                  in[1].ndim() == 0 ? te::Indices() : te::Indices{i[1]};
              const Expr rounded = ir::MakeCall(
                  ir::Intrinsic::kNearbyint,
                  {ir::MakeBinary(BinaryOp::kDiv, in[0](i), in[1](at))});
              return te::Body(ir::MakeCast(
                  DataType::Int(8),
                  ir::Min(ir::Max(rounded, Number(-128)), Number(127))));
            });
      }));
}
ValueId AddColumns(GraphBuilder& builder, ValueId x, ValueId bias) {
  return Must(builder.Compute("add", {}, {x, bias}, [](const Tensors& in) {
    return te::Add(in[0], in[1]);
  }));
}

int Divisions(const Graph& graph) {
  int divisions = 0;
  for (const Call& call : graph.calls) {
    ir::PostOrderExprs(call.function->body, [&](const Expr& e) {
      const auto* node = ir::As<ir::BinaryNode>(e);
      divisions += node != nullptr && node->op == BinaryOp::kDiv;
    });
  }
  return divisions;
}

// How many divisions are left after the pass, which keeps every result.
int Left(const Graph& before) {
  auto after = FoldSteps(before, Interpreted);
  EXPECT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(Verify(*after).ok()) << Verify(*after);
  for (const uint64_t seed : {1, 2, 3}) {
    ExpectEqualResults(before, *after, seed);
  }
  return Divisions(*after);
}
int Left(const std::function<ValueId(GraphBuilder&)>& define) {
  GraphBuilder builder(Interpreted);
  const ValueId y = define(builder);
  return Left(Finish(builder, {y}));
}

TEST(FoldSteps, ScalesAndBiasesAreDivided) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {6}}) {
    EXPECT_EQ(Left([&](GraphBuilder& b) {
                const ValueId x = Dequantize(b, Byte(b), Floats(b, shape));
                return Quantize(b, x, Floats(b, {}, kStep));
              }),
              0);
    EXPECT_EQ(Left([&](GraphBuilder& b) {
                const ValueId x = Dequantize(b, Byte(b), Floats(b, shape));
                return Quantize(b, AddColumns(b, x, Floats(b, {6})),
                                Floats(b, {}, kStep));
              }),
              0);
  }
}

TEST(FoldSteps, BothSidesOfASumAndItsRelu) {
  EXPECT_EQ(Left([](GraphBuilder& b) {
              const ValueId x = Dequantize(b, Byte(b), Floats(b, {6}));
              const ValueId y = Dequantize(b, Byte(b), Floats(b, {}));
              return Quantize(b, Relu(b, Add(b, Relu(b, x), y)),
                              Floats(b, {}, kStep));
            }),
            0);
  // x + x: one value that is read twice by one call.
  EXPECT_EQ(Left([](GraphBuilder& b) {
              const ValueId x = Dequantize(b, Byte(b), Floats(b, {6}));
              return Quantize(b, Add(b, x, x), Floats(b, {}, kStep));
            }),
            0);
}

// Constants that other calls read, too, stay for these.
TEST(FoldSteps, AConstantOfTwoCalls) {
  GraphBuilder builder(Interpreted);
  const ValueId scale = Floats(builder, {6});
  const ValueId x = Dequantize(builder, Byte(builder), scale);
  const ValueId y = Dequantize(builder, Byte(builder), scale);
  EXPECT_EQ(
      Left(Finish(builder,
                  {Quantize(builder, x, Floats(builder, {}, kStep)),
                   Quantize(builder, y, Floats(builder, {}, 4 * kStep)),
                   Relu(builder, Dequantize(builder, Byte(builder), scale))})),
      0);
}

TEST(FoldSteps, WhatOthersReadStays) {
  GraphBuilder builder(Interpreted);
  const ValueId x = Dequantize(builder, Byte(builder), Floats(builder, {}));
  const ValueId q = Quantize(builder, x, Floats(builder, {}, kStep));
  EXPECT_EQ(Left(Finish(builder, {q, Relu(builder, x)})), 1);
  GraphBuilder other(Interpreted);
  const ValueId y = Dequantize(other, Byte(other), Floats(other, {}));
  EXPECT_EQ(
      Left(Finish(other, {Quantize(other, y, Floats(other, {}, kStep)), y})),
      1);
}

TEST(FoldSteps, TermsWithoutConstantsStay) {
  // One side of a sum is an input, a product, a function, or moved.
  const std::vector<std::function<ValueId(GraphBuilder&)>> terms = {
      [](GraphBuilder& b) {
        return b.Input("f", F32({4, 6}));
      },
      [](GraphBuilder& b) {
        return Matmul(b, b.Input("f", F32({4, 3})), Floats(b, {3, 6}));
      },
      [](GraphBuilder& b) {
        return Sigmoid(b, Dequantize(b, Byte(b), Floats(b, {})));
      },
      [](GraphBuilder& b) {
        const ValueId x = b.Input("x", {DataType::Int(8), {6, 4}});
        return Transpose(b, Dequantize(b, x, Floats(b, {})));
      },
      [](GraphBuilder& b) {
        const ValueId x = Dequantize(b, Byte(b), Floats(b, {}));
        const ValueId y = Dequantize(b, Byte(b), Floats(b, {}));
        return Multiply(b, x, y);
      },
  };
  for (const auto& term : terms) {
    EXPECT_EQ(Left([&](GraphBuilder& b) {
                return Quantize(b, term(b), Floats(b, {}, kStep));
              }),
              1);
    EXPECT_EQ(Left([&](GraphBuilder& b) {
                const ValueId x = Dequantize(b, Byte(b), Floats(b, {6}));
                return Quantize(b, Add(b, x, term(b)), Floats(b, {}, kStep));
              }),
              1);
  }
}

TEST(FoldSteps, OnlyStepsThatAreConstantPositiveNumbers) {
  const auto with_step = [](const std::function<ValueId(GraphBuilder&)>& step) {
    return Left([&](GraphBuilder& b) {
      const ValueId x = Dequantize(b, Byte(b), Floats(b, {}));
      return Quantize(b, x, step(b));
    });
  };
  EXPECT_EQ(with_step([](GraphBuilder& b) { return Floats(b, {6}, kStep); }),
            1);
  EXPECT_EQ(with_step([](GraphBuilder& b) { return b.Input("s", F32({})); }),
            1);
  for (const float step :
       {0.0f, -kStep, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(), 1e-30f, 1e30f}) {
    EXPECT_EQ(with_step([&](GraphBuilder& b) { return Floats(b, {}, step); }),
              1)
        << step;
  }
  // A quotient that overflows.
  EXPECT_EQ(Left([](GraphBuilder& b) {
              const ValueId x = Dequantize(b, Byte(b), Floats(b, {}, 1e38f));
              return Quantize(b, x, Floats(b, {}, 0x1p-20f));
            }),
            1);
}

// A division goes through so many calls, not through a model.
TEST(FoldSteps, LongSumsStay) {
  for (const int terms : {7, 200}) {
    EXPECT_EQ(Left([&](GraphBuilder& b) {
                ValueId sum = Dequantize(b, Byte(b), Floats(b, {}));
                for (int i = 1; i < terms; ++i) {
                  sum = Add(b, sum, Dequantize(b, Byte(b), Floats(b, {})));
                }
                return Quantize(b, sum, Floats(b, {}, kStep));
              }),
              terms == 7 ? 0 : 1);
  }
}

// Other steps: results differ by one step at most, and rarely.
TEST(FoldSteps, OtherStepsRound) {
  GraphBuilder builder(Interpreted);
  const ValueId x = builder.Input("x", {DataType::Int(8), {100, 60}});
  const ValueId f =
      AddColumns(builder, Dequantize(builder, x, Floats(builder, {60}, 0.003f)),
                 Floats(builder, {60}, 0.01f));
  const Graph before =
      Finish(builder, {Quantize(builder, f, Floats(builder, {}, 0.021f))});
  const auto after = FoldSteps(before, Interpreted);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(Divisions(*after), 0);
  Rng rng(5);
  const auto inputs = RandomInputs(before, rng);
  const auto a = Elements<int8_t>((*RunGraph(before, inputs, Interpreted))[0]);
  const auto b = Elements<int8_t>((*RunGraph(*after, inputs, Interpreted))[0]);
  int differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE(std::abs(a[i] - b[i]), 1);
    differ += a[i] != b[i];
  }
  EXPECT_LE(differ, 6);
}

}  // namespace
}  // namespace tilefarm::graph
