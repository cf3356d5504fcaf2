#include "compiler/onnx/recurrent_layer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;

// Each step adds a handful of calls to the graph.
constexpr int64_t kMaxSteps = 4096;
constexpr int64_t kMaxExtent = int64_t{1} << 30;
// Parameters of one program that joins the outputs of steps: device drivers
// limit the arguments of a kernel, some to 4 KiB.
constexpr size_t kMaxJoined = 32;

absl::Status CheckInput(Node& node, int i, const std::vector<int64_t>& shape,
                        DataType dtype) {
  if (!node.HasInput(i)) return absl::OkStatus();
  const TensorType& type = node.Type(i);
  if (type.shape == shape && type.dtype == dtype) return node.status();
  return node.Invalid("input ", i, " is ", type.ToString(), ", not ",
                      TensorType{dtype, shape}.ToString());
}

}  // namespace

Expr RecurrentLayer::Clip(const Expr& x) const {
  if (!clip.has_value()) return x;
  return ir::MakeBinary(
      BinaryOp::kMin,
      ir::MakeBinary(BinaryOp::kMax, x, ir::FloatConst(-*clip, x->dtype)),
      ir::FloatConst(*clip, x->dtype));
}

absl::StatusOr<RecurrentLayer> ReadRecurrentLayer(Node& node, int64_t gates) {
  RecurrentLayer layer;
  const std::vector<int64_t> x = node.Shape(0), w = node.Shape(1),
                             r = node.Shape(2);
  layer.dtype = node.Dtype(0);
  const std::string direction = node.String("direction", "forward");
  const int64_t layout = node.Int("layout", 0);
  TF_RETURN_IF_ERROR(node.status());
  if (direction != "forward" && direction != "reverse" &&
      direction != "bidirectional") {
    return node.Invalid("attribute direction=", direction);
  }
  if (layout != 0 && layout != 1) {
    return node.Invalid("attribute layout=", layout);
  }
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) {
    return node.Invalid("inputs 0 to 2 must have three dimensions");
  }
  if (!layer.dtype.is_float()) {
    return node.Invalid("input 0 is ", layer.dtype.ToString());
  }
  layer.type = te::AccumulatorOf(layer.dtype);
  layer.batch_first = layout == 1;
  layer.steps = x[layout == 1 ? 1 : 0];
  layer.batch = x[layout == 1 ? 0 : 1];
  layer.inputs = x[2];
  layer.hidden = r[2];
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.first_is_reverse = direction == "reverse";
  if (layer.steps > kMaxSteps) {
    return node.Unsupported(layer.steps, " steps; the limit is ", kMaxSteps);
  }
  if (layer.hidden > kMaxExtent ||
      node.Int("hidden_size", layer.hidden) != layer.hidden) {
    return node.Invalid("attribute hidden_size differs from input 2 [",
                        absl::StrJoin(r, ", "), "]");
  }
  const int64_t d = layer.directions, h = layer.hidden;
  const std::vector<int64_t> state =
      layer.batch_first ? std::vector<int64_t>{layer.batch, d, h}
                        : std::vector<int64_t>{d, layer.batch, h};
  TF_RETURN_IF_ERROR(
      CheckInput(node, 1, {d, gates * h, layer.inputs}, layer.dtype));
  TF_RETURN_IF_ERROR(CheckInput(node, 2, {d, gates * h, h}, layer.dtype));
  TF_RETURN_IF_ERROR(CheckInput(node, 3, {d, 2 * gates * h}, layer.dtype));
  TF_RETURN_IF_ERROR(CheckInput(node, 4, {layer.batch}, DataType::Int(32)));
  TF_RETURN_IF_ERROR(CheckInput(node, 5, state, layer.dtype));
  if (node.HasAttr("clip")) {
    layer.clip = node.Float("clip", 0);
    if (!(*layer.clip >= 0))
      return node.Invalid("attribute clip=", *layer.clip);
  }
  return layer;
}

