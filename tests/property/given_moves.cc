// Blocks that are moved, inlined, copied or reindexed.
#include "tests/property/given_programs.h"

namespace tilefarm::property {
namespace {

constexpr Given kGivenMoves[] = {
    {"BlockizeOfACopyWhosePlaceVaries", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), O: T.Buffer((13, 5), "float32")):
    for i, j in T.grid(11, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[(vi + 3) % 13, (vj + 2) % 5] = A[vi // 3] + T.float32(1)
)",
     R"(
b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
b3 = sch.blockize(l2)
b4 = sch.get_block("B")
b5 = sch.cache_write(b4, write_buffer_index=0, storage_scope="global")
b6 = sch.get_block("O_global")
l7, l8 = sch.get_loops(b6)
b9 = sch.blockize(l7)
)",
     ""},
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
    {"ComputeAtBeforeAnIndexIsComputed", R"(
@T.prim_func
def f(A: T.Buffer((5, 3), "float32"), O: T.Buffer((5,), "float32")):
    W = T.alloc_buffer((5,), "int32")
    for i, j in T.grid(5, 1):
        with T.block("W"):
            v = T.axis.spatial(5, i + j)
            W[v] = T.Cast("int32", v % 3)
        with T.block("O"):
            v = T.axis.spatial(5, i + j)
            O[v] = A[v, T.min(T.max(W[v], 0), 2)] * T.float32(2)
)",
     R"(b0 = sch.get_block("O")
b1 = sch.cache_read(b0, read_buffer_index=0, storage_scope="global")
l2, l3 = sch.get_loops(b0)
sch.compute_at(b1, l2)
)",
     ""},
    {"AnIndexIsLoadedUnderTheReadersPredicate", R"(
@T.prim_func
def f(A: T.Buffer((5,), "float32"), Q: T.Buffer((6,), "int64"), O: T.Buffer((6, 8), "float32")):
    W = T.alloc_buffer((5,), "float32")
    for i in range(5):
        with T.block("W"):
            v = T.axis.spatial(5, i)
            W[v] = A[v] + T.float32(1)
    for i, j in T.grid(6, 8):
        with T.block("O"):
            v, w = T.axis.remap("SS", [i, j])
            O[v, w] = W[T.min(T.max(Q[v], 0), 4)] + T.Cast("float32", w)
)",
     R"(b0 = sch.get_block("O")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[2, 4])
b5 = sch.get_block("W")
sch.compute_at(b5, l4, preserve_unit_loops=True)
)",
     ""},
    {"AnIndexIsLoadedUnderTheReadersCondition", R"(
@T.prim_func
def f(A: T.Buffer((5,), "float32"), Q: T.Buffer((6,), "int64"), O: T.Buffer((9,), "float32")):
    W = T.alloc_buffer((5,), "float32")
    for i in range(5):
        with T.block("W"):
            v = T.axis.spatial(5, i)
            W[v] = A[v] + T.float32(1)
    for i in range(9):
        with T.block("O"):
            v = T.axis.spatial(9, i)
            O[v] = T.if_then_else(v < 6, W[T.min(T.max(Q[v], 0), 4)], T.float32(0))
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
b5 = sch.get_block("W")
sch.compute_at(b5, l1, preserve_unit_loops=True)
)",
     ""},
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
};

}  // namespace

std::span<const Given> GivenMoves() { return kGivenMoves; }

}  // namespace tilefarm::property
