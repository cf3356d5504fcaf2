// decompose_reduction and rfactor: rewrites and rejections.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

// C[i] = reduce of A[i, :] with this init and update.
std::string RowReduction(const std::string& init, const std::string& update) {
  return Program(
      "A: T.Buffer((8, 12), \"float32\"), C: T.Buffer((8,), \"float32\")",
      absl::StrCat(R"(for i, k in T.grid(8, 12):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = )",
                   init, "\n        C[vi] = ", update));
}
std::string RowSum() {
  return RowReduction("T.float32(0)", "C[vi] + A[vi, vk]");
}

TEST(DecomposeReduction, PutsTheInitBeforeTheLoop) {
  ExpectBecomes(MatmulRelu(), R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l3, factors=[None, 5])
l6, l7 = sch.split(l2, factors=[None, 6])
sch.reorder(l1, l4, l6, l5, l7)
sch.vectorize(l7)
b8 = sch.decompose_reduction(b0, l4)
)",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
for i in range(16):
    for j_0_init in range(3):
        for j_1_init in T.vectorized(6):
            with T.block("C_init"):
                T.where(j_0_init * 6 + j_1_init < 16)
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j_0_init * 6 + j_1_init)
                C[vi, vj] = T.float32(0)
    for k_0, j_0, k_1 in T.grid(4, 3, 5):
        for j_1 in T.vectorized(6):
            with T.block("C_update"):
                T.where(k_0 * 5 + k_1 < 16 and j_0 * 6 + j_1 < 16)
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j_0 * 6 + j_1)
                vk = T.axis.reduce(16, k_0 * 5 + k_1)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], T.float32(0)))"));
}

TEST(DecomposeReduction, RefusesLoopsInsideTheReduction) {
  ExpectRefused(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 4])
b5 = sch.decompose_reduction(b0, l4)
)",
                kIllegal, {"decompose_reduction", "loop k_1", "loop k_0"});
  ExpectRefused(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.reorder(l2, l1)
b5 = sch.decompose_reduction(b0, l1)
)",
                kIllegal, {"decompose_reduction", "loop i", "loop k"});
}

// A reduce loop of one iteration outside does not repeat the reduction.
TEST(DecomposeReduction, PassesLoopsOfOneIteration) {
  ExpectSameResults(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[1, None])
b5 = sch.decompose_reduction(b0, l4)
)");
}

TEST(DecomposeReduction, RefusesBlocksWithoutInit) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
b5 = sch.decompose_reduction(b0, l1)
)",
                kIllegal, {"decompose_reduction", "block B", "initialisation"});
}

// The reduction repeats for each j, so the init must run as often.
TEST(DecomposeReduction, RefusesLoopsThatRepeatTheReduction) {
  const std::string program = Program(
      "A: T.Buffer((8, 12), \"float32\"), D: T.Buffer((8, 4), \"float32\")",
      R"(C = T.alloc_buffer((8,), "float32")
for i, k in T.grid(8, 12):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk]
for i, j in T.grid(8, 4):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = C[vi])");
  const std::string at_j = R"(b0 = sch.get_block("C")
b1 = sch.get_block("D")
l2, l3 = sch.get_loops(b1)
sch.compute_at(b0, l3)
l4, l5, l6 = sch.get_loops(b0)
)";
  ExpectSameResults(program, at_j + "b7 = sch.decompose_reduction(b0, l6)\n");
  ExpectRefused(program, at_j + "b7 = sch.decompose_reduction(b0, l5)\n",
                kIllegal, {"decompose_reduction", "more than once"});
}

TEST(Rfactor, SplitsAReductionInTwo) {
  ExpectBecomes(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[3, 4])
b5 = sch.rfactor(l4, factor_axis=0)
)",
                Program("A: T.Buffer((8, 12), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(C_rf = T.alloc_buffer((4, 8), "float32")
for i, k_0, k_1 in T.grid(8, 3, 4):
    with T.block("C_rf"):
        vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
        with T.init():
            C_rf[vk_1, vi] = T.float32(0)
        C_rf[vk_1, vi] = C_rf[vk_1, vi] + A[vi, vk_0 * 4 + vk_1]
for i, k_1 in T.grid(8, 4):
    with T.block("C"):
        vk_1, vi = T.axis.remap("RS", [k_1, i])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + C_rf[vk_1, vi])"));
}

