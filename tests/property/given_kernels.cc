// Kernels as a user may write them, each for a step of lowering that random
// schedules hardly ever need.
#include "tests/property/given_kernels.h"

#include <string>

#include "absl/strings/substitute.h"

namespace tilefarm::property {
namespace {

// A fetch that reads what another one has fetched. $0: more annotations.
constexpr char kDependentFetch[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    First = T.alloc_buffer((8, 64), scope="shared")
    Second = T.alloc_buffer((8, 64), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            for k in T.serial(4, annotations={"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]$0}):
                for a in T.thread_binding(64, thread="threadIdx.x"):
                    with T.block("First"):
                        vi = T.axis.spatial(8, i * 4 + k)
                        va = T.axis.spatial(64, a)
                        First[vi, va] = A[vi, va]
                for a in T.thread_binding(64, thread="threadIdx.x"):
                    with T.block("Second"):
                        vi = T.axis.spatial(8, i * 4 + k)
                        va = T.axis.spatial(64, a)
                        Second[vi, va] = First[vi, 63 - va] * T.float32(2)
                with T.block("B"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    B[vi, vj] = Second[vi, (vj + 1) % 64]
)";

// An asynchronous fetch of vectors. $0: the shape of A; $1: what is fetched.
constexpr char kVectorFetch[] = R"(
@T.prim_func
def main(A: T.Buffer(($0), "float32"), B: T.Buffer((8, 64), "float32")):
    X = T.alloc_buffer((8, 64), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            for k in T.serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1], "software_pipeline_async_stages": [0]}):
                for a in T.thread_binding(16, thread="threadIdx.x"):
                    for l in T.vectorized(4):
                        with T.block("X"):
                            vi = T.axis.spatial(8, i * 4 + k)
                            va = T.axis.spatial(64, a * 4 + l)
                            X[vi, va] = $1
                with T.block("B"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    B[vi, vj] = X[vi, 63 - vj]
)";

// A thread fetches elements that are not side by side, and uses two: the second
// one is what it fetched in the iteration before. $0: loops over what it
// fetches; $1, $2: their places; $3: how far an iteration goes back; $4: the
// distance of the second element.
constexpr char kElementOfTheIterationBefore[] = R"(
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((64, 3), "float32")):
    L = T.alloc_buffer((1024,), "float32", scope="local")
    for t in T.thread_binding(64, thread="threadIdx.x"):
        for k in range(3):
            for a, b in T.grid($0):
                with T.block("L"):
                    vt, vk, va, vb = T.axis.remap("SSSS", [t, k, a, b])
                    L[vt * 16 + 8 - vk * $3 + va * $1 + vb * $2] = A[vt * 16 + 8 - vk * $3 + va * $1 + vb * $2] + T.Cast("float32", vk)
            for j in range(2):
                with T.block("B"):
                    vt, vk, vj = T.axis.remap("SSR", [t, k, j])
                    with T.init():
                        B[vt, vk] = T.float32(0)
                    B[vt, vk] = B[vt, vk] + T.if_then_else(vj == 0 or vk > 0, L[vt * 16 + 8 - vk * $3 + vj * $4], T.float32(5))
)";

constexpr char kFetchOfTwoBuffersInOnePart[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 2, 64), "float32"), B: T.Buffer((8, 2, 64), "float32"), C: T.Buffer((8, 64), "float32")):
    X = T.alloc_buffer((8, 2, 64), scope="shared")
    Y = T.alloc_buffer((8, 2, 64), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            for k in T.serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
                for r in range(2):
                    for a in T.thread_binding(64, thread="threadIdx.x"):
                        with T.block("X"):
                            vi = T.axis.spatial(8, i * 4 + k)
                            vr = T.axis.spatial(2, r)
                            va = T.axis.spatial(64, a)
                            X[vi, vr, va] = A[vi, vr, va]
                        with T.block("Y"):
                            vi = T.axis.spatial(8, i * 4 + k)
                            vr = T.axis.spatial(2, r)
                            va = T.axis.spatial(64, a)
                            Y[vi, vr, va] = B[vi, vr, va]
                with T.block("C"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    C[vi, vj] = X[vi, vj % 2, 63 - vj] - Y[vi, 1 - vj % 2, (vj + 1) % 64]
)";

constexpr char kFetchByAlmostAllThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 62), "float32"), B: T.Buffer((8, 64), "float32")):
    X = T.alloc_buffer((8, 62), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            for r in range(4):
                for a in T.thread_binding(62, thread="threadIdx.x"):
                    with T.block("X"):
                        vi = T.axis.spatial(8, i * 4 + r)
                        va = T.axis.spatial(62, a)
                        X[vi, va] = A[vi, va]
            for r in range(4):
                with T.block("B"):
                    vi = T.axis.spatial(8, i * 4 + r)
                    vj = T.axis.spatial(64, j)
                    B[vi, vj] = X[vi, vj * 3 % 62]
)";

