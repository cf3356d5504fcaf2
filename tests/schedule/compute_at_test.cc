// compute_at and reverse_compute_at: rewrites and rejections.
#include <gtest/gtest.h>

#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

TEST(ComputeAt, MovesTheProducerIntoATileOfItsConsumer) {
  ExpectBecomes(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l2, factors=[None, 8])
sch.compute_at(b0, l4)
)",
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((32, 32), "float32")
for i_0 in range(4):
    for ax0, ax1 in T.grid(8, 32):
        with T.block("B"):
            vi = T.axis.spatial(32, i_0 * 8 + ax0)
            vj = T.axis.spatial(32, ax1)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i_1, j in T.grid(8, 32):
        with T.block("C"):
            vi = T.axis.spatial(32, i_0 * 8 + i_1)
            vj = T.axis.spatial(32, j)
            C[vi, vj] = B[vi, vj] + T.float32(1))"));
}

TEST(ComputeAt, GuardsATailAndKeepsUnitLoopsWhereAsked) {
  ExpectBecomes(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l2, factors=[None, 5])
sch.compute_at(b0, l4, preserve_unit_loops=True)
)",
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((32, 32), "float32")
for i_0 in range(7):
    for ax0, ax1 in T.grid(5, 32):
        with T.block("B"):
            T.where(i_0 * 5 + ax0 < 32)
            vi = T.axis.spatial(32, i_0 * 5 + ax0)
            vj = T.axis.spatial(32, ax1)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i_1, j in T.grid(5, 32):
        with T.block("C"):
            T.where(i_0 * 5 + i_1 < 32)
            vi = T.axis.spatial(32, i_0 * 5 + i_1)
            vj = T.axis.spatial(32, j)
            C[vi, vj] = B[vi, vj] + T.float32(1))"));
  ExpectBecomes(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.compute_at(b0, l3, preserve_unit_loops=True)
)",
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    for ax0, ax1 in T.grid(1, 1):
        with T.block("B"):
            vi = T.axis.spatial(32, i + ax0)
            vj = T.axis.spatial(32, j + ax1)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + T.float32(1))"));
}

TEST(ComputeAt, RecomputesAHaloAndAReduction) {
  const std::string stencil = Program(
      "A: T.Buffer((34,), \"float32\"), C: T.Buffer((32,), \"float32\")",
      R"(B = T.alloc_buffer((34,), "float32")
for i in range(34):
    with T.block("B"):
        vi = T.axis.spatial(34, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(32):
    with T.block("C"):
        vi = T.axis.spatial(32, i)
        C[vi] = B[vi] + B[vi + 1] + B[vi + 2])");
  ExpectBecomes(stencil, R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b1)
l3, l4 = sch.split(l2, factors=[8, 4])
sch.compute_at(b0, l3)
)",
                Program("A: T.Buffer((34,), \"float32\"), "
                        "C: T.Buffer((32,), \"float32\")",
                        R"(B = T.alloc_buffer((34,), "float32")
for i_0 in range(8):
    for ax0 in range(6):
        with T.block("B"):
            vi = T.axis.spatial(34, i_0 * 4 + ax0)
            B[vi] = A[vi] * T.float32(2)
    for i_1 in range(4):
        with T.block("C"):
            vi = T.axis.spatial(32, i_0 * 4 + i_1)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2])"));
  ExpectSameResults(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.get_block("D")
l2, l3 = sch.get_loops(b1)
l4, l5 = sch.split(l3, factors=[None, 6])
sch.compute_at(b0, l4)
)");
}

TEST(ComputeAt, FollowsFusedConsumersWithAWiderRegion) {
  ExpectSameResults(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
l4 = sch.fuse(l2, l3)
l5, l6 = sch.split(l4, factors=[None, 48])
sch.compute_at(b0, l5)
)");
}