TEST(Rfactor, OfTheWholeReductionStoresTheValues) {
  ExpectBecomes(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.rfactor(l2, factor_axis=1)
)",
                Program("A: T.Buffer((8, 12), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(C_rf = T.alloc_buffer((8, 12), "float32")
for i, k in T.grid(8, 12):
    with T.block("C_rf"):
        vk, vi = T.axis.remap("SS", [k, i])
        C_rf[vi, vk] = A[vi, vk]
for i, k in T.grid(8, 12):
    with T.block("C"):
        vk, vi = T.axis.remap("RS", [k, i])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + C_rf[vi, vk])"));
}

// A later get_block finds either block by a name of its own.
TEST(Rfactor, TwiceGivesTwoNames) {
  ExpectBecomes(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.rfactor(l2, factor_axis=0)
l4, l5 = sch.get_loops(b0)
l6, l7 = sch.split(l5, factors=[3, 4])
b8 = sch.rfactor(l6, factor_axis=0)
b9 = sch.get_block("C_rf")
b10 = sch.get_block("C_rf_1")
)",
                Program("A: T.Buffer((8, 12), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(C_rf = T.alloc_buffer((12, 8), "float32")
C_rf_1 = T.alloc_buffer((3, 8), "float32")
for i, k in T.grid(8, 12):
    with T.block("C_rf"):
        vk, vi = T.axis.remap("SS", [k, i])
        C_rf[vk, vi] = A[vi, vk]
for i, k_0, k_1 in T.grid(8, 3, 4):
    with T.block("C_rf_1"):
        vk_0, vk_1, vi = T.axis.remap("SRS", [k_0, k_1, i])
        with T.init():
            C_rf_1[vk_0, vi] = T.float32(0)
        C_rf_1[vk_0, vi] = C_rf_1[vk_0, vi] + C_rf[vk_0 * 4 + vk_1, vi]
for i, k_0 in T.grid(8, 3):
    with T.block("C"):
        vk_0, vi = T.axis.remap("RS", [k_0, i])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + C_rf_1[vk_0, vi])"));
}

TEST(Rfactor, KnowsTheReducers) {
  const std::string trace = R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 5])
b5 = sch.rfactor(l3, factor_axis=-1)
)";
  for (const auto& [init, update] :
       {std::pair<std::string, std::string>{"T.float32(0)",
                                            "C[vi] + A[vi, vk]"},
        {"T.float32(1)", "C[vi] * A[vi, vk]"},
        {"T.float32(-3.4028234663852886e+38)", "T.max(C[vi], A[vi, vk])"},
        {"T.float32(3.4028234663852886e+38)", "T.min(C[vi], A[vi, vk])"}}) {
    ExpectSameResults(RowReduction(init, update), trace);
  }
}

TEST(Rfactor, RefusesUnknownReducersAndInitsThatAreNoIdentity) {
  const std::string trace = R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 4])
b5 = sch.rfactor(l3, factor_axis=0)
)";
  for (const auto& [init, update] :
       {std::pair<std::string, std::string>{"T.float32(1)",
                                            "C[vi] + A[vi, vk]"},
        {"T.float32(0)", "T.max(C[vi], A[vi, vk])"},
        {"T.float32(0)", "C[vi] - A[vi, vk]"},
        {"T.float32(0)", "C[vi] + A[vi, vk] * C[vi]"}}) {
    ExpectRefused(RowReduction(init, update), trace, kIllegal,
                  {"rfactor", "block C", "commutative"});
  }
}