constexpr char kExchangesBetweenCopyAndUse[] = R"(
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    X = T.alloc_buffer((8, 64), scope="shared")
    Y = T.alloc_buffer((8, 64), scope="shared")
    Z = T.alloc_buffer((8, 64), scope="shared")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for k in T.serial(4, annotations={"software_pipeline_stage": [0, 1, 1, 1], "software_pipeline_order": [0, 1, 2, 3], "software_pipeline_async_stages": [0]}):
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("X"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    X[vi, vj] = A[vi, vj]
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("Y"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    Y[vi, vj] = X[vi, 63 - vj]
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("Z"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    Z[vi, vj] = Y[vi, (vj + 5) % 64] * T.float32(2)
            for j in T.thread_binding(64, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(8, i * 4 + k)
                    vj = T.axis.spatial(64, j)
                    B[vi, vj] = Z[vi, (vj + 7) % 64]
)";

constexpr char kOneBufferForEachRowOfThreads[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 4, 8), "float32"), B: T.Buffer((2, 4, 8), "float32")):
    S = T.alloc_buffer((2, 4, 8))
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for y in T.thread_binding(4, thread="threadIdx.y"):
            for x in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("S"):
                    vi, vy, vx = T.axis.remap("SSS", [i, y, x])
                    S[vi, vy, vx] = A[vi, vy, vx] + T.float32(1)
            for x in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("B"):
                    vi, vy, vx = T.axis.remap("SSS", [i, y, x])
                    B[vi, vy, vx] = S[vi, vy, 7 - vx]
)";

constexpr char kValueOfTheFirstThread[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 16), "float32"), B: T.Buffer((2, 32), "float32")):
    S = T.alloc_buffer((2,))
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for x in T.thread_binding(32, thread="threadIdx.x"):
            for a in T.thread_binding(1, thread="threadIdx.x"):
                with T.block("S"):
                    vi = T.axis.spatial(2, i)
                    S[vi] = A[vi, 3] * T.float32(2)
            with T.block("B"):
                vi, vx = T.axis.remap("SS", [i, x])
                B[vi, vx] = S[vi] + A[vi, vx % 16]
)";

constexpr char kRegistersOfThreeDigits[] = R"(
@T.prim_func
def main(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2, 64), "float32")):
    S = T.alloc_buffer((2, 64), scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for i, j, k in T.grid(2, 2, 2):
                with T.block("S"):
                    vb = T.axis.spatial(2, b)
                    vx = T.axis.spatial(64, i * 32 + j * 8 + t * 2 + k)
                    S[vb, vx] = A[vb, vx] * T.float32(2)
            for i, j, k in T.grid(2, 2, 2):
                with T.block("B"):
                    vb = T.axis.spatial(2, b)
                    vx = T.axis.spatial(64, i * 32 + j * 8 + t * 2 + k)
                    B[vb, vx] = S[vb, vx] + T.float32(1)
)";

// Each row of threads has a value of its own. They also divide a fetch anew,
// inside.
constexpr char kValuesBesideAFetchByAllRows[] = R"(
@T.prim_func
def main(A: T.Buffer((5, 16), "float32"), B: T.Buffer((5, 16), "float32")):
    S = T.alloc_buffer((5,), "float32")
    Q = T.alloc_buffer((3,), "float32", scope="shared")
    for z in T.thread_binding(3, thread="threadIdx.z"):
        for i in range(2):
            with T.block("S"):
                v = T.axis.spatial(5, z * 2 + i)
                T.where(z * 2 + i < 5)
                S[v] = A[v, 3]
            for w in T.thread_binding(3, thread="threadIdx.z"):
                with T.block("Q"):
                    v = T.axis.spatial(3, w)
                    Q[v] = A[v, 7]
            for k in T.thread_binding(16, thread="threadIdx.y"):
                with T.block("B"):
                    v = T.axis.spatial(5, z * 2 + i)
                    vk = T.axis.spatial(16, k)
                    T.where(z * 2 + i < 5)
                    B[v, vk] = A[v, vk] * S[v] - Q[v % 3]
)";

