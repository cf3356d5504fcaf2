// What moves operands and results of calls becomes part of them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "compiler/graph/passes.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

// Heads, rows of queries and of keys, and numbers of each.
constexpr int64_t kHeads = 2, kQueries = 5, kKeys = 7, kNumbers = 4;

ValueId Move(GraphBuilder& builder, ValueId x, std::vector<int> axes) {
  return Must(builder.Compute("permute_dims", {}, {x}, [&](const Tensors& in) {
    return te::Transpose(in[0], axes);
  }));
}

// Rows of numbers, of which each head has its own.
ValueId Rows(GraphBuilder& builder, const std::string& name, int64_t rows) {
  return builder.Input(name, F32({rows, kHeads, kNumbers}));
}

ValueId Product(GraphBuilder& builder, ValueId a, ValueId b) {
  return Must(builder.Compute("matmul", {}, {a, b}, [](const Tensors& in) {
    return te::BatchMatmul(in[0], in[1]);
  }));
}

ValueId Attention(GraphBuilder& builder, ValueId q, ValueId k, ValueId v) {
  const ValueId scores = Product(builder, q, k);
  const ValueId shares =
      Must(builder.Compute("nn.softmax", {}, {scores}, [](const Tensors& in) {
        return te::Softmax(in[0]);
      }));
  return Product(builder, shares, v);
}

class FuseMovement : public testing::Test {
 protected:
  ValueId Q() {
    return Move(builder_, Rows(builder_, "q", kQueries), {1, 0, 2});
  }
  ValueId K() { return Move(builder_, Rows(builder_, "k", kKeys), {1, 2, 0}); }
  ValueId V() { return Move(builder_, Rows(builder_, "v", kKeys), {1, 0, 2}); }

  std::vector<std::string> OpsWith(const std::vector<ValueId>& outputs) {
    const Graph graph = Checked(FuseCalls(Finish(builder_, outputs)));
    fused_ = Checked(graph::FuseMovement(graph));
    ExpectEqualResults(graph, fused_, 1);
    ExpectEqualResults(graph, fused_, 2);
    return Ops(fused_);
  }

  // Those of the last call that the function does not get.
  std::vector<std::vector<int64_t>> Made() const {
    std::vector<std::vector<int64_t>> shapes;
    for (const ir::Buffer& buffer :
         fused_.calls.back().function->root()->allocs) {
      shapes.push_back(buffer->shape);
    }
    return shapes;
  }

  GraphBuilder builder_{Interpreted};
  Graph fused_;
};

TEST_F(FuseMovement, AttentionOfHeadsIsOneCall) {
  const ValueId y = Attention(builder_, Q(), K(), V());
  EXPECT_THAT(
      OpsWith({Move(builder_, y, {1, 0, 2})}),
      ElementsAre("rearrange+rearrange+rearrange+matmul+nn.softmax+matmul+"
                  "permute_dims"));
  // Keys lie as they did.
  EXPECT_THAT(Made(), testing::Contains(ElementsAre(kHeads, kKeys, kNumbers)));
  EXPECT_THAT(
      Made(),
      testing::Not(testing::Contains(ElementsAre(kHeads, kNumbers, kKeys))));
}

TEST_F(FuseMovement, SlicesOfOneRow) {
  const ValueId x = builder_.Input("x", F32({kKeys, 3 * kHeads * kNumbers}));
  const auto part = [&](int64_t n, bool transposed) {
    return Must(builder_.Compute("part", {}, {x}, [&](const Tensors& in) {
      return te::Compute(
          "part",
          transposed ? std::vector<int64_t>{kHeads, kNumbers, kKeys}
                     : std::vector<int64_t>{kHeads, kKeys, kNumbers},
          [&](const te::Indices& i) {
            const ir::Expr row = transposed ? i[2] : i[1];
            const ir::Expr number = transposed ? i[1] : i[2];
            return te::Body(
                in[0]({row, i[0] * kNumbers + number + n * kHeads * kNumbers}));
          });
    }));
  };
  const ValueId y =
      Attention(builder_, part(0, false), part(1, true), part(2, false));
  EXPECT_THAT(
      OpsWith({y}),
      ElementsAre("rearrange+rearrange+rearrange+matmul+nn.softmax+matmul"));
  EXPECT_EQ(fused_.calls.back().inputs.size(), 1);
}

TEST_F(FuseMovement, AReshapeBehindIsPartOfIt) {
  const auto one = [&](const std::string& name, int64_t rows,
                       std::vector<int> axes, int64_t height, int64_t width) {
    const ValueId x = builder_.Input(name, F32({1, rows, kHeads, kNumbers}));
    return Reshape(builder_, Move(builder_, x, axes), {kHeads, height, width});
  };
  const ValueId q = one("q", kQueries, {0, 2, 1, 3}, kQueries, kNumbers);
  const ValueId k = one("k", kKeys, {0, 2, 3, 1}, kNumbers, kKeys);
  const ValueId v = one("v", kKeys, {0, 2, 1, 3}, kKeys, kNumbers);
  EXPECT_THAT(
      OpsWith({Attention(builder_, q, k, v)}),
      ElementsAre("rearrange+rearrange+rearrange+matmul+nn.softmax+matmul"));
  EXPECT_THAT(Made(), testing::Contains(ElementsAre(kHeads, kKeys, kNumbers)));
}

