// Operators that choose elements by their values: the largest ones, those that
// are not zero, different ones, boxes that do not overlap. The size of most
// results depends on data: it is computed from constants or declared.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/program_text.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

// The elements of `x` at the places in `list`, which has rank 1, along `axis`.
absl::StatusOr<ValueId> TakeAlong(Node& node, ValueId x, ValueId list,
                                  size_t axis) {
  const TensorType type = node.builder().type(x);
  std::vector<int64_t> shape = type.shape;
  shape[axis] = node.builder().shape(list)[0];
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (type.num_elements() == 0 && Volume(shape, 0, shape.size()) != 0) {
    return node.Invalid("elements of a tensor that has none");
  }
  return node.builder().Compute(
      "take", {{"axis", static_cast<int64_t>(axis)}}, {x, list},
      [&](const graph::Tensors& in) {
        return te::Compute("T_take", shape, [&](const te::Indices& i) {
          te::Indices at = i;
          at[axis] = ClampIndex(in[1]({i[axis]}), type.shape[axis]);
          return te::Body(in[0](at));
        });
      });
}

// The test whether an element is not zero.
std::string IsNotZero(const std::string& element, DataType dtype) {
  return dtype.is_bool() ? element : absl::StrCat(element, " != 0");
}

Outputs ConvertNonZero(Node& node) {
  const TensorType type = node.Type(0);
  const auto rank = static_cast<int64_t>(type.ndim());
  std::vector<int64_t> shape{rank, 0};
  if (node.IsConstant(0)) {
    TF_ASSIGN_OR_RETURN(const std::vector<double> values, node.ConstDoubles(0));
    std::vector<std::vector<int64_t>> places(type.shape.size());
    for (size_t flat = 0; flat < values.size(); ++flat) {
      if (values[flat] == 0) continue;
      ++shape[1];
      auto rest = static_cast<int64_t>(flat);
      for (size_t d = type.shape.size(); d-- > 0;) {
        places[d].push_back(rest % type.shape[d]);
        rest /= type.shape[d];
      }
    }
    std::vector<int64_t> all;
    for (const auto& list : places) {
      all.insert(all.end(), list.begin(), list.end());
    }
    return OneOutput(
        node.builder().Constant("nonzero", {DataType::Int(64), shape}, all));
  }
  TF_ASSIGN_OR_RETURN(shape,
                      DeclaredShape(node, DataType::Int(64), 2,
                                    "the number of elements that are not 0"));
  const TensorType result{DataType::Int(64), shape};
  if (shape[0] != rank) return node.Invalid("the output is misdeclared");
  if (result.num_elements() == 0) {
    return OneOutput(
        node.builder().Constant("nonzero", result, graph::TensorData()));
  }
  if (type.num_elements() == 0) return node.Invalid("there are no elements");
  ProgramText program("nonzero");
  program.Parameter("x", type);
  program.Parameter("result", result);
  program.Workspace("count", {DataType::Int(64), {1}});
  program.Fill("result", shape, "0");
  program.Fill("count", {1}, "0");
  const std::vector<std::string> at =
      program.Block("append", type.shape, std::string(type.shape.size(), 'O'));
  program.Line(0, "if ", IsNotZero(Element("x", at), type.dtype), ":");
  program.Line(1, "if count[0] < ", shape[1], ":");
  for (size_t d = 0; d < at.size(); ++d) {
    program.Line(2, "result[", d, ", ", IndexText("count[0]", shape[1], false),
                 "] = ", at[d]);
  }
  program.Line(1, "count[0] = count[0] + 1");
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText("nonzero", {}, {node.Input(0)}, program.Text()));
  return std::vector<Imported>{values[0]};
}

// The places where `condition` (bool, rank 1) is true, among the first `extent`
// ones; `count` of them.
absl::StatusOr<ValueId> PlacesOf(Node& node, ValueId condition, int64_t extent,
                                 int64_t count) {
  const TensorType type = node.builder().type(condition);
  if (count == 0) return node.builder().Int64s("places", {});
  if (type.num_elements() == 0) return node.Invalid("the condition is empty");
  const TensorType result{DataType::Int(64), {count}};
  ProgramText program("places");
  program.Parameter("condition", type);
  program.Parameter("result", result);
  program.Workspace("count", {DataType::Int(64), {1}});
  program.Fill("result", {count}, "0");
  program.Fill("count", {1}, "0");
  program.Block("append", {std::min(type.shape[0], extent)}, "O");
  program.Line(0, "if condition[v0]:");
  program.Line(1, "if count[0] < ", count, ":");
  program.Line(2, "result[", IndexText("count[0]", count, false), "] = v0");
  program.Line(1, "count[0] = count[0] + 1");
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText("nonzero", {}, {condition}, program.Text()));
  return values[0];
}

