#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/design_space.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::space {
namespace {

using testing::HasSubstr;

TEST(DefaultScheduleTest, KeepsTheProgramAndIsNeverScalar) {
  for (const ir::PrimFuncPtr& program :
       {MatmulRelu(24, 32, 16), Matmul(64, 64, 64), Matmul(7, 13, 11),
        PaddedConv(), SmallSoftmax()}) {
    for (int cores : {1, 4}) {
      auto schedule =
          DefaultSchedule(ir::IRModule{{program}}, TestTarget(cores));
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const ir::PrimFuncPtr scheduled = schedule->module().Find("main");
      ExpectSameOutputs(*program, *scheduled);
      EXPECT_THAT(ir::Print(*scheduled), HasSubstr("T.vectorized("));
      if (cores > 1) {
        EXPECT_THAT(ir::Print(*scheduled), HasSubstr("T.parallel("));
      }
    }
  }
}

TEST(DefaultScheduleTest, TilesReductionsInRegisters) {
  auto schedule =
      DefaultSchedule(ir::IRModule{{Matmul(64, 64, 64)}}, TestTarget());
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(ir::Print(*schedule->module().Find("main")),
              HasSubstr("T.unroll("));
}

TEST(DefaultScheduleTest, IsTheSameEveryTime) {
  const ir::IRModule module{{PaddedConv()}};
  EXPECT_EQ(DefaultSchedule(module, TestTarget())->trace().Print(),
            DefaultSchedule(module, TestTarget())->trace().Print());
}

}  // namespace
}  // namespace tilefarm::space
