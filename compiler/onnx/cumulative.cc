// Operators whose elements are computed in order: CumSum, CumProd, Det.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using te::Indices;

// The value as a vector of one int64.
absl::StatusOr<ValueId> ScalarAsInt64(Node& node, ValueId x) {
  return node.builder().Compute(
      "astype", {}, {x}, [](const graph::Tensors& in) {
        return te::Compute("T_axis", {1}, [&](const Indices&) {
          return te::Body(ir::MakeCast(DataType::Index(), OnlyElement(in[0])));
        });
      });
}

struct Scan {
  std::vector<int64_t> shape;
  DataType dtype;
  DataType type;  // of the accumulator
  bool product = false;
  bool exclusive = false;
  bool reverse = false;
  int64_t axis = -1;  // -1: known at run time
};

// One loop nest in row-major order, backwards in every dimension if the scan is
// reversed: the element before on any axis is computed already, so the axis may
// be known at run time only.
std::string ScanText(const Scan& scan) {
  const auto rank = static_cast<int64_t>(scan.shape.size());
  const bool runtime = scan.axis < 0;
  // The indices, one step back along `axis` unless that is -1.
  const auto at = [&](int64_t axis) {
    std::vector<std::string> indices;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t back = d == axis ? 1 : 0;
      const int64_t extent = scan.shape[static_cast<size_t>(d)];
      indices.push_back(scan.reverse
                            ? absl::StrCat(extent - 1 + back, " - v", d)
                        : back == 1 ? absl::StrCat("v", d, " - 1")
                                    : absl::StrCat("v", d));
    }
    return absl::StrJoin(indices, ", ");
  };
  const std::string type = scan.type.ToString();
  const auto load = [&](int64_t axis) {
    const std::string element = absl::StrCat("X[", at(axis), "]");
    return scan.dtype == scan.type
               ? element
               : absl::StrCat("T.Cast(\"", type, "\", ", element, ")");
  };
  const char* op = scan.product ? " * " : " + ";
  const std::string start =
      absl::StrCat("T.Cast(\"", type, "\", ", scan.product ? 1 : 0, ")");
  // The accumulated elements before this one.
  std::string before = start;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (!runtime && axis != scan.axis) continue;
    std::string previous = absl::StrCat("Y[", at(axis), "]");
    if (scan.exclusive) previous = absl::StrCat(previous, op, load(axis));
    std::string condition = absl::StrCat("v", axis, " > 0");
    if (runtime) {
      condition = absl::StrCat("(A[0] == ", axis, " or A[0] == ", axis - rank,
                               ") and ", condition);
    }
    before = absl::StrCat("T.if_then_else(", condition, ", ", previous, ", ",
                          before, ")");
  }
  std::string value = before;
  if (!scan.exclusive) value = absl::StrCat(load(-1), op, before);

  const std::string shape = absl::StrCat(absl::StrJoin(scan.shape, ", "), ",");
  std::vector<std::string> loops, bindings;
  for (int64_t d = 0; d < rank; ++d) {
    loops.push_back(absl::StrCat("i", d));
    const bool ordered = runtime || d == scan.axis;
    bindings.push_back(absl::StrCat(
        "            v", d, " = T.axis.", ordered ? "opaque" : "spatial", "(",
        scan.shape[static_cast<size_t>(d)], ", i", d, ")\n"));
  }
  return absl::StrCat(
      "@T.prim_func\ndef scan(X: T.Buffer((", shape, "), \"",
      scan.dtype.ToString(), "\"),\n",
      runtime ? "         A: T.Buffer((1,), \"int64\"),\n" : "",
      "         Y: T.Buffer((", shape, "), \"", type, "\")):\n",
      rank == 1
          ? absl::StrCat("    for i0 in T.serial(", scan.shape[0], "):\n")
          : absl::StrCat("    for ", absl::StrJoin(loops, ", "), " in T.grid(",
                         absl::StrJoin(scan.shape, ", "), "):\n"),
      "        with T.block(\"scan\"):\n", absl::StrJoin(bindings, ""),
      "            Y[", at(-1), "] = ", value, "\n");
}

template <bool kProduct>
Outputs ConvertCumulative(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  const TensorType x = node.Type(0);
  Scan scan{x.shape, x.dtype, ComputeType(x.dtype)};
  scan.product = kProduct;
  scan.exclusive = node.Int("exclusive", 0) != 0;
  scan.reverse = node.Int("reverse", 0) != 0;
  TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kInteger));
  if (node.Type(1).num_elements() != 1) {
    return node.Invalid("input 1 (axis) must be a scalar");
  }
  if (x.shape.empty()) return node.Invalid("the input has no axes");
  std::vector<ValueId> inputs = {node.Input(0)};
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> axis, node.ConstInts(1));
    scan.axis = node.NormalizeAxis(axis[0], x.ndim());
    TF_RETURN_IF_ERROR(node.status());
  } else {
    TF_ASSIGN_OR_RETURN(const ValueId axis, ScalarAsInt64(node, node.Input(1)));
    inputs.push_back(axis);
  }
  if (x.num_elements() == 0) return OneOutput(inputs[0]);
  ir::AttrMap attrs = {{"exclusive", scan.exclusive},
                       {"reverse", scan.reverse}};
  if (scan.axis >= 0) attrs["axis"] = scan.axis;
  TF_ASSIGN_OR_RETURN(const std::vector<ValueId> sums,
                      node.builder().CallText(kProduct ? "cumprod" : "cumsum",
                                              attrs, inputs, ScanText(scan)));
  if (scan.type == scan.dtype) return OneOutput(sums[0]);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "astype", {{"dtype", scan.dtype.ToString()}}, {sums[0]},
                  [&](const std::vector<Expr>& e) {
                    return ir::MakeCast(scan.dtype, e[0]);
                  }));
  return OneOutput(y);
}

