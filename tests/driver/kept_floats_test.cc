#include "compiler/driver/kept_floats.h"

#include "base/rng.h"
#include "compiler/space/design_space.h"
#include "gtest/gtest.h"
#include "tests/space/space_test_programs.h"
#include "tests/space/special_values.h"

namespace tilefarm::driver {
namespace {

// Of candidates of the whole space: those that keep NaN and infinity where the
// program has them, and those that do not.
TEST(KeepsFloats, TellsCandidatesApart) {
  int kept = 0, changed = 0;
  for (const ir::PrimFuncPtr& program :
       {space::PaddedConv(), space::TransposedConv()}) {
    const auto space = space::DesignSpace::Create(program, space::TestTarget());
    ASSERT_TRUE(space.ok()) << space.status();
    const std::string text = ir::Print(*program);
    Rng rng(1);
    for (int i = 0; i < 60; ++i) {
      const auto candidate = (*space)->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto schedule = (*space)->Apply(*candidate);
      if (!schedule.ok()) continue;
      const bool keeps = KeepsFloats(text, schedule->trace().Print());
      const int differences =
          space::SpecialDifferences(*program, *schedule->module().Find("main"));
      EXPECT_EQ(keeps, differences == 0) << schedule->trace().Print();
      ++(keeps ? kept : changed);
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(changed, 0);
}

TEST(KeepsFloats, IntegersAlwaysDo) {
  const ir::PrimFuncPtr program = space::NarrowConvRelu(8, 4, 16);
  const auto schedule = space::DefaultSchedule(
      ir::IRModule{{program}}, space::TestTarget(), ir::FloatRule::kMayDiffer);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string trace = schedule->trace().Print();
  ASSERT_NE(trace.find("skip_padding"), std::string::npos);
  EXPECT_TRUE(KeepsFloats(ir::Print(*program), trace));
}

TEST(KeepsFloats, NotWhatDoesNotReplay) {
  const std::string program = ir::Print(*space::PaddedConv());
  EXPECT_FALSE(KeepsFloats(program, "sch.winograd(b0)\n"));
  EXPECT_FALSE(KeepsFloats("no program",
                           "b0 = sch.get_block(\"C\")\nsch.skip_zeros(b0)\n"));
}

}  // namespace
}  // namespace tilefarm::driver
