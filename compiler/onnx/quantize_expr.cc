#include "compiler/onnx/quantize_expr.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

absl::StatusOr<ScaleLayout> LayoutOfScale(Node& node, int i,
                                          const std::vector<int64_t>& shape,
                                          int64_t axis, int64_t block_size) {
  const std::vector<int64_t>& own = node.Shape(i);
  TF_RETURN_IF_ERROR(node.status());
  const auto rank = static_cast<int64_t>(shape.size());
  const auto fail = [&] {
    return node.Invalid("input ", i, " has shape [", absl::StrJoin(own, ", "),
                        "], which does not fit the tensor's shape [",
                        absl::StrJoin(shape, ", "), "], axis ", axis,
                        " and block_size ", block_size);
  };
  if (block_size < 0) return fail();
  if (std::all_of(own.begin(), own.end(), [](int64_t n) { return n == 1; }) &&
      (block_size == 0 || own.empty())) {
    return ScaleLayout{};
  }
  // A vector has one axis, whatever the attribute's default is.
  if (rank == 1) axis = 0;
  if (axis < -rank || axis >= rank) return fail();
  if (axis < 0) axis += rank;
  if (block_size == 0) {
    if (own.size() != 1 || own[0] != shape[axis]) return fail();
    return ScaleLayout{ScaleLayout::kAxis, static_cast<int>(axis), 1};
  }
  if (own.size() != shape.size()) return fail();
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent =
        d == axis ? shape[d] / block_size + (shape[d] % block_size != 0)
                  : shape[d];
    if (own[d] != extent) return fail();
  }
  return ScaleLayout{ScaleLayout::kBlocked, static_cast<int>(axis), block_size};
}

Expr ReadScale(const te::Tensor& scale, const ScaleLayout& layout,
               const te::Indices& i) {
  switch (layout.kind) {
    case ScaleLayout::kTensor:
      break;
    case ScaleLayout::kAxis:
      return scale({i[layout.axis]});
    case ScaleLayout::kBlocked: {
      te::Indices at = i;
      at[layout.axis] =
          ir::FloorDiv(i[layout.axis], IntConst(layout.block_size));
      return scale(at);
    }
  }
  return scale(te::Indices(scale.ndim(), IntConst(0)));
}

absl::StatusOr<Scalar> Scalar::Make(Node& node, int i, CallInputs& inputs,
                                    double absent) {
  Scalar scalar;
  if (!node.HasInput(i)) {
    scalar.constant_ = absent;
    return scalar;
  }
  const TensorType& type = node.Type(i);
  if (type.num_elements() != 1) {
    return node.Invalid("input ", i, " must have one element, it is ",
                        type.ToString());
  }
  if (node.IsConstant(i)) {
    TF_ASSIGN_OR_RETURN(const std::vector<double> values, node.ConstDoubles(i));
    if (values[0] == 0) {
      scalar.constant_ = 0;
      return scalar;
    }
  }
  scalar.position_ = inputs.Add(node.Input(i));
  return scalar;
}

Expr Scalar::Read(const graph::Tensors& in, DataType dtype) const {
  if (constant_.has_value()) {
    return dtype.is_float() ? ir::FloatConst(*constant_, dtype)
                            : IntConst(static_cast<int64_t>(*constant_), dtype);
  }
  const te::Tensor& tensor = in[position_];
  return ir::MakeCast(dtype, tensor(te::Indices(tensor.ndim(), IntConst(0))));
}

std::optional<QuantizedType> FindQuantizedType(int onnx_type) {
  QuantizedType type;
  type.onnx_type = onnx_type;
  type.small = FindSmallType(onnx_type);
  const std::optional<DataType> storage = StorageDtypeOf(onnx_type);
  if (!storage.has_value()) return std::nullopt;
  type.storage = *storage;
  if (type.small != nullptr) {
    if (type.small->is_power()) return std::nullopt;
    type.min = type.small->min;
    type.max = type.small->max;
    return type;
  }
  if (!storage->is_integral() || storage->is_bool() || storage->bits > 16) {
    return std::nullopt;
  }
  const int64_t count = int64_t{1} << storage->bits;
  type.min = storage->is_int() ? static_cast<double>(-count / 2) : 0;
  type.max = type.min + static_cast<double>(count - 1);
  return type;
}

absl::StatusOr<QuantizedType> ByteResultType(Node& node, int i,
                                             DataType otherwise) {
  const DataType dtype = node.HasInput(i) ? node.Dtype(i) : otherwise;
  if (!IsByte(dtype)) {
    return node.Unsupported("a result of type ", dtype.ToString());
  }
  return *FindQuantizedType(dtype == DataType::UInt(8) ? 2 : 3);
}

Expr Minus(const Expr& x, const Expr& y) {
  const auto* constant = ir::As<ir::FloatConstNode>(y);
  if (constant != nullptr && constant->value == 0) return x;
  return ir::MakeBinary(ir::BinaryOp::kSub, x, y);
}

Expr RoundAndSaturate(const Expr& x, const Expr& zero_point,
                      const QuantizedType& type, bool saturate) {
  if (type.is_float()) return EncodeSmall(*type.small, x, saturate);
  Expr rounded = ir::MakeCall(ir::Intrinsic::kNearbyint, {x});
  if (zero_point != nullptr) rounded = Plus(rounded, zero_point);
  return ir::MakeCast(type.storage, ir::Min(ir::Max(rounded, Float32(type.min)),
                                            Float32(type.max)));
}

Expr Centred(const Expr& stored, const Expr& zero_point) {
  return ToFloat32(ir::MakeCast(DataType::Int(32), stored) - zero_point);
}

Expr BroadcastRead(const te::Tensor& a, const te::Indices& i) {
  te::Indices own;
  const size_t skip = i.size() - a.ndim();
  for (int d = 0; d < a.ndim(); ++d) {
    own.push_back(a.dim(d) == 1 ? IntConst(0) : i[skip + d]);
  }
  return a(std::move(own));
}

std::optional<std::vector<int64_t>> BroadcastShapes(
    const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> shape = a.size() >= b.size() ? a : b;
  const std::vector<int64_t>& other = a.size() >= b.size() ? b : a;
  const size_t skip = shape.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& extent = shape[skip + d];
    if (extent == other[d] || other[d] == 1) continue;
    if (extent != 1) return std::nullopt;
    extent = other[d];
  }
  return shape;
}

}  // namespace tilefarm::onnx
