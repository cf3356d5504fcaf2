#include "compiler/driver/draft_schedule.h"

#include "compiler/space/design_space.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::driver {
namespace {

double Cycles(const schedule::Schedule& schedule,
              const target::Target& target) {
  return cost_model::EstimateCycles(
      cost_model::ExtractFeatures(*schedule.module().functions[0], target),
      target);
}

TEST(DraftSchedule, ComputesTheSameAndIsNeverEstimatedSlower) {
  for (const ir::PrimFuncPtr& program :
       {space::MatmulRelu(48, 64, 32), space::Matmul(7, 13, 11),
        space::PaddedConv(), space::SmallSoftmax(), space::TransposedConv(),
        space::Norm(6, 64), space::Transposed(24, 40)}) {
    for (int cores : {1, 4}) {
      const target::Target target = space::TestTarget(cores);
      const auto draft = DraftSchedule(program, target);
      ASSERT_TRUE(draft.ok()) << draft.status();
      space::ExpectSameOutputs(*program, *draft->module().functions[0]);
      const auto heuristic =
          space::DefaultSchedule(ir::IRModule{{program}}, target);
      ASSERT_TRUE(heuristic.ok());
      EXPECT_LE(Cycles(*draft, target), Cycles(*heuristic, target));
    }
  }
}

TEST(DraftSchedule, IsTheSameEveryTime) {
  const target::Target target = space::TestTarget();
  const auto program = space::MatmulRelu(64, 64, 64);
  EXPECT_EQ(DraftSchedule(program, target)->trace().Print(),
            DraftSchedule(program, target)->trace().Print());
}

// Its trace is complete: replaying it gives the same program.
TEST(DraftSchedule, ReplaysFromItsTrace) {
  const target::Target target = space::TestTarget();
  const auto program = space::MatmulRelu(64, 64, 64);
  const auto draft = DraftSchedule(program, target);
  ASSERT_TRUE(draft.ok()) << draft.status();
  const auto again = schedule::Replay(draft->trace(), ir::IRModule{{program}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(again->module()), ir::Print(draft->module()));
}

}  // namespace
}  // namespace tilefarm::driver
