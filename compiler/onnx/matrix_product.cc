#include "compiler/onnx/matrix_product.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/onnx/quantize_expr.h"

namespace tilefarm::onnx {

absl::StatusOr<Product> PlanProduct(Node& node, const std::vector<int64_t>& a,
                                    const std::vector<int64_t>& b,
                                    bool transpose_a, bool transpose_b) {
  const auto fail = [&] {
    return node.Invalid("shapes [", absl::StrJoin(a, ", "), "] and [",
                        absl::StrJoin(b, ", "), "] have no product");
  };
  if (a.empty() || b.empty()) return fail();
  Product product;
  product.a_vector = a.size() == 1;
  product.b_vector = b.size() == 1;
  const auto last = [](const std::vector<int64_t>& shape, size_t from_end) {
    return shape[shape.size() - from_end];
  };
  product.k = product.a_vector ? a[0] : last(a, transpose_a ? 2 : 1);
  if (!product.a_vector) product.m = last(a, transpose_a ? 1 : 2);
  const int64_t rows = product.b_vector ? b[0] : last(b, transpose_b ? 1 : 2);
  if (!product.b_vector) product.n = last(b, transpose_b ? 2 : 1);
  if (rows != product.k) return fail();
  const auto batch_of = [](const std::vector<int64_t>& shape) {
    return std::vector<int64_t>(
        shape.begin(), shape.end() - std::min<size_t>(shape.size(), 2));
  };
  const auto batch = BroadcastShapes(batch_of(a), batch_of(b));
  if (!batch.has_value()) return fail();
  product.batch = *batch;
  return product;
}

}  // namespace tilefarm::onnx
