// compute_inline and reverse_compute_inline: rewrites and rejections.
#include <gtest/gtest.h>

#include "tests/schedule/block_test_support.h"
#include "tests/schedule/schedule_testing.h"

namespace tilefarm::testing {
namespace {

constexpr char kInlineB[] =
    "b0 = sch.get_block(\"B\")\n"
    "sch.compute_inline(b0)\n";
constexpr char kReverseInlineC[] =
    "b0 = sch.get_block(\"C\")\n"
    "sch.reverse_compute_inline(b0)\n";

// Parameters A, C of 32 by 32 and a body.
std::string Square(const std::string& body) {
  return Program(
      "A: T.Buffer((32, 32), \"float32\"), C: T.Buffer((32, 32), \"float32\")",
      body);
}

TEST(ComputeInline, PutsTheValueWhereItIsRead) {
  ExpectBecomes(TwoElementwise(), kInlineB,
                Square(R"(for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1))"));
}

TEST(ComputeInline, TakesTheIndicesOfEachRead) {
  ExpectBecomes(
      Program(
          "A: T.Buffer((6,), \"float32\"), C: T.Buffer((8, 2), \"float32\")",
          R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = T.if_then_else(1 <= vi and vi < 7, A[vi - 1], T.float32(0))
for i, k in T.grid(8, 2):
    with T.block("C"):
        vi, vk = T.axis.remap("SS", [i, k])
        C[vi, vk] = B[7 - vi] + B[vi])"),
      kInlineB,
      Program(
          "A: T.Buffer((6,), \"float32\"), C: T.Buffer((8, 2), \"float32\")",
          R"(for i, k in T.grid(8, 2):
    with T.block("C"):
        vi, vk = T.axis.remap("SS", [i, k])
        T.reads(A[0:6])
        T.writes(C[vi, vk])
        C[vi, vk] = T.if_then_else(1 <= 7 - vi and 7 - vi < 7, A[7 - vi - 1], T.float32(0)) + T.if_then_else(1 <= vi and vi < 7, A[vi - 1], T.float32(0)))"));
}

TEST(ComputeInline, InvertsASplitIndex) {
  ExpectSameResults(Square(R"(B = T.alloc_buffer((4, 32, 8), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi // 8, vj, vi % 8] = A[vi, vj] * T.float32(2)
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi // 8, vj, vi % 8])"),
                    kInlineB);
}

TEST(ComputeInline, RefusesOutputsReductionsAndLostVariables) {
  ExpectRefused(TwoElementwise(),
                "b0 = sch.get_block(\"C\")\nsch.compute_inline(b0)\n", kIllegal,
                {"compute_inline", "block C", "output"});
  ExpectRefused(MatmulRelu(),
                "b0 = sch.get_block(\"C\")\nsch.compute_inline(b0)\n", kIllegal,
                {"compute_inline", "block C"});
  ExpectRefused(Square(R"(B = T.alloc_buffer((32, 32), "float32")
for i in range(32):
    with T.block("B"):
        vi = T.axis.spatial(32, i)
        B[vi, vi] = A[vi, 0]
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vi])"),
                kInlineB, kIllegal, {"compute_inline"});
}

TEST(ComputeInline, RefusesAValueThatChanges) {
  // A is overwritten between the two.
  ExpectRefused(Square(R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
for i, j in T.grid(32, 32):
    with T.block("A"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi, vj] = T.float32(7)
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj])"),
                kInlineB, kIllegal, {"compute_inline", "block A overwrites"});
  // The value of X changes in each iteration of i.
  ExpectRefused(Square(R"(X = T.alloc_buffer((32,), "float32")
B = T.alloc_buffer((32, 32), "float32")
for i in range(32):
    for j in range(32):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vj] = A[vi, vj]
    for j in range(32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vj]
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj])"),
                kInlineB, kIllegal, {"compute_inline"});
}

TEST(ComputeInline, RefusesToTakeAReaderOutOfAParallelLoop) {
  ExpectSameResults(schedule::kCopyOfEachIteration, kInlineB);
  ExpectRefused(schedule::kCopyOfEachIteration, R"(b0 = sch.get_block("B")
l1, = sch.get_loops(b0)
sch.parallel(l1)
sch.compute_inline(b0)
)",
                kIllegal, {"compute_inline", "block P", "at the same time"});
}

TEST(ReverseComputeInline, PutsTheConsumerIntoItsProducer) {
  ExpectBecomes(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[None, 8])
b5 = sch.get_block("C")
sch.reverse_compute_inline(b5)
)",
                Square(R"(for i_0, i_1, j in T.grid(4, 8, 32):
    with T.block("B"):
        vi = T.axis.spatial(32, i_0 * 8 + i_1)
        vj = T.axis.spatial(32, j)
        C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1))"));
}

TEST(ReverseComputeInline, Transposes) {
  ExpectBecomes(Square(R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vj, vi] + T.float32(1))"),
                kReverseInlineC, Square(R"(for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vj, vi] = A[vi, vj] + T.float32(1))"));
}

TEST(ReverseComputeInline, GuardsAConsumerThatReadsAPart) {
  const std::string params =
      "A: T.Buffer((32,), \"float32\"), C: T.Buffer((30,), \"float32\")";
  ExpectBecomes(Program(params, R"(B = T.alloc_buffer((32,), "float32")
for i in range(32):
    with T.block("B"):
        vi = T.axis.spatial(32, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(30):
    with T.block("C"):
        vi = T.axis.spatial(30, i)
        C[vi] = B[vi] + T.float32(1))"),
                kReverseInlineC, Program(params, R"(for i in range(32):
    with T.block("B"):
        T.where(i < 30)
        vi = T.axis.spatial(32, i)
        C[vi] = A[vi] * T.float32(2) + T.float32(1))"));
  ExpectSameResults(Program(params, R"(B = T.alloc_buffer((32,), "float32")
for i in range(32):
    with T.block("B"):
        vi = T.axis.spatial(32, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(30):
    with T.block("C"):
        vi = T.axis.spatial(30, i)
        C[vi] = B[vi + 1] + T.float32(1))"),
                    kReverseInlineC);
}

TEST(ReverseComputeInline, RefusesReductionsAndSeveralUses) {
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("D")
sch.reverse_compute_inline(b0)
)",
                kIllegal, {"reverse_compute_inline", "block C"});
  ExpectRefused(Square(R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + B[vj, vi])"),
                kReverseInlineC, kIllegal,
                {"reverse_compute_inline", "one to one"});
  ExpectRefused(Square(R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, 0])"),
                kReverseInlineC, kIllegal, {"reverse_compute_inline"});
}

}  // namespace
}  // namespace tilefarm::testing
