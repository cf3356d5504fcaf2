// The shapes and indices of matrix products. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_MATRIX_PRODUCT_H_
#define TILEFARM_COMPILER_ONNX_MATRIX_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "compiler/onnx/node.h"
#include "compiler/te/tensor.h"

namespace tilefarm::onnx {

// The shape of a product as numpy.matmul defines it: the last two dimensions
// are matrices, the others broadcast, and vectors lose their dimension.
struct Product {
  bool a_vector = false;
  bool b_vector = false;
  std::vector<int64_t> batch;
  int64_t m = 1, k = 0, n = 1;

  // batch..., m, n: also of vectors.
  std::vector<int64_t> full_shape() const {
    std::vector<int64_t> shape = batch;
    shape.push_back(m);
    shape.push_back(n);
    return shape;
  }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> shape = batch;
    if (!a_vector) shape.push_back(m);
    if (!b_vector) shape.push_back(n);
    return shape;
  }
  // An index into full_shape() from one into shape().
  te::Indices FullIndex(const te::Indices& i) const {
    te::Indices full(i.begin(), i.begin() + batch.size());
    size_t next = batch.size();
    full.push_back(a_vector ? ir::IntConst(0) : i[next++]);
    full.push_back(b_vector ? ir::IntConst(0) : i[next]);
    return full;
  }
  ir::Expr ReadA(const te::Tensor& a, const te::Indices& full,
                 const ir::Expr& k, bool transposed) const {
    if (a_vector) return a({k});
    return ReadMatrix(a, full, full[batch.size()], k, transposed);
  }
  ir::Expr ReadB(const te::Tensor& b, const te::Indices& full,
                 const ir::Expr& k, bool transposed) const {
    if (b_vector) return b({k});
    return ReadMatrix(b, full, k, full.back(), transposed);
  }

 private:
  ir::Expr ReadMatrix(const te::Tensor& matrix, const te::Indices& full,
                      const ir::Expr& row, const ir::Expr& column,
                      bool transposed) const {
    te::Indices at;
    const int own_batch = matrix.ndim() - 2;
    const size_t skip = batch.size() - own_batch;
    for (int d = 0; d < own_batch; ++d) {
      at.push_back(matrix.dim(d) == 1 ? ir::IntConst(0) : full[skip + d]);
    }
    at.push_back(transposed ? column : row);
    at.push_back(transposed ? row : column);
    return matrix(at);
  }
};

// InvalidArgument: the shapes have no product.
absl::StatusOr<Product> PlanProduct(Node& node, const std::vector<int64_t>& a,
                                    const std::vector<int64_t>& b,
                                    bool transpose_a = false,
                                    bool transpose_b = false);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_MATRIX_PRODUCT_H_
