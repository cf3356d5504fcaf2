// Lowering and data: allocations, casts, padding, workspaces, NaN.
#include "tests/property/given_programs.h"

namespace tilefarm::property {
namespace {

constexpr Given kGivenLowering[] = {
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
    {"AnInlinedHalfIsRounded", R"(
@T.prim_func
def f(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "bfloat16"), O: T.Buffer((8,), "float16"), P: T.Buffer((8,), "bfloat16")):
    W = T.alloc_buffer((8,), "float16")
    V = T.alloc_buffer((8,), "bfloat16")
    K = T.alloc_buffer((8,), "float16")
    for i in range(8):
        with T.block("W"):
            v = T.axis.spatial(8, i)
            W[v] = T.sqrt(T.abs(A[v]))
    for i in range(8):
        with T.block("V"):
            v = T.axis.spatial(8, i)
            V[v] = T.sqrt(T.abs(B[v]))
    for i in range(8):
        with T.block("K"):
            v = T.axis.spatial(8, i)
            K[v] = T.float16(0.1)
    for i in range(8):
        with T.block("O"):
            v = T.axis.spatial(8, i)
            O[v] = (W[v] - T.float16(1)) * (K[v] - T.float16(0.09375))
    for i in range(8):
        with T.block("P"):
            v = T.axis.spatial(8, i)
            P[v] = V[v] - T.bfloat16(1)
)",
     R"(b0 = sch.get_block("W")
sch.compute_inline(b0)
b1 = sch.get_block("V")
sch.compute_inline(b1)
b2 = sch.get_block("K")
sch.compute_inline(b2)
)",
     ""},
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
    {"DataOfSixtyFourBitsWrapsInLanes", R"(
@T.prim_func
def f(A: T.Buffer((16,), "int64"), O: T.Buffer((16,), "int64"), P: T.Buffer((16,), "int64")):
    for i in range(16):
        with T.block("O"):
            v = T.axis.spatial(16, i)
            O[v] = (A[v] + T.int64(9223372036854775806)) % T.int64(5)
    for i in range(16):
        with T.block("P"):
            v = T.axis.spatial(16, i)
            P[v] = T.max(A[v] + T.int64(9223372036854775805), A[v]) // T.int64(7)
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.vectorize(l1)
b2 = sch.get_block("P")
l3, = sch.get_loops(b2)
sch.vectorize(l3)
)",
     ""},
    {"DataWrapsBehindNames", R"(
@T.prim_func
def f(A: T.Buffer((16,), "int64"), O: T.Buffer((16,), "int64"), P: T.Buffer((16,), "bool")):
    for i in range(16):
        with T.block("O"):
            v = T.axis.spatial(16, i)
            y: T.int64 = A[v]
            O[v] = (y * T.int64(6917529027641081856)) % T.int64(3)
    for i in range(16):
        with T.block("P"):
            v = T.axis.spatial(16, i)
            P[v] = T.Let(y + T.int64(9223372036854775805) > y, where={y: A[v]})
)",
     "", ""},
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
    {"PaddingOfAPartOfTheOutput", R"(
@T.prim_func
def f(A: T.Buffer((6, 11), "float32"), C: T.Buffer((6, 5), "float32")):
    for i, k in T.grid(6, 11):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi, 2] = T.float32(0.0)
            C[vi, 2] = C[vi, 2] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
sch.pad_einsum(b0, padding=[4, 4])
)",
     "does not surely write every element of C"},
    {"PaddingOfLoopsShorterThanTheirVariables", R"(
@T.prim_func
def f(A: T.Buffer((6, 11), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 9):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(11, k)
            with T.init():
                C[vi] = T.float32(0.0)
            C[vi] = C[vi] + A[vi, vk]
)",
     R"(b0 = sch.get_block("C")
sch.pad_einsum(b0, padding=[1, 4])
)",
     "not every instance of its domain runs"},
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
    {"AnInitWhereThePredicateHoldsOwnsItsBuffer", R"(
@T.prim_func
def f(A: T.Buffer((4, 10), "float32"), O: T.Buffer((4,), "float32")):
    W = T.alloc_buffer((), "float32")
    for i in range(4):
        for k_0, k_1 in T.grid(3, 4):
            with T.block("W"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(10, k_0 * 4 + k_1)
                T.where(k_0 * 4 + k_1 < 10)
                with T.init():
                    W[()] = T.float32(0)
                W[()] = W[()] + A[vi, vk]
        with T.block("O"):
            vi = T.axis.spatial(4, i)
            O[vi] = W[()]
)",
     R"(b0 = sch.get_block("O")
l1, = sch.get_loops(b0)
sch.parallel(l1)
)",
     ""},
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
    // The init moved out of a loop of which only the first iteration runs, and
    // its buffer was allocated inside.
    {"InitOfALoopThatRunsOnceOnly", R"(
@T.prim_func
def f(A: T.Buffer((6,), "bool"), C: T.Buffer((6,), "bool")):
    W = T.alloc_buffer((1,), "bool")
    for i, k in T.grid(1, 6):
        with T.block("W"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                W[vi] = T.bool(True)
            C[vk] = A[vk]
)",
     R"(b0 = sch.get_block("W")
l1, l2 = sch.get_loops(b0)
l3, l4, l5 = sch.split(l2, factors=[None, 2, 7])
)",
     ""},
    // Each iteration may have a copy of what nobody reads, but lowering found
    // no box of an element that the data choose: it refused the loop.
    {"ScatterThatNobodyReadsInAParallelLoop", R"(
@T.prim_func
def f(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    W = T.alloc_buffer((4, 3), "int32")
    for i in range(64):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = A[v] + 1
        with T.block("W"):
            v = T.axis.spatial(64, i)
            W[T.min(T.max(T.Cast("int64", A[v]), 0), 3), v % 3] = A[v]
)",
     R"(b0 = sch.get_block("C")
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
    // LLVM adds too few of the sums that its dot products and sums of absolute
    // differences leave, where vectors shorten from step to step.
    {"ProductsOfBytesThatAreAddedInLanes", R"(
@T.prim_func
def f(A: T.Buffer((8,), "uint8"), B: T.Buffer((8,), "int8"), C: T.Buffer((1,), "int32")):
    C[0] = T.int32(0)
    for k in T.serial(8, annotations={"tilefarm.reduce_lanes": 1}):
        with T.block("C"):
            vk = T.axis.reduce(8, k)
            C[0] = C[0] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vk])
)",
     "", ""},
    {"DifferencesOfBytesThatAreAddedInLanes", R"(
@T.prim_func
def f(A: T.Buffer((16,), "uint8"), B: T.Buffer((16,), "uint8"), C: T.Buffer((1,), "int32")):
    C[0] = T.int32(0)
    for k in T.serial(16, annotations={"tilefarm.reduce_lanes": 1}):
        with T.block("C"):
            vk = T.axis.reduce(16, k)
            C[0] = C[0] + T.abs(T.Cast("int32", A[vk]) - T.Cast("int32", B[vk]))
)",
     "", ""},
};

}  // namespace

std::span<const Given> GivenLowering() { return kGivenLowering; }

}  // namespace tilefarm::property
