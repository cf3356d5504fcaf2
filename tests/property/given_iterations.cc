// Iterations that depend on each other: parallel and vector loops, private
// buffers.
#include "tests/property/given_programs.h"

namespace tilefarm::property {
namespace {

constexpr Given kGivenIterations[] = {
    {"AGuardThatOneIterationPassesKeepsABufferPrivate", R"(
@T.prim_func
def f(A: T.Buffer((11, 4), "float32"), O: T.Buffer((11, 4), "float32")):
    M = T.alloc_buffer((11, 1), "float32")
    for i0, i1, k0 in T.grid(11, 1, 4):
        with T.block("M"):
            v0, v1, vk = T.axis.remap("SSR", [i0, i1, k0])
            with T.init():
                M[v0, v1] = T.float32(-100)
            M[v0, v1] = T.max(M[v0, v1], A[v0, vk])
    for i0, i1 in T.grid(11, 4):
        with T.block("O"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            O[v0, v1] = A[v0, v1] - M[v0, 0]
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l2)
b3 = sch.get_block("M")
sch.compute_at(b3, l2, preserve_unit_loops=True)
b4 = sch.cache_write(b3, write_buffer_index=0, storage_scope="global")
b5 = sch.get_block("M_global")
l6, l7, l8, l9 = sch.get_loops(b5)
l10, l11, l12 = sch.split(l8, factors=[5, None, 8])
)",
     ""},
    {"AGuardAcrossIterationsKeepsNoBufferPrivate", R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    M = T.alloc_buffer((1,), "float32")
    for i in range(4):
        for j in range(8):
            with T.block("M"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(1, j)
                T.where(i * 8 + j < 1)
                M[vj] = A[vi] + T.float32(1)
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            O[vi] = A[vi] * M[0]
)",
     "", ""},
    {"AGuardAcrossIterationsKeepsAnArray", R"(
@T.prim_func
def f(A: T.Buffer((4, 64), "float32"), O: T.Buffer((4, 64), "float32"), P: T.Buffer((4, 64), "float32")):
    M = T.alloc_buffer((64,), "float32")
    N = T.alloc_buffer((64,), "float32")
    for i in range(4):
        for j in range(64):
            with T.block("M"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i < 1)
                M[vj] = A[vi, vj] + T.float32(1)
        for j in range(64):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = A[vi, vj] * M[63 - vj]
        for j in range(64):
            with T.block("N"):
                vi, vj = T.axis.remap("SS", [i, j])
                N[vj] = O[vi, vj] + T.float32(2)
        for j in range(64):
            with T.block("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = N[63 - vj]
)",
     "", ""},
    {"AnInitReadsWhatAnotherIterationWrites", R"(
@T.prim_func
def f(A: T.Buffer((2,), "float32"), O: T.Buffer((8,), "float32")):
    for i in range(7):
        with T.block("O"):
            vi = T.axis.spatial(7, i)
            vk = T.axis.reduce(1, 0)
            with T.init():
                O[vi] = A[1] * O[vi + 1]
)",
     R"(
b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "it reads elements of O that other iterations write"},
    {"AnInitReadsWhatItWrites", R"(
@T.prim_func
def f(A: T.Buffer((7,), "float32"), O: T.Buffer((7,), "float32")):
    for i in range(7):
        with T.block("O"):
            vi = T.axis.spatial(7, i)
            vk = T.axis.reduce(1, 0)
            with T.init():
                O[vi] = A[6 - vi] * O[vi]
)",
     R"(
b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.vectorize(l1)
)",
     ""},
    {"GapsKeepWhatAnotherIterationLeft", R"(
@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), O: T.Buffer((8, 7), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        for j in range(8):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi == 0:
                    B[vj] = T.float32(5)
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj * 2] = A[vi, vj]
        for j in range(7):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vj]
)",
     R"(