absl::StatusOr<ValueId> SliceOfDirection(Node& node, int i, int direction,
                                         int64_t begin, int64_t count) {
  std::vector<int64_t> shape(node.Shape(i).begin() + 1, node.Shape(i).end());
  shape[0] = count;
  return node.builder().Compute(
      "strided_slice",
      {{"axes", ir::AttrList{0, 1}},
       {"begin", ir::AttrList{direction, begin}},
       {"end", ir::AttrList{direction + 1, begin + count}}},
      {node.Input(i)}, [&](const graph::Tensors& x) {
        return te::Compute("T_slice", shape, [&](const te::Indices& at) {
          te::Indices from{IntConst(direction), at[0] + begin};
          from.insert(from.end(), at.begin() + 1, at.end());
          return te::Body(x[0](from));
        });
      });
}

absl::StatusOr<ValueId> TimesTransposed(Node& node, ValueId x, ValueId weight,
                                        DataType type) {
  return node.builder().Compute(
      "matmul", {{"transpose_b", true}, {"out_dtype", type.ToString()}},
      {x, weight}, [&](const graph::Tensors& in) {
        std::vector<int64_t> shape = in[0].shape();
        shape.back() = in[1].dim(0);
        const int64_t inner = in[1].dim(1);
        if (inner == 0) return te::Zeros(shape, type);
        const te::ReduceAxis k("k", inner);
        return te::Compute("T_matmul", shape, [&](const te::Indices& i) {
          te::Indices left = i;
          left.back() = k;
          return te::Sum(
              ir::MakeBinary(BinaryOp::kMul, ir::MakeCast(type, in[0](left)),
                             ir::MakeCast(type, in[1]({i.back(), k}))),
              {k});
        });
      });
}

namespace {

// The lengths of the sequences of a batch, within [0, steps].
Expr LengthOf(const te::Tensor& lengths, const Expr& batch, int64_t steps) {
  return ir::Max(IntConst(0),
                 ir::Min(ir::MakeCast(DataType::Index(), lengths({batch})),
                         IntConst(steps)));
}

// The input of a layer that gives each sequence's length; -1 if all sequences
// have all steps.
absl::StatusOr<ValueId> Lengths(Node& node, const RecurrentLayer& layer) {
  if (!node.HasInput(4)) return -1;
  if (!node.IsConstant(4)) return node.Input(4);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, node.ConstInts(4));
  const bool all =
      std::all_of(lengths.begin(), lengths.end(),
                  [&](int64_t length) { return length >= layer.steps; });
  return all ? -1 : node.Input(4);
}

// x W^T and the biases for all steps: [steps, batch, gates * hidden], or batch
// first.
absl::StatusOr<ValueId> InputGates(Node& node, const RecurrentLayer& layer,
                                   int direction, int64_t gates,
                                   int64_t biased) {
  const int64_t rows = gates * layer.hidden;
  TF_ASSIGN_OR_RETURN(const ValueId weight,
                      SliceOfDirection(node, 1, direction, 0, rows));
  TF_ASSIGN_OR_RETURN(const ValueId product,
                      TimesTransposed(node, node.Input(0), weight, layer.type));
  if (!node.HasInput(3)) return product;
  TF_ASSIGN_OR_RETURN(const ValueId bias,
                      SliceOfDirection(node, 3, direction, 0, 2 * rows));
  return node.builder().Compute(
      "add", {}, {product, bias}, [&](const graph::Tensors& x) {
        return te::Compute("T_add", x[0].shape(), [&](const te::Indices& i) {
          const auto bias_at = [&](const Expr& index) {
            return ir::MakeCast(layer.type, x[1]({index}));
          };
          Expr sum = bias_at(i[2]);
          const Expr recurrent = bias_at(i[2] + rows);
          const Expr both = ir::MakeBinary(BinaryOp::kAdd, sum, recurrent);
          const bool all = biased == gates;
          sum = all ? both
                    : ir::MakeSelect(
                          ir::LT(i[2], IntConst(biased * layer.hidden)), both,
                          sum);
          return te::Body(ir::MakeBinary(BinaryOp::kAdd, x[0](i), sum));
        });
      });
}

