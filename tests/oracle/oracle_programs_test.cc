// Two tables of programs on which the oracle is compared with the interpreter:
// exact ones bit for bit, floats within the oracle's own bounds, which must be
// small.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/oracle/oracle.h"
#include "tests/oracle/oracle_test_support.h"

namespace tilefarm::testing {
namespace {

struct Program {
  const char* name;
  const char* parameters;
  const char* body;
};

// Integers and data movement: all results are exact.
constexpr Program kExact[] = {
    {"integers_wrap_in_their_width",
     R"(A: T.Buffer((64,), "int8"), B: T.Buffer((64,), "int8"), C: T.Buffer((64,), "uint8"), D: T.Buffer((64,), "int32"), E: T.Buffer((64,), "int64"))",
     R"(
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.int8(77) + T.int8(100)
            C[vi] = T.Cast("uint8", A[vi]) * T.uint8(3) - T.uint8(200)
            D[vi] = T.Cast("int32", A[vi]) * 123456789 * T.int32(17)
            E[vi] = T.Cast("int64", A[vi]) * T.int64(9223372036854775807) + T.int64(5)
)"},
    {"quotients_floor",
     R"(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32"), D: T.Buffer((64,), "int32"), E: T.Buffer((64,), "int32"))",
     R"(
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] // 7 + A[vi] // -3
            C[vi] = A[vi] % 7 * 100 + A[vi] % -3
            D[vi] = T.truncdiv(A[vi], 7) * 100 + T.truncmod(A[vi], 7)
            E[vi] = T.shift_right(A[vi], 2) + T.bitwise_and(A[vi], 12) - T.bitwise_xor(A[vi], 3)
)"},
    {"padding_is_read_only_where_it_is",
     R"(A: T.Buffer((5, 6), "float32"), B: T.Buffer((9, 9), "float32"))",
     R"(
    for i, j in T.grid(9, 9):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(2 <= vi and vi < 7 and 1 <= vj and vj < 7, A[vi - 2, vj - 1], T.float32(0))
)"},
    {"predicates_lets_and_ifs",
     R"(A: T.Buffer((29,), "int32"), B: T.Buffer((29,), "int32"))",
     R"(
    for i, j in T.grid(4, 8):
        with T.block("B"):
            T.where(i * 8 + j < 29)
            vi = T.axis.spatial(29, i * 8 + j)
            x = A[vi] * 3
            if x > 5:
                B[vi] = x
            else:
                B[vi] = T.Select(x < -5, x - 1, 7)
)"},
    {"init_of_the_first_iteration",
     R"(A: T.Buffer((6, 10), "int32"), C: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"))",
     R"(
    for k, i in T.grid(12, 6):
        with T.block("B"):
            T.where(k < 10)
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(10, k)
            with T.init():
                B[vi] = C[vi] * 2
            B[vi] = B[vi] + A[vi, vk]
)"},
    {"ranges_that_do_not_begin_at_zero",
     R"(A: T.Buffer((12, 12), "int32"), B: T.Buffer((12,), "int32"))",
     R"(
    for i in range(12):
        with T.block("zero"):
            vi = T.axis.spatial(12, i)
            B[vi] = 0
    for i, k in T.grid(7, 5):
        with T.block("B"):
            vi = T.axis.spatial((3, 10), i + 3)
            vk = T.axis.reduce((2, 7), k + 2)
            with T.init():
                B[vi] = 100
            B[vi] = B[vi] + A[vi, vk]
)"},
    {"allocations_of_each_iteration",
     R"(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32"))",
     R"(
    for i in range(4):
        with T.block("outer"):
            vi = T.axis.spatial(4, i)
            S = T.alloc_buffer((8,), "int32")
            for j in range(8):
                with T.block("S"):
                    vj = T.axis.spatial(8, j)
                    S[vj] = A[vi, 7 - vj]
            for j in range(8):
                with T.block("B"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = S[vj] + S[(vj + 3) % 8]
)"},
    {"rank_zero",
     R"(A: T.Buffer((), "int32"), B: T.Buffer((5,), "int32"), C: T.Buffer((), "int32"))",
     R"(
    for k in range(5):
        with T.block("C"):
            vk = T.axis.reduce(5, k)
            with T.init():
                C[()] = A[()]
            C[()] = C[()] + B[vk]
)"},
    {"bools",
     R"(A: T.Buffer((40,), "int32"), M: T.Buffer((40,), "bool"), B: T.Buffer((40,), "bool"), C: T.Buffer((40,), "int32"))",
     R"(
    for i in range(40):
        with T.block("B"):
            vi = T.axis.spatial(40, i)
            B[vi] = M[vi] and A[vi] > 0 or not M[vi] and A[vi] < -10
            C[vi] = T.Select(M[vi], A[vi], T.Cast("int32", M[vi]))
)"},
    {"overlapping_writes_in_order",
     R"(A: T.Buffer((30,), "int32"), B: T.Buffer((10,), "int32"))",
     R"(
    for i in range(30):
        with T.block("B"):
            vi = T.axis.opaque(30, i)
            B[vi // 3] = A[vi]
)"},
    {"one_element_for_several_spatial_instances",
     R"(A: T.Buffer((4, 6), "int32"), B: T.Buffer((2,), "int32"))",
     R"(
    for i, k in T.grid(4, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi // 2] = 0
            B[vi // 2] = B[vi // 2] + A[vi, vk]
)"},
    {"in_place", R"(A: T.Buffer((33,), "int32"))",
     R"(
    for i in range(33):
        with T.block("A"):
            vi = T.axis.spatial(33, i)
            A[vi] = A[vi] * 3 - 1
)"},
    {"scan", R"(A: T.Buffer((33,), "int32"), B: T.Buffer((33,), "int32"))",
     R"(
    for i in range(33):
        with T.block("B"):
            vi = T.axis.opaque(33, i)
            B[vi] = A[vi] + T.if_then_else(vi > 0, B[vi - 1], 0)
)"},
    {"int8_products",
     R"(A: T.Buffer((9, 40), "int8"), B: T.Buffer((40, 17), "int8"), C: T.Buffer((9, 17), "int32"))",
     R"(
    for i, j, k in T.grid(9, 17, 40):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])
)"},
    {"gather",
     R"(I: T.Buffer((20,), "uint8"), A: T.Buffer((41, 3), "float16"), B: T.Buffer((20, 3), "float16"))",
     R"(
    for i, j in T.grid(20, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[T.Cast("int64", I[vi]), vj]
)"},
    {"largest_of_floats",
     R"(A: T.Buffer((6, 31), "float32"), B: T.Buffer((6,), "float32"), R: T.Buffer((6, 31), "bfloat16"))",
     R"(
    for i, k in T.grid(6, 31):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(-3.4e38)
            B[vi] = T.max(B[vi], A[vi, vk])
    for i, k in T.grid(6, 31):
        with T.block("R"):
            vi, vk = T.axis.remap("SS", [i, k])
            R[vi, vk] = T.Cast("bfloat16", T.max(A[vi, vk], T.float32(0)))
)"},
    {"arguments_of_the_largest",
     R"(A: T.Buffer((6, 31), "float32"), V: T.Buffer((6,), "float32"), I: T.Buffer((6,), "int32"))",
     R"(
    for i, k in T.grid(6, 31):
        with T.block("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.float32(-3.4e38)
                I[vi] = 0
            I[vi] = T.Select(A[vi, vk] > V[vi], T.Cast("int32", vk), I[vi])
            V[vi] = T.Select(A[vi, vk] > V[vi], A[vi, vk], V[vi])
)"},
};

TEST(Oracle, ExactProgramsAreTheInterpretersBitForBit) {
  for (const Program& program : kExact) {
    SCOPED_TRACE(program.name);
    const ir::PrimFuncPtr function = Parse(program.parameters, program.body);
    ASSERT_NE(function, nullptr);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      OracleResult result;
      EXPECT_EQ(Disagreement(function, seed, &result), "");
      for (const auto& bounds : result.bounds) EXPECT_TRUE(bounds.empty());
    }
  }
}

constexpr Program kFloats[] = {
    {"matmul",
     R"(A: T.Buffer((9, 40), "float32"), B: T.Buffer((40, 17), "float32"), C: T.Buffer((9, 17), "float32"))",
     R"(
    for i, j, k in T.grid(9, 17, 40):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"transposed_matmul_with_consumer",
     R"(A: T.Buffer((9, 40), "float64"), B: T.Buffer((24, 40), "float64"), D: T.Buffer((9, 24), "float64"))",
     R"(
    C = T.alloc_buffer((9, 24), "float64")
    for i, j, k in T.grid(9, 24, 40):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float64(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(9, 24):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.tanh(C[vi, vj]) * T.float64(0.5)
)"},
    {"accumulates_into_what_is_given",
     R"(A: T.Buffer((9, 40), "float32"), C: T.Buffer((9,), "float32"))",
     R"(
    for i, k in T.grid(9, 40):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]
)"},
    {"low_precision_accumulators",
     R"(A: T.Buffer((9, 24), "float16"), B: T.Buffer((24,), "float16"), C: T.Buffer((9,), "float16"), D: T.Buffer((9,), "bfloat16"))",
     R"(
    for i, k in T.grid(9, 24):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float16(0)
            C[vi] = C[vi] + A[vi, vk] * B[vk]
    for i in range(9):
        with T.block("D"):
            vi = T.axis.spatial(9, i)
            D[vi] = T.Cast("bfloat16", C[vi]) + T.bfloat16(1)
)"},
    {"softmax",
     R"(A: T.Buffer((6, 50), "float32"), B: T.Buffer((6, 50), "float32"))",
     R"(
    M = T.alloc_buffer((6,), "float32")
    S = T.alloc_buffer((6,), "float32")
    for i, k in T.grid(6, 50):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3.4e38)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(6, 50):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
    for i, k in T.grid(6, 50):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = T.exp(A[vi, vk] - M[vi]) / S[vi]
)"},
    {"reductions_that_read_other_elements",
     R"(A: T.Buffer((24,), "float16"), W: T.Buffer((24,), "float16"), V: T.Buffer((24,), "float32"))",
     R"(
    for i, k in T.grid(12, 24):
        with T.block("W"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                W[vi] = T.float16(-0.3)
            W[vi] = T.max(W[vi], W[vk] * A[vk])
    for i, k in T.grid(12, 24):
        with T.block("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.float32(0.1)
            V[vi] = V[vi] + T.Cast("float32", T.Cast("float16", V[23 - vi] * T.float32(0.01))) * T.Cast("float32", A[vk])
)"},
    {"functions",
     R"(A: T.Buffer((200,), "float32"), B: T.Buffer((200,), "float32"), C: T.Buffer((200,), "float32"))",
     R"(
    for i in range(200):
        with T.block("B"):
            vi = T.axis.spatial(200, i)
            x = A[vi] * T.float32(3)
            y = T.abs(x) + T.float32(0.1)
            B[vi] = T.exp(x) + T.sigmoid(x) * T.erf(x) - T.log(y) + T.sqrt(y) * T.rsqrt(y) + T.sin(x) * T.cos(x) + T.atan(x) + T.log2(y) - T.log10(y) + T.log1p(y) + T.exp2(x)
            C[vi] = T.pow(y, x) + T.atan2(x, y) + T.sinh(x) - T.cosh(x) + T.tan(A[vi]) + T.asin(A[vi]) * T.acos(A[vi]) + T.copysign(y, x) + T.fma(x, y, x)
)"},
    {"floor_of_floats",
     R"(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32"), C: T.Buffer((100,), "int8"))",
     R"(
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            x = A[vi] * T.float32(10.5)
            B[vi] = T.floor(x) + T.floormod(x, T.float32(3)) - T.ceil(x) * T.round(x) + T.trunc(x) * T.nearbyint(x)
            C[vi] = T.Cast("int8", T.round(x * T.float32(20)))
)"},
    {"scan_of_floats",
     R"(A: T.Buffer((33,), "float32"), B: T.Buffer((33,), "float32"))",
     R"(
    for i in range(33):
        with T.block("B"):
            vi = T.axis.opaque(33, i)
            B[vi] = A[vi] * T.float32(0.7) + T.if_then_else(vi > 0, B[vi - 1], T.float32(0))
)"},
    {"branches_on_rounded_numbers",
     R"(A: T.Buffer((50,), "float32"), B: T.Buffer((50,), "float32"), C: T.Buffer((50,), "int32"))",
     R"(
    for i in range(50):
        with T.block("B"):
            vi = T.axis.spatial(50, i)
            x = A[vi] * A[vi] - T.float32(0.25)
            if x > T.float32(0):
                B[vi] = x
            else:
                B[vi] = T.if_then_else(x < T.float32(-0.1), A[vi], T.float32(2))
            C[vi] = T.Select(x > T.float32(0.1), 3, T.Cast("int32", x * T.float32(100)))
)"},
    {"in_place_of_floats",
     R"(A: T.Buffer((33,), "float32"), B: T.Buffer((33,), "float16"))",
     R"(
    for i in range(33):
        with T.block("A"):
            vi = T.axis.spatial(33, i)
            A[vi] = A[vi] * T.float32(3) - T.float32(1)
            B[vi] = B[vi] * B[vi]
)"},
};

