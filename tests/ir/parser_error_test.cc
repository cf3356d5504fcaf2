// Malformed programs: each is InvalidArgument with position and reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/parser.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Case {
  const char* name;
  std::string text;
  const char* place;    // "line:column"
  const char* message;  // part of it
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.text; }

std::string Repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Puts `body` into a function whose body starts at line 3, column 5.
std::string Body(const std::string& body) { return WithBuffers(body); }

// Puts `body` into a block over a spatial v (0..8) and a reduction k (0..8),
// starting at line 6, column 13.
std::string Block(const std::string& body) {
  std::string out =
      "for i, j in T.grid(8, 8):\n"
      "    with T.block(\"b\"):\n"
      "        v, k = T.axis.remap(\"SR\", [i, j])\n";
  std::string line;
  for (char c : body + "\n") {
    line += c;
    if (c != '\n') continue;
    out += "        " + line;
    line.clear();
  }
  return WithBuffers(out);
}

std::string Header(const std::string& params) {
  return "@T.prim_func\ndef f(" + params + "):\n    pass\n";
}

std::string Nested(int depth) {
  std::string out = "@T.prim_func\ndef f(A: T.Buffer((4,))):\n";
  for (int i = 0; i < depth; ++i) {
    out += absl::StrCat(std::string(static_cast<size_t>(i) + 1, ' '), "for i",
                        i, " in range(2):\n");
  }
  return out + std::string(static_cast<size_t>(depth) + 1, ' ') + "A[0] = 1\n";
}

