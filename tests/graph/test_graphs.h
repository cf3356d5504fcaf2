// Small graphs for tests, their inputs, and their results by the interpreter.
#ifndef TILEFARM_TESTS_GRAPH_TEST_GRAPHS_H_
#define TILEFARM_TESTS_GRAPH_TEST_GRAPHS_H_

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/run_graph.h"
#include "compiler/te/convolution.h"
#include "compiler/te/operators.h"
#include "gtest/gtest.h"
#include "tests/graph/random_inputs.h"

namespace tilefarm::graph {

inline ValueId Must(absl::StatusOr<ValueId> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return value.value();
}

// The graph with these outputs: y0, y1, ...
inline Graph Finish(GraphBuilder& builder,
                    const std::vector<ValueId>& outputs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    names.push_back(absl::StrCat("y", i));
  }
  auto graph = builder.Finish(outputs, names);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// The graph, which must be valid.
inline Graph Checked(absl::StatusOr<Graph> graph) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  return *std::move(graph);
}

// One call of a unary or binary operator, with the operator's tag.
inline ValueId Unary(GraphBuilder& builder, const std::string& op, ValueId x,
                     te::Tensor (*define)(const te::Tensor&, std::string)) {
  return Must(builder.Compute(op, {}, {x}, [&](const Tensors& in) {
    return define(in[0], "T_unary");
  }));
}
inline ValueId Relu(GraphBuilder& builder, ValueId x) {
  return Unary(builder, "nn.relu", x, te::Relu);
}
inline ValueId Sigmoid(GraphBuilder& builder, ValueId x) {
  return Unary(builder, "sigmoid", x, te::Sigmoid);
}
inline ValueId Add(GraphBuilder& builder, ValueId a, ValueId b) {
  return Must(builder.Compute("add", {}, {a, b}, [](const Tensors& in) {
    return te::Add(in[0], in[1]);
  }));
}
inline ValueId Multiply(GraphBuilder& builder, ValueId a, ValueId b) {
  return Must(builder.Compute("multiply", {}, {a, b}, [](const Tensors& in) {
    return te::Multiply(in[0], in[1]);
  }));
}
inline ValueId Matmul(GraphBuilder& builder, ValueId a, ValueId b) {
  return Must(builder.Compute("matmul", {}, {a, b}, [](const Tensors& in) {
    return te::Matmul(in[0], in[1]);
  }));
}
inline ValueId Transpose(GraphBuilder& builder, ValueId x) {
  return Must(builder.Compute("transpose", {}, {x}, [](const Tensors& in) {
    return te::Transpose(in[0], {1, 0});
  }));
}

// Small numbers of both signs.
inline std::vector<float> SmallNumbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  }
  return values;
}
inline ValueId Weights(GraphBuilder& builder, std::vector<int64_t> shape) {
  const TensorType type = F32(std::move(shape));
  return builder.Constant("w", type, SmallNumbers(type.num_elements()));
}
inline ValueId Conv(GraphBuilder& builder, ValueId x, ValueId w,
                    te::ConvOptions options = {.padding = {1, 1}}) {
  return Must(builder.Compute("nn.conv2d", {}, {x, w}, [&](const Tensors& in) {
    return te::Conv2dNchw(in[0], in[1], options);
  }));
}

// float32, and a constant of it.
inline const ir::DataType kFloat = ir::DataType::Float(32);
inline ir::Expr Number(double value) { return ir::FloatConst(value, kFloat); }

// Along the axis, as the importer writes it.
inline ValueId Concat(GraphBuilder& builder, const std::vector<ValueId>& parts,
                      size_t axis) {
  std::vector<int64_t> shape = builder.shape(parts[0]);
  std::vector<int64_t> starts;
  shape[axis] = 0;
  for (const ValueId part : parts) {
    starts.push_back(shape[axis]);
    shape[axis] += builder.shape(part)[axis];
  }
  return Must(builder.Compute("concat", {}, parts, [&](const Tensors& in) {
    return te::Compute("T_concat", shape, [&](const te::Indices& i) {
      ir::Expr element;
      for (size_t k = in.size(); k-- > 0;) {
        te::Indices at = i;
        at[axis] = i[axis] - starts[k];
        ir::Expr own = in[k](at);
        element = element == nullptr
                      ? own
                      : ir::IfThenElseExpr(
                            ir::LT(i[axis], ir::IntConst(starts[k + 1])), own,
                            element);
      }
      return te::Body(element);
    });
  }));
}

// From one shape to another with as many elements.
inline ValueId Reshape(GraphBuilder& builder, ValueId x,
                       std::vector<int64_t> shape) {
  return Must(builder.Compute("reshape", {}, {x}, [&](const Tensors& in) {
    return te::Compute("T_reshape", shape, [&](const te::Indices& i) {
      ir::Expr position = ir::IntConst(0);
      for (size_t d = 0; d < shape.size(); ++d) {
        position = position * shape[d] + i[d];
      }
      te::Indices at(in[0].shape().size());
      for (size_t d = at.size(); d-- > 0;) {
        const ir::Expr extent = ir::IntConst(in[0].shape()[d]);
        at[d] = ir::FloorMod(position, extent);
        position = ir::FloorDiv(position, extent);
      }
      return in[0](at);
    });
  }));
}

// The outputs of both graphs for the same random inputs are equal bit by bit.
inline void ExpectEqualResults(const Graph& a, const Graph& b, uint64_t seed) {
  Rng rng(seed);
  const std::vector<TensorData> inputs = RandomInputs(a, rng);
  const auto expected = RunGraph(a, inputs, Interpreted);
  const auto actual = RunGraph(b, inputs, Interpreted);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(expected->size(), actual->size());
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Elements<std::byte>((*expected)[i]),
              Elements<std::byte>((*actual)[i]))
        << "output " << i << ", seed " << seed;
  }
}

// The same for float32, but for the order in which sums are added.
inline void ExpectCloseResults(const Graph& a, const Graph& b, uint64_t seed) {
  Rng rng(seed);
  const std::vector<TensorData> inputs = RandomInputs(a, rng);
  const auto expected = RunGraph(a, inputs, Interpreted);
  const auto actual = RunGraph(b, inputs, Interpreted);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ(expected->size(), actual->size());
  for (size_t i = 0; i < expected->size(); ++i) {
    const auto exact = Elements<float>((*expected)[i]);
    const auto other = Elements<float>((*actual)[i]);
    ASSERT_EQ(exact.size(), other.size());
    for (size_t k = 0; k < exact.size(); ++k) {
      ASSERT_NEAR(exact[k], other[k], 1e-5 * (1 + std::abs(exact[k])))
          << "output " << i << ", element " << k << ", seed " << seed;
    }
  }
}

inline std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Call& call : graph.calls) ops.push_back(call.op);
  return ops;
}

}  // namespace tilefarm::graph

#endif  // TILEFARM_TESTS_GRAPH_TEST_GRAPHS_H_
