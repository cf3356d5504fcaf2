// Blocks that a kernel of a library may compute: what call_library marks
// (ir::kLibrary) and lowering turns into a call. The marked block stays an
// ordinary one, so that everything else reads the program as before.
#ifndef TILEFARM_COMPILER_IR_LIBRARY_CALL_H_
#define TILEFARM_COMPILER_IR_LIBRARY_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct LibraryKernel {
  std::string_view name;     // "openblas.sgemm"
  std::string_view library;  // base/device_libraries.h: "openblas"
};

// All of them; their positions are those of GemmCall::kernel.
std::span<const LibraryKernel> LibraryKernels();
// The position; nullopt for an unknown name.
std::optional<int> FindLibraryKernel(std::string_view name);

// C = A B of float32 matrices in row-major order, `batch` times: A is m x k (or
// its transpose is), B k x n, C m x n. Leading dimensions and the distances
// from one of the batch to the next are in elements. Every number fits int32
// but the distances.
struct GemmForm {
  // Loads of the first elements.
  Expr a, b, c;
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 1, ldb = 1, ldc = 1;
  bool transpose_a = false, transpose_b = false;
  int64_t batch = 1;
  int64_t batch_a = 0, batch_b = 0, batch_c = 0;
};

// FailedPrecondition, with the reason, where the block is no such product:
//
//   C[b, i, j] = 0; C[b, i, j] += A[b, i, k] * B[b, k, j]
//
// with any number of variables of each kind and any order of dimensions that
// leaves matrices with contiguous rows or columns.
absl::StatusOr<GemmForm> MatchGemm(const BlockNode& block);

// FailedPrecondition where the loops are not those of the block's variables,
// each of them serial, from 0 and bound to a whole variable.
absl::Status CheckLibraryNest(const BlockNode& block,
                              std::span<const ForNode* const> loops);

// Lowered: Evaluate(T.library_gemm(kernel, a, b, c, m, n, k, lda, ldb, ldc,
// transpose_a, transpose_b, batch, batch_a, batch_b, batch_c)).
inline constexpr int kGemmNumbers = 12;
Stmt MakeGemmCall(int kernel, const GemmForm& form);
// Null where the statement is another one.
const CallNode* AsGemmCall(const Stmt& stmt);

// Names of the kernels that marked blocks below ask for, sorted, each once.
std::vector<std::string> LibraryCallsIn(const Stmt& stmt);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_LIBRARY_CALL_H_
