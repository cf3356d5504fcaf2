// Activation functions. Those with several steps compute in float32 at least.
#include <cmath>
#include <functional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

using Function = std::function<Expr(const Expr& x)>;

Outputs ConvertActivation(Node& node, const std::string& op, ir::AttrMap attrs,
                          const Function& f) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Elementwise(node, op, std::move(attrs), {node.Input(0)},
                                  [&](const std::vector<Expr>& x) {
                                    return ir::MakeCast(
                                        dtype, f(ir::MakeCast(type, x[0])));
                                  }));
  return OneOutput(y);
}

Expr Zero(const Expr& x) { return ir::ConstOf(x->dtype, 0); }
Expr One(const Expr& x) { return ir::ConstOf(x->dtype, 1); }
Expr IsNegative(const Expr& x) { return ir::LT(x, Zero(x)); }
Expr IsPositive(const Expr& x) { return ir::GT(x, Zero(x)); }
Expr Sigmoid(const Expr& x) { return Call(Intrinsic::kSigmoid, x); }
Expr ExpMinusOne(const Expr& x) { return Call(Intrinsic::kExp, x) - One(x); }

// log(1 + exp(x)), written so that exp does not overflow.
Expr Softplus(const Expr& x) {
  const Expr magnitude = Call(Intrinsic::kAbs, x);
  return ir::Max(x, Zero(x)) +
         Call(Intrinsic::kLog1p, Call(Intrinsic::kExp, Zero(x) - magnitude));
}

Outputs ConvertRelu(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Elementwise(node, "nn.relu", {}, {node.Input(0)},
                                  [](const std::vector<Expr>& x) {
                                    return ir::MakeBinary(BinaryOp::kMax, x[0],
                                                          Zero(x[0]));
                                  }));
  return OneOutput(y);
}

Outputs ConvertLeakyRelu(Node& node) {
  const double alpha = node.Float("alpha", 0.01F);
  return ConvertActivation(
      node, "nn.leakyrelu", {{"alpha", alpha}}, [&](const Expr& x) {
        return ir::MakeSelect(IsNegative(x), x * Number(alpha, x->dtype), x);
      });
}

Outputs ConvertPRelu(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  const std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
  TF_RETURN_IF_ERROR(CheckEqualDtypes(node, inputs));
  TF_RETURN_IF_ERROR(CheckBroadcastsTo(node, 1, node.Shape(0)));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "nn.prelu", {}, inputs, [](const std::vector<Expr>& x) {
        return ir::MakeSelect(IsNegative(x[0]), x[0] * x[1], x[0]);
      }));
  return OneOutput(y);
}

Outputs ConvertElu(Node& node) {
  const double alpha = node.Float("alpha", 1);
  return ConvertActivation(
      node, "nn.elu", {{"alpha", alpha}}, [&](const Expr& x) {
        return ir::MakeSelect(IsNegative(x),
                              ExpMinusOne(x) * Number(alpha, x->dtype), x);
      });
}

Outputs ConvertCelu(Node& node) {
  const double alpha = node.Float("alpha", 1);
  if (alpha == 0) return node.Invalid("attribute alpha=0");
  return ConvertActivation(
      node, "nn.celu", {{"alpha", alpha}}, [&](const Expr& x) {
        const Expr a = Number(alpha, x->dtype);
        return ir::Max(x, Zero(x)) +
               ir::Min(ExpMinusOne(Divide(x, a)) * a, Zero(x));
      });
}

Outputs ConvertSelu(Node& node) {
  // The constants of the paper (Klambauer et al., 2017), rounded as the
  // standard says.
  const double alpha = node.Float("alpha", 1.67326319217681884765625);
  const double gamma = node.Float("gamma", 1.05070102214813232421875);
  return ConvertActivation(
      node, "nn.selu", {{"alpha", alpha}, {"gamma", gamma}},
      [&](const Expr& x) {
        const Expr scale = Number(gamma, x->dtype);
        const Expr negative = ExpMinusOne(x) * Number(alpha, x->dtype) * scale;
        return ir::MakeSelect(IsPositive(x), x * scale, negative);
      });
}

Outputs ConvertThresholdedRelu(Node& node) {
  const double alpha = node.Float("alpha", 1);
  return ConvertActivation(
      node, "nn.thresholded_relu", {{"alpha", alpha}}, [&](const Expr& x) {
        return ir::MakeSelect(ir::GT(x, Number(alpha, x->dtype)), x, Zero(x));
      });
}

