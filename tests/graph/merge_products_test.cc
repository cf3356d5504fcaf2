// Which products of the same data become one, and that nothing changes.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/movement.h"
#include "compiler/graph/passes.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::graph {
namespace {

using testing::ElementsAre;

constexpr int64_t kRows = 3, kTerms = 4;

class MergeProducts : public testing::Test {
 protected:
  // A constant unlike those before.
  ValueId Different(std::vector<int64_t> shape) {
    const TensorType type = F32(std::move(shape));
    std::vector<float> numbers = SmallNumbers(type.num_elements() + ++made_);
    numbers.erase(numbers.begin(), numbers.begin() + made_);
    return builder_.Constant("w", type, numbers);
  }
  // x * w + b; nullopt: without b. x has kTerms columns.
  ValueId Linear(ValueId x, int64_t columns,
                 std::optional<float> shift = 0.5F) {
    const ValueId y = Matmul(builder_, x, Different({kTerms, columns}));
    if (!shift) return y;
    std::vector<float> values;
    for (int64_t c = 0; c < columns; ++c) {
      values.push_back(*shift * static_cast<float>(c));
    }
    return Add(builder_, y, builder_.Constant("b", F32({columns}), values));
  }
  // [rows, 2 * n] -> [2, rows, n]
  ValueId InHeads(ValueId x, int64_t columns) {
    return Must(builder_.Compute(
        "permute_dims", {}, {Reshape(builder_, x, {kRows, 2, columns / 2})},
        [](const Tensors& in) {
          return te::Transpose(in[0], {1, 0, 2});
        }));
  }

  Graph Merged(const std::vector<ValueId>& outputs) {
    const Graph graph = Finish(builder_, outputs);
    Graph merged = Checked(graph::MergeProducts(graph));
    ExpectEqualResults(graph, merged, 1);
    ExpectEqualResults(graph, merged, 2);
    return merged;
  }

  GraphBuilder builder_{Interpreted};
  int made_ = 0;
  ValueId x_ = builder_.Input("x", F32({kRows, kTerms}));
};

TEST_F(MergeProducts, QueriesKeysAndValuesAreOneProduct) {
  const Graph merged =
      Merged({InHeads(Linear(x_, 6), 6), InHeads(Linear(x_, 6), 6),
              InHeads(Linear(x_, 6, 0.25F), 6)});
  EXPECT_THAT(Ops(merged), ElementsAre("matmul", "add", "rearrange", "reshape",
                                       "permute_dims", "rearrange", "reshape",
                                       "permute_dims", "rearrange", "reshape",
                                       "permute_dims"));
  EXPECT_THAT(merged.values[merged.calls[1].outputs[0]].type.shape,
              ElementsAre(kRows, 18));
  EXPECT_THAT(Ops(Checked(ComposeMovement(merged))),
              testing::IsSupersetOf({"matmul", "add", "rearrange"}));
}

// Fewer heads of keys and values than of queries; between them another reader.
TEST_F(MergeProducts, OfDifferentWidths) {
  const ValueId q = InHeads(Linear(x_, 8), 8);
  const ValueId other = Sigmoid(builder_, x_);
  const Graph merged =
      Merged({q, InHeads(Linear(x_, 2), 2), other, InHeads(Linear(x_, 4), 4)});
  EXPECT_THAT(Ops(merged), testing::Contains("matmul").Times(1));
  EXPECT_THAT(merged.values[merged.calls[0].outputs[0]].type.shape,
              ElementsAre(kRows, 14));
}

// PyTorch's linear layers have rows of weights.
TEST_F(MergeProducts, WeightsThatAreTransposed) {
  const auto dense = [&](int64_t columns) {
    return Must(builder_.Compute(
        "nn.dense", {}, {x_, Different({columns, kTerms})},
        [](const Tensors& in) {
          return te::Matmul(in[0], in[1], {.transpose_b = true});
        }));
  };
  const Graph merged = Merged({InHeads(dense(4), 4), InHeads(dense(6), 6)});
  EXPECT_THAT(Ops(merged), testing::Contains("nn.dense").Times(1));
}

TEST_F(MergeProducts, ResultsThatAreNotMovedStayApart) {
  const ValueId gate = Sigmoid(builder_, Linear(x_, 6));
  const ValueId up = Linear(x_, 6);
  EXPECT_THAT(Ops(Merged({Multiply(builder_, gate, up)})),
              testing::Contains("matmul").Times(2));
}

TEST_F(MergeProducts, ResultsThatOthersReadStayApart) {
  const ValueId a = Linear(x_, 6), b = Linear(x_, 6);
  EXPECT_THAT(Ops(Merged({InHeads(a, 6), InHeads(b, 6), b})),
              testing::Contains("matmul").Times(2));
}

TEST_F(MergeProducts, DifferentCallsBehindStayApart) {
  EXPECT_THAT(Ops(Merged({InHeads(Linear(x_, 6), 6),
                          InHeads(Linear(x_, 6, std::nullopt), 6)})),
              testing::Contains("matmul").Times(2));
}

TEST_F(MergeProducts, ProductsOfOtherDataStayApart) {
  const ValueId y = builder_.Input("y", F32({kRows, kTerms}));
  EXPECT_THAT(
      Ops(Merged({InHeads(Linear(x_, 6), 6), InHeads(Linear(y, 6), 6)})),
      testing::Contains("matmul").Times(2));
}

TEST_F(MergeProducts, WeightsThatAreInputsStayApart) {
  const auto product = [&](const char* name) {
    return InHeads(Matmul(builder_, x_, builder_.Input(name, F32({kTerms, 6}))),
                   6);
  };
  EXPECT_THAT(Ops(Merged({product("v"), product("w")})),
              testing::Contains("matmul").Times(2));
}

// Channels whose numbers are operands are no others' channels.
TEST_F(MergeProducts, WhatDependsOnTheNumberOfAChannelStaysApart) {
  const auto numbered = [&](ValueId y) {
    return Must(builder_.Compute("number", {}, {y}, [](const Tensors& in) {
      return te::Compute("number", in[0].shape(), [&](const te::Indices& i) {
        return te::Body(in[0](i) +
                        ir::MakeCast(ir::DataType::Float(32), i.back()));
      });
    }));
  };
  EXPECT_THAT(Ops(Merged({InHeads(numbered(Linear(x_, 6, std::nullopt)), 6),
                          InHeads(numbered(Linear(x_, 6, std::nullopt)), 6)})),
              testing::Contains("matmul").Times(2));
}

}  // namespace
}  // namespace tilefarm::graph
