// Programs that were once compiled wrongly, by class. All ways of running each
// must give the same results, and illegal primitives must be rejected. The file
// is one table of programs, whose length is the number of faults.
#include "tests/property/differential.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::property {
namespace {

struct Given {
  const char* name;
  const char* program;
  const char* trace;    // "": only the program
  const char* refusal;  // "": the trace is legal
};

const Given kGiven[] = {
    {"InitReadsWhatABlockBesideItWrites", R"(
@T.prim_func
def f(X: T.Buffer((8,), "float32"), A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = X[vi] * T.float32(2)
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = D[vi]
            C[vi] = C[vi] + A[vi, vk]
)",
     "", ""},
    {"AnInitOfAnotherElementThanTheUpdate", R"(
@T.prim_func
def f(P: T.Buffer((3,), "float32"), O: T.Buffer((8,), "float32")):
    W = T.alloc_buffer((7, 4), "float32")
    for i in range(8):
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            O[vi] = P[vi % 3]
    for i in range(8):
        with T.block("W"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(1, 0)
            with T.init():
                W[vk * 2 + 1, vk] = T.float32(-1)
            W[T.min(vi, 6), (vi + 1) % 4] = W[T.min(vi, 6), (vi + 1) % 4] + P[vk]
)",
     R"(b0 = sch.get_block("W")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "would write the same elements at the same time"},
    {"ReindexOfAnIndexThatIsComputed", R"(
@T.prim_func
def f(X: T.Buffer((4,), "int32"), A: T.Buffer((16,), "float32"), C: T.Buffer((4,), "float32")):
    Q = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("Q"):
            vi = T.axis.spatial(4, i)
            Q[vi] = X[vi] * 2
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[T.min(T.max(T.Cast("int64", Q[vi]), 0), 15)]
)",
     R"(b0 = sch.get_block("C")
b1 = sch.reindex(b0, buffer=["read", 0])
)",
     "that do not follow from its variables"},
    {"DecomposedInitReadsWhatABlockBesideItWrites", R"(
@T.prim_func
def f(X: T.Buffer((8,), "float32"), A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = X[vi] * T.float32(2)
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = D[vi]
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.decompose_reduction(b0, l2)
)",
     "its initialisation reads buffer D"},
    {"FactoredReductionThatStartsTwice", R"(
@T.prim_func
def f(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    for k in range(16):
        with T.block("C"):
            vk = T.axis.reduce(8, k // 2)
            with T.init():
                C[0] = 0
            C[0] = C[0] + A[vk]
)",
     R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
b2 = sch.rfactor(l1, factor_axis=0)
)",
     "several reductions end in the same element"},
    {"BlockizedReductionWithoutItsFirstTerm", R"(
@T.prim_func
def f(C: T.Buffer((1,), "float32"), D: T.Buffer((1,), "float32")):
    for k in range(1, 2):
        with T.block("C"):
            vk = T.axis.reduce(2, k)
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + T.float32(1)
)",
     R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
b2 = sch.blockize(l1)
)",
     "does not start at its first term"},
    {"LetReadsTheReduction", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32"), D: T.Buffer((8,), "float32")):
    for k in range(8):
        with T.block("D"):
            vk = T.axis.spatial(8, k)
            c = C[0]
            D[vk] = c
        with T.block("C"):
            vk = T.axis.reduce(8, k)
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + A[vk]
)",
     "", ""},
    {"ConditionReadsTheReduction", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32"), D: T.Buffer((8,), "float32")):
    for k in range(8):
        with T.block("D"):
            vk = T.axis.spatial(8, k)
            if C[0] > T.float32(0):
                D[vk] = T.float32(1)
        with T.block("C"):
            vk = T.axis.reduce(8, k)
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + A[vk]
)",
     "", ""},
    {"ReductionReadsOtherElements", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32")):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                W[vi] = T.float32(0.5)
            W[vi] = W[vi] + T.abs(W[vk]) + A[vk]
)",
     "", ""},
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
    {"MovedReductionLosesALoopThatRepeatsIt", R"(
@T.prim_func
def f(A: T.Buffer((4,), "int32"), O: T.Buffer((8,), "int32")):
    W = T.alloc_buffer((4,), "int32")
    for n, i in T.grid(1, 4):
        with T.block("W"):
            vi = T.axis.spatial(4, i)
            W[vi] = A[vi]
    for k, n in T.grid(13, 8):
        with T.block("O"):
            vk = T.axis.reduce(13, k)
            with T.init():
                O[3] = 4
            O[3] = O[3] + W[2]
)",
     R"(