// The largest of a row and where it is, in the form that TVM prints.
std::string LargestAndIndex(const std::string& keeps) {
  return Program(
      "A: T.Buffer((8, 12), \"int8\"), I: T.Buffer((8,), "
      "\"int32\"), M: T.Buffer((8,), \"int8\")",
      absl::StrCat(R"(for i, k in T.grid(8, 12):
    with T.block("M"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            I[vi] = T.int32(-1)
            M[vi] = T.int8(-128)
        new_i: T.let[T.int32] = T.Select()",
                   keeps, R"(, I[vi], vk)
        new_m: T.let[T.int8] = T.Select(M[vi] > A[vi, vk] // T.int8(64), M[vi], A[vi, vk] // T.int8(64))
        I[vi] = new_i
        M[vi] = new_m)"));
}
constexpr char kFirstOfEqual[] =
    "M[vi] > A[vi, vk] // T.int8(64) or M[vi] == A[vi, vk] // T.int8(64) and "
    "I[vi] < vk";
constexpr char kLastOfEqual[] =
    "M[vi] > A[vi, vk] // T.int8(64) or M[vi] == A[vi, vk] // T.int8(64) and "
    "I[vi] > vk";

TEST(Rfactor, OfAnExtremeAndItsIndex) {
  ExpectBecomes(LargestAndIndex(kFirstOfEqual), R"(b0 = sch.get_block("M")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[3, 4])
b5 = sch.rfactor(l3, factor_axis=1)
)",
                Program("A: T.Buffer((8, 12), \"int8\"), I: T.Buffer((8,), "
                        "\"int32\"), M: T.Buffer((8,), \"int8\")",
                        R"(I_rf = T.alloc_buffer((8, 3), "int32")
M_rf = T.alloc_buffer((8, 3), "int8")
for i, k_0, k_1 in T.grid(8, 3, 4):
    with T.block("M_rf"):
        vk_0, vi, vk_1 = T.axis.remap("SSR", [k_0, i, k_1])
        with T.init():
            I_rf[vi, vk_0] = T.int32(-1)
            M_rf[vi, vk_0] = T.int8(-128)
        new_i: T.let[T.int32] = T.Select(M_rf[vi, vk_0] > A[vi, vk_0 * 4 + vk_1] // T.int8(64) or M_rf[vi, vk_0] == A[vi, vk_0 * 4 + vk_1] // T.int8(64) and I_rf[vi, vk_0] < vk_0 * 4 + vk_1, I_rf[vi, vk_0], vk_0 * 4 + vk_1)
        new_m: T.let[T.int8] = T.Select(M_rf[vi, vk_0] > A[vi, vk_0 * 4 + vk_1] // T.int8(64), M_rf[vi, vk_0], A[vi, vk_0 * 4 + vk_1] // T.int8(64))
        I_rf[vi, vk_0] = new_i
        M_rf[vi, vk_0] = new_m
for i, k_0 in T.grid(8, 3):
    with T.block("M"):
        vk_0, vi = T.axis.remap("RS", [k_0, i])
        T.reads(I_rf[vi, vk_0], M_rf[vi, vk_0])
        T.writes(I[vi], M[vi])
        with T.init():
            I[vi] = T.int32(-1)
            M[vi] = T.int8(-128)
        new_i: T.let[T.int32] = T.Select(M[vi] > M_rf[vi, vk_0] or M[vi] == M_rf[vi, vk_0] and I[vi] < I_rf[vi, vk_0], I[vi], I_rf[vi, vk_0])
        new_m: T.let[T.int8] = T.Select(M[vi] > M_rf[vi, vk_0], M[vi], M_rf[vi, vk_0])
        I[vi] = new_i
        M[vi] = new_m)"));
  for (const char* keeps : {kFirstOfEqual, kLastOfEqual}) {
    for (const char* factors : {"[None, 5]", "[5, None]"}) {
      ExpectSameResults(LargestAndIndex(keeps),
                        absl::StrCat(R"(b0 = sch.get_block("M")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=)",
                                     factors, R"()
b5 = sch.rfactor(l4, factor_axis=0)
)"));
    }
    ExpectSameResults(LargestAndIndex(keeps), R"(b0 = sch.get_block("M")
l1, l2 = sch.get_loops(b0)
b3 = sch.rfactor(l2, factor_axis=0)
)");
  }
}

// Which of equal elements is found depends on the order then.
TEST(Rfactor, RefusesIndicesOfAnyOfEqualElements) {
  for (const char* keeps :
       {"M[vi] > A[vi, vk] // T.int8(64)", "M[vi] >= A[vi, vk] // T.int8(64)",
        "M[vi] > A[vi, vk] // T.int8(64) or I[vi] < vk"}) {
    ExpectRefused(LargestAndIndex(keeps), R"(b0 = sch.get_block("M")
l1, l2 = sch.get_loops(b0)
b3 = sch.rfactor(l2, factor_axis=0)
)",
                  kIllegal, {"rfactor", "block M", "order"});
  }
}

TEST(Rfactor, OfSumsOfSeveralBuffers) {
  const auto moments = [](const std::string& init, const std::string& second) {
    return Program(
        "A: T.Buffer((8, 12), \"float32\"), S: T.Buffer((8,), "
        "\"float32\"), Q: T.Buffer((8,), \"float32\")",
        absl::StrCat(R"(for i, k in T.grid(8, 12):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            S[vi] = T.float32(0)
            Q[vi] = )",
                     init, R"(
        S[vi] = S[vi] + A[vi, vk]
        Q[vi] = )",
                     second));
  };
  const char trace[] = R"(b0 = sch.get_block("S")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 5])
b5 = sch.rfactor(l4, factor_axis=0)
)";
  ExpectSameResults(moments("T.float32(0)", "Q[vi] + A[vi, vk] * A[vi, vk]"),
                    trace);
  ExpectSameResults(
      moments("T.float32(-3.4028234663852886e+38)", "T.max(Q[vi], A[vi, vk])"),
      trace);
  // The sum so far is of other terms in each part.
  ExpectRefused(moments("T.float32(0)", "Q[vi] + S[vi]"), trace, kIllegal,
                {"rfactor", "block S"});
  ExpectRefused(moments("T.float32(1)", "Q[vi] + A[vi, vk]"), trace, kIllegal,
                {"rfactor", "block S", "identity"});
}

TEST(Rfactor, RefusesSpatialLoopsWrongAxesAndSharedNests) {
  ExpectRefused(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b5 = sch.rfactor(l1, factor_axis=0)
)",
                kIllegal, {"rfactor", "loop i"});
  ExpectRefused(RowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b5 = sch.rfactor(l2, factor_axis=2)
)",
                kInvalid, {"rfactor", "factor_axis 2", "[-2, 1]"});
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.get_block("D")
l1, l2, l3 = sch.get_loops(b0)
sch.reverse_compute_at(b1, l1)
b5 = sch.rfactor(l3, factor_axis=0)
)",
                kIllegal, {"rfactor", "other blocks"});
}

