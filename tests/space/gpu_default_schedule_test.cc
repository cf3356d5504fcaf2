#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

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

}  // namespace
}  // namespace tilefarm::space
