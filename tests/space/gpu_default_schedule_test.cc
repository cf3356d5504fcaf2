#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "compiler/ir/parser.h"
#include "compiler/ir/verifier.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/kernels.h"
#include "tests/space/gpu_test_programs.h"

namespace tilefarm::space {
namespace {

ir::PrimFuncPtr Scheduled(const ir::PrimFuncPtr& program,
                          const target::Target& target) {
  auto schedule = DefaultSchedule(ir::IRModule{{program}}, target,
                                  ir::FloatRule::kAsWritten);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return program;
  const ir::PrimFuncPtr scheduled = schedule->module().Find("main");
  if (std::getenv("TILEFARM_PRINT") != nullptr) {
    std::cout << schedule->trace().Print() << ir::Print(*scheduled);
  }
  const absl::Status verified = ir::Verify(*scheduled);
  EXPECT_TRUE(verified.ok()) << verified << ir::Print(*scheduled);
  const absl::Status kernels = CheckKernels(*scheduled, *target.gpu);
  EXPECT_TRUE(kernels.ok()) << kernels << ir::Print(*scheduled);
  return scheduled;
}

TEST(DefaultGpuScheduleTest, BindsEveryNestAndKeepsTheProgram) {
  const target::Target target = GpuTarget();
  for (const GpuProgram& program : GpuPrograms()) {
    SCOPED_TRACE(program.name);
    Scheduled(program.usual, target);
    ExpectSameOutputs(*program.small, *Scheduled(program.small, target));
  }
}

// Of a batch of one, and of windows of one element: sums that are split over
// blocks are still products for tensor cores.
constexpr char kBatchOfOne[] = R"(
@T.prim_func
def main(A: T.Buffer((1, 128, 768), "float16"), B: T.Buffer((768, 768), "float16"),
         C: T.Buffer((1, 128, 768), "float32")):
    for b, i, j, k in T.grid(1, 128, 768, 768):
        with T.block("C"):
            vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
            with T.init():
                C[vb, vi, vj] = T.float32(0)
            C[vb, vi, vj] = C[vb, vi, vj] + T.Cast("float32", A[0, vi, vk]) * T.Cast("float32", B[vk, vj])
)";
constexpr char kWindowsOfOne[] = R"(
@T.prim_func
def main(X: T.Buffer((1, 14, 14, 1024), "float16"), W: T.Buffer((1, 1, 1024, 256), "float16"),
         Y: T.Buffer((1, 14, 14, 256), "float32")):
    for n, y, x, f, u, v, c in T.grid(1, 14, 14, 256, 1, 1, 1024):
        with T.block("Y"):
            vn, vy, vx, vf, vu, vv, vc = T.axis.remap("SSSSRRR", [n, y, x, f, u, v, c])
            with T.init():
                Y[vn, vy, vx, vf] = T.float32(0)
            Y[vn, vy, vx, vf] = Y[vn, vy, vx, vf] + T.Cast("float32", X[vn, vy + vu, vx + vv, vc]) * T.Cast("float32", W[vu, vv, vc, vf])
)";

TEST(DefaultGpuScheduleTest, SplitProductsAreTiled) {
  for (const char* text : {kBatchOfOne, kWindowsOfOne}) {
    const auto module = ir::ParseModule(text);
    ASSERT_TRUE(module.ok()) << module.status();
    for (const auto& [name, mark] :
         {std::pair{"cuda:sm_75", "tilefarm.warp_matrix"},
          std::pair{"cuda:sm_80", "tilefarm.warp_matrix"},
          std::pair{"cuda:sm_90a", "tilefarm.warp"}}) {
      const auto schedule =
          DefaultSchedule(*module, GpuTarget(name), ir::FloatRule::kAsWritten);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const std::string trace = schedule->trace().Print();
      EXPECT_THAT(trace, testing::HasSubstr("sch.rfactor(")) << name;
      EXPECT_THAT(trace, testing::HasSubstr(mark)) << name << text;
    }
  }
}

}  // namespace
}  // namespace tilefarm::space
