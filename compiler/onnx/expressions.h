// What converters of elementwise operators, reductions and normalisations
// share: dtypes, constants, broadcasting. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_EXPRESSIONS_H_
#define TILEFARM_COMPILER_ONNX_EXPRESSIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/onnx/node.h"
#include "compiler/te/reductions.h"

namespace tilefarm::onnx {

// The dtype in which a formula of several steps is computed: float32 for
// floats of 16 bits, otherwise the dtype itself.
ir::DataType ComputeType(ir::DataType dtype);
// The same, but float64 for integers: for formulas with float functions.
ir::DataType FloatComputeType(ir::DataType dtype);
// The dtype in which contributed operators add: float64 for float64, otherwise
// float32.
ir::DataType SumType(ir::DataType dtype);

// A constant, rounded to float32 where that is the dtype. An integer dtype
// takes the truncated value, which must be in range.
ir::Expr Number(double value, ir::DataType dtype);
ir::Expr Divide(ir::Expr a, ir::Expr b);
ir::Expr Call(ir::Intrinsic function, ir::Expr x);
ir::Expr Floor(ir::Expr x);
// Of any operands, also of constants: nothing is folded.
inline ir::Expr Plus(const ir::Expr& a, const ir::Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kAdd, a, b);
}
inline ir::Expr Times(const ir::Expr& a, const ir::Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kMul, a, b);
}

enum class DtypeKind { kFloat, kInteger, kBool, kNumber };
// InvalidArgument: the dtype of input `i` is not of this kind.
absl::Status CheckKind(Node& node, int i, DtypeKind kind);
// InvalidArgument: the inputs do not all have the dtype of the first.
absl::Status CheckEqualDtypes(Node& node, const std::vector<ValueId>& inputs);

// The shape that all inputs broadcast to. InvalidArgument: there is none.
absl::StatusOr<std::vector<int64_t>> BroadcastShape(
    Node& node, const std::vector<ValueId>& inputs);
// InvalidArgument: input `i` does not broadcast to `shape` without changing it.
absl::Status CheckBroadcastsTo(Node& node, int i, std::vector<int64_t> shape);

// The only element of a tensor of any rank; within te::Compute.
ir::Expr OnlyElement(const te::Tensor& a);

// One call whose result is f(elements of the inputs), which broadcast.
using ElementFunction =
    std::function<ir::Expr(const std::vector<ir::Expr>& elements)>;
absl::StatusOr<ValueId> Elementwise(Node& node, const std::string& op,
                                    ir::AttrMap attrs,
                                    const std::vector<ValueId>& inputs,
                                    const ElementFunction& f);

// What a maximum or minimum over all values of the dtype starts from: infinity
// with its sign for floats, otherwise null, the reducer's own value.
ir::Expr ExtremeStart(te::Reducer reducer, ir::DataType dtype);

// Softmax and its logarithm over the dimensions that `reduced` marks, the
// maximum subtracted. The logarithm has the dtype `result`.
te::Tensor SoftmaxOver(const te::Tensor& x, const std::vector<bool>& reduced);
te::Tensor LogSoftmaxOver(const te::Tensor& x, const std::vector<bool>& reduced,
                          ir::DataType result);

// An attribute with a list of integers.
ir::Attr IntList(const std::vector<int64_t>& values);

inline std::vector<Imported> OneOutput(ValueId value) { return {value}; }

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_EXPRESSIONS_H_
