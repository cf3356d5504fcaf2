#include "tests/fuzz/corpus.h"

#include <utility>

#include "tests/support/programs.h"

namespace tilefarm::fuzz {
namespace {

constexpr char kMatmul[] = R"(
# IRModule
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm_relu(A: T.Buffer((128, 128), "float32"), B: T.Buffer[(128, 128), "float32"], C: T.Buffer((128, 128), "float32")):
        T.func_attr({ "global_symbol": "mm_relu", "tir.noalias": True })
        Y = T.alloc_buffer((128, 128), dtype="float32", scope="local")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += A[vi, vk] * B[vk, vj]
        for i_0, i_1 in T.grid(43, 3):
            for j in T.vectorized(128):
                with T.block("C"):
                    vi = T.axis.spatial(128, i_0 * 3 + i_1)
                    vj = T.axis.spatial(T.int64(128), j)
                    T.where(i_0 * 3 + i_1 < 128)
                    T.reads(Y[vi, vj:vj + 1])
                    T.writes(C[vi, vj])
                    T.block_attr({"axis": 1, "list": [1, 2.5, "s", None, [True]]})
                    C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

constexpr char kEverything[] = R"(
@T.prim_func(private=True, s_tir=True)
def f(a: T.handle, I: T.Buffer(16, "int32"), H: T.Buffer((4, 4), "float16"), Z: T.Buffer((), "bool")) -> None:
    """Everything at once."""
    A = T.match_buffer(a, (16,), "float32")
    with T.block("root"):
        T.reads([])
        T.block_attr({"meta_schedule.parallel": 8})
        for i in T.serial(2, 6, annotations={"pragma_unroll": 1}):
            with T.sblock("b"):
                v = T.axis.opaque((2, 6), i)
                x = A[v * 2] ** 2 - -1.5e-3
                y: T.int32 = I[v] // 3 % 2 + (v & 7)
                if v < 4 and not (v == 3) or 1 <= v <= 2:
                    H[v % 4, 0] = T.Cast("float16", T.exp(x) / T.sqrt(x))
                elif Z[()]:
                    I[v] = T.truncdiv(I[v], 2) << 3 | y ^ 5
                else:
                    A[v] = T.if_then_else(v >= 3, A[v - 3], 0) + T.Let(q * q, where={q: x})
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in T.parallel(2):
                for k in T.unroll(2):
                    with T.LetStmt(T.Select(I[i] > 0, 1, 2)) as z:
                        A[i] = T.min(A[j], T.infinity("float32")) + T.Cast("float32", z)
        Z[()] = T.isnan(A[0]) or A[1] != T.float32("-inf")
)";

constexpr char kNested[] = R"(
@T.prim_func
def g(X: T.Buffer((64,), "int64"), Y: T.Buffer((64,), "int64")):
    for i in range(8):
        with T.block("outer"):
            vo = T.axis.spatial(8, i)
            W = T.alloc_buffer((8,), "int64")
            for j in range(8):
                with T.block("inner"):
                    vi = T.axis.spatial(8, j)
                    W[vi] = X[vo * 8 + vi] * vi - T.int64(9223372036854775807)
            for j, k in T.grid(8, 8):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [j, k])
                    with T.init():
                        Y[vo * 8 + vi] = T.min_value("int64")
                    Y[vo * 8 + vi] = T.max(Y[vo * 8 + vi], W[(vi + vk) % 8])
)";

}  // namespace

std::vector<std::string> Corpus() {
  std::vector<std::string> out = {kMatmul, kEverything, kNested};
  if (tilefarm::testing::PrintedSetFolder().empty()) return out;
  for (const std::string& path :
       tilefarm::testing::PrintedFiles("small", ".py")) {
    if (auto text = tilefarm::testing::ReadTextFile(path); text.ok()) {
      out.push_back(*std::move(text));
    }
  }
  return out;
}

const std::vector<std::string>& Vocabulary() {
  static const auto* words =
      new std::vector<std::string>{"T.block(\"b\")",
                                   "T.init()",
                                   "T.axis.spatial",
                                   "T.axis.reduce",
                                   "T.axis.remap",
                                   "\"SSR\"",
                                   "T.grid",
                                   "range",
                                   "T.serial",
                                   "T.parallel",
                                   "T.vectorized",
                                   "T.unroll",
                                   "T.thread_binding",
                                   "T.reads",
                                   "T.writes",
                                   "T.where",
                                   "T.alloc_buffer",
                                   "T.match_buffer",
                                   "T.func_attr",
                                   "T.block_attr",
                                   "T.if_then_else",
                                   "T.Select",
                                   "T.Let",
                                   "where=",
                                   "T.Cast",
                                   "T.float32",
                                   "T.int32",
                                   "T.int64",
                                   "T.bool",
                                   "T.uint64",
                                   "T.max",
                                   "T.min",
                                   "T.exp",
                                   "T.pow",
                                   "T.fma",
                                   "T.truncdiv",
                                   "T.infinity",
                                   "T.call_extern",
                                   "T.Ramp",
                                   "for",
                                   "in",
                                   "with",
                                   "if",
                                   "elif",
                                   "else",
                                   "and",
                                   "or",
                                   "not",
                                   "def",
                                   "class",
                                   "@T.prim_func",
                                   "@I.ir_module",
                                   "pass",
                                   "True",
                                   "False",
                                   "None",
                                   "while",
                                   "return",
                                   "lambda",
                                   "(",
                                   ")",
                                   "[",
                                   "]",
                                   "{",
                                   "}",
                                   ",",
                                   ":",
                                   ".",
                                   "=",
                                   "+=",
                                   "//=",
                                   "+",
                                   "-",
                                   "*",
                                   "**",
                                   "/",
                                   "//",
                                   "%",
                                   "<",
                                   "<=",
                                   "==",
                                   "!=",
                                   ">=",
                                   ">",
                                   "<<",
                                   ">>",
                                   "&",
                                   "|",
                                   "^",
                                   "~",
                                   "->",
                                   ";",
                                   "\\",
                                   "\n",
                                   "\n    ",
                                   "\n        ",
                                   "\t",
                                   "#",
                                   "\"",
                                   "'",
                                   "\"\"\"",
                                   "0",
                                   "1",
                                   "-1",
                                   "2",
                                   "127",
                                   "128",
                                   "2147483648",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "18446744073709551615",
                                   "1e400",
                                   "1e-400",
                                   "0.5",
                                   "0x7f",
                                   "1_000",
                                   "\"float32\"",
                                   "\"float16\"",
                                   "\"int32\"",
                                   "\"bool\"",
                                   "\"inf\"",
                                   "\"root\"",
                                   "A",
                                   "B",
                                   "C",
                                   "Y",
                                   "vi",
                                   "vj",
                                   "vk",
                                   "i",
                                   "j",
                                   "k",
                                   "x",
                                   "_",
                                   "\xC3\xA9",
                                   "\xFF",
                                   std::string(1, '\0')};
  return *words;
}

}  // namespace tilefarm::fuzz
