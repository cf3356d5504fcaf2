#include "compiler/arith/analyzer.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "compiler/ir/visitor.h"
#include "tests/arith/division.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;
using ir::IntConst;
using ir::MakeVar;
using ir::ToString;
using ir::Var;

class AnalyzerTest : public ::testing::Test {
 protected:
  AnalyzerTest() {
    analyzer_.Bind(i_, 0, 4);
    analyzer_.Bind(j_, 0, 8);
    analyzer_.Bind(k_, 0, 16);
  }
  std::string Simple(const Expr& e) { return ToString(analyzer_.Simplify(e)); }

  const Var i_ = MakeVar("i");
  const Var j_ = MakeVar("j");
  const Var k_ = MakeVar("k");
  const Var x_ = MakeVar("x");  // unbounded
  Analyzer analyzer_;
};

TEST_F(AnalyzerTest, CollectsAndSortsTerms) {
  const Expr i = i_, j = j_, k = k_;
  EXPECT_EQ(Simple(k + i * 16 + j * 4), "i * 16 + j * 4 + k");
  EXPECT_EQ(Simple((i * 2 + j) * 4 + k + 3 - i * 8), "j * 4 + k + 3");
  EXPECT_EQ(Simple(i + j - i - j), "0");
  EXPECT_EQ(Simple(i - j), "i - j");
  EXPECT_EQ(Simple(i - IntConst(1)), "i - 1");
}

TEST_F(AnalyzerTest, DividesByConstants) {
  const Expr i = i_, j = j_, k = k_, x = x_;
  EXPECT_EQ(Simple(Div(x * 8 + j, 8)), "x");
  EXPECT_EQ(Simple(Div(x * 8 + k, 8)), "k // 8 + x");
  EXPECT_EQ(Simple(Div(x * 8 + i, 4)), "x * 2");
  EXPECT_EQ(Simple(Div(Div(x, 4), 8)), "x // 32");
  EXPECT_EQ(Simple(Div(x * 4 + i, 8)), "x // 2");
  EXPECT_EQ(Simple(Div(j, 8)), "0");
  EXPECT_EQ(Simple(Div(x * 2, 8)), "x // 4");
  EXPECT_EQ(Simple(Div(i - IntConst(4), 4)), "-1");
}

TEST_F(AnalyzerTest, TakesRemaindersByConstants) {
  const Expr i = i_, j = j_, k = k_, x = x_;
  EXPECT_EQ(Simple(Mod(x * 8 + j, 8)), "j");
  EXPECT_EQ(Simple(Mod(x * 8 + k, 8)), "k % 8");
  EXPECT_EQ(Simple(Mod(x * 4 + i, 8)), "x % 2 * 4 + i");
  EXPECT_EQ(Simple(Mod(Mod(x, 16), 4)), "x % 4");
  EXPECT_EQ(Simple(Mod(Div(x, 4), 8)), "x % 32 // 4");
  EXPECT_EQ(Simple(Mod(x * 9, 8)), "x % 8");
}

TEST_F(AnalyzerTest, MergesSplitsOfOneIndex) {
  const Expr i = i_, x = x_;
  EXPECT_EQ(Simple(Div(x, 4) * 4 + Mod(x, 4)), "x");
  EXPECT_EQ(Simple(Div(x, 16) * 16 + Mod(Div(x, 4), 4) * 4 + Mod(x, 4)), "x");
  EXPECT_EQ(Simple(x - Div(x, 4) * 4), "x % 4");
  EXPECT_EQ(Simple(Div(x * 3 + i, 5) * 5 + Mod(x * 3 + i, 5)), "x * 3 + i");
  // Remainders whose factors were reduced by their divisors.
  const Expr sum = x * 8 + i;
  EXPECT_EQ(Simple(Mod(sum, 3)), "(x * 2 + i) % 3");
  EXPECT_EQ(Simple(Div(sum, 3) * 3 + Mod(sum, 3)), "x * 8 + i");
  EXPECT_EQ(Simple(Div(sum, 9) * 9 + Div(Mod(sum, 9), 3) * 3 + Mod(sum, 3)),
            "x * 8 + i");
  EXPECT_EQ(Simple(Div(sum, 3) * 3 + Mod(x + i, 3)),
            "(x * 8 + i) // 3 * 3 + (x + i) % 3");
  EXPECT_EQ(Simple(Div(sum, 3) * 3 + Mod(x * 2 + i + IntConst(1), 3)),
            "(x * 8 + i) // 3 * 3 + (x * 2 + i + 1) % 3");
  // x % 21 * 256 is x * 64 modulo 96, because 21 * 256 is a multiple of it.
  const Expr low = Mod(x * 64 + i, 96);
  EXPECT_EQ(Simple(Div(Mod(x, 21) * 256 + i, 96) * 96 + low),
            "x % 21 * 256 + i");
  EXPECT_EQ(Simple(Div(Mod(x, 20) * 256 + i, 96) * 96 + low),
            "x % 20 * 8 // 3 * 96 + x * 2 % 3 * 32 + i");
}

