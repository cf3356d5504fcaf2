#include "compiler/onnx/joins.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/verifier.h"
#include "compiler/te/tensor.h"

namespace tilefarm::onnx {
namespace {

using graph::GraphBuilder;
using graph::TensorType;
using graph::ValueId;

// A loop nest that copies `from` to the elements of `to` from `start` of the
// axis on. With `adds_axis`, `from` lacks the axis.
ir::Stmt CopyNest(const std::string& name, const ir::Buffer& from,
                  const ir::Buffer& to, size_t axis, int64_t start,
                  bool adds_axis) {
  ir::BlockNode block;
  block.name = name;
  block.predicate = ir::BoolConst(true);
  std::vector<std::pair<ir::Var, int64_t>> loops;
  te::Indices read, write;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    const ir::Var loop = ir::MakeVar(absl::StrCat("i", d));
    const ir::Var var = ir::MakeVar(absl::StrCat("v", d));
    const int64_t extent = from->shape[d];
    loops.emplace_back(loop, extent);
    block.iters.push_back({var,
                           {ir::IntConst(0), ir::IntConst(extent)},
                           ir::IterType::kSpatial,
                           loop});
    read.push_back(var);
    write.push_back(var);
  }
  if (adds_axis) {
    write.insert(write.begin() + static_cast<ptrdiff_t>(axis),
                 ir::IntConst(start));
  } else {
    write[axis] = write[axis] + start;
  }
  block.body = ir::MakeStore(to, write, ir::Load(from, read));
  ir::Stmt nest = ir::BlockWithAccesses(std::move(block));
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    nest = ir::MakeFor(loop->first, ir::IntConst(loop->second), nest);
  }
  return nest;
}

// A program that has a loop nest per input instead of one that chooses the
// input for each element: its copies vectorise.
absl::StatusOr<ValueId> Join(GraphBuilder& builder,
                             const std::vector<ValueId>& values, size_t axis,
                             bool adds_axis) {
  TensorType result = builder.type(values[0]);
  if (adds_axis) {
    result.shape.insert(result.shape.begin() + static_cast<ptrdiff_t>(axis), 0);
  } else {
    result.shape[axis] = 0;
  }
  std::vector<ValueId> inputs;
  std::vector<int64_t> starts;
  for (ValueId id : values) {
    const int64_t extent = adds_axis ? 1 : builder.shape(id)[axis];
    if (builder.type(id).num_elements() != 0) {
      inputs.push_back(id);
      starts.push_back(result.shape[axis]);
    }
    if (__builtin_add_overflow(result.shape[axis], extent,
                               &result.shape[axis])) {
      return absl::InvalidArgumentError("the joined tensor is too large");
    }
  }
  if (inputs.empty()) {
    return builder.Constant("concat", result, graph::TensorData());
  }
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = adds_axis ? "stack" : "concat";
  function->attrs["global_symbol"] = ir::Attr(function->name);
  function->attrs["tir.noalias"] = ir::Attr(true);
  const ir::Buffer to = ir::MakeBuffer("out", result.dtype, result.shape);
  std::vector<ir::Stmt> nests;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorType& type = builder.type(inputs[k]);
    const ir::Buffer from =
        ir::MakeBuffer(absl::StrCat("in", k), type.dtype, type.shape);
    function->params.push_back(from);
    nests.push_back(CopyNest(absl::StrCat("copy", k), from, to, axis, starts[k],
                             adds_axis));
  }
  function->params.push_back(to);
  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  root.body = ir::MakeSeq(std::move(nests));
  function->body = ir::BlockOf(std::move(root));
  TF_RETURN_IF_ERROR(ir::Verify(*function));
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      builder.CallFunction(adds_axis ? "stack" : "concat",
                           {{"axis", static_cast<int64_t>(axis)}}, inputs,
                           std::move(function)));
  return outputs[0];
}

}  // namespace

absl::StatusOr<ValueId> Concatenate(GraphBuilder& builder,
                                    const std::vector<ValueId>& values,
                                    int64_t axis) {
  TF_CHECK(!values.empty());
  const TensorType first = builder.type(values[0]);
  const auto d = static_cast<size_t>(axis);
  TF_CHECK(axis >= 0 && d < first.shape.size());
  for (size_t k = 0; k < values.size(); ++k) {
    const TensorType& type = builder.type(values[k]);
    std::vector<int64_t> expected = first.shape;
    if (type.ndim() == first.ndim()) expected[d] = type.shape[d];
    if (type.dtype != first.dtype || type.shape != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", k, " of those to be joined is ", type.ToString(),
          ", the first one is ", first.ToString()));
    }
  }
  if (values.size() == 1) return values[0];
  return Join(builder, values, d, /*adds_axis=*/false);
}

absl::StatusOr<ValueId> Stack(GraphBuilder& builder,
                              const std::vector<ValueId>& values,
                              int64_t axis) {
  TF_CHECK(!values.empty());
  const TensorType first = builder.type(values[0]);
  TF_CHECK(axis >= 0 && axis <= first.ndim());
  for (ValueId id : values) {
    if (builder.type(id) != first) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensors of different types are to be stacked: ", first.ToString(),
          " and ", builder.type(id).ToString()));
    }
  }
  return Join(builder, values, static_cast<size_t>(axis), /*adds_axis=*/true);
}

absl::StatusOr<ValueId> SliceAt(GraphBuilder& builder, ValueId value,
                                int64_t axis, int64_t begin, int64_t count) {
  std::vector<int64_t> shape = builder.shape(value);
  const auto d = static_cast<size_t>(axis);
  TF_CHECK(d < shape.size() && begin >= 0 && count >= 0 &&
           begin + count <= shape[d]);
  shape[d] = count;
  return builder.Compute(
      "strided_slice",
      {{"axis", axis}, {"begin", begin}, {"end", begin + count}}, {value},
      [&](const graph::Tensors& in) {
        return te::Compute("T_slice", shape, [&](const te::Indices& i) {
          te::Indices at = i;
          at[d] = i[d] + begin;
          return te::Body(in[0](at));
        });
      });
}

absl::StatusOr<ValueId> TakeAt(GraphBuilder& builder, ValueId value,
                               int64_t axis, int64_t index) {
  std::vector<int64_t> shape = builder.shape(value);
  const auto d = static_cast<size_t>(axis);
  TF_CHECK(d < shape.size() && index >= 0 && index < shape[d]);
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(d));
  return builder.Compute(
      "take", {{"axis", axis}, {"index", index}}, {value},
      [&](const graph::Tensors& in) {
        return te::Compute("T_take", shape, [&](const te::Indices& i) {
          te::Indices at = i;
          at.insert(at.begin() + static_cast<ptrdiff_t>(d),
                    ir::IntConst(index));
          return te::Body(in[0](at));
        });
      });
}

}  // namespace tilefarm::onnx