// Reverses each sequence of [steps, batch, ...] (or batch first) within its
// length.
absl::StatusOr<ValueId> ReverseWithinLengths(Node& node,
                                             const RecurrentLayer& layer,
                                             ValueId values, ValueId lengths,
                                             bool batch_first) {
  const int64_t steps = layer.steps;
  return node.builder().Compute(
      "reverse_sequence",
      {{"seq_axis", batch_first ? 1 : 0}, {"batch_axis", batch_first ? 0 : 1}},
      {values, lengths}, [&](const graph::Tensors& x) {
        return te::Compute(
            "T_reverse", x[0].shape(), [&](const te::Indices& i) {
              const int seq = batch_first ? 1 : 0;
              const Expr length = LengthOf(x[1], i[1 - seq], steps);
              te::Indices from = i;
              from[seq] = ir::MakeSelect(
                  ir::LT(i[seq], length),
                  ir::Max(IntConst(0), length - i[seq] - 1), i[seq]);
              from[seq] = ir::Min(from[seq], IntConst(steps - 1));
              return te::Body(x[0](from));
            });
      });
}

// Input `i` [directions, batch, hidden] (or batch first) at one direction, or
// zeros if it is absent.
absl::StatusOr<ValueId> InitialState(Node& node, const RecurrentLayer& layer,
                                     int i, int direction) {
  const std::vector<int64_t> shape{layer.batch, layer.hidden};
  if (!node.HasInput(i)) {
    return node.builder().Compute("zeros", {}, {}, [&](const graph::Tensors&) {
      return te::Zeros(shape, layer.dtype);
    });
  }
  const int64_t axis = layer.batch_first ? 1 : 0;
  return node.builder().Compute(
      "strided_slice",
      {{"axes", ir::AttrList{axis}},
       {"begin", ir::AttrList{direction}},
       {"end", ir::AttrList{direction + 1}}},
      {node.Input(i)}, [&](const graph::Tensors& x) {
        return te::Compute("T_slice", shape, [&](const te::Indices& at) {
          return te::Body(layer.batch_first
                              ? x[0]({at[0], IntConst(direction), at[1]})
                              : x[0]({IntConst(direction), at[0], at[1]}));
        });
      });
}

// The gates of step `t`: [batch, gates * hidden].
absl::StatusOr<ValueId> GatesOfStep(Node& node, const RecurrentLayer& layer,
                                    ValueId gates, int64_t t) {
  const int64_t axis = layer.batch_first ? 1 : 0;
  return node.builder().Compute(
      "strided_slice",
      {{"axes", ir::AttrList{axis}},
       {"begin", ir::AttrList{t}},
       {"end", ir::AttrList{t + 1}}},
      {gates}, [&](const graph::Tensors& x) {
        return te::Compute(
            "T_slice", {layer.batch, x[0].dim(2)}, [&](const te::Indices& i) {
              return te::Body(layer.batch_first
                                  ? x[0]({i[0], IntConst(t), i[1]})
                                  : x[0]({IntConst(t), i[0], i[1]}));
            });
      });
}

// `after` for the sequences that have step `t`, `before` for the others. The
// step is an input, so that all steps have one program.
absl::StatusOr<ValueId> IfWithinLength(Node& node, const RecurrentLayer& layer,
                                       ValueId after, ValueId before,
                                       ValueId lengths, int64_t t) {
  const ValueId step = node.builder().Int64s("step", {t});
  return node.builder().Compute(
      "where", {}, {after, before, lengths, step},
      [&](const graph::Tensors& x) {
        return te::Compute("T_where", x[0].shape(), [&](const te::Indices& i) {
          const Expr length = LengthOf(x[2], i[0], layer.steps);
          return te::Body(ir::MakeSelect(ir::LT(x[3]({IntConst(0)}), length),
                                         x[0](i), x[1](i)));
        });
      });
}

// A part of [steps, batch, hidden]; of rank two if it is a single step.
struct Part {
  ValueId value;
  int64_t steps;
};