Outputs ConvertCompress(Node& node) {
  TensorType type = node.Type(0);
  ValueId x = node.Input(0);
  int64_t axis = 0;
  if (node.HasAttr("axis")) {
    axis = node.NormalizeAxis(node.Int("axis", 0), type.ndim());
    TF_RETURN_IF_ERROR(node.status());
  } else {
    TF_ASSIGN_OR_RETURN(x, ReshapeTo(node, x, {type.num_elements()}));
    type = node.builder().type(x);
  }
  if (!node.Dtype(1).is_bool() || node.Rank(1) != 1) {
    return node.Invalid("the condition is ", node.Type(1).ToString());
  }
  const auto d = static_cast<size_t>(axis);
  ValueId places = -1;
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> condition,
                        node.ConstInts(1));
    std::vector<int64_t> list;
    for (size_t k = 0; k < condition.size(); ++k) {
      if (condition[k] == 0) continue;
      if (static_cast<int64_t>(k) >= type.shape[d]) {
        return node.Invalid("element ", k, " of ", type.shape[d]);
      }
      list.push_back(static_cast<int64_t>(k));
    }
    places = node.builder().Int64s("places", list);
  } else {
    TF_ASSIGN_OR_RETURN(
        const std::vector<int64_t> shape,
        DeclaredShape(node, type.dtype, type.ndim(), "input 1 (condition)"));
    TF_ASSIGN_OR_RETURN(places,
                        PlacesOf(node, node.Input(1), type.shape[d], shape[d]));
  }
  return OneOutput(TakeAlong(node, x, places, d));
}

absl::StatusOr<int64_t> LargestCount(Node& node, const TensorType& type,
                                     size_t axis) {
  int64_t k = 0;
  if (node.opset() < 10) {
    k = node.Int("k", 0);
  } else if (node.Type(1).num_elements() != 1) {
    return node.Invalid("k is ", node.Type(1).ToString());
  } else if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> value, node.ConstInts(1));
    k = value[0];
  } else {
    TF_ASSIGN_OR_RETURN(
        const std::vector<int64_t> shape,
        DeclaredShape(node, type.dtype, type.ndim(), "input 1 (K)"));
    k = shape[axis];
  }
  if (k < 0 || k > type.shape[axis]) {
    return node.Invalid("k is ", k, " for ", type.shape[axis], " elements");
  }
  return k;
}

// Inserts each element of the axis into a sorted list of the best so far; most
// elements only compare with its last one.
Outputs ConvertTopK(Node& node) {
  const TensorType type = node.Type(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -1), type.ndim());
  TF_RETURN_IF_ERROR(node.status());
  if (type.dtype.is_bool()) return node.Invalid("bools have no order");
  const auto d = static_cast<size_t>(axis);
  TF_ASSIGN_OR_RETURN(const int64_t k, LargestCount(node, type, d));
  std::vector<int64_t> shape = type.shape;
  shape[d] = k;
  const TensorType values{type.dtype, shape};
  const TensorType indices{DataType::Int(64), shape};
  if (values.num_elements() == 0) {
    GraphBuilder& builder = node.builder();
    return std::vector<Imported>{
        builder.Constant("topk", values, graph::TensorData()),
        builder.Constant("topk", indices, graph::TensorData())};
  }
  ProgramText program("topk");
  program.Parameter("x", type);
  program.Parameter("values", values);
  program.Parameter("indices", indices);
  program.Fill("values", shape, ConstText(type.dtype, 0));
  program.Fill("indices", shape, "-1");
  std::string kinds(shape.size(), 'S');
  kinds[d] = 'O';
  const std::vector<std::string> at =
      program.Block("insert", type.shape, kinds);
  const auto place = [&](const std::string& buffer, const std::string& index) {
    std::vector<std::string> to = at;
    to[d] = index;
    return Element(buffer, to);
  };
  // Of equal elements the first one stays first.
  const std::string order = node.Int("largest", 1) != 0 ? " > " : " < ";
  const auto better = [&](const std::string& index) {
    return absl::StrCat("if ", place("indices", index), " < 0 or ",
                        Element("x", at), order, place("values", index), ":");
  };
  const auto put = [&](int depth, const std::string& index) {
    program.Line(depth, place("values", index), " = ", Element("x", at));
    program.Line(depth, place("indices", index), " = ", at[d]);
  };
  program.Line(0, better(absl::StrCat(k - 1)));
  put(1, absl::StrCat(k - 1));
  if (k > 1) {
    const std::string from = absl::StrCat(k - 2, " - j");
    const std::string to = absl::StrCat(k - 1, " - j");
    program.Line(1, "for j in range(", k - 1, "):");
    program.Line(2, better(from));
    program.Line(3, place("values", to), " = ", place("values", from));
    program.Line(3, place("indices", to), " = ", place("indices", from));
    put(3, from);
  }
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      node.builder().CallText("topk", {{"axis", axis}, {"k", k}},
                              {node.Input(0)}, program.Text()));
  return std::vector<Imported>(outputs.begin(), outputs.end());
}

