// Dot-product instructions compute the same as the interpreter, on targets with
// the instruction (if this machine has it) and without.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/substitute.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/verifier.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/pipeline.h"
#include "compiler/target/target.h"
#include "tests/lower/compiled_program.h"

namespace tilefarm::testing {
namespace {

struct Kind {
  const char* a;
  const char* b;
  const char* sum;
  int lanes;
  int group;
};

constexpr Kind kKinds[] = {
    {"uint8", "int8", "int32", 16, 4},
    {"int8", "uint8", "int32", 16, 4},
    {"uint8", "int8", "int32", 8, 4},
    {"uint8", "int8", "int32", 4, 4},
    {"int8", "int8", "int32", 16, 4},
    {"int8", "int8", "int32", 8, 4},
    {"uint8", "uint8", "int32", 16, 4},
    {"uint8", "uint8", "int32", 8, 4},
    {"int16", "int16", "int32", 16, 2},
    {"int16", "int16", "int32", 8, 2},
    {"bfloat16", "bfloat16", "float32", 16, 2},
    {"bfloat16", "bfloat16", "float32", 8, 2},
    // No instruction supports these; they use plain vectors.
    {"uint8", "int8", "int32", 32, 4},
    {"uint8", "int8", "int32", 5, 4},
    {"uint8", "int8", "int32", 16, 2},
    {"int8", "int16", "int32", 16, 2},
    {"float16", "float16", "float32", 16, 2},
};

std::string ProgramText(const Kind& kind) {
  std::string sum = "C[vi, vl]";
  for (int g = kind.group; g-- > 0;) {
    sum += absl::Substitute(
        " + T.cast(A[vi, vk * $0 + $1], \"$2\") * "
        "T.cast(B[vk, vl, $1], \"$2\")",
        kind.group, g, kind.sum);
  }
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer((3, $0), "$2"), B: T.Buffer((8, $5, $1), "$3"), C: T.Buffer((3, $5), "$4")):
    for i, k in T.grid(3, 8):
        for l in T.vectorized($5, annotations={"tilefarm.dot_product": 1}):
            with T.block("C"):
                vi, vk, vl = T.axis.remap("SRS", [i, k, l])
                C[vi, vl] = $6
)",
                          8 * kind.group, kind.group, kind.a, kind.b, kind.sum,
                          kind.lanes, sum);
}

// Arbitrary integers; floats whose sums need no rounding.
void Fill(const ir::BufferNode& buffer, Rng& rng,
          std::vector<std::byte>& data) {
  const size_t width = static_cast<size_t>(buffer.dtype.bytes());
  for (int64_t i = 0; i < buffer.num_elements(); ++i) {
    uint32_t bits = static_cast<uint32_t>(rng.Next());
    const auto value = static_cast<float>(rng.Between(-8, 8));
    if (buffer.dtype == ir::DataType::BFloat16()) {
      bits = std::bit_cast<uint32_t>(value) >> 16;
    } else if (buffer.dtype.is_float() && width == 2) {
      bits = 0x3c00;  // one
    } else if (buffer.dtype.is_float()) {
      bits = std::bit_cast<uint32_t>(value);
    }
    std::byte bytes[4];
    std::memcpy(bytes, &bits, 4);
    data.insert(data.end(), bytes, bytes + width);
  }
}

TEST(DotProduct, ComputesWhatTheInterpreterSays) {
  Rng rng(11);
  for (const Kind& kind : kKinds) {
    const std::string text = ProgramText(kind);
    const auto function = ir::ParseFunction(text, "main.py");
    ASSERT_TRUE(function.ok()) << function.status() << text;
    std::vector<std::vector<std::byte>> expected((*function)->params.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      Fill(*(*function)->params[i], rng, expected[i]);
    }
    const auto inputs = expected;
    const std::vector<std::span<std::byte>> views(expected.begin(),
                                                  expected.end());
    ASSERT_TRUE(ir::Interpret(**function, views).ok());
    for (const char* target : {"host,cores=1", "x86-64:x86-64-v3,cores=1",
                               "x86-64:x86-64-v2,cores=1"}) {
      const auto compiled =
          CompiledProgram::Compile(ir::IRModule{{*function}}, target);
      ASSERT_TRUE(compiled.ok()) << compiled.status() << target << text;
      auto actual = inputs;
      const std::vector<std::span<std::byte>> buffers(actual.begin(),
                                                      actual.end());
      ASSERT_TRUE(compiled->Run(buffers).ok());
      EXPECT_TRUE(actual == expected) << target << text;
    }
  }
}

// What lowering makes of a program is none any more.
TEST(DotProduct, IsPartOfLoweredProgramsAlone) {
  const auto function = ir::ParseFunction(ProgramText(kKinds[0]), "main.py");
  ASSERT_TRUE(function.ok()) << function.status();
  const auto lowered =
      lower::Lower(**function, *target::Parse("x86-64:cascadelake,cores=1"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_TRUE(lower::VerifyLowered(**lowered).ok());
  const absl::Status status = ir::Verify(**lowered);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "T.dot_product is not part of the language: only lowering makes "
            "it");
}

}  // namespace
}  // namespace tilefarm::testing