TEST_F(FuseMovement, AReshapeThatDividesStays) {
  const ValueId x = builder_.Input("x", F32({kHeads * kNumbers, kQueries}));
  const ValueId q = Reshape(builder_, Move(builder_, x, {1, 0}),
                            {kHeads, kQueries, kNumbers});
  const ValueId k = builder_.Input("k", F32({kHeads, kNumbers, kKeys}));
  const ValueId v = builder_.Input("v", F32({kHeads, kKeys, kNumbers}));
  EXPECT_THAT(
      OpsWith({Attention(builder_, q, k, v)}),
      ElementsAre("permute_dims", "reshape", "matmul+nn.softmax+matmul"));
}

// Queries, which are a result, stay; others read values in place.
TEST_F(FuseMovement, WhatIsAResultStays) {
  const ValueId q = Q(), k = K(), v = V();
  const ValueId y = Attention(builder_, q, k, v);
  const ValueId moved = Move(builder_, y, {1, 0, 2});
  EXPECT_THAT(OpsWith({moved, q, Relu(builder_, v), y}),
              ElementsAre("permute_dims",
                          "rearrange+rearrange+matmul+nn.softmax+matmul",
                          "permute_dims", "rearrange+nn.relu"));
}

TEST_F(FuseMovement, WhatComputesStays) {
  const ValueId q = Multiply(builder_, Q(), builder_.Input("c", F32({1})));
  const ValueId y = Attention(builder_, q, K(), V());
  const ValueId half =
      Must(builder_.Compute("half", {}, {y}, [](const Tensors& in) {
        return te::Compute("half", {kHeads, kQueries, kNumbers / 2},
                           [&](const te::Indices& i) {
                             return te::Body(in[0]({i[0], i[1], i[2] * 2}));
                           });
      }));
  EXPECT_THAT(
      OpsWith({half}),
      ElementsAre("permute_dims+multiply",
                  "rearrange+rearrange+matmul+nn.softmax+matmul", "half"));
}

TEST_F(FuseMovement, OperandsOfOneProduct) {
  EXPECT_THAT(OpsWith({Product(builder_, Q(), K())}),
              ElementsAre("rearrange+rearrange+matmul"));
  EXPECT_THAT(Made(), testing::UnorderedElementsAre(
                          ElementsAre(kHeads, kQueries, kNumbers),
                          ElementsAre(kHeads, kKeys, kNumbers)));
}

// Rows of results go where the model wants them; columns do not become rows.
TEST_F(FuseMovement, TheResultOfOneProduct) {
  const auto product = [&](const std::string& n) {
    return Product(builder_,
                   builder_.Input("a" + n, F32({kHeads, kQueries, kNumbers})),
                   builder_.Input("b" + n, F32({kHeads, kNumbers, kKeys})));
  };
  EXPECT_THAT(OpsWith({Move(builder_, product("0"), {1, 0, 2}),
                       Move(builder_, product("1"), {0, 2, 1})}),
              ElementsAre("matmul+permute_dims", "matmul", "permute_dims"));
}

// A product of a vector reads the matrix once, as it lies.
TEST_F(FuseMovement, AMatrixThatIsReadOnceStays) {
  const ValueId x = builder_.Input("x", F32({1, kNumbers}));
  const ValueId w = builder_.Input("w", F32({kKeys, kNumbers}));
  const ValueId y = Must(builder_.Compute(
      "matmul", {}, {x, Move(builder_, w, {1, 0})},
      [](const Tensors& in) { return te::Matmul(in[0], in[1]); }));
  EXPECT_THAT(OpsWith({y}), ElementsAre("permute_dims", "matmul"));
}

// Windows of 2 x 3 pixels, each with all its channels.
constexpr int64_t kHigh = 4, kWide = 6, kChannels = 5;

