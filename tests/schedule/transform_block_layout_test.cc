// transform_block_layout: rewrites and rejections.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kLayoutParams[] =
    "A: T.Buffer((8, 4, 6), \"float32\"), C: T.Buffer((8, 4), \"float32\")";

std::string Over(const std::string& map) {
  return absl::StrCat(
      "b0 = sch.get_block(\"C\")\nsch.transform_block_layout(b0, index_map=\"",
      map, "\")\n");
}

std::string Sums() {
  return Program(kLayoutParams, R"(for i, j, k in T.grid(8, 4, 6):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vj, vk])");
}

TEST(TransformBlockLayout, FusesVariables) {
  ExpectBecomes(Sums(), Over("lambda i, j, k: (i * 4 + j, k)"),
                Program(kLayoutParams, R"(for ax0, ax1 in T.grid(32, 6):
    with T.block("C"):
        v0, v1 = T.axis.remap("SR", [ax0, ax1])
        with T.init():
            C[v0 // 4, v0 % 4] = T.float32(0)
        C[v0 // 4, v0 % 4] = C[v0 // 4, v0 % 4] + A[v0 // 4, v0 % 4, v1])"));
}

TEST(TransformBlockLayout, SplitsAndReordersVariables) {
  ExpectBecomes(
      Sums(), Over("lambda i, j, k: (k % 2, j, i, k // 2)"),
      Program(kLayoutParams, R"(for ax0, ax1, ax2, ax3 in T.grid(2, 4, 8, 3):
    with T.block("C"):
        v0, v1, v2, v3 = T.axis.remap("RSSR", [ax0, ax1, ax2, ax3])
        with T.init():
            C[v2, v1] = T.float32(0)
        C[v2, v1] = C[v2, v1] + A[v2, v1, v3 * 2 + v0])"));
}

TEST(TransformBlockLayout, ConstantsAreVariablesOfOneValue) {
  ExpectSameResults(Sums(), Over("lambda i, j, k: (0, i, j, k)"));
  ExpectSameResults(
      Program("A: T.Buffer((1, 6), \"float32\"), C: T.Buffer((1, 6), "
              "\"float32\")",
              R"(for i, j in T.grid(1, 6):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] + T.float32(1))"),
      Over("lambda i, j: (j,)"));
}

// A convolution as a product of matrices: all buffers and the block by the same
// maps, after which no index divides.
TEST(TransformBlockLayout, FollowsTransformedBuffers) {
  const std::string program = Program(
      "X: T.Buffer((2, 3, 6), \"float32\"), W: T.Buffer((4, 3, 3), "
      "\"float32\"), Y: T.Buffer((2, 4, 4), \"float32\")",
      R"(for n, f, x, c, k in T.grid(2, 4, 4, 3, 3):
    with T.block("C"):
        vn, vf, vx, vc, vk = T.axis.remap("SSSRR", [n, f, x, c, k])
        with T.init():
            Y[vn, vf, vx] = T.float32(0)
        Y[vn, vf, vx] = Y[vn, vf, vx] + X[vn, vc, vx + vk] * W[vf, vc, vk])");
  const std::string trace = R"tr(b0 = sch.get_block("C")
b1 = sch.reindex(b0, buffer=("read", 0))
sch.transform_layout(b0, buffer=("read", 0), index_map="lambda n, x, c, k: (c * 3 + k, n * 4 + x)")
sch.transform_block_layout(b1, index_map="lambda n, x, c, k: (c * 3 + k, n * 4 + x)")
sch.compute_inline(b1)
b2 = sch.reindex(b0, buffer=("write", 0))
sch.transform_layout(b0, buffer=("write", 0), index_map="lambda n, f, x: (f, n * 4 + x)")
sch.transform_block_layout(b0, index_map="lambda n, f, x, c, k: (f, n * 4 + x, c * 3 + k)")
sch.transform_block_layout(b2, index_map="lambda n, f, x: (f, n * 4 + x)")
)tr";
  ExpectBecomes(
      program, trace,
      Program("X: T.Buffer((2, 3, 6), \"float32\"), W: T.Buffer((4, 3, 3), "
              "\"float32\"), Y: T.Buffer((2, 4, 4), \"float32\")",
              R"(Y_reindex = T.alloc_buffer((4, 8))
for ax0, ax1, ax2 in T.grid(4, 8, 9):
    with T.block("C"):
        v0, v1, v2 = T.axis.remap("SSR", [ax0, ax1, ax2])
        with T.init():
            Y_reindex[v0, v1] = T.float32(0)
        Y_reindex[v0, v1] = Y_reindex[v0, v1] + X[v1 // 4, v2 // 3, v1 % 4 + v2 % 3] * W[v0, v2 // 3, v2 % 3]
for ax0, ax1 in T.grid(4, 8):
    with T.block("Y_reindex"):
        v0, v1 = T.axis.remap("SS", [ax0, ax1])
        Y[v1 // 4, v0, v1 % 4] = Y_reindex[v0, v1])"));
}

TEST(TransformBlockLayout, RefusesMapsThatAreNotOneToOne) {
  ExpectRefused(Sums(), Over("lambda i, j, k: (i + j, k)"), kIllegal,
                {"transform_block_layout", "block C", "not one to one"});
  ExpectRefused(Sums(), Over("lambda i, j, k: (i, k)"), kIllegal,
                {"not one to one"});
  // Six values of k do not fill rows of four.
  ExpectRefused(Sums(), Over("lambda i, j, k: (i, j, k // 4, k % 4)"), kIllegal,
                {"not one to one"});
  ExpectRefused(Sums(), Over("lambda i, j, k: (i + 1, j, k)"), kIllegal,
                {"new variable 0 does not start at 0"});
}

TEST(TransformBlockLayout, RefusesVariablesOfBothTypes) {
  ExpectRefused(Sums(), Over("lambda i, j, k: (i, j * 6 + k)"), kIllegal,
                {"new variable 1 combines spatial and reduce variables"});
}

TEST(TransformBlockLayout, RefusesOtherArguments) {
  ExpectRefused(Sums(), Over("lambda i, j: (i, j)"), kInvalid,
                {"takes 2 variables, the block has 3"});
  ExpectRefused(Sums(), Over("lambda i, j, k: (i, j, k"), kInvalid,
                {"index map"});
}

TEST(TransformBlockLayout, RefusesOtherLoops) {
  ExpectRefused(Sums(), R"tr(b0 = sch.get_block("C")
l0, l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[2, 2])
sch.transform_block_layout(b0, index_map="lambda i, j, k: (j, i, k)")
)tr",
                kIllegal, {"its loops are not its own"});
  ExpectRefused(Sums(), R"tr(b0 = sch.get_block("C")
l0, l1, l2 = sch.get_loops(b0)
sch.vectorize(l1)
sch.transform_block_layout(b0, index_map="lambda i, j, k: (j, i, k)")
)tr",
                kIllegal, {"not serial"});
  // Each i sums anew.
  ExpectRefused(Program("A: T.Buffer((6,), \"float32\"), C: T.Buffer((1,), "
                        "\"float32\")",
                        R"(for i, k in T.grid(8, 6):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[0] = T.float32(0)
        C[0] = C[0] + A[vk])"),
                Over("lambda i, k: (k, i)"), kIllegal,
                {"block C", "do not write elements of their own"});
  // Each element is read before the next one is written.
  ExpectRefused(Program("C: T.Buffer((9,), \"float32\")",
                        R"(for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi + 1] = C[vi])"),
                Over("lambda i: (i // 2, i % 2)"), kIllegal, {"block C"});
}

}  // namespace
}  // namespace tilefarm::testing
