#include "compiler/onnx/recurrent_activation.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::Intrinsic;

// A function, and the defaults of the parameters that it has.
struct Definition {
  std::string_view name;
  std::optional<double> alpha;
  std::optional<double> beta;
};
constexpr Definition kDefinitions[] = {
    {"affine", 1.0, 0.0},
    {"elu", 1.0, {}},
    {"hardsigmoid", 0.2, 0.5},
    {"leakyrelu", 0.01, {}},
    {"relu", {}, {}},
    {"scaledtanh", 1.0, 1.0},
    {"sigmoid", {}, {}},
    {"softplus", {}, {}},
    {"softsign", {}, {}},
    {"tanh", {}, {}},
    {"thresholdedrelu", 1.0, {}},
};

const Definition* Find(std::string_view name) {
  for (const Definition& definition : kDefinitions) {
    if (definition.name == name) return &definition;
  }
  return nullptr;
}

Expr Larger(const Expr& a, const Expr& b) {
  return ir::MakeBinary(BinaryOp::kMax, a, b);
}

}  // namespace

Expr RecurrentActivation::operator()(const Expr& x) const {
  const ir::DataType type = x->dtype;
  const Expr zero = ir::ConstOf(type, 0), one = ir::ConstOf(type, 1);
  const Expr a = ir::FloatConst(alpha, type), b = ir::FloatConst(beta, type);
  const auto call = [](Intrinsic op, const Expr& e) {
    return ir::MakeCall(op, {e});
  };
  const Expr is_negative = ir::MakeBinary(BinaryOp::kLT, x, zero);
  if (name == "sigmoid") return call(Intrinsic::kSigmoid, x);
  if (name == "tanh") return call(Intrinsic::kTanh, x);
  if (name == "relu") return Larger(x, zero);
  if (name == "affine") return Plus(Times(a, x), b);
  if (name == "leakyrelu") return ir::MakeSelect(is_negative, Times(a, x), x);
  if (name == "thresholdedrelu") {
    return ir::MakeSelect(ir::MakeBinary(BinaryOp::kGT, x, a), x, zero);
  }
  if (name == "scaledtanh") {
    return Times(a, call(Intrinsic::kTanh, Times(b, x)));
  }
  if (name == "hardsigmoid") {
    return Larger(ir::MakeBinary(BinaryOp::kMin, Plus(Times(a, x), b), one),
                  zero);
  }
  if (name == "elu") {
    const Expr grown =
        ir::MakeBinary(BinaryOp::kSub, call(Intrinsic::kExp, x), one);
    return ir::MakeSelect(is_negative, Times(a, grown), x);
  }
  const Expr magnitude = call(Intrinsic::kAbs, x);
  if (name == "softsign") {
    return ir::MakeBinary(BinaryOp::kDiv, x, Plus(one, magnitude));
  }
  // Softplus, log(1 + exp x), in a form that does not overflow.
  const Expr negated = ir::MakeBinary(BinaryOp::kSub, zero, magnitude);
  return Plus(Larger(x, zero),
              call(Intrinsic::kLog1p, call(Intrinsic::kExp, negated)));
}

absl::StatusOr<std::vector<RecurrentActivation>> ReadActivations(
    Node& node, const std::vector<std::string>& defaults, int directions) {
  std::vector<std::string> names = node.Strings("activations");
  const std::vector<double> alphas = node.Floats("activation_alpha");
  const std::vector<double> betas = node.Floats("activation_beta");
  TF_RETURN_IF_ERROR(node.status());
  if (names.empty()) {
    for (int d = 0; d < directions; ++d) {
      names.insert(names.end(), defaults.begin(), defaults.end());
    }
  }
  if (names.size() != defaults.size() * directions) {
    return node.Invalid("attribute activations has ", names.size(),
                        " functions, not ", defaults.size() * directions);
  }
  std::vector<RecurrentActivation> activations;
  size_t next_alpha = 0, next_beta = 0;
  // Only functions that have a parameter take one from its list.
  const auto take = [](const std::optional<double>& default_value,
                       const std::vector<double>& values, size_t* next) {
    if (!default_value.has_value()) return 0.0;
    return *next < values.size() ? values[(*next)++] : *default_value;
  };
  for (const std::string& name : names) {
    RecurrentActivation activation{absl::AsciiStrToLower(name)};
    const Definition* definition = Find(activation.name);
    if (definition == nullptr) {
      return node.Unsupported("attribute activations: ", name);
    }
    activation.alpha = take(definition->alpha, alphas, &next_alpha);
    activation.beta = take(definition->beta, betas, &next_beta);
    activations.push_back(std::move(activation));
  }
  return activations;
}

}  // namespace tilefarm::onnx
