// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using te::Indices;
using te::Reducer;

enum class Reduction { kNone, kSum, kMean };

struct Loss {
  std::vector<int64_t> scores;  // shape [batch, classes, positions...]
  std::vector<int64_t> target;  // shape [batch, positions...]
  DataType dtype;
  DataType type;  // of the computation
  Reduction reduction = Reduction::kMean;
  std::optional<int64_t> ignored;  // class without loss
  bool weighted = false;           // input 2 has a weight for each class
};

absl::StatusOr<Loss> ReadLoss(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kInteger));
  Loss loss;
  loss.scores = node.Shape(0);
  loss.target = node.Shape(1);
  loss.dtype = node.Dtype(0);
  loss.type = ComputeType(loss.dtype);
  if (loss.scores.size() < 2) {
    return node.Invalid("input 0 has rank ", loss.scores.size(),
                        ", not 2 or more");
  }
  std::vector<int64_t> expected = loss.scores;
  expected.erase(expected.begin() + 1);
  if (loss.target != expected) {
    return node.Invalid("input 1 is ", node.Type(1).ToString(),
                        ", which does not fit ", node.Type(0).ToString());
  }
  if (loss.scores[1] == 0) return node.Invalid("there are no classes");
  const std::string reduction = node.String("reduction", "mean");
  if (reduction == "none") {
    loss.reduction = Reduction::kNone;
  } else if (reduction == "sum") {
    loss.reduction = Reduction::kSum;
  } else if (reduction != "mean") {
    return node.Invalid("attribute reduction='", reduction, "'");
  }
  if (node.HasAttr("ignore_index")) loss.ignored = node.Int("ignore_index", 0);
  loss.weighted = node.HasInput(2);
  if (loss.weighted) {
    TF_RETURN_IF_ERROR(CheckKind(node, 2, DtypeKind::kFloat));
    if (node.Shape(2) != std::vector<int64_t>{loss.scores[1]}) {
      return node.Invalid("input 2 is ", node.Type(2).ToString(),
                          ", not a vector of ", loss.scores[1]);
    }
  }
  return loss;
}

// The loss of logarithms of probabilities.
te::Tensor NegativeLogLikelihood(const Loss& loss,
                                 const te::Tensor& log_probability,
                                 const te::Tensor& target,
                                 const te::Tensor* weights) {
  const auto label = [&](const Indices& i) {
    return ir::MakeCast(DataType::Index(), target(i));
  };
  // Labels out of range are wrong or ignored, but must not be read with.
  const auto safe_label = [&](const Indices& i) {
    return ir::Max(ir::IntConst(0),
                   ir::Min(label(i), ir::IntConst(loss.scores[1] - 1)));
  };
  const auto weight = [&](const Indices& i) {
    Expr value = weights == nullptr
                     ? ir::ConstOf(loss.type, 1)
                     : ir::MakeCast(loss.type, (*weights)({safe_label(i)}));
    if (!loss.ignored.has_value()) return value;
    return ir::MakeSelect(ir::EQ(label(i), ir::IntConst(*loss.ignored)),
                          ir::ConstOf(loss.type, 0), value);
  };
  const auto element = [&](const Indices& i) {
    const Expr zero = ir::ConstOf(loss.type, 0);
    Indices at = {i[0], safe_label(i)};
    at.insert(at.end(), i.begin() + 1, i.end());
    Expr value = zero - ir::MakeCast(loss.type, log_probability(at));
    if (weights != nullptr) value = value * weight(i);
    if (!loss.ignored.has_value()) return value;
    // Not by the weight 0: the loss may be infinite.
    return ir::MakeSelect(ir::EQ(label(i), ir::IntConst(*loss.ignored)), zero,
                          value);
  };
  if (loss.reduction == Reduction::kNone) {
    return te::Compute("T_nll", loss.target, [&](const Indices& i) {
      return te::Body(ir::MakeCast(loss.dtype, element(i)));
    });
  }
  const std::vector<bool> all(loss.target.size(), true);
  const te::Tensor sum = te::ReduceElements("T_nll_sum", loss.target, all,
                                            false, Reducer::kSum, element);
  if (loss.reduction == Reduction::kSum) {
    return te::Compute("T_nll", {}, [&](const Indices&) {
      return te::Body(ir::MakeCast(loss.dtype, sum({})));
    });
  }
  if (weights == nullptr && !loss.ignored.has_value()) {
    double count = 1;
    for (int64_t extent : loss.target) count *= static_cast<double>(extent);
    return te::Compute("T_nll", {}, [&](const Indices&) {
      return te::Body(
          ir::MakeCast(loss.dtype, Divide(sum({}), Number(count, loss.type))));
    });
  }
  const te::Tensor total = te::ReduceElements("T_weight_sum", loss.target, all,
                                              false, Reducer::kSum, weight);
  return te::Compute("T_nll", {}, [&](const Indices&) {
    return te::Body(ir::MakeCast(loss.dtype, Divide(sum({}), total({}))));
  });
}

std::vector<ValueId> LossInputs(Node& node, const Loss& loss) {
  std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
  if (loss.weighted) inputs.push_back(node.Input(2));
  return inputs;
}

Outputs ConvertNll(Node& node) {
  TF_ASSIGN_OR_RETURN(const Loss loss, ReadLoss(node));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "nn.nll_loss", {{"reduction", node.String("reduction", "mean")}},
          LossInputs(node, loss), [&](const graph::Tensors& in) {
            return NegativeLogLikelihood(loss, in[0], in[1],
                                         loss.weighted ? &in[2] : nullptr);
          }));
  return OneOutput(y);
}

Outputs ConvertSoftmaxCrossEntropy(Node& node) {
  TF_ASSIGN_OR_RETURN(const Loss loss, ReadLoss(node));
  std::vector<bool> reduced(loss.scores.size());
  reduced[1] = true;
  const bool wants_log = node.WantsOutput(1);
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      node.builder().ComputeAll(
          "nn.cross_entropy_with_logits",
          {{"reduction", node.String("reduction", "mean")}},
          LossInputs(node, loss), [&](const graph::Tensors& in) {
            const te::Tensor log_probability =
                LogSoftmaxOver(in[0], reduced, loss.type);
            graph::Tensors results = {
                NegativeLogLikelihood(loss, log_probability, in[1],
                                      loss.weighted ? &in[2] : nullptr)};
            if (wants_log) {
              results.push_back(
                  loss.type == loss.dtype
                      ? log_probability
                      : LogSoftmaxOver(in[0], reduced, loss.dtype));
            }
            return results;
          }));
  return std::vector<Imported>(outputs.begin(), outputs.end());
}

}  // namespace

std::vector<Converter> LossConverters() {
  return {
      {"NegativeLogLikelihoodLoss", ConvertNll},
      {"SoftmaxCrossEntropyLoss", ConvertSoftmaxCrossEntropy},
  };
}

}  // namespace tilefarm::onnx
