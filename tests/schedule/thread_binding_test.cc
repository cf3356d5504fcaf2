// Loops bound to the threads of a GPU: the schedules of the course "Machine
// Learning Compilation" (mlc.ai, chapter 7), and what is refused.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

std::string WindowSum() {
  return Program(
      "A: T.Buffer((258,), \"float32\"), B: T.Buffer((256,), \"float32\")",
      R"(for i in range(256):
    with T.block("C"):
        vi = T.axis.spatial(256, i)
        B[vi] = A[vi] + A[vi + 1] + A[vi + 2])");
}

std::string Matmul(int size) {
  const std::string n = absl::StrCat(size);
  return Program(
      absl::StrCat("A: T.Buffer((", n, ", ", n,
                   "), \"float32\"), B: T.Buffer((", n, ", ", n,
                   "), \"float32\"), C: T.Buffer((", n, ", ", n,
                   "), \"float32\")"),
      absl::StrCat("for i, j, k in T.grid(", n, ", ", n, ", ", n, R"():
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])"));
}

std::string LongRowSum() {
  return Program(
      "A: T.Buffer((16, 64), \"float32\"), C: T.Buffer((16,), \"float32\")",
      R"(for i, k in T.grid(16, 64):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk])");
}

// Blocks of threads, each with a tile of 4 x 4 in registers.
constexpr char kTiledMatmul[] = R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, 0, "local")
l2, l3, l4 = sch.get_loops(b0)
l5, l6, l7 = sch.split(l2, factors=[None, 4, 4])
l8, l9, l10 = sch.split(l3, factors=[None, 4, 4])
l11, l12 = sch.split(l4, factors=[None, 8])
sch.unroll(l12)
sch.reorder(l5, l8, l6, l9, l11, l12, l7, l10)
sch.reverse_compute_at(b1, l9)
sch.bind(l5, "blockIdx.y")
sch.bind(l8, "blockIdx.x")
)";

TEST(ThreadBinding, SplitsAVectorOverBlocksAndThreads) {
  ExpectSameResults(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3 = sch.fuse(l1, l2)
l4, l5 = sch.split(l3, factors=[None, 128])
sch.bind(l4, "blockIdx.x")
sch.bind(l5, "threadIdx.x")
)");
}

TEST(ThreadBinding, ThreadsFetchAWindowTogether) {
  ExpectBecomes(WindowSum(), R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
l2, l3 = sch.split(l1, factors=[None, 128])
sch.bind(l2, "blockIdx.x")
sch.bind(l3, "threadIdx.x")
b4 = sch.cache_read(b0, 0, "shared")
sch.compute_at(b4, l3)
l5, l6, l7 = sch.get_loops(b4)
l8, l9 = sch.split(l7, factors=[None, 128])
sch.bind(l9, "threadIdx.x")
)",
                Program("A: T.Buffer((258,), \"float32\"), "
                        "B: T.Buffer((256,), \"float32\")",
                        R"(A_shared = T.alloc_buffer((258,), scope="shared")
for i_0 in T.thread_binding(2, thread="blockIdx.x"):
    for i_1 in T.thread_binding(128, thread="threadIdx.x"):
        for ax0_0 in range(2):
            for ax0_1 in T.thread_binding(128, thread="threadIdx.x"):
                with T.block("A_shared"):
                    v0 = T.axis.spatial(258, i_0 * 128 + (ax0_0 * 128 + ax0_1))
                    T.where(ax0_0 * 128 + ax0_1 < 130)
                    A_shared[v0] = A[v0]
        with T.block("C"):
            vi = T.axis.spatial(256, i_0 * 128 + i_1)
            B[vi] = A_shared[vi] + A_shared[vi + 1] + A_shared[vi + 2])"));
}