TEST(ComputeAt, TakesPositionsBetweenProducersAndConsumers) {
  const std::string program = Program(
      "A: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\"), "
      "E: T.Buffer((8,), \"float32\")",
      R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = A[vi]
    with T.block("E"):
        vi = T.axis.spatial(8, i)
        E[vi] = B[vi])");
  const std::string prefix = R"(b0 = sch.get_block("B")
b1 = sch.get_block("E")
l2, = sch.get_loops(b1)
)";
  ExpectSameResults(program, prefix + "sch.compute_at(b0, l2, index=0)\n");
  ExpectSameResults(program, prefix + "sch.compute_at(b0, l2, index=-2)\n");
  ExpectRefused(program, prefix + "sch.compute_at(b0, l2, index=2)\n", kIllegal,
                {"compute_at", "block B", "index 2", "0 to 1"});
}

TEST(ComputeAt, RefusesOutputsAndConsumersElsewhere) {
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("D")
b1 = sch.get_block("C")
l2, l3, l4 = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
                kIllegal, {"compute_at", "block D", "output"});
  const std::string two = Program(
      "A: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\"), "
      "E: T.Buffer((8,), \"float32\")",
      R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B[vi]
for i in range(8):
    with T.block("E"):
        vi = T.axis.spatial(8, i)
        E[vi] = B[vi])");
  ExpectRefused(two, R"(b0 = sch.get_block("B")
b1 = sch.get_block("D")
l2, = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
                kIllegal, {"compute_at", "block B", "consumer E", "loop i"});
  ExpectRefused(two, R"(b0 = sch.get_block("B")
l2, = sch.get_loops(b0)
sch.compute_at(b0, l2)
)",
                kIllegal, {"compute_at", "already below the loop"});
}

// The consumer overwrites the producer's input, so the producer cannot move.
TEST(ComputeAt, RefusesToReadWhatIsOverwrittenBefore) {
  const std::string program =
      Program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")",
              R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[7 - vi] * T.float32(2)
for i in range(8):
    with T.block("A"):
        vi = T.axis.spatial(8, i)
        A[vi] = T.float32(1)
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = B[vi])");
  ExpectRefused(program, R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
                kIllegal, {"compute_at", "block B", "overwrites"});
}

// The value of X changes in each iteration of i.
TEST(ComputeAt, RefusesToLeaveALoopWithItsProducer) {
  ExpectRefused(Program("A: T.Buffer((4, 8), \"float32\"), "
                        "C: T.Buffer((4, 8), \"float32\")",
                        R"(X = T.alloc_buffer((8,), "float32")
B = T.alloc_buffer((4, 8), "float32")
for i in range(4):
    for j in range(8):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vj] = A[vi, vj] * T.float32(2)
    for j in range(8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[7 - vj]
for i, j in T.grid(4, 8):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + T.float32(1))"),
                R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.compute_at(b0, l2)
)",
                kIllegal, {"compute_at", "block X overwrites", "buffer X"});
}

TEST(ComputeAt, RefusesVectorizedLoops) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.vectorize(l3)
sch.compute_at(b0, l3)
)",
                kIllegal, {"compute_at", "vectorized"});
}

TEST(ReverseComputeAt, MovesTheConsumerIntoATileOfItsProducer) {
  ExpectBecomes(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.get_block("D")
l2, l3, l4 = sch.get_loops(b0)
l5, l6 = sch.split(l2, factors=[None, 5])
l7, l8 = sch.split(l3, factors=[None, 8])
sch.reorder(l5, l7, l6, l8, l4)
sch.reverse_compute_at(b1, l7)
)",
                Program("A: T.Buffer((16, 16), \"float32\"), "
                        "B: T.Buffer((16, 16), \"float32\"), "
                        "D: T.Buffer((16, 16), \"float32\")",
                        R"(C = T.alloc_buffer((16, 16), "float32")
for i_0, j_0 in T.grid(4, 2):
    for i_1, j_1, k in T.grid(5, 8, 16):
        with T.block("C"):
            T.where(i_0 * 5 + i_1 < 16)
            vi = T.axis.spatial(16, i_0 * 5 + i_1)
            vj = T.axis.spatial(16, j_0 * 8 + j_1)
            vk = T.axis.reduce(16, k)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for ax0, ax1 in T.grid(5, 8):
        with T.block("D"):
            T.where(i_0 * 5 + ax0 < 16)
            vi = T.axis.spatial(16, i_0 * 5 + ax0)
            vj = T.axis.spatial(16, j_0 * 8 + ax1)
            D[vi, vj] = T.max(C[vi, vj], T.float32(0)))"));
}