TEST(Oracle, FloatsAreWithinSmallBoundsOfTheInterpreters) {
  for (const Program& program : kFloats) {
    SCOPED_TRACE(program.name);
    const ir::PrimFuncPtr function = Parse(program.parameters, program.body);
    ASSERT_NE(function, nullptr);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      OracleResult result;
      EXPECT_EQ(Disagreement(function, seed, &result), "");
      for (size_t p = 0; p < result.bounds.size(); ++p) {
        const ir::DataType dtype = function->params[p]->dtype;
        if (!dtype.is_float()) continue;
        // Values of these programs are near 1: the bound is a few hundred
        // roundings.
        const double most = dtype.bits == 64   ? 1e-12
                            : dtype.bits == 32 ? 2e-3
                                               : 0.3;
        for (const double bound : result.bounds[p]) {
          if (std::isinf(bound)) continue;
          EXPECT_LT(bound, most);
        }
      }
    }
  }
}

TEST(Oracle, BoundsAreOfTheElementsOwnTerms) {
  // The values of one row of the product are a million times as large.
  const ir::PrimFuncPtr function =
      Parse(kFloats[0].parameters, kFloats[0].body);
  Buffers inputs = RandomInputs(*function, 3);
  auto a = ValuesOf<float>(inputs[0]);
  for (int k = 0; k < 40; ++k) a[k] *= 1e6f;
  inputs[0] = BytesOf(a);
  const auto oracle = RunOracle(function, inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  EXPECT_GT(oracle->bounds[2][0], 1);
  for (size_t i = 17; i < oracle->bounds[2].size(); ++i) {
    EXPECT_LT(oracle->bounds[2][i], 1e-4);
    EXPECT_GT(oracle->bounds[2][i], 1e-7);
  }
}

// Errors of rounding that are equal add up.
TEST(Oracle, InstancesThatRepeatRoundAlike) {
  const auto function = ir::ParseFunction(R"(
@T.prim_func
def f(A: T.Buffer((4,), "float32"), C: T.Buffer((1,), "float32")):
    for i in range(1):
        with T.block("one"):
            C[0] = T.float32(1)
    for i in range(2048):
        with T.block("sum"):
            v = T.axis.reduce(4, i % 4)
            C[0] = C[0] + A[v]
)");
  ASSERT_TRUE(function.ok()) << function.status();
  // Each sum is rounded by two thirds of half a unit of 1, in one direction.
  const float unit = 0x1p-24f;
  const Buffers inputs = {BytesOf(std::vector<float>(4, unit * 4 / 3)),
                          BytesOf(std::vector<float>{0})};
  const auto oracle = RunOracle(*function, inputs);
  ASSERT_TRUE(oracle.ok()) << oracle.status();
  const double expected = ValuesOf<float>(oracle->buffers[1])[0];
  const double in_float32 =
      ValuesOf<float>(Interpreted(**function, inputs)[1])[0];
  const double error = std::abs(in_float32 - expected);
  EXPECT_GT(error, 1000 * unit);
  EXPECT_LT(error, oracle->bounds[1][0]);
  // An error of a thousandth is still found.
  EXPECT_LT(oracle->bounds[1][0], 1e-3);
}

}  // namespace
}  // namespace tilefarm::testing
