// Numbers with names outside of functions, what is answered to text that is no
// program, and docs/language.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto module = ParseModule(text, "f.py");
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(module.status().message());
  return message.substr(0, message.find('\n'));
}

constexpr char kScale[] = R"(
@T.prim_func
def scale(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, 7 - vj] * T.float32(2.5)
)";

TEST(NamedNumbers, MayStandWhereNumbersMay) {
  const PrimFuncPtr named = ParseOrDie(R"(
# The sizes.
N = 8
M, LAST = 2 * N, N - 1
FACTOR = 2.5

@T.prim_func
def scale(A: T.Buffer((M, N), "float32"), B: T.Buffer((M, N), "float32")):
    for i, j in T.grid(M, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, LAST - vj] * T.float32(FACTOR)
)");
  EXPECT_TRUE(StructuralEqual(*named, *ParseOrDie(kScale)));
  EXPECT_EQ(WorkloadHash(*named), WorkloadHash(*ParseOrDie(kScale)));
}

TEST(NamedNumbers, AreWeakAsNumbersAre) {
  const PrimFuncPtr named = ParseOrDie(R"(
K = 3
@T.prim_func
def f(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "int8")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] * K
            B[v] = B[v] + K
)");
  const PrimFuncPtr plain = ParseOrDie(R"(
@T.prim_func
def f(A: T.Buffer((8,), "float16"), B: T.Buffer((8,), "int8")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] * 3
            B[v] = B[v] + 3
)");
  EXPECT_TRUE(StructuralEqual(*named, *plain));
}

TEST(NamedNumbers, BelongToAllFunctions) {
  const auto module = ParseModule(R"(
N = 4
@T.prim_func
def f(A: T.Buffer((N,), "float32")):
    A[0] = 1.0
M = N + N
@T.prim_func
def g(A: T.Buffer((M,), "float32")):
    A[N] = 1.0
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->functions[0]->params[0]->shape, std::vector<int64_t>{4});
  EXPECT_EQ(module->functions[1]->params[0]->shape, std::vector<int64_t>{8});
}

TEST(NamedNumbers, Errors) {
  const std::string function =
      "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = 1.0\n";
  EXPECT_EQ(ErrorOf("N = M\n" + function),
            "f.py:1:5: error: 'M' is not a constant; outside of functions, "
            "names stand for numbers (docs/language.md)");
  EXPECT_EQ(ErrorOf("N, M = 4\n" + function),
            "f.py:1:1: error: 2 names, but 1 numbers");
  EXPECT_EQ(ErrorOf("N = 1\nN = 2\n" + function),
            "f.py:2:1: error: 'N' is already defined here; names are given "
            "once");
  EXPECT_EQ(ErrorOf("A = 1\n" + function),
            "f.py:3:7: error: 'A' is already defined here; names are given "
            "once");
  EXPECT_THAT(ErrorOf("N = 4 4\n" + function),
              HasSubstr("f.py:1:7: error: expected the end of the line"));
  EXPECT_THAT(ErrorOf("N = \"four\"\n" + function),
              HasSubstr("f.py:1:5: error: a string is no value here"));
  EXPECT_THAT(ErrorOf("N = 1 < 2\n" + function),
              HasSubstr("f.py:1:5: error: a number is expected"));
  EXPECT_THAT(ErrorOf("N = 4\n"), HasSubstr("no @T.prim_func function"));
}

TEST(NoProgram, TensorExpressionsAreRecognised) {
  EXPECT_EQ(ErrorOf("import tvm\nfrom tvm import te\n"
                    "A = te.placeholder((4,), name=\"A\")\n"),
            "f.py:3:1: error: this builds a tensor expression, in Python; a "
            "program is TVMScript, as te.create_prim_func(...).script() prints "
            "it (docs/language.md)");
  EXPECT_THAT(ErrorOf("print(4)\n"),
              HasSubstr("f.py:1:1: error: expected @I.ir_module or "
                        "@T.prim_func, found 'print' (docs/language.md)"));
}

TEST(NoProgram, ModelsAreRecognised) {
  const auto module =
      ParseModule(std::string_view("\x08\x08\x12\x07", 4), "net.onnx");
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(module.status().message()),
              HasSubstr("net.onnx: error: a model is no program; `tune run` "
                        "and `tunec` take models"));
  // Functions of a model are programs, whatever their name is.
  EXPECT_TRUE(ParseModule(kScale, "net.onnx").ok());
}

TEST(NoProgram, UnknownFunctionsHaveNearOnes) {
  const auto with = [](const std::string& value) {
    return absl::StrCat(
        "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = ",
        value, "\n");
  };
  EXPECT_EQ(ErrorOf(with("T.sigmiod(A[1])")),
            "f.py:3:12: error: unknown function 'T.sigmiod'; the nearest is "
            "'sigmoid' (the language: docs/language.md)");
  EXPECT_EQ(ErrorOf(with("T.frobnicate(A[1])")),
            "f.py:3:12: error: unknown function 'T.frobnicate' (the language: "
            "docs/language.md)");
}

std::string ReadLanguageDocument() {
  std::ifstream file(TILEFARM_SOURCE_DIR "/docs/language.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(LanguageDocument, NamesTheFunctionsThatThereAre) {
  const std::string document = ReadLanguageDocument();
  const size_t end = document.find("## Not in the language");
  std::vector<std::string> named;
  for (size_t at = document.find("- Casts and limits:"); at < end;) {
    at = document.find("`T.", at);
    if (at >= end) break;
    const size_t from = at + 3;
    for (at = from; std::isalnum(document[at]) != 0 || document[at] == '_';) {
      ++at;
    }
    named.push_back(document.substr(from, at - from));
  }
  EXPECT_THAT(named, ::testing::UnorderedElementsAreArray(FunctionNames()));
}

// Its program is one.
TEST(LanguageDocument, HasAProgram) {
  const std::string document = ReadLanguageDocument();
  const size_t begin = document.find("```python\n") + 10;
  const auto module = ParseModule(
      document.substr(begin, document.find("```\n", begin) - begin));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(module->functions[0]->name, "dense_relu");
}

}  // namespace
}  // namespace tilefarm::ir
