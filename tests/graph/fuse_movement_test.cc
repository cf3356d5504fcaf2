// What moves operands and results of attention becomes part of it.
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

TEST_F(FuseMovement, WhatOthersReadStays) {
  const ValueId q = Q(), k = K(), v = V();
  const ValueId y = Attention(builder_, q, k, v);
  const ValueId moved = Move(builder_, y, {1, 0, 2});
  EXPECT_THAT(OpsWith({moved, q, Relu(builder_, v), y}),
              ElementsAre("permute_dims", "permute_dims",
                          "rearrange+matmul+nn.softmax+matmul", "permute_dims",
                          "nn.relu"));
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

TEST_F(FuseMovement, OneProductStaysAlone) {
  EXPECT_THAT(OpsWith({Product(builder_, Q(), K())}),
              ElementsAre("permute_dims", "permute_dims", "matmul"));
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
