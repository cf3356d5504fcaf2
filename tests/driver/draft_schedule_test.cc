#include "compiler/driver/draft_schedule.h"

#include "compiler/space/design_space.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/space/space_test_programs.h"
#include "tests/space/special_values.h"

namespace tilefarm::driver {
namespace {

using enum ir::FloatRule;

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
    for (const auto& [cores, floats] :
         {std::pair{1, kAsWritten}, {4, kAsWritten}, {4, kMayDiffer}}) {
      const target::Target target = space::TestTarget(cores);
      const auto draft = DraftSchedule(program, target, floats);
      ASSERT_TRUE(draft.ok()) << draft.status();
      space::ExpectSameOutputs(*program, *draft->module().functions[0]);
      const auto heuristic =
          space::DefaultSchedule(ir::IRModule{{program}}, target, floats);
      ASSERT_TRUE(heuristic.ok());
      EXPECT_LE(Cycles(*draft, target), Cycles(*heuristic, target));
    }
  }
}

TEST(DraftSchedule, IsTheSameEveryTime) {
  const target::Target target = space::TestTarget();
  const auto program = space::MatmulRelu(64, 64, 64);
  EXPECT_EQ(DraftSchedule(program, target, kAsWritten)->trace().Print(),
            DraftSchedule(program, target, kAsWritten)->trace().Print());
}

// Its trace is complete: replaying it gives the same program.
TEST(DraftSchedule, ReplaysFromItsTrace) {
  const target::Target target = space::TestTarget();
  const auto program = space::MatmulRelu(64, 64, 64);
  const auto draft = DraftSchedule(program, target, kAsWritten);
  ASSERT_TRUE(draft.ok()) << draft.status();
  const auto again = schedule::Replay(draft->trace(), ir::IRModule{{program}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(again->module()), ir::Print(draft->module()));
}

TEST(DraftSchedule, KeepsNanAndInfinityUnlessRoundingIsAllowed) {
  // By Winograd's algorithm, by padding, by a remainder.
  const ir::PrimFuncPtr conv = space::WithConstants(space::PaddedConv(), {1});
  int differences = 0;
  for (const ir::PrimFuncPtr& program :
       {conv, space::PaddedConv(), space::TransposedConv()}) {
    const target::Target target = space::TestTarget();
    const auto kept = DraftSchedule(program, target, kAsWritten);
    const auto changed = DraftSchedule(program, target, kMayDiffer);
    ASSERT_TRUE(kept.ok() && changed.ok());
    EXPECT_EQ(space::SpecialDifferences(*program, *kept->module().functions[0]),
              0)
        << kept->trace().Print();
    differences +=
        space::SpecialDifferences(*program, *changed->module().functions[0]);
  }
  EXPECT_GT(differences, 0) << "the programs tell nothing";
}

}  // namespace
}  // namespace tilefarm::driver
