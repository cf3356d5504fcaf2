// Operators that rename or repeat elements: shapes, axes, broadcasts.
#include <algorithm>
#include <numeric>

#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/shapes.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

Outputs ConvertIdentity(Node& node) {
  return std::vector<Imported>{node.RawInput(0)};
}

// The bound of a slice of dimensions, clamped to [0, rank].
int64_t ClampBound(int64_t bound, int64_t rank) {
  if (bound < 0) bound += rank;
  return std::clamp<int64_t>(bound, 0, rank);
}

Outputs ConvertShape(Node& node) {
  const std::vector<int64_t> shape = node.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t start = ClampBound(node.Int("start", 0), rank);
  const int64_t end = std::max(start, ClampBound(node.Int("end", rank), rank));
  return OneOutput(node.builder().Int64s(
      "shape",
      std::vector<int64_t>(shape.begin() + start, shape.begin() + end)));
}

Outputs ConvertSize(Node& node) {
  return OneOutput(node.builder().Constant(
      "size", {DataType::Int(64), {}},
      std::vector<int64_t>{node.Type(0).num_elements()}));
}

Outputs ConvertReshape(Node& node) {
  const TensorType type = node.Type(0);
  const bool allow_zero = node.Int("allowzero", 0) != 0;
  if (node.Rank(1) != 1) return node.Invalid("the shape is no list");
  TF_RETURN_IF_ERROR(node.status());
  if (!node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(
        const std::vector<int64_t> shape,
        DeclaredShape(node, type.dtype, static_cast<int>(node.Shape(1)[0]),
                      "input 1 (shape)"));
    return OneOutput(ReshapeTo(node, node.Input(0), shape));
  }
  TF_ASSIGN_OR_RETURN(std::vector<int64_t> shape, node.ConstInts(1));
  int64_t open = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= type.shape.size()) {
        return node.Invalid("the shape copies dimension ", d,
                            " of a tensor of rank ", type.ndim());
      }
      shape[d] = type.shape[d];
    } else if (shape[d] == -1) {
      if (open >= 0) return node.Invalid("the shape has two dimensions -1");
      open = static_cast<int64_t>(d);
      shape[d] = 1;
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (open >= 0) {
    const int64_t others = Volume(shape, 0, shape.size());
    const int64_t elements = type.num_elements();
    if (others == 0 ? elements != 0 : elements % others != 0) {
      return node.Invalid(elements, " elements do not fill the shape");
    }
    shape[static_cast<size_t>(open)] = others == 0 ? 0 : elements / others;
  }
  return OneOutput(ReshapeTo(node, node.Input(0), shape));
}

Outputs ConvertFlatten(Node& node) {
  const std::vector<int64_t> shape = node.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return node.Invalid("axis ", axis, " of a tensor of rank ", rank);
  }
  if (axis < 0) axis += rank;
  const auto cut = static_cast<size_t>(axis);
  return OneOutput(
      ReshapeTo(node, node.Input(0),
                {Volume(shape, 0, cut), Volume(shape, cut, shape.size())}));
}

// Axes from an attribute (before operator set 13) or from input 1.
absl::StatusOr<std::vector<int64_t>> AxesOf(Node& node) {
  if (node.HasInput(1)) return node.ConstInts(1);
  return node.Ints("axes");
}

Outputs ConvertSqueeze(Node& node) {
  const TensorType type = node.Type(0);
  if (node.HasInput(1) && !node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                        DeclaredShape(node, type.dtype, -1, "input 1 (axes)"));
    return OneOutput(ReshapeTo(node, node.Input(0), shape));
  }
  TF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesOf(node));
  TF_ASSIGN_OR_RETURN(axes, NormalizeAxes(node, axes, type.ndim()));
  const bool all = !node.HasInput(1) && !node.HasAttr("axes");
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < type.ndim(); ++d) {
    const int64_t extent = type.shape[static_cast<size_t>(d)];
    const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (named && extent != 1) {
      return node.Invalid("dimension ", d, " has ", extent, " elements");
    }
    if (!named && !(all && extent == 1)) shape.push_back(extent);
  }
  return OneOutput(ReshapeTo(node, node.Input(0), shape));
}

Outputs ConvertUnsqueeze(Node& node) {
  const TensorType type = node.Type(0);
  if (node.HasInput(1) && !node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                        DeclaredShape(node, type.dtype, -1, "input 1 (axes)"));
    return OneOutput(ReshapeTo(node, node.Input(0), shape));
  }
  TF_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesOf(node));
  const int64_t rank = type.ndim() + static_cast<int64_t>(axes.size());
  TF_ASSIGN_OR_RETURN(axes, NormalizeAxes(node, axes, rank));
  std::vector<int64_t> shape;
  auto next = type.shape.begin();
  for (int64_t d = 0; d < rank; ++d) {
    const bool added = std::find(axes.begin(), axes.end(), d) != axes.end();
    shape.push_back(added ? 1 : *next++);
  }
  return OneOutput(ReshapeTo(node, node.Input(0), shape));
}

