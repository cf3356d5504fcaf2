// Programs that are difficult for lowering compute the same as in the
// interpreter, on targets with wide, narrow and no masked vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "tests/lower/compiled_program.h"

namespace tilefarm::testing {
namespace {

struct Program {
  const char* name;
  const char* parameters;
  const char* body;  // indented by eight
};

constexpr Program kPrograms[] = {
    {"masked_tail_of_odd_width",
     R"(A: T.Buffer((5, 37), "float32"), B: T.Buffer((5, 37), "float32"))",
     R"(
        for i in range(5):
            for j in T.vectorized(37):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.sqrt(T.abs(A[vi, vj])) * T.float32(3)
)"},
    {"long_vector_in_chunks",
     R"(A: T.Buffer((1000,), "int32"), B: T.Buffer((1000,), "int32"))",
     R"(
        for j in T.vectorized(1000):
            with T.block("B"):
                vj = T.axis.spatial(1000, j)
                B[vj] = A[vj] // 7 + A[vj] % 5
)"},
    {"padding_by_lane",
     R"(A: T.Buffer((6, 14), "float32"), B: T.Buffer((8, 16), "float32"))",
     R"(
        for f in T.vectorized(128):
            with T.block("B"):
                vi = T.axis.spatial(8, f // 16)
                vj = T.axis.spatial(16, f % 16)
                B[vi, vj] = T.if_then_else(1 <= vi and vi < 7 and 1 <= vj and vj < 15, A[vi - 1, vj - 1], T.float32(-1))
)"},
    {"place_that_data_decides",
     R"(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "float32"), C: T.Buffer((4,), "float32"))",
     R"(
        for i in range(4):
            with T.block("zero"):
                vi = T.axis.spatial(4, i)
                C[vi] = T.float32(0)
        for i in range(9):
            with T.block("scatter"):
                vi = T.axis.opaque(9, i)
                place = T.max(T.min(A[vi], 3), 0)
                C[place] = C[place] + B[vi]
)"},
    {"padding_skipped",
     R"(A: T.Buffer((9, 9, 4), "float32"), W: T.Buffer((3, 5, 4, 24), "float32"), C: T.Buffer((9, 5, 24), "float32"))",
     R"(
        for i, j0, r, s, k in T.grid(9, 2, 3, 5, 4):
            for j1 in T.unroll(3):
                for o in T.vectorized(24):
                    with T.block("C"):
                        vi = T.axis.spatial(9, i)
                        vj = T.axis.spatial(5, j0 * 3 + j1)
                        vo, vr, vs, vk = T.axis.remap("SRRR", [o, r, s, k])
                        T.where(j0 * 3 + j1 < 5)
                        T.block_attr({"tilefarm.skip_padding": 1})
                        with T.init():
                            C[vi, vj, vo] = T.float32(0)
                        C[vi, vj, vo] = C[vi, vj, vo] + T.if_then_else(1 <= vi + vr and vi + vr < 10 and 2 <= vj * 2 + vs and vj * 2 + vs < 11, A[vi + vr - 1, vj * 2 + vs - 2, vk], T.float32(0)) * W[vr, vs, vk, vo]
)"},
    {"padding_skipped_by_tiles_of_rows",
     R"(A: T.Buffer((40, 21, 2), "float32"), W: T.Buffer((3, 3, 2, 32), "float32"), C: T.Buffer((40, 21, 32), "float32"))",
     R"(
        for i0, j0, i1, r, s, k in T.grid(4, 7, 5, 3, 3, 2):
            for i2 in T.unroll(2):
                for j1 in T.unroll(3):
                    for o in T.vectorized(32):
                        with T.block("C"):
                            vi = T.axis.spatial(40, i0 * 10 + i1 * 2 + i2)
                            vj = T.axis.spatial(21, j0 * 3 + j1)
                            vo, vr, vs, vk = T.axis.remap("SRRR", [o, r, s, k])
                            T.block_attr({"tilefarm.skip_padding": 1})
                            with T.init():
                                C[vi, vj, vo] = T.float32(0)
                            C[vi, vj, vo] = C[vi, vj, vo] + T.if_then_else(1 <= vi + vr and vi + vr < 41 and 1 <= vj + vs and vj + vs < 22, A[vi + vr - 1, vj + vs - 1, vk], T.float32(0)) * W[vr, vs, vk, vo]
)"},
    {"padding_skipped_in_unrolled_taps",
     R"(A: T.Buffer((47, 24), "float32"), W: T.Buffer((4,), "float32"), C: T.Buffer((24, 24), "float32"))",
     R"(
        for i in T.serial(24, annotations={"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1}):
            for r in range(4):
                for j in T.vectorized(24):
                    with T.block("C"):
                        vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                        T.block_attr({"tilefarm.skip_padding": 1})
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + T.if_then_else(1 <= vi * 2 + vr and vi * 2 + vr < 48, A[vi * 2 + vr - 1, vj], T.float32(0)) * W[vr]
)"},
    {"padding_skipped_where_rows_have_no_terms",
     R"(A: T.Buffer((9, 24), "float32"), W: T.Buffer((3, 5), "float32"), C: T.Buffer((17, 24), "float32"))",
     R"(
        for i, k, r in T.grid(17, 5, 3):
            for j in T.vectorized(24):
                with T.block("C"):
                    vi, vj, vk, vr = T.axis.remap("SSRR", [i, j, k, r])
                    T.block_attr({"tilefarm.skip_padding": 1})
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + T.if_then_else(5 <= vi + vr * 2 and vi + vr * 2 < 14, A[vi + vr * 2 - 5, vj], T.float32(0)) * W[vr, vk]
)"},
    {"padding_skipped_with_taps_outside",
     R"(A: T.Buffer((12, 24), "float32"), W: T.Buffer((7, 5), "float32"), C: T.Buffer((12, 24), "float32"))",
     R"(
        for k, r, i0, i1 in T.grid(5, 7, 3, 4):
            for j in T.vectorized(24):
                with T.block("C"):
                    vi = T.axis.spatial(12, i0 * 4 + i1)
                    vj, vk, vr = T.axis.remap("SRR", [j, k, r])
                    T.block_attr({"tilefarm.skip_padding": 1})
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + T.if_then_else(3 <= vi + vr and vi + vr < 15, A[vi + vr - 3, vj], T.float32(0)) * W[vr, vk]
)"},
    {"padding_skipped_in_a_sum_of_unrolled_taps",
     R"(A: T.Buffer((36, 20), "float32"), W: T.Buffer((2, 3, 3), "float32"), C: T.Buffer((36, 20), "float32"))",
     R"(
        for i0, j0, k in T.grid(18, 5, 3):
            for i1 in T.unroll(2):
                for r in T.unroll(3):
                    for j1 in T.unroll(4):
                        with T.block("C"):
                            vi = T.axis.spatial(36, i0 * 2 + i1)
                            vj = T.axis.spatial(20, j0 * 4 + j1)
                            vr, vk = T.axis.remap("RR", [r, k])
                            T.block_attr({"tilefarm.skip_padding": 1})
                            with T.init():
                                C[vi, vj] = T.float32(0)
                            C[vi, vj] = C[vi, vj] + T.if_then_else(1 <= vi + vr and vi + vr < 37 and 1 <= vj + vk and vj + vk < 21, A[vi + vr - 1, vj + vk - 1], T.float32(0)) * W[vi % 2, vr, vk]
)"},
    {"division_in_one_branch",
     R"(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"))",
     R"(
        for f in T.vectorized(64):
            with T.block("B"):
                vi = T.axis.spatial(64, f)
                B[vi] = T.if_then_else(A[vi] != 0, 100 // A[vi], 7)
)"},
    {"gather_guarded",
     R"(A: T.Buffer((10,), "float32"), I: T.Buffer((64,), "int64"), B: T.Buffer((64,), "float32"))",
     R"(
        for f in T.vectorized(64):
            with T.block("B"):
                vi = T.axis.spatial(64, f)
                B[vi] = T.if_then_else(0 <= I[vi] and I[vi] < 10, A[I[vi]], T.float32(0))
)"},
    {"lanes_reduced",
     R"(A: T.Buffer((9, 48), "float32"), B: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32"))",
     R"(
        for i in range(9):
            for k in T.serial(48, annotations={"tilefarm.reduce_lanes": 1}):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk] * A[vi, vk]
            for k in T.serial(40, annotations={"tilefarm.reduce_lanes": 1}):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(-1000)
                    C[vi] = T.max(A[vi, vk], C[vi])
)"},
    {"lanes_that_cannot_be_reduced",
     R"(A: T.Buffer((9, 47), "int32"), B: T.Buffer((9,), "int32"), C: T.Buffer((9, 47), "int32"))",
     R"(
        for i in range(9):
            for k in T.serial(47, annotations={"tilefarm.reduce_lanes": 1}):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 3
                    B[vi] = T.min(B[vi], A[vi, vk])
            for k in T.serial(47, annotations={"tilefarm.reduce_lanes": 1}):
                with T.block("C"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    C[vi, vk] = A[vi, vk] - B[vi]
)"},
    {"strided_and_reversed",
     R"(A: T.Buffer((128,), "float32"), B: T.Buffer((33,), "float32"))",
     R"(
        for f in T.vectorized(33):
            with T.block("B"):
                vi = T.axis.spatial(33, f)
                B[vi] = A[vi * 3] - A[127 - vi]
)"},
    {"reduction_with_reduce_loops_outside_and_inside",
     R"(A: T.Buffer((23, 19), "float32"), B: T.Buffer((19, 31), "float32"), C: T.Buffer((23, 31), "float32"))",
     R"(
        for k0, i0, j0, k1 in T.grid(4, 6, 2, 5):
            for i1 in T.unroll(4):
                for j1 in T.vectorized(16):
                    with T.block("C"):
                        vi = T.axis.spatial(23, i0 * 4 + i1)
                        vj = T.axis.spatial(31, j0 * 16 + j1)
                        vk = T.axis.reduce(19, k0 * 5 + k1)
                        T.where(i0 * 4 + i1 < 23 and j0 * 16 + j1 < 31 and k0 * 5 + k1 < 19)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"repeated_reduction",
     // r repeats the block, including its initialisation.
     R"(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32"))",
     R"(
        for k, r, i in T.grid(8, 2, 8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(8, k)
                with T.init():
                    C[vi] = T.float32(1)
                C[vi] = C[vi] + A[vi, vk]
)"},
    {"carried_over_iterations",
     // B keeps values of an earlier iteration, so an iteration does not own it.
     R"(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"))",
     R"(
        B = T.alloc_buffer((1,))
        for i in range(8):
            with T.block("B"):
                vi = T.axis.opaque(8, i)
                T.where(i < 1)
                B[0] = A[vi]
            with T.block("C"):
                vi = T.axis.opaque(8, i)
                C[vi] = A[vi] + B[0]
)"},
    {"producer_in_a_parallel_loop",
     R"(A: T.Buffer((34, 34), "float32"), C: T.Buffer((32, 32), "float32"))",
     R"(
        B = T.alloc_buffer((34, 34))
        for f in T.parallel(16):
            for a, b in T.grid(10, 10):
                with T.block("B"):
                    vi = T.axis.spatial(34, f // 4 * 8 + a)
                    vj = T.axis.spatial(34, f % 4 * 8 + b)
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for a in range(8):
                for b in T.vectorized(8):
                    with T.block("C"):
                        vi = T.axis.spatial(32, f // 4 * 8 + a)
                        vj = T.axis.spatial(32, f % 4 * 8 + b)
                        C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 2]
)"},
    {"half_precision",
     R"(A: T.Buffer((40,), "float16"), B: T.Buffer((40,), "float16"), C: T.Buffer((40,), "float16"))",
     R"(
        for f in T.vectorized(40):
            with T.block("C"):
                vi = T.axis.spatial(40, f)
                C[vi] = A[vi] * B[vi] + T.exp(A[vi])
)"},
    {"vectorized_over_a_reduction",
     R"(A: T.Buffer((4, 40), "float32"), B: T.Buffer((4,), "float32"))",
     R"(
        for i in range(4):
            for k in T.vectorized(40):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(-1000)
                    B[vi] = T.max(B[vi], A[vi, vk])
)"},
    {"shifted_in_place",
     // Each element depends on the previous one: no vectors.
     R"(A: T.Buffer((40,), "float32"))",
     R"(
        for i in T.vectorized(39):
            with T.block("A"):
                vi = T.axis.opaque(39, i)
                A[vi + 1] = A[vi] * T.float32(0.5)
)"},
    {"mixed_widths",
     R"(A: T.Buffer((70,), "int8"), B: T.Buffer((70,), "float64"), C: T.Buffer((70,), "float64"))",
     R"(
        for i in T.vectorized(70):
            with T.block("C"):
                vi = T.axis.spatial(70, i)
                C[vi] = T.cast(A[vi], "float64") * B[vi] + T.cast(vi, "float64")
)"},
    {"selected_by_index",
     R"(A: T.Buffer((50,), "float32"), B: T.Buffer((50,), "float32"))",
     R"(
        for i in T.vectorized(50):
            with T.block("B"):
                vi = T.axis.spatial(50, i)
                B[vi] = T.Select(vi % 3 == 1, A[vi], T.float32(2))
)"},
};

