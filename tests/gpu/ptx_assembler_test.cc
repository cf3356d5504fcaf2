// PTX to machine code by NVIDIA's tools. A test is skipped where its tool is
// not installed.
#include "compiler/codegen/ptx_assembler.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kText[] = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry add_one(.param .u64 a)
{
  .shared .align 4 .b8 s[128];
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [a];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, 0f3F800000;
  st.shared.f32 [s], %f1;
  bar.sync 0;
  ld.shared.f32 %f1, [s];
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .entry nothing() { ret; }
)";

class PtxAssembler : public testing::TestWithParam<PtxTool> {
 protected:
  void SetUp() override {
    const auto probe = AssemblePtx(kText, "sm_90a", GetParam());
    if (absl::IsNotFound(probe.status())) {
      GTEST_SKIP() << probe.status().message();
    }
  }
};

TEST_P(PtxAssembler, MakesACubinAndDescribesKernels) {
  const auto made = AssemblePtx(kText, "sm_90a", GetParam());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->cubin.substr(0, 4), "\177ELF");
  EXPECT_THAT(made->tool, testing::MatchesRegex(
                              "(ptxas|nvJitLink) [0-9]+\\.[0-9]+\\.[0-9]+"));
  ASSERT_EQ(made->kernels.size(), 2) << made->log;
  for (const Assembled::Kernel& kernel : made->kernels) {
    EXPECT_GT(kernel.registers, 0);
    EXPECT_LT(kernel.registers, 32);
    EXPECT_EQ(kernel.spill_bytes, 0);
    EXPECT_EQ(kernel.stack_bytes, 0);
    EXPECT_EQ(kernel.static_shared, kernel.name == "add_one" ? 128 : 0);
  }
  EXPECT_NE(made->kernels[0].name, made->kernels[1].name);
}

TEST_P(PtxAssembler, IsDeterministic) {
  const auto first = AssemblePtx(kText, "sm_90a", GetParam());
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto again = AssemblePtx(kText, "sm_90a", GetParam());
      same += again.ok() && again->cubin == first->cubin &&
              again->log == first->log;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 4);
}

TEST_P(PtxAssembler, RejectedTextIsAnErrorWithTheLog) {
  const std::string text =
      absl::StrReplaceAll(kText, {{"add.f32", "bogus.f32"}});
  const auto made = AssemblePtx(text, "sm_90a", GetParam());
  EXPECT_TRUE(absl::IsInternal(made.status())) << made.status();
  EXPECT_THAT(made.status().ToString(), HasSubstr("rejected the PTX"));
  EXPECT_THAT(made.status().ToString(),
              HasSubstr("Not a name of any known instruction: 'bogus'"));
  EXPECT_THAT(made.status().ToString(), Not(HasSubstr("tilefarm-ptx-")));
}

TEST_P(PtxAssembler, UnknownArchitectureIsAnError) {
  const auto made = AssemblePtx(kText, "sm_9999", GetParam());
  EXPECT_TRUE(absl::IsInternal(made.status())) << made.status();
}

INSTANTIATE_TEST_SUITE_P(Tools, PtxAssembler,
                         testing::Values(PtxTool::kPtxas, PtxTool::kNvJitLink),
                         [](const auto& info) {
                           return info.param == PtxTool::kPtxas ? "Ptxas"
                                                                : "NvJitLink";
                         });

TEST(PtxAssemblerLog, HasTheFiguresOfKernelsAlone) {
  const auto kernels = ParseAssemblerLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k1' for 'sm_90a'\n"
      "ptxas info    : Function properties for k1\n"
      "    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
      "ptxas info    : Function properties for inner\n"
      "    64 bytes stack frame, 1 bytes spill stores, 1 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 16 bytes "
      "cumulative stack size, 1024 bytes smem\n"
      "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
      "ptxas info    : Used 8 registers\n");
  ASSERT_EQ(kernels.size(), 2);
  EXPECT_EQ(kernels[0].name, "k1");
  EXPECT_EQ(kernels[0].registers, 255);
  EXPECT_EQ(kernels[0].spill_bytes, 32);
  EXPECT_EQ(kernels[0].stack_bytes, 16);
  EXPECT_EQ(kernels[0].static_shared, 1024);
  EXPECT_EQ(kernels[1].name, "k2");
  EXPECT_EQ(kernels[1].registers, 8);
  EXPECT_EQ(kernels[1].static_shared, 0);
}

// Tools that exist but do not work are not passed over.
TEST(PtxAssemblerChoice, ChosenToolThatFailsIsAnError) {
  setenv("TILEFARM_PTXAS", "/nowhere/ptxas", 1);
  EXPECT_TRUE(absl::IsUnavailable(AssemblePtx(kText, "sm_90a").status()));
  setenv("TILEFARM_PTXAS", "/bin/false", 1);
  EXPECT_TRUE(absl::IsInternal(AssemblePtx(kText, "sm_90a").status()));
  unsetenv("TILEFARM_PTXAS");
}

}  // namespace
}  // namespace tilefarm::codegen
