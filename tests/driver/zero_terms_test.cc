#include "compiler/driver/zero_terms.h"

#include "absl/strings/substitute.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "cost_model/features.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/space/space_test_programs.h"
#include "tests/space/special_values.h"

namespace tilefarm::driver {
namespace {

using testing::HasSubstr;

TEST(WithZeroTermsApart, ComputesTheSameWithAQuarterOfTheProducts) {
  const ir::PrimFuncPtr program = space::TransposedConv();
  const ir::PrimFuncPtr apart = WithZeroTermsApart(program);
  ASSERT_NE(apart, program);
  ASSERT_TRUE(ir::Verify(*apart).ok()) << ir::Verify(*apart);
  const std::string text = ir::Print(*apart);
  EXPECT_THAT(text, HasSubstr("T.block(\"C_taps\")"));
  EXPECT_THAT(text, HasSubstr("T.float32(0.0) * W[3 - vr, 3 - vs, vk, vc]"));
  EXPECT_THAT(text, HasSubstr("T.block(\"C_zeros\")"));
  space::ExpectSameOutputs(*program, *apart);
  EXPECT_EQ(space::SpecialDifferences(*program, *apart), 0);
  EXPECT_LT(cost_model::CountFlops(*apart),
            0.5 * cost_model::CountFlops(*program));
}

// Its zeros alone are what skip_zeros loses.
TEST(WithZeroTermsApart, KeepsWhatADefaultScheduleWouldLose) {
  const ir::PrimFuncPtr program = space::TransposedConv();
  const auto target = space::TestTarget();
  const auto draft = DraftSchedule(WithZeroTermsApart(program), target,
                                   ir::FloatRule::kAsWritten);
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_EQ(space::SpecialDifferences(*program, *draft->module().functions[0]),
            0);
  const auto skips = DraftSchedule(program, target, ir::FloatRule::kMayDiffer);
  ASSERT_TRUE(skips.ok()) << skips.status();
  EXPECT_GT(space::SpecialDifferences(*program, *skips->module().functions[0]),
            0);
}

TEST(WithZeroTermsApart, OtherProgramsStay) {
  for (const ir::PrimFuncPtr& program :
       {space::PaddedConv(), space::Matmul(8, 8, 8), space::SmallSoftmax()}) {
    EXPECT_EQ(WithZeroTermsApart(program), program);
  }
}

ir::PrimFuncPtr Parse(const std::string& text) {
  auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// One dimension, of products with `factor`.
ir::PrimFuncPtr Transposed(const std::string& type, const std::string& factor) {
  return Parse(absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer((8,), "$0"), W: T.Buffer((8, 4), "$0"), C: T.Buffer((8,), "$0")):
    for h, r in T.grid(8, 4):
        with T.block("C"):
            vh, vr = T.axis.remap("SR", [h, r])
            with T.init():
                C[vh] = T.cast(0, "$0")
            C[vh] = C[vh] + T.if_then_else((vh + vr) % 2 == 0, A[(vh + vr) // 2], T.cast(0, "$0")) * $1
)",
                                type, factor));
}

TEST(WithZeroTermsApart, WhatASchedulesMaySkipStays) {
  const ir::PrimFuncPtr integers = Transposed("int32", "W[0, vr]");
  EXPECT_EQ(WithZeroTermsApart(integers), integers);
  const ir::PrimFuncPtr floats = Transposed("float32", "W[0, vr]");
  EXPECT_NE(WithZeroTermsApart(floats), floats);
  space::ExpectSameOutputs(*floats, *WithZeroTermsApart(floats));
}

TEST(WithZeroTermsApart, ZerosThatDifferFromElementToElementStay) {
  const ir::PrimFuncPtr program = Transposed("float32", "W[vh, vr]");
  EXPECT_EQ(WithZeroTermsApart(program), program);
}

}  // namespace
}  // namespace tilefarm::driver