// Comparisons of the slices of a tensor [outer, n, inner] along the middle
// dimension, for Unique. NaNs are equal, and above all numbers.
class SliceOrder {
 public:
  explicit SliceOrder(const te::Tensor& x) : x_(x) {
    if (slice_size() == 1) return;
    const te::ReduceAxis o("o", x.dim(0));
    const te::ReduceAxis q("q", x.dim(2));
    difference_ = te::Compute(
        "difference", {x.dim(1), x.dim(1)}, [&](const te::Indices& i) {
          const Expr equal = Equal(x({o, i[0], q}), x({o, i[1], q}));
          return te::MinOver(Choose(equal, IntConst(slice_size()),
                                    Expr(o) * x.dim(2) + Expr(q)),
                             {o, q});
        });
  }

  Expr Same(const Expr& i, const Expr& j) const {
    if (!difference_) {
      return Equal(x_({IntConst(0), i, IntConst(0)}),
                   x_({IntConst(0), j, IntConst(0)}));
    }
    return ir::EQ((*difference_)({i, j}), IntConst(slice_size()));
  }

  // Whether slice `i` comes before slice `j` in lexicographic order.
  Expr Less(const Expr& i, const Expr& j) const {
    if (!difference_) {
      return Before(x_({IntConst(0), i, IntConst(0)}),
                    x_({IntConst(0), j, IntConst(0)}));
    }
    const Expr place = (*difference_)({i, j});
    const Expr known = ClampIndex(place, slice_size());
    const Expr o = ir::FloorDiv(known, IntConst(x_.dim(2)));
    const Expr q = ir::FloorMod(known, IntConst(x_.dim(2)));
    return ir::And(ir::LT(place, IntConst(slice_size())),
                   Before(x_({o, i, q}), x_({o, j, q})));
  }

 private:
  int64_t slice_size() const { return x_.dim(0) * x_.dim(2); }

  static Expr Equal(const Expr& a, const Expr& b) {
    const Expr same = ir::EQ(a, b);
    if (!a->dtype.is_float()) return same;
    return ir::Or(same, ir::And(ir::NE(a, a), ir::NE(b, b)));
  }
  static Expr Before(const Expr& a, const Expr& b) {
    if (a->dtype.is_bool()) return ir::And(ir::MakeNot(a), b);
    const Expr less = ir::LT(a, b);
    if (!a->dtype.is_float()) return less;
    return ir::Or(less, ir::And(ir::NE(b, b), ir::EQ(a, a)));
  }

  te::Tensor x_;
  std::optional<te::Tensor> difference_;  // first different element
};

Expr AsCount(const Expr& condition) {
  return Choose(condition, IntConst(1), IntConst(0));
}

// first[i]: the first slice that equals slice i.
te::Tensor FirstEqual(const SliceOrder& order, int64_t n) {
  const te::ReduceAxis j("j", n);
  return te::Compute("first", {n}, [&](const te::Indices& i) {
    return te::MinOver(Choose(order.Same(i[0], j), Expr(j), IntConst(n - 1)),
                       {j});
  });
}

