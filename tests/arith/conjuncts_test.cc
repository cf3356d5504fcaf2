#include "compiler/arith/conjuncts.h"

#include <gtest/gtest.h>

namespace tilefarm::arith {
namespace {

const ir::Var i = ir::MakeVar("i");
const ir::Expr a = ir::LT(i, ir::IntConst(4));
const ir::Expr b = ir::LT(ir::IntConst(0), i);
const ir::Expr c = ir::EQ(i, ir::IntConst(2));

ir::Expr Both(const ir::Expr& left, const ir::Expr& right) {
  return ir::MakeBinary(ir::BinaryOp::kAnd, left, right);
}

TEST(ConjunctsTest, AreTheLeavesFromLeftToRight) {
  EXPECT_EQ(Conjuncts(Both(a, Both(b, c))), (std::vector<ir::Expr>{a, b, c}));
  EXPECT_EQ(Conjuncts(Both(Both(a, b), c)), (std::vector<ir::Expr>{a, b, c}));
}

TEST(ConjunctsTest, AnythingElseIsOnePart) {
  EXPECT_EQ(Conjuncts(a), std::vector<ir::Expr>{a});
  const ir::Expr either = ir::MakeBinary(ir::BinaryOp::kOr, a, b);
  EXPECT_EQ(Conjuncts(either), std::vector<ir::Expr>{either});
  EXPECT_EQ(Conjuncts(Both(either, c)), (std::vector<ir::Expr>{either, c}));
}

TEST(ConjunctsTest, TrueHasNoParts) {
  EXPECT_TRUE(Conjuncts(ir::BoolConst(true)).empty());
  EXPECT_EQ(Conjuncts(ir::BoolConst(false)).size(), 1u);
}

}  // namespace
}  // namespace tilefarm::arith
