#include "compiler/ir/structural.h"

#include <gtest/gtest.h>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/printer.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

constexpr char kMatmul[] = R"(
@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.func_attr({"global_symbol": "matmul", "tir.noalias": True})
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// Other names, comments, int64 spellings, no regions, old syntax.
constexpr char kSameMatmul[] = R"(
@tvm.script.ir_module
class Module:
    @T.prim_func(private=True)
    def main(x: T.Buffer[(16, 16), "float32"], y: T.handle, out: T.Buffer((T.int64(16), T.int64(16)))):
        # a comment
        T.func_attr({"op_pattern": 4, "tirx.noalias": True})
        w = T.match_buffer(y, (16, 16))
        for n in range(T.int64(16)):
            for m, r in T.grid(T.int64(16), T.int64(16)):
                with T.sblock("conv"):
                    a = T.axis.spatial(T.int64(16), n)
                    b = T.axis.spatial(16, m)
                    c = T.axis.reduce(16, r)
                    T.sblock_attr({"axis": 1})
                    with T.init():
                        out[a, b] = 0
                    out[a, b] += x[a, c] * w[c, b]
)";

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(WorkloadHash, IgnoresNamesCommentsSpellingsAndRegions) {
  const PrimFuncPtr a = ParseOrDie(kMatmul);
  const PrimFuncPtr b = ParseOrDie(kSameMatmul);
  EXPECT_EQ(Print(*Canonicalize(*a)), Print(*Canonicalize(*b)));
  EXPECT_EQ(WorkloadHash(*a), WorkloadHash(*b));
  EXPECT_TRUE(StructuralEqual(*Canonicalize(*a), *Canonicalize(*b)));
  EXPECT_EQ(WorkloadHash(*a).size(), 64u);
}

TEST(WorkloadHash, IsTheSameEverywhere) {
  // A change here changes the identity of every workload of every database.
  EXPECT_EQ(WorkloadHash(*ParseOrDie(kMatmul)),
            "2c65b1932d559c25dff5da7e472c49f42bdb505de3de4915e09890ca70b42e99");
}

TEST(WorkloadHash, DiffersWhereTheComputationDoes) {
  const std::string base = WorkloadHash(*ParseOrDie(kMatmul));
  const std::pair<const char*, const char*> kChanges[] = {
      {"* B", "+ B"},
      {"T.float32(0)", "T.float32(1)"},
      {"A[vi, vk] *", "A[vk, vi] *"},
      {"\"SSR\"", "\"SRS\""},
      {"A: T.Buffer((16, 16), \"float32\"), B",
       "A: T.Buffer((16, 17), "
       "\"float32\"), B"},
      {"\"tir.noalias\": True", "\"layout_free_buffers\": [1]"},
      {"\"tir.noalias\": True", "\"tilefarm.results_are_read\": 1"},
      {"\"tir.noalias\": True", "\"tilefarm.cold_constants\": 1"},
      {"T.grid(16, 16, 16)", "T.grid(16, 16, 8)"}};
  for (const auto& [from, to] : kChanges) {
    const std::string text = Replaced(kMatmul, from, to);
    EXPECT_NE(WorkloadHash(*ParseOrDie(text)), base) << from << " -> " << to;
  }
}

TEST(WorkloadHash, CanonicalFormIsAFixedPoint) {
  const PrimFuncPtr once = Canonicalize(*ParseOrDie(kMatmul));
  const PrimFuncPtr again = Canonicalize(*once);
  EXPECT_EQ(Print(*once), Print(*again));
  const PrimFuncPtr parsed = ParseOrDie(Print(*once));
  EXPECT_EQ(Print(*parsed), Print(*once));
  EXPECT_EQ(once->name, "main");
}

TEST(ProgramHash, KeepsNamesApart) {
  const PrimFuncPtr a = ParseOrDie(kMatmul);
  const PrimFuncPtr b =
      ParseOrDie(Replaced(kMatmul, "T.block(\"C\")", "T.block(\"D\")"));
  EXPECT_NE(ProgramHash(*a), ProgramHash(*b));
  EXPECT_EQ(WorkloadHash(*a), WorkloadHash(*b));
}

TEST(StructuralEqual, BindingStructureNotNames) {
  const PrimFuncPtr a =
      ParseOrDie(WithBuffers("for i, j in T.grid(8, 8):\n    M[i, j] = A[i]"));
  const PrimFuncPtr renamed =
      ParseOrDie(WithBuffers("for y, x in T.grid(8, 8):\n    M[y, x] = A[y]"));
  const PrimFuncPtr swapped =
      ParseOrDie(WithBuffers("for i, j in T.grid(8, 8):\n    M[i, j] = A[j]"));
  const PrimFuncPtr other_buffer =
      ParseOrDie(WithBuffers("for i, j in T.grid(8, 8):\n    M[i, j] = B[i]"));
  EXPECT_TRUE(StructuralEqual(*a, *renamed));
  EXPECT_FALSE(StructuralEqual(*a, *swapped));
  EXPECT_FALSE(StructuralEqual(*a, *other_buffer));
}

TEST(StructuralEqual, FreeVariablesByPointer) {
  const Var x = MakeVar("x");
  const Var y = MakeVar("x");
  EXPECT_TRUE(StructuralEqual(Expr(x) + 1, Expr(x) + 1));
  EXPECT_FALSE(StructuralEqual(Expr(x) + 1, Expr(y) + 1));
  EXPECT_FALSE(StructuralEqual(Expr(x) + 1, Expr(x) + 2));
  EXPECT_FALSE(StructuralEqual(FloatConst(0.0, DataType::Float(32)),
                               FloatConst(-0.0, DataType::Float(32))));
}

TEST(StructuralEqual, MachineOpsByOperationAndArguments) {
  const Buffer a = MakeBuffer("A", DataType::Float(32), {16});
  const auto reduced = [&](MachineOp op, int64_t first) {
    return MakeMachineOp(
        op, {Load(a, {MakeRamp(IntConst(first), IntConst(1), 8)})});
  };
  const Expr sum = reduced(MachineOp::kLaneSum, 0);
  EXPECT_TRUE(StructuralEqual(sum, reduced(MachineOp::kLaneSum, 0)));
  EXPECT_FALSE(StructuralEqual(sum, reduced(MachineOp::kLaneMax, 0)));
  EXPECT_FALSE(StructuralEqual(sum, reduced(MachineOp::kLaneSum, 8)));
}

TEST(StructuralEqual, LoopKindsAndAnnotationsCount) {
  const std::string loop = "for i in T.serial(8):\n    C[i] = A[i]";
  const PrimFuncPtr serial = ParseOrDie(WithBuffers(loop));
  EXPECT_FALSE(StructuralEqual(
      *serial, *ParseOrDie(WithBuffers(Replaced(loop, "serial", "parallel")))));
  EXPECT_FALSE(StructuralEqual(
      *serial, *ParseOrDie(WithBuffers(Replaced(
                   loop, "(8)", "(8, annotations={\"pragma_unroll\": 1})")))));
}

}  // namespace
}  // namespace tilefarm::ir