std::vector<Case> Cases() {
  return {
      // --- Text ---
      {"Empty", "", "1:1", "the program is empty"},
      {"OnlyComments", "# nothing\n\n  # here\n", "1:1",
       "the program is empty"},
      {"InvalidUtf8", "@T.prim_func\ndef f\xFF(A", "2:6", "invalid UTF-8"},
      {"TruncatedUtf8", "# caf\xC3", "1:6", "invalid UTF-8"},
      {"OverlongUtf8", "# \xC0\xAF", "1:3", "invalid UTF-8"},
      {"NulByte", std::string("@T.prim_func\n\0", 14), "2:1", "NUL byte"},
      {"NonAscii", "@T.prim_func\ndef f(\xC3\xA9: T.Buffer((4,))):\n", "2:7",
       "only ASCII"},
      {"ControlCharacter", "@T.prim_func\ndef f\x01", "2:6",
       "control character"},
      {"TabIndentation", "@T.prim_func\ndef f(A: T.Buffer((4,))):\n\tA[0] = 1",
       "3:1", "tab in the indentation"},
      {"StrayBackslash", Body("C[0] = \\ 1"), "3:12", "stray backslash"},
      {"StrayCharacter", Body("C[0] = $"), "3:12", "unexpected character '$'"},
      {"UnclosedString", Header("A: T.Buffer((4,), \"float32)"), "2:25",
       "never closed"},
      {"UnknownEscape", Body("T.func_attr({\"\\q\": 1})"), "3:19",
       "unknown escape"},
      {"MalformedNumber", Body("C[0] = 12abc"), "3:12", "malformed number"},
      {"LeadingZero", Body("C[0] = 012"), "3:12", "it starts with 0"},
      {"BinaryDigit", Body("C[0] = 0b12"), "3:12", "malformed number"},
      {"HugeInteger", Body("I[0] = 9223372036854775808"), "3:12",
       "does not fit in int64"},
      {"UnclosedBracket", Body("C[0 = 1"), "3:6",
       "this bracket is never closed"},
      {"UnclosedAtEnd", "@T.prim_func\ndef f(A: T.Buffer((4,)", "2:18",
       "never closed"},
      {"WrongClosing", Body("C[0) = 1"), "3:8", "')' closes a '['"},
      {"StrayClosing", Body("C[0] = 1)"), "3:13", "without an opening"},
      {"DeepBrackets",
       Body("C[0] = " + Repeat("(", 300) + "1" + Repeat(")", 300)), "3:212",
       "brackets nest deeper than 200"},
      {"DeepExpressions",
       Body("C[0] = A[0] " + Repeat("+ (A[0] ", 199) + Repeat(")", 199)),
       "3:1606", "nest deeper than 200"},
      {"DeepStatements", Nested(300), "203:202", "statements nest deeper"},
      {"DeepGrid",
       Body("for " + Repeat("i, ", 0) + "a in range(2):\n" + "    for " +
            Repeat("_, ", 250) + "_ in T.grid(" + Repeat("1, ", 250) +
            "1):\n        C[0] = 1"),
       "4:9", "statements nest deeper"},
      // --- Modules ---
      {"NoFunction", "@I.ir_module\nclass M:\n    pass\n", "4:1",
       "no @T.prim_func"},
      {"Statement", "x[0] = 1\n", "1:1",
       "expected @I.ir_module or @T.prim_func"},
      {"UnknownDecorator", "@R.function\ndef f():\n    pass\n", "1:1",
       "unknown decorator 'function'"},
      {"MissingDecorator", "def f(A: T.Buffer((4,))):\n    A[0] = 1\n", "1:1",
       "needs the decorator @T.prim_func"},
      {"ClassWithoutDecorator", "class M:\n    pass\n", "1:1",
       "needs the decorator @I.ir_module"},
      {"DecoratorWithoutDef", "@T.prim_func\nx = 1\n", "2:1", "expected def"},
      {"TwoFunctionsOneName",
       "@I.ir_module\nclass M:\n    @T.prim_func\n    def f(A: "
       "T.Buffer((4,))):\n        A[0] = 1\n    @T.prim_func\n    def f(A: "
       "T.Buffer((4,))):\n        A[0] = 1\n",
       "7:9", "two functions 'f'"},
      {"TypeVariable", "n = TypeVar(\"n\")\n", "1:1",
       "symbolic variables are not supported"},
      {"IndentedStart", "  @T.prim_func\n", "1:3", "unexpected indentation"},
      {"WrongDedent",
       "@T.prim_func\ndef f(A: T.Buffer((4,))):\n        A[0] = 1\n    A[1] = "
       "1\n",
       "4:5", "matches no outer line"},
      // --- Parameters and buffers ---
      {"ParameterWithoutType", Header("A"), "2:8", "expected ':'"},
      {"ParameterType", Header("A: float"), "2:10",
       "expected T.Buffer(...) or T.handle"},
      {"ScalarParameter", Header("n: T.int32"), "2:10", "scalar parameters"},
      {"UnmatchedHandle", Header("a: T.handle"), "2:5",
       "the handle 'a' has no T.match_buffer"},
      {"ParameterTwice", Header("A: T.Buffer((4,)), A: T.Buffer((4,))"), "2:26",
       "'A' is already defined"},
      {"DefaultValue", Header("A: T.Buffer((4,)) = 0"), "2:25",
       "no default values"},
      {"UnknownDtype", Header("A: T.Buffer((4,), \"float33\")"), "2:25",
       "unknown dtype 'float33'"},
      {"VectorDtype", Header("A: T.Buffer((4,), \"float32x4\")"), "2:25",
       "unknown dtype"},
      {"SymbolicShape", Header("A: T.Buffer((n, 4))"), "2:20",
       "shapes are static"},
      {"SymbolicVariable", Body("n = T.int32()"), "3:9", "symbolic"},
      {"ZeroDimension", Header("A: T.Buffer((0,))"), "2:20",
       "extents are at least 1"},
      {"NegativeDimension", Header("A: T.Buffer((-4,))"), "2:20",
       "extents are at least 1"},
      {"HugeBuffer", Header("A: T.Buffer((1 << 40, 1 << 40))"), "2:19",
       "buffer 'A' is too large"},
      {"HugeTotal",
       "@T.prim_func\ndef f(A: T.Buffer((1 << 32,))):\n" +
           std::string("    B = T.alloc_buffer((1 << 32,))\n    C = "
                       "T.alloc_buffer((1 << 32,))\n    D = "
                       "T.alloc_buffer((1 << 32,))\n    E = "
                       "T.alloc_buffer((1 << 32,))\n    A[0] = 1\n"),
       "2:5", "the limit is 68719476736"},
      {"ManyDimensions", Header("A: T.Buffer((" + Repeat("1, ", 17) + "))"),
       "2:19", "the limit is 16"},
      {"SymbolicStride", Header("A: T.Buffer((4, 4), strides=(s, 1))"), "2:36",
       "'s' is not a constant; strides are static"},
      {"StrideCount", Header("A: T.Buffer((4, 4), strides=(1,))"), "2:19",
       "has 2 dimensions and 1 strides"},
      {"NegativeStride", Header("A: T.Buffer((4, 4), strides=(-4, 1))"), "2:19",
       "negative stride"},
      {"NegativeOffset", Header("A: T.Buffer((4,), elem_offset=-1)"), "2:19",
       "negative elem_offset"},
      {"SymbolicOffset", Header("A: T.Buffer((4,), elem_offset=o)"), "2:37",
       "'o' is not a constant; offsets are static"},
      {"HugeStride", Header("A: T.Buffer((4,), strides=(1 << 62,))"), "2:19",
       "too large"},
      {"HugeOffset", Header("A: T.Buffer((4,), elem_offset=1 << 62)"), "2:19",
       "too large"},
      {"WriteToSharedElements",
       "@T.prim_func\ndef f(A: T.Buffer((4, 4), strides=(2, 1))):\n"
       "    A[0, 0] = 1\n",
       "2:5", "its strides let elements share memory"},
      {"StridesOfAnAllocation",
       Body("X = T.alloc_buffer((4,), \"float32\", strides=[2])"), "3:24",
       "has no strides"},
      {"DataOfAParameter", Header("A: T.Buffer((4,), data=A.data)"), "2:19",
       "is its caller's"},
      {"BroadcastBuffer",
       Header("A: T.Buffer((4,), buffer_type=\"auto_broadcast\")"), "2:37",
       "write the strides"},
      {"AxisSeparators", Header("A: T.Buffer((4, 4), axis_separators=[1])"),
       "2:43", "axis_separators are not supported"},
      {"FloatDimension", Header("A: T.Buffer((4.5,))"), "2:20",
       "must be a constant integer"},
      {"MatchOfNoHandle", Body("X = T.match_buffer(y, (4,))"), "3:24",
       "no T.handle parameter"},
      {"MatchOfRegionOfAnotherShape", Body("X = T.match_buffer(A[0:4], (5,))"),
       "3:32", "the region of 'A' is of float32 and has the extents (4)"},
      {"MatchOfRegionOfAnotherType",
       Body("X = T.match_buffer(A[0:4], (4,), \"int32\")"), "3:32",
       "the region of 'A' is of float32"},
      {"MatchOfRegionWithStrides",
       Body("X = T.match_buffer(A[0:4], (4,), strides=[1])"), "3:32",
       "are those of its buffer"},
      {"AllocInLoop", Body("for i in range(4):\n    X = T.alloc_buffer((4,))"),
       "4:9", "belongs directly in a block"},
      {"BufferWithoutData", Body("X = T.Buffer((4,), \"float32\")"), "3:18",
       "T.Buffer in a body needs data="},
      {"ViewTooLarge", Body("X = T.decl_buffer((17,), data=A.data)"), "3:23",
       "'X' reaches over 17 elements, but 'A' has 16"},
      {"ViewOfAnotherType",
       Body("X = T.decl_buffer((4,), \"int32\", data=A.data)"), "3:23",
       "cannot name elements of float32"},
      {"ViewOfAView",
       Body("X = T.decl_buffer((4,), data=A.data)\n"
            "Y = T.decl_buffer((2,), data=X.data)"),
       "4:34", "not dense memory of its own"},
      {"ViewOfNoBuffer", Body("X = T.decl_buffer((4,), data=Z.data)"), "3:34",
       "'Z' is no buffer"},
      {"ViewWithALoadedIndex",
       Body("X = T.decl_buffer((64,), data=M.data)\nC[0] = X[I[0]]"), "4:13",
       "an index of 'X' reads a buffer"},
      {"SymbolicVariableInAShape",
       Body("n = T.var(\"int32\")\nX = T.alloc_buffer((n,))"), "4:25",
       "symbolic variable"},
      {"SymbolicVariableAsValue", Body("n = T.var(\"float32\")\nC[0] = n"),
       "4:12", "symbolic variable without a value"},
      {"AssertionOfData", Body("T.Assert(I[0] > 0, \"positive\")"), "3:5",
       "not seen to hold"},
      {"AssertionThatFails", Body("for i in range(4):\n    assert i < 3"),
       "4:9", "not seen to hold"},
      {"LaunchThread", Body("T.launch_thread(0, 64)"), "3:5",
       "'T.launch_thread' exists in lowered code only"},
      {"AttributeStatement",
       Body("with T.attr(0, \"pragma\", 1):\n    C[0] = 1"), "3:10",
       "'T.attr' exists in lowered code only"},
      {"EnvThread", Body("tx = T.env_thread(\"threadIdx.x\")"), "3:10",
       "'T.env_thread' exists in lowered code only"},
      {"CallTir", Body("R.call_tir(A)"), "3:5", "calls of code outside"},
      {"TvmIntrinsic", Body("T.evaluate(T.tvm_storage_sync(\"shared\"))"),
       "3:16", "calls of code outside"},
      {"Return", Body("return C"), "3:5", "'return' is not part"},
      // --- Names and accesses ---
      {"UnknownName", Body("C[0] = x"), "3:12", "unknown name 'x'"},
      {"UnknownBuffer", Body("X[0] = 1"), "3:5", "unknown buffer 'X'"},
      {"UnknownModule", Body("C[0] = np.exp(A[0])"), "3:12",
       "unknown name 'np'"},
      {"UnknownFunction", Body("C[0] = T.frobnicate(A[0])"), "3:12",
       "unknown function 'T.frobnicate'"},
      {"ExternCall", Body("T.call_extern(\"int32\", \"puts\", 1)"), "3:5",
       "outside the program"},
      {"PackedCall", Body("C[0] = T.call_packed(\"f\", 1)"), "3:12",
       "outside the program"},
      {"PragmaImport",
       Body("for i in T.serial(4, annotations={\"pragma_import_llvm\": "
            "\"x\"}):\n    C[i] = 1"),
       "3:39", "imports of code"},
      {"MachineOp", Body("C[0] = T.lane_sum(A[0])"), "3:12",
       "unknown function 'T.lane_sum'"},
      {"LoweredNode", Body("C[0] = T.Ramp(0, 1, 4)"), "3:12",
       "lowered code only"},
      {"BufferAsValue", Body("C[0] = A"), "3:12", "'A' is a buffer"},
      {"TooManyIndices", Body("C[0, 1] = 1"), "3:6",
       "'C' has 1 dimension, but there are 2 indices"},
      {"TooFewIndices", Body("C[0] = M[1]"), "3:13",
       "'M' has 2 dimensions, but there is 1 index"},
      {"IndexOutOfBounds", Body("C[16] = 1"), "3:7",
       "index 16 is out of bounds: dimension 0 of 'C' has extent 16"},
      {"NegativeIndex", Body("C[0] = M[0, -1]"), "3:17",
       "index -1 is out of bounds"},
      {"FloatIndex", Body("C[A[0]] = 1"), "3:7", "the index has dtype float32"},
      {"Slice", Body("C[0:4] = 1"), "3:8", "a slice is no element"},
      {"ReservedName", Body("T = A[0]"), "3:5", "reserved name"},
      {"NameTwice",
       Body("for i in range(4):\n    for i in range(4):\n        "
            "C[i] = 1"),
       "4:13", "'i' is already defined"},
      {"Reassignment", Body("x = A[0]\nx = A[1]"), "4:5",
       "variables are assigned once"},
      {"AugmentedVariable", Body("x = A[0]\nx += A[1]"), "4:5",
       "variables are assigned once"},
      {"OutOfScope", Body("for i in range(4):\n    C[i] = 1\nC[i] = 2"), "5:7",
       "unknown name 'i'"},
      // --- Expressions ---
      {"MissingOperand", Body("C[0] = A[0] +"), "3:18",
       "expected an expression, found the end of the line"},
      {"DtypeMismatch", Body("C[0] = A[0] + I[0]"), "3:17",
       "operands of dtypes float32 and int32; write T.Cast(\"float32\""},
      {"StoreMismatch", Body("C[0] = I[0]"), "3:10",
       "has dtype int32, not float32; write T.Cast(\"float32\""},
      {"StoreFloatToInt", Body("I[0] = A[0]"), "3:10",
       "write T.Cast(\"int32\""},
      {"FractionToInt", Body("I[0] = 0.5"), "3:10",
       "a float literal is no int32"},
      {"FloatLiteralMeetsInt", Body("I[0] = I[1] * 0.5"), "3:17",
       "a float literal meets int32"},
      {"LiteralTooLarge", Body("I[0] = 3000000000"), "3:10",
       "does not fit in int32"},
      {"TrueDivisionOfInts", Body("I[0] = I[1] / 2"), "3:17",
       "write // (floor) or T.truncdiv"},
      {"BitsOfFloats", Body("C[0] = A[0] & A[1]"), "3:17",
       "'&' needs integers, not float32"},
      {"DivisionByZero", Body("I[0] = I[1] % 0"), "3:17", "division by zero"},
      {"Overflow", Body("I[0] = 9223372036854775807 + 1"), "3:32",
       "does not fit in int64"},
      {"ShiftTooFar", Body("I[0] = I[1] << 32"), "3:17",
       "shift of int32 by 32"},
      {"AndOfNumbers", Body("if A[0] > 0 and I[0]:\n    C[0] = 1"), "3:17",
       "'and' needs bool operands, not int32"},
      {"NotOfNumber", Body("if not I[0]:\n    C[0] = 1"), "3:8",
       "'not' needs a bool"},
      {"ConditionNotBool", Body("if I[0]:\n    C[0] = 1"), "3:8",
       "not bool; compare with 0"},
      {"ExpOfInt", Body("C[0] = T.exp(I[0])"), "3:12",
       "T.exp of int32; write T.Cast"},
      {"DtypeOfAnotherType", Body("C[0] = T.exp(A[0], dtype=\"float64\")"),
       "3:30", "T.exp gives float32 here, not float64"},
      {"UnknownKeyword", Body("C[0] = T.exp(q=A[0])"), "3:18",
       "takes no argument 'q'"},
      {"OperandTwice", Body("C[0] = T.max(A[0], a=A[1])"), "3:24",
       "takes no argument 'a'"},
      {"MissingOperandByKeyword", Body("C[0] = T.max(b=A[1])"), "3:12",
       "takes 2 arguments, not 1"},
      {"ArgumentCount", Body("C[0] = T.exp(A[0], A[1])"), "3:12",
       "T.exp takes 1 argument, not 2"},
      {"SelectCondition", Body("C[0] = T.Select(I[0], 1, 2)"), "3:12",
       "the condition has dtype int32, not bool"},
      {"ConditionalExpression", Body("C[0] = 1 if A[0] > 0 else 2"), "3:14",
       "write T.if_then_else"},
      {"StringValue", Body("C[0] = \"x\""), "3:12", "a string is no value"},
      {"Tuple", Body("C[0] = (1, 2)"), "3:14", "a tuple is no value"},
      {"ComplementOfFloat", Body("C[0] = ~A[1]"), "3:12",
       "'~' needs an integer"},
      {"CastToUnknown", Body("C[0] = T.Cast(\"float\", I[0])"), "3:19",
       "unknown dtype 'float'"},
      {"ReinterpretOfAnotherWidth",
       Body("C[0] = T.reinterpret(\"float32\", T.Cast(\"int8\", I[0]))"),
       "3:12", "reads int8 as float32: it takes integers and floats of one"},
      {"ReinterpretOfHalfs",
       Body("I[0] = T.Cast(\"int32\", T.reinterpret(\"int16\", "
            "T.Cast(\"float16\", A[0])))"),
       "3:28", "16-bit floats have no bits here"},
      {"ReinterpretOfBools",
       Body("I[0] = T.Cast(\"int32\", T.reinterpret(\"uint8\", A[0] > 0))"),
       "3:28", "reads bool as uint8"},
      {"TrailingTokens", Body("C[0] = 1 2"), "3:14",
       "expected the end of the line, found '2'"},
      {"ChainedAssignment", Body("C[0] = C[1] = 1"), "3:17",
       "one assignment a line"},
      // --- Statements ---
      {"While", Body("while True:\n    C[0] = 1"), "3:5",
       "'while' is not part"},
      {"NestedFunction", Body("def g():\n    pass"), "3:5",
       "'def' is not part"},
      {"MissingColon", Body("for i in range(4)\n    C[i] = 1"), "3:22",
       "expected ':' before the body"},
      {"MissingBody", Body("for i in range(4):\nC[0] = 1"), "4:5",
       "expected an indented body"},
      {"UnexpectedIndentation", Body("C[0] = 1\n    C[1] = 1"), "4:9",
       "unexpected indentation"},
      {"UnknownLoop", Body("for i in T.dance(4):\n    C[i] = 1"), "3:14",
       "unknown loop 'dance'"},
      {"LoopOverList", Body("for i in [1, 2]:\n    C[i] = 1"), "3:14",
       "expected range(...), T.grid(...)"},
      {"GridCount", Body("for i, j in T.grid(4):\n    C[i] = 1"), "3:9",
       "2 loop variables for 1 extent"},
      {"EmptyLoop", Body("for i in range(0):\n    C[i] = 1"), "3:14",
       "extent 0"},
      {"HugeExtent", Body("for i in range(1 << 62):\n    C[0] = 1"), "3:14",
       "it must be from 1 to"},
      {"LoopStep", Body("for i in range(0, 8, 2):\n    C[i] = 1"), "3:14",
       "the step is 1"},
      {"SymbolicExtent", Body("for i in range(n):\n    C[i] = 1"), "3:20",
       "loop bounds are constants"},
      {"DataDependentExtent", Body("for i in range(I[0]):\n    C[i] = 1"),
       "3:20", "a buffer element is not a constant; loop bounds"},
      {"UnboundedExtent",
       Body("for i in range(4):\n    for j in range(i * i):\n        C[j] = 1"),
       "4:18", "no constant bounds of i * i are known"},
      {"VaryingStart",
       Body("for i in range(4):\n    for j in range(i, 4):\n        C[j] = 1"),
       "4:18", "a loop starts at a constant"},
      {"ThreadWithoutTag", Body("for i in T.thread_binding(4):\n    C[i] = 1"),
       "3:14", "needs thread="},
      {"UnknownThread",
       Body("for i in T.thread_binding(4, thread=\"warp\"):\n    C[i] = 1"),
       "3:41", "unknown thread axis 'warp'"},
      {"WithFile", Body("with open(1):\n    pass"), "3:10",
       "'with open' is not part"},
      {"LonelyExpression", Body("x = A[0]\nx"), "4:5",
       "an expression alone does nothing"},
      // --- Blocks ---
      {"InitWithoutReduction",
       Body("for i in range(4):\n    with T.block(\"b\"):\n        v = "
            "T.axis.spatial(4, i)\n        with T.init():\n            C[v] = "
            "0\n        C[v] = 1"),
       "6:13", "which has no T.axis.reduce"},
      {"TwoInits",
       Block("with T.init():\n    C[v] = 0\nwith T.init():\n    "
             "C[v] = 0"),
       "8:13", "two T.init"},
      {"InitOutside", Body("with T.init():\n    C[0] = 0"), "3:5",
       "which has no T.axis.reduce"},
      {"AxisOutside", Body("v = T.axis.spatial(4, 0)"), "3:9",
       "belongs in a T.block"},
      {"AxisInLoop", Block("for l in range(2):\n    w = T.axis.spatial(2, l)"),
       "7:21", "belongs directly in a block"},
      {"UnknownAxis", Block("w = T.axis.diagonal(4, i)"), "6:17",
       "unknown axis 'T.axis.diagonal'"},
      {"AxisExtent", Block("w = T.axis.spatial(0, i)"), "6:32",
       "axis 'w' has extent 0"},
      {"AxisOfAxis", Block("w = T.axis.spatial(4, v)"), "6:35",
       "bound to loops, not to other axes"},
      {"FloatBinding", Block("w = T.axis.spatial(4, A[0])"), "6:35",
       "the binding has dtype float32"},
      {"RemapKind",
       Body("for i in range(4):\n    with T.block(\"b\"):\n        v = "
            "T.axis.remap(\"X\", [i])\n        C[v] = 1"),
       "5:30", "axis kind 'X'"},
      {"RemapCount",
       Body("for i in range(4):\n    with T.block(\"b\"):\n        v = "
            "T.axis.remap(\"SS\", [i])\n        C[v] = 1"),
       "5:30", "2 axis kinds for 1 variables"},
      {"RemapOfNoLoop",
       Body("for i in range(4):\n    with T.block(\"b\"):\n        v = "
            "T.axis.remap(\"S\", [q])\n        C[v] = 1"),
       "5:36", "'q' is no loop variable"},
      {"LoopVariableInBlock", Block("C[v] = A[i]"), "6:22",
       "loop variable 'i' used inside block \"b\""},
      {"TwoReads", Block("T.reads(A[v])\nT.reads(B[v])\nC[v] = A[v]"), "7:20",
       "two T.reads"},
      {"ReadsOfNoBuffer", Block("T.reads(X[v])\nC[v] = 1"), "6:21",
       "'X' is no buffer"},
      {"ReadsRank", Block("T.reads(M[v])\nC[v] = 1"), "6:21",
       "'M' has 2 dimensions, but the region has 1"},
      {"RegionOutOfBounds", Block("T.reads(A[0:17])\nC[v] = 1"), "6:25",
       "index 17 is out of bounds"},
      {"RegionStartOutOfBounds", Block("T.writes(C[16])\nC[v] = 1"), "6:24",
       "index 16 is out of bounds"},
      {"EmptyRegion", Block("T.reads(A[v:v])\nC[v] = 1"), "6:23",
       "the region is empty"},
      {"RegionStep", Block("T.reads(A[0:8:2])\nC[v] = 1"), "6:26",
       "regions have no step"},
      {"WhereNotBool", Block("T.where(i)\nC[v] = 1"), "6:21",
       "the predicate has dtype int64"},
      {"WhereOfAxis", Block("T.where(v < 4)\nC[v] = 1"), "6:21",
       "in terms of the loops"},
      {"DeepAttributeMap",
       Block("T.block_attr({\"a\": " + Repeat("{\"b\": ", 17) + "1" +
             Repeat("}", 17) + "})"),
       "6:134", "nest too deep"},
      {"DimAlignNoList", Block("T.block_attr({\"buffer_dim_align\": 3})"),
       "2:5", "block b: buffer_dim_align must be a list"},
      {"DimAlignFactorZero",
       Block("T.block_attr({\"buffer_dim_align\": [[0, 0, 0, 8]]})"), "2:5",
       "the factor positive"},
      {"AttributeTwice", Block("T.block_attr({\"a\": 1, \"a\": 2})"), "6:35",
       "attribute 'a' given twice"},
      {"AttributeVariable", Block("T.block_attr({\"a\": v})"), "6:32",
       "attributes are constants"},
      {"FuncAttrInBlock", Block("T.func_attr({\"a\": 1})"), "6:13",
       "belongs at the start of the function"},
      {"OldBlockNames",
       Body("with T.block([4, 4], \"b\") as [vi]:\n    C[vi] = 1"), "3:34",
       "1 names for 2 block variables"},
      {"OldBlockLoops",
       Body("for i in range(4):\n    with T.block([4, 4], \"b\") as [vi, vj]:\n"
            "        C[vi] = 1"),
       "4:9", "2 of 2 block variables have no T.bind"},
      {"OldBlockHalfBound",
       Body("with T.block([4, 4], \"b\") as [vi, vj]:\n    T.bind(vi, 0)\n"
            "    C[vi] = 1"),
       "3:5", "1 of 2 block variables have no T.bind"},
      {"BindTwice",
       Body("with T.block([4], \"b\") as vi:\n    T.bind(vi, 0)\n"
            "    T.bind(vi, 1)"),
       "5:16", "'vi' is bound twice"},
      {"BindOfALoop",
       Body("for i in range(4):\n    with T.block([4], \"b\") as vi:\n"
            "        T.bind(i, 0)"),
       "5:20", "'i' is no variable of the block"},
      {"OldBlockExtent", Body("with T.block([0], \"b\") as vi:\n    C[vi] = 1"),
       "3:19", "has extent 0"},
      {"RootAfterOthers",
       Body("C[0] = 1\nwith T.block(\"root\"):\n    C[1] = 1"), "4:5",
       "must hold the whole function"},
  };
}

