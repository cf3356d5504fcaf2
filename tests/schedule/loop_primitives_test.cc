// The rewrite of each loop primitive, and its rejections.
#include "tests/schedule/schedule_testing.h"

namespace tilefarm::schedule {
namespace {

class LoopPrimitivesTest : public ::testing::Test {
 protected:
  void Load(const char* text, const char* block) {
    schedule_.emplace(ModuleOf(text));
    block_ = *schedule_->GetBlock(block);
    loops_ = *schedule_->GetLoops(block_);
  }

  std::optional<Schedule> schedule_;
  BlockRv block_;
  std::vector<LoopRv> loops_;
};

// --- split ---

TEST_F(LoopPrimitivesTest, SplitMakesANest) {
  Load(kMatmul, "C");
  ASSERT_OK_AND_ASSIGN(auto parts,
                       schedule_->Split(loops_[0], {2, std::nullopt, 4}));
  EXPECT_EQ(parts.size(), 3);
  EXPECT_EQ(Nest(*schedule_),
            "for i_0, i_1, i_2, j, k in T.grid(2, 2, 4, 16, 16):\n"
            "    with T.block(\"C\"):\n"
            "        vi = T.axis.spatial(16, i_0 * 8 + i_1 * 4 + i_2)\n"
            "        vj, vk = T.axis.remap(\"SR\", [j, k])\n");
}

TEST_F(LoopPrimitivesTest, SplitGuardsTheTail) {
  Load(kChain, "B");
  ASSERT_OK_AND_ASSIGN(auto parts,
                       schedule_->Split(loops_[0], {std::nullopt, 8}));
  ASSERT_OK_AND_ASSIGN(auto more, schedule_->Split(parts[0], {2, 3}));
  EXPECT_EQ(Nest(*schedule_),
            "for i_0_0, i_0_1, i_1 in T.grid(2, 3, 8):\n"
            "    with T.block(\"B\"):\n"
            "        v = T.axis.spatial(30, (i_0_0 * 3 + i_0_1) * 8 + i_1)\n"
            "        T.where((i_0_0 * 3 + i_0_1) * 8 + i_1 < 30 and "
            "i_0_0 * 3 + i_0_1 < 4)\n");
}

TEST_F(LoopPrimitivesTest, SplitKeepsUnitLoopsInBindings) {
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Split(loops_[0], {1, 16}).ok());
  EXPECT_THAT(Nest(*schedule_),
              ::testing::HasSubstr("vi = T.axis.spatial(16, i_0 * 16 + i_1)"));
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Split(loops_[0], {1, 16}, false).ok());
  EXPECT_THAT(Nest(*schedule_), ::testing::HasSubstr("[i_1, j, k]"));
}

TEST_F(LoopPrimitivesTest, SplitRefuses) {
  Load(kChain, "B");
  ExpectIllegal(schedule_->Split(loops_[0], {3, 8}).status(),
                "split: loop i (block B): the factors' product 24 is less "
                "than the extent 30");
  ExpectInvalid(schedule_->Split(loops_[0], {0, 8}).status(),
                "factor 0 is not positive");
  ExpectInvalid(
      schedule_->Split(loops_[0], {std::nullopt, std::nullopt}).status(),
      "at most one factor");
  ExpectInvalid(schedule_->Split(loops_[0], {}).status(), "needs factors");
  ExpectInvalid(schedule_->Split(loops_[0], {INT64_MAX, INT64_MAX}).status(),
                "overflow");
  ASSERT_TRUE(schedule_->Annotate(loops_[0], "x", ir::Attr(1)).ok());
  ExpectIllegal(schedule_->Split(loops_[0], {3, 10}).status(),
                "the loop has annotations");
}

// --- fuse ---

TEST_F(LoopPrimitivesTest, FuseMakesOneLoop) {
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Fuse({loops_[0], loops_[1]}).ok());
  EXPECT_EQ(Nest(*schedule_),
            "for i_j_fused, k in T.grid(256, 16):\n"
            "    with T.block(\"C\"):\n"
            "        vi = T.axis.spatial(16, i_j_fused // 16)\n"
            "        vj = T.axis.spatial(16, i_j_fused % 16)\n"
            "        vk = T.axis.reduce(16, k)\n");
}

