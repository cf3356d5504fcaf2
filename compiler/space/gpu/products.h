// Sums of products of two operands, as matrix units need them.
#ifndef TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_
#define TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::space {

// The sum that a block adds to, and the two factors, which are elements of
// other buffers, perhaps cast.
struct ProductFactors {
  const ir::StoreNode* store = nullptr;
  const ir::LoadNode* a = nullptr;
  const ir::LoadNode* b = nullptr;
};
// nullopt: it is no such block.
std::optional<ProductFactors> FactorsOf(const ir::BlockNode& block);

// Makes a product of two matrices of a block such as a convolution:
//
//   C[n, f, y, x] += A[n, c, y + u, x + v] * W[f, c, u, v]
//   ->  C'[f, (n y x)] += A'[(c u v), (n y x)] * W'[f, (c u v)]
//
// by copies A' and W', which may be inlined, and a copy of C' to C, which is
// returned. Variables that index both operands and the result remain apart.
// `fuse`: the elementwise consumer becomes part of that copy.
// FailedPrecondition if there is no such product.
absl::StatusOr<schedule::BlockRv> FlattenProduct(schedule::Schedule& schedule,
                                                 schedule::BlockRv block,
                                                 bool fuse);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_
