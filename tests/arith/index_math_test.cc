#include "compiler/arith/index_math.h"

#include <gtest/gtest.h>

namespace tilefarm::arith {
namespace {

using ir::Expr;
using ir::IntConst;

class IndexMathTest : public ::testing::Test {
 protected:
  IndexMathTest() {
    math.Bind(i.get(), 0, 15);
    math.Bind(j.get(), 0, 7);
  }
  static Expr Div(Expr a, int64_t b) {
    return ir::FloorDiv(std::move(a), IntConst(b));
  }
  static Expr Mod(Expr a, int64_t b) {
    return ir::FloorMod(std::move(a), IntConst(b));
  }
  bool Same(const Expr& a, const Expr& b) { return math.Difference(a, b) == 0; }

  ir::Var i = ir::MakeVar("i"), j = ir::MakeVar("j"), n = ir::MakeVar("n");
  IndexMath math;
};

TEST_F(IndexMathTest, DividesWhatIsAMultiple) {
  EXPECT_EQ(math.Simplify(Div(Expr(i) * 8 + j, 8)).get(), i.get());
  EXPECT_EQ(math.Simplify(Mod(Expr(i) * 8 + j, 8)).get(), j.get());
  EXPECT_TRUE(Same(Div(Expr(i) * 8 + j + 16, 8), Expr(i) + 2));
}

TEST_F(IndexMathTest, PutsQuotientAndRemainderTogether) {
  const Expr x = Expr(i) * 5 + n;
  EXPECT_TRUE(Same(Div(x, 40) * 40 + Mod(x, 40), x));
  EXPECT_TRUE(Same(Div(x, 40) * 120 + Mod(x, 40) * 3, x * 3));
}

TEST_F(IndexMathTest, FloorsBelowZero) {
  ir::Var m = ir::MakeVar("m");
  math.Bind(m.get(), -4, -1);
  EXPECT_TRUE(Same(Div(m, 4), IntConst(-1)));
  EXPECT_TRUE(Same(Mod(m, 4), Expr(m) + 4));
}

TEST_F(IndexMathTest, NestedDivisionsBecomeOne) {
  EXPECT_TRUE(Same(Div(Div(n, 4), 8), Div(n, 32)));
  EXPECT_TRUE(Same(Mod(Mod(n, 32), 8), Mod(n, 8)));
}

TEST_F(IndexMathTest, BoundsFollowFacts) {
  EXPECT_EQ(math.Bounds(Expr(i) * 8 + j).hi, 127);
  const size_t mark = math.Mark();
  math.Assume(ir::LT(Expr(i) * 8 + j, IntConst(100)));
  EXPECT_EQ(math.Bounds(Expr(i) * 8 + j).hi, 99);
  EXPECT_EQ(math.Bounds(Expr(i) * 16 + Expr(j) * 2).hi, 198);
  math.Restore(mark);
  EXPECT_EQ(math.Bounds(Expr(i) * 8 + j).hi, 127);
}

TEST_F(IndexMathTest, DecidesConditions) {
  EXPECT_TRUE(math.CanProve(ir::LT(i, IntConst(16))));
  EXPECT_FALSE(math.CanProve(ir::LT(i, IntConst(15))));
  EXPECT_TRUE(ir::IsConstInt(math.Simplify(ir::GE(i, IntConst(16))), 0));
  math.AssumeNot(ir::LE(i, IntConst(14)));
  EXPECT_TRUE(ir::IsConstInt(math.Simplify(i), 15));
}

TEST_F(IndexMathTest, LeavesUnknownDivisorsAlone) {
  const Expr quotient = ir::FloorDiv(Expr(i) * 4, n);
  EXPECT_TRUE(ExprEqual(math.Simplify(quotient), quotient));
}

TEST_F(IndexMathTest, FactsLeaveAQuotientOneValue) {
  math.Assume(ir::GT(Mod(i, 6) * 48, IntConst(202)));
  EXPECT_TRUE(Same(Mod(i, 6) * 48 + j, Expr(j) + 240));
  const Expr out = math.Simplify(ir::LT(Mod(i, 6) * 48 + j, IntConst(244)));
  EXPECT_TRUE(ExprEqual(out, ir::LT(j, IntConst(4))));
}

TEST_F(IndexMathTest, KnowsWhatAConjunctionAndAConditionSay) {
  // The right side is simplified under the left one.
  const Expr both = ir::And(ir::LT(n, IntConst(4)), ir::LT(n, IntConst(9)));
  EXPECT_TRUE(ExprEqual(math.Simplify(both), ir::LT(n, IntConst(4))));
  const Expr either = ir::Or(ir::LT(n, IntConst(4)), ir::GE(n, IntConst(3)));
  EXPECT_TRUE(ir::IsConstInt(math.Simplify(either), 1));
  // Each operand is simplified under the condition.
  const Expr picked = ir::IfThenElseExpr(
      ir::LT(n, IntConst(4)), ir::Min(n, IntConst(4)), ir::Max(n, IntConst(4)));
  EXPECT_TRUE(ExprEqual(math.Simplify(picked),
                        ir::IfThenElseExpr(ir::LT(n, IntConst(4)), n, n)));
  // Facts do not remain afterwards.
  EXPECT_FALSE(math.CanProve(ir::LT(n, IntConst(9))));
  EXPECT_EQ(math.Mark(), 2u);
}

TEST_F(IndexMathTest, ConditionsOfOtherTypesAreRemembered) {
  const ir::Buffer flags =
      ir::MakeBuffer("flags", ir::DataType::Float(32), {8});
  const Expr positive = ir::GT(ir::Load(flags, {Expr(j)}),
                               ir::FloatConst(0, ir::DataType::Float(32)));
  const size_t mark = math.Mark();
  math.Assume(ir::MakeNot(positive));
  EXPECT_TRUE(ir::IsConstInt(math.Simplify(positive), 0));
  math.Restore(mark);
  EXPECT_TRUE(ExprEqual(math.Simplify(positive), positive));
}

TEST_F(IndexMathTest, InequalityNarrowsAnEnd) {
  math.Assume(ir::NE(i, IntConst(0)));
  EXPECT_EQ(math.Bounds(i).lo, 1);
  math.Assume(ir::NE(i, IntConst(7)));
  EXPECT_EQ(math.Bounds(i).lo, 1);
  EXPECT_EQ(math.Bounds(i).hi, 15);
}

TEST_F(IndexMathTest, FactsAreKnownOfTheirMultiplesAndParts) {
  // 6 * i + 6 * n <= 41 is i + n <= 6.
  math.Assume(ir::LE(Expr(i) * 6 + Expr(n) * 6, IntConst(41)));
  EXPECT_EQ(math.Bounds(Expr(i) + n).hi, 6);
  EXPECT_EQ(math.Bounds(Expr(i) * 2 + Expr(n) * 2 + j).hi, 19);
  EXPECT_FALSE(math.Bounds(Expr(i) + Expr(n) * 2).has_hi());
  EXPECT_EQ(math.Bounds(Div(Expr(i) + n, 4)).hi, 1);
}

TEST_F(IndexMathTest, DecompositionGoesBack) {
  const Expr x = Div(Mod(n, 32), 4) * 5 + Expr(i) * 8 - j + 3;
  const Linear linear = math.Decompose(x);
  EXPECT_EQ(linear.constant, 3);
  EXPECT_EQ(linear.CoefficientOf(i.get()), 8);
  EXPECT_EQ(linear.CoefficientOf(j.get()), -1);
  EXPECT_TRUE(Same(linear.ToExpr(), x));
  EXPECT_EQ(math.Bounds(linear).lo, math.Bounds(x).lo);
  EXPECT_EQ(math.Bounds(linear).hi, 35 + 120 + 3);
}

TEST_F(IndexMathTest, TruncatingDivisionOfNegativesIsBounded) {
  ir::Var m = ir::MakeVar("m");
  math.Bind(m.get(), -9, 5);
  const Expr quotient = ir::MakeBinary(ir::BinaryOp::kDiv, m, IntConst(4));
  EXPECT_EQ(math.Bounds(quotient).lo, -2);
  EXPECT_EQ(math.Bounds(quotient).hi, 1);
  const Expr rest = ir::MakeBinary(ir::BinaryOp::kMod, m, IntConst(4));
  EXPECT_EQ(math.Bounds(rest).lo, -3);
  EXPECT_EQ(math.Bounds(rest).hi, 3);
}

TEST_F(IndexMathTest, OverflowIsNotKnown) {
  const Expr huge = Expr(n) * (int64_t{1} << 62) * 4;
  EXPECT_FALSE(math.Bounds(huge + i).bounded());
  EXPECT_TRUE(ExprEqual(math.Simplify(huge), huge));
  EXPECT_EQ(math.Difference(huge, IntConst(0)), std::nullopt);
}

}  // namespace
}  // namespace tilefarm::arith
