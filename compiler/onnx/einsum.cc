// Einsum: sums of products over labelled dimensions.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;

// The label of a dimension: a letter, or a negative number for a dimension of
// the ellipsis, which is counted from the right: -1 is its last.
using Label = int;
using Labels = std::vector<Label>;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The labels of one term. `ellipsis`: how many dimensions its ellipsis stands
// for; -1: as many as a tensor of rank `rank` leaves.
absl::StatusOr<Labels> ParseTerm(Node& node, std::string_view term, int rank,
                                 int ellipsis) {
  int letters = 0;
  bool has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      ++letters;
    } else if (term.substr(i, 3) == "..." && !has_ellipsis) {
      has_ellipsis = true;
      i += 2;
    } else {
      return node.Invalid("attribute equation: the term '", std::string(term),
                          "' is wrong");
    }
  }
  if (ellipsis < 0) {
    ellipsis = rank - letters;
    if (ellipsis < 0 || (ellipsis > 0 && !has_ellipsis)) {
      return node.Invalid("attribute equation: the term '", std::string(term),
                          "' for an input of rank ", rank);
    }
  }
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      labels.push_back(term[i]);
      continue;
    }
    for (int d = ellipsis; d > 0; --d) labels.push_back(-d);
    i += 2;
  }
  return labels;
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  std::map<Label, int64_t> extents;
};

// Without "->", the output has the dimensions of the ellipsis, then every
// letter that appears once, in the order of their codes.
Labels ImplicitOutput(const std::vector<Labels>& inputs, int ellipsis) {
  Labels output;
  for (int d = ellipsis; d > 0; --d) output.push_back(-d);
  std::map<Label, int> uses;
  for (const Labels& labels : inputs) {
    for (const Label label : labels) ++uses[label];
  }
  for (const auto& [label, count] : uses) {
    if (label > 0 && count == 1) output.push_back(label);
  }
  return output;
}

absl::StatusOr<Equation> ParseEquation(Node& node) {
  std::string text = node.String("equation", "");
  TF_RETURN_IF_ERROR(node.status());
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms =
      absl::StrSplit(text.substr(0, arrow), ',');
  if (static_cast<int>(terms.size()) != node.num_inputs()) {
    return node.Invalid("attribute equation has ", terms.size(), " terms for ",
                        node.num_inputs(), " inputs");
  }
  Equation equation;
  int ellipsis = 0;  // of the input with the most such dimensions
  for (int i = 0; i < node.num_inputs(); ++i) {
    TF_ASSIGN_OR_RETURN(Labels labels,
                        ParseTerm(node, terms[i], node.Rank(i), -1));
    const std::vector<int64_t>& shape = node.Shape(i);
    for (size_t d = 0; d < labels.size(); ++d) {
      ellipsis = std::max(ellipsis, -labels[d]);
      int64_t& extent = equation.extents.emplace(labels[d], 1).first->second;
      if (shape[d] != extent && shape[d] != 1 && extent != 1) {
        return node.Invalid("attribute equation=", text,
                            ": one label has the extents ", extent, " and ",
                            shape[d]);
      }
      if (extent == 1) extent = shape[d];
    }
    equation.inputs.push_back(std::move(labels));
  }
  if (arrow == std::string::npos) {
    equation.output = ImplicitOutput(equation.inputs, ellipsis);
    return equation;
  }
  TF_ASSIGN_OR_RETURN(
      equation.output,
      ParseTerm(node, std::string_view(text).substr(arrow + 2), 0, ellipsis));
  std::set<Label> seen;
  for (const Label label : equation.output) {
    if (!seen.insert(label).second || !equation.extents.contains(label)) {
      return node.Invalid("attribute equation=", text, ": its result is wrong");
    }
  }
  return equation;
}

struct Operand {
  te::Tensor tensor;
  Labels labels;
};