// The element of `parts`, which begin at `begins`, at step `i[0]`, found by
// bisection of the parts [first, last).
Expr Pick(const graph::Tensors& parts, const std::vector<int64_t>& begins,
          const te::Indices& i, size_t first, size_t last) {
  if (last - first > 1) {
    const size_t middle = (first + last) / 2;
    return ir::IfThenElseExpr(ir::LT(i[0], IntConst(begins[middle])),
                              Pick(parts, begins, i, first, middle),
                              Pick(parts, begins, i, middle, last));
  }
  const te::Tensor& part = parts[first];
  if (part.ndim() == 2) return part({i[1], i[2]});
  const Expr step = ir::Max(
      IntConst(0), ir::Min(i[0] - begins[first], IntConst(part.dim(0) - 1)));
  return part({step, i[1], i[2]});
}

// Joins the outputs of all steps, in groups of kMaxJoined.
absl::StatusOr<ValueId> JoinSteps(Node& node, const RecurrentLayer& layer,
                                  const std::vector<ValueId>& values) {
  std::vector<Part> parts;
  for (const ValueId value : values) parts.push_back({value, 1});
  std::string op = "stack";
  do {
    std::vector<Part> joined;
    for (size_t first = 0; first < parts.size(); first += kMaxJoined) {
      const size_t last = std::min(parts.size(), first + kMaxJoined);
      std::vector<ValueId> inputs;
      std::vector<int64_t> begins;
      int64_t steps = 0;
      for (size_t i = first; i < last; ++i) {
        // A value may be the output of several steps, and is a parameter for
        // each.
        inputs.push_back(parts[i].value);
        begins.push_back(steps);
        steps += parts[i].steps;
      }
      TF_ASSIGN_OR_RETURN(
          const ValueId value,
          node.builder().Compute(
              op, {{"axis", 0}}, inputs, [&](const graph::Tensors& x) {
                return te::Compute(
                    "T_" + op, {steps, layer.batch, layer.hidden},
                    [&](const te::Indices& i) {
                      return te::Body(Pick(x, begins, i, 0, x.size()));
                    });
              }));
      joined.push_back({value, steps});
    }
    parts = std::move(joined);
    op = "concat";
  } while (parts.size() > 1);
  return parts[0].value;
}

// Y from the outputs of the directions, each [steps, batch, hidden]. Steps
// behind the end of a sequence are zero.
absl::StatusOr<ValueId> JoinOutputs(Node& node, const RecurrentLayer& layer,
                                    std::vector<ValueId> directions,
                                    ValueId lengths) {
  const int64_t count = layer.directions;
  const std::vector<int64_t> shape =
      layer.batch_first
          ? std::vector<int64_t>{layer.batch, layer.steps, count, layer.hidden}
          : std::vector<int64_t>{layer.steps, count, layer.batch, layer.hidden};
  if (lengths >= 0) directions.push_back(lengths);
  return node.builder().Compute(
      "stack", {{"axis", layer.batch_first ? 2 : 1}}, directions,
      [&](const graph::Tensors& x) {
        return te::Compute("T_stack", shape, [&](const te::Indices& i) {
          const Expr step = i[layer.batch_first ? 1 : 0];
          const Expr batch = i[layer.batch_first ? 0 : 2];
          const Expr direction = i[layer.batch_first ? 2 : 1];
          Expr value = x[0]({step, batch, i[3]});
          if (count == 2) {
            value = ir::IfThenElseExpr(ir::EQ(direction, IntConst(0)), value,
                                       x[1]({step, batch, i[3]}));
          }
          if (lengths < 0) return te::Body(value);
          const Expr length = LengthOf(x[count], batch, layer.steps);
          return te::Body(ir::MakeSelect(ir::LT(step, length), value,
                                         ir::ConstOf(layer.dtype, 0)));
        });
      });
}

// [directions, batch, hidden], or batch first, from one state per direction.
absl::StatusOr<ValueId> JoinStates(Node& node, const RecurrentLayer& layer,
                                   const std::vector<ValueId>& states) {
  const int64_t count = layer.directions;
  const std::vector<int64_t> shape =
      layer.batch_first
          ? std::vector<int64_t>{layer.batch, count, layer.hidden}
          : std::vector<int64_t>{count, layer.batch, layer.hidden};
  const int axis = layer.batch_first ? 1 : 0;
  return node.builder().Compute(
      "stack", {{"axis", axis}}, states, [&](const graph::Tensors& x) {
        return te::Compute("T_stack", shape, [&](const te::Indices& i) {
          Expr value = x[0]({i[1 - axis], i[2]});
          if (count == 2) {
            value = ir::IfThenElseExpr(ir::EQ(i[axis], IntConst(0)), value,
                                       x[1]({i[1 - axis], i[2]}));
          }
          return te::Body(value);
        });
      });
}

}  // namespace

