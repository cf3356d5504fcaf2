// Random candidates of low-precision products and convolutions compute the same
// as plain loops, bit for bit: integers, and floats whose sums need no
// rounding.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/substitute.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/printer.h"
#include "compiler/lower/split_prepack.h"
#include "tests/lower/compiled_program.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/candidate_cases.h"

namespace tilefarm::testing {
namespace {

using space::NarrowMatmulText;

constexpr uint64_t kSeed = 20261121;
constexpr int kCandidates = 12;

// Constants: parameters that are packed ahead of time.
constexpr char kWeights[] = "[1]";

// A padded 3x3 convolution, and the sums narrowed to bytes.
std::string ConvText(int size, int cin, int cout,
                     const char* constants = "[]") {
  return absl::Substitute(
      R"(
@T.prim_func
def main(A: T.Buffer((1, $0, $0, $2), "uint8"), W: T.Buffer((3, 3, $2, $3), "int8"), D: T.Buffer((1, $0, $0, $3), "uint8")):
    T.func_attr({"layout_free_buffers": $4})
    P = T.alloc_buffer((1, $1, $1, $2), "uint8")
    C = T.alloc_buffer((1, $0, $0, $3), "int32")
    for n, h, w, c in T.grid(1, $1, $1, $2):
        with T.block("P"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            P[vn, vh, vw, vc] = T.if_then_else(1 <= vh and vh < $0 + 1 and 1 <= vw and vw < $0 + 1, A[vn, vh - 1, vw - 1, vc], T.uint8(0))
    for n, h, w, o, rh, rw, rc in T.grid(1, $0, $0, $3, 3, 3, $2):
        with T.block("C"):
            vn, vh, vw, vo, vrh, vrw, vrc = T.axis.remap("SSSSRRR", [n, h, w, o, rh, rw, rc])
            with T.init():
                C[vn, vh, vw, vo] = T.int32(0)
            C[vn, vh, vw, vo] = C[vn, vh, vw, vo] + T.cast(P[vn, vh + vrh, vw + vrw, vrc], "int32") * T.cast(W[vrh, vrw, vrc, vo], "int32")
    for n, h, w, o in T.grid(1, $0, $0, $3):
        with T.block("D"):
            vn, vh, vw, vo = T.axis.remap("SSSS", [n, h, w, o])
            D[vn, vh, vw, vo] = T.cast(T.max(C[vn, vh, vw, vo] // 256, T.int32(0)), "uint8")
)",
      size, size + 2, cin, cout, constants);
}

// Interprets pack and packed, one after the other.
absl::Status RunSplit(const ir::PrimFunc& scheduled, Buffers& buffers) {
  TF_ASSIGN_OR_RETURN(const auto split, lower::SplitPrepack(scheduled));
  Buffers packed(buffers.size());
  std::vector<std::span<std::byte>> views(buffers.begin(), buffers.end());
  for (const lower::PackedParam& param : split.params) {
    if (param.pack == nullptr) continue;
    const auto at = static_cast<size_t>(param.param);
    packed[at].resize(static_cast<size_t>(param.bytes));
    const ir::BufferNode& to = *param.pack->params[1];
    const std::span<std::byte> made(
        packed[at].data(),
        static_cast<size_t>(to.num_elements() * to.dtype.bytes()));
    const std::span<std::byte> views_of_pack[] = {views[at], made};
    TF_RETURN_IF_ERROR(ir::Interpret(*param.pack, views_of_pack));
    views[at] = made;
  }
  return ir::Interpret(*split.packed, views);
}

// Candidates of the space for `space_of`, or for the target itself.
void ExpectCandidatesAgree(const std::string& text, const std::string& target,
                           Rng& rng, const std::string& space_of = "") {
  const auto made = MakeCandidateCase(text, rng);
  ASSERT_TRUE(made.ok()) << made.status() << text;
  const auto check = [&](const schedule::Schedule& scheduled) -> absl::Status {
    TF_ASSIGN_OR_RETURN(const auto compiled,
                        CompiledProgram::Compile(scheduled.module(), target));
    Buffers actual = made->inputs;
    const std::vector<std::span<std::byte>> buffers(actual.begin(),
                                                    actual.end());
    TF_RETURN_IF_ERROR(compiled.Run(buffers));
    if (text.find(kWeights) != std::string::npos) {
      Buffers split = made->inputs;
      const ir::PrimFuncPtr whole = scheduled.module().Find("main");
      TF_RETURN_IF_ERROR(RunSplit(*whole, split));
      EXPECT_TRUE(split == made->expected)
          << "seed " << kSeed << ", split" << ir::Print(*whole);
    }
    EXPECT_TRUE(actual == made->expected)
        << "seed " << kSeed << ", target " << target
        << scheduled.trace().Print() << text;
    return absl::OkStatus();
  };
  const auto ran =
      ForEachCandidate(made->function, space_of.empty() ? target : space_of,
                       kCandidates, rng, check);
  ASSERT_TRUE(ran.ok()) << ran.status() << text;
}

constexpr char kMatrixUnit[] = "x86-64:sapphirerapids,cores=1";

// This machine's instructions, and no instructions for dot products.
constexpr const char* kTargets[] = {"host,cores=1", "host,cores=2",
                                    "x86-64:x86-64-v3,cores=1"};

TEST(LowPrecision, ProductsAgreeWithPlainLoops) {
  Rng rng(kSeed);
  std::cout << "seed " << kSeed << "\n";
  for (const char* target : kTargets) {
    for (int i = 0; i < 2; ++i) {
      const auto m = static_cast<int>(rng.Between(1, 40));
      const auto n = static_cast<int>(16 * rng.Between(1, 8));
      const auto k = static_cast<int>(4 * rng.Between(1, 16));
      for (const auto& [a, b, sum] :
           {std::tuple{"uint8", "int8", "int32"},
            std::tuple{"int16", "int16", "int32"},
            std::tuple{"int8", "int8", "int32"},
            std::tuple{"bfloat16", "bfloat16", "float32"},
            std::tuple{"float16", "float16", "float32"}}) {
        ExpectCandidatesAgree(NarrowMatmulText(m, n, k, a, b, sum), target,
                              rng);
      }
    }
  }
}

// Candidates for a matrix unit are correct without one, since the intrinsic is
// defined by a program. Machines with a matrix unit run the instruction.
TEST(LowPrecision, TilesAgreeWithPlainLoops) {
  Rng rng(kSeed + 3);
  for (const char* run_on : {"x86-64:x86-64-v3,cores=1", "host,cores=1"}) {
    ExpectCandidatesAgree(
        NarrowMatmulText(48, 32, 128, "uint8", "int8", "int32"), run_on, rng,
        kMatrixUnit);
    ExpectCandidatesAgree(
        NarrowMatmulText(32, 64, 64, "bfloat16", "bfloat16", "float32"), run_on,
        rng, kMatrixUnit);
    // With tails.
    ExpectCandidatesAgree(
        NarrowMatmulText(27, 41, 100, "uint8", "int8", "int32"), run_on, rng,
        kMatrixUnit);
    ExpectCandidatesAgree(NarrowMatmulText(24, 40, 50, "bfloat16", "bfloat16",
                                           "float32", kWeights),
                          run_on, rng, kMatrixUnit);
  }
}

TEST(LowPrecision, TailsAgreeWithPlainLoops) {
  Rng rng(kSeed + 1);
  for (const char* target : kTargets) {
    ExpectCandidatesAgree(
        NarrowMatmulText(13, 24, 12, "uint8", "int8", "int32"), target, rng);
    ExpectCandidatesAgree(NarrowMatmulText(7, 19, 11, "uint8", "int8", "int32"),
                          target, rng);
    ExpectCandidatesAgree(
        NarrowMatmulText(17, 31, 9, "bfloat16", "bfloat16", "float32"), target,
        rng);
    ExpectCandidatesAgree(ConvText(5, 6, 19), target, rng);
    ExpectCandidatesAgree(
        NarrowMatmulText(9, 37, 7, "uint8", "int8", "int32", kWeights), target,
        rng);
  }
}

TEST(LowPrecision, ConstantsAheadOfTimeAgreeWithPlainLoops) {
  Rng rng(kSeed + 4);
  for (const char* target : kTargets) {
    for (const auto& [a, b, sum] :
         {std::tuple{"uint8", "int8", "int32"},
          std::tuple{"bfloat16", "bfloat16", "float32"},
          std::tuple{"float16", "float16", "float32"}}) {
      ExpectCandidatesAgree(NarrowMatmulText(36, 48, 24, a, b, sum, kWeights),
                            target, rng);
    }
    // Few rows, and tails.
    ExpectCandidatesAgree(
        NarrowMatmulText(2, 32, 16, "uint8", "int8", "int32", kWeights), target,
        rng);
    ExpectCandidatesAgree(
        NarrowMatmulText(35, 29, 11, "float16", "float16", "float32", kWeights),
        target, rng);
    ExpectCandidatesAgree(ConvText(6, 8, 32, kWeights), target, rng);
  }
  ExpectCandidatesAgree(
      NarrowMatmulText(48, 32, 128, "uint8", "int8", "int32", kWeights),
      "host,cores=1", rng, kMatrixUnit);
}

TEST(LowPrecision, ConvolutionsAgreeWithPlainLoops) {
  Rng rng(kSeed + 2);
  for (const char* target : kTargets) {
    ExpectCandidatesAgree(ConvText(6, 8, 32), target, rng);
    ExpectCandidatesAgree(ConvText(7, 12, 16), target, rng);
  }
}

}  // namespace
}  // namespace tilefarm::testing
