// Recurrent layers: RNN, GRU and LSTM.
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/recurrent_activation.h"
#include "compiler/onnx/recurrent_layer.h"
#include "compiler/te/accumulate.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;

Expr OneMinus(const Expr& a) {
  return ir::MakeBinary(BinaryOp::kSub, ir::ConstOf(a->dtype, 1), a);
}

// Element `i` of gate `gate` of [batch, gates * hidden].
Expr GateOf(const te::Tensor& gates, const te::Indices& i, int64_t gate,
            int64_t hidden) {
  return gates({i[0], i[1] + gate * hidden});
}

// h' = f(x W^T + h R^T + biases)
Outputs ConvertRnn(Node& node) {
  TF_ASSIGN_OR_RETURN(const RecurrentLayer layer, ReadRecurrentLayer(node, 1));
  TF_ASSIGN_OR_RETURN(const std::vector<RecurrentActivation> activations,
                      ReadActivations(node, {"Tanh"}, layer.directions));
  const auto step_of = [&](int direction) -> absl::StatusOr<RecurrentStep> {
    TF_ASSIGN_OR_RETURN(const ValueId weight,
                        SliceOfDirection(node, 2, direction, 0, layer.hidden));
    const RecurrentActivation f = activations[direction];
    return [&node, &layer, weight, f](ValueId gates,
                                      const std::vector<ValueId>& states)
               -> absl::StatusOr<std::vector<ValueId>> {
      TF_ASSIGN_OR_RETURN(const ValueId recurrent,
                          TimesTransposed(node, states[0], weight, layer.type));
      return node.builder().ComputeAll(
          "nn.rnn_cell", {}, {gates, recurrent}, [&](const graph::Tensors& x) {
            return graph::Tensors{
                te::Compute("T_hidden", x[0].shape(), [&](const auto& i) {
                  return te::Body(ir::MakeCast(
                      layer.dtype, f(layer.Clip(Plus(x[0](i), x[1](i))))));
                })};
          });
    };
  };
  return RunRecurrentLayer(node, layer, 1, 1, {5}, step_of);
}

// The step of a GRU that multiplies the reset gate with the recurrent product:
//   h~ = g(x Wh^T + r (h Rh^T + Rbh) + Wbh)
absl::StatusOr<std::vector<ValueId>> GruStepAfterProduct(
    Node& node, const RecurrentLayer& layer, ValueId weight, ValueId bias,
    const RecurrentActivation& f, const RecurrentActivation& g, ValueId gates,
    ValueId state) {
  TF_ASSIGN_OR_RETURN(const ValueId recurrent,
                      TimesTransposed(node, state, weight, layer.type));
  std::vector<ValueId> inputs{gates, recurrent, state};
  if (bias >= 0) inputs.push_back(bias);
  return node.builder().ComputeAll(
      "nn.gru_cell", {{"linear_before_reset", true}}, inputs,
      [&](const graph::Tensors& x) {
        const int64_t hidden = layer.hidden;
        return graph::Tensors{te::Compute(
            "T_hidden", {layer.batch, hidden}, [&](const te::Indices& i) {
              const auto gate = [&](int64_t which) {
                return f(layer.Clip(Plus(GateOf(x[0], i, which, hidden),
                                         GateOf(x[1], i, which, hidden))));
              };
              const Expr update = gate(0), reset = gate(1);
              Expr product = GateOf(x[1], i, 2, hidden);
              if (bias >= 0) {
                product = Plus(product, ir::MakeCast(layer.type, x[3]({i[1]})));
              }
              const Expr candidate = g(layer.Clip(
                  Plus(GateOf(x[0], i, 2, hidden), Times(reset, product))));
              const Expr old = ir::MakeCast(layer.type, x[2](i));
              return te::Body(ir::MakeCast(
                  layer.dtype, Plus(Times(OneMinus(update), candidate),
                                    Times(update, old))));
            })};
      });
}

