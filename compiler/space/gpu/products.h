// Sums of products of two operands, as matrix units need them.
#ifndef TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_
#define TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// C[.., i, .., j] += A[.. i .. k ..] * B[.. k .. j ..], where the other
// variables index all of them.
struct MatrixProduct {
  ProductFactors factors;                   // A, B
  size_t rows = 0, columns = 0, terms = 0;  // i, j, k: variables of the block
  int a = 0, b = 0;                         // reads of the block
};
// nullopt: the block is no product of matrices.
std::optional<MatrixProduct> FindMatrixProduct(const ir::BlockNode& block);

// The variable from one value of which to the next neighbours are loaded;
// nullopt: the last index of more than one element is none.
std::optional<size_t> NeighboursOf(const ir::BlockNode& block,
                                   const ir::LoadNode& load);

// Makes a product of two matrices of a block such as a convolution:
//
//   C[n, f, y, x] += A[n, c, y + u, x + v] * W[f, c, u, v]
//   ->  C'[f, (n y x)] += A'[(c u v), (n y x)] * W'[f, (c u v)]
//
// by copies A' and W', which may be inlined, and a copy of C' to C, which is
// returned. Variables that index both operands and the result remain apart. The
// term along which an operand lies in memory is the fastest.
// `fuse`: the elementwise consumer becomes part of that copy. `sums`: the block
// adds up parts, which `block` computes (SplitInParts); both become such, and
// the copy is of the sums. FailedPrecondition if there is no such product.
absl::StatusOr<schedule::BlockRv> FlattenProduct(
    schedule::Schedule& schedule, schedule::BlockRv block, bool fuse,
    std::optional<schedule::BlockRv> sums = std::nullopt);

// What the blocks that make the operands divide a reduce variable by: of a
// window that became terms, k // 9, k % 9 // 3 and k % 3, these are 3 and 9.
// Parts of the terms that are whole (below) have each of their elements at the
// same place of all windows; of others, every element is found by divisions.
absl::StatusOr<std::vector<int64_t>> PeriodsOf(schedule::Schedule& schedule,
                                               schedule::BlockRv block,
                                               size_t variable);
// Whether parts of this size divide the periods, or are multiples of them.
bool IsWhole(int64_t part, const std::vector<int64_t>& periods);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_PRODUCTS_H_
