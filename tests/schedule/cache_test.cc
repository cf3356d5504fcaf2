// cache_read, cache_write, reindex: rewrites and rejections.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

TEST(CacheRead, CopiesAParameterAtTheStart) {
  ExpectBecomes(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.cache_read(b0, 0, "shared")
)",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
A_shared = T.alloc_buffer((16, 16), "float32", scope="shared")
for ax0, ax1 in T.grid(16, 16):
    with T.block("A_shared"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        A_shared[v0, v1] = A[v0, v1]
for i, j, k in T.grid(16, 16, 16):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], T.float32(0)))"));
}

TEST(CacheRead, CopiesAnIntermediateAfterItsWriter) {
  ExpectBecomes(MatmulRelu(), R"(b0 = sch.get_block("D")
b1 = sch.cache_read(b0, 0, "global")
)",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
C_global = T.alloc_buffer((16, 16), "float32")
for i, j, k in T.grid(16, 16, 16):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
for ax0, ax1 in T.grid(16, 16):
    with T.block("C_global"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        C_global[v0, v1] = C[v0, v1]
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C_global[vi, vj], T.float32(0)))"));
}

TEST(CacheRead, ThenMovesIntoTheLoops) {
  ExpectSameResults(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.cache_read(b0, 1, "global")
l2, l3, l4 = sch.get_loops(b0)
l5, l6 = sch.split(l4, factors=[None, 5])
l7, l8 = sch.split(l3, factors=[None, 6])
sch.reorder(l5, l7, l2, l8, l6)
sch.compute_at(b1, l7)
)");
}

TEST(CacheRead, InALoopCopiesWhatAnIterationWrites) {
  ExpectSameResults(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l2, factors=[None, 5])
sch.compute_at(b0, l4)
b6 = sch.cache_read(b1, 0, "local")
)");
}

constexpr char kDReadsBackwards[] = R"(for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B[7 - vi])";

// `written`: what block B writes; `alloc` and `copy`: lines of a copy; `d`: the
// second reader.
std::string TwoReaders(const std::string& written = "B",
                       const std::string& alloc = "",
                       const std::string& copy = "",
                       const std::string& d = kDReadsBackwards) {
  return Program(
      "A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\"), "
      "D: T.Buffer((8,), \"float32\")",
      absl::StrCat("B = T.alloc_buffer((8,), \"float32\")\n", alloc,
                   R"(for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        )",
                   written, "[vi] = A[vi] + T.float32(1)\n", copy,
                   R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = B[vi]
)",
                   d));
}

// The other reader still reads B, so that the copy stands where only D needs
// it, and can move into its loop.
TEST(CacheRead, GivenConsumersAloneReadTheCopy) {
  ExpectBecomes(
      TwoReaders(), R"(b0 = sch.get_block("D")
b1 = sch.cache_read(b0, 0, "shared", consumer_blocks=[b0])
l2, = sch.get_loops(b0)
sch.compute_at(b1, l2, preserve_unit_loops=True)
)",
      TwoReaders(
          "B",
          "B_shared = T.alloc_buffer((8,), \"float32\", scope=\"shared\")\n",
          "", R"(for i in range(8):
    for ax0 in range(1):
        with T.block("B_shared"):
            v0 = T.axis.spatial(8, 7 - i + ax0)
            B_shared[v0] = B[v0]
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B_shared[7 - vi])"));
}

TEST(CacheRead, RefusesConsumersThatDoNotRead) {
  ExpectRefused(TwoReaders(), R"(b0 = sch.get_block("D")
b1 = sch.get_block("B")
b2 = sch.cache_read(b0, 0, "shared", consumer_blocks=[b1])
)",
                kIllegal, {"cache_read", "block B", "does not read buffer B"});
  ExpectRefused(TwoReaders(), R"(b0 = sch.get_block("D")
l1, = sch.get_loops(b0)
b2 = sch.cache_read(b0, 0, "shared", consumer_blocks=[l1])
)",
                kInvalid, {"cache_read", "list of blocks"});
}

TEST(CacheWrite, GivenConsumersReadBeforeTheCopy) {
  ExpectBecomes(
      TwoReaders(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("D")
b2 = sch.cache_write(b0, 0, "local", consumer_blocks=[b1])
)",
      TwoReaders("B_local",
                 "B_local = T.alloc_buffer((8,), \"float32\", "
                 "scope=\"local\")\n",
                 R"(for ax0 in range(8):
    with T.block("B_local"):
        v0 = T.axis.spatial(8, ax0)
        B[v0] = B_local[v0]
)",
                 absl::StrReplaceAll(kDReadsBackwards, {{"B[", "B_local["}})));
  ExpectRefused(TwoReaders(), R"(b0 = sch.get_block("B")
b1 = sch.cache_write(b0, 0, "local", consumer_blocks=[b0])
)",
                kIllegal, {"cache_write", "block B", "does not read"});
}

// What D reads beyond B's writes is what the caller had there.
TEST(CacheWrite, RefusesConsumersThatReadMore) {
  ExpectRefused(Program("A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
                        "\"float32\"), D: T.Buffer((8,), \"float32\")",
                        R"(for i in range(4):
    with T.block("B"):
        vi = T.axis.spatial(4, i)
        B[vi] = A[vi]
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B[vi])"),
                R"(b0 = sch.get_block("B")
b1 = sch.get_block("D")
b2 = sch.cache_write(b0, 0, "local", consumer_blocks=[b1])
)",
                kIllegal, {"cache_write", "block D", "does not write"});
}

