// The optimisers of the preview training domain: one step for each tensor.
#include <functional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

// The scalars of a step and one element of each of the step's tensors: the
// weights X, their gradient G, then the state.
struct Step {
  Expr rate;
  Expr count;  // updates before this one, as a float
  std::vector<Expr> elements;
  DataType type;
};

// New weights, then the new state.
using Update = std::function<std::vector<Expr>(const Step& step)>;

Expr Square(const Expr& x) { return x * x; }

// The inputs are R, T, then all X, all G and the `num_states` states; the
// outputs all new X, then the new states.
Outputs ConvertOptimiser(Node& node, const std::string& op, int num_states,
                         const Update& update) {
  const int kinds = 2 + num_states;
  const int tensors = (node.num_inputs() - 2) / kinds;
  if (tensors < 1 || 2 + tensors * kinds != node.num_inputs()) {
    return node.Invalid(node.num_inputs(), " inputs");
  }
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kInteger));
  for (int i = 0; i < 2; ++i) {
    if (node.Type(i).num_elements() != 1) {
      return node.Invalid("input ", i, " must be a scalar");
    }
  }
  std::vector<Imported> outputs(
      static_cast<size_t>(tensors * (1 + num_states)));
  for (int tensor = 0; tensor < tensors; ++tensor) {
    std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
    for (int kind = 0; kind < kinds; ++kind) {
      const int i = 2 + kind * tensors + tensor;
      inputs.push_back(node.Input(i));
      TF_RETURN_IF_ERROR(CheckKind(node, i, DtypeKind::kFloat));
      if (node.builder().type(inputs[2]) !=
          node.builder().type(inputs.back())) {
        return node.Invalid("input ", i, " is ", node.Type(i).ToString(),
                            ", not as the weights ",
                            node.Type(2 + tensor).ToString());
      }
    }
    const TensorType weights = node.builder().type(inputs[2]);
    const DataType type = ComputeType(weights.dtype);
    TF_ASSIGN_OR_RETURN(
        const std::vector<ValueId> updated,
        node.builder().ComputeAll(
            op, {}, inputs, [&](const graph::Tensors& in) {
              graph::Tensors results;
              for (int result = 0; result <= num_states; ++result) {
                results.push_back(te::Compute(
                    result == 0 ? "T_weights" : "T_state", weights.shape,
                    [&](const te::Indices& i) {
                      Step step;
                      step.type = type;
                      step.rate = ir::MakeCast(type, OnlyElement(in[0]));
                      step.count = ir::MakeCast(type, OnlyElement(in[1]));
                      for (size_t k = 2; k < in.size(); ++k) {
                        step.elements.push_back(ir::MakeCast(type, in[k](i)));
                      }
                      return te::Body(ir::MakeCast(
                          weights.dtype,
                          update(step)[static_cast<size_t>(result)]));
                    }));
              }
              return results;
            }));
    for (int result = 0; result <= num_states; ++result) {
      outputs[static_cast<size_t>(result * tensors + tensor)] =
          updated[static_cast<size_t>(result)];
    }
  }
  return outputs;
}

// The gradient of the loss with the L2 norm of the weights added.
Expr Regularised(const Step& step, double norm_coefficient) {
  return step.elements[0] * Number(norm_coefficient, step.type) +
         step.elements[1];
}

// Duchi, Hazan and Singer, 2011. The state is the sum of squared gradients.
Outputs ConvertAdagrad(Node& node) {
  const double norm = node.Float("norm_coefficient", 0);
  const double decay = node.Float("decay_factor", 0);
  const double epsilon = node.Float("epsilon", 1e-6F);
  return ConvertOptimiser(node, "adagrad", 1, [&](const Step& step) {
    const auto number = [&](double v) { return Number(v, step.type); };
    const Expr rate = Divide(step.rate, number(1) + step.count * number(decay));
    const Expr gradient = Regularised(step, norm);
    const Expr squares = step.elements[2] + Square(gradient);
    const Expr scale = Call(Intrinsic::kSqrt, squares) + number(epsilon);
    return std::vector<Expr>{step.elements[0] - Divide(rate * gradient, scale),
                             squares};
  });
}

// Kingma and Ba, 2014. The states are the averages of gradients and of their
// squares.
Outputs ConvertAdam(Node& node) {
  const double alpha = node.Float("alpha", 0.9F);
  const double beta = node.Float("beta", 0.999F);
  const double norm = node.Float("norm_coefficient", 0);
  const double norm_post = node.Float("norm_coefficient_post", 0);
  const double epsilon = node.Float("epsilon", 1e-6F);
  return ConvertOptimiser(node, "adam", 2, [&](const Step& step) {
    const auto number = [&](double v) { return Number(v, step.type); };
    const Expr gradient = Regularised(step, norm);
    const Expr average =
        step.elements[2] * number(alpha) + gradient * number(1 - alpha);
    const Expr squares =
        step.elements[3] * number(beta) + Square(gradient) * number(1 - beta);
    const auto bias = [&](double base) {
      return number(1) -
             ir::MakeCall(Intrinsic::kPow, {number(base), step.count});
    };
    const Expr corrected =
        Divide(step.rate * Call(Intrinsic::kSqrt, bias(beta)), bias(alpha));
    const Expr rate =
        ir::MakeSelect(ir::GT(step.count, number(0)), corrected, step.rate);
    const Expr scale = Call(Intrinsic::kSqrt, squares) + number(epsilon);
    const Expr weights = step.elements[0] - Divide(rate * average, scale);
    return std::vector<Expr>{weights * number(1 - norm_post), average, squares};
  });
}

// Stochastic gradient descent; the state is the momentum.
Outputs ConvertMomentum(Node& node) {
  const double alpha = node.Float("alpha", 0);
  const double beta = node.Float("beta", 0);
  const double norm = node.Float("norm_coefficient", 0);
  const std::string mode = node.String("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return node.Invalid("attribute mode='", mode, "'");
  }
  return ConvertOptimiser(node, "momentum", 1, [&](const Step& step) {
    const auto number = [&](double v) { return Number(v, step.type); };
    const Expr gradient = Regularised(step, norm);
    // The first update takes the whole gradient.
    const Expr share =
        ir::MakeSelect(ir::GT(step.count, number(0)), number(beta), number(1));
    const Expr momentum = step.elements[2] * number(alpha) + share * gradient;
    const Expr direction =
        mode == "standard" ? momentum : gradient + momentum * number(alpha);
    return std::vector<Expr>{step.elements[0] - step.rate * direction,
                             momentum};
  });
}

}  // namespace

std::vector<Converter> TrainingConverters() {
  constexpr std::string_view kDomain = "ai.onnx.preview.training";
  return {
      {"Adagrad", ConvertAdagrad, kDomain},
      {"Adam", ConvertAdam, kDomain},
      {"Momentum", ConvertMomentum, kDomain},
  };
}

}  // namespace tilefarm::onnx