Outputs ConvertTranspose(Node& node) {
  const TensorType type = node.Type(0);
  std::vector<int64_t> perm = node.Ints("perm");
  if (!node.HasAttr("perm")) {
    perm.resize(type.shape.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  if (static_cast<int>(perm.size()) != type.ndim()) {
    return node.Invalid("perm has ", perm.size(), " axes for a tensor of rank ",
                        type.ndim());
  }
  TF_ASSIGN_OR_RETURN(perm, NormalizeAxes(node, perm, type.ndim()));
  if (std::is_sorted(perm.begin(), perm.end())) {
    return std::vector<Imported>{node.Input(0)};
  }
  std::vector<int64_t> shape;
  for (const int64_t axis : perm) {
    shape.push_back(type.shape[static_cast<size_t>(axis)]);
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return OneOutput(node.builder().Compute(
      "permute_dims", {{"axes", ListOf(perm)}}, {node.Input(0)},
      [&](const graph::Tensors& in) {
        return te::Transpose(in[0], {perm.begin(), perm.end()});
      }));
}

// Every dimension of `x`, aligned at the end of `shape`, has one element or as
// many as there.
Outputs BroadcastTo(Node& node, ValueId x, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> from = node.builder().shape(x);
  if (from == shape) return std::vector<Imported>{x};
  return OneOutput(node.builder().Compute(
      "broadcast_to", {{"shape", ListOf(shape)}}, {x},
      [&](const graph::Tensors& in) {
        return te::Compute("T_broadcast", shape, [&](const te::Indices& i) {
          te::Indices at;
          const size_t skip = shape.size() - from.size();
          for (size_t d = 0; d < from.size(); ++d) {
            at.push_back(from[d] == 1 ? IntConst(0) : i[skip + d]);
          }
          return te::Body(in[0](at));
        });
      }));
}

Outputs ConvertExpand(Node& node) {
  const TensorType type = node.Type(0);
  if (node.Rank(1) != 1) return node.Invalid("the shape is no list");
  std::vector<int64_t> shape;
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(shape, node.ConstInts(1));
  } else {
    TF_ASSIGN_OR_RETURN(shape,
                        DeclaredShape(node, type.dtype, -1, "input 1 (shape)"));
  }
  if (shape.size() < type.shape.size()) {
    shape.insert(shape.begin(), type.shape.size() - shape.size(), 1);
  }
  const size_t skip = shape.size() - type.shape.size();
  for (size_t d = 0; d < type.shape.size(); ++d) {
    int64_t& extent = shape[skip + d];
    if (extent == 1) extent = type.shape[d];
    if (type.shape[d] != 1 && type.shape[d] != extent) {
      return node.Invalid("dimension ", d, " of ", type.shape[d],
                          " elements does not broadcast to ", extent);
    }
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return BroadcastTo(node, node.Input(0), shape);
}

Outputs ConvertTile(Node& node) {
  const TensorType type = node.Type(0);
  if (node.Rank(1) != 1 || node.Shape(1)[0] != type.ndim()) {
    return node.Invalid("as many repeats are needed as dimensions");
  }
  std::vector<int64_t> shape = type.shape;
  if (node.IsConstant(1)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.ConstInts(1));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (repeats[d] < 0 ||
          __builtin_mul_overflow(shape[d], repeats[d], &shape[d])) {
        return node.Invalid("dimension ", d, " is repeated ", repeats[d],
                            " times");
      }
    }
    TF_RETURN_IF_ERROR(CheckShape(node, shape));
  } else {
    TF_ASSIGN_OR_RETURN(shape, DeclaredShape(node, type.dtype, type.ndim(),
                                             "input 1 (repeats)"));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (type.shape[d] == 0 ? shape[d] != 0 : shape[d] % type.shape[d] != 0) {
        return node.Invalid("the declared output has ", shape[d],
                            " elements in dimension ", d);
      }
    }
  }
  if (shape == type.shape) return std::vector<Imported>{node.Input(0)};
  return OneOutput(node.builder().Compute(
      "tile", {}, {node.Input(0)}, [&](const graph::Tensors& in) {
        return te::Compute("T_tile", shape, [&](const te::Indices& i) {
          te::Indices at;
          for (size_t d = 0; d < shape.size(); ++d) {
            at.push_back(shape[d] == type.shape[d]
                             ? i[d]
                             : ir::FloorMod(i[d], IntConst(type.shape[d])));
          }
          return te::Body(in[0](at));
        });
      }));
}