b0 = sch.get_block("W")
l1, l2 = sch.get_loops(b0)
b3 = sch.get_block("O")
sch.reverse_compute_at(b3, l1)
)",
     "its loops repeat updates of an element"},
    {"MovedBlockRunsNoOtherInstances", R"(
@T.prim_func
def f(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    W = T.alloc_buffer((2,), "int32")
    for i in range(1, 3):
        with T.block("W"):
            vi = T.axis.spatial(3, i)
            W[vi - 1] = A[vi]
    for i in range(4):
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            O[vi] = W[vi // 2]
)",
     R"(
b0 = sch.get_block("W")
b1 = sch.get_block("O")
l2, = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
     ""},
    {"MovedBlockWithGapsBetweenItsInstances", R"(
@T.prim_func
def f(A: T.Buffer((8,), "int32"), O: T.Buffer((8,), "int32")):
    W = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("W"):
            vi = T.axis.spatial(8, i)
            W[vi] = A[vi]
    for i in range(4):
        with T.block("O"):
            vi = T.axis.spatial(8, i * 2)
            O[vi] = W[vi]
)",
     R"(
b0 = sch.get_block("W")
l1, = sch.get_loops(b0)
b2 = sch.get_block("O")
sch.reverse_compute_at(b2, l1)
)",
     "it is not known which of its instances run"},
    {"OuterReductionReadsElementsThatAreYetToBegin", R"(
@T.prim_func
def f(A: T.Buffer((6,), "float32"), W: T.Buffer((4,), "float32")):
    for k, i in T.grid(6, 4):
        with T.block("C"):
            vk, vi = T.axis.remap("RS", [k, i])
            with T.init():
                W[vi] = T.float32(0.5)
            W[vi] = T.max(W[vi], W[3 - vi]) + A[vk]
)",
     "", ""},
    {"BlockizedReductionReadsOtherElements", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32")):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                W[vi] = T.float32(0.5)
            W[vi] = W[vi] + T.abs(W[vk]) + A[vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.blockize(l1)
)",
     "reads elements of W that other iterations write"},
    {"InitUsesAReduceVariable", R"(
@T.prim_func
def f(A: T.Buffer((7,), "float32"), C: T.Buffer((7, 7), "float32")):
    for i, k in T.grid(7, 7):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi, vk] = T.float32(1)
            C[vi, 0] = C[vi, 0] + A[vk]
)",
     "", ""},
    {"CopyOfAReductionThatReadsWhatItLeaves", R"(
@T.prim_func
def f(A: T.Buffer((9, 2), "float32")):
    with T.block("C"):
        v0 = T.axis.reduce(1, 0)
        with T.init():
            A[8, 1] = T.float32(0)
        A[8, 1] = A[8, 1] + A[v0, v0] * A[v0 + 1, v0]
)",
     R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, write_buffer_index=0, storage_scope="global")
)",
     "reads elements of A that other iterations write"},
    {"StridedInline", R"(
@T.prim_func
def f(A: T.Buffer((32,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((32,), "float32")
    for i in range(32):
        with T.block("B"):
            vi = T.axis.spatial(32, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi * 2] + T.float32(1)
)",
     R"(b0 = sch.get_block("C")
sch.reverse_compute_inline(b0)
)",
     ""},
    {"SplitWithoutItsPredicate", R"(
@T.prim_func
def f(A: T.Buffer((4, 32), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 20):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[3, 8], disable_predication=True)
)",
     "exceeds the extent 20"},
    {"OnlineSoftmaxAcrossAWrite", R"(
@T.prim_func
def f(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32"), M: T.Buffer((4,), "float32"), S: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 64):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e38)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(4, 64):
        with T.block("W"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = B[vi, vk]
    for i, k in T.grid(4, 64):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
)",
     R"(b0 = sch.get_block("S")
b1, b2 = sch.online_softmax(b0, chunk=16, lanes=4)
)",
     "block W overwrites what M reads"},
    {"ReindexOfAPartialWrite", R"(
@T.prim_func
def f(O2: T.Buffer((3, 1), "float32")):
    for i8 in range(3):
        with T.block("C4"):
            v11 = T.axis.spatial(3, i8)
            if v11 <= 1:
                O2[v11, 0] = T.float32(1.0)
)",
     R"(b0 = sch.get_block("C4")