std::vector<std::vector<std::byte>> RandomBuffers(const ir::PrimFunc& function,
                                                  uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<std::byte>> buffers;
  for (const ir::Buffer& param : function.params) {
    const int64_t count = param->num_elements();
    std::vector<std::byte> bytes(count * param->dtype.bytes());
    for (int64_t i = 0; i < count; ++i) {
      std::byte* at = bytes.data() + i * param->dtype.bytes();
      const double value = rng.Uniform() * 2 - 1;
      const ir::DataType dtype = param->dtype;
      if (dtype == ir::DataType::Float(32)) {
        const float narrow = static_cast<float>(value);
        std::memcpy(at, &narrow, sizeof narrow);
      } else if (dtype == ir::DataType::Float(64)) {
        std::memcpy(at, &value, sizeof value);
      } else if (dtype == ir::DataType::Float(16)) {
        const _Float16 half = static_cast<_Float16>(value);
        std::memcpy(at, &half, sizeof half);
      } else {
        const int64_t integer = rng.Between(-12, 12);
        std::memcpy(at, &integer, dtype.bytes());
      }
    }
    buffers.push_back(std::move(bytes));
  }
  return buffers;
}

double Element(const std::vector<std::byte>& bytes, ir::DataType dtype,
               int64_t i) {
  const std::byte* at = bytes.data() + i * dtype.bytes();
  if (dtype == ir::DataType::Float(32)) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == ir::DataType::Float(64)) {
    double value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == ir::DataType::Float(16)) {
    _Float16 value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  if (dtype.bytes() == 1) return static_cast<int8_t>(*at);
  int64_t value = 0;
  if (dtype.bytes() == 4) {
    int32_t narrow;
    std::memcpy(&narrow, at, sizeof narrow);
    value = narrow;
  } else {
    std::memcpy(&value, at, sizeof value);
  }
  return static_cast<double>(value);
}