TEST(CacheRead, RefusesWrongIndicesAndSeveralWriters) {
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.cache_read(b0, 2, "global")
)",
                kInvalid, {"cache_read", "block C"});
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
b4 = sch.decompose_reduction(b0, l3)
b5 = sch.get_block("D")
b6 = sch.cache_read(b5, 0, "global")
)",
                kIllegal, {"cache_read", "2 writers"});
}

// C is read before it is written: those reads need the old contents.
TEST(CacheRead, RefusesReadersBeforeTheWriter) {
  ExpectRefused(
      Program("C: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\")",
              R"(for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = C[vi]
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = T.float32(1))"),
      R"(b0 = sch.get_block("D")
b1 = sch.cache_read(b0, 0, "global")
)",
      kIllegal, {"cache_read", "block D reads buffer C before"});
}

TEST(CacheWrite, CopiesBackBeforeTheConsumers) {
  ExpectBecomes(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, 0, "global")
l2, l3, l4 = sch.get_loops(b0)
sch.reverse_compute_at(b1, l3)
)",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
C_global = T.alloc_buffer((16, 16), "float32")
for i, j in T.grid(16, 16):
    for k in range(16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C_global[vi, vj] = T.float32(0)
            C_global[vi, vj] = C_global[vi, vj] + A[vi, vk] * B[vk, vj]
    with T.block("C_global"):
        v0, v1 = T.axis.remap("SS", [i, j])
        C[v0, v1] = C_global[v0, v1]
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], T.float32(0)))"));
}

TEST(CacheWrite, CopiesOnlyWhatIsWritten) {
  ExpectBecomes(
      Program("A: T.Buffer((8,), \"float32\"), "
              "C: T.Buffer((16,), \"float32\")",
              R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi + 3] = A[vi])"),
      R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, 0, "local")
)",
      Program("A: T.Buffer((8,), \"float32\"), "
              "C: T.Buffer((16,), \"float32\")",
              R"(C_local = T.alloc_buffer((16,), "float32", scope="local")
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C_local[vi + 3] = A[vi]
for ax0 in range(8):
    with T.block("C_local"):
        v0 = T.axis.spatial(16, 3 + ax0)
        C[v0] = C_local[v0])"));
}

TEST(CacheWrite, GuardsTailsOfAScheduledBlock) {
  ExpectSameResults(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l2, factors=[None, 5])
sch.compute_at(b0, l4)
b6 = sch.cache_write(b0, 0, "local")
b7 = sch.cache_write(b1, 0, "global")
sch.reverse_compute_at(b7, l5)
)");
}

// Copying C[0 : 16] back would overwrite the odd elements.
TEST(CacheWrite, RefusesRegionsWithGaps) {
  ExpectRefused(Program("A: T.Buffer((8,), \"float32\"), "
                        "C: T.Buffer((16,), \"float32\")",
                        R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi * 2] = A[vi])"),
                R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, 0, "global")
)",
                kIllegal, {"cache_write", "block C", "every element"});
}

TEST(CacheWrite, RefusesBlocksThatReadTheOldContents) {
  ExpectRefused(Program("A: T.Buffer((8,), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = C[vi] + A[vi])"),
                R"(b0 = sch.get_block("C")
b1 = sch.cache_write(b0, 0, "global")
)",
                kIllegal, {"cache_write", "block C"});
}

TEST(Reindex, GivesAReadTheBlocksOwnIndices) {
  const std::string params =
      "A: T.Buffer((9,), \"float32\"), C: T.Buffer((4,), \"float32\")";
  ExpectBecomes(Program(params, R"(for i, r in T.grid(4, 3):
    with T.block("C"):
        vi, vr = T.axis.remap("SR", [i, r])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi * 2 + vr])"),
                R"(b0 = sch.get_block("C")
b1 = sch.reindex(b0, ("read", 0))
b2 = sch.reindex(b0, ("write", 0))
)",
                Program(params, R"(A_reindex = T.alloc_buffer((4, 3), "float32")
C_reindex = T.alloc_buffer((4,), "float32")
for ax0, ax1 in T.grid(4, 3):
    with T.block("A_reindex_reindex"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        A_reindex[v0, v1] = A[v0 * 2 + v1]
for i, r in T.grid(4, 3):
    with T.block("C"):
        vi, vr = T.axis.remap("SR", [i, r])
        with T.init():
            C_reindex[vi] = T.float32(0)
        C_reindex[vi] = C_reindex[vi] + A_reindex[vi, vr]
for ax0 in range(4):
    with T.block("C_reindex"):
        v0 = T.axis.spatial(4, ax0)
        C[v0] = C_reindex[v0])"));
}

TEST(Reindex, RefusesDifferentIndices) {
  ExpectRefused(Program("A: T.Buffer((9,), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = A[vi] + A[vi + 1])"),
                R"(b0 = sch.get_block("C")
b1 = sch.reindex(b0, ("read", 0))
)",
                kIllegal, {"reindex", "block C", "different indices"});
}

// The copy would also run where the guard of the block prevents the read.
TEST(Reindex, RefusesGuardedAccesses) {
  ExpectRefused(Program("A: T.Buffer((8,), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = T.if_then_else(1 <= vi, A[vi - 1], T.float32(0)))"),
                R"(b0 = sch.get_block("C")
b1 = sch.reindex(b0, ("read", 0))
)",
                kIllegal, {"reindex", "block C", "in bounds"});
}

TEST(Reindex, RefusesAccessesOfInnerBlocks) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
b3 = sch.blockize(l2)
b4 = sch.reindex(b3, ("read", 0))
)",
                kIllegal, {"reindex", "block B_o", "different indices"});
}

}  // namespace
}  // namespace tilefarm::testing