b1 = sch.reindex(b0, buffer=["write", 0])
)",
     "does not write every element of buffer O2"},
    {"CacheWriteOfAPartialWrite", R"(
@T.prim_func
def f(O2: T.Buffer((3, 1), "float32")):
    for i8 in range(3):
        with T.block("C4"):
            v11 = T.axis.spatial(3, i8)
            if v11 <= 1:
                O2[v11, 0] = T.float32(1.0)
)",
     R"(b0 = sch.get_block("C4")
b1 = sch.cache_write(b0, write_buffer_index=0, storage_scope="global")
)",
     "does not surely write every element"},
    {"ReorderOfAnUpdateThatDoesNotCommute", R"(
@T.prim_func
def f(A: T.Buffer((8, 4), "int32"), C: T.Buffer((1,), "int32")):
    for i, k in T.grid(8, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("RR", [i, k])
            with T.init():
                C[0] = 1
            C[0] = C[0] * 3 + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.reorder(l2, l1)
)",
     "its update is not commutative"},
    {"ReorderOfARepeatedReduction", R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32"), C: T.Buffer((2,), "float32")):
    for k, i in T.grid(4, 4):
        with T.block("C"):
            vk = T.axis.reduce(4, k)
            vi = T.axis.spatial(2, i // 2)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.reorder(l2, l1)
)",
     "repeats its instances"},
    {"LoopsThatBeginElsewhere", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for i in range(4):
        for j in range(2, 8):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial((2, 8), j)
                C[vi, vj] = A[vi, vj - 2]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[3, None])
)",
     ""},
    {"BlockizeOfACopyOfAPart", R"(
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4, 2), "float32")):
    with T.block("C"):
        v0 = T.axis.reduce(1, 0)
        with T.init():
            C[1, 2, 1] = T.float32(0)
        C[1, 2, 1] = C[1, 2, 1] + A[v0, v0]
)",
     R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, write_buffer_index=0, storage_scope="local")
b2 = sch.get_block("C_local")
l3, l4, l5 = sch.get_loops(b2)
b6 = sch.blockize(l3)
)",
     ""},
    {"SpaceOfAFunctionOfScalars", R"(
@T.prim_func
def f(A: T.Buffer((), "float32"), O: T.Buffer((1, 1), "bool")):
    W = T.alloc_buffer((6,), "float32")
    for i0, i1 in T.grid(1, 1):
        with T.block("blk0"):
            v1 = T.axis.reduce(1, i1)
            with T.init():
                W[5] = T.float32(0.0)
            W[5] = A[()]
    with T.block("B1"):
        A[()] = A[()] + A[()]
    for i2, i3, i4, i5 in T.grid(1, 1, 1, 1):
        with T.block("B3"):
            O[0, 0] = T.bool(True)
)",
     "", ""},
    {"MaximumOfScalarHalves", R"(
@T.prim_func
def f(A: T.Buffer((5, 2), "float16"), O: T.Buffer((6,), "float16")):
    for i in range(6):
        with T.block("O"):
            v = T.axis.spatial(6, i)
            O[v] = T.max(A[v // 3, v % 2], T.float16(2.0)) - T.min(A[v // 2, 0], T.float16(1.0))
)",
     "", ""},
    {"CastsToHalfs", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, i)
            O[v] = T.Cast("float32", T.Cast("float16", A[v] * T.float32(0.01)))
            P[v] = T.Cast("float32", T.Cast("bfloat16", A[v] * T.float32(0.01)))
)",
     "", ""},
    {"DataOfSixtyFourBitsWraps", R"(
@T.prim_func
def f(A: T.Buffer((4,), "int64"), O: T.Buffer((4,), "bool"), P: T.Buffer((4,), "int64")):
    for i in range(4):
        with T.block("O"):
            v = T.axis.spatial(4, i)
            O[v] = A[v] + T.int64(9223372036854775805) > A[v]
        with T.block("P"):
            v = T.axis.spatial(4, i)
            P[v] = T.min((A[v] + T.int64(4611686018427387900)) * T.int64(4) // T.int64(4), A[v])
)",
     "", ""},
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
    {"ALoopThatRepeatsABlock", R"(
@T.prim_func
def f(A: T.Buffer((2,), "float32"), O: T.Buffer((2,), "float32")):
    for i in range(16):
        with T.block("O"):
            v = T.axis.spatial(1, 0)
            O[v] = A[v]
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     "write the same elements at the same time"},
    {"ABlockOfALibraryStaysAsItIs", R"(
@T.prim_func
def f(A: T.Buffer((12, 11), "float32"), B: T.Buffer((12, 11), "float32"), C: T.Buffer((12, 12), "float32")):
    for i, j, k in T.grid(12, 12, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
)",
     R"(b0 = sch.get_block("C")
sch.call_library(b0, kernel="openblas.sgemm")
l1, l2, l3 = sch.get_loops(b0)
sch.vectorize(l2)
)",
     "a library computes the block"},
    {"PaddingBeyondEveryLimit", R"(
@T.prim_func
def f(A: T.Buffer((12, 11), "float32"), B: T.Buffer((12, 11), "float32"), C: T.Buffer((12, 12), "float32")):
    for i, j, k in T.grid(12, 12, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
)",
     R"(b0 = sch.get_block("C")
sch.pad_einsum(b0, padding=[2147483647, 2147483647, 2147483647])
)",
     "too large"},
    {"RegionsThatLie", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(B[vi])
            B[vi] = A[vi]
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            T.reads()
            T.writes(A[vi])
            A[vi] = T.float32(7)
    for i in range(8):
        with T.block("O"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi])
            T.writes(O[vi])
            O[vi] = B[vi]
)",
     R"(b0 = sch.get_block("B")