class MalformedProgram : public ::testing::TestWithParam<Case> {};

TEST_P(MalformedProgram, IsAClearErrorAtItsPlace) {
  const Case& c = GetParam();
  const absl::Status status = ParseModule(c.text, "bad.py").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message,
              StartsWith(absl::StrCat("bad.py:", c.place, ": error: ")));
  const size_t first_line = message.find('\n');
  ASSERT_NE(first_line, std::string::npos) << message;
  EXPECT_THAT(message.substr(0, first_line), HasSubstr(c.message));
  // The wrong line and a caret below the column.
  const size_t second_line = message.find('\n', first_line + 1);
  ASSERT_NE(second_line, std::string::npos) << message;
  const std::string caret = message.substr(second_line + 1);
  ASSERT_FALSE(caret.empty());
  EXPECT_EQ(caret, std::string(caret.size() - 1, ' ') + "^");
  EXPECT_LT(message.size(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(All, MalformedProgram, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(ParserErrors, ShowTheLineAndTheCaret) {
  EXPECT_EQ(ParseModule("@T.prim_func\n"
                        "def f(A: T.Buffer((4,))):\n"
                        "    A[0] = q + 1\n",
                        "x.py")
                .status()
                .message(),
            "x.py:3:12: error: unknown name 'q'\n"
            "    A[0] = q + 1\n"
            "           ^");
}

TEST(ParserErrors, ColumnsCountCodePoints) {
  const absl::Status status = ParseModule(
                                  "@T.prim_func\ndef f(A: T.Buffer((4,))):\n"
                                  "    T.func_attr({\"\xC3\xA9\": q})\n",
                                  "x.py")
                                  .status();
  EXPECT_THAT(std::string(status.message()), StartsWith("x.py:3:23:"));
}

TEST(ParserErrors, HugeTextIsRefusedBySize) {
  const std::string text(100 << 20, '(');
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = ParseModule(text, "big.py").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has 104857600 bytes; the limit is 4194304"));
  EXPECT_LT(status.message().size(), 400u);
  std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                             start)
                   .count()
            << " s\n";
}

TEST(ParserErrors, LimitsAreTheCallers) {
  Limits limits;
  limits.max_loops = 1;
  const std::string text =
      WithBuffers("for i, j in T.grid(4, 4):\n    M[i, j] = 0");
  EXPECT_TRUE(ParseModule(text).ok());
  EXPECT_THAT(std::string(ParseModule(text, "f", limits).status().message()),
              HasSubstr("3:5: error: the function has more than 1 loops"));
  limits = {};
  limits.max_nodes = 5;
  EXPECT_THAT(std::string(ParseModule(text, "f", limits).status().message()),
              HasSubstr("more than 5 nodes"));
  limits = {};
  limits.max_functions = 0;
  EXPECT_FALSE(ParseModule(text, "f", limits).ok());
}

}  // namespace
}  // namespace tilefarm::ir
