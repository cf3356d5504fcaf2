// Tunes a product of bytes on real processes: the search finds the dot-product
// instruction if this machine has one, and the result is verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProduct[] = R"(from tvm.script import tir as T


@T.prim_func
def product(A: T.Buffer((64, 128), "uint8"), B: T.Buffer((128, 96), "int8"),
            C: T.Buffer((64, 96), "int32")):
    for i, j, k in T.grid(64, 96, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32")
)";

// What this machine has for products of bytes.
struct Instruction {
  const char* intrin;
  const char* name;
  const char* needs;
  const char* lacking;  // a cpu without it
};

// nullopt: none that the search uses.
std::optional<Instruction> InstructionHere() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) {
    return Instruction{"dot_16x4_vnni", "vpdpbusd", "avx512vnni",
                       "skylake-avx512"};
  }
  if (__builtin_cpu_supports("avxvnni")) {
    return Instruction{"dot_8x4_vnni", "vpdpbusd", "avxvnni", "haswell"};
  }
  if (__builtin_cpu_supports("avx512bw")) {
    return Instruction{"dot_16x4_u8i8s32_madd", "vpmaddwd", "avx512bw",
                       "haswell"};
  }
  if (__builtin_cpu_supports("avx2")) {
    return Instruction{"dot_8x4_u8i8s32_madd", "vpmaddwd", "avx2", "ivybridge"};
  }
#endif
  return std::nullopt;
}

class LowPrecisionTest : public FarmFixture {};

TEST_F(LowPrecisionTest, TheSearchFindsTheInstruction) {
  const std::string program = dir_.Write("product.py", kProduct);
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  const CommandResult run =
      Tune({"run", program, "--target", "host,cores=1", "--trials", "12"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const Json& record : Export()) {
    EXPECT_EQ(record["status"], "ok") << record.dump();
  }
  const auto best = [&](const std::string& form) {
    return Tune({"best", program, "--target", "host,cores=1", "--print", form})
        .output;
  };
  const auto here = InstructionHere();
  if (!here) {
    EXPECT_THAT(best("trace"), Not(HasSubstr("tensorize")));
    return;
  }
  EXPECT_THAT(best("trace"),
              HasSubstr(absl::StrCat("tensor_intrin=\"", here->intrin, "\"")));
  EXPECT_THAT(best("asm"), HasSubstr(here->name));
  // Machines without the instruction do not get the schedule.
  const std::string target = absl::StrCat("x86-64:", here->lacking, ",cores=1");
  EXPECT_EQ(Tune({"best", program, "--target", target}).exit_code, 3);
  // Neither does a user who passes the trace explicitly.
  const std::string trace = dir_.Write("best.trace", best("trace"));
  const CommandResult elsewhere =
      RunCommand({Bin("tunec"), program, "--target", target, "--trace", trace,
                  "-o", dir_.File("product.so")});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.errors,
              HasSubstr(absl::StrCat(here->intrin, " needs a target with ",
                                     here->needs)));
}

}  // namespace
}  // namespace tilefarm::testing
