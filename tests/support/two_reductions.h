// A program with two reductions in one block.
#ifndef TILEFARM_TESTS_SUPPORT_TWO_REDUCTIONS_H_
#define TILEFARM_TESTS_SUPPORT_TWO_REDUCTIONS_H_

#include <cstdint>

#include "absl/strings/substitute.h"
#include "base/check.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::property {

// The sum of each row and that of its squares (or its `largest` element), and
// what is computed from both.
inline ir::PrimFuncPtr TwoReductions(int64_t rows, int64_t columns,
                                     bool largest = false) {
  const auto function = ir::ParseFunction(
      absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($0, $1), "float32"), B: T.Buffer(($0, $1), "float32")):
    S = T.alloc_buffer(($0,), "float32")
    Q = T.alloc_buffer(($0,), "float32")
    for i, k in T.grid($0, $1):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32($2)
            S[vi] = S[vi] + A[vi, vk]
            Q[vi] = $3
    for i, k in T.grid($0, $1):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] * S[vi] - Q[vi]
)",
                       rows, columns, largest ? "-3.4028234663852886e38" : "0",
                       largest ? "T.max(Q[vi], A[vi, vk])"
                               : "Q[vi] + A[vi, vk] * A[vi, vk]"),
      "two_reductions.py");
  TF_CHECK(function.ok());
  return *function;
}

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_SUPPORT_TWO_REDUCTIONS_H_