TEST_F(AnalyzerTest, DecidesComparisonsByBounds) {
  const Expr i = i_, j = j_, x = x_;
  EXPECT_TRUE(analyzer_.CanProve(LT(i * 8 + j, IntConst(32))));
  EXPECT_FALSE(analyzer_.CanProve(LT(i * 8 + j, IntConst(31))));
  EXPECT_TRUE(analyzer_.CanProve(GE(i, IntConst(0))));
  EXPECT_TRUE(analyzer_.CanProve(LE(x, x + i)));
  EXPECT_FALSE(analyzer_.CanProve(LT(x, x + i)));
  EXPECT_TRUE(analyzer_.CanProve(NE(i, IntConst(7))));
  EXPECT_FALSE(analyzer_.CanProve(EQ(i, IntConst(1))));
  EXPECT_EQ(Simple(LT(x + i + IntConst(2), x + j)), "i + 2 < j");
  EXPECT_EQ(Simple(LE(IntConst(1), x)), "1 <= x");
  EXPECT_EQ(Simple(LT(x * 4, IntConst(10))), "x < 3");
  EXPECT_EQ(Simple(LT(x * 4 + j * 8, IntConst(4))), "j * 2 + x < 1");
}

TEST_F(AnalyzerTest, KnowsWhatIsAssumed) {
  const Expr i = i_, j = j_;
  const size_t mark = analyzer_.NumAssumptions();
  analyzer_.Assume(LT(i * 8 + j, IntConst(30)));
  EXPECT_TRUE(analyzer_.CanProve(LE(i * 8 + j, IntConst(29))));
  analyzer_.DropAssumptions(mark);
  EXPECT_FALSE(analyzer_.CanProve(LE(i * 8 + j, IntConst(29))));
}

TEST_F(AnalyzerTest, PicksMinimaAndMaxima) {
  const Expr i = i_, j = j_, x = x_;
  EXPECT_EQ(Simple(Min(i, IntConst(4))), "i");
  EXPECT_EQ(Simple(Max(x + j, x - IntConst(1))), "x + j");
  EXPECT_EQ(Simple(Min(x + i, x + j)), "x + T.min(i, j)");
}

TEST_F(AnalyzerTest, ChoosesBranchesOfKnownConditions) {
  const Expr i = i_, j = j_;
  EXPECT_EQ(Simple(ir::IfThenElseExpr(LT(i, IntConst(4)), j, i)), "j");
  EXPECT_EQ(Simple(ir::MakeSelect(LT(i, IntConst(0)), j, i)), "i");
}

TEST_F(AnalyzerTest, LeavesFloatsAlone) {
  const ir::Buffer a = ir::MakeBuffer("A", ir::DataType::Float(32), {32});
  const Expr zero = ir::FloatConst(0, ir::DataType::Float(32));
  const Expr load = ir::Load(a, {Div(Expr(i_) * 8 + Expr(j_), 8)});
  const Expr sum = ir::MakeBinary(ir::BinaryOp::kAdd, load, zero);
  EXPECT_EQ(Simple(sum), "A[i] + T.float32(0.0)");
}

TEST_F(AnalyzerTest, SurvivesOverflow) {
  const Expr big = Expr(x_) * INT64_MAX;
  EXPECT_EQ(Simple(big + big), ToString(big + big));
  EXPECT_FALSE(analyzer_.CanProve(GE(big + big, IntConst(0))));
}

TEST_F(AnalyzerTest, FindsBoundsAndStrides) {
  const Expr i = i_, j = j_;
  EXPECT_EQ(analyzer_.Bounds(i * 8 - j), (ConstBound{-7, 24}));
  EXPECT_EQ(analyzer_.Modular(i * 8 + j * 4 + 6), (ModularSet{4, 2}));
  EXPECT_TRUE(Divisible(analyzer_, i * 8 + j * 4, 4));
  EXPECT_FALSE(Divisible(analyzer_, i * 8 + j * 4, 8));
  EXPECT_EQ(analyzer_.ConstDifference(i + j + 3, j + i), 3);
}

