// Blocks that a library kernel may compute: call_library marks them
// (ir::kLibrary) and lowering turns them into calls. A marked block is still an
// ordinary block, so that other code reads the program as before.
#ifndef TILEFARM_COMPILER_IR_LIBRARY_CALL_H_
#define TILEFARM_COMPILER_IR_LIBRARY_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct LibraryKernel {
  std::string_view name;     // for example "openblas.sgemm"
  std::string_view library;  // base/device_libraries.h: "openblas"
};

// All kernels; GemmCall::kernel is a position in this list.
std::span<const LibraryKernel> LibraryKernels();
// The position of the kernel; nullopt for an unknown name.
std::optional<int> FindLibraryKernel(std::string_view name);

// C = A B of float32 matrices in row-major order, `batch` times: A is m x k (or
// stored transposed), B k x n, C m x n. Leading dimensions and the distances
// between the matrices of a batch are in elements. All numbers except the
// distances fit int32.
struct GemmForm {
  // Loads of the first elements.
  Expr a, b, c;
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 1, ldb = 1, ldc = 1;
  bool transpose_a = false, transpose_b = false;
  int64_t batch = 1;
  int64_t batch_a = 0, batch_b = 0, batch_c = 0;
};

// FailedPrecondition, with the reason, if the block is not such a product:
//
//   C[b, i, j] = 0; C[b, i, j] += A[b, i, k] * B[b, k, j]
//
// with any number of variables of each kind and any order of dimensions, as
// long as rows or columns of each matrix are contiguous.
absl::StatusOr<GemmForm> MatchGemm(const BlockNode& block);

// FailedPrecondition unless each loop is serial, starts at 0 and is bound to
// one whole variable of the block.
absl::Status CheckLibraryNest(const BlockNode& block,
                              std::span<const ForNode* const> loops);

// The lowered form: Evaluate(T.library_gemm(kernel, a, b, c, m, n, k, lda, ldb,
// ldc, transpose_a, transpose_b, batch, batch_a, batch_b, batch_c)).
inline constexpr int kGemmNumbers = 12;
Stmt MakeGemmCall(int kernel, const GemmForm& form);
// The call if the statement is one; else null.
const MachineOpNode* AsGemmCall(const Stmt& stmt);

// The kernels that marked blocks below use, sorted, without duplicates.
std::vector<std::string> LibraryCallsIn(const Stmt& stmt);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_LIBRARY_CALL_H_
