// The error of legal schedules is within the oracle's bounds, but a small error
// in one element is not: random compiled candidates of the design space.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/schedule/winograd_transforms.h"
#include "tests/lower/compiled_program.h"
#include "tests/support/candidate_cases.h"
#include "tests/support/host_oracle.h"

namespace tilefarm::testing {
namespace {

struct Program {
  const char* name;
  const char* text;
};

constexpr Program kPrograms[] = {
    {"matmul", R"(
@T.prim_func
def main(A: T.Buffer((64, 256), "float32"), B: T.Buffer((256, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j, k in T.grid(64, 48, 256):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"matmul_with_few_outputs", R"(
@T.prim_func
def main(A: T.Buffer((2, 4096), "float32"), B: T.Buffer((4096, 3), "float32"), C: T.Buffer((2, 3), "float32")):
    for i, j, k in T.grid(2, 3, 4096):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"bfloat16_products", R"(
@T.prim_func
def main(A: T.Buffer((32, 128), "bfloat16"), B: T.Buffer((128, 32), "bfloat16"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
)"},
    {"float16_sums", R"(
@T.prim_func
def main(A: T.Buffer((32, 64), "float16"), B: T.Buffer((64, 32), "float16"), C: T.Buffer((32, 32), "float16")):
    for i, j, k in T.grid(32, 32, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    {"softmax", R"(
@T.prim_func
def main(A: T.Buffer((16, 2048), "float32"), B: T.Buffer((16, 2048), "float32")):
    M = T.alloc_buffer((16,), "float32")
    S = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 2048):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e38)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(16, 2048):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
    for i, k in T.grid(16, 2048):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = T.exp(A[vi, vk] - M[vi]) / S[vi]
)"},
    {"layer_norm", R"(
@T.prim_func
def main(A: T.Buffer((16, 300), "float32"), B: T.Buffer((16, 300), "float32")):
    S = T.alloc_buffer((16,), "float32")
    Q = T.alloc_buffer((16,), "float32")
    for i, k in T.grid(16, 300):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, k in T.grid(16, 300):
        with T.block("Q"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Q[vi] = T.float32(0)
            Q[vi] = Q[vi] + A[vi, vk] * A[vi, vk]
    for i, k in T.grid(16, 300):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = (A[vi, vk] - S[vi] / T.float32(300)) * T.rsqrt(Q[vi] / T.float32(300) - S[vi] / T.float32(300) * (S[vi] / T.float32(300)) + T.float32(0.00001))
)"},
    {"convolution", R"(
@T.prim_func
def main(A: T.Buffer((1, 12, 12, 64), "float32"), W: T.Buffer((3, 3, 64, 32), "float32"), C: T.Buffer((1, 12, 12, 32), "float32")):
    P = T.alloc_buffer((1, 14, 14, 64), "float32")
    Y = T.alloc_buffer((1, 12, 12, 32), "float32")
    for n, h, w, c in T.grid(1, 14, 14, 64):
        with T.block("P"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(1 <= vh and vh < 13 and 1 <= vw and vw < 13, A[vn, vh - 1, vw - 1, vc], T.float32(0))
    for n, h, w, o, r, s, k in T.grid(1, 12, 12, 32, 3, 3, 64):
        with T.block("Y"):
            vn, vh, vw, vo, vr, vs, vk = T.axis.remap("SSSSRRR", [n, h, w, o, r, s, k])
            with T.init():
                Y[vn, vh, vw, vo] = T.float32(0)
            Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + P[vn, vh + vr, vw + vs, vk] * W[vr, vs, vk, vo]
    for n, h, w, o in T.grid(1, 12, 12, 32):
        with T.block("C"):
            vn, vh, vw, vo = T.axis.remap("SSSS", [n, h, w, o])
            C[vn, vh, vw, vo] = T.max(Y[vn, vh, vw, vo], T.float32(0))
)"},
};

Buffers RandomFloats(const ir::PrimFunc& function, Rng& rng) {
  Buffers buffers;
  for (const ir::Buffer& param : function.params) {
    const ir::DataType dtype = param->dtype;
    std::vector<std::byte>& data = buffers.emplace_back();
    for (int64_t i = 0; i < param->num_elements(); ++i) {
      const auto unit = static_cast<float>(rng.Uniform() * 2 - 1);
      uint32_t bits;
      std::memcpy(&bits, &unit, 4);
      if (dtype.bits == 16) {
        bits = dtype.code == ir::TypeCode::kBFloat ? ir::FloatToBFloat(unit)
                                                   : ir::FloatToHalf(unit);
      }
      std::byte bytes[4];
      std::memcpy(bytes, &bits, 4);
      data.insert(data.end(), bytes, bytes + dtype.bytes());
    }
  }
  return buffers;
}

double SpreadOf(const std::string& trace) {
  if (!absl::StrContains(trace, "sch.winograd(")) return 0;
  return schedule::WinogradSpread(absl::StrContains(trace, "tile=4") ? 4 : 2);
}

TEST(Tolerance, LegalSchedulesAreRightAndSmallErrorsAreWrong) {
  constexpr int kCandidates = 10;
  for (const Program& program : kPrograms) {
    SCOPED_TRACE(program.name);
    const auto function = ir::ParseFunction(program.text);
    ASSERT_TRUE(function.ok()) << function.status();
    const auto oracle = HostOracle::Compile(*function);
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    Rng rng(20261123);
    const Buffers inputs = RandomFloats(**function, rng);
    const auto expected = oracle->Run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    double largest = 0;
    int spread = 0;
    const auto tried = ForEachCandidate(
        *function, "host,cores=1", kCandidates, rng,
        [&](const schedule::Schedule& scheduled) -> absl::Status {
          TF_ASSIGN_OR_RETURN(
              const CompiledProgram compiled,
              CompiledProgram::Compile(scheduled.module(), "host,cores=1"));
          Buffers got = inputs;
          const std::vector<std::span<std::byte>> views(got.begin(), got.end());
          TF_RETURN_IF_ERROR(compiled.Run(views));
          const std::string trace = scheduled.trace().Print();
          spread += SpreadOf(trace) > 0;
          const std::string difference = DifferenceFromOracle(
              **function, *expected, got, SpreadOf(trace), &largest);
          if (difference.empty()) return absl::OkStatus();
          return absl::InternalError(absl::StrCat(difference, "\n", trace));
        });
    ASSERT_TRUE(tried.ok()) << tried.status();
    EXPECT_GT(*tried, 0);
    std::cout << program.name << ": " << *tried << " candidates, " << spread
              << " with a spread, within " << largest << " of their bounds\n";
    EXPECT_GT(largest, 0);
    // 0.3 % of the element with the largest value.
    const ir::Buffer& output = (*function)->params.back();
    if (output->dtype.bits != 32) continue;
    Buffers wrong = expected->buffers;
    std::vector<float> values(static_cast<size_t>(output->num_elements()));
    std::memcpy(values.data(), wrong.back().data(), wrong.back().size());
    const auto element = std::max_element(values.begin(), values.end());
    *element *= 1.003f;
    std::memcpy(wrong.back().data(), values.data(), wrong.back().size());
    EXPECT_NE(DifferenceFromOracle(**function, *expected, wrong), "")
        << *element << " is within "
        << expected->bounds
               .back()[static_cast<size_t>(element - values.begin())];
  }
}

}  // namespace
}  // namespace tilefarm::testing
