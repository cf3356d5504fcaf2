#include "compiler/onnx/expressions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace tilefarm::onnx {

using ir::DataType;
using ir::Expr;

DataType ComputeType(DataType dtype) {
  return dtype.is_float() && dtype.bits == 16 ? DataType::Float(32) : dtype;
}

DataType FloatComputeType(DataType dtype) {
  return dtype.is_float() ? ComputeType(dtype) : DataType::Float(64);
}

DataType SumType(DataType dtype) {
  return dtype == DataType::Float(64) ? dtype : DataType::Float(32);
}

Expr Number(double value, DataType dtype) {
  if (!dtype.is_float()) {
    return ir::IntConst(static_cast<int64_t>(value), dtype);
  }
  if (dtype.bits < 64) value = static_cast<float>(value);
  return ir::FloatConst(value, dtype);
}

Expr Divide(Expr a, Expr b) {
  return ir::MakeBinary(ir::BinaryOp::kDiv, std::move(a), std::move(b));
}

Expr Call(ir::Intrinsic function, Expr x) {
  return ir::MakeCall(function, {std::move(x)});
}

Expr Floor(Expr x) { return Call(ir::Intrinsic::kFloor, std::move(x)); }

absl::Status CheckKind(Node& node, int i, DtypeKind kind) {
  const DataType dtype = node.Dtype(i);
  const auto fail = [&](const char* expected) {
    return node.Invalid("input ", i, " has dtype ", dtype.ToString(), ", not ",
                        expected);
  };
  switch (kind) {
    case DtypeKind::kFloat:
      if (!dtype.is_float()) return fail("a float");
      break;
    case DtypeKind::kInteger:
      if (!dtype.is_integral()) return fail("an integer");
      break;
    case DtypeKind::kBool:
      if (!dtype.is_bool()) return fail("bool");
      break;
    case DtypeKind::kNumber:
      if (dtype.is_bool()) return fail("a number");
      break;
  }
  return absl::OkStatus();
}

absl::Status CheckEqualDtypes(Node& node, const std::vector<ValueId>& inputs) {
  for (ValueId id : inputs) {
    const DataType first = node.builder().type(inputs[0]).dtype;
    const DataType other = node.builder().type(id).dtype;
    if (first != other) {
      return node.Invalid("inputs of dtypes ", first.ToString(), " and ",
                          other.ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> BroadcastShape(
    Node& node, const std::vector<ValueId>& inputs) {
  std::vector<int64_t> out;
  for (ValueId id : inputs) {
    const std::vector<int64_t>& shape = node.builder().shape(id);
    if (shape.size() > out.size()) {
      out.insert(out.begin(), shape.size() - out.size(), 1);
    }
    const size_t skip = out.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& extent = out[skip + d];
      if (extent != shape[d] && extent != 1 && shape[d] != 1) {
        return node.Invalid("shape [", absl::StrJoin(shape, ", "),
                            "] does not broadcast to [",
                            absl::StrJoin(out, ", "), "]");
      }
      if (extent == 1) extent = shape[d];
    }
  }
  return out;
}

absl::Status CheckBroadcastsTo(Node& node, int i, std::vector<int64_t> shape) {
  const std::vector<int64_t>& own = node.Shape(i);
  bool fits = own.size() <= shape.size();
  for (size_t d = 0; fits && d < own.size(); ++d) {
    fits = own[d] == 1 || own[d] == shape[shape.size() - own.size() + d];
  }
  if (fits) return absl::OkStatus();
  return node.Invalid("input ", i, " of shape [", absl::StrJoin(own, ", "),
                      "] does not broadcast to [", absl::StrJoin(shape, ", "),
                      "]");
}

Expr OnlyElement(const te::Tensor& a) {
  return a(te::Indices(static_cast<size_t>(a.ndim()), ir::IntConst(0)));
}

absl::StatusOr<ValueId> Elementwise(Node& node, const std::string& op,
                                    ir::AttrMap attrs,
                                    const std::vector<ValueId>& inputs,
                                    const ElementFunction& f) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                      BroadcastShape(node, inputs));
  std::string name = "T_" + op;
  std::replace(name.begin(), name.end(), '.', '_');
  return node.builder().Compute(
      op, std::move(attrs), inputs, [&](const graph::Tensors& in) {
        return te::Compute(name, shape, [&](const te::Indices& i) {
          std::vector<Expr> elements;
          for (const te::Tensor& tensor : in) {
            elements.push_back(te::BroadcastLoad(tensor, i, shape));
          }
          return te::Body(f(elements));
        });
      });
}

Expr ExtremeStart(te::Reducer reducer, DataType dtype) {
  if (!dtype.is_float()) return nullptr;
  const double infinity = std::numeric_limits<double>::infinity();
  return ir::FloatConst(reducer == te::Reducer::kMax ? -infinity : infinity,
                        dtype);
}

ir::Attr IntList(const std::vector<int64_t>& values) {
  ir::AttrList list;
  for (int64_t value : values) list.emplace_back(value);
  return ir::Attr(std::move(list));
}

}  // namespace tilefarm::onnx