// --- Det -----------------------------------------------------------------

// Gaussian elimination with partial pivoting of $0 matrices with $1 rows of
// $2: the determinant is the product of the pivots, negated for each exchange
// of rows. P holds the row of the pivot and S one element during an exchange.
// A column without a pivot makes the product 0, and nothing is divided by it.
constexpr const char* kDeterminant = R"(
@T.prim_func
def determinant(A: T.Buffer(($0, $1, $1), "$2"), D: T.Buffer(($0,), "$2")):
    W = T.alloc_buffer(($0, $1, $1), "$2")
    P = T.alloc_buffer((1,), "int64")
    S = T.alloc_buffer((1,), "$2")
    for b, i, j in T.grid($0, $1, $1):
        with T.block("copy"):
            vb, vi, vj = T.axis.remap("SSS", [b, i, j])
            W[vb, vi, vj] = A[vb, vi, vj]
    for b in T.serial($0):
        with T.block("start"):
            vb = T.axis.spatial($0, b)
            D[vb] = T.$2(1)
    for b, k in T.grid($0, $1):
        with T.block("diagonal"):
            vb = T.axis.opaque($0, b)
            vk = T.axis.opaque($1, k)
            P[0] = vk
        for i in T.serial($1):
            with T.block("pivot"):
                vb = T.axis.opaque($0, b)
                vk = T.axis.opaque($1, k)
                vi = T.axis.opaque($1, i)
                if vi > vk and T.abs(W[vb, vi, vk]) > T.abs(
                        W[vb, T.max(0, T.min(P[0], $3)), vk]):
                    P[0] = vi
        with T.block("multiply"):
            vb = T.axis.opaque($0, b)
            vk = T.axis.opaque($1, k)
            D[vb] = D[vb] * W[vb, T.max(0, T.min(P[0], $3)), vk] * T.Select(
                P[0] == vk, T.$2(1), T.$2(-1))
        for j in T.serial($1):
            with T.block("exchange"):
                vb = T.axis.opaque($0, b)
                vk = T.axis.opaque($1, k)
                vj = T.axis.opaque($1, j)
                S[0] = W[vb, vk, vj]
                W[vb, vk, vj] = W[vb, T.max(0, T.min(P[0], $3)), vj]
                W[vb, T.max(0, T.min(P[0], $3)), vj] = S[0]
        for i, j in T.grid($1, $1):
            with T.block("eliminate"):
                vb = T.axis.opaque($0, b)
                vk = T.axis.opaque($1, k)
                vi = T.axis.opaque($1, i)
                vj = T.axis.opaque($1, j)
                if vi > vk and vj > vk and W[vb, vk, vk] != T.$2(0):
                    W[vb, vi, vj] = (W[vb, vi, vj]
                        - W[vb, vi, vk] / W[vb, vk, vk] * W[vb, vk, vj])
)";

// Row-major position of the leading indices of `shape`, or the reverse.
Expr Flatten(const Indices& i, const std::vector<int64_t>& shape) {
  Expr at = ir::IntConst(0);
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + i[d];
  return at;
}
Indices Unflatten(Expr at, const std::vector<int64_t>& shape) {
  Indices i(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    i[d] = d == 0 ? at : ir::FloorMod(at, ir::IntConst(shape[d]));
    at = ir::FloorDiv(at, ir::IntConst(shape[d]));
  }
  return i;
}

Outputs ConvertDet(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const TensorType x = node.Type(0);
  if (x.ndim() < 2 || x.shape[x.shape.size() - 1] != x.shape.end()[-2]) {
    return node.Invalid("the input has no square matrices: ", x.ToString());
  }
  const int64_t rows = x.shape.back();
  const DataType type = ComputeType(x.dtype);
  const std::vector<int64_t> batch(x.shape.begin(), x.shape.end() - 2);
  // The determinant of a matrix without rows is 1.
  std::vector<ValueId> determinants;
  int64_t matrices = 1;
  if (x.num_elements() > 0) {
    for (int64_t extent : batch) matrices *= extent;
    TF_ASSIGN_OR_RETURN(
        const ValueId flat,
        node.builder().Compute(
            "reshape", {}, {node.Input(0)}, [&](const graph::Tensors& in) {
              return te::Compute(
                  "T_reshape", {matrices, rows, rows}, [&](const Indices& i) {
                    Indices at = Unflatten(i[0], batch);
                    at.push_back(i[1]);
                    at.push_back(i[2]);
                    return te::Body(ir::MakeCast(type, in[0](at)));
                  });
            }));
    TF_ASSIGN_OR_RETURN(
        determinants,
        node.builder().CallText("determinant", {}, {flat},
                                absl::Substitute(kDeterminant, matrices, rows,
                                                 type.ToString(), rows - 1)));
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "reshape", {}, determinants, [&](const graph::Tensors& in) {
            return te::Compute("T_reshape", batch, [&](const Indices& i) {
              if (in.empty()) return te::Body(ir::ConstOf(x.dtype, 1));
              return te::Body(
                  ir::MakeCast(x.dtype, in[0]({Flatten(i, batch)})));
            });
          }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> CumulativeConverters() {
  return {
      {"CumSum", ConvertCumulative<false>},
      {"CumProd", ConvertCumulative<true>},
      {"Det", ConvertDet},
  };
}

}  // namespace tilefarm::onnx
