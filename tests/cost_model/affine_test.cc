#include "cost_model/affine.h"

#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

using ir::Expr;

// Two loops: i of 8 outside of j of 16.
class AffineTest : public ::testing::Test {
 protected:
  AffineTest() {
    forms_[i_.get()] = {{{0, 1, 7, 1}}, 0, false};
    forms_[j_.get()] = {{{1, 1, 15, 1}}, 0, false};
  }
  LoopTerm TermOf(const IndexForm& form, int loop) {
    for (const LoopTerm& term : form.terms) {
      if (term.loop == loop) return term;
    }
    return {loop, 0, 0, 1};
  }

  ir::Var i_ = ir::MakeVar("i"), j_ = ir::MakeVar("j");
  FormMap forms_;
};

TEST_F(AffineTest, SumsAndProducts) {
  const IndexForm form = FormOf(Expr(i_) * 16 + Expr(j_) + 3, forms_);
  EXPECT_EQ(TermOf(form, 0).stride, 16);
  EXPECT_EQ(TermOf(form, 0).span, 112);
  EXPECT_EQ(TermOf(form, 1).stride, 1);
  EXPECT_EQ(TermOf(form, 1).span, 15);
  EXPECT_EQ(form.constant, 3);
  EXPECT_FALSE(form.irregular);
}

TEST_F(AffineTest, DifferencesMoveBackwards) {
  const IndexForm form = FormOf(Expr(i_) - Expr(j_), forms_);
  EXPECT_EQ(TermOf(form, 1).stride, -1);
  EXPECT_EQ(TermOf(form, 1).span, 15);
}

TEST_F(AffineTest, AFusedLoopTakenApartAgain) {
  // f = i * 16 + j, seen as f // 16 and f % 16.
  const Expr fused = Expr(i_) * 16 + Expr(j_);
  const IndexForm quotient =
      FormOf(ir::FloorDiv(fused, ir::IntConst(16)), forms_);
  EXPECT_EQ(TermOf(quotient, 0).stride, 1);
  EXPECT_EQ(TermOf(quotient, 0).span, 7);
  EXPECT_LT(TermOf(quotient, 1).span, 1);
  const IndexForm rest = FormOf(ir::FloorMod(fused, ir::IntConst(16)), forms_);
  EXPECT_EQ(TermOf(rest, 0).span, 0);
  EXPECT_EQ(TermOf(rest, 1).stride, 1);
  EXPECT_EQ(TermOf(rest, 1).span, 15);
}

TEST_F(AffineTest, APanelIsLeftByItsOuterLoopAlone) {
  // Panels of 16: (i * 16 + j) // 16 ignores j; panels that start at 8 do not.
  const Expr inside = Expr(i_) * 16 + Expr(j_);
  const IndexForm panel =
      FormOf(ir::FloorDiv(inside, ir::IntConst(16)), forms_);
  EXPECT_EQ(TermOf(panel, 0).stride, 1);
  EXPECT_EQ(TermOf(panel, 1).stride, 0);
  EXPECT_EQ(TermOf(panel, 1).span, 0);
  const IndexForm across =
      FormOf(ir::FloorDiv(inside + 8, ir::IntConst(16)), forms_);
  EXPECT_GT(TermOf(across, 1).span, 0);
}

TEST_F(AffineTest, APartOfAFusedLoopStaysAtTheStartOfAPanel) {
  // f of 56 loops over 4 panels of 14 rows each; j within a panel.
  const ir::Var f = ir::MakeVar("f");
  forms_[f.get()] = {{{0, 1, 55, 1}}, 0, false};
  const Expr index = ir::FloorDiv(Expr(f), ir::IntConst(14)) * 16 + Expr(j_);
  const IndexForm panel = FormOf(ir::FloorDiv(index, ir::IntConst(16)), forms_);
  EXPECT_EQ(TermOf(panel, 1).stride, 0);
  EXPECT_EQ(TermOf(panel, 1).span, 0);
  EXPECT_DOUBLE_EQ(TermOf(panel, 0).stride, 1.0 / 14);
  const IndexForm within =
      FormOf(ir::FloorMod(index, ir::IntConst(16)), forms_);
  EXPECT_EQ(TermOf(within, 0).span, 0);
  EXPECT_EQ(TermOf(within, 1).stride, 1);
  // Steps of 8 leave the panel.
  const Expr halves = ir::FloorDiv(Expr(f), ir::IntConst(14)) * 8 + Expr(j_);
  EXPECT_GT(
      TermOf(FormOf(ir::FloorDiv(halves, ir::IntConst(16)), forms_), 1).span,
      0);
}

TEST_F(AffineTest, StepsOfSumsDivideBoth) {
  const auto sum = [](double a, double b) {
    IndexForm form;
    form.Add({0, 1, 7, a});
    form.Add({0, 1, 7, b});
    return form.terms[0].step;
  };
  EXPECT_EQ(sum(28, 2), 2);
  EXPECT_EQ(sum(12, 18), 6);
  EXPECT_EQ(sum(0.5, 2), 1);
  const auto quotient = [](double step, double divisor) {
    IndexForm form;
    form.Add({0, step, 1000, step});
    form.FloorDivide(divisor);
    return form.terms[0].step;
  };
  EXPECT_EQ(quotient(48, 16), 3);
  EXPECT_EQ(quotient(8, 16), 1);
  const IndexForm form = FormOf(Expr(i_) * 28 + Expr(i_) * 2, forms_);
  EXPECT_EQ(TermOf(form, 0).step, 2);
}

TEST_F(AffineTest, ClampsMoveLikeWhatTheyClamp) {
  const IndexForm form = FormOf(
      ir::Min(ir::Max(Expr(i_) - 1, ir::IntConst(0)), ir::IntConst(5)), forms_);
  EXPECT_EQ(TermOf(form, 0).stride, 1);
}

TEST_F(AffineTest, DataDependentIndicesAreIrregular) {
  const ir::Buffer table = ir::MakeBuffer("T", ir::DataType::Index(), {8});
  EXPECT_TRUE(FormOf(ir::Load(table, {i_}), forms_).irregular);
  EXPECT_TRUE(FormOf(Expr(i_) * Expr(j_), forms_).irregular);
}

TEST_F(AffineTest, UnknownVariablesAreConstants) {
  const IndexForm form = FormOf(ir::MakeVar("outer"), forms_);
  EXPECT_TRUE(form.terms.empty());
  EXPECT_FALSE(form.irregular);
}

}  // namespace
}  // namespace tilefarm::cost_model
