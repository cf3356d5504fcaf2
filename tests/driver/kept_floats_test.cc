#include "compiler/driver/kept_floats.h"

#include "base/rng.h"
#include "compiler/space/design_space.h"
#include "gmock/gmock.h"
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

TEST(Obeys, NoWinogradForbidsThatAlone) {
  const std::string program = ir::Print(*space::PaddedConv());
  const std::string winograd =
      "b0 = sch.get_block(\"C\")\n"
      "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=2)\n";
  EXPECT_FALSE(Obeys(ir::FloatRule::kNoWinograd, program, winograd));
  EXPECT_TRUE(Obeys(ir::FloatRule::kMayDiffer, program, winograd));
  const std::string others =
      "b0 = sch.get_block(\"winograd\")\nsch.skip_zeros(b0)\n";
  EXPECT_TRUE(Obeys(ir::FloatRule::kNoWinograd, program, others));
  EXPECT_FALSE(Obeys(ir::FloatRule::kNoWinograd, program, "no winograd trace"));
  EXPECT_EQ(ObeysRule(ir::FloatRule::kMayDiffer), nullptr);
  EXPECT_FALSE(ObeysRule(ir::FloatRule::kNoWinograd)(program, winograd));
}

TEST(AlgorithmsOf, SaysWhatIsNotLoops) {
  EXPECT_THAT(AlgorithmsOf("b0 = sch.get_block(\"C\")\n"
                           "l1, l2 = sch.get_loops(b0)\n"
                           "sch.parallel(l1)\n"),
              testing::IsEmpty());
  EXPECT_THAT(
      AlgorithmsOf(
          "b0 = sch.get_block(\"C\")\n"
          "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=4)\n"
          "b7, b8 = sch.online_softmax(b0, chunk=16, lanes=4)\n"
          "sch.skip_zeros(b0)\n"
          "l9, = sch.get_loops(b0)\n"
          "b10 = sch.rfactor(l9, factor_axis=0)\n"
          "b11 = sch.rfactor(l9, factor_axis=0)\n"
          "sch.tensorize(l9, tensor_intrin=\"dot_4x16\")\n"
          "sch.annotate(b0, ann_key=\"tilefarm.skip_padding\", ann_val=1)\n"
          "sch.annotate(b0, ann_key=\"tilefarm.prepack\", ann_val=1)\n"
          "sch.annotate(l9, ann_key=\"tilefarm.warp_matrix\", "
          "ann_val=\"mma.3xtf32\")\n"
          "sch.annotate(l9, ann_key=\"tilefarm.warpgroup_stages\", ann_val=4)\n"
          "sch.annotate(l9, ann_key=\"something.else\", ann_val=1)\n"
          "sch.call_library(b0, kernel=\"openblas.sgemm\")\n"),
      testing::ElementsAre(
          "winograd F(4,3)", "online softmax", "products with zeros left out",
          "partial sums", "tensorized with dot_4x16", "padding left out",
          "constants packed ahead of time", "tensor cores by mma.3xtf32",
          "tensor cores by wgmma", "computed by openblas.sgemm"));
  EXPECT_THAT(AlgorithmsOf("no trace"), testing::IsEmpty());
}

TEST(DescribeAlgorithms, IsEmptyWhereThereIsNothingToSay) {
  EXPECT_EQ(DescribeAlgorithms({}, true), "");
  EXPECT_EQ(DescribeAlgorithms({"a", "b"}, true), "a, b");
  EXPECT_EQ(DescribeAlgorithms({"a"}, false),
            "a; rounds differently than the program, or leaves out terms");
}

}  // namespace
}  // namespace tilefarm::driver