// The extents of the labels of `operands`; those of one broadcast.
std::map<Label, int64_t> ExtentsOf(const std::vector<Operand>& operands) {
  std::map<Label, int64_t> extents;
  for (const Operand& operand : operands) {
    for (size_t d = 0; d < operand.labels.size(); ++d) {
      int64_t& extent = extents.emplace(operand.labels[d], 1).first->second;
      extent = std::max(extent, operand.tensor.dim(static_cast<int>(d)));
    }
  }
  return extents;
}

// The product of one or two operands, summed over the labels that `output`
// lacks. No extent is zero.
Operand Contract(const std::vector<Operand>& operands, const Labels& output,
                 DataType accumulate) {
  const std::map<Label, int64_t> extents = ExtentsOf(operands);
  std::vector<int64_t> shape;
  for (const Label label : output) shape.push_back(extents.at(label));
  std::map<Label, Expr> places;
  std::vector<te::ReduceAxis> axes;
  for (const auto& [label, extent] : extents) {
    if (Has(output, label)) continue;
    axes.emplace_back(absl::StrCat("k", axes.size()), extent);
    places[label] = axes.back();
  }
  te::Tensor result =
      te::Compute("T_einsum", shape, [&](const te::Indices& i) -> te::Body {
        for (size_t d = 0; d < output.size(); ++d) places[output[d]] = i[d];
        Expr product;
        for (const Operand& operand : operands) {
          te::Indices at;
          for (size_t d = 0; d < operand.labels.size(); ++d) {
            const bool broadcasts =
                operand.tensor.dim(static_cast<int>(d)) == 1;
            at.push_back(broadcasts ? ir::IntConst(0)
                                    : places[operand.labels[d]]);
          }
          const Expr factor = ir::MakeCast(accumulate, operand.tensor(at));
          product = product == nullptr
                        ? factor
                        : ir::MakeBinary(ir::BinaryOp::kMul, product, factor);
        }
        if (axes.empty()) return product;
        return te::Sum(product, axes);
      });
  return {std::move(result), output};
}

// Contracts the operands from left to right: a label is summed as soon as
// neither the result nor a later operand has it, so that the work is that of a
// chain of products and not of one nest over all labels.
te::Tensor ContractAll(const Equation& equation, const graph::Tensors& x,
                       DataType accumulate) {
  Operand sum{x[0], equation.inputs[0]};
  for (size_t next = 1; next < x.size(); ++next) {
    const std::vector<Operand> pair{sum, {x[next], equation.inputs[next]}};
    Labels kept = equation.output;
    if (next + 1 < x.size()) {
      kept.clear();
      for (const Operand& operand : pair) {
        for (const Label label : operand.labels) {
          bool needed = Has(equation.output, label);
          for (size_t later = next + 1; later < x.size(); ++later) {
            needed |= Has(equation.inputs[later], label);
          }
          if (needed && !Has(kept, label)) kept.push_back(label);
        }
      }
    }
    sum = Contract(pair, kept, accumulate);
  }
  if (x.size() == 1) sum = Contract({sum}, equation.output, accumulate);
  return sum.tensor;
}

Outputs ConvertEinsum(Node& node) {
  if (node.num_inputs() == 0) return node.Invalid("has no input");
  const std::vector<ValueId> inputs = node.Inputs();
  TF_RETURN_IF_ERROR(node.status());
  const DataType dtype = node.Dtype(0);
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.Dtype(i) != dtype || dtype.is_bool()) {
      return node.Invalid("its inputs must have one dtype, of numbers");
    }
  }
  TF_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(node));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "einsum", {{"subscripts", node.String("equation", "")}}, inputs,
          [&](const graph::Tensors& x) {
            std::vector<int64_t> shape;
            for (const Label label : equation.output) {
              shape.push_back(equation.extents.at(label));
            }
            const bool empty = std::any_of(
                equation.extents.begin(), equation.extents.end(),
                [](const auto& entry) { return entry.second == 0; });
            if (empty) return te::Zeros(shape, dtype);
            return te::Rounded(
                ContractAll(equation, x, te::AccumulatorOf(dtype)), dtype);
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> EinsumConverters() {
  return {{"Einsum", ConvertEinsum}};
}

}  // namespace tilefarm::onnx
