// Pow. The result has the dtype of the base; the exponent may have another.
#include <optional>
#include <utility>

#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

// base^exponent of integers by repeated squaring: the loop has as many steps as
// an exponent has bits, and products wrap.
constexpr const char* kIntegerPower = R"(
@T.prim_func
def power(B: T.Buffer(($0,), "int64"), E: T.Buffer(($0,), "int64"),
          P: T.Buffer(($0,), "int64")):
    S = T.alloc_buffer(($0,), "int64")
    for i in T.serial($0):
        with T.block("start"):
            v = T.axis.spatial($0, i)
            P[v] = T.int64(1)
            S[v] = B[v]
    for i, k in T.grid($0, 64):
        with T.block("square"):
            v = T.axis.spatial($0, i)
            vk = T.axis.opaque(64, k)
            P[v] = P[v] * T.Select(((E[v] >> vk) & 1) == 1, S[v], T.int64(1))
            S[v] = S[v] * S[v]
)";

// The tensor broadcast to `shape`, as a vector of int64.
absl::StatusOr<ValueId> FlatInt64(Node& node, ValueId x, int64_t count,
                                  const std::vector<int64_t>& shape) {
  return node.builder().Compute(
      "reshape", {}, {x}, [&](const graph::Tensors& in) {
        return te::Compute("T_reshape", {count}, [&](const te::Indices& i) {
          te::Indices at(shape.size());
          Expr rest = i[0];
          for (size_t d = shape.size(); d-- > 0;) {
            at[d] = d == 0 ? rest : ir::FloorMod(rest, ir::IntConst(shape[d]));
            rest = ir::FloorDiv(rest, ir::IntConst(shape[d]));
          }
          return te::Body(
              ir::MakeCast(DataType::Int(64), te::BroadcastLoad(in[0], at)));
        });
      });
}

Outputs ConvertIntegerPow(Node& node) {
  const ValueId base = node.Input(0);
  const ValueId exponent = node.Input(1);
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                      BroadcastShape(node, {base, exponent}));
  const TensorType type{node.Dtype(0), shape};
  double elements = 1;
  for (int64_t extent : shape) elements *= static_cast<double>(extent);
  if (elements > static_cast<double>(int64_t{1} << 40)) {
    return node.Invalid("the result has more than 2^40 elements");
  }
  const int64_t count = static_cast<int64_t>(elements);
  if (count == 0) {
    return OneOutput(
        node.builder().Constant("power", type, graph::TensorData()));
  }
  TF_ASSIGN_OR_RETURN(const ValueId flat_base,
                      FlatInt64(node, base, count, shape));
  TF_ASSIGN_OR_RETURN(const ValueId flat_exponent,
                      FlatInt64(node, exponent, count, shape));
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> power,
      node.builder().CallText("power", {}, {flat_base, flat_exponent},
                              absl::Substitute(kIntegerPower, count)));
  const bool may_be_negative = node.Dtype(1).is_int();
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "reshape", {}, {flat_base, flat_exponent, power[0]},
          [&](const graph::Tensors& in) {
            return te::Compute("T_power", shape, [&](const te::Indices& i) {
              Expr at = ir::IntConst(0);
              for (size_t d = 0; d < shape.size(); ++d) {
                at = at * shape[d] + i[d];
              }
              Expr value = in[2]({at});
              if (may_be_negative) {
                // 1 / b^n truncates to 0 unless b is 1 or -1.
                const Expr b = in[0]({at});
                const Expr vanishes =
                    ir::And(ir::LT(in[1]({at}), ir::IntConst(0)),
                            ir::NE(b * b, ir::IntConst(1)));
                value = ir::MakeSelect(vanishes, ir::IntConst(0), value);
              }
              return te::Body(ir::MakeCast(type.dtype, value));
            });
          }));
  return OneOutput(y);
}

// The exponent if it is one constant number.
absl::StatusOr<std::optional<double>> ConstantScalar(Node& node, int i) {
  if (node.Type(i).num_elements() != 1 || !node.IsConstant(i)) {
    return std::optional<double>();
  }
  TF_ASSIGN_OR_RETURN(const std::vector<double> values, node.ConstDoubles(i));
  return std::optional<double>(values[0]);
}

// The result has the dtype of the base.
Outputs ConvertPow(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kNumber));
  const std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
  TF_ASSIGN_OR_RETURN(const std::optional<double> constant,
                      ConstantScalar(node, 1));
  const DataType dtype = node.Dtype(0);
  const bool is_square = constant == 2.0;
  if ((is_square || constant == 3.0) && node.Rank(1) <= node.Rank(0)) {
    const DataType type = ComputeType(dtype);
    TF_ASSIGN_OR_RETURN(
        const ValueId y,
        Elementwise(node, "power", {{"exponent", is_square ? 2 : 3}},
                    {inputs[0]}, [&](const std::vector<Expr>& x) {
                      const Expr b = ir::MakeCast(type, x[0]);
                      return ir::MakeCast(dtype, is_square ? b * b : b * b * b);
                    }));
    return OneOutput(y);
  }
  if (!dtype.is_float() && !node.Dtype(1).is_float()) {
    return ConvertIntegerPow(node);
  }
  const DataType type = FloatComputeType(dtype);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "power", {}, inputs, [&](const std::vector<Expr>& x) {
        return ir::MakeCast(
            dtype, ir::MakeCall(Intrinsic::kPow, {ir::MakeCast(type, x[0]),
                                                  ir::MakeCast(type, x[1])}));
      }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> PowerConverters() { return {{"Pow", ConvertPow}}; }

}  // namespace tilefarm::onnx
