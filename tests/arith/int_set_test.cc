#include "compiler/arith/int_set.h"

#include <gtest/gtest.h>

namespace tilefarm::arith {
namespace {

using ir::Expr;
using ir::IntConst;
using ir::MakeVar;
using ir::ToString;
using ir::Var;

std::string Text(const IntSet& set) {
  return "[" + (set.min == nullptr ? "-inf" : ToString(set.min)) + ", " +
         (set.max == nullptr ? "inf" : ToString(set.max)) + "]";
}

std::string Text(const Region& region) {
  std::string out;
  for (const ir::Range& range : region) {
    out += "(" + ToString(range.min) + ", " + ToString(range.extent) + ")";
  }
  return out;
}

class IntSetTest : public ::testing::Test {
 protected:
  IntSetTest() { analyzer_.Bind(i_, 0, 4); }
  VarRanges Relaxed() const {
    return {{j_, {IntConst(0), IntConst(8)}}, {k_, {IntConst(0), IntConst(3)}}};
  }
  std::string Eval(const Expr& e) {
    return Text(EvalSet(analyzer_, e, Relaxed()));
  }

  const Var i_ = MakeVar("i");
  const Var j_ = MakeVar("j");
  const Var k_ = MakeVar("k");
  Analyzer analyzer_;
};

TEST_F(IntSetTest, RelaxesSums) {
  const Expr i = i_, j = j_, k = k_;
  EXPECT_EQ(Eval(i * 16 + j), "[i * 16, i * 16 + 7]");
  EXPECT_EQ(Eval(i * 16 + j * 2 + k), "[i * 16, i * 16 + 16]");
  EXPECT_EQ(Eval(i - j), "[i - 7, i]");
  EXPECT_EQ(Eval(i), "[i, i]");
}

TEST_F(IntSetTest, KeepsQuotientsWithinATile) {
  const Expr i = i_, j = j_;
  EXPECT_EQ(Eval(FloorDiv(i * 8 + j, IntConst(8))), "[i, i]");
  EXPECT_EQ(Eval(FloorMod(i * 8 + j, IntConst(8))), "[0, 7]");
  EXPECT_EQ(Eval(FloorMod(i * 16 + j, IntConst(16))), "[0, 7]");
  EXPECT_EQ(Eval(FloorDiv(i * 5 + j, IntConst(3))),
            "[i * 5 // 3, (i * 5 + 1) // 3 + 2]");
}

TEST_F(IntSetTest, TakesBothBranches) {
  const Expr i = i_, j = j_;
  EXPECT_EQ(Eval(ir::MakeSelect(LT(j, i), j, i)), "[0, 7]");
}

TEST_F(IntSetTest, RelaxesRegions) {
  const Expr i = i_, j = j_, k = k_;
  const ir::Buffer a = ir::MakeBuffer("A", ir::DataType::Float(32), {64, 64});
  const Region region = RelaxRegion(
      analyzer_, {a, {{i * 8 + j, IntConst(1)}, {j * 2 + k, IntConst(1)}}},
      Relaxed());
  EXPECT_EQ(Text(region), "(i * 8, 8)(0, 17)");
  const ir::Buffer b = ir::MakeBuffer("B", ir::DataType::Int(64), {64});
  // An index from memory: the whole dimension.
  EXPECT_EQ(Text(RelaxRegion(analyzer_, {b, {{ir::Load(b, {j}), IntConst(1)}}},
                             Relaxed())),
            "(0, 64)");
}

TEST_F(IntSetTest, ComparesRegions) {
  const Expr i = i_;
  const Region tile = {{i * 8, IntConst(8)}};
  const Region part = {{i * 8 + 2, IntConst(6)}};
  const Region more = {{i * 8 + 2, IntConst(7)}};
  EXPECT_TRUE(RegionCovers(analyzer_, tile, part));
  EXPECT_FALSE(RegionCovers(analyzer_, tile, more));
  EXPECT_EQ(Text(UnionRegion(analyzer_, tile, more)), "(i * 8, 9)");
  EXPECT_EQ(
      Text(ClipRegion(analyzer_, {{i - IntConst(5), IntConst(20)}}, {16})),
      "(0, T.min(i + 14, 15) + 1)");
}

}  // namespace
}  // namespace tilefarm::arith
