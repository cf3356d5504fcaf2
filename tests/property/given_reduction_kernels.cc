// Kernels in which threads reduce together, or have parts of one buffer.
#include <string>

#include "absl/strings/substitute.h"
#include "tests/property/given_kernels.h"

namespace tilefarm::property {
namespace {

constexpr char kSumsOfSeveralElementsByThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 32, 4), "float32"), B: T.Buffer((2, 4), "float32")):
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for j in range(4):
                with T.block("B"):
                    vi, vt, vj = T.axis.remap("SRS", [i, t, j])
                    with T.init():
                        B[vi, vj] = T.float32(0)
                    B[vi, vj] = B[vi, vj] + A[vi, vt, vj]
)";

constexpr char kSumsOfRowsThatMayNotExist[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 2, 6, 8), "float32"), B: T.Buffer((2, 2, 6), "float32")):
    S = T.alloc_buffer((2, 2, 6), scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for r in range(2):
            for y in T.thread_binding(8, thread="threadIdx.y"):
                for t in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block("S"):
                        vb, vr = T.axis.remap("SS", [b, r])
                        vy = T.axis.spatial(6, y)
                        vt = T.axis.reduce(8, t)
                        T.where(y < 6)
                        with T.init():
                            S[vb, vr, vy] = T.float32(0)
                        S[vb, vr, vy] = S[vb, vr, vy] + A[vb, vr, vy, vt]
        for y in T.thread_binding(8, thread="threadIdx.y"):
            for x in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vb = T.axis.spatial(2, b)
                    vx = T.axis.spatial(2, x)
                    vy = T.axis.spatial(6, y)
                    T.where(y < 6 and x < 2)
                    B[vb, vx, vy] = S[vb, vx, vy]
)";

// The same term for each thread, whose sum lowering writes in another order.
constexpr char kSumsOfEqualTermsByThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 4), "int64"), B: T.Buffer((8,), "int64")):
    S = T.alloc_buffer((8,), "int64", scope="shared")
    for i in range(8):
        for k in range(2):
            for t in T.thread_binding(2, thread="threadIdx.y"):
                with T.block("S"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(4, k * 2 + t)
                    with T.init():
                        S[vi] = T.int64(0)
                    S[vi] = S[vi] + (A[vi, 1] + A[vi, 2])
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = S[vi]
)";

// The largest of three values and where it is first ($3: "<") or last; of $0
// elements, by $1 x $2 threads. $4 to $7: which of both is stored first.
constexpr char kExtremeByThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((4, $0), "int8"), I: T.Buffer((4,), "int32"), M: T.Buffer((4,), "int8")):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for k_0 in range($1):
            for k_1 in T.thread_binding($2, thread="threadIdx.x"):
                with T.block("M"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce($0, k_0 * $2 + k_1)
                    T.where(k_0 * $2 + k_1 < $0)
                    with T.init():
                        I[vi] = T.int32(-1)
                        M[vi] = T.int8(-128)
                    x = T.Select(M[vi] > A[vi, vk] // T.int8(100) or M[vi] == A[vi, vk] // T.int8(100) and I[vi] $3 T.Cast("int32", vk), I[vi], T.Cast("int32", vk))
                    y = T.Select(M[vi] > A[vi, vk] // T.int8(100), M[vi], A[vi, vk] // T.int8(100))
                    $4[vi] = $5
                    $6[vi] = $7
)";

// Both moments of rows, by threads; all of them use both.
constexpr char kMomentsByThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((6, 100), "float32"), B: T.Buffer((6, 100), "float32")):
    S = T.alloc_buffer((6,), "float32", scope="shared")
    Q = T.alloc_buffer((6,), "float32", scope="shared")
    for i in T.thread_binding(6, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            for k in range(2):
                with T.block("S"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(100, k * 64 + t)
                    T.where(k * 64 + t < 100)
                    with T.init():
                        S[vi] = T.float32(0)
                        Q[vi] = T.float32(0)
                    x = S[vi] + A[vi, vk]
                    y = Q[vi] + A[vi, vk] * A[vi, vk]
                    S[vi] = x
                    Q[vi] = y
        for k in range(2):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.spatial(100, k * 64 + t)
                    T.where(k * 64 + t < 100)
                    B[vi, vk] = (A[vi, vk] - S[vi]) * Q[vi]
)";

// Sums of each thread, four side by side, which the same thread adds up and
// then shares. The buffers are outside of both loops of threads.
constexpr char kPartsOfThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 8, 512), "float32"), B: T.Buffer((2, 8), "float32")):
    P = T.alloc_buffer((128, 2, 8), "float32", scope="local")
    S = T.alloc_buffer((32, 2, 8), "float32", scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for y in T.thread_binding(8, thread="threadIdx.y"):
            for x in T.thread_binding(32, thread="threadIdx.x"):
                for l in T.vectorized(4):
                    with T.block("P_init"):
                        vp = T.axis.spatial(128, x * 4 + l)
                        vb, vy = T.axis.remap("SS", [b, y])
                        P[vp, vb, vy] = T.float32(0)
                for k, l in T.grid(4, 4):
                    with T.block("P"):
                        vp = T.axis.spatial(128, x * 4 + l)
                        vb, vy, vk = T.axis.remap("SSR", [b, y, k])
                        P[vp, vb, vy] = P[vp, vb, vy] + A[vb, vy, vk * 128 + vp]
        for y in T.thread_binding(8, thread="threadIdx.y"):
            for x in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("S_init"):
                    vx, vb, vy = T.axis.remap("SSS", [x, b, y])
                    S[vx, vb, vy] = T.float32(0)
                for l in range(4):
                    with T.block("S"):
                        vx, vb, vy, vl = T.axis.remap("SSSR", [x, b, y, l])
                        S[vx, vb, vy] = S[vx, vb, vy] + P[vx * 4 + vl, vb, vy]
        for y in T.thread_binding(8, thread="threadIdx.y"):
            for x in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vb, vy, vx = T.axis.remap("SSR", [b, y, x])
                    with T.init():
                        B[vb, vy] = T.float32(0)
                    B[vb, vy] = B[vb, vy] + S[vx, vb, vy]
)";