// Threads without elements would read far behind A.
constexpr char kIndexOfAllLanes[] = R"(
@T.prim_func
def main(A: T.Buffer((12,), "int32"), B: T.Buffer((3,), "float32"), C: T.Buffer((12,), "float32")):
    for t in T.thread_binding(256, thread="threadIdx.x"):
        for l in T.vectorized(4):
            with T.block("C"):
                v = T.axis.spatial(12, t * 4 + l)
                T.where(t * 4 + l < 11)
                C[v] = B[T.min(T.max(T.Cast("int64", A[v // 4 * 5]), 0), 2)]
)";

constexpr char kFetchOfMoreThanIsRead[] = R"(
@T.prim_func
def main(A: T.Buffer((4, 64, 6), "float32"), B: T.Buffer((4, 32, 6), "float32")):
    A_shared = T.alloc_buffer((4, 6, 64), scope="shared")
    for b in T.thread_binding(32, thread="blockIdx.x"):
        for n in range(1):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for v in T.vectorized(2):
                    with T.block("A_shared"):
                        vb = T.axis.spatial(4, b // 8)
                        vi = T.axis.spatial(64, b % 8 * 8 + (n * 64 + t * 2 + v) // 6)
                        vj = T.axis.spatial(6, (n * 64 + t * 2 + v) % 6)
                        T.where(n * 64 + t * 2 + v < 48)
                        A_shared[vb, vj, vi] = A[vb, vi, vj]
        for j in range(6):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("B"):
                    vb = T.axis.spatial(4, b // 8)
                    vi = T.axis.spatial(32, b % 8 * 4 + t % 4)
                    vj = T.axis.spatial(6, j)
                    T.where(t < 4)
                    B[vb, vi, vj] = A_shared[vb, vj, vi // 4 * 8 + vi % 4]
)";

// Attention of 16 rows by the threads of a warp, whose scores stay in
// registers. $0: what is added to the scores; $1, $2: the loops over columns of
// scores and which column theirs is.
constexpr char kRowsOfQuads[] = R"(
@T.prim_func
def main(Q: T.Buffer((32, 16), "float16"), K: T.Buffer((32, 16), "float16"), V: T.Buffer((32, 16), "float16"), B: T.Buffer((32, 32), "float32"), A: T.Buffer((32, 16), "float16")):
    Qs = T.alloc_buffer((32, 16), "float16", scope="shared")
    Ks = T.alloc_buffer((32, 16), "float16", scope="shared")
    Vs = T.alloc_buffer((32, 16), "float16", scope="shared")
    S = T.alloc_buffer((32, 32), scope="local")
    X = T.alloc_buffer((32, 32), scope="local")
    M = T.alloc_buffer((32,), scope="local")
    E = T.alloc_buffer((32, 32), scope="local")
    D = T.alloc_buffer((32,), scope="local")
    P = T.alloc_buffer((32, 32), "float16", scope="local")
    O = T.alloc_buffer((32, 16), scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
            for i in range(4):
                for y in T.thread_binding(8, thread="threadIdx.x"):
                    for v in T.vectorized(8):
                        with T.block("Qs"):
                            vi = T.axis.spatial(32, b * 16 + i * 4 + y // 2)
                            vk = T.axis.spatial(16, y % 2 * 8 + v)
                            Qs[vi, vk] = Q[vi, vk]
            for i in range(8):
                for y in T.thread_binding(8, thread="threadIdx.x"):
                    for v in T.vectorized(8):
                        with T.block("Ks"):
                            vi = T.axis.spatial(32, i * 4 + y // 2)
                            vk = T.axis.spatial(16, y % 2 * 8 + v)
                            Ks[vi, vk] = K[vi, vk]
            for i in range(2):
                for j in range(2):
                    for y in T.thread_binding(8, thread="threadIdx.x"):
                        for v in T.vectorized(16):
                            with T.block("Vs"):
                                vi = T.axis.spatial(32, i * 16 + j * 8 + y)
                                vk = T.axis.spatial(16, v)
                                Vs[vi, vk] = V[vi, vk]
            for k in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                for t, j in T.grid(2, 32):
                    with T.block("S"):
                        vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                        vj = T.axis.spatial(32, j)
                        vk = T.axis.reduce(16, k)
                        with T.init():
                            S[vi, vj] = T.float32(0)
                        S[vi, vj] = S[vi, vj] + T.Cast("float32", Qs[vi, vk]) * T.Cast("float32", Ks[vj, vk])
            for t, $1:
                with T.block("X"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vj = T.axis.spatial(32, $2)
                    X[vi, vj] = S[vi, vj] * T.float32(0.25)$0
            for t, $1:
                with T.block("M"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vj = T.axis.reduce(32, $2)
                    with T.init():
                        M[vi] = T.float32(-3.4028234663852886e+38)
                    M[vi] = T.max(M[vi], X[vi, vj])
            for t, $1:
                with T.block("E"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vj = T.axis.spatial(32, $2)
                    E[vi, vj] = T.exp(X[vi, vj] - M[vi])
            for t, $1:
                with T.block("D"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vj = T.axis.reduce(32, $2)
                    with T.init():
                        D[vi] = T.float32(0)
                    D[vi] = D[vi] + E[vi, vj]
            for t, $1:
                with T.block("P"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vj = T.axis.spatial(32, $2)
                    P[vi, vj] = T.Cast("float16", E[vi, vj])
            for j0, t, d in T.grid(2, 2, 16):
                for j1 in T.serial(16, annotations={"tilefarm.warp_matrix": "mma"}):
                    with T.block("O"):
                        vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                        vd = T.axis.spatial(16, d)
                        vj = T.axis.reduce(32, j0 * 16 + j1)
                        with T.init():
                            O[vi, vd] = T.float32(0)
                        O[vi, vd] = O[vi, vd] + T.Cast("float32", P[vi, vj]) * T.Cast("float32", Vs[vj, vd])
            for t, d in T.grid(2, 16):
                with T.block("A"):
                    vi = T.axis.spatial(32, b * 16 + t * 8 + x)
                    vd = T.axis.spatial(16, d)
                    A[vi, vd] = T.Cast("float16", O[vi, vd] / D[vi])
)";

// What a thread has of its row goes to shared memory, for the row opposite.
constexpr char kSharedByRowsOfQuads[] = R"(
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32, 16), "float32"), C: T.Buffer((32, 16), "float32")):
    R = T.alloc_buffer((32,), scope="local")
    S = T.alloc_buffer((32, 16), scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for x in T.thread_binding(8, thread="threadIdx.x", annotations={"tilefarm.row_quads": 1}):
            with T.block("R"):
                vi = T.axis.spatial(32, b * 8 + x)
                R[vi] = A[vi] * T.float32(2)
            for j in range(16):
                with T.block("S"):
                    vi = T.axis.spatial(32, b * 8 + x)
                    vj = T.axis.spatial(16, j)
                    S[vi, vj] = R[vi] + B[vi, vj]
        for y in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(16):
                with T.block("C"):
                    vi = T.axis.spatial(32, b * 8 + y)
                    vj = T.axis.spatial(16, j)
                    C[vi, vj] = S[vi // 8 * 8 + 7 - vi % 8, vj]
)";

// Rows begin at any byte, and threads read 16 of them at once.
constexpr char kRowsOfOddBytes[] = R"(
@T.prim_func
def main(A: T.Buffer((64, 37), "int8"), B: T.Buffer((64, 37), "int8")):
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for j in T.vectorized(37):
                with T.block("B"):
                    vi = T.axis.spatial(64, i * 32 + t)
                    vj = T.axis.spatial(37, j)
                    B[vi, vj] = A[vi, vj]
)";

}  // namespace

std::vector<GivenKernel> GivenKernels() {
  std::vector<GivenKernel> kernels = GivenReductionKernels();
  const std::vector<GivenKernel> others = {
      // What a thread reads of First was stored by another one in the same
      // iteration; what is stored ahead is another version of Second only.
      {"FetchOfWhatAnotherFetchStored", absl::Substitute(kDependentFetch, "")},
      // The first fetch is read before anything waits for it.
      {"AsyncFetchOfWhatAnotherFetchStored",
       absl::Substitute(kDependentFetch,
                        ", \"software_pipeline_async_stages\": [0]")},
      // Lanes are contiguous in shared memory alone.
      {"FetchOfEverySecondElement",
       absl::Substitute(kVectorFetch, "8, 128", "A[vi, va * 2 + 1]")},
      // All 16 bytes arrive.
      {"FetchOfVectors", absl::Substitute(kVectorFetch, "8, 64", "A[vi, va]")},
      // Zeros instead of what lies behind the tensor.
      {"FetchOfRowsThatMayNotExist",
       absl::Substitute(kVectorFetch, "6, 64",
                        "T.if_then_else(vi < 6, A[vi, va], T.float32(0))")},
      // What does not exist is 3, which no copy writes.
      {"FetchOfRowsWithAnotherFill",
       absl::Substitute(kVectorFetch, "6, 64",
                        "T.if_then_else(vi < 6, A[vi, va], T.float32(3))")},
      // Of three elements side by side, the one behind them.
      {"ElementBehindThoseOfThisIteration",
       absl::Substitute(kElementOfTheIterationBefore, "3, 1", 1, 1, 1, 3)},
      // Of 0, 1, 4 and 5, element 2.
      {"ElementBetweenThoseOfThisIteration",
       absl::Substitute(kElementOfTheIterationBefore, "2, 2", 1, 4, 2, 2)},
      // Registers of the second buffer follow those of the first.
      {"FetchOfTwoBuffersInOnePart", kFetchOfTwoBuffersInOnePart},
      // Two of 64 threads have no element.
      {"FetchByAlmostAllThreads", kFetchByAlmostAllThreads},
      // Barriers before a copy arrives do not make it visible.
      {"ExchangesBetweenCopyAndUse", kExchangesBetweenCopyAndUse},
      // Threads divide the loops inside of one over other threads.
      {"OneBufferForEachRowOfThreads", kOneBufferForEachRowOfThreads},
      // One thread stores what all read.
      {"ValueOfTheFirstThread", kValueOfTheFirstThread},
      // What a thread has of a row lies apart, at two distances.
      {"RegistersOfThreeDigits", kRegistersOfThreeDigits},
      // Q's fetch is divided by the axis that S has a value for each of.
      {"ValuesBesideAFetchByAllRows", kValuesBesideAFetchByAllRows},
      // The index is the same in all lanes, and read where one of them is.
      {"IndexOfAllLanes", kIndexOfAllLanes},
      // Rows have room for what is fetched, whatever of it is read.
      {"FetchOfMoreThanIsRead", kFetchOfMoreThanIsRead},
      // The lanes of a quad divide a row's elements, but know their row alone.
      {"SharedByRowsOfQuads", kSharedByRowsOfQuads},
      {"RowsOfOddBytes", kRowsOfOddBytes},
      // Lanes have columns of a row that a thread computes.
      {"RowsOfQuads",
       absl::Substitute(kRowsOfQuads, "", "j in T.grid(2, 32)", "j"),
       /*tensor_cores=*/true},
      // Also of what is added, and by loops over digits of a column.
      {"RowsOfQuadsWithMask",
       absl::Substitute(kRowsOfQuads, " + B[vi, vj]",
                        "j0, j1 in T.grid(2, 8, 4)", "j0 * 4 + j1"),
       /*tensor_cores=*/true},
      // Lanes have columns on both sides of the diagonal.
      {"RowsOfQuadsToTheDiagonal",
       absl::Substitute(kRowsOfQuads,
                        " + T.if_then_else(vj <= vi, B[vi, vj], "
                        "T.float32(-10000))",
                        "j in T.grid(2, 32)", "j"),
       /*tensor_cores=*/true},
  };
  kernels.insert(kernels.end(), others.begin(), others.end());
  const std::vector<GivenKernel> clusters = GivenClusterKernels();
  kernels.insert(kernels.end(), clusters.begin(), clusters.end());
  return kernels;
}

}  // namespace tilefarm::property
