// Softmax, LogSoftmax and Hardmax. Before operator set 13 they treat the
// dimensions from `axis` on as one, afterwards they work along `axis` alone.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;
using te::Indices;
using te::Reducer;

// The dimensions over which the operator normalises.
absl::StatusOr<std::vector<bool>> NormalisedAxes(Node& node) {
  const bool flattens = node.opset() < 13;
  const int64_t axis =
      node.NormalizeAxis(node.Int("axis", flattens ? 1 : -1), node.Rank(0));
  TF_RETURN_IF_ERROR(node.status());
  std::vector<bool> reduced(static_cast<size_t>(node.Rank(0)));
  for (size_t d = 0; d < reduced.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    reduced[d] = dim == axis || (flattens && dim > axis);
  }
  return reduced;
}

ir::Attr AxisAttr(const std::vector<bool>& reduced) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) axes.push_back(static_cast<int64_t>(d));
  }
  return axes.size() == 1 ? ir::Attr(axes[0]) : IntList(axes);
}

template <bool kLog>
Outputs ConvertSoftmax(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  TF_ASSIGN_OR_RETURN(const std::vector<bool> reduced, NormalisedAxes(node));
  const DataType dtype = node.Dtype(0);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          kLog ? "nn.log_softmax" : "nn.softmax", {{"axis", AxisAttr(reduced)}},
          {node.Input(0)}, [&](const graph::Tensors& in) {
            return kLog ? LogSoftmaxOver(in[0], reduced, dtype)
                        : SoftmaxOver(in[0], reduced);
          }));
  return OneOutput(y);
}

// One where the element is the first of the largest ones, zero elsewhere.
Outputs ConvertHardmax(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  TF_ASSIGN_OR_RETURN(const std::vector<bool> reduced, NormalisedAxes(node));
  const std::vector<int64_t> shape = node.Shape(0);
  // The position among the normalised elements.
  const auto position = [&](const Indices& i) {
    Expr at = ir::IntConst(0);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (reduced[d]) at = at * shape[d] + i[d];
    }
    return at;
  };
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "hardmax", {{"axis", AxisAttr(reduced)}}, {node.Input(0)},
          [&](const graph::Tensors& in) {
            const te::Tensor& x = in[0];
            const te::Tensor top = te::ReduceElements(
                "T_max", shape, reduced, true, Reducer::kMax,
                [&](const Indices& i) { return x(i); },
                ExtremeStart(Reducer::kMax, x.dtype()));
            const Expr none =
                te::ReducerIdentity(Reducer::kMin, DataType::Index());
            const te::Tensor first = te::ReduceElements(
                "T_first", shape, reduced, true, Reducer::kMin,
                [&](const Indices& i) {
                  return ir::MakeSelect(ir::EQ(x(i), te::BroadcastLoad(top, i)),
                                        position(i), none);
                });
            return te::Compute("T_hardmax", shape, [&](const Indices& i) {
              return te::Body(ir::MakeSelect(
                  ir::EQ(position(i), te::BroadcastLoad(first, i)),
                  ir::ConstOf(x.dtype(), 1), ir::ConstOf(x.dtype(), 0)));
            });
          }));
  return OneOutput(y);
}

}  // namespace

te::Tensor SoftmaxOver(const te::Tensor& x, const std::vector<bool>& reduced) {
  const DataType type = ComputeType(x.dtype());
  const auto load = [&](const Indices& i) { return ir::MakeCast(type, x(i)); };
  const te::Tensor top = te::ReduceElements("T_softmax_maxelem", x.shape(),
                                            reduced, true, Reducer::kMax, load);
  const te::Tensor e =
      te::Compute("T_softmax_exp", x.shape(), [&](const Indices& i) {
        return te::Body(
            Call(Intrinsic::kExp, load(i) - te::BroadcastLoad(top, i)));
      });
  const te::Tensor sum =
      te::ReduceElements("T_softmax_expsum", x.shape(), reduced, true,
                         Reducer::kSum, [&](const Indices& i) { return e(i); });
  return te::Compute("T_softmax_norm", x.shape(), [&](const Indices& i) {
    return te::Body(
        ir::MakeCast(x.dtype(), Divide(e(i), te::BroadcastLoad(sum, i))));
  });
}

te::Tensor LogSoftmaxOver(const te::Tensor& x, const std::vector<bool>& reduced,
                          DataType result) {
  const DataType type = ComputeType(x.dtype());
  const auto load = [&](const Indices& i) { return ir::MakeCast(type, x(i)); };
  const te::Tensor top = te::ReduceElements("T_softmax_maxelem", x.shape(),
                                            reduced, true, Reducer::kMax, load);
  const te::Tensor sum = te::ReduceElements(
      "T_softmax_expsum", x.shape(), reduced, true, Reducer::kSum,
      [&](const Indices& i) {
        return Call(Intrinsic::kExp, load(i) - te::BroadcastLoad(top, i));
      });
  return te::Compute("T_log_softmax", x.shape(), [&](const Indices& i) {
    return te::Body(ir::MakeCast(
        result, load(i) - te::BroadcastLoad(top, i) -
                    Call(Intrinsic::kLog, te::BroadcastLoad(sum, i))));
  });
}

std::vector<Converter> SoftmaxConverters() {
  return {
      {"Softmax", ConvertSoftmax<false>},
      {"LogSoftmax", ConvertSoftmax<true>},
      {"Hardmax", ConvertHardmax},
  };
}

}  // namespace tilefarm::onnx
