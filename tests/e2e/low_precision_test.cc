// Tunes a product of bytes on real processes: the search finds the dot-product
// instruction if this machine has one, and the result is verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

bool HasDotProduct() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
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
  if (!HasDotProduct()) {
    EXPECT_THAT(best("trace"), Not(HasSubstr("tensorize")));
    GTEST_SKIP() << "this machine has no AVX512-VNNI";
  }
  EXPECT_THAT(best("trace"), HasSubstr("tensor_intrin=\"dot_16x4_vnni\""));
  EXPECT_THAT(best("asm"), HasSubstr("vpdpbusd"));
  // Machines without the instruction do not get the schedule.
  EXPECT_EQ(Tune({"best", program, "--target", "x86-64:skylake-avx512,cores=1"})
                .exit_code,
            3);
  // Neither does a user who passes the trace explicitly.
  const std::string trace = dir_.Write("best.trace", best("trace"));
  const CommandResult elsewhere = RunCommand(
      {Bin("tunec"), program, "--target", "x86-64:skylake-avx512,cores=1",
       "--trace", trace, "-o", dir_.File("product.so")});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.errors,
              HasSubstr("dot_16x4_vnni needs a target with avx512vnni"));
}

}  // namespace
}  // namespace tilefarm::testing
