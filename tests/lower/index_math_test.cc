#include "compiler/lower/index_math.h"

#include <gtest/gtest.h>

#include "compiler/lower/iteration_analysis.h"

namespace tilefarm::lower {
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
  EXPECT_TRUE(SameExpr(math.Simplify(quotient), quotient));
}

TEST_F(IndexMathTest, IterationsAreToldApart) {
  const auto dims = [&](std::vector<Expr> indices) {
    AccessDims out;
    for (const Expr& index : indices) out.push_back(math.Decompose(index));
    return out;
  };
  // Tiles do not overlap; halos do.
  EXPECT_TRUE(Determines(math, {dims({Expr(i) * 8 + j})}, i.get(), 16));
  EXPECT_FALSE(Determines(math, {dims({Expr(i) * 7 + j})}, i.get(), 16));
  // Both digits of a fused loop are needed.
  EXPECT_TRUE(Determines(math, {dims({Div(i, 4), Mod(i, 4)})}, i.get(), 16));
  EXPECT_FALSE(Determines(math, {dims({Div(i, 4), j})}, i.get(), 16));
  // Another access may not reach into the neighbour.
  EXPECT_FALSE(
      Determines(math, {dims({Expr(i) * 8 + j}), dims({Expr(i) * 8 + j + 1})},
                 i.get(), 16));
}

}  // namespace
}  // namespace tilefarm::lower
