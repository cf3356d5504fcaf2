#include "tests/lower/dialect_programs.h"

namespace tilefarm::testing {
namespace {

constexpr char kParameters[] =
    R"(A: T.Buffer((16,), "float32"), I: T.Buffer((16,), "int32"), M: T.Buffer((8, 8), "float32"), C: T.Buffer((16,), "float32"))";

// Indents the body by four in a function of the standard parameters.
std::string Function(const std::string& body) {
  std::string out = "@T.prim_func\ndef f(";
  out += kParameters;
  out += "):";
  for (const char c : body) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out + "\n";
}

// Stores the expression to an element of C.
std::string Element(const std::string& expression) {
  return Function(
      "\nfor i in range(16):\n"
      "    with T.block(\"C\"):\n"
      "        vi = T.axis.spatial(16, i)\n"
      "        C[vi] = " +
      expression);
}

// Programs made of one expression, made of one body, and whole programs.
std::vector<DialectProgram> Expressions() {
  return {
      {"IfThenElseWithDtype",
       Element(
           R"(T.if_then_else(vi < 3, A[vi], T.float32(0), dtype="float32"))"),
       Element(R"(T.if_then_else(vi < 3, A[vi], T.float32(0)))")},
      {"WeakOperandsWithDtype",
       Element(R"(T.if_then_else(vi < 3, 1.0, 0.5, dtype="float32"))"),
       Element(R"(T.if_then_else(vi < 3, T.float32(1), T.float32(0.5)))")},
      {"IntrinsicWithDtype", Element(R"(T.exp(A[vi], dtype="float32"))"),
       Element(R"(T.exp(A[vi]))")},
      {"NestedDtypes",
       Element(
           R"(T.sqrt(T.if_then_else(3 <= vi and vi < 9, T.abs(A[vi], dtype="float32"), T.float32(1), dtype="float32"), dtype="float32"))"),
       Element(
           R"(T.sqrt(T.if_then_else(3 <= vi and vi < 9, T.abs(A[vi]), T.float32(1))))")},
      {"IndexWithDtypeInt32",
       Element(R"(A[T.if_then_else(vi < 3, vi, 0, dtype="int32")])"),
       Element(R"(A[T.if_then_else(vi < 3, vi, 0)])")},
      {"LikelyWithDtype",
       Element(
           R"(T.if_then_else(T.likely(vi < 5, dtype="bool"), A[vi], T.float32(2)))"),
       Element(R"(T.if_then_else(vi < 5, A[vi], T.float32(2)))")},
      {"KeywordOperands",
       Element(
           R"(T.if_then_else(cond=vi < 3, t=T.max(a=A[vi], b=T.float32(0)), f=T.exp(x=A[vi])))"),
       Element(
           R"(T.if_then_else(vi < 3, T.max(A[vi], T.float32(0)), T.exp(A[vi])))")},
      {"KeywordsInAnyOrder",
       Element(
           R"(T.Select(false_value=A[vi], condition=vi < 3, true_value=T.float32(1)))"),
       Element(R"(T.Select(vi < 3, T.float32(1), A[vi]))")},
      {"Truncdiv",
       Element(
           R"(A[T.truncdiv(vi * 3, 4)] + T.Cast("float32", T.truncmod(I[vi], 3)))"),
       Element(
           R"(A[T.truncdiv(vi * 3, 4)] + T.Cast("float32", T.truncmod(I[vi], T.int32(3))))")},
      {"NamedDivisions",
       Element(
           R"(A[T.floordiv(vi, 2)] + A[T.floormod(vi, 4)] + A[T.indexdiv(vi, 4)] + A[T.ceildiv(vi, 2)])"),
       Element(
           R"(A[vi // 2] + A[vi % 4] + A[vi // 4] + A[(vi + 2 - 1) // 2])")},
      {"NodeNames",
       Element(
           R"(T.Select(T.And(T.GE(vi, 2), T.Not(T.LT(vi, 4))), T.Mul(T.Add(A[vi], T.float32(1)), T.Sub(A[vi], T.float32(2))), T.Div(A[vi], T.float32(4))))"),
       Element(
           R"(T.Select(vi >= 2 and not vi < 4, (A[vi] + T.float32(1)) * (A[vi] - T.float32(2)), A[vi] / T.float32(4)))")},
      {"ChainedComparison",
       Element(
           R"(T.if_then_else(2 <= vi < 9 or not vi != 12, A[vi], T.float32(0)))"),
       Element(
           R"(T.if_then_else((2 <= vi and vi < 9) or not vi != 12, A[vi], T.float32(0)))")},
      {"Constants",
       Element(
           R"(A[vi] * T.float32(1e-05) + T.Cast("float32", T.int8(-3)) + T.Cast("float32", T.uint8(200)) + T.Select(T.bool(True), T.float32(1), T.float32("2.5")))"),
       Element(
           R"(A[vi] * T.float32(0.00001) + T.Cast("float32", T.int8(-3)) + T.Cast("float32", T.uint8(200)) + T.Select(True, T.float32(1), T.float32(2.5)))")},
      {"LimitsByKeyword",
       Element(
           R"(T.max(A[vi], T.min_value(dtype="float32")) + T.min(A[vi], T.infinity(dtype="float32")))"),
       Element(
           R"(T.max(A[vi], T.min_value("float32")) + T.min(A[vi], T.infinity("float32")))")},
      {"Astype",
       Element(
           R"(I[vi].astype("float32") * (A[vi] + A[0]).astype("float64").astype("float32"))"),
       Element(
           R"(T.Cast("float32", I[vi]) * T.Cast("float32", T.Cast("float64", A[vi] + A[0])))")},
      {"CastByKeyword",
       Element(
           R"(T.Cast(dtype="float32", value=I[vi]) + T.cast(value=I[vi], dtype="float32"))"),
       Element(R"(T.Cast("float32", I[vi]) + T.Cast("float32", I[vi]))")},
      {"Bits",
       Element(
           R"(T.Cast("float32", T.bitwise_and(I[vi], 3) + T.shift_left(T.int32(1), T.bitwise_or(T.bitwise_and(I[vi], 1), 2)) + T.bitwise_xor(I[vi], T.bitwise_not(I[vi])) + T.shift_right(I[vi], 1)))"),
       Element(
           R"(T.Cast("float32", (I[vi] & 3) + (T.int32(1) << (I[vi] & 1 | 2)) + (I[vi] ^ ~I[vi]) + (I[vi] >> 1)))")},
      {"Functions",
       Element(
           R"(T.sigmoid(A[vi]) + T.tanh(A[vi]) + T.fabs(A[vi]) + T.power(T.abs(A[vi]), T.float32(2)) + T.erf(A[vi], dtype="float32") + T.nearbyint(A[vi]) + T.log1p(T.abs(A[vi])))"),
       Element(
           R"(T.sigmoid(A[vi]) + T.tanh(A[vi]) + T.abs(A[vi]) + T.pow(T.abs(A[vi]), T.float32(2)) + T.erf(A[vi]) + T.nearbyint(A[vi]) + T.log1p(T.abs(A[vi])))")},
      {"LinesInBrackets", Element(R"((
                    A[vi]
                    + T.max(
                        A[0],  # the first
                        T.float32(0),
                    )
                ))"),
       Element(R"(A[vi] + T.max(A[0], T.float32(0)))")},
  };
}

std::vector<DialectProgram> Bodies() {
  return {
      {"SerialWithStart", Function(R"(
for i in T.serial(0, 16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi])"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi])")},
      {"LoopsByKeyword", Function(R"(
for i in T.parallel(start=0, stop=4, annotations=None):
    for j in T.unroll(0, 4, annotations={"pragma_unroll_explicit": 1}):
        with T.block("C"):
            vi = T.axis.spatial(16, i * 4 + j)
            C[vi] = A[vi])"),
       Function(R"(
for i in T.parallel(4):
    for j in T.unroll(4, annotations={"pragma_unroll_explicit": 1}):
        with T.block("C"):
            vi = T.axis.spatial(16, i * 4 + j)
            C[vi] = A[vi])")},
      {"ShortAxes", Function(R"(
for i, k in T.grid(8, 8):
    with T.block("C"):
        vi = T.axis.S(8, i)
        vk = T.axis.R((0, 8), k)
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + M[vi, vk])"),
       Function(R"(
for i, k in T.grid(8, 8):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + M[vi, vk])")},
      {"AxesByKeyword", Function(R"(
for i, j in T.grid(4, 4):
    with T.block(name_hint="C"):
        vi = T.axis.spatial(dom=16, binding=i * 4 + j, dtype="int32")
        T.reads([A[vi]])
        T.writes([C[vi]])
        C[vi] = A[vi])"),
       Function(R"(
for i, j in T.grid(4, 4):
    with T.block("C"):
        vi = T.axis.spatial(16, i * 4 + j)
        C[vi] = A[vi])")},
      {"RemapByKeyword", Function(R"(
for i, j in T.grid(8, 8):
    with T.block("C"):
        vi, vj = T.axis.remap(kinds="SO", bindings=[i, j])
        C[vi] = M[vi, vj])"),
       Function(R"(
for i, j in T.grid(8, 8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vj = T.axis.opaque(8, j)
        C[vi] = M[vi, vj])")},
      {"BlocksOf08WithBind", Function(R"(
for i, k in T.grid(8, 8):
    with T.block([8, T.reduce_axis(0, 8)], "C") as [vi, vk]:
        T.bind(vi, i)
        T.bind(vk, k)
        T.reads([M[vi, vk]])
        T.writes([C[vi]])
        with T.init():
            C[vi] = 0.0
        C[vi] = C[vi] + M[vi, vk])"),
       Function(R"(
for i, k in T.grid(8, 8):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + M[vi, vk])")},
      {"BlocksOf08InLoops", Function(R"(
for i, j in T.grid(8, 2):
    with T.block([8, 2], "C") as [vi, vj]:
        C[vi * 2 + vj] = M[vi, vj])"),
       Function(R"(
for i, j in T.grid(8, 2):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi * 2 + vj] = M[vi, vj])")},
      {"BlocksOf08WithoutLoops", Function(R"(
with T.block([16], "C") as vi:
    C[vi] = A[vi]
with T.block([8, T.range(2, 6)], "M") as [vi, vj]:
    M[vi, vj] = A[vi + vj])"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi]
for i in range(8):
    for j in T.serial(2, 6):
        with T.block("M"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial((2, 6), j)
            M[vi, vj] = A[vi + vj])")},
      {"OpaqueBlockOf08", Function(R"(
with T.block([4], "outer") as [vo]:
    with T.block([], "inner"):
        for i in T.serial(0, 4):
            C[vo * 4 + i] = A[vo * 4 + i])"),
       Function(R"(
for o in range(4):
    with T.block("outer"):
        vo = T.axis.spatial(4, o)
        with T.block("inner"):
            for i in range(4):
                C[vo * 4 + i] = A[vo * 4 + i])")},
      {"RootBlock", Function(R"(
with T.block("root"):
    T.reads([])
    T.writes([])
    for i in T.serial(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi])"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi])")},
      {"AllocBufferByKeyword", Function(R"(
X = T.alloc_buffer(shape=[16], dtype="float32", data=None, strides=[1], elem_offset=0, scope="global", align=64, offset_factor=1, buffer_type="default", axis_separators=[])
for i in range(16):
    with T.block("X"):
        vi = T.axis.spatial(16, i)
        X[vi] = A[vi]
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = X[vi])"),
       Function(R"(
X = T.alloc_buffer((16,), "float32")
for i in range(16):
    with T.block("X"):
        vi = T.axis.spatial(16, i)
        X[vi] = A[vi]
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = X[vi])")},
      {"SblockAllocBuffer", Function(R"(
X = T.sblock_alloc_buffer((16,), "float32", scope="local")
for i in range(16):
    with T.sblock("X"):
        vi = T.axis.spatial(16, i)
        T.sblock_attr({"a": 1})
        X[vi] = A[vi]
for i in range(16):
    with T.sblock("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = X[vi])"),
       Function(R"(
X = T.alloc_buffer((16,), "float32", scope="local")
for i in range(16):
    with T.block("X"):
        vi = T.axis.spatial(16, i)
        T.block_attr({"a": 1})
        X[vi] = A[vi]
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = X[vi])")},
      {"DeclBufferAllocates", Function(R"(
X = T.decl_buffer((16,), "float32")
for i in range(16):
    X[i] = A[i] + T.float32(1)
with T.decl_buffer([16], "float32", scope="local") as Y:
    for i in range(16):
        Y[i] = X[i] * X[i]
    for i in range(16):
        C[i] = Y[i])"),
       Function(R"(
X = T.alloc_buffer((16,), "float32")
Y = T.alloc_buffer((16,), "float32", scope="local")
for i in range(16):
    X[i] = A[i] + T.float32(1)
for i in range(16):
    Y[i] = X[i] * X[i]
for i in range(16):
    C[i] = Y[i])")},
      {"DeclBufferOfData", Function(R"(
flat = T.decl_buffer((64,), data=M.data)
M_1 = T.Buffer((4, 16), data=M.data)
A_1 = T.buffer_decl([16], dtype="float32", data=A.data)
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.reads(flat[vi * 3], M_1[2, vi], A_1[vi])
        T.writes(C[vi])
        C[vi] = flat[vi * 3] + M_1[2, vi] + A_1[vi])"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = M[vi * 3 // 8, vi * 3 % 8] + M[(32 + vi) // 8, (32 + vi) % 8] + A[vi])")},
      {"Allocate", Function(R"(
for o in range(2):
    X = T.allocate([8], "float32", "global")
    X_1 = T.decl_buffer((8,), data=X)
    for i in T.serial(0, 8):
        X_1[i] = A[o * 8 + i]
    with T.allocate([8], "float32", "local") as Y:
        for i in range(8):
            Y[i] = X[7 - i]
        for i in range(8):
            C[o * 8 + i] = Y[i])"),
       Function(R"(
X = T.alloc_buffer((8,), "float32")
Y = T.alloc_buffer((8,), "float32", scope="local")
for o in range(2):
    for i in range(8):
        X[i] = A[o * 8 + i]
    for i in range(8):
        Y[i] = X[7 - i]
    for i in range(8):
        C[o * 8 + i] = Y[i])")},
      {"MatchBufferOfRegion", Function(R"(
for o in range(2):
    with T.block("outer"):
        vo = T.axis.spatial(2, o)
        T.reads(M[vo * 4:vo * 4 + 4, 2:6])
        T.writes(C[vo * 4:vo * 4 + 4])
        X = T.match_buffer(M[vo * 4:vo * 4 + 4, 2:6], (4, 4), offset_factor=1)
        Y = T.match_buffer(M[vo, 0:8], (8,), "float32")
        Z = T.match_buffer(C[vo * 4:vo * 4 + 4], (4,), "float32", align=64)
        for i in range(4):
            with T.block("inner"):
                vi = T.axis.spatial(4, i)
                T.reads(X[vi, 1:3], Y[vi])
                T.writes(Z[vi])
                Z[vi] = X[vi, 1] + X[vi, 2] * Y[vi])"),
       Function(R"(
for o in range(2):
    with T.block("outer"):
        vo = T.axis.spatial(2, o)
        T.reads(M[vo * 4:vo * 4 + 4, 2:6])
        T.writes(C[vo * 4:vo * 4 + 4])
        for i in range(4):
            with T.block("inner"):
                vi = T.axis.spatial(4, i)
                T.reads(M[vo * 4 + vi, 3:5], M[vo, vi])
                T.writes(C[vo * 4 + vi])
                C[vo * 4 + vi] = M[vo * 4 + vi, 3] + M[vo * 4 + vi, 4] * M[vo, vi])")},
      {"Assertions", Function(R"(
T.Assert(16 == 16, "extents")
assert True, "nothing"
for i in range(16):
    with T.Assert(i < 16 and 0 <= i, message="the loop"):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi])"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi])")},
      {"Evaluate", Function(R"(
T.evaluate(0)
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi]
        T.evaluate(0))"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi])")},
      {"LetOf08", Function(R"(
x = T.var("float32")
y = T.var("int32")
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        with T.let(x, A[vi] * T.float32(2)):
            C[vi] = x + T.let(y, I[vi], T.Cast("float32", y * y)))"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        with T.LetStmt(A[vi] * T.float32(2)) as x:
            C[vi] = x + T.Let(T.Cast("float32", y * y), where={y: I[vi]}))")},
      {"LetsOfLaterReleases", Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        x: T.float32 = A[vi] * T.float32(2)
        y: T.let[T.int32] = I[vi]
        C[vi] = x + T.Cast("float32", y))"),
       Function(R"(
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        x = A[vi] * T.float32(2)
        y = I[vi]
        C[vi] = x + T.Cast("float32", y))")},
      {"NestedAttributes", Function(R"(
T.func_attr({"global_symbol": "f", "target": T.target({"kind": "llvm", "keys": ["cpu"], "host": {"kind": "c"}}), "op_attrs": {"name": "add", "axis": None, "inner": {"a": [1, 2]}}, "host": T.target("llvm -num-cores 4")})
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.block_attr({"layout": {"a": 1}})
        C[vi] = A[vi])"),
       Function(R"(
T.func_attr({"global_symbol": "f", "target": {"kind": "llvm", "keys": ["cpu"], "host": {"kind": "c"}}, "op_attrs": {"name": "add", "axis": None, "inner": {"a": [1, 2]}}, "host": "llvm -num-cores 4"})
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.block_attr({"layout": {"a": 1}})
        C[vi] = A[vi])")},
  };
}

std::vector<DialectProgram> Functions() {
  return {
      {"BufferInBrackets", R"(@T.prim_func
def f(A: T.Buffer[(4, 8), "float32"], B: T.Buffer[4, "float32"], C: T.Buffer[(4, 8), "float32"]) -> None:
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi]
)",
       R"(@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi]
)"},
      {"MatchBufferOfHandle", R"(@T.prim_func
def f(a: T.handle, c: T.handle("float32", "global")) -> None:
    A = T.match_buffer(a, [16], dtype="float32", elem_offset=0, align=128, offset_factor=1)
    C = T.match_buffer(param=c, shape=(16,), strides=[1])
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)",
       R"(@T.prim_func
def f(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)"},
      {"TirOf08", R"(@tvm.script.tir
def f(a: ty.handle, c: ty.handle) -> None:
    A = tir.match_buffer(a, [16])
    C = tir.match_buffer(c, [16])
    with tir.block([16], "C") as [vi]:
        C[vi] = A[vi]
)",
       R"(@T.prim_func
def f(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)"},
      {"PreflattenedBuffer", R"(@T.prim_func
def f(A: T.Buffer[16, "float32"], C: T.Buffer[16, "float32"]):
    T.func_attr({"from_legacy_te_schedule": True})
    T.preflattened_buffer(A, [4, 4], dtype="float32", data=A.data)
    T.preflattened_buffer(C, [4, 4], "float32", data=C.data)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)",
       R"(@T.prim_func
def f(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"from_legacy_te_schedule": True})
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)"},
      {"RankZero", R"(@T.prim_func
def f(A: T.Buffer((), "float32"), B: T.Buffer(1, "float32"), C: T.Buffer[(), "float32"]):
    with T.block("C"):
        T.reads(A[()], B[0])
        T.writes(C[()])
        C[()] = A[()] + B[0]
)",
       R"(@T.prim_func
def f(A: T.Buffer((), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((), "float32")):
    with T.block("C"):
        C[()] = A[()] + B[0]
)"},
      {"ModuleWithHeader", R"(# from tvm.script import tir as T
@tvm.script.ir_module
class Module:
    I.module_attrs({"runtime": None})
    @T.prim_func(private=True)
    def f(A: T.Buffer((T.int64(16),), "float32"), C: T.Buffer((T.int64(16),), "float32")):
        # function attr dict
        T.func_attr({"tir.noalias": T.bool(True)})
        # body
        # with T.block("root")
        for i in T.serial(T.int64(0), T.int64(16)):
            with T.block("C"):
                vi = T.axis.spatial(T.int64(16), i)
                C[vi] = A[vi]
)",
       R"(@T.prim_func
def f(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = A[vi]
)"},
  };
}

}  // namespace

std::vector<DialectProgram> DialectPrograms() {
  std::vector<DialectProgram> all = Expressions();
  for (const auto& part : {Bodies(), Functions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace tilefarm::testing