Outputs ConvertSigmoid(Node& node) {
  return ConvertActivation(node, "sigmoid", {}, Sigmoid);
}

Outputs ConvertHardSigmoid(Node& node) {
  const double alpha = node.Float("alpha", 0.2F);
  const double beta = node.Float("beta", 0.5);
  return ConvertActivation(
      node, "nn.hard_sigmoid", {{"alpha", alpha}, {"beta", beta}},
      [&](const Expr& x) {
        const Expr line = x * Number(alpha, x->dtype) + Number(beta, x->dtype);
        return ir::Max(ir::Min(line, One(x)), Zero(x));
      });
}

Outputs ConvertHardSwish(Node& node) {
  return ConvertActivation(node, "nn.hard_swish", {}, [](const Expr& x) {
    const Expr line = x * Number(1.0 / 6, x->dtype) + Number(0.5, x->dtype);
    return x * ir::Max(ir::Min(line, One(x)), Zero(x));
  });
}

Outputs ConvertSoftplus(Node& node) {
  return ConvertActivation(node, "nn.softplus", {}, Softplus);
}

Outputs ConvertSoftsign(Node& node) {
  return ConvertActivation(node, "nn.softsign", {}, [](const Expr& x) {
    return Divide(x, One(x) + Call(Intrinsic::kAbs, x));
  });
}

// Also of integers, which compute in float64.
Outputs ConvertShrink(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  const double lambd = node.Float("lambd", 0.5);
  const double bias = node.Float("bias", 0);
  const DataType dtype = node.Dtype(0);
  const DataType type = FloatComputeType(dtype);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "nn.shrink", {{"lambd", lambd}, {"bias", bias}},
                  {node.Input(0)}, [&](const std::vector<Expr>& in) {
                    const Expr x = ir::MakeCast(type, in[0]);
                    const Expr offset = Number(bias, type);
                    const Expr above = ir::MakeSelect(
                        ir::GT(x, Number(lambd, type)), x - offset, Zero(x));
                    return ir::MakeCast(
                        dtype, ir::MakeSelect(ir::LT(x, Number(-lambd, type)),
                                              x + offset, above));
                  }));
  return OneOutput(y);
}

Outputs ConvertGelu(Node& node) {
  const std::string approximate = node.String("approximate", "none");
  if (approximate == "none") {
    return ConvertActivation(node, "nn.gelu", {}, [](const Expr& x) {
      const Expr erf =
          Call(Intrinsic::kErf, x * Number(std::sqrt(0.5), x->dtype));
      return x * Number(0.5, x->dtype) * (erf + One(x));
    });
  }
  if (approximate != "tanh") {
    return node.Invalid("attribute approximate='", approximate, "'");
  }
  return ConvertActivation(node, "nn.gelu_tanh", {}, [](const Expr& x) {
    const Expr inner = (x + x * x * x * Number(0.044715, x->dtype)) *
                       Number(std::sqrt(2 / 3.14159265358979323846), x->dtype);
    return x * Number(0.5, x->dtype) * (One(x) + Call(Intrinsic::kTanh, inner));
  });
}

Outputs ConvertMish(Node& node) {
  return ConvertActivation(node, "nn.mish", {}, [](const Expr& x) {
    return x * Call(Intrinsic::kTanh, Softplus(x));
  });
}

Outputs ConvertSwish(Node& node) {
  const double alpha = node.Float("alpha", 1);
  return ConvertActivation(
      node, "nn.silu", {{"alpha", alpha}}, [&](const Expr& x) {
        return x * Sigmoid(alpha == 1 ? x : x * Number(alpha, x->dtype));
      });
}

}  // namespace

std::vector<Converter> ActivationConverters() {
  return {
      {"Relu", ConvertRelu},
      {"LeakyRelu", ConvertLeakyRelu},
      {"PRelu", ConvertPRelu},
      {"Elu", ConvertElu},
      {"Celu", ConvertCelu},
      {"Selu", ConvertSelu},
      {"ThresholdedRelu", ConvertThresholdedRelu},
      {"Sigmoid", ConvertSigmoid},
      {"HardSigmoid", ConvertHardSigmoid},
      {"HardSwish", ConvertHardSwish},
      {"Softplus", ConvertSoftplus},
      {"Softsign", ConvertSoftsign},
      {"Shrink", ConvertShrink},
      {"Gelu", ConvertGelu},
      {"Mish", ConvertMish},
      {"Swish", ConvertSwish},
  };
}

}  // namespace tilefarm::onnx