TEST(ThreadBinding, TilesAMatmulInRegisters) {
  ExpectSameResults(Matmul(32), absl::StrCat(kTiledMatmul,
                                             R"(sch.bind(l6, "threadIdx.y")
sch.bind(l9, "threadIdx.x")
l20 = sch.decompose_reduction(b0, l11)
)"));
}

TEST(ThreadBinding, FetchesTilesOfAMatmulTogetherByVectors) {
  ExpectSameResults(Matmul(32), absl::StrCat(kTiledMatmul,
                                             R"(l20 = sch.fuse(l6, l9)
sch.bind(l20, "threadIdx.x")
b21 = sch.cache_read(b0, 0, "shared")
sch.compute_at(b21, l11)
l22, l23, l42, l24, l25, l26 = sch.get_loops(b21)
l27 = sch.fuse(l25, l26)
l28, l29, l30 = sch.split(l27, factors=[None, 16, 4])
sch.vectorize(l30)
sch.bind(l29, "threadIdx.x")
b31 = sch.cache_read(b0, 1, "shared")
sch.compute_at(b31, l11)
l32, l33, l43, l34, l35, l36 = sch.get_loops(b31)
l37 = sch.fuse(l35, l36)
l38, l39, l40 = sch.split(l37, factors=[None, 16, 4])
sch.vectorize(l40)
sch.bind(l39, "threadIdx.x")
b41 = sch.decompose_reduction(b0, l11)
)"));
}

// The fetched region covers all threads of both axes, and the virtual ones.
TEST(ThreadBinding, SharedRegionsCoverEveryThreadAxis) {
  ExpectBecomes(TwoElementwise(), R"(b0 = sch.get_block("B")
sch.set_scope(b0, 0, "shared")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5, l6 = sch.split(l2, factors=[None, 2, 4])
l7, l8, l9 = sch.split(l3, factors=[None, 8, 2])
sch.reorder(l4, l7, l5, l6, l8, l9)
sch.bind(l4, "blockIdx.y")
sch.bind(l7, "blockIdx.x")
sch.bind(l5, "vthread.y")
sch.bind(l6, "threadIdx.y")
sch.bind(l8, "threadIdx.x")
sch.compute_at(b0, l8)
)",
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((32, 32), scope="shared")
for i_0 in T.thread_binding(4, thread="blockIdx.y"):
  for j_0 in T.thread_binding(2, thread="blockIdx.x"):
    for i_1 in T.thread_binding(2, thread="vthread.y"):
      for i_2 in T.thread_binding(4, thread="threadIdx.y"):
        for j_1 in T.thread_binding(8, thread="threadIdx.x"):
          for ax0, ax1 in T.grid(8, 16):
            with T.block("B"):
              vi = T.axis.spatial(32, i_0 * 8 + ax0)
              vj = T.axis.spatial(32, j_0 * 16 + ax1)
              B[vi, vj] = A[vi, vj] * T.float32(2)
          for j_2 in range(2):
            with T.block("C"):
              vi = T.axis.spatial(32, i_0 * 8 + i_1 * 4 + i_2)
              vj = T.axis.spatial(32, j_0 * 16 + j_1 * 2 + j_2)
              C[vi, vj] = B[vi, vj] + T.float32(1))"));
}

// A block of a cluster has its own rows; of what the blocks share, each would
// write those of all.
TEST(ThreadBinding, BlocksOfAClusterShareTheirMemory) {
  constexpr char kTrace[] = R"(b0 = sch.get_block("B")
sch.set_scope(b0, 0, "$0")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l2, factors=[None, 8])
sch.bind(l4, "blockIdx.x")
sch.bind(l5, "clusterCtaIdx.x")
sch.compute_at(b0, l5, preserve_unit_loops=True)
)";
  ExpectBecomes(TwoElementwise(), absl::Substitute(kTrace, "shared"),
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((32, 32), scope="shared")
for i_0 in T.thread_binding(4, thread="blockIdx.x"):
    for i_1 in T.thread_binding(8, thread="clusterCtaIdx.x"):
        for ax0, ax1 in T.grid(1, 32):
            with T.block("B"):
                vi = T.axis.spatial(32, i_0 * 8 + i_1 + ax0)
                vj = T.axis.spatial(32, ax1)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(32):
            with T.block("C"):
                vi = T.axis.spatial(32, i_0 * 8 + i_1)
                vj = T.axis.spatial(32, j)
                C[vi, vj] = B[vi, vj] + T.float32(1))"));
  ExpectRefused(TwoElementwise(), absl::Substitute(kTrace, "shared.cluster"),
                kIllegal,
                {"compute_at: loop i_1 (block B): iterations of block B would "
                 "write the same elements at the same time"});
}

