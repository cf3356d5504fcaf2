// Conversions between dtypes, and tests of float classes.
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/small_types.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

// Floats truncate toward zero; integers wrap; every number but 0 is true.
Outputs CastTo(Node& node, DataType dtype) {
  const ValueId x = node.Input(0);
  if (node.Dtype(0) == dtype) return OneOutput(x);
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Elementwise(node, "astype", {{"dtype", dtype.ToString()}},
                                  {x}, [&](const std::vector<Expr>& in) {
                                    if (dtype.is_bool()) {
                                      return ir::NE(
                                          in[0], ir::ConstOf(in[0]->dtype, 0));
                                    }
                                    return ir::MakeCast(dtype, in[0]);
                                  }));
  return OneOutput(y);
}

// What only matters for types of 4 and 8 bits.
void IgnoreSmallTypes(const Node& node) {
  node.Ignore("saturate");
  node.Ignore("round_mode");
}

Outputs ConvertCast(Node& node) {
  const int64_t to = node.Int("to", 0);
  IgnoreSmallTypes(node);
  if (InvolvesSmallType(node)) {
    return ConvertSmallCast(node, static_cast<int>(to));
  }
  const auto dtype = DtypeOf(static_cast<int>(to));
  if (to != static_cast<int>(to) || !dtype.has_value()) {
    return node.Unsupported("attribute to=", to);
  }
  return CastTo(node, *dtype);
}

Outputs ConvertCastLike(Node& node) {
  IgnoreSmallTypes(node);
  if (InvolvesSmallType(node)) return ConvertSmallCast(node, node.OnnxType(1));
  return CastTo(node, node.Dtype(1));
}

Outputs ConvertBitCast(Node& node) {
  const int64_t to = node.Int("to", 0);
  const auto dtype = DtypeOf(static_cast<int>(to));
  if (to != static_cast<int>(to) || !dtype.has_value()) {
    return node.Unsupported("attribute to=", to);
  }
  const DataType from = node.Dtype(0);
  if (from.bytes() != dtype->bytes()) {
    return node.Invalid(from.ToString(), " and ", dtype->ToString(),
                        " differ in size");
  }
  // A bool is the byte 0 or 1; another byte is not a bool.
  if (from != *dtype &&
      (from.is_float() || dtype->is_float() || dtype->is_bool())) {
    return node.Unsupported("from ", from.ToString(), " to ",
                            dtype->ToString());
  }
  return CastTo(node, *dtype);
}

Outputs ConvertIsNan(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const DataType type = ComputeType(node.Dtype(0));
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Elementwise(node, "isnan", {}, {node.Input(0)},
                                  [&](const std::vector<Expr>& x) {
                                    return Call(Intrinsic::kIsNan,
                                                ir::MakeCast(type, x[0]));
                                  }));
  return OneOutput(y);
}

Outputs ConvertIsInf(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const bool positive = node.Int("detect_positive", 1) != 0;
  const bool negative = node.Int("detect_negative", 1) != 0;
  const DataType type = ComputeType(node.Dtype(0));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "isinf", {}, {node.Input(0)},
                  [&](const std::vector<Expr>& in) {
                    const Expr x = ir::MakeCast(type, in[0]);
                    const Expr zero = ir::ConstOf(type, 0);
                    if (!positive && !negative) return ir::BoolConst(false);
                    const Expr infinite = Call(Intrinsic::kIsInf, x);
                    if (positive && negative) return infinite;
                    return ir::And(
                        infinite, positive ? ir::GT(x, zero) : ir::LT(x, zero));
                  }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> CastConverters() {
  return {
      {"Cast", ConvertCast},       {"CastLike", ConvertCastLike},
      {"BitCast", ConvertBitCast}, {"IsNaN", ConvertIsNan},
      {"IsInf", ConvertIsInf},
  };
}

}  // namespace tilefarm::onnx