sch.compute_inline(b0)
)",
     "block A overwrites what it reads"},
    {"AWriterWithGapsOwnsNothing", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), O: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for j in range(8):
        with T.block("Z"):
            vj = T.axis.spatial(8, j)
            B[vj] = T.float32(5)
    for i in range(4):
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj * 2] = A[vi, vj]
        for j in range(8):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vj]
)",
     "", ""},
    {"AWriterWithGapsKeepsWhatTheIterationBeforeWrote", R"(
@T.prim_func
def f(A: T.Buffer((4, 2), "float32"), O: T.Buffer((4, 3), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(4):
        for j in range(1):
            with T.block("First"):
                vi, vj = T.axis.remap("SS", [i, j])
                if vi == 0:
                    B[vi * 2 + 2] = T.float32(5)
        for j in range(2):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 2 + vj * 4] = A[vi, vj]
        for j in range(3):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vi * 2 + vj * 2]
)",
     "", ""},
    {"AWriterBelowTheFirstOne", R"(
@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), O: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((64,), "float32")
    for i in range(4):
        for j in range(4):
            with T.block("High"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj + 40] = A[vi, vj]
        for j in range(4):
            with T.block("Low"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vj + 8] = A[vi, vj] * T.float32(2)
        for j in range(4):
            with T.block("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = B[vj + 40] - B[vj + 8]
)",
     "", ""},
    {"RfactorOfABlockWithTails", R"(
@T.prim_func
def f(A: T.Buffer((10, 7), "float32"), C: T.Buffer((10,), "float32")):
    for i0, i1, k0, k1 in T.grid(3, 4, 2, 4):
        with T.block("C"):
            vi = T.axis.spatial(10, i0 * 4 + i1)
            vk = T.axis.reduce(7, k0 * 4 + k1)
            T.where(i0 * 4 + i1 < 10 and k0 * 4 + k1 < 7)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2, l3, l4 = sch.get_loops(b0)
b5 = sch.rfactor(l3, factor_axis=0)
)",
     ""},
    {"RfactorOfAGuardThatIsNoTail", R"(
@T.prim_func
def f(A: T.Buffer((10, 7), "float32"), C: T.Buffer((10,), "float32")):
    for i, k0, k1 in T.grid(10, 2, 4):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            vk = T.axis.reduce(7, k0 * 4 + k1)
            T.where(k0 * 4 + k1 < 3)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
b4 = sch.rfactor(l2, factor_axis=0)
)",
     "its partial result is not initialised"},
    {"RfactorOfAReductionThatNeverBegins", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k + 2)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.rfactor(l2, factor_axis=0)
)",
     "its init may never run"},
    {"DecomposedReductionThatNeverBegins", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k + 2)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.decompose_reduction(b0, l2)
)",
     "init"},
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
    {"ComputeAtOfAnOutputThatIsReadInPart", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32"), P: T.Buffer((4,), "float32")):
    for i in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, i)
            O[v] = A[v] * T.float32(2)
    for i in range(4):
        with T.block("P"):
            v = T.axis.spatial(4, i)
            P[v] = O[v * 2] + T.float32(1)
)",
     R"(b0 = sch.get_block("O")
b1 = sch.get_block("P")
l2, = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
     "writes an output of its scope"},
    {"ReverseComputeAtOfAReaderOfLaterElements", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * T.float32(2)
    for i in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, i)
            O[v] = B[v] + B[7]
)",
     R"(b0 = sch.get_block("O")
