// Reductions over axes: ReduceSum and its kind, ArgMax and ArgMin.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;
using te::Indices;
using te::Reducer;

// Which dimensions are reduced.
using Mask = std::vector<bool>;

std::vector<int64_t> ReducedShape(const std::vector<int64_t>& shape,
                                  const Mask& reduced, bool keep_dims) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!reduced[d]) {
      out.push_back(shape[d]);
    } else if (keep_dims) {
      out.push_back(1);
    }
  }
  return out;
}

// All choices are computed, so that more of them would cost too much.
constexpr size_t kMaxChoices = 6;

// The choices of axes that give the declared shape of the result, where the
// axes are known at run time only. Whether a dimension of extent one is reduced
// makes no difference; only choices that differ in other dimensions are listed.
absl::StatusOr<std::vector<Mask>> AxesFromDeclaredOutput(Node& node,
                                                         int64_t num_axes,
                                                         bool keep_dims) {
  const std::vector<int64_t> shape = node.Shape(0);
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  // The subsets of 16 dimensions are quickly tried.
  if (!declared.has_value() || shape.size() > 16) {
    return node.Unsupported("input 1 (axes) is known at run time only");
  }
  std::vector<Mask> choices;
  std::set<Mask> seen;  // with only the dimensions that make a difference
  for (uint32_t bits = 0; bits < uint32_t{1} << shape.size(); ++bits) {
    Mask reduced(shape.size()), relevant(shape.size());
    int64_t count = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      reduced[d] = (bits >> d & 1) != 0;
      count += reduced[d];
      relevant[d] = reduced[d] && shape[d] != 1;
    }
    if (count == num_axes &&
        ReducedShape(shape, reduced, keep_dims) == declared->shape &&
        seen.insert(relevant).second) {
      choices.push_back(reduced);
    }
  }
  if (choices.empty()) {
    return node.Invalid("the declared shape of the result, [",
                        absl::StrJoin(declared->shape, ", "),
                        "], does not fit the input");
  }
  if (choices.size() > kMaxChoices) {
    return node.Unsupported("input 1 (axes) is known at run time only, and ",
                            choices.size(),
                            " choices give the declared shape of the result");
  }
  return choices;
}

// The axes, or the choices if they are known at run time only.
absl::StatusOr<std::vector<Mask>> ReducedAxes(Node& node, bool keep_dims) {
  const int rank = node.Rank(0);
  std::vector<int64_t> axes = node.Ints("axes");
  const bool none_if_empty = node.Int("noop_with_empty_axes", 0) != 0;
  if (node.HasInput(1)) {
    TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kInteger));
    if (node.Rank(1) > 1) return node.Invalid("axes must be a list");
    const int64_t count = node.Type(1).num_elements();
    if (count > 0 && !node.IsConstant(1)) {
      return AxesFromDeclaredOutput(node, count, keep_dims);
    }
    if (count > 0) {
      TF_ASSIGN_OR_RETURN(axes, node.ConstInts(1));
    }
  }
  if (axes.empty()) {
    return std::vector<Mask>{Mask(static_cast<size_t>(rank), !none_if_empty)};
  }
  Mask reduced(static_cast<size_t>(rank));
  for (int64_t axis : axes) {
    const int64_t d = node.NormalizeAxis(axis, rank);
    TF_RETURN_IF_ERROR(node.status());
    if (reduced[static_cast<size_t>(d)]) {
      return node.Invalid("axis ", axis, " twice");
    }
    reduced[static_cast<size_t>(d)] = true;
  }
  return std::vector<Mask>{reduced};
}

// Whether the run-time axes reduce the dimensions of `choice`, as far as they
// have more than one element.
Expr IsChosen(const te::Tensor& axes, const std::vector<int64_t>& shape,
              const Mask& choice) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t count = axes.ndim() == 0 ? 1 : axes.dim(0);
  Expr chosen = ir::BoolConst(true);
  for (int64_t d = 0; d < rank; ++d) {
    if (shape[static_cast<size_t>(d)] == 1) continue;
    Expr listed = ir::BoolConst(false);
    for (int64_t j = 0; j < count; ++j) {
      const Expr axis =
          ir::MakeCast(DataType::Index(),
                       axes.ndim() == 0 ? axes({}) : axes({ir::IntConst(j)}));
      listed = ir::Or(listed, ir::Or(ir::EQ(axis, ir::IntConst(d)),
                                     ir::EQ(axis, ir::IntConst(d - rank))));
    }
    chosen = ir::And(
        chosen, choice[static_cast<size_t>(d)] ? listed : ir::MakeNot(listed));
  }
  return chosen;
}