TEST(AnalyzerExtentOneTest, ReplacesTheVariable) {
  Analyzer analyzer;
  const Var i = MakeVar("i");
  analyzer.Bind(i, 0, 1);
  EXPECT_EQ(ToString(analyzer.Simplify(Expr(i) * 4 + 3)), "3");
}

// Simplifying random expressions does not change their values.
class RandomExpr {
 public:
  RandomExpr(Rng& rng, std::vector<Var> vars) : rng_(rng), vars_(vars) {}
  Expr Make(int depth) {
    if (depth == 0 || rng_.Chance(0.2)) {
      if (rng_.Chance(0.3)) return IntConst(rng_.Between(-9, 9));
      return vars_[rng_.Below(vars_.size())];
    }
    const Expr a = Make(depth - 1);
    switch (rng_.Below(9)) {
      case 0:
      case 1:
        return a + Make(depth - 1);
      case 2:
        return a - Make(depth - 1);
      case 3:
        return a * rng_.Between(-6, 6);
      case 4:
        return Div(a, rng_.Between(1, 12));
      case 5:
        return Mod(a, rng_.Between(1, 12));
      case 6:
        return Min(a, Make(depth - 1));
      case 7:
        return Max(a, Make(depth - 1));
      default:
        return ir::MakeSelect(LT(a, Make(depth - 1)), Make(depth - 1),
                              Make(depth - 1));
    }
  }

 private:
  Rng& rng_;
  std::vector<Var> vars_;
};

int64_t Evaluate(const Expr& e, const ir::VarMap& values) {
  // Substitute folds scalar constants; a Select needs a constant condition.
  const Expr folded = Substitute(e, values);
  if (const auto value = ir::AsInt(folded)) return *value;
  if (const auto* select = ir::As<ir::SelectNode>(folded)) {
    return Evaluate(select->condition, {}) != 0
               ? Evaluate(select->true_value, {})
               : Evaluate(select->false_value, {});
  }
  const auto* node = ir::As<ir::BinaryNode>(folded);
  EXPECT_NE(node, nullptr) << ToString(folded);
  const ir::DataType dtype = node->a->dtype;
  const Expr a = IntConst(Evaluate(node->a, {}), dtype);
  const Expr b = IntConst(Evaluate(node->b, {}), dtype);
  return *ir::AsInt(ir::FoldBinary(node->op, a, b));
}

TEST(AnalyzerPropertyTest, SimplifyKeepsValues) {
  constexpr uint64_t kSeed = 20240611;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  const std::vector<Var> vars = {MakeVar("i"), MakeVar("j"), MakeVar("k")};
  RandomExpr random(rng, vars);
  for (int round = 0; round < 3000; ++round) {
    Analyzer analyzer;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const Var& var : vars) {
      ranges.push_back({rng.Between(-4, 4), rng.Between(1, 9)});
      analyzer.Bind(var, ranges.back().first, ranges.back().second);
    }
    const Expr e = random.Make(4);
    const Expr simple = analyzer.Simplify(e);
    const ConstBound bound = analyzer.Bounds(e);
    const ModularSet modular = analyzer.Modular(e);
    const Expr condition = LE(e, random.Make(2));
    const bool proved = analyzer.CanProve(condition);
    for (int sample = 0; sample < 8; ++sample) {
      ir::VarMap values;
      for (size_t v = 0; v < vars.size(); ++v) {
        const auto [min, extent] = ranges[v];
        values[vars[v].get()] = IntConst(min + rng.Below(extent));
      }
      const int64_t value = Evaluate(e, values);
      ASSERT_EQ(value, Evaluate(simple, values))
          << "round " << round << ": " << ToString(e) << " became "
          << ToString(simple);
      ASSERT_LE(bound.min, value) << ToString(e);
      ASSERT_GE(bound.max, value) << ToString(e);
      if (modular.coeff != 0) {
        ASSERT_EQ(((value - modular.base) % modular.coeff), 0) << ToString(e);
      } else {
        ASSERT_EQ(value, modular.base);
      }
      if (proved) {
        ASSERT_EQ(Evaluate(condition, values), 1) << ToString(condition);
      }
    }
  }
}

}  // namespace
}  // namespace tilefarm::arith