TEST_F(LoopPrimitivesTest, FuseUndoesSplit) {
  Load(kMatmul, "C");
  ASSERT_OK_AND_ASSIGN(auto parts, schedule_->Split(loops_[0], {4, 4}));
  ASSERT_TRUE(schedule_->Fuse(parts).ok());
  EXPECT_EQ(Nest(*schedule_),
            "for i_0_i_1_fused, j, k in T.grid(16, 16, 16):\n"
            "    with T.block(\"C\"):\n"
            "        vi, vj, vk = T.axis.remap(\"SSR\", [i_0_i_1_fused, j, "
            "k])\n");
}

TEST_F(LoopPrimitivesTest, FuseOfOneLoopRenamesIt) {
  Load(kChain, "B");
  ASSERT_TRUE(schedule_->Fuse({loops_[0]}).ok());
  EXPECT_THAT(Nest(*schedule_), ::testing::HasSubstr("for i_fused in range"));
}

TEST_F(LoopPrimitivesTest, FuseRefuses) {
  Load(kMatmul, "C");
  ExpectIllegal(schedule_->Fuse({loops_[0], loops_[2]}).status(),
                "fuse: loop k (block C): it is not directly inside loop i");
  ExpectIllegal(schedule_->Fuse({loops_[1], loops_[0]}).status(),
                "not directly inside");
  ExpectInvalid(schedule_->Fuse({}).status(), "needs a loop");
  // Two statements in one loop.
  schedule_.emplace(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        for j in range(4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(1)
)"));
  const auto loops = *schedule_->GetLoops(*schedule_->GetBlock("A"));
  ExpectIllegal(schedule_->Fuse(loops).status(), "not the only statement");
  ExpectIllegal(schedule_->Reorder({loops[1], loops[0]}),
                "is not its only statement");
}

// --- reorder ---

TEST_F(LoopPrimitivesTest, ReorderPermutesOnlyTheNamedLoops) {
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Reorder({loops_[2], loops_[0]}).ok());
  EXPECT_EQ(Nest(*schedule_),
            "for k, j, i in T.grid(16, 16, 16):\n"
            "    with T.block(\"C\"):\n"
            "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n");
}

TEST_F(LoopPrimitivesTest, ReorderRefuses) {
  Load(kMatmul, "C");
  ExpectInvalid(schedule_->Reorder({loops_[0], loops_[0]}), "named twice");
  Load(kChain, "B");
  const auto other = *schedule_->GetLoops(*schedule_->GetBlock("C"));
  ExpectIllegal(schedule_->Reorder({loops_[0], other[0]}),
                "in no chain with loop");
  // A running sum depends on the order of iterations.
  schedule_.emplace(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((9, 9), "float32")):
    for i, j in T.grid(8, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj + 1] = A[vi, vj + 1] + T.float32(1)
)"));
  const auto loops = *schedule_->GetLoops(*schedule_->GetBlock("A"));
  ExpectIllegal(schedule_->Reorder({loops[1], loops[0]}),
                "reorder: block A: it reads elements of A that other "
                "iterations write");
  ExpectIllegal(schedule_->Parallel(loops[0]), "other iterations write");
}

TEST_F(LoopPrimitivesTest, ReorderKeepsRepetitionsAroundReductions) {
  schedule_.emplace(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")):
    for i, t, k in T.grid(4, 8, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)"));
  const auto loops = *schedule_->GetLoops(*schedule_->GetBlock("C"));
  ExpectIllegal(schedule_->Reorder({loops[2], loops[1]}),
                "reorder: loop k (block C): with loop t: block C repeats its "
                "instances: these loops must keep their order");
  EXPECT_TRUE(schedule_->Reorder({loops[1], loops[0]}).ok());
}

TEST_F(LoopPrimitivesTest, ReorderSeesRepetitionsByLoopsBelow) {
  schedule_.emplace(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6,), "float32")):
    for k, i, j in T.grid(4, 3, 4):
        with T.block("C"):
            vi = T.axis.spatial(6, i + j)
            vk = T.axis.reduce(4, k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
)"));
  const auto loops = *schedule_->GetLoops(*schedule_->GetBlock("C"));
  ExpectIllegal(schedule_->Reorder({loops[1], loops[0]}),
                "repeats its instances: these loops must keep their order");
  EXPECT_TRUE(schedule_->Reorder({loops[2], loops[1]}).ok());
}