b1 = sch.get_block("B")
l2, = sch.get_loops(b1)
sch.reverse_compute_at(b0, l2)
)",
     "reads more of buffer B"},
    {"CacheWriteOfWhatTheNextIterationReads", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, i)
            O[v] = T.if_then_else(v > 0, P[v - 1], T.float32(0))
        with T.block("P"):
            v = T.axis.spatial(8, i)
            P[v] = A[v] * T.float32(2)
)",
     R"(b0 = sch.get_block("P")
b1 = sch.cache_write(b0, write_buffer_index=0, storage_scope="global")
)",
     ""},
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
    {"WorkspaceOfANestedBlock", R"(
@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            S = T.alloc_buffer((1,), "float32")
            for j in range(8):
                with T.block("S"):
                    vj = T.axis.spatial(8, j)
                    S[0] = A[vi, vj] * T.float32(2)
                with T.block("B"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = S[0] + T.float32(1)
)",
     R"(b0 = sch.get_block("B")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     ""},
    // Builds without records skipped padding and zeros, where NaN and infinity
    // of the weights show.
    {"PaddingTimesNan", R"(
@T.prim_func
def f(A: T.Buffer((16,), "float32"), W: T.Buffer((3, 32), "float32"), C: T.Buffer((16, 32), "float32")):
    P = T.alloc_buffer((18,), "float32")
    for i in range(18):
        with T.block("P"):
            v = T.axis.spatial(18, i)
            P[v] = T.if_then_else(1 <= v and v < 17, A[v - 1], T.float32(0))
    for i, c, k in T.grid(16, 32, 3):
        with T.block("C"):
            vi, vc, vk = T.axis.remap("SSR", [i, c, k])
            with T.init():
                C[vi, vc] = T.float32(0)
            C[vi, vc] = C[vi, vc] + P[vi + vk] * W[vk, vc]
)",
     "", ""},
    {"ZerosOfATransposedConvolutionTimesNan", R"(
@T.prim_func
def f(A: T.Buffer((12, 4), "float32"), W: T.Buffer((4, 4, 32), "float32"), C: T.Buffer((16, 32), "float32")):
    for i, c, r, k in T.grid(16, 32, 4, 4):
        with T.block("C"):
            vi, vc, vr, vk = T.axis.remap("SSRR", [i, c, r, k])
            with T.init():
                C[vi, vc] = T.float32(0)
            C[vi, vc] = C[vi, vc] + T.if_then_else((vi + vr) % 2 == 0, A[(vi + vr) // 2, vk], T.float32(0)) * W[3 - vr, vk, vc]
)",
     "", ""},
    {"WinogradsTilesSpreadNan", R"(
@T.prim_func
def f(A: T.Buffer((14, 14, 16), "float32"), W: T.Buffer((3, 3, 16, 16), "float32"), C: T.Buffer((12, 12, 16), "float32")):
    for h, w, o, r, s, k in T.grid(12, 12, 16, 3, 3, 16):
        with T.block("C"):
            vh, vw, vo, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, o, r, s, k])
            with T.init():
                C[vh, vw, vo] = T.float32(0)
            C[vh, vw, vo] = C[vh, vw, vo] + A[vh + vr, vw + vs, vk] * W[vr, vs, vk, vo]
)",
     "", ""},
};

class GivenTest : public ::testing::TestWithParam<Given> {};

TEST_P(GivenTest, IsComputedAlike) {
  const Given& given = GetParam();
  Case c;
  c.text = given.program;
  c.exact = false;
  if (*given.trace != '\0') {
    c.traces.push_back(given.trace);
    const auto program = ir::ParseFunction(given.program);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto trace = schedule::Trace::Parse(given.trace);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const auto replayed = schedule::Replay(*trace, ir::IRModule{{*program}});
    if (*given.refusal == '\0') {
      ASSERT_TRUE(replayed.ok()) << replayed.status();
    } else {
      ASSERT_EQ(replayed.status().code(), absl::StatusCode::kFailedPrecondition)
          << replayed.status();
      EXPECT_NE(replayed.status().ToString().find(given.refusal),
                std::string::npos)
          << replayed.status();
    }
  }
  const CaseReport report = CheckCase(c);
  EXPECT_EQ(report.verdict, Verdict::kAgree)
      << report.variant << ": " << report.what;
}

INSTANTIATE_TEST_SUITE_P(CompiledWronglyOnce, GivenTest,
                         ::testing::ValuesIn(kGiven), [](const auto& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace tilefarm::property