// The step of a GRU that multiplies the reset gate with the state:
//   h~ = g(x Wh^T + (r h) Rh^T + Rbh + Wbh)
// `weights`: those of the update and reset gates, and those of the candidate.
absl::StatusOr<std::vector<ValueId>> GruStepBeforeProduct(
    Node& node, const RecurrentLayer& layer,
    std::pair<ValueId, ValueId> weights, const RecurrentActivation& f,
    const RecurrentActivation& g, ValueId gates, ValueId state) {
  const int64_t hidden = layer.hidden;
  const auto gate = [&](const graph::Tensors& x, const te::Indices& i,
                        int64_t which) {
    return f(layer.Clip(
        Plus(GateOf(x[0], i, which, hidden), GateOf(x[1], i, which, hidden))));
  };
  TF_ASSIGN_OR_RETURN(const ValueId recurrent,
                      TimesTransposed(node, state, weights.first, layer.type));
  TF_ASSIGN_OR_RETURN(
      const ValueId reset,
      node.builder().Compute(
          "nn.gru_reset", {}, {gates, recurrent, state},
          [&](const graph::Tensors& x) {
            return te::Compute(
                "T_reset", {layer.batch, hidden}, [&](const te::Indices& i) {
                  return te::Body(ir::MakeCast(
                      layer.dtype,
                      Times(gate(x, i, 1), ir::MakeCast(layer.type, x[2](i)))));
                });
          }));
  TF_ASSIGN_OR_RETURN(const ValueId product,
                      TimesTransposed(node, reset, weights.second, layer.type));
  return node.builder().ComputeAll(
      "nn.gru_cell", {{"linear_before_reset", false}},
      {gates, recurrent, state, product}, [&](const graph::Tensors& x) {
        return graph::Tensors{te::Compute(
            "T_hidden", {layer.batch, hidden}, [&](const te::Indices& i) {
              const Expr update = gate(x, i, 0);
              const Expr candidate =
                  g(layer.Clip(Plus(GateOf(x[0], i, 2, hidden), x[3](i))));
              const Expr old = ir::MakeCast(layer.type, x[2](i));
              return te::Body(ir::MakeCast(
                  layer.dtype, Plus(Times(OneMinus(update), candidate),
                                    Times(update, old))));
            })};
      });
}

// z, r = f(x W^T + h R^T + biases), h' = (1 - z) h~ + z h
Outputs ConvertGru(Node& node) {
  TF_ASSIGN_OR_RETURN(const RecurrentLayer layer, ReadRecurrentLayer(node, 3));
  TF_ASSIGN_OR_RETURN(
      const std::vector<RecurrentActivation> activations,
      ReadActivations(node, {"Sigmoid", "Tanh"}, layer.directions));
  const bool after_product = node.Int("linear_before_reset", 0) != 0;
  TF_RETURN_IF_ERROR(node.status());
  const int64_t hidden = layer.hidden;
  const auto step_of = [&](int direction) -> absl::StatusOr<RecurrentStep> {
    const RecurrentActivation f = activations[2 * direction];
    const RecurrentActivation g = activations[2 * direction + 1];
    if (after_product) {
      TF_ASSIGN_OR_RETURN(const ValueId weight,
                          SliceOfDirection(node, 2, direction, 0, 3 * hidden));
      ValueId bias = -1;
      if (node.HasInput(3)) {
        TF_ASSIGN_OR_RETURN(
            bias, SliceOfDirection(node, 3, direction, 5 * hidden, hidden));
      }
      return [=, &node, &layer](ValueId gates,
                                const std::vector<ValueId>& states) {
        return GruStepAfterProduct(node, layer, weight, bias, f, g, gates,
                                   states[0]);
      };
    }
    TF_ASSIGN_OR_RETURN(const ValueId of_gates,
                        SliceOfDirection(node, 2, direction, 0, 2 * hidden));
    TF_ASSIGN_OR_RETURN(
        const ValueId of_candidate,
        SliceOfDirection(node, 2, direction, 2 * hidden, hidden));
    return
        [=, &node, &layer](ValueId gates, const std::vector<ValueId>& states) {
          return GruStepBeforeProduct(node, layer, {of_gates, of_candidate}, f,
                                      g, gates, states[0]);
        };
  };
  return RunRecurrentLayer(node, layer, 3, after_product ? 2 : 3, {5}, step_of);
}

// One step of an LSTM; the gates are in the order i, o, f, c.
//   i, f = act(x W^T + h R^T + biases + P c)
//   c' = f c + i g(x Wc^T + h Rc^T + biases)
//   o = act(x Wo^T + h Ro^T + biases + Po c'), h' = o act(c')
struct LstmStep {
  Node& node;
  const RecurrentLayer& layer;
  ValueId weight = -1;
  ValueId peepholes = -1;  // [3 * hidden] in the order i, o, f; -1: none
  bool couples = false;    // f = 1 - i
  RecurrentActivation f, g, h;

