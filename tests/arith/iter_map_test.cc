#include "compiler/arith/iter_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "tests/arith/division.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;
using ir::IntConst;
using ir::MakeVar;
using ir::ToString;
using ir::Var;
using ::testing::HasSubstr;

class IterMapTest : public ::testing::Test {
 protected:
  VarRanges Loops() const {
    return {{i_, {IntConst(0), IntConst(4)}},
            {j_, {IntConst(0), IntConst(8)}},
            {u_, {IntConst(0), IntConst(1)}}};
  }
  absl::Status Detect(const std::vector<Expr>& bindings,
                      Expr predicate = nullptr,
                      IterMapLevel level = IterMapLevel::kSurjective) {
    return DetectIterMap(bindings, Loops(), predicate, level, analyzer_)
        .status();
  }
  std::string Simple(const Expr& e, bool simplify_trivial = true) {
    return ToString(IterMapSimplify({e}, Loops(), nullptr,
                                    IterMapLevel::kSurjective, analyzer_,
                                    simplify_trivial)[0]);
  }

  const Var i_ = MakeVar("i");
  const Var j_ = MakeVar("j");
  const Var u_ = MakeVar("u");
  Analyzer analyzer_;
};

TEST_F(IterMapTest, AcceptsSplitsAndFusions) {
  const Expr i = i_, j = j_, u = u_;
  EXPECT_TRUE(Detect({i, j}).ok());
  EXPECT_TRUE(Detect({i * 8 + j}).ok());
  EXPECT_TRUE(Detect({i * 8 + j + u}).ok());
  EXPECT_TRUE(Detect({i, Div(j, 2), Mod(j, 2)}).ok());
  EXPECT_TRUE(Detect({Div(i * 8 + j, 16), Mod(i * 8 + j, 16)}).ok());
  EXPECT_TRUE(Detect({j + 3}).ok());
  EXPECT_TRUE(Detect({j}).ok());
  EXPECT_TRUE(Detect({IntConst(0), j}).ok());
}

TEST_F(IterMapTest, RejectsDependentOrGappedBindings) {
  const Expr i = i_, j = j_;
  EXPECT_FALSE(Detect({i, i}).ok());
  EXPECT_FALSE(Detect({i, i + j}).ok());
  EXPECT_FALSE(Detect({i * 16 + j}).ok());
  EXPECT_FALSE(Detect({j * j}).ok());
  EXPECT_FALSE(Detect({Div(j, 3)}).ok());
  EXPECT_FALSE(Detect({IntConst(7) - j}).ok());
  const absl::Status status = Detect({i * 16 + j});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("overlap"));
}

TEST_F(IterMapTest, SurjectiveMayOverlap) {
  const Expr i = i_, j = j_;
  EXPECT_TRUE(Detect({i * 4 + j}).ok());
  EXPECT_FALSE(Detect({i * 4 + j}, nullptr, IterMapLevel::kBijective).ok());
  EXPECT_FALSE(Detect({i * 4 + j, j}).ok());
}

TEST_F(IterMapTest, BijectiveNeedsEveryLoop) {
  const Expr i = i_, j = j_;
  EXPECT_TRUE(Detect({j, i}, nullptr, IterMapLevel::kBijective).ok());
  EXPECT_FALSE(Detect({j}, nullptr, IterMapLevel::kBijective).ok());
  EXPECT_FALSE(Detect({i, Div(j, 2)}, nullptr, IterMapLevel::kBijective).ok());
}

TEST_F(IterMapTest, FollowsPredicatesOfGuardedSplits) {
  const Expr i = i_, j = j_;
  const Expr guard = LT(i * 8 + j, IntConst(30));
  EXPECT_TRUE(Detect({i * 8 + j}, guard).ok());
  EXPECT_FALSE(Detect({i, j}, guard).ok());
  EXPECT_TRUE(Detect({i, j}, LT(i, IntConst(3))).ok());
}

TEST_F(IterMapTest, FollowsNestedPredicates) {
  // 30 split by 8, then the outer loop of 4 split by 3.
  const Var a = MakeVar("a"), b = MakeVar("b"), c = MakeVar("c");
  const VarRanges loops = {{a, {IntConst(0), IntConst(2)}},
                           {b, {IntConst(0), IntConst(3)}},
                           {c, {IntConst(0), IntConst(8)}}};
  const Expr outer = Expr(a) * 3 + Expr(b);
  const Expr predicate =
      And(LT(outer * 8 + Expr(c), IntConst(30)), LT(outer, IntConst(4)));
  EXPECT_TRUE(DetectIterMap({outer * 8 + Expr(c)}, loops, predicate,
                            IterMapLevel::kSurjective, analyzer_)
                  .ok());
}

TEST_F(IterMapTest, SimplifiesFusedThenSplit) {
  const Expr i = i_, j = j_, u = u_;
  EXPECT_EQ(Simple(Div(i * 8 + j, 8)), "(i * 8 + j) // 8");
  EXPECT_EQ(Simple(Div(j, 2) * 2 + Mod(j, 2)), "j");
  EXPECT_EQ(Simple(i * 2 + j), "i * 2 + j");
  EXPECT_EQ(Simple(i * 8 + j + u), "i * 8 + j");
  EXPECT_EQ(Simple(u * 8 + j, false), "u * 8 + j");
  EXPECT_EQ(Simple(Mod(i * 8 + j, 16)), "(i * 8 + j) % 16");
}

TEST_F(IterMapTest, InvertsBijections) {
  const Expr i = i_, j = j_;
  const auto map = DetectIterMap({Div(j, 2), i * 2 + Mod(j, 2)}, Loops(),
                                 nullptr, IterMapLevel::kBijective, analyzer_);
  ASSERT_TRUE(map.ok()) << map.status();
  const Var p = MakeVar("p"), q = MakeVar("q");
  const ir::VarMap inverse = InverseIterMap(*map, {p, q});
  EXPECT_EQ(ToString(inverse.at(i_.get())), "q // 2");
  EXPECT_EQ(ToString(inverse.at(j_.get())), "p * 2 + q % 2");
}

TEST_F(IterMapTest, DividesSpaces) {
  const Var a = MakeVar("a"), b = MakeVar("b");
  const VarRanges loops = {{a, {IntConst(0), IntConst(4)}},
                           {b, {IntConst(0), IntConst(16)}}};
  const auto division =
      SubspaceDivide({Expr(a) * 16 + Expr(b)}, loops, {b}, nullptr,
                     IterMapLevel::kSurjective, analyzer_);
  ASSERT_TRUE(division.ok()) << division.status();
  EXPECT_EQ(ToString(division->bindings[0].outer), "a");
  EXPECT_EQ(division->bindings[0].outer_extent, 4);
  EXPECT_EQ(ToString(division->bindings[0].inner), "b");
  EXPECT_EQ(division->bindings[0].inner_extent, 16);
  EXPECT_FALSE(SubspaceDivide({Expr(a) * 16 + Expr(b)}, loops, {a}, nullptr,
                              IterMapLevel::kSurjective, analyzer_)
                   .ok());
}

}  // namespace
}  // namespace tilefarm::arith