// A row sum of tiles: the reduction continues from tile to tile.
TEST(ReverseComputeAt, ContinuesAReductionInOrder) {
  const std::string program = Program(
      "A: T.Buffer((8, 16), \"float32\"), C: T.Buffer((8,), \"float32\")",
      R"(B = T.alloc_buffer((8, 16), "float32")
for i, j in T.grid(8, 16):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] * T.float32(2)
for i, j in T.grid(8, 16):
    with T.block("C"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + B[vi, vj])");
  ExpectSameResults(program, R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l3, factors=[4, 4])
sch.reverse_compute_at(b1, l4)
)");
  ExpectRefused(program, R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l3, factors=[4, 4])
sch.parallel(l4)
sch.reverse_compute_at(b1, l4)
)",
                kIllegal, {"reverse_compute_at", "same time"});
}

TEST(ReverseComputeAt, RefusesAnIncompleteReduction) {
  ExpectRefused(MatmulRelu(), R"(b0 = sch.get_block("C")
b1 = sch.get_block("D")
l2, l3, l4 = sch.get_loops(b0)
sch.reverse_compute_at(b1, l4)
)",
                kIllegal, {"reverse_compute_at", "loop k", "reduction"});
}

TEST(ReverseComputeAt, RefusesAStencil) {
  const std::string stencil = Program(
      "A: T.Buffer((34,), \"float32\"), C: T.Buffer((32,), \"float32\")",
      R"(B = T.alloc_buffer((34,), "float32")
for i in range(34):
    with T.block("B"):
        vi = T.axis.spatial(34, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(32):
    with T.block("C"):
        vi = T.axis.spatial(32, i)
        C[vi] = B[vi] + B[vi + 2])");
  ExpectRefused(stencil, R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b0)
sch.reverse_compute_at(b1, l2)
)",
                kIllegal, {"reverse_compute_at", "block C", "inverted"});
}

// The consumer reads B[i // 2], so each loop iteration has two instances.
TEST(ReverseComputeAt, InvertsAFloorDivision) {
  ExpectSameResults(
      Program("A: T.Buffer((8,), \"float32\"), C: T.Buffer((16,), \"float32\")",
              R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = B[vi // 2])"),
      R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b0)
sch.reverse_compute_at(b1, l2)
)");
}

// The producer writes less than the consumer reads: other instances would not
// run.
TEST(ReverseComputeAt, RefusesWhereInstancesWouldBeLost) {
  ExpectRefused(
      Program(
          "A: T.Buffer((8,), \"float32\"), B: T.Buffer((16,), \"float32\"), "
          "C: T.Buffer((16,), \"float32\")",
          R"(for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = B[vi])"),
      R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b0)
sch.reverse_compute_at(b1, l2)
)",
      kIllegal, {"reverse_compute_at"});
}

// The block has no producers, so only its readers limit how late it can run.
TEST(ReverseComputeAt, RefusesToPassConsumers) {
  const std::string two = Program(
      "A: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\"), "
      "E: T.Buffer((8,), \"float32\")",
      R"(B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(8):
    with T.block("D"):
        vi = T.axis.spatial(8, i)
        D[vi] = B[vi]
for i in range(8):
    with T.block("E"):
        vi = T.axis.spatial(8, i)
        E[vi] = A[vi])");
  ExpectRefused(two, R"(b0 = sch.get_block("B")
b1 = sch.get_block("E")
l2, = sch.get_loops(b1)
sch.reverse_compute_at(b0, l2)
)",
                kIllegal, {"reverse_compute_at", "after its consumer D"});
}

}  // namespace
}  // namespace tilefarm::testing