  absl::StatusOr<std::vector<ValueId>> operator()(
      ValueId gates, const std::vector<ValueId>& states) const {
    TF_ASSIGN_OR_RETURN(const ValueId recurrent,
                        TimesTransposed(node, states[0], weight, layer.type));
    std::vector<ValueId> inputs{gates, recurrent, states[1]};
    if (peepholes >= 0) inputs.push_back(peepholes);
    return node.builder().ComputeAll(
        "nn.lstm_cell", {}, inputs,
        [&](const graph::Tensors& x) { return Cell(x); });
  }

  graph::Tensors Cell(const graph::Tensors& x) const {
    const std::vector<int64_t> shape{layer.batch, layer.hidden};
    // The sum of a gate, with what it sees of the cell through its peephole.
    const auto sum = [&](const te::Indices& i, int64_t gate, const Expr& seen) {
      Expr total = Plus(GateOf(x[0], i, gate, layer.hidden),
                        GateOf(x[1], i, gate, layer.hidden));
      if (peepholes >= 0 && seen != nullptr) {
        const Expr peephole = x[3]({i[1] + gate * layer.hidden});
        total = Plus(total, Times(ir::MakeCast(layer.type, peephole), seen));
      }
      return layer.Clip(total);
    };
    const te::Tensor cell =
        te::Compute("T_cell", shape, [&](const te::Indices& i) {
          const Expr old = ir::MakeCast(layer.type, x[2](i));
          const Expr input = f(sum(i, 0, old));
          const Expr forget = couples ? OneMinus(input) : f(sum(i, 2, old));
          const Expr candidate = g(sum(i, 3, nullptr));
          return te::Body(Plus(Times(forget, old), Times(input, candidate)));
        });
    const te::Tensor output =
        te::Compute("T_hidden", shape, [&](const te::Indices& i) {
          // The clip bounds the gates only. The specification may also mean
          // the cell here, but the common runtimes do not clip it.
          const Expr now = cell(i);
          return te::Body(
              ir::MakeCast(layer.dtype, Times(f(sum(i, 1, now)), h(now))));
        });
    return {output, te::Rounded(cell, layer.dtype)};
  }
};

Outputs ConvertLstm(Node& node) {
  TF_ASSIGN_OR_RETURN(const RecurrentLayer layer, ReadRecurrentLayer(node, 4));
  TF_ASSIGN_OR_RETURN(
      const std::vector<RecurrentActivation> activations,
      ReadActivations(node, {"Sigmoid", "Tanh", "Tanh"}, layer.directions));
  const bool couples = node.Int("input_forget", 0) != 0;
  const int64_t d = layer.directions;
  for (const auto& [i, shape] :
       {std::pair(6, layer.batch_first
                         ? std::vector<int64_t>{layer.batch, d, layer.hidden}
                         : std::vector<int64_t>{d, layer.batch, layer.hidden}),
        std::pair(7, std::vector<int64_t>{d, 3 * layer.hidden})}) {
    if (!node.HasInput(i)) continue;
    if (node.Shape(i) != shape || node.Dtype(i) != layer.dtype) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString(),
                          ", not ", TensorType{layer.dtype, shape}.ToString());
    }
  }
  TF_RETURN_IF_ERROR(node.status());
  const auto step_of = [&](int direction) -> absl::StatusOr<RecurrentStep> {
    LstmStep step{node, layer};
    TF_ASSIGN_OR_RETURN(
        step.weight, SliceOfDirection(node, 2, direction, 0, 4 * layer.hidden));
    if (node.HasInput(7)) {
      TF_ASSIGN_OR_RETURN(
          step.peepholes,
          SliceOfDirection(node, 7, direction, 0, 3 * layer.hidden));
    }
    step.couples = couples;
    step.f = activations[3 * direction];
    step.g = activations[3 * direction + 1];
    step.h = activations[3 * direction + 2];
    return RecurrentStep(step);
  };
  return RunRecurrentLayer(node, layer, 4, 4, {5, 6}, step_of);
}

}  // namespace

std::vector<Converter> RecurrentConverters() {
  return {
      {"GRU", ConvertGru},
      {"LSTM", ConvertLstm},
      {"RNN", ConvertRnn},
  };
}

}  // namespace tilefarm::onnx
