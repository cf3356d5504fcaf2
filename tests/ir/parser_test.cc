#include "compiler/ir/parser.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

std::string Reprinted(const std::string& body) {
  return Print(*ParseOrDie(WithBuffers(body)));
}

bool Same(const std::string& a, const std::string& b) {
  const PrimFuncPtr x = ParseOrDie(WithBuffers(a));
  const PrimFuncPtr y = ParseOrDie(WithBuffers(b));
  const bool same = StructuralEqual(*x, *y);
  if (!same) std::cerr << Print(*x) << Print(*y);
  return same;
}

TEST(ParserSeeds, VectorAddOfTheSlides) {
  const auto module = ParseModule(R"(
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def main(A: T.Buffer[128, "float32"], 
             B: T.Buffer[128, "float32"], 
             C: T.Buffer[128, "float32"]):
        # extra annotations for the function
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in range(128):
            with T.block("C"):
                # declare a data parallel iterator on spatial domain
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] + B[vi]
)");
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_EQ(module->functions.size(), 1u);
  const PrimFunc& main = *module->functions[0];
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(*main.attrs.at("global_symbol").AsString(), "main");
  EXPECT_EQ(main.params[0]->shape, std::vector<int64_t>{128});
  const auto* loop = As<ForNode>(main.root()->body);
  ASSERT_NE(loop, nullptr);
  const auto* block = As<BlockNode>(loop->body);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->reads.size(), 2u);
  EXPECT_EQ(block->writes.size(), 1u);
}

TEST(ParserSeeds, SplitReorderParallelListingOnceCompleted) {
  const auto module = ParseModule(R"(
@T.prim_func
def main(A_1: T.Buffer[128, "float32"], B_1: T.Buffer[128, "float32"],
         C_1: T.Buffer[128, "float32"]):
    for i_0 in tir.parallel(8):
        for i_2, i_1 in tir.grid(4, 4):
            with tir.block("C"):
                vi = tir.axis.spatial(128, i_0 * 16 + i_1 * 4 + i_2)
                tir.reads(A_1[vi], B_1[vi])
                tir.writes(C_1[vi])
                C_1[vi] = A_1[vi] + B_1[vi]
)");
  ASSERT_TRUE(module.ok()) << module.status();
  const auto* loop = As<ForNode>(module->functions[0]->root()->body);
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->for_kind, ForKind::kParallel);
}

