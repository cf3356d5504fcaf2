#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/space/design_space.h"
#include "tests/space/space_test_programs.h"
#include "tests/space/special_values.h"

namespace tilefarm::space {
namespace {

using ::testing::HasSubstr;

TEST(DefaultScheduleTest, KeepsTheProgramAndIsNeverScalar) {
  for (const ir::PrimFuncPtr& program :
       {MatmulRelu(24, 32, 16), Matmul(64, 64, 64), Matmul(7, 13, 11),
        PaddedConv(), SmallSoftmax()}) {
    for (int cores : {1, 4}) {
      auto schedule =
          DefaultSchedule(ir::IRModule{{program}}, TestTarget(cores),
                          ir::FloatRule::kAsWritten);
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
  auto schedule = DefaultSchedule(ir::IRModule{{Matmul(64, 64, 64)}},
                                  TestTarget(), ir::FloatRule::kAsWritten);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(ir::Print(*schedule->module().Find("main")),
              HasSubstr("T.unroll("));
}

TEST(LibrarySchedulesTest, OneForEachKernelOfWhatTheDeviceHas) {
  const ir::PrimFuncPtr program = MatmulRelu(24, 32, 16);
  const auto schedules =
      LibrarySchedules(program, TestTarget(4), {"onednn", "openblas", "other"},
                       ir::FloatRule::kAsWritten);
  ASSERT_EQ(schedules.size(), 2u);
  for (const schedule::Schedule& schedule : schedules) {
    ExpectSameOutputs(*program, *schedule.module().Find("main"));
    const std::string text = ir::Print(*schedule.module().Find("main"));
    EXPECT_THAT(text, HasSubstr("tilefarm.library"));
    // The epilogue is scheduled here.
    EXPECT_THAT(text, HasSubstr("T.vectorized("));
    EXPECT_THAT(text, HasSubstr("T.parallel("));
    // The trace is complete.
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
    return LibrarySchedules(program, TestTarget(), libraries,
                            ir::FloatRule::kMayDiffer)
        .empty();
  };
  EXPECT_TRUE(none(MatmulRelu(24, 32, 16), {}));
  EXPECT_TRUE(none(MatmulRelu(24, 32, 16), {"mkl"}));
  EXPECT_TRUE(none(SmallSoftmax(), {"openblas"}));
  EXPECT_TRUE(none(PaddedConv(), {"openblas"}));
}

TEST(DefaultScheduleTest, IsTheSameEveryTime) {
  const ir::IRModule module{{PaddedConv()}};
  for (const ir::FloatRule floats :
       {ir::FloatRule::kAsWritten, ir::FloatRule::kMayDiffer}) {
    EXPECT_EQ(DefaultSchedule(module, TestTarget(), floats)->trace().Print(),
              DefaultSchedule(module, TestTarget(), floats)->trace().Print());
  }
}

ir::PrimFuncPtr Scheduled(const ir::PrimFuncPtr& program,
                          ir::FloatRule floats) {
  auto schedule =
      DefaultSchedule(ir::IRModule{{program}}, TestTarget(), floats);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule->module().Find("main");
}

// The program must tell the two rules apart, or the test would show nothing.
TEST(DefaultScheduleTest, KeepsNanAndInfinityUnlessRoundingIsAllowed) {
  for (const ir::PrimFuncPtr& program :
       {PaddedConv(), TransposedConv(), WithConstants(PaddedConv(), {1})}) {
    EXPECT_EQ(SpecialDifferences(
                  *program, *Scheduled(program, ir::FloatRule::kAsWritten)),
              0)
        << ir::Print(*program);
    EXPECT_GT(SpecialDifferences(
                  *program, *Scheduled(program, ir::FloatRule::kMayDiffer)),
              0)
        << ir::Print(*program);
  }
}

TEST(DefaultScheduleTest, CopiesThePaddingOfFloatsAndSkipsThatOfIntegers) {
  const auto text = [](const ir::PrimFuncPtr& program, ir::FloatRule floats) {
    return ir::Print(*Scheduled(program, floats));
  };
  const std::string skip = "\"tilefarm.skip_padding\": 1";
  const std::string copy = text(PaddedConv(), ir::FloatRule::kAsWritten);
  EXPECT_THAT(copy, HasSubstr("T.block(\"pad_temp\")"));
  EXPECT_THAT(copy, ::testing::Not(HasSubstr(skip)));
  EXPECT_THAT(text(PaddedConv(), ir::FloatRule::kMayDiffer), HasSubstr(skip));
  EXPECT_THAT(text(NarrowConvRelu(8, 4, 16), ir::FloatRule::kAsWritten),
              HasSubstr(skip));
}

}  // namespace
}  // namespace tilefarm::space
