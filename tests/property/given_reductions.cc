// Reductions: inits, updates, and the loops that repeat or factor them.
#include "tests/property/given_programs.h"

namespace tilefarm::property {
namespace {

constexpr Given kGivenReductions[] = {
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
def f(P: T.Buffer((3,), "float32"), W: T.Buffer((7, 4), "float32"), O: T.Buffer((8,), "float32")):
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
     ""},
    {"RfactorBesideAGuardOfAnotherReduction", R"(
@T.prim_func
def f(A: T.Buffer((10, 7, 5), "float32"), C: T.Buffer((10,), "float32")):
    for i, k, r0, r1 in T.grid(10, 7, 2, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            vr = T.axis.reduce(5, r0 * 4 + r1)
            T.where(r0 * 4 + r1 < 5)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk, vr]
)",
     R"(b0 = sch.get_block("C")
l1, l2, l3, l4 = sch.get_loops(b0)
b5 = sch.rfactor(l2, factor_axis=0)
)",
     ""},
    {"RfactorOfAGuardThatReachesAnotherReduction", R"(
@T.prim_func
def f(A: T.Buffer((10, 7, 5), "float32"), C: T.Buffer((10,), "float32")):
    for i, k, r0, r1 in T.grid(10, 7, 2, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            vr = T.axis.reduce(5, r0 * 4 + r1)
            T.where(r0 * 4 + r1 < 5 - k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk, vr]
)",
     R"(b0 = sch.get_block("C")
l1, l2, l3, l4 = sch.get_loops(b0)
b5 = sch.rfactor(l2, factor_axis=0)
)",
     "not"},
    {"RfactorOfAMaximumWithARest", R"(
@T.prim_func
def f(A: T.Buffer((6, 13), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(-3.4028234663852886e+38)
            C[vi] = T.max(C[vi], A[vi, vk] - T.float32(3))
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 8])
b5 = sch.rfactor(l4, factor_axis=1)
l6, l7, l8 = sch.get_loops(b5)
sch.vectorize(l8)
sch.decompose_reduction(b5, l7)
)",
     ""},
    {"RfactorOfOneValueEachWithARest", R"(
@T.prim_func
def f(A: T.Buffer((6, 13), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 1
            C[vi] = C[vi] * A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[1, 16], disable_predication=False)
b5 = sch.rfactor(l4, factor_axis=0)
)",
     ""},
    {"HalfRecurrence", R"(
@T.prim_func
def f(A: T.Buffer((1,), "float16"), O: T.Buffer((3,), "float16")):
    for i in range(40):
        with T.block("O"):
            v = T.axis.reduce(40, i)
            O[T.min(v, 2)] = T.max(O[T.min(v, 2)], T.sqrt(T.min(T.abs(O[T.min(v, 2)] + O[T.min(v, 2)]), T.float16(4.0))))
)",
     "", ""},
    {"HalfProducts", R"(
@T.prim_func
def f(A: T.Buffer((4, 60), "float16"), C: T.Buffer((4,), "float16")):
    for i, k in T.grid(4, 60):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float16(1)
            C[vi] = C[vi] * (A[vi, vk] * T.float16(0.05) + T.float16(1))
)",
     R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 8])
b5 = sch.rfactor(l4, factor_axis=0)
)",
     ""},
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
};

}  // namespace

std::span<const Given> GivenReductions() { return kGivenReductions; }

}  // namespace tilefarm::property