ir::AttrMap ReductionAttrs(const Mask& reduced, bool keep_dims) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) axes.push_back(static_cast<int64_t>(d));
  }
  return {{"axis", IntList(axes)}, {"keepdims", keep_dims}};
}

enum class Form {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare,
};

// The name of the graph operator.
const char* OpOf(Form form) {
  switch (form) {
    case Form::kSum:
      return "sum";
    case Form::kMean:
      return "mean";
    case Form::kMax:
      return "max";
    case Form::kMin:
      return "min";
    case Form::kProd:
      return "prod";
    case Form::kL1:
      return "l1_norm";
    case Form::kL2:
      return "l2_norm";
    case Form::kLogSum:
      return "log_sum";
    case Form::kLogSumExp:
      return "log_sum_exp";
    case Form::kSumSquare:
      return "sum_square";
  }
  return "";
}

// The dtype in which the reduction accumulates.
DataType AccumulatorType(Form form, DataType dtype) {
  switch (form) {
    case Form::kMax:
    case Form::kMin:
      return dtype.is_bool() ? DataType::UInt(8) : dtype;
    case Form::kL2:
    case Form::kLogSum:
    case Form::kLogSumExp:
      return FloatComputeType(dtype);
    case Form::kMean:
      if (dtype.is_integral() && dtype.bits < 64) return DataType::Int(64);
      break;
    default:
      break;
  }
  return ComputeType(dtype);
}

// log(sum(exp(x - m))) + m with the maximum m, so that exp does not overflow.
te::Tensor LogSumExp(const te::Tensor& x, const Mask& reduced, bool keep_dims,
                     DataType type) {
  const auto load = [&](const Indices& i) { return ir::MakeCast(type, x(i)); };
  const te::Tensor top = te::ReduceElements("T_max", x.shape(), reduced, true,
                                            Reducer::kMax, load);
  // The maximum is finite, also of infinite elements: m - m must be a number.
  const Expr largest = te::ReducerIdentity(Reducer::kMin, type);
  const auto finite_top = [&](const Indices& i) {
    return ir::Min(te::BroadcastLoad(top, i), largest);
  };
  const te::Tensor sum = te::ReduceElements(
      "T_exp_sum", x.shape(), reduced, keep_dims, Reducer::kSum,
      [&](const Indices& i) {
        return Call(Intrinsic::kExp, load(i) - finite_top(i));
      });
  return te::Compute("T_log_sum_exp", sum.shape(), [&](const Indices& i) {
    Indices at;
    size_t next = 0;
    for (size_t d = 0; d < reduced.size(); ++d) {
      const bool kept = keep_dims || !reduced[d];
      const Expr own = kept ? i[next++] : ir::IntConst(0);
      at.push_back(reduced[d] ? ir::IntConst(0) : own);
    }
    return te::Body(ir::MakeCast(
        x.dtype(), Call(Intrinsic::kLog, sum(i)) + finite_top(at)));
  });
}

te::Tensor Reduce(Form form, const te::Tensor& x, const Mask& reduced,
                  bool keep_dims) {
  const DataType dtype = x.dtype();
  const DataType type = AccumulatorType(form, dtype);
  if (form == Form::kLogSumExp) return LogSumExp(x, reduced, keep_dims, type);
  Reducer reducer = Reducer::kSum;
  Expr init;
  if (form == Form::kProd) reducer = Reducer::kProduct;
  if (form == Form::kMax || form == Form::kMin) {
    reducer = form == Form::kMax ? Reducer::kMax : Reducer::kMin;
    init = ExtremeStart(reducer, type);
  }
  const std::string name = std::string("T_") + OpOf(form);
  const te::Tensor total = te::ReduceElements(
      name, x.shape(), reduced, keep_dims, reducer,
      [&](const Indices& i) {
        const Expr e = ir::MakeCast(type, x(i));
        if (form == Form::kSumSquare || form == Form::kL2) return e * e;
        if (form == Form::kL1 && !type.is_uint()) {
          return Call(Intrinsic::kAbs, e);
        }
        return e;
      },
      init);
  double count = 1;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) count *= static_cast<double>(x.dim(static_cast<int>(d)));
  }
  const auto finish = [&](const Expr& e) -> Expr {
    switch (form) {
      case Form::kMean:
        // The mean of no integers is not defined, and without elements the
        // other extents may be any.
        return Divide(
            e, Number(type.is_float() ? count : std::clamp(count, 1.0, 1e15),
                      type));
      case Form::kL2:
        return Call(Intrinsic::kSqrt, e);
      case Form::kLogSum:
        return Call(Intrinsic::kLog, e);
      default:
        return e;
    }
  };
  const bool finishes =
      form == Form::kMean || form == Form::kL2 || form == Form::kLogSum;
  if (!finishes && type == dtype) return total;
  return te::Compute(name + "_result", total.shape(), [&](const Indices& i) {
    const Expr value = finish(total(i));
    return te::Body(dtype.is_bool()
                        ? ir::NE(value, ir::ConstOf(value->dtype, 0))
                        : ir::MakeCast(dtype, value));
  });
}

