#include "compiler/ir/stmt.h"
#include "cost_model/features.h"
#include "gtest/gtest.h"
#include "tests/cost_model/test_programs.h"

namespace tilefarm::cost_model {
namespace {

using namespace ir;

// B[i] = value(A[i]) over 10 elements.
template <typename Value>
double FlopsOf(DataType dtype, const Value& value) {
  Buffer a = MakeBuffer("A", dtype, {10});
  Buffer b = MakeBuffer("B", dtype, {10});
  Var i = MakeVar("i");
  return CountFlops(WithRoot(
      {a, b},
      MakeFor(i, IntConst(10), MakeStore(b, {i}, value(Load(a, {i}))))));
}

TEST(CountFlops, AMatmulIsTwoAMultiplyAdd) {
  EXPECT_EQ(CountFlops(TiledMatmul({})), 2.0 * 64 * 64 * 64);
}

TEST(CountFlops, MinAndFunctionsAreOne) {
  EXPECT_EQ(FlopsOf(F32(), [](Expr x) { return Max(x, FloatConst(0, F32())); }),
            10);
  EXPECT_EQ(
      FlopsOf(F32(), [](Expr x) { return MakeCall(Intrinsic::kExp, {x}); }),
      10);
  EXPECT_EQ(FlopsOf(F32(),
                    [](Expr x) {
                      return MakeCall(Intrinsic::kFma, {x, x, x});
                    }),
            20);
}

TEST(CountFlops, CopiesHaveNone) {
  EXPECT_EQ(FlopsOf(F32(), [](Expr x) { return x; }), 0);
}

TEST(CountFlops, IntegerProgramsCountIntegers) {
  EXPECT_EQ(FlopsOf(DataType::Int(32), [](Expr x) { return x * x + x; }), 20);
}

TEST(CountFlops, AnIntegerProductCountsBesideTheFloatsThatScaleIt) {
  Buffer a = MakeBuffer("A", DataType::Int(32), {10});
  Buffer b = MakeBuffer("B", DataType::Int(32), {10});
  Buffer c = MakeBuffer("C", F32(), {10});
  Var i = MakeVar("i"), k = MakeVar("k"), j = MakeVar("j");
  const Stmt product = MakeFor(
      i, IntConst(10),
      MakeFor(k, IntConst(8),
              MakeStore(b, {i}, Load(b, {i}) + Load(a, {i}) * Load(a, {k}))));
  const Stmt scale = MakeFor(
      j, IntConst(10),
      MakeStore(c, {j},
                MakeCast(F32(), Load(b, {j})) * FloatConst(0.5, F32())));
  EXPECT_EQ(CountFlops(WithRoot({a, b, c}, MakeSeq({product, scale}))),
            10 * 8 * 2 + 10);
}

TEST(CountFlops, ConditionsOfFloatsAreNoArithmetic) {
  Buffer a = MakeBuffer("A", F32(), {10});
  Buffer b = MakeBuffer("B", F32(), {10});
  Var i = MakeVar("i");
  EXPECT_EQ(
      CountFlops(WithRoot(
          {a, b},
          MakeFor(i, IntConst(10),
                  MakeStore(b, {i},
                            IfThenElseExpr(LT(Expr(i) * 2 + 1, IntConst(9)),
                                           Load(a, {i}) + Load(a, {i}),
                                           FloatConst(0, F32())))))),
      10);
}

TEST(CountFlops, IndicesAreNoArithmetic) {
  Buffer a = MakeBuffer("A", F32(), {64});
  Buffer b = MakeBuffer("B", F32(), {16});
  Var i = MakeVar("i");
  EXPECT_EQ(CountFlops(WithRoot(
                {a, b},
                MakeFor(i, IntConst(16),
                        MakeStore(b, {i},
                                  Load(a, {Expr(i) * 4 + 1}) + Load(a, {i}))))),
            16);
}

}  // namespace
}  // namespace tilefarm::cost_model
