// Shapes of results, reshaping, and integers that an operator reads while the
// program is built or while it runs. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_SHAPES_H_
#define TILEFARM_COMPILER_ONNX_SHAPES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

// InvalidArgument if an extent is negative or the elements are too many to
// count; the builder limits the bytes. Call it before a shape that was computed
// from the model's numbers reaches the builder.
absl::Status CheckShape(const Node& node, const std::vector<int64_t>& shape);

// The product of the extents of dimensions [begin, end), or INT64_MAX where it
// is larger.
int64_t Volume(const std::vector<int64_t>& shape, size_t begin, size_t end);

// The outputs of a node that has one.
Outputs OneOutput(const absl::StatusOr<ValueId>& value);

// The list as an attribute of a graph operator.
ir::Attr ListOf(const std::vector<int64_t>& values);

// The elements of `x` in row-major order with another shape. InvalidArgument:
// the numbers of elements differ.
absl::StatusOr<ValueId> ReshapeTo(Node& node, ValueId x,
                                  const std::vector<int64_t>& shape);

// `axes`, normalised. InvalidArgument: out of range or given twice.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(
    Node& node, const std::vector<int64_t>& axes, int64_t rank);

// The declared type of output 0, whose rank must be `rank` (-1: any) and whose
// dtype must be `dtype`. Unimplemented, naming `unknown`, if the model does not
// declare it: without it the shape is known at run time only.
absl::StatusOr<std::vector<int64_t>> DeclaredShape(Node& node,
                                                   ir::DataType dtype, int rank,
                                                   std::string_view unknown);

// The value as an index. Floats become integers toward zero.
ir::Expr AsIndex(ir::Expr value);
// An index into [0, extent) from data: negative ones count from the end, others
// are clamped, so that no access leaves the buffer.
ir::Expr WrapIndex(ir::Expr index, int64_t extent);
ir::Expr ClampIndex(ir::Expr index, int64_t extent);
// condition ? a : b; both are evaluated.
ir::Expr Choose(ir::Expr condition, ir::Expr a, ir::Expr b);
// The only element of a tensor of rank 0 or 1.
ir::Expr ScalarOf(const te::Tensor& tensor);

// The integers of an input of rank 0 or 1: numbers if it is constant, otherwise
// loads in the program.
class IntInput {
 public:
  IntInput() = default;
  explicit IntInput(std::vector<int64_t> values)
      : size_(static_cast<int64_t>(values.size())),
        values_(std::move(values)) {}

  // Appends the input to `inputs`, those of the program, if it must be loaded.
  static absl::StatusOr<IntInput> Read(Node& node, int input,
                                       std::vector<ValueId>& inputs);

  bool is_constant() const { return position_ < 0; }
  int64_t size() const { return size_; }
  const std::vector<int64_t>& values() const { return values_; }
  // Element `k` as an index; `in` are the placeholders of `inputs`.
  ir::Expr At(const graph::Tensors& in, int64_t k) const;

 private:
  int64_t size_ = 0;
  std::vector<int64_t> values_;
  int position_ = -1;
};

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_SHAPES_H_