b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     "block B overwrites what block Z writes in another iteration"},
    {"ACopyWithATailIsPrivateToItsIteration", R"(
@T.prim_func
def f(A: T.Buffer((6, 70), "float32"), O: T.Buffer((6, 70), "float32")):
    B = T.alloc_buffer((70,), "float32")
    for i in range(6):
        for j0, j1 in T.grid(3, 32):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(70, j0 * 32 + j1)
                T.where(j0 * 32 + j1 < 70)
                B[vj] = A[vi, vj]
        for j in range(70):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[69 - vj]
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     ""},
    {"ATileOfACopyWithARestIsPrivateToItsIteration", R"(
@T.prim_func
def f(A: T.Buffer((4, 40), "float32"), O: T.Buffer((4, 40), "float32")):
    B = T.alloc_buffer((40,), "float32")
    for i, t in T.grid(4, 4):
        for j in range(10):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(40, t * 10 + j)
                B[vj] = A[vi, vj]
        for j in range(10):
            with T.block("O"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(40, t * 10 + j)
                O[vi, vj] = B[vj] + T.float32(1)
)",
     R"(b0 = sch.get_block("B")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l3, factors=[None, 4])
b6 = sch.get_block("O")
l7, l8, l9 = sch.get_loops(b6)
sch.parallel(l7)
)",
     ""},
    {"ACopyThatLeavesElementsOutIsNotPrivate", R"(
@T.prim_func
def f(A: T.Buffer((6, 8), "float32"), O: T.Buffer((6, 8), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(6):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i < 1 or 4 <= j)
                B[vj] = A[vi, vj]
        for j in range(8):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vj] * T.float32(2)
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     "another iteration"},
    {"ACopyThatIsShorterInSomeIterationsIsNotPrivate", R"(
@T.prim_func
def f(A: T.Buffer((6, 8), "float32"), O: T.Buffer((6, 8), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(6):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i + j < 8)
                B[vj] = A[vi, vj]
        for j in range(8):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vj] * T.float32(2)
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     "another iteration"},
    {"AnotherBufferWithGapsDoesNotMatterForPrivacy", R"(
@T.prim_func
def f(A: T.Buffer((6, 8), "float32"), W: T.Buffer((5,), "float32"), O: T.Buffer((6, 8), "float32")):
    P = T.alloc_buffer((8,), "float32")
    B = T.alloc_buffer((8,), "float32")
    for k in range(4):
        with T.block("P"):
            vk = T.axis.spatial(4, k)
            P[vk * 2] = W[vk]
    for i in range(6):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj] = A[vi, vj]
        for j in range(4):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj * 2] = B[7 - vj] * P[vj * 2]
                O[vi, vj * 2 + 1] = B[vj]
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     ""},
    {"ParallelLoopsThatReadWhatAnotherIterationWrites", R"(
@T.prim_func
def f(A: T.Buffer((16,), "float32"), O: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = T.float32(2)
        with T.block("O"):
            vi = T.axis.spatial(16, i)
            O[vi] = A[15 - vi]
)",
     R"(
b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "block O reads what block A writes in another iteration"},
    {"VectorsThatOverwriteWhatAnotherIterationReads", R"(
@T.prim_func
def f(A: T.Buffer((17,), "float32"), O: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("O"):
            vi = T.axis.spatial(16, i)
            O[vi] = A[vi + 1]
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = O[vi] * T.float32(2)
)",
     R"(
b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.vectorize(l1)
)",
     "block A overwrites what block O reads in another iteration"},
    {"ParallelLoopsWhoseInstancesOverlap", R"(
@T.prim_func
def f(A: T.Buffer((7,), "int32")):
    for i, j in T.grid(4, 4):
        with T.block("A"):
            v = T.axis.spatial(7, i + j)
            A[v] = A[v] * 2
)",
     R"(
b0 = sch.get_block("A")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
)",
     "iterations of block A would write the same elements"},
    {"ParallelLoopsThatUpdateInPlace", R"(
@T.prim_func
def f(A: T.Buffer((6, 4), "float32"), O: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = A[vi, vj] + T.float32(1)
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = O[vi, vj] * T.float32(2)
)",
     R"(
b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.reorder(l2, l1)
sch.parallel(l2)
)",
     ""},
    {"ReorderAcrossWhatAnotherIterationOverwrites", R"(
@T.prim_func
def f(A: T.Buffer((6, 4), "float32"), O: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = A[(vi + vj) % 6, vj // 2] + T.float32(1)
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(2)
)",
     R"(
b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
sch.reorder(l2, l1)
)",
     "block A overwrites what block O reads in another iteration"},
    {"IterationsThatReadEachOther", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((1,), "float32")
    with T.block("B"):
        B[0] = T.float32(0)
    for i in range(8):
        with T.block("S"):
            vi = T.axis.reduce(8, i)
            B[0] = B[0] + A[vi]
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = B[0]
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "parallel"},
    {"AnIterationThatReadsWhatTheLastOneLeft", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((2,), "float32")
    for i in range(8):
        with T.block("W"):
            vi = T.axis.spatial(8, i)
            B[0] = A[vi]
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = B[0] + T.if_then_else(vi > 0, B[1], T.float32(0))
        for j in range(2):
            with T.block("U"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj] = A[vi] * T.float32(2)
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "parallel"},
    {"IterationsThatGiveOneElementTwoValues", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((1,), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[0] = A[vi]
        with T.block("O"):
            vo = T.axis.spatial(4, i // 2)
            O[vo] = B[0]
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "write the same elements at the same time"},
    {"ParallelOverTheTermsOfASum", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.parallel(l2)
)",
     "which is not data parallel"},
};

}  // namespace

std::span<const Given> GivenIterations() { return kGivenIterations; }

}  // namespace tilefarm::property