TEST(ParserSeeds, MmReluWithItsTypo) {
  const auto module = ParseModule(R"(
# IRModule
@tmv.script.ir_module
class MyModule:
    # primitive tensor function
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        T.func_attr({ "global_symbol": "mm_relu", "tir.noalias": True })
        # intermediate tensor
        Y = T.alloc_buffer((128, 128), dtype="float32")
        # matmul
        for i, j, k in T.grid(128, 128, 128):
            # computational unit
            with T.block("Y"):
                # vi = T.axis.spatial(128, i)
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        # relu
        for i, j in T.grid(128, 128):
            # computational unit
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_NE(module->Find("mm_relu"), nullptr);
  EXPECT_EQ(module->Find("mm_relu")->root()->allocs.size(), 1u);
}

TEST(ParserSeeds, LinearReluWithoutBlocks) {
  const auto function = ParseFunction(R"(
@T.prim_func
def linear_relu(x: T.Buffer((1, 32)), w: T.Buffer((20, 32)), out: T.Buffer((1, 20))):
    for i in range(1):
        for j in range(20):
            out[i, j] = 0
            for k in range(32):
                # linear                
                out[i, j] += x[i, k] * w[j, k]
            # relu
            out[i, j] = max(out[i, j], 0)
)");
  ASSERT_TRUE(function.ok()) << function.status();
}

TEST(Parser, MatchBufferAndHandles) {
  EXPECT_TRUE(ParseFunction(R"(
from tvm.script import tir as T

@T.prim_func(private=True, s_tir=True)
def f(a: T.handle, b: T.handle("float32")) -> None:
    """A docstring."""
    A = T.match_buffer(a, (T.int64(4), 4), "float16")
    B = T.match_buffer(b, [4, 4], dtype="float16", scope="global")
    with T.block("root"):
        T.reads([])
        T.writes([])
        X = T.sblock_alloc_buffer([4, 4], "float16", scope="local")
        for i, j in T.grid(4, 4):
            with T.sblock("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = A[vi, vj] * 2
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = X[vi, vj]
)")
                  .ok());
}

TEST(Parser, LoopForms) {
  const std::string text = Reprinted(R"(
for i in T.serial(2, 6, annotations={"a": 1}):
    C[i] = A[i]
for i in T.vectorized(4):
    C[i] = A[i]
for i in T.unroll(T.int64(4)):
    C[i] = A[i]
for i in T.thread_binding(4, thread="threadIdx.x"):
    C[i] = A[i]
for i in range(1, 4):
    C[i] = A[i]
for i, j in T.grid(8, 8):
    M[i, j] = 0.5
for i in T.parallel(2 * 4): C[i] = A[i]
)");
  for (const char* line :
       {"for i in T.serial(2, 6, annotations={\"a\": 1}):",
        "for i in T.vectorized(4):", "for i in T.unroll(4):",
        "for i in T.thread_binding(4, thread=\"threadIdx.x\"):",
        "for i in range(1, 4):", "for i, j in T.grid(8, 8):",
        "M[i, j] = T.float32(0.5)", "for i in T.parallel(8):"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Parser, VaryingExtentsBecomeGuards) {
  const std::string text = Reprinted(R"(
for i in range(4):
    for j in range(T.min(3, 10 - i * 3)):
        C[i * 3 + j] = A[0]
    for j in T.serial(T.Select(i % 2 == 0, 2, i + 1)):
        with T.block("b"):
            v = T.axis.spatial((0, i * 4 + 4), i * 4 + j)
            C[v] = A[v]
)");
  for (const char* line :
       {"for j in range(3):\n", "if j < T.min(3, 10 - i * 3):\n",
        "for j in range(4):\n", "v = T.axis.spatial(16, i * 4 + j)\n",
        "T.where(j < T.Select(i % 2 == 0, 2, i + 1))\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(Print(*ParseOrDie(text)), text);
}

TEST(Parser, WeakLiteralsTakeTheOtherDtype) {
  EXPECT_TRUE(Same("for i in range(16):\n    C[i] = A[i] * 2 + 1",
                   "for i in range(16):\n    C[i] = A[i] * T.float32(2) + "
                   "T.float32(1)"));
  EXPECT_TRUE(Same("for i in range(16):\n    I[i] = I[i] + 3",
                   "for i in range(16):\n    I[i] = I[i] + T.int32(3)"));
  EXPECT_TRUE(Same("for i in range(8):\n    C[i + T.int32(3)] = 0",
                   "for i in range(8):\n    C[i + T.int64(3)] = T.float32(0)"));
  EXPECT_TRUE(Same("C[0] = T.if_then_else(A[0] > 0, 1, 0)",
                   "C[0] = T.if_then_else(A[0] > T.float32(0), T.float32(1), "
                   "T.float32(0))"));
}

TEST(Parser, Int32OperandsWidenWhereTheyMeetIndices) {
  EXPECT_TRUE(Same("for i in range(8):\n    C[i + I[i]] = 0",
                   "for i in range(8):\n    C[i + T.Cast(\"int64\", I[i])] = "
                   "T.float32(0)"));
}

TEST(Parser, IndicesStoreToIntegerBuffers) {
  EXPECT_TRUE(Same("for i in range(16):\n    I[i] = i * 2",
                   "for i in range(16):\n    I[i] = T.Cast(\"int32\", i * 2)"));
}

TEST(Parser, SpellingsOfOperators) {
  EXPECT_TRUE(Same("for i in range(8):\n    I[T.floordiv(i, 2)] = 0",
                   "for i in range(8):\n    I[i // 2] = T.int32(0)"));
  EXPECT_TRUE(Same("for i in range(8):\n    I[T.Min(i, 3)] = 0",
                   "for i in range(8):\n    I[T.min(i, 3)] = 0"));
  EXPECT_TRUE(Same("C[0] = T.fabs(A[0])", "C[0] = T.abs(A[0])"));
  EXPECT_TRUE(Same("C[0] = A[0] ** 2", "C[0] = T.pow(A[0], T.float32(2))"));
  EXPECT_TRUE(Same("C[0] = T.cast(I[0], \"float32\")",
                   "C[0] = T.Cast(\"float32\", I[0])"));
  EXPECT_TRUE(Same("for i in range(8):\n    if 1 <= i < 5:\n        C[i] = 0",
                   "for i in range(8):\n    if 1 <= i and i < 5:\n        "
                   "C[i] = 0"));
  EXPECT_TRUE(Same("C[0] += A[0]", "C[0] = C[0] + A[0]"));
  EXPECT_TRUE(Same("C[0x0f] = 1_0.5e-1", "C[15] = T.float32(1.05)"));
  EXPECT_TRUE(Same("for i in range(8):\n    I[T.ceildiv(i, 3)] = 1",
                   "for i in range(8):\n    I[(i + 3 - 1) // 3] = 1"));
}

TEST(Parser, SpellingsThatLegalizedOperatorsUse) {
  EXPECT_TRUE(Same("x: T.let[T.float32] = A[0]\nC[0] = x",
                   "x: T.float32 = A[0]\nC[0] = x"));
  EXPECT_TRUE(Same("I[0] = ~I[1]", "I[0] = I[1] ^ -1"));
  EXPECT_TRUE(
      Same("C[0] = T.truncmod(A[0], A[1])", "C[0] = T.Mod(A[0], A[1])"));
  EXPECT_NE(Reprinted("with T.block(\"b\"):\n"
                      "    T.block_attr({\"layout_free_placeholders\": [A]})\n"
                      "    C[0] = A[0]")
                .find("{\"layout_free_placeholders\": [\"A\"]}"),
            std::string::npos);
  EXPECT_NE(Reprinted("C[0] = T.atanh(A[0] + 1)").find("where={x: "),
            std::string::npos);
}

TEST(Parser, PrecedenceIsPythons) {
  EXPECT_TRUE(Same("I[0] = I[1] + I[2] * I[3] - I[4] // I[5] % I[6]",
                   "I[0] = (I[1] + (I[2] * I[3])) - ((I[4] // I[5]) % I[6])"));
  EXPECT_TRUE(Same("I[0] = I[1] | I[2] ^ I[3] & I[4] << I[5]",
                   "I[0] = I[1] | (I[2] ^ (I[3] & (I[4] << I[5])))"));
  EXPECT_TRUE(Same(
      "if A[0] > 0 or A[1] > 0 and not A[2] > 0:\n    C[0] = 1",
      "if (A[0] > 0) or ((A[1] > 0) and (not (A[2] > 0))):\n    C[0] = 1"));
  EXPECT_TRUE(Same("C[0] = A[0] - -A[1] ** 2 * 3",
                   "C[0] = A[0] - ((-(A[1] ** 2)) * 3)"));
}

TEST(Parser, LimitsOfTypes) {
  const PrimFuncPtr f = ParseOrDie(WithBuffers(R"(
C[0] = T.min_value("float32")
C[1] = T.infinity("float32")
C[2] = T.float32("-inf")
C[3] = T.float32(float("nan"))
I[0] = T.max_value("int32")
I[1] = T.min_value("int32")
)"));
  const std::string text = Print(*f);
  for (const char* line :
       {"C[0] = T.float32(-3.4028235e+38)", "C[1] = T.float32(\"inf\")",
        "C[2] = T.float32(\"-inf\")", "C[3] = T.float32(\"nan\")",
        "I[0] = T.int32(2147483647)", "I[1] = T.int32(-2147483648)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Parser, LetsScopeOverTheRestOfTheirSuite) {
  const std::string text = Reprinted(R"(
for i in range(16):
    x = A[i] * 2
    y: T.int32 = i
    C[i] = x
    I[i] = y
)");
  EXPECT_NE(text.find("with T.LetStmt(A[i] * T.float32(2.0)) as x:"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("with T.LetStmt(T.Cast(\"int32\", i)) as y:"),
            std::string::npos)
      << text;
}

TEST(Parser, LetExpressions) {
  EXPECT_NE(Reprinted("C[0] = T.Let(x * x, where={x: A[0] + A[1]})")
                .find("C[0] = T.Let(x * x, where={x: A[0] + A[1]})"),
            std::string::npos);
}

TEST(Parser, RepeatedBlockNamesGetSuffixesInProgramOrder) {
  const std::string text = Reprinted(R"(
for i in range(16):
    with T.block("C"):
        v = T.axis.spatial(16, i)
        C[v] = A[v]
for i in range(16):
    with T.block("C"):
        v = T.axis.spatial(16, i)
        C[v] = A[v]
for i in range(16):
    with T.block("C_1"):
        v = T.axis.spatial(16, i)
        C[v] = A[v]
)");
  const size_t first = text.find("T.block(\"C\")");
  const size_t second = text.find("T.block(\"C_2\")");
  const size_t third = text.find("T.block(\"C_1\")");
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST(Parser, RegionsWithSlicesAndWholeBuffers) {
  const std::string text = Reprinted(R"(
for i in range(4):
    with T.block("b"):
        v = T.axis.spatial(4, i)
        T.reads([M[v * 2:v * 2 + 2, 0:8], A])
        T.writes(C[v])
        C[v] = M[v * 2, 0] + A[v]
)");
  EXPECT_NE(text.find("T.reads(M[v * 2:v * 2 + 2, 0:8], A[0:16])"),
            std::string::npos)
      << text;
}

TEST(Parser, AxesWithRangesAndKinds) {
  const std::string text = Reprinted(R"(
for i, j in T.grid(4, 8):
    with T.block("b"):
        v = T.axis.spatial((2, 6), i + 2)
        w = T.axis.scan(8, j)
        T.where(i < 3)
        T.block_attr({"x": [1, 2.5, "q\"", None, True]})
        M[v, w] = 0
)");
  for (const char* line :
       {"v = T.axis.spatial((2, 6), i + 2)", "w = T.axis.opaque(8, j)",
        "T.where(i < 3)",
        "T.block_attr({\"x\": [1, 2.5, \"q\\\"\", None, True]})"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(Parser, ZeroDimensionalBuffers) {
  const PrimFuncPtr f = ParseOrDie(
      "@T.prim_func\n"
      "def f(A: T.Buffer((), \"float32\"), B: T.Buffer((), \"float32\")):\n"
      "    with T.block(\"b\"):\n"
      "        vi = T.axis.spatial(1, 0)\n"
      "        B[()] = A[()] + 1\n");
  const std::string text = Print(*f);
  EXPECT_NE(text.find("T.reads(A[()])"), std::string::npos) << text;
  EXPECT_EQ(Print(*ParseOrDie(text)), text);
}

TEST(Parser, WindowsLineEndsBomAndContinuations) {
  EXPECT_TRUE(ParseFunction("\xEF\xBB\xBF@T.prim_func\r\n"
                            "def f(A: T.Buffer((4,),\r\n \"float32\")):\r\n"
                            "    A[0] = 1 + \\\r\n        2\r\n")
                  .ok());
}

TEST(Parser, ModulesWithSeveralFunctions) {
  const auto module = ParseModule(R"(
@I.ir_module
class Module:
    I.module_attrs({"x": 1})
    @T.prim_func
    def a(A: T.Buffer((4,))):
        A[0] = 1

    @T.prim_func
    def b(A: T.Buffer((4,))):
        A[0] = 2
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->functions.size(), 2u);
  EXPECT_EQ(ParseFunction(Print(*module)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Parser, OpaqueBlocksMaySeeTheLoops) {
  EXPECT_TRUE(ParseFunction(WithBuffers("for i in range(16):\n"
                                        "    with T.block(\"b\"):\n"
                                        "        C[i] = A[i]\n"))
                  .ok());
}

TEST(Parser, LongChainsAreBoundedNotCrashing) {
  std::string sum = "A[0]";
  for (int i = 0; i < 150; ++i) sum += " + A[0]";
  EXPECT_TRUE(ParseFunction(WithBuffers("C[0] = " + sum)).ok());
  for (int i = 0; i < 100000; ++i) sum += " + A[0]";
  const auto status = ParseFunction(WithBuffers("C[0] = " + sum)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tilefarm::ir
