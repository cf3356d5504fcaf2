// Each postproc: its result, and where it does not apply.
#include "compiler/space/postprocs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/sketch_rules.h"
#include "tests/space/schedule_text.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::space {
namespace {

using schedule::Schedule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RewriteReductionsTest, InitialisationMovesBeforeTheReduceLoops) {
  Schedule schedule = Make(Matmul(4, 4, 8));
  ASSERT_TRUE(RewriteReductions(schedule, "main").ok());
  EXPECT_THAT(Blocks(schedule), ElementsAre("C_init", "C_update"));
  ExpectSameOutputs(*Matmul(4, 4, 8), *schedule.module().Find("main"));
}

TEST(RewriteReductionsTest, ShortRowsAreSummedInVectors) {
  // A loop of one iteration inside, as partial results leave it in their
  // reader.
  for (const bool unit_loop : {false, true}) {
    Schedule schedule = Make(SmallSoftmax());
    const auto block = schedule.GetBlock("T_softmax_expsum", "main");
    ASSERT_TRUE(block.ok()) << block.status();
    const auto loops = schedule.GetLoops(*block);
    ASSERT_TRUE(loops.ok()) << loops.status();
    if (unit_loop) {
      const auto parts = schedule.Split((*loops)[0], {6, 1});
      ASSERT_TRUE(parts.ok()) << parts.status();
      ASSERT_TRUE(schedule.Reorder({loops->back(), (*parts)[1]}).ok());
    }
    ASSERT_TRUE(RewriteReductions(schedule, "main").ok());
    EXPECT_THAT(
        Text(schedule),
        HasSubstr("T.serial(40, annotations={\"tilefarm.reduce_lanes\": "
                  "1}):"));
  }
}

TEST(RewriteParallelVectorizeUnrollTest, DoesWhatTheRootAsksFor) {
  Schedule schedule = Make(MatmulRelu(64, 64, 8));
  auto root = schedule.GetBlock("root");
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE(schedule.Annotate(*root, kParallel, ir::Attr(16)).ok());
  ASSERT_TRUE(schedule.Annotate(*root, kVectorize, ir::Attr(16)).ok());
  ASSERT_TRUE(schedule.Annotate(*root, kUnrollExplicit, ir::Attr(64)).ok());
  ASSERT_TRUE(
      RewriteParallelVectorizeUnroll(schedule, "main", TestTarget(4)).ok());
  const std::string text = Text(schedule);
  EXPECT_THAT(text, HasSubstr("T.parallel("));
  EXPECT_THAT(text, HasSubstr("T.vectorized("));
  EXPECT_THAT(text, HasSubstr("\"pragma_auto_unroll_max_step\": 64"));
  // The annotations are removed.
  EXPECT_THAT(text, Not(HasSubstr("meta_schedule")));
  ExpectSameOutputs(*MatmulRelu(64, 64, 8), *schedule.module().Find("main"));
}

TEST(RewriteParallelVectorizeUnrollTest, ReductionsNeverRunInParallel) {
  Schedule schedule = Make(Norm(1, 256));
  auto root = schedule.GetBlock("root");
  ASSERT_TRUE(root.ok());
  ASSERT_TRUE(schedule.Annotate(*root, kParallel, ir::Attr(64)).ok());
  ASSERT_TRUE(
      RewriteParallelVectorizeUnroll(schedule, "main", TestTarget(4)).ok());
  ExpectSameOutputs(*Norm(1, 256), *schedule.module().Find("main"));
}

TEST(RewritePackingTest, PanelsAreAsWideAsTheRegisterTile) {
  const RuleContext context{"main", TestTarget()};
  auto sketches =
      ApplyRule(MultiLevelTiling, context, Make(Matmul(32, 64, 32)), "C");
  ASSERT_TRUE(sketches.ok()) << sketches.status();
  Schedule schedule = sketches->front();
  schedule::Trace trace = schedule.trace();
  ASSERT_TRUE(
      trace
          .SetDecisions({ir::AttrList{1, 2, 4, 4}, ir::AttrList{1, 1, 4, 16},
                         ir::AttrList{2, 16}})
          .ok());
  auto replayed = schedule::Replay(trace, ir::IRModule{{Matmul(32, 64, 32)}});
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  ASSERT_TRUE(RewritePacking(*replayed, "main").ok());
  EXPECT_THAT(Text(*replayed),
              HasSubstr("B_global = T.alloc_buffer((4, 32, 16)"));
  EXPECT_THAT(Text(*replayed), Not(HasSubstr(kPack)));
  ExpectSameOutputs(*Matmul(32, 64, 32), *replayed->module().Find("main"));
}

// A matmul in tiles of 4 rows, 32 columns and `inner` steps, with loops over
// rows and panels between the reductions, after rewrite_prefetch.
std::string AfterPrefetch(int64_t rows, int64_t reduction, int64_t inner,
                          bool parallel = false) {
  Schedule schedule = Make(Matmul(rows, 64, reduction));
  const auto block = *schedule.GetBlock("C", "main");
  EXPECT_TRUE(
      schedule.Annotate(block, kTilingStructure, ir::Attr("SSRSRS")).ok());
  const auto loops = *schedule.GetLoops(block);
  const auto i = *schedule.Split(loops[0], {std::nullopt, 4});
  const auto j = *schedule.Split(loops[1], {std::nullopt, 32});
  const auto k = *schedule.Split(loops[2], {std::nullopt, inner});
  EXPECT_TRUE(schedule.Reorder({i[0], k[0], j[0], k[1], i[1], j[1]}).ok());
  if (parallel) {
    EXPECT_TRUE(schedule.Parallel(i[0]).ok());
  }
  EXPECT_TRUE(RewritePrefetch(schedule, "main", TestTarget()).ok());
  return Text(schedule);
}

TEST(RewritePrefetchTest, RowsOfLargeOperandsAreFetchedAhead) {
  EXPECT_THAT(AfterPrefetch(2048, 512, 256),
              HasSubstr("i0_0 in T.serial(512, annotations={"
                        "\"tilefarm.prefetch_next\": 1})"));
}

TEST(RewritePrefetchTest, OthersAreLeft) {
  const auto none = Not(HasSubstr("prefetch"));
  // It fits the L2 cache.
  EXPECT_THAT(AfterPrefetch(256, 512, 256), none);
  // A tile reads fewer than a few lines of each row.
  EXPECT_THAT(AfterPrefetch(2048, 512, 32), none);
  EXPECT_THAT(AfterPrefetch(2048, 512, 256, /*parallel=*/true), none);
  Schedule untiled = Make(Matmul(2048, 64, 512));
  EXPECT_TRUE(RewritePrefetch(untiled, "main", TestTarget()).ok());
  EXPECT_THAT(Text(untiled), none);
}

}  // namespace
}  // namespace tilefarm::space
