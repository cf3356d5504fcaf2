// What the converters of quantised operators share. Private to this folder.
//
// A quantised tensor stands for (stored - zero_point) * scale, with one scale
// and zero point for the tensor, for each index of one axis, or for each block
// of elements along an axis.
#ifndef TILEFARM_COMPILER_ONNX_QUANTIZE_EXPR_H_
#define TILEFARM_COMPILER_ONNX_QUANTIZE_EXPR_H_

#include <optional>
#include <vector>

#include "compiler/onnx/expressions.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/small_types.h"
#include "compiler/te/tensor.h"

namespace tilefarm::onnx {

// The inputs of one graph call, collected while a converter decides what it
// needs.
class CallInputs {
 public:
  // The position of the value among the call's tensors.
  int Add(ValueId value) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] == value) return static_cast<int>(i);
    }
    values_.push_back(value);
    return static_cast<int>(values_.size()) - 1;
  }
  const std::vector<ValueId>& values() const { return values_; }

 private:
  std::vector<ValueId> values_;
};

// Which element of a scale or zero point belongs to an element of the tensor.
struct ScaleLayout {
  enum Kind { kTensor, kAxis, kBlocked } kind = kTensor;
  int axis = 0;
  int64_t block_size = 1;
};

// InvalidArgument: input `i`, a scale or zero point of a tensor of shape
// `shape`, has an impossible shape. Per tensor if it has one element.
absl::StatusOr<ScaleLayout> LayoutOfScale(Node& node, int i,
                                          const std::vector<int64_t>& shape,
                                          int64_t axis, int64_t block_size);
// The element for index `i` of the tensor.
ir::Expr ReadScale(const te::Tensor& scale, const ScaleLayout& layout,
                   const te::Indices& i);

// A zero point or scale with one element, or none at all. 0 is part of the
// program, which needs no zero point then; other constants are not, so that
// layers that differ by them have the same program.
class Scalar {
 public:
  // A missing input has the value `absent`. InvalidArgument: the input has more
  // than one element.
  static absl::StatusOr<Scalar> Make(Node& node, int i, CallInputs& inputs,
                                     double absent);
  // The element, cast to `dtype`.
  ir::Expr Read(const graph::Tensors& in, ir::DataType dtype) const;

 private:
  std::optional<double> constant_;
  int position_ = 0;
};

// The element type of a quantised tensor.
struct QuantizedType {
  int onnx_type = 0;
  ir::DataType storage;
  const SmallType* small = nullptr;
  double min = 0;
  double max = 0;

  bool is_float() const { return small != nullptr && small->is_float; }
  // What `Imported` takes.
  int small_type() const { return small == nullptr ? 0 : onnx_type; }
};
// nullopt: no type that quantisation gives.
std::optional<QuantizedType> FindQuantizedType(int onnx_type);

// `x - y` of float32, where `y` is left out if it is the constant 0.
ir::Expr Minus(const ir::Expr& x, const ir::Expr& y);
// saturate(round(x) + zero_point), for float32 arguments; `zero_point` may be
// null.
ir::Expr RoundAndSaturate(const ir::Expr& x, const ir::Expr& zero_point,
                          const QuantizedType& type, bool saturate = true);
// float32(stored - zero_point), where `zero_point` is int32.
ir::Expr Centred(const ir::Expr& stored, const ir::Expr& zero_point);

// As the operator; gives the tensor, its scale and its zero point.
Outputs ConvertDynamicQuantizeLinear(Node& node);

// An element of `a` seen through the shape to which it broadcasts, as in NumPy.
ir::Expr BroadcastRead(const te::Tensor& a, const te::Indices& i);
// nullopt: the shapes do not fit.
std::optional<std::vector<int64_t>> BroadcastShapes(
    const std::vector<int64_t>& a, const std::vector<int64_t>& b);

inline bool IsByte(ir::DataType dtype) {
  return dtype == ir::DataType::Int(8) || dtype == ir::DataType::UInt(8);
}
// int8 or uint8: the type of the zero point that is input `i`, or `otherwise`
// where there is none.
absl::StatusOr<QuantizedType> ByteResultType(Node& node, int i,
                                             ir::DataType otherwise);

// Operators of float32 expressions.
inline ir::Expr Float32(double value) {
  return ir::FloatConst(value, ir::DataType::Float(32));
}
inline ir::Expr ToFloat32(const ir::Expr& x) {
  return ir::MakeCast(ir::DataType::Float(32), x);
}
inline ir::Expr Over(const ir::Expr& a, const ir::Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kDiv, a, b);
}

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_QUANTIZE_EXPR_H_
