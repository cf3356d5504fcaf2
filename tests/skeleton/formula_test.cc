#include "cost_model/skeleton/formula.h"

#include <gtest/gtest.h>

namespace tilefarm::skeleton {
namespace {

ir::Attr List(std::vector<int64_t> values) {
  ir::AttrList list;
  for (const int64_t value : values) list.emplace_back(value);
  return ir::Attr(std::move(list));
}

TEST(FormulaTest, FollowsTheDecisions) {
  Formula f;
  const Value inner = f.Factor(0, 1);
  const Value width = f.Add(f.Mul(inner, f.Const(4)), f.Const(2));
  const Value parts = f.CeilDiv(width, f.Const(3));
  const Value choice = f.Choice(1, {16, 64});
  DecisionValues decisions;
  std::vector<int64_t> numbers;
  for (const int64_t factor : {1, 8}) {
    ASSERT_TRUE(
        decisions.Assign(std::vector{List({2, factor}), ir::Attr(int64_t{1})}));
    ASSERT_TRUE(f.Evaluate(decisions, numbers));
    EXPECT_EQ(numbers[inner], factor);
    EXPECT_EQ(numbers[width], factor * 4 + 2);
    EXPECT_EQ(numbers[parts], (factor * 4 + 4) / 3);
    EXPECT_EQ(numbers[choice], 64);
  }
}

TEST(FormulaTest, EqualExpressionsAreOneAndConstantsFold) {
  Formula f;
  const Value a = f.Factor(0, 0);
  EXPECT_EQ(f.Mul(a, f.Const(3)), f.Mul(a, f.Const(3)));
  EXPECT_EQ(f.Mul(a, f.Const(1)), a);
  EXPECT_EQ(f.Add(f.Const(0), a), a);
  EXPECT_EQ(f.AsConst(f.Add(f.Const(2), f.Const(3))), 5);
  EXPECT_EQ(f.AsConst(a), std::nullopt);
}

TEST(FormulaTest, RefusesDecisionsThatDoNotFit) {
  Formula f;
  f.Factor(0, 2);
  f.Choice(1, {16, 64});
  DecisionValues decisions;
  std::vector<int64_t> numbers;
  const auto fits = [&](ir::Attr tile, int64_t choice) {
    return decisions.Assign(std::vector{std::move(tile), ir::Attr(choice)}) &&
           f.Evaluate(decisions, numbers);
  };
  EXPECT_TRUE(fits(List({1, 2, 3}), 0));
  EXPECT_FALSE(fits(List({1, 2}), 0));
  EXPECT_FALSE(fits(List({1, 2, 3}), 2));
  EXPECT_FALSE(fits(List({1, 2, 3}), -1));
  EXPECT_FALSE(decisions.Assign(std::vector{ir::Attr("text")}));
}

TEST(FormulaTest, RefusesNumbersThatOverflow) {
  Formula f;
  const Value a = f.Factor(0, 0);
  f.Mul(a, a);
  DecisionValues decisions;
  std::vector<int64_t> numbers;
  ASSERT_TRUE(decisions.Assign(std::vector{List({int64_t{1} << 40})}));
  EXPECT_FALSE(f.Evaluate(decisions, numbers));
}

}  // namespace
}  // namespace tilefarm::skeleton