TEST(ThreadBinding, LocalAndGlobalRegionsAreThoseOfOneThread) {
  for (const char* scope : {"local", "global"}) {
    ExpectBecomes(
        TwoElementwise(),
        absl::StrCat("b0 = sch.get_block(\"B\")\nsch.set_scope(b0, 0, \"",
                     scope, R"(")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.bind(l2, "blockIdx.x")
sch.bind(l3, "threadIdx.x")
sch.compute_at(b0, l3)
)"),
        Program(
            "A: T.Buffer((32, 32), \"float32\"), "
            "C: T.Buffer((32, 32), \"float32\")",
            absl::StrCat("B = T.alloc_buffer((32, 32), scope=\"", scope, R"(")
for i in T.thread_binding(32, thread="blockIdx.x"):
    for j in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1))")));
  }
}

TEST(ThreadBinding, ThreadsShareAReduction) {
  ExpectSameResults(LongRowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l2, factors=[None, 32])
sch.bind(l1, "blockIdx.x")
sch.bind(l4, "threadIdx.x")
)");
}

TEST(ThreadBinding, RefusesBlocksInsideOfThreads) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "threadIdx.x")
sch.bind(l2, "blockIdx.x")
)",
                kIllegal,
                {"bind: loop j (block C): a loop over blockIdx.x cannot be "
                 "inside of loop i over threadIdx.x"});
  ExpectRefused(
      TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "threadIdx.x")
sch.bind(l2, "clusterCtaIdx.x")
)",
      kIllegal,
      {"bind: loop j (block C): a loop over clusterCtaIdx.x cannot be "
       "inside of loop i over threadIdx.x"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "clusterCtaIdx.x")
sch.bind(l2, "clusterCtaIdx.x")
)",
                kIllegal,
                {"it is inside of loop i, which has the same axis "
                 "clusterCtaIdx.x"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l2, "blockIdx.x")
sch.bind(l1, "threadIdx.x")
)",
                kIllegal,
                {"a loop over blockIdx.x cannot be inside of loop i over "
                 "threadIdx.x"});
}

TEST(ThreadBinding, RefusesOneAxisTwice) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "blockIdx.x")
sch.bind(l2, "blockIdx.x")
)",
                kIllegal,
                {"bind: loop j (block C): it is inside of loop i, which has "
                 "the same axis blockIdx.x"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "threadIdx.x")
sch.bind(l2, "threadIdx.x")
)",
                kIllegal,
                {"bind: loop j (block C): block C depends on loop i around it, "
                 "which has the same axis threadIdx.x"});
}

TEST(ThreadBinding, RefusesAFetchByMoreThreadsThanThereAre) {
  ExpectRefused(WindowSum(), R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
l2, l3 = sch.split(l1, factors=[None, 128])
sch.bind(l2, "blockIdx.x")
sch.bind(l3, "threadIdx.x")
b4 = sch.cache_read(b0, 0, "shared")
sch.compute_at(b4, l3)
l5, l6, l7 = sch.get_loops(b4)
sch.bind(l7, "threadIdx.x")
)",
                kIllegal,
                {"bind: loop ax0 (block A_shared): it is inside of loop i_1, "
                 "which has the same axis threadIdx.x and fewer threads"});
}

// A global copy holds what each thread needs, so it depends on the thread.
TEST(ThreadBinding, RefusesToFetchTogetherWhatOneThreadNeeds) {
  ExpectRefused(WindowSum(), R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
l2, l3 = sch.split(l1, factors=[None, 128])
sch.bind(l2, "blockIdx.x")
sch.bind(l3, "threadIdx.x")
b4 = sch.cache_read(b0, 0, "global")
sch.compute_at(b4, l3)
l5, l6, l7 = sch.get_loops(b4)
sch.bind(l7, "threadIdx.x")
)",
                kIllegal, {"block A_global depends on loop i_1 around it"});
}