Outputs RunRecurrentLayer(
    Node& node, const RecurrentLayer& layer, int64_t gates, int64_t biased,
    const std::vector<int>& state_inputs,
    const std::function<absl::StatusOr<RecurrentStep>(int direction)>&
        step_of) {
  TF_ASSIGN_OR_RETURN(const ValueId lengths, Lengths(node, layer));
  std::vector<ValueId> outputs;  // per direction
  std::vector<std::vector<ValueId>> last(state_inputs.size());
  for (int direction = 0; direction < layer.directions; ++direction) {
    const bool reverse = layer.is_reverse(direction);
    TF_ASSIGN_OR_RETURN(const RecurrentStep step, step_of(direction));
    std::vector<ValueId> states;
    for (const int i : state_inputs) {
      TF_ASSIGN_OR_RETURN(const ValueId state,
                          InitialState(node, layer, i, direction));
      states.push_back(state);
    }
    std::vector<ValueId> of_steps(static_cast<size_t>(layer.steps));
    ValueId input = -1;
    if (layer.steps > 0) {
      TF_ASSIGN_OR_RETURN(input,
                          InputGates(node, layer, direction, gates, biased));
    }
    // With lengths of their own, sequences end at different steps: they are
    // reversed before and after, and the loop runs forward.
    const bool reverses_data = reverse && lengths >= 0 && layer.steps > 0;
    if (reverses_data) {
      TF_ASSIGN_OR_RETURN(
          input,
          ReverseWithinLengths(node, layer, input, lengths, layer.batch_first));
    }
    for (int64_t s = 0; s < layer.steps; ++s) {
      const int64_t t = reverse && !reverses_data ? layer.steps - 1 - s : s;
      TF_ASSIGN_OR_RETURN(const ValueId gates_of_step,
                          GatesOfStep(node, layer, input, t));
      TF_ASSIGN_OR_RETURN(std::vector<ValueId> next,
                          step(gates_of_step, states));
      for (size_t i = 0; lengths >= 0 && i < next.size(); ++i) {
        TF_ASSIGN_OR_RETURN(next[i], IfWithinLength(node, layer, next[i],
                                                    states[i], lengths, t));
      }
      states = std::move(next);
      of_steps[static_cast<size_t>(t)] = states[0];
    }
    for (size_t i = 0; i < states.size(); ++i) last[i].push_back(states[i]);
    if (!node.WantsOutput(0) || layer.steps == 0) continue;
    TF_ASSIGN_OR_RETURN(ValueId output, JoinSteps(node, layer, of_steps));
    if (reverses_data) {
      TF_ASSIGN_OR_RETURN(
          output, ReverseWithinLengths(node, layer, output, lengths, false));
    }
    outputs.push_back(output);
  }
  std::vector<Imported> results(1);
  if (node.WantsOutput(0) && layer.steps > 0) {
    TF_ASSIGN_OR_RETURN(results[0], JoinOutputs(node, layer, outputs, lengths));
  } else if (node.WantsOutput(0)) {
    const std::vector<int64_t> shape =
        layer.batch_first ? std::vector<int64_t>{layer.batch, 0,
                                                 layer.directions, layer.hidden}
                          : std::vector<int64_t>{0, layer.directions,
                                                 layer.batch, layer.hidden};
    results[0] =
        node.builder().Constant("Y", {layer.dtype, shape}, graph::TensorData());
  }
  for (size_t i = 0; i < last.size(); ++i) {
    results.emplace_back();
    if (!node.WantsOutput(static_cast<int>(i) + 1)) continue;
    TF_ASSIGN_OR_RETURN(results.back(), JoinStates(node, layer, last[i]));
  }
  return results;
}

}  // namespace tilefarm::onnx
