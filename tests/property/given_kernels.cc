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
  return {
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
      // The loop of threads is around that of the elements.
      {"SumsOfSeveralElementsByThreads", kSumsOfSeveralElementsByThreads},
      // Threads divide the loops inside of one over other threads.
      {"OneBufferForEachRowOfThreads", kOneBufferForEachRowOfThreads},
      // One thread stores what all read.
      {"ValueOfTheFirstThread", kValueOfTheFirstThread},
      // What a thread has of a row lies apart, at two distances.
      {"RegistersOfThreeDigits", kRegistersOfThreeDigits},
      // Threads without a row: its place would be in the next one.
      {"SumsOfRowsThatMayNotExist", kSumsOfRowsThatMayNotExist},
      // Q's fetch is divided by the axis that S has a value for each of.
      {"ValuesBesideAFetchByAllRows", kValuesBesideAFetchByAllRows},
      // Lowering writes S + (a + b) as S + a + b.
      {"SumsOfEqualTermsByThreads", kSumsOfEqualTermsByThreads},
      // The index is the same in all lanes, and read where one of them is.
      {"IndexOfAllLanes", kIndexOfAllLanes},
      // Rows have room for what is fetched, whatever of it is read.
      {"FetchOfMoreThanIsRead", kFetchOfMoreThanIsRead},
      // The lanes of a quad divide a row's elements, but know their row alone.
      {"SharedByRowsOfQuads", kSharedByRowsOfQuads},
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
      {"RowsOfOddBytes", kRowsOfOddBytes},
      // Its part starts where that of the other rows does.
      {"StoresOfTheFirstRow", kStoresOfTheFirstRow},
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
}

}  // namespace tilefarm::property