// 9 * 5 exceeds 36: the last iteration has no element, so that its partial
// result is the identity.
TEST(Rfactor, TheRestOfALoopIsTheIdentity) {
  const std::string params =
      "A: T.Buffer((8, 36), \"float32\"), C: T.Buffer((8,), \"float32\")";
  ExpectBecomes(Program(params,
                        R"(for i, k in T.grid(8, 36):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk])"),
                R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[9, 5])
b5 = sch.rfactor(l3, factor_axis=0)
)",
                Program(params,
                        R"(C_rf = T.alloc_buffer((9, 8))
for i, k_0, k_1 in T.grid(8, 9, 5):
    with T.block("C_rf"):
        vk_0, vi, vk_1 = T.axis.remap("SSR", [k_0, i, k_1])
        T.block_attr({"tilefarm.skip_padding": 1})
        with T.init():
            C_rf[vk_0, vi] = T.float32(0)
        C_rf[vk_0, vi] = C_rf[vk_0, vi] + T.if_then_else(vk_0 * 5 + vk_1 < 36, A[vi, vk_0 * 5 + vk_1], T.float32(0))
for i, k_0 in T.grid(8, 9):
    with T.block("C"):
        vk_0, vi = T.axis.remap("RS", [k_0, i])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + C_rf[vk_0, vi])"));
}

// The condition is about a loop that stays one of the reduction's.
TEST(Rfactor, RefusesIterationsWithoutAnyElement) {
  ExpectRefused(Program("A: T.Buffer((8, 7, 5), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(for i, k, r in T.grid(8, 7, 5):
    with T.block("C"):
        vi, vk, vr = T.axis.remap("SRR", [i, k, r])
        T.where(r < 5 - k)
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk, vr])"),
                R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
b4 = sch.rfactor(l2, factor_axis=0)
)",
                kIllegal, {"rfactor"});
}

}  // namespace
}  // namespace tilefarm::testing
