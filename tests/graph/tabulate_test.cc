// Tables of what elementwise calls make of bytes.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/passes.h"
#include "gtest/gtest.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using ir::DataType;
using ir::Expr;

// An elementwise call.
ValueId Map(GraphBuilder& builder, ValueId x,
            const std::function<Expr(const Expr&)>& f) {
  return Must(builder.Compute(
      "map", {}, {x}, [&](const Tensors& in) { return te::Map(in[0], f); }));
}
Expr Divide(const Expr& a, double b) {
  return ir::MakeBinary(ir::BinaryOp::kDiv, a, Number(b));
}

ValueId Input(GraphBuilder& builder, DataType dtype) {
  return builder.Input("x", {dtype, {5, 60}});
}
ValueId Dequantize(GraphBuilder& builder, ValueId x) {
  return Map(builder, x, [](const Expr& e) {
    return ir::MakeCast(kFloat, ir::MakeCast(DataType::Int(32), e)) *
           Number(0.03125);
  });
}
ValueId Quantize(GraphBuilder& builder, ValueId x, DataType dtype) {
  return Map(builder, x, [&](const Expr& e) {
    const Expr rounded =
        ir::MakeCall(ir::Intrinsic::kNearbyint, {Divide(e, 0.02)});
    return ir::MakeCast(dtype,
                        ir::Min(ir::Max(rounded, Number(0)), Number(127)));
  });
}
ValueId Erf(GraphBuilder& builder, ValueId x) {
  return Map(builder, x, [](const Expr& e) {
    return ir::MakeCall(ir::Intrinsic::kErf, {Divide(e, 1.4142135)});
  });
}

// How many lookups there are after the pass, which keeps every result.
size_t Lookups(const Graph& before) {
  auto after = Tabulate(before, Interpreted);
  EXPECT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(Verify(*after).ok()) << Verify(*after);
  for (const uint64_t seed : {1, 2, 3}) {
    ExpectEqualResults(before, *after, seed);
  }
  return std::ranges::count(after->calls, "lookup", &Call::op);
}

TEST(Tabulate, AnActivationBetweenBytes) {
  for (const DataType in : {DataType::UInt(8), DataType::Int(8)}) {
    for (const DataType out : {DataType::UInt(8), DataType::Int(8)}) {
      GraphBuilder builder(Interpreted);
      const ValueId x = Dequantize(builder, Input(builder, in));
      // The byte reaches the product by two ways, and is a byte in between.
      const ValueId e = Quantize(builder, Erf(builder, x), out);
      const Graph graph =
          Finish(builder,
                 {Quantize(builder,
                           Multiply(builder, x, Dequantize(builder, e)), out)});
      EXPECT_EQ(Lookups(graph), 1u);
      // Nothing else is left.
      EXPECT_EQ(DropUnused(*Tabulate(graph, Interpreted)).calls.size(), 1u);
    }
  }
}

TEST(Tabulate, WhatIsReadOnTheWayIsLookedUpIfThatPays) {
  GraphBuilder builder(Interpreted);
  const ValueId x = Dequantize(builder, Input(builder, DataType::UInt(8)));
  const ValueId e = Erf(builder, Erf(builder, x));
  // x is a cast and a product, e a table of float32; what Relu makes of e is
  // cheap; the last one is another table.
  EXPECT_EQ(Lookups(Finish(builder, {x, e, Relu(builder, e),
                                     Erf(builder, Erf(builder, e))})),
            2u);
}

TEST(Tabulate, AConstantOfOneElementBelongsToTheChain) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{}, {1}, {1, 1}, {60}, {5, 60}}) {
    GraphBuilder builder(Interpreted);
    const TensorType type = F32(shape);
    const ValueId scale = builder.Constant(
        "scale", type,
        std::vector<float>(static_cast<size_t>(type.num_elements()), 1.5f));
    const ValueId x = Dequantize(builder, Input(builder, DataType::Int(8)));
    const ValueId y = Erf(builder, Erf(builder, Multiply(builder, x, scale)));
    // Others differ from element to element.
    EXPECT_EQ(Lookups(Finish(builder, {y})),
              type.num_elements() == 1 ? 1u : 0u);
  }
}

