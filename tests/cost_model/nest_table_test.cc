#include "cost_model/nest_table.h"

#include "compiler/ir/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

constexpr char kProgram[] = R"(
@T.prim_func
def mm(A: T.Buffer((64, 1024), "float32"), B: T.Buffer((1024, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i0 in T.parallel(16):
        for one in range(1):
            for k in range(1024):
                for i1 in T.unroll(4):
                    for j in T.vectorized(64):
                        with T.block("C"):
                            vi = T.axis.spatial(64, i0 * 4 + i1)
                            vj = T.axis.spatial(64, j)
                            vk = T.axis.reduce(1024, k)
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

TEST(NestTables, SayWhatEachPartTouches) {
  const auto function = ir::ParseFunction(kProgram);
  ASSERT_TRUE(function.ok()) << function.status();
  NestNames names;
  const LoopNest nest = BuildLoopNest(**function, &names);
  const auto tables = NestTables(
      nest, names,
      {.l1_bytes = 32 << 10, .l2_bytes = 256 << 10, .l3_bytes = 300 << 10});
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_TRUE(tables[0].is_init);
  const NestTable& sum = tables[1];
  EXPECT_EQ(sum.block, "C");
  EXPECT_EQ(sum.buffer, "C");
  EXPECT_FALSE(sum.is_init);
  // The loop of one iteration is left out.
  ASSERT_EQ(sum.rows.size(), 5u);
  EXPECT_EQ(sum.rows[0].loop, "i0 in 16");
  EXPECT_EQ(sum.rows[0].kind, "parallel");
  EXPECT_EQ(sum.rows[0].runs, 1);
  EXPECT_EQ(sum.rows[0].bytes, 4 * (64 * 1024 + 1024 * 64 + 64 * 64));
  EXPECT_EQ(sum.rows[0].fits_in, "memory");
  EXPECT_EQ(sum.rows[1].loop, "k in 1024");
  EXPECT_EQ(sum.rows[1].kind, "serial");
  EXPECT_EQ(sum.rows[1].runs, 16);
  EXPECT_EQ(sum.rows[1].bytes, 4 * (4 * 1024 + 1024 * 64 + 4 * 64));
  EXPECT_EQ(sum.rows[1].fits_in, "L3");
  EXPECT_EQ(sum.rows[2].kind, "unrolled");
  EXPECT_EQ(sum.rows[2].bytes, 4 * (4 + 64 + 4 * 64));
  EXPECT_EQ(sum.rows[2].fits_in, "L1");
  EXPECT_EQ(sum.rows[3].kind, "vectorized");
  EXPECT_EQ(sum.rows[4].loop, "");
  // Four accesses of four bytes to three elements.
  EXPECT_EQ(sum.rows[4].bytes, 12);
  EXPECT_NEAR(sum.rows[4].reuse, 4.0 / 3, 1e-9);
  EXPECT_GT(sum.rows[0].reuse, sum.rows[3].reuse);
}

TEST(BuildLoopNest, IsTheSameWithNames) {
  const auto function = ir::ParseFunction(kProgram);
  NestNames names;
  const LoopNest with = BuildLoopNest(**function, &names);
  const LoopNest without = BuildLoopNest(**function);
  ASSERT_EQ(with.stores.size(), without.stores.size());
  ASSERT_EQ(names.stores.size(), with.stores.size());
  EXPECT_THAT(names.buffers, testing::ElementsAre("A", "B", "C"));
  EXPECT_THAT(names.stores[1].loops,
              testing::ElementsAre("i0", "one", "k", "i1", "j"));
}

}  // namespace
}  // namespace tilefarm::cost_model
