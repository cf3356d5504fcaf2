// Tensor expressions: define tensors element by element. CreatePrimFunc makes
// the program.
//
//   Tensor a = Placeholder("A", {128, 64}, DataType::Float(32));
//   Tensor b = Placeholder("B", {64, 32}, DataType::Float(32));
//   ReduceAxis k("k", 64);
//   Tensor c = Compute("C", {128, 32}, [&](const Indices& i) {
//     return Sum(a({i[0], k}) * b({k, i[1]}), {k});
//   });
//   PrimFuncPtr matmul = *CreatePrimFunc("matmul", {a, b, c});
#ifndef TILEFARM_COMPILER_TE_TENSOR_H_
#define TILEFARM_COMPILER_TE_TENSOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::te {

using Indices = std::vector<ir::Expr>;

// The variable of a reduction, from 0 to extent. Converts to an expression.
class ReduceAxis {
 public:
  ReduceAxis(std::string name, int64_t extent)
      : var_(ir::MakeVar(std::move(name))), extent_(extent) {}
  operator ir::Expr() const { return var_; }
  const ir::Var& var() const { return var_; }
  int64_t extent() const { return extent_; }

 private:
  ir::Var var_;
  int64_t extent_;
};

enum class Reducer { kNone, kSum, kProduct, kMin, kMax };
// The value that reductions start from: of kMin and kMax the largest and the
// smallest finite value.
ir::Expr ReducerIdentity(Reducer reducer, ir::DataType dtype);

// The value of one element: an expression, or its reduction over axes.
struct Body {
  ir::Expr value;
  Reducer reducer = Reducer::kNone;
  std::vector<ReduceAxis> axes;
  // What the reduction starts from; null: ReducerIdentity.
  ir::Expr init = nullptr;

  Body(ir::Expr v) : value(std::move(v)) {}
  Body(ir::Expr v, Reducer r, std::vector<ReduceAxis> a)
      : value(std::move(v)), reducer(r), axes(std::move(a)) {}
};
Body Sum(ir::Expr value, std::vector<ReduceAxis> axes);
Body Product(ir::Expr value, std::vector<ReduceAxis> axes);
Body MinOver(ir::Expr value, std::vector<ReduceAxis> axes);
Body MaxOver(ir::Expr value, std::vector<ReduceAxis> axes);

struct ComputeOp;

// A tensor: a parameter, or computed from others. Immutable and cheap to copy.
class Tensor {
 public:
  Tensor(ir::Buffer buffer, std::shared_ptr<const ComputeOp> op)
      : buffer_(std::move(buffer)), op_(std::move(op)) {}
  // An element; as many indices as dimensions. Within the function given to
  // Compute this also makes the tensor an input of the new one, so elements
  // are only read there.
  ir::Expr operator()(Indices indices) const;
  const ir::Buffer& buffer() const { return buffer_; }
  const std::vector<int64_t>& shape() const { return buffer_->shape; }
  int64_t dim(int i) const { return buffer_->shape[i]; }
  int ndim() const { return buffer_->ndim(); }
  ir::DataType dtype() const { return buffer_->dtype; }
  // Null for a placeholder.
  const std::shared_ptr<const ComputeOp>& op() const { return op_; }

 private:
  ir::Buffer buffer_;
  std::shared_ptr<const ComputeOp> op_;
};

struct ComputeOp {
  std::vector<ir::Var> axes;
  Body body;
  std::vector<Tensor> inputs;  // in order of first use
};

Tensor Placeholder(std::string name, std::vector<int64_t> shape,
                   ir::DataType dtype);
// The element type is that of the body.
Tensor Compute(std::string name, std::vector<int64_t> shape,
               const std::function<Body(const Indices&)>& element);

// The program that computes every tensor of `params` that is not a placeholder,
// and the tensors that they need. Parameters keep their order; other tensors
// become allocations. Each tensor is one block with its name; one called `root`
// becomes `root_1`. InvalidArgument: a placeholder is used but is not a
// parameter.
absl::StatusOr<ir::PrimFuncPtr> CreatePrimFunc(
    std::string name, const std::vector<Tensor>& params);

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_TENSOR_H_
