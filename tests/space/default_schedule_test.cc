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

TEST(LibrarySchedulesTest, OneForEachKernelOfWhatTheDeviceHas) {
  const ir::PrimFuncPtr program = MatmulRelu(24, 32, 16);
  const auto schedules =
      LibrarySchedules(program, TestTarget(4), {"onednn", "openblas", "other"});
  ASSERT_EQ(schedules.size(), 2u);
  for (const schedule::Schedule& schedule : schedules) {
    ExpectSameOutputs(*program, *schedule.module().Find("main"));
    const std::string text = ir::Print(*schedule.module().Find("main"));
    EXPECT_THAT(text, HasSubstr("tilefarm.library"));
    // The epilogue is ours.
    EXPECT_THAT(text, HasSubstr("T.vectorized("));
    EXPECT_THAT(text, HasSubstr("T.parallel("));
    // What the trace says is all there is to it.
    const auto replayed =
        schedule::Replay(*schedule::Trace::Parse(schedule.trace().Print()),
                         ir::IRModule{{program}});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(ir::Print(*replayed->module().Find("main")), text);
  }
}

TEST(LibrarySchedulesTest, NoneWithoutALibraryOrAProduct) {
  const auto none = [](const ir::PrimFuncPtr& program,
                       const std::vector<std::string>& libraries) {
    return LibrarySchedules(program, TestTarget(), libraries).empty();
  };
  EXPECT_TRUE(none(MatmulRelu(24, 32, 16), {}));
  EXPECT_TRUE(none(MatmulRelu(24, 32, 16), {"mkl"}));
  EXPECT_TRUE(none(SmallSoftmax(), {"openblas"}));
  EXPECT_TRUE(none(PaddedConv(), {"openblas"}));
}

TEST(DefaultScheduleTest, IsTheSameEveryTime) {
  const ir::IRModule module{{PaddedConv()}};
  EXPECT_EQ(DefaultSchedule(module, TestTarget())->trace().Print(),
            DefaultSchedule(module, TestTarget())->trace().Print());
}

}  // namespace
}  // namespace tilefarm::space