TEST(ThreadBinding, RefusesReductionsOverBlocksAndUnknownOnesOverThreads) {
  for (const char* axis : {"blockIdx.x", "vthread.x"}) {
    ExpectRefused(LongRowSum(),
                  absl::StrCat(R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l2, ")",
                               axis, "\")\n"),
                  kIllegal,
                  {"uses the loop in vk, which is not data parallel"});
  }
  ExpectRefused(
      Program(
          "A: T.Buffer((16, 64), \"float32\"), C: T.Buffer((16,), \"float32\")",
          R"(for i, k in T.grid(16, 64):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(1)
        C[vi] = C[vi] * T.float32(0.5) + A[vi, vk])"),
      R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l2, "threadIdx.x")
)",
      kIllegal,
      {"threads cannot share the reduction of block C, which is not a known "
       "commutative one"});
  // Only the whole reduction has an identity to begin with.
  ExpectRefused(LongRowSum(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
b3 = sch.decompose_reduction(b0, l2)
sch.bind(l2, "threadIdx.x")
)",
                kIllegal,
                {"threads cannot share the reduction of block C_update"});
}

TEST(ThreadBinding, RefusesLocalBuffersOfOtherThreads) {
  ExpectRefused(
      TwoElementwise(), R"(b0 = sch.get_block("B")
sch.set_scope(b0, 0, "local")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.bind(l2, "blockIdx.x")
sch.compute_at(b0, l2)
l4, l5 = sch.get_loops(b0)
sch.bind(l5, "threadIdx.x")
sch.bind(l3, "threadIdx.x")
)",
      kIllegal,
      {"block C: buffer B_local is local to each thread, and block B uses "
       "it in other loops over threads"});
}

// What one iteration writes and reads is its own, but threads have one copy of
// what they share.
std::string RowsThroughOne() {
  return Program(
      "A: T.Buffer((64, 4), \"float32\"), C: T.Buffer((64, 4), \"float32\")",
      R"(B = T.alloc_buffer((4,), "float32")
for i in range(64):
    for j in range(4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj] = A[vi, vj] * T.float32(2)
    for j in range(4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj] + T.float32(1))");
}

TEST(ThreadBinding, RefusesThreadsThatShareWhatIsEachOnes) {
  const std::string bind = R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "threadIdx.x")
)";
  ExpectSameResults(RowsThroughOne(), bind);
  for (const std::string_view scope : {"shared", "shared.dyn"}) {
    const std::string set_scope =
        absl::StrCat("sch.set_scope(b0, 0, \"", std::string(scope), "\")\n");
    const std::string set_first =
        absl::StrCat("b0 = sch.get_block(\"B\")\n", set_scope,
                     "l1, l2 = sch.get_loops(b0)\n"
                     "sch.bind(l1, \"threadIdx.x\")\n");
    for (const std::string& trace :
         {set_first, absl::StrCat(bind, set_scope)}) {
      ExpectRefused(RowsThroughOne(), trace, kIllegal,
                    {"iterations of block B would write the same elements at "
                     "the same time"});
    }
  }
}

// Sequentially, each iteration reads what a later one will overwrite.
TEST(ThreadBinding, RefusesThreadsThatOverwriteEachOthersInput) {
  ExpectRefused(
      Program(
          "A: T.Buffer((33,), \"float32\"), C: T.Buffer((32,), \"float32\")",
          R"(for i in range(32):
    with T.block("A"):
        vi = T.axis.spatial(32, i)
        A[vi] = T.float32(1)
    with T.block("C"):
        vi = T.axis.spatial(32, i)
        C[vi] = A[vi + 1])"),
      R"(b0 = sch.get_block("C")
l1, = sch.get_loops(b0)
sch.bind(l1, "threadIdx.x")
)",
      kIllegal, {"block C reads what block A writes in another iteration"});
}

TEST(ThreadBinding, RefusesToMoveALoopOverBlocksIntoOneOverThreads) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.bind(l1, "blockIdx.x")
sch.bind(l2, "threadIdx.x")
sch.reorder(l2, l1)
)",
                kIllegal, {"cannot be inside of loop j over threadIdx.x"});
}

}  // namespace
}  // namespace tilefarm::testing