// A dequantisation and a quantisation by the same scale.
TEST(Tabulate, AByteThatBecomesItselfIsRead) {
  const auto requantized = [](GraphBuilder& builder, ValueId x, double scale) {
    const ValueId f = Map(builder, x, [](const Expr& e) {
      return ir::MakeCast(kFloat, e) * Number(0.02);
    });
    return Map(builder, f, [&](const Expr& e) {
      const Expr rounded =
          ir::MakeCall(ir::Intrinsic::kNearbyint, {Divide(e, scale)});
      return ir::MakeCast(DataType::UInt(8),
                          ir::Min(ir::Max(rounded, Number(0)), Number(255)));
    });
  };
  for (const double scale : {0.02, 0.0201}) {
    GraphBuilder builder(Interpreted);
    const ValueId x = Input(builder, DataType::UInt(8));
    const ValueId y = requantized(builder, x, scale);
    const ValueId z = requantized(builder, x, scale);
    // z is an output, and stays one.
    const Graph graph = Finish(builder, {Transpose(builder, y), z});
    EXPECT_EQ(Lookups(graph), 0u);
    const Graph after = DropUnused(*Tabulate(graph, Interpreted));
    EXPECT_EQ(after.calls.size(), scale == 0.02 ? 3u : 5u);
  }
}

TEST(Tabulate, OtherChainsStay) {
  const auto lookups = [](const std::function<ValueId(GraphBuilder&)>& define) {
    GraphBuilder builder(Interpreted);
    const ValueId y = define(builder);
    return Lookups(Finish(builder, {y}));
  };
  // Cheap; of floats, booleans and wider integers; of two bytes.
  EXPECT_EQ(lookups([](GraphBuilder& b) {
              return Relu(b, Dequantize(b, Input(b, DataType::Int(8))));
            }),
            0u);
  for (const DataType dtype :
       {kFloat, DataType::Bool(), DataType::Int(16), DataType::Int(32)}) {
    GraphBuilder b(Interpreted);
    const ValueId x = Erf(b, Erf(b, Dequantize(b, Input(b, dtype))));
    const auto after = Tabulate(Finish(b, {x}), Interpreted);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->calls.size(), 3u);
    EXPECT_EQ(std::ranges::count(after->calls, "lookup", &Call::op), 0);
  }
  EXPECT_EQ(lookups([](GraphBuilder& b) {
              const ValueId x = Dequantize(b, Input(b, DataType::Int(8)));
              const ValueId y = Dequantize(b, Input(b, DataType::Int(8)));
              return Erf(b, Erf(b, Multiply(b, x, y)));
            }),
            0u);
  // Moved on the way; computed from the place, too.
  EXPECT_EQ(lookups([](GraphBuilder& b) {
              const ValueId x = Dequantize(b, Input(b, DataType::Int(8)));
              return Erf(b, Transpose(b, Erf(b, x)));
            }),
            0u);
  EXPECT_EQ(
      lookups([](GraphBuilder& b) {
        const ValueId x = Dequantize(b, Input(b, DataType::Int(8)));
        const ValueId y =
            Must(b.Compute("map", {}, {x}, [&](const Tensors& in) {
              return te::Compute(
                  "T_map", in[0].shape(), [&](const te::Indices& i) {
                    return te::Body(in[0](i) * ir::MakeCast(kFloat, i[1]));
                  });
            }));
        return Erf(b, Erf(b, y));
      }),
      0u);
}

// A chain that goes on after a byte that others read starts from that byte or
// from the first; either way every value is right.
TEST(Tabulate, ChainsOfChains) {
  GraphBuilder builder(Interpreted);
  ValueId x = Input(builder, DataType::UInt(8));
  std::vector<ValueId> outputs;
  for (int i = 0; i < 50; ++i) {
    const ValueId f = Dequantize(builder, x);
    x = Quantize(builder, Erf(builder, Erf(builder, f)), DataType::UInt(8));
    if (i % 7 == 0) outputs.push_back(f);
    if (i % 5 == 0) outputs.push_back(x);
  }
  EXPECT_GE(Lookups(Finish(builder, outputs)), 10u);
}

}  // namespace
}  // namespace tilefarm::graph