// The number of different slices.
absl::StatusOr<int64_t> CountUnique(Node& node, ValueId x, int64_t n) {
  TF_ASSIGN_OR_RETURN(
      const ValueId count,
      node.builder().Compute(
          "unique_count", {}, {x}, [&](const graph::Tensors& in) {
            const te::Tensor first = FirstEqual(SliceOrder(in[0]), n);
            const te::ReduceAxis i("i", n);
            return te::Compute("count", {}, [&](const te::Indices&) {
              return te::Sum(AsCount(ir::EQ(first({i}), i)), {i});
            });
          }));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> value,
                      node.builder().EvaluateInts(count));
  return value[0];
}

// The places of different slices, the group of each slice and the sizes of the
// groups. Comparing all pairs makes every step a reduction.
absl::StatusOr<std::vector<ValueId>> UniqueGroups(Node& node, ValueId x,
                                                  int64_t n, int64_t count) {
  const bool sorted = node.Int("sorted", 1) != 0;
  return node.builder().ComputeAll(
      "unique", {{"sorted", sorted}}, {x}, [&](const graph::Tensors& in) {
        const SliceOrder order(in[0]);
        const te::Tensor first = FirstEqual(order, n);
        const te::ReduceAxis j("j", n);
        const te::Tensor rank =
            te::Compute("rank", {n}, [&](const te::Indices& i) {
              const Expr before =
                  sorted ? order.Less(j, i[0]) : ir::LT(j, i[0]);
              return te::Sum(AsCount(ir::And(ir::EQ(first({j}), j), before)),
                             {j});
            });
        const te::Tensor inverse =
            te::Compute("inverse", {n}, [&](const te::Indices& i) {
              return te::Body(rank({ClampIndex(first({i[0]}), n)}));
            });
        const te::ReduceAxis k("k", n);
        const te::Tensor places =
            te::Compute("places", {count}, [&](const te::Indices& u) {
              const Expr chosen =
                  ir::And(ir::EQ(first({k}), k), ir::EQ(rank({k}), u[0]));
              return te::Sum(Choose(chosen, Expr(k), IntConst(0)), {k});
            });
        const te::ReduceAxis m("m", n);
        const te::Tensor sizes =
            te::Compute("sizes", {count}, [&](const te::Indices& u) {
              return te::Sum(AsCount(ir::EQ(inverse({m}), u[0])), {m});
            });
        return graph::Tensors{places, inverse, sizes};
      });
}

Outputs ConvertUnique(Node& node) {
  ValueId x = node.Input(0);
  if (node.HasAttr("axis")) {
    node.NormalizeAxis(node.Int("axis", 0), node.Rank(0));
  } else {
    TF_ASSIGN_OR_RETURN(x, ReshapeTo(node, x, {node.Type(0).num_elements()}));
  }
  TF_RETURN_IF_ERROR(node.status());
  const TensorType type = node.builder().type(x);
  const auto d =
      static_cast<size_t>(node.NormalizeAxis(node.Int("axis", 0), type.ndim()));
  if (type.num_elements() == 0) return node.Unsupported("an empty input");
  const int64_t n = type.shape[d];
  TF_ASSIGN_OR_RETURN(
      const ValueId slices,
      ReshapeTo(node, x,
                {Volume(type.shape, 0, d), n,
                 Volume(type.shape, d + 1, type.shape.size())}));
  int64_t count = -1;
  if (node.IsConstant(0)) {
    TF_ASSIGN_OR_RETURN(count, CountUnique(node, slices, n));
  }
  for (int k = 0; k < node.num_outputs() && count < 0; ++k) {
    const std::optional<TensorType> declared = node.DeclaredOutput(k);
    const size_t dim = k == 0 ? d : 0;
    if (k == 2 || !declared.has_value()) continue;
    if (declared->shape.size() > dim) count = declared->shape[dim];
  }
  if (count < 0) {
    return node.Unsupported(
        "the number of different elements is known at run "
        "time only");
  }
  if (count < 1 || count > n) {
    return node.Invalid(count, " different elements of ", n);
  }
  TF_ASSIGN_OR_RETURN(const std::vector<ValueId> groups,
                      UniqueGroups(node, slices, n, count));
  TF_ASSIGN_OR_RETURN(const ValueId y, TakeAlong(node, x, groups[0], d));
  return std::vector<Imported>{y, groups[0], groups[1], groups[2]};
}

}  // namespace

std::vector<Converter> SelectionConverters() {
  return {
      {"Compress", ConvertCompress},
      {"NonZero", ConvertNonZero},
      {"TopK", ConvertTopK},
      {"Unique", ConvertUnique},
  };
}

}  // namespace tilefarm::onnx