class Windows : public FuseMovement {
 protected:
  ValueId Pixels(const std::string& name) {
    return builder_.Input(name, F32({kHigh, kWide, kChannels}));
  }
  ValueId InWindows(ValueId x) {
    const ValueId apart = Reshape(builder_, x, {2, 2, 2, 3, kChannels});
    return Reshape(builder_, Move(builder_, apart, {0, 2, 1, 3, 4}),
                   {4, 6, kChannels});
  }
  ValueId OutOfWindows(ValueId x) {
    const ValueId apart = Reshape(builder_, x, {2, 2, 2, 3, kChannels});
    return Reshape(builder_, Move(builder_, apart, {0, 2, 1, 3, 4}),
                   {kHigh, kWide, kChannels});
  }
  ValueId Shares(ValueId x) {
    return Must(builder_.Compute("nn.softmax", {}, {x}, [](const Tensors& in) {
      return te::Softmax(in[0]);
    }));
  }
  // The largest of each two pixels side by side.
  ValueId Pool(ValueId x) {
    return Must(builder_.Compute("pool", {}, {x}, [&](const Tensors& in) {
      return te::Compute("pool", {kHigh, kWide - 1, kChannels},
                         [&](const te::Indices& i) {
                           const ir::Expr a = in[0]({i[0], i[1], i[2]});
                           const ir::Expr b = in[0]({i[0], i[1] + 1, i[2]});
                           return te::Body(ir::Max(a, b));
                         });
    }));
  }
};

// Indices may divide: of a row, they are computed once.
TEST_F(Windows, OfRows) {
  EXPECT_THAT(OpsWith({Shares(InWindows(Pixels("x")))}),
              ElementsAre("reshape", "rearrange+nn.softmax"));
}

TEST_F(Windows, OfTheResultOfRows) {
  EXPECT_THAT(OpsWith({InWindows(Shares(Pixels("x")))}),
              ElementsAre("nn.softmax+rearrange", "reshape"));
}

// Both could have it: the product's rows stay rows of its operand.
TEST_F(Windows, BetweenRowsAndAProduct) {
  const ValueId w = builder_.Input("w", F32({4, kChannels, kKeys}));
  EXPECT_THAT(OpsWith({Product(builder_, InWindows(Shares(Pixels("x"))), w)}),
              ElementsAre("nn.softmax+rearrange", "reshape", "matmul"));
}

TEST_F(Windows, OfElements) {
  const ValueId sum =
      Add(builder_, OutOfWindows(builder_.Input("w", F32({4, 6, kChannels}))),
          Pixels("x"));
  EXPECT_THAT(OpsWith({sum}), ElementsAre("reshape", "rearrange+add"));
}

// Products copy rows whose places need no divisions; what reads neighbours
// would divide for each.
TEST_F(Windows, OfProductsAndPoolsStay) {
  const ValueId w = builder_.Input("w", F32({4, kChannels, kKeys}));
  const ValueId v = builder_.Input("v", F32({4, 6, kChannels}));
  EXPECT_THAT(OpsWith({Product(builder_, InWindows(Pixels("x")), w),
                       Pool(OutOfWindows(v))}),
              ElementsAre("reshape", "permute_dims", "reshape", "matmul",
                          "reshape", "permute_dims", "reshape", "pool"));
}

TEST_F(Windows, ASliceOfPool) {
  const ValueId x = builder_.Input("x", F32({kHigh, kWide, 2 * kChannels}));
  const ValueId half =
      Must(builder_.Compute("strided_slice", {}, {x}, [&](const Tensors& in) {
        return te::Compute(
            "slice", {kHigh, kWide, kChannels}, [&](const te::Indices& i) {
              return te::Body(in[0]({i[0], i[1], i[2] + kChannels}));
            });
      }));
  EXPECT_THAT(OpsWith({Pool(half)}), ElementsAre("rearrange+pool"));
}

// Channels that become rows stay apart: neighbours would not be neighbours.
TEST_F(Windows, ColumnsStay) {
  EXPECT_THAT(OpsWith({Shares(Move(builder_, Pixels("x"), {0, 2, 1}))}),
              ElementsAre("permute_dims", "nn.softmax"));
}

// The chain reads through the second transposition, then the first one.
TEST_F(FuseMovement, MovementBehindMovement) {
  const ValueId x = builder_.Input("x", F32({1, kKeys, kHeads, kNumbers}));
  const ValueId once = Move(builder_, x, {0, 2, 1, 3});
  const ValueId twice = Move(builder_, once, {0, 1, 3, 2});
  const ValueId k = Reshape(builder_, twice, {kHeads, kNumbers, kKeys});
  EXPECT_THAT(
      OpsWith({Attention(builder_, Q(), k, V())}),
      ElementsAre(
          "rearrange+rearrange+rearrange+rearrange+matmul+nn.softmax+matmul"));
}

// The transposition between two attentions belongs to the first.
TEST_F(FuseMovement, ACallIsInOneGroup) {
  const ValueId y = Attention(builder_, Q(), K(), V());
  const ValueId q = Move(builder_, y, {0, 2, 1});
  const ValueId k = builder_.Input("k2", F32({kHeads, kQueries, kKeys}));
  const ValueId v = builder_.Input("v2", F32({kHeads, kKeys, kNumbers}));
  EXPECT_THAT(
      OpsWith({Attention(builder_, q, k, v)}),
      ElementsAre("rearrange+rearrange+rearrange+matmul+nn.softmax+matmul+"
                  "permute_dims",
                  "matmul+nn.softmax+matmul"));
}

}  // namespace
}  // namespace tilefarm::graph