std::vector<std::span<std::byte>> Spans(
    std::vector<std::vector<std::byte>>& buffers) {
  std::vector<std::span<std::byte>> spans;
  for (auto& buffer : buffers) spans.emplace_back(buffer);
  return spans;
}

class LoweredSemanticsTest
    : public ::testing::TestWithParam<std::tuple<Program, const char*>> {};

TEST_P(LoweredSemanticsTest, ComputesWhatTheInterpreterSays) {
  const auto& [program, target] = GetParam();
  const std::string text =
      std::string(
          "@I.ir_module\nclass Module:\n    @T.prim_func\n    def "
          "main(") +
      program.parameters + "):" + program.body;
  const auto module = ir::ParseModule(text, program.name);
  ASSERT_TRUE(module.ok()) << module.status();
  const ir::PrimFunc& function = *module->functions[0];
  const auto compiled = CompiledProgram::Compile(*module, target);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  auto expected = RandomBuffers(function, 17);
  auto got = expected;
  ASSERT_TRUE(ir::Interpret(function, Spans(expected)).ok());
  ASSERT_TRUE(compiled->Run(Spans(got)).ok());
  for (size_t b = 0; b < got.size(); ++b) {
    const ir::BufferNode& param = *function.params[b];
    const double tolerance = param.dtype == ir::DataType::Float(16) ? 4e-3
                             : param.dtype.is_float()               ? 1e-5
                                                                    : 0;
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      ASSERT_NEAR(Element(got[b], param.dtype, i),
                  Element(expected[b], param.dtype, i), tolerance)
          << param.name << " element " << i;
    }
  }
}

// Baseline features run on any machine; "host" has all of this one's.
INSTANTIATE_TEST_SUITE_P(
    Programs, LoweredSemanticsTest,
    ::testing::Combine(::testing::ValuesIn(kPrograms),
                       ::testing::Values("host", "x86-64:x86-64,cores=2",
                                         "host,cores=1")),
    [](const auto& info) {
      const std::string target = std::get<1>(info.param);
      return std::string(std::get<0>(info.param).name) +
             (target == "host"           ? "_host"
              : target == "host,cores=1" ? "_one_core"
                                         : "_baseline");
    });

}  // namespace
}  // namespace tilefarm::testing
