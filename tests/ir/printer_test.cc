#include "compiler/ir/printer.h"

#include <gtest/gtest.h>

#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

TEST(Printer, ParenthesesOnlyWhereNeeded) {
  const Var a = MakeVar("a");
  const Var b = MakeVar("b");
  const Var c = MakeVar("c");
  EXPECT_EQ(ToString(Expr(a) * (Expr(b) + Expr(c))), "a * (b + c)");
  EXPECT_EQ(ToString(Expr(a) * b + c), "a * b + c");
  EXPECT_EQ(ToString(Expr(a) - (Expr(b) - Expr(c))), "a - (b - c)");
  EXPECT_EQ(ToString(Expr(a) - b - c), "a - b - c");
  EXPECT_EQ(ToString(FloorMod(FloorDiv(a, b), c)), "a // b % c");
  EXPECT_EQ(ToString(FloorDiv(a, Expr(b) * c)), "a // (b * c)");
  EXPECT_EQ(ToString(And(LT(a, b), Or(GE(b, c), EQ(a, c)))),
            "a < b and (b >= c or a == c)");
  EXPECT_EQ(ToString(MakeNot(And(LT(a, b), LT(b, c)))),
            "not (a < b and b < c)");
  EXPECT_EQ(ToString(EQ(LT(a, b), LT(b, c))), "(a < b) == (b < c)");
  EXPECT_EQ(ToString(Min(a, Max(b, c))), "T.min(a, T.max(b, c))");
  EXPECT_EQ(ToString(MakeBinary(BinaryOp::kDiv, a, b)), "T.truncdiv(a, b)");
}

TEST(Printer, ConstantsKeepTheirDtype) {
  EXPECT_EQ(ToString(IntConst(5)), "5");
  EXPECT_EQ(ToString(IntConst(-5)), "-5");
  EXPECT_EQ(ToString(IntConst(5, DataType::Int(32))), "T.int32(5)");
  EXPECT_EQ(ToString(IntConst(-1, DataType::UInt(64))),
            "T.uint64(18446744073709551615)");
  EXPECT_EQ(ToString(BoolConst(true)), "T.bool(True)");
  EXPECT_EQ(ToString(FloatConst(0.1, kF32)), "T.float32(0.1)");
  EXPECT_EQ(ToString(FloatConst(0.1, DataType::Float(64))), "T.float64(0.1)");
  EXPECT_EQ(ToString(FloatConst(1e30, kF32)), "T.float32(1e+30)");
  EXPECT_EQ(ToString(FloatConst(-0.0, kF32)), "T.float32(-0.0)");
  EXPECT_EQ(ToString(FloatConst(INFINITY, kF32)), "T.float32(\"inf\")");
}

TEST(Printer, VariablesOfOneNameAreToldApart) {
  const Buffer a = MakeBuffer("A", kF32, {4, 4});
  const Var outer = MakeVar("i");
  const Var inner = MakeVar("i");
  const Stmt store = MakeStore(a, {outer, inner}, FloatConst(0, kF32));
  const Stmt nest =
      MakeFor(outer, IntConst(4), MakeFor(inner, IntConst(4), store));
  EXPECT_EQ(Print(nest),
            "for i, i_1 in T.grid(4, 4):\n"
            "    A[i, i_1] = T.float32(0.0)\n");
}

TEST(Printer, NamesThatAreNoIdentifiersAreRepaired) {
  const Buffer a = MakeBuffer("for", kF32, {4});
  const Var i = MakeVar("1.x");
  EXPECT_EQ(Print(Stmt(MakeFor(i, IntConst(4),
                               MakeStore(a, {i}, FloatConst(0, kF32))))),
            "for _1_x in range(4):\n    for_[_1_x] = T.float32(0.0)\n");
}

TEST(Printer, RemapForFullLoopsOnly) {
  const PrimFuncPtr f = ParseOrDie(WithBuffers(R"(
for i, j, k in T.grid(8, 4, 2):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        vj = T.axis.spatial(8, j * 2 + k)
        M[vi, vj] = 0
for i, j in T.grid(8, 8):
    with T.block("c"):
        vi = T.axis.spatial(8, i)
        vj = T.axis.reduce(8, j)
        M[vi, vj] = 0
)"));
  const std::string text = Print(*f);
  EXPECT_NE(text.find("vi = T.axis.spatial(8, i)\n"), std::string::npos);
  EXPECT_NE(text.find("vj = T.axis.spatial(8, j * 2 + k)\n"),
            std::string::npos);
  EXPECT_NE(text.find("vi, vj = T.axis.remap(\"SR\", [i, j])\n"),
            std::string::npos);
}

TEST(Printer, LoweredCodeIsReadable) {
  const Buffer a = MakeBuffer("A", kF32, {64});
  const Var i = MakeVar("i");
  const Expr ramp = MakeRamp(Expr(i) * 8, IntConst(1), 8);
  const Expr mask = LT(ramp, MakeBroadcast(IntConst(60), 8));
  const Stmt store = MakeStore(
      a, {ramp}, Load(a, {ramp}) + MakeBroadcast(FloatConst(1, kF32), 8), mask);
  const std::string text = Print(MakeAlloc(a, MakeFor(i, IntConst(8), store)));
  EXPECT_NE(text.find("with T.allocate((64,), \"float32\", \"global\") as A:"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("A.vstore([T.Ramp(i * 8, 1, 8)], "
                      "A[T.Ramp(i * 8, 1, 8)] + T.Broadcast(T.float32(1.0), "
                      "8), predicate=T.Ramp(i * 8, 1, 8) < "
                      "T.Broadcast(60, 8))"),
            std::string::npos)
      << text;
}

TEST(Printer, StringsAreEscaped) {
  const std::string text = Print(*ParseOrDie(
      "@T.prim_func\ndef f(A: T.Buffer((4,))):\n"
      "    T.func_attr({\"k\\\"\": \"a\\\\b\\n\\t\\x01\"})\n    A[0] = 1\n"));
  EXPECT_NE(text.find(R"(T.func_attr({"k\"": "a\\b\n\t\x01"}))"),
            std::string::npos)
      << text;
  EXPECT_EQ(Print(*ParseOrDie(text)), text);
}

TEST(Printer, AnnotatedRootIsWrittenOut) {
  const std::string text = Print(*ParseOrDie(
      WithBuffers("with T.block(\"root\"):\n"
                  "    T.block_attr({\"meta_schedule.parallel\": 8})\n"
                  "    X = T.alloc_buffer((4,))\n"
                  "    X[0] = A[0]\n")));
  EXPECT_NE(text.find("with T.block(\"root\"):"), std::string::npos);
  EXPECT_EQ(Print(*ParseOrDie(text)), text);
}

}  // namespace
}  // namespace tilefarm::ir