// --- parallel, vectorize, unroll, bind ---

TEST_F(LoopPrimitivesTest, KindsOfLoops) {
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Parallel(loops_[0]).ok());
  ASSERT_TRUE(schedule_->Reorder({loops_[2], loops_[1]}).ok());
  ASSERT_TRUE(schedule_->Vectorize(loops_[1]).ok());
  ASSERT_TRUE(schedule_->Unroll(loops_[2]).ok());
  EXPECT_EQ(Nest(*schedule_),
            "for i in T.parallel(16):\n"
            "    for k in T.unroll(16):\n"
            "        for j in T.vectorized(16):\n"
            "            with T.block(\"C\"):\n"
            "                vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n");
}

TEST_F(LoopPrimitivesTest, BindTakesThreadAxes) {
  Load(kMatmul, "C");
  ASSERT_TRUE(schedule_->Bind(loops_[0], "blockIdx.x").ok());
  ASSERT_TRUE(schedule_->Bind(loops_[1], "threadIdx.x").ok());
  EXPECT_THAT(Nest(*schedule_),
              ::testing::HasSubstr(
                  "for i in T.thread_binding(16, thread=\"blockIdx.x\"):"));
  ExpectInvalid(schedule_->Bind(loops_[2], "laneIdx.x"),
                "unknown thread axis \"laneIdx.x\"");
}

TEST_F(LoopPrimitivesTest, KindsRefuse) {
  Load(kMatmul, "C");
  ExpectIllegal(schedule_->Parallel(loops_[2]),
                "parallel: loop k (block C): block C uses the loop in vk, "
                "which is not data parallel");
  ExpectIllegal(schedule_->Vectorize(loops_[2]), "not data parallel");
  ExpectIllegal(schedule_->Bind(loops_[2], "blockIdx.x"), "not data parallel");
  ASSERT_TRUE(schedule_->Parallel(loops_[0]).ok());
  ExpectIllegal(schedule_->Vectorize(loops_[0]), "already parallel");
  ExpectIllegal(schedule_->Unroll(loops_[0]), "already parallel");
}

TEST_F(LoopPrimitivesTest, ParallelRefusesSharedReductions) {
  schedule_.emplace(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4,), "float32")):
    for i, t, k in T.grid(4, 8, 4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(4, k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi * 4 + vk]
)"));
  const auto loops = *schedule_->GetLoops(*schedule_->GetBlock("C"));
  ExpectIllegal(schedule_->Parallel(loops[1]),
                "iterations of block C would write the same elements at the "
                "same time");
  EXPECT_TRUE(schedule_->Parallel(loops[0]).ok());
}

// --- add_unit_loop, annotate ---

TEST_F(LoopPrimitivesTest, AddUnitLoopWrapsBlocksAndLoops) {
  Load(kChain, "B");
  ASSERT_TRUE(schedule_->AddUnitLoop(block_).ok());
  ASSERT_TRUE(schedule_->AddUnitLoop(loops_[0]).ok());
  EXPECT_THAT(Nest(*schedule_),
              ::testing::HasSubstr("for u, i, u_1 in T.grid(1, 30, 1):"));
  ASSERT_OK_AND_ASSIGN(BlockRv root, schedule_->GetBlock("root"));
  ExpectIllegal(schedule_->AddUnitLoop(root).status(), "root block");
}

TEST_F(LoopPrimitivesTest, AnnotationsComeAndGo) {
  Load(kChain, "B");
  ASSERT_TRUE(schedule_->Annotate(loops_[0], "a", ir::Attr(1)).ok());
  ASSERT_TRUE(schedule_->Annotate(loops_[0], "a", ir::Attr(2)).ok());
  ASSERT_TRUE(schedule_->Annotate(block_, "b", ir::Attr("x")).ok());
  EXPECT_EQ(schedule_->Get(loops_[0]).value()->annotations.at("a"),
            ir::Attr(1));
  EXPECT_EQ(schedule_->Get(block_).value()->annotations.at("b"), ir::Attr("x"));
  ASSERT_TRUE(schedule_->Unannotate(loops_[0], "a").ok());
  ExpectIllegal(schedule_->Unannotate(loops_[0], "a"),
                "unannotate: loop i (block B): it has no annotation \"a\"");
}

}  // namespace
}  // namespace tilefarm::schedule
