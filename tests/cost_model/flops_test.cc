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
