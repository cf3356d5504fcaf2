#include "compiler/onnx/shapes.h"

#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/status_macros.h"

namespace tilefarm::onnx {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

namespace {

// More elements than any buffer may have; products up to it do not overflow.
constexpr int64_t kMaxElements = int64_t{1} << 48;

// Dimensions [from_begin, from_end) of the operand hold the same elements as
// [to_begin, to_end) of the result.
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
};

// Splits both shapes into the smallest groups of equal volume, so that index
// arithmetic stays inside of them. Neither shape has empty dimensions.
std::vector<Group> MatchDimensions(const std::vector<int64_t>& from,
                                   const std::vector<int64_t>& to) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    Group group{i, i + 1, j, j + 1};
    int64_t left = from[i++];
    int64_t right = to[j++];
    while (left != right) {
      if (left < right) {
        left *= from[i++];
      } else {
        right *= to[j++];
      }
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  // What remains has extent one.
  groups.push_back({i, from.size(), j, to.size()});
  return groups;
}

}  // namespace

absl::Status CheckShape(const Node& node, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return node.Invalid("the result has an extent of ", extent);
    if (extent > kMaxElements ||
        (extent > 0 && elements > kMaxElements / extent)) {
      return node.Invalid("the result is too large");
    }
    if (extent > 0) elements *= extent;
  }
  return absl::OkStatus();
}

int64_t Volume(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t volume = 1;
  bool overflow = false;
  for (size_t i = begin; i < end; ++i) {
    if (shape[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(volume, shape[i], &volume);
  }
  return overflow ? std::numeric_limits<int64_t>::max() : volume;
}

Outputs OneOutput(const absl::StatusOr<ValueId>& value) {
  TF_RETURN_IF_ERROR(value.status());
  return std::vector<Imported>{*value};
}

ir::Attr ListOf(const std::vector<int64_t>& values) {
  ir::AttrList list;
  for (const int64_t value : values) list.emplace_back(value);
  return list;
}

absl::StatusOr<ValueId> ReshapeTo(Node& node, ValueId x,
                                  const std::vector<int64_t>& shape) {
  const std::vector<int64_t> from = node.builder().shape(x);
  if (from == shape) return x;
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (Volume(from, 0, from.size()) != Volume(shape, 0, shape.size())) {
    return node.Invalid("the shapes before and after have ",
                        Volume(from, 0, from.size()), " and ",
                        Volume(shape, 0, shape.size()), " elements");
  }
  return node.builder().Compute(
      "reshape", {{"shape", ListOf(shape)}}, {x},
      [&](const graph::Tensors& in) {
        if (Volume(shape, 0, shape.size()) == 0) {
          return te::Placeholder("T_reshape", shape, in[0].dtype());
        }
        const std::vector<Group> groups = MatchDimensions(from, shape);
        return te::Compute("T_reshape", shape, [&](const te::Indices& i) {
          te::Indices at(from.size());
          for (const Group& group : groups) {
            Expr position = IntConst(0);
            for (size_t d = group.to_begin; d < group.to_end; ++d) {
              position =
                  position * shape[d] + (shape[d] == 1 ? IntConst(0) : i[d]);
            }
            for (size_t d = group.from_end; d-- > group.from_begin;) {
              const bool first = d == group.from_begin;
              const Expr extent = IntConst(from[d]);
              at[d] = first ? position : ir::FloorMod(position, extent);
              position = ir::FloorDiv(position, extent);
            }
          }
          return te::Body(in[0](at));
        });
      });
}

absl::StatusOr<std::vector<int64_t>> NormalizeAxes(
    Node& node, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> normalized;
  std::set<int64_t> seen;
  for (const int64_t axis : axes) {
    normalized.push_back(node.NormalizeAxis(axis, rank));
    TF_RETURN_IF_ERROR(node.status());
    if (!seen.insert(normalized.back()).second) {
      return node.Invalid("axis ", axis, " is given twice");
    }
  }
  return normalized;
}

absl::StatusOr<std::vector<int64_t>> DeclaredShape(Node& node, DataType dtype,
                                                   int rank,
                                                   std::string_view unknown) {
  const std::optional<TensorType> declared = node.DeclaredOutput(0);
  if (!declared.has_value()) {
    return node.Unsupported(std::string(unknown), " is known at run time only");
  }
  if (declared->dtype != dtype || (rank >= 0 && declared->ndim() != rank)) {
    return node.Invalid("the declared output is ", declared->ToString());
  }
  TF_RETURN_IF_ERROR(CheckShape(node, declared->shape));
  return declared->shape;
}

Expr AsIndex(Expr value) {
  return ir::MakeCast(DataType::Index(), std::move(value));
}

Expr ClampIndex(Expr index, int64_t extent) {
  if (extent == 1) return IntConst(0);
  return ir::Max(ir::Min(std::move(index), IntConst(extent - 1)), IntConst(0));
}

Expr WrapIndex(Expr index, int64_t extent) {
  if (const auto value = ir::AsInt(index)) {
    index = IntConst(*value < 0 ? *value + extent : *value);
  } else {
    index = Choose(ir::LT(index, IntConst(0)), index + extent, index);
  }
  return ClampIndex(std::move(index), extent);
}

Expr Choose(Expr condition, Expr a, Expr b) {
  if (const auto known = ir::AsInt(condition)) return *known != 0 ? a : b;
  return ir::MakeSelect(std::move(condition), std::move(a), std::move(b));
}

Expr ScalarOf(const te::Tensor& tensor) {
  return tensor(te::Indices(static_cast<size_t>(tensor.ndim()), IntConst(0)));
}

absl::StatusOr<IntInput> IntInput::Read(Node& node, int input,
                                        std::vector<ValueId>& inputs) {
  const TensorType type = node.Type(input);
  TF_RETURN_IF_ERROR(node.status());
  if (type.dtype.is_float() || type.ndim() > 1) {
    return node.Invalid("input ", input, " must be a list of integers, not ",
                        type.ToString());
  }
  IntInput out;
  out.size_ = type.num_elements();
  if (node.IsConstant(input)) {
    TF_ASSIGN_OR_RETURN(out.values_, node.ConstInts(input));
    return out;
  }
  out.position_ = static_cast<int>(inputs.size());
  inputs.push_back(node.Input(input));
  return out;
}

Expr IntInput::At(const graph::Tensors& in, int64_t k) const {
  if (is_constant()) return IntConst(values_[static_cast<size_t>(k)]);
  const te::Tensor& tensor = in[static_cast<size_t>(position_)];
  return AsIndex(tensor.ndim() == 0 ? tensor({}) : tensor({IntConst(k)}));
}

}  // namespace tilefarm::onnx