// Of what 16 rows of threads sum, one row alone stores its sums.
constexpr char kStoresOfTheFirstRow[] = R"(
@T.prim_func
def main(A: T.Buffer((64, 40), "float32"), B: T.Buffer((4, 40), "float32")):
    L = T.alloc_buffer((64, 40), "float32", scope="local")
    for y in T.thread_binding(16, thread="threadIdx.y"):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            for i, j in T.grid(4, 5):
                with T.block("L"):
                    vi = T.axis.spatial(64, y * 4 + i)
                    vj = T.axis.spatial(40, x * 5 + j)
                    L[vi, vj] = A[vi, vj] + T.float32(1)
            for i, j in T.grid(4, 5):
                with T.block("B"):
                    vi = T.axis.spatial(64, y * 4 + i)
                    vj = T.axis.spatial(40, x * 5 + j)
                    T.where(y * 4 + i < 4)
                    B[vi, vj] = L[vi, vj]
)";

}  // namespace

std::vector<GivenKernel> GivenReductionKernels() {
  return {
      // The loop of threads is around that of the elements.
      {"SumsOfSeveralElementsByThreads", kSumsOfSeveralElementsByThreads},
      // Threads without a row: its place would be in the next one.
      {"SumsOfRowsThatMayNotExist", kSumsOfRowsThatMayNotExist},
      // Lowering writes S + (a + b) as S + a + b.
      {"SumsOfEqualTermsByThreads", kSumsOfEqualTermsByThreads},
      // By shuffles in several warps, by part of a warp, and by the threads of
      // a
      // block that is no whole number of warps.
      {"FirstExtremeByWarps", absl::Substitute(kExtremeByThreads, 500, 2, 256,
                                               "<", "I", "x", "M", "y")},
      {"LastExtremeByWarps", absl::Substitute(kExtremeByThreads, 256, 4, 64,
                                              ">", "M", "y", "I", "x")},
      {"FirstExtremeByLanes",
       absl::Substitute(kExtremeByThreads, 30, 2, 16, "<", "M", "y", "I", "x")},
      {"LastExtremeByPairs", absl::Substitute(kExtremeByThreads, 100, 3, 36,
                                              ">", "I", "x", "M", "y")},
      {"MomentsByThreads", kMomentsByThreads},
      // Each thread has a part of a local buffer.
      {"PartsOfThreads", kPartsOfThreads},
      // Its part starts where that of the other rows does.
      {"StoresOfTheFirstRow", kStoresOfTheFirstRow},
  };
}

}  // namespace tilefarm::property