// Index arithmetic of DepthToSpace and SpaceToDepth.
struct Blocks {
  int64_t block = 0;
  std::vector<int64_t> shape;
  // "DCR": the elements of a block are the outer index of the deep channels;
  // "CRD": the inner one.
  std::string mode;
};

absl::StatusOr<Blocks> BlocksOf(Node& node) {
  Blocks out{node.Int("blocksize", 0), node.Shape(0),
             node.String("mode", "DCR")};
  if (out.shape.size() != 4) return node.Invalid("the input has no rank 4");
  if (out.block < 1 || out.block > (1 << 20)) {
    return node.Invalid("blocksize is ", out.block);
  }
  if (out.mode != "DCR" && out.mode != "CRD") {
    return node.Invalid("attribute mode is ", out.mode);
  }
  return out;
}

Outputs ConvertDepthToSpace(Node& node) {
  TF_ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(node));
  const int64_t b = blocks.block;
  const std::vector<int64_t>& from = blocks.shape;
  if (from[1] % (b * b) != 0) {
    return node.Invalid(from[1], " channels do not make blocks of ", b);
  }
  const int64_t channels = from[1] / (b * b);
  std::vector<int64_t> shape{from[0], channels, from[2], from[3]};
  if (__builtin_mul_overflow(shape[2], b, &shape[2]) ||
      __builtin_mul_overflow(shape[3], b, &shape[3])) {
    return node.Invalid("the result is too large");
  }
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  return OneOutput(node.builder().Compute(
      "depth_to_space", {{"block_size", b}, {"mode", blocks.mode}},
      {node.Input(0)}, [&](const graph::Tensors& in) {
        return te::Compute(
            "T_depth_to_space", shape, [&](const te::Indices& i) {
              const Expr size = IntConst(b);
              const Expr cell =
                  ir::FloorMod(i[2], size) * b + ir::FloorMod(i[3], size);
              const Expr channel = blocks.mode == "DCR" ? cell * channels + i[1]
                                                        : i[1] * (b * b) + cell;
              return te::Body(in[0]({i[0], channel, ir::FloorDiv(i[2], size),
                                     ir::FloorDiv(i[3], size)}));
            });
      }));
}

Outputs ConvertSpaceToDepth(Node& node) {
  TF_ASSIGN_OR_RETURN(const Blocks blocks, BlocksOf(node));
  const int64_t b = blocks.block;
  const std::vector<int64_t>& from = blocks.shape;
  const bool cell_last = blocks.mode == "CRD";
  if (from[2] % b != 0 || from[3] % b != 0) {
    return node.Invalid("the image of ", from[2], " x ", from[3],
                        " does not split into blocks of ", b);
  }
  const std::vector<int64_t> shape{from[0], from[1], from[2] / b, from[3] / b};
  std::vector<int64_t> result = shape;
  if (__builtin_mul_overflow(result[1], b * b, &result[1])) {
    return node.Invalid("the result is too large");
  }
  TF_RETURN_IF_ERROR(CheckShape(node, result));
  return OneOutput(node.builder().Compute(
      "space_to_depth", {{"block_size", b}, {"mode", blocks.mode}},
      {node.Input(0)}, [&](const graph::Tensors& in) {
        return te::Compute(
            "T_space_to_depth", result, [&](const te::Indices& i) {
              const Expr inner = IntConst(cell_last ? b * b : from[1]);
              const Expr outer_index = ir::FloorDiv(i[1], inner);
              const Expr inner_index = ir::FloorMod(i[1], inner);
              const Expr cell = cell_last ? inner_index : outer_index;
              const Expr channel = cell_last ? outer_index : inner_index;
              return te::Body(in[0](
                  {i[0], channel, i[2] * b + ir::FloorDiv(cell, IntConst(b)),
                   i[3] * b + ir::FloorMod(cell, IntConst(b))}));
            });
      }));
}

}  // namespace

std::vector<Converter> MovementConverters() {
  return {
      {"DepthToSpace", ConvertDepthToSpace},
      {"Expand", ConvertExpand},
      {"Flatten", ConvertFlatten},
      {"Identity", ConvertIdentity},
      {"Reshape", ConvertReshape},
      {"Shape", ConvertShape},
      {"Size", ConvertSize},
      {"SpaceToDepth", ConvertSpaceToDepth},
      {"Squeeze", ConvertSqueeze},
      {"Tile", ConvertTile},
      {"Transpose", ConvertTranspose},
      {"Unsqueeze", ConvertUnsqueeze},
  };
}

}  // namespace tilefarm::onnx