template <Form kForm>
Outputs ConvertReduce(Node& node) {
  const bool is_order = kForm == Form::kMax || kForm == Form::kMin;
  if (!is_order) TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  const bool keep_dims = node.Int("keepdims", 1) != 0;
  TF_ASSIGN_OR_RETURN(const std::vector<Mask> choices,
                      ReducedAxes(node, keep_dims));
  if (choices.size() > 1) {
    TF_ASSIGN_OR_RETURN(
        const ValueId y,
        node.builder().Compute(
            OpOf(kForm), {}, {node.Input(0), node.Input(1)},
            [&](const graph::Tensors& in) {
              graph::Tensors results;
              for (const Mask& choice : choices) {
                results.push_back(Reduce(kForm, in[0], choice, keep_dims));
              }
              return te::Compute(
                  "T_choice", results[0].shape(), [&](const Indices& i) {
                    Expr value = results.back()(i);
                    for (size_t c = choices.size() - 1; c-- > 0;) {
                      value = ir::MakeSelect(
                          IsChosen(in[1], in[0].shape(), choices[c]),
                          results[c](i), value);
                    }
                    return te::Body(value);
                  });
            }));
    return OneOutput(y);
  }
  const Mask& reduced = choices[0];
  const bool is_identity =
      std::find(reduced.begin(), reduced.end(), true) == reduced.end() &&
      (is_order || kForm == Form::kSum || kForm == Form::kMean ||
       kForm == Form::kProd);
  if (is_identity) return OneOutput(node.Input(0));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(OpOf(kForm), ReductionAttrs(reduced, keep_dims),
                             {node.Input(0)}, [&](const graph::Tensors& in) {
                               return Reduce(kForm, in[0], reduced, keep_dims);
                             }));
  return OneOutput(y);
}

// First the extreme value, then the first or last index that has it: both are
// reductions whose order is free.
template <bool kMaximum>
Outputs ConvertArg(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  const bool keep_dims = node.Int("keepdims", 1) != 0;
  const bool last = node.Int("select_last_index", 0) != 0;
  const std::vector<int64_t> shape = node.Shape(0);
  const auto axis = static_cast<size_t>(
      node.NormalizeAxis(node.Int("axis", 0), node.Rank(0)));
  TF_RETURN_IF_ERROR(node.status());
  const int64_t extent = shape[axis];
  if (extent == 0) return node.Invalid("axis ", axis, " has no elements");
  Mask reduced(shape.size());
  reduced[axis] = true;
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          kMaximum ? "argmax" : "argmin", ReductionAttrs(reduced, keep_dims),
          {node.Input(0)}, [&](const graph::Tensors& in) {
            const te::Tensor& x = in[0];
            const Reducer reducer = kMaximum ? Reducer::kMax : Reducer::kMin;
            const te::Tensor extreme = te::ReduceElements(
                "T_extreme", shape, reduced, true, reducer,
                [&](const Indices& i) { return x(i); },
                ExtremeStart(reducer, x.dtype()));
            // If elements are no numbers, none may equal the extreme; the index
            // is in range nevertheless.
            return te::ReduceElements(
                "T_index", shape, reduced, keep_dims,
                last ? Reducer::kMax : Reducer::kMin, [&](const Indices& i) {
                  const Expr e = x(i);
                  const Expr limit = te::BroadcastLoad(extreme, i);
                  return ir::MakeSelect(ir::EQ(e, limit), i[axis],
                                        ir::IntConst(last ? 0 : extent - 1));
                });
          }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> ReductionConverters() {
  return {
      {"ReduceSum", ConvertReduce<Form::kSum>},
      {"ReduceMean", ConvertReduce<Form::kMean>},
      {"ReduceMax", ConvertReduce<Form::kMax>},
      {"ReduceMin", ConvertReduce<Form::kMin>},
      {"ReduceProd", ConvertReduce<Form::kProd>},
      {"ReduceL1", ConvertReduce<Form::kL1>},
      {"ReduceL2", ConvertReduce<Form::kL2>},
      {"ReduceLogSum", ConvertReduce<Form::kLogSum>},
      {"ReduceLogSumExp", ConvertReduce<Form::kLogSumExp>},
      {"ReduceSumSquare", ConvertReduce<Form::kSumSquare>},
      {"ArgMax", ConvertArg<true>},
      {"ArgMin", ConvertArg<false>},
  };
}

}  // namespace tilefarm::onnx
