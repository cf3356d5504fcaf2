// Random programs with the default schedule of a GPU: every nest is bound to
// blocks and threads, within the limits, and computes what the program does;
// also if blocks run in reverse order.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/verifier.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/target/target.h"
#include "tests/property/random_text_program.h"

namespace tilefarm::property {
namespace {

constexpr uint64_t kFirstSeed = 1;
constexpr int kPrograms = 1500;
constexpr int64_t kMaxSteps = int64_t{1} << 24;

using Buffers = std::vector<std::vector<std::byte>>;

// Integers of magnitude 3 or less.
Buffers SmallInputs(const ir::PrimFunc& function, Rng& rng) {
  Buffers buffers;
  for (const ir::Buffer& param : function.params) {
    std::vector<std::byte> bytes(
        static_cast<size_t>(param->num_elements() * param->dtype.bytes()));
    const int width = param->dtype.bytes();
    for (int64_t i = 0; i < param->num_elements(); ++i) {
      const auto value = static_cast<int64_t>(rng.Below(4));
      std::byte* at = bytes.data() + i * width;
      if (param->dtype == ir::DataType::Float(32)) {
        const auto f = static_cast<float>(value);
        std::memcpy(at, &f, sizeof(f));
      } else if (param->dtype == ir::DataType::Float(64)) {
        const auto f = static_cast<double>(value);
        std::memcpy(at, &f, sizeof(f));
      } else if (param->dtype.is_float()) {
        // Zero in every 16-bit type.
        std::memset(at, 0, static_cast<size_t>(width));
      } else {
        const int64_t whole = param->dtype.is_bool() ? value % 2 : value;
        std::memcpy(at, &whole, static_cast<size_t>(width));
      }
    }
    buffers.push_back(std::move(bytes));
  }
  return buffers;
}

absl::StatusOr<Buffers> Results(const ir::PrimFunc& function, Buffers buffers,
                                const ir::InterpretOptions& options) {
  std::vector<std::span<std::byte>> spans(buffers.begin(), buffers.end());
  const absl::Status status = ir::Interpret(function, spans, options);
  if (!status.ok()) return status;
  return buffers;
}

TEST(GpuDefaultPropertyTest, KeepsRandomPrograms) {
  const target::Target target = *target::Parse("sim:sm_80");
  int compared = 0;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kPrograms; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Rng rng(seed);
    const TextProgram text = RandomTextProgram(rng);
    const auto program = ir::ParseFunction(text.text);
    if (!program.ok()) continue;
    const auto schedule = space::DefaultSchedule(
        ir::IRModule{{*program}}, target, ir::FloatRule::kAsWritten);
    ASSERT_TRUE(schedule.ok()) << schedule.status() << text.text;
    const ir::PrimFuncPtr scheduled = schedule->module().functions[0];
    const std::string printed = ir::Print(*scheduled);
    ASSERT_TRUE(ir::Verify(*scheduled).ok()) << printed;
    const absl::Status kernels = space::CheckKernels(*scheduled, *target.gpu);
    ASSERT_TRUE(kernels.ok()) << kernels << printed;
    if (!text.exact) continue;
    const Buffers inputs = SmallInputs(**program, rng);
    const auto want = Results(
        **program, inputs, {.max_steps = kMaxSteps, .refuse_unwritten = true});
    if (!want.ok()) continue;
    for (const bool reverse : {false, true}) {
      const auto got = Results(
          *scheduled, inputs,
          {.max_steps = int64_t{1} << 28, .reverse_concurrent_loops = reverse});
      ASSERT_TRUE(got.ok()) << got.status() << printed;
      ASSERT_TRUE(*got == *want)
          << (reverse ? "in reverse order\n" : "") << text.text << printed;
    }
    ++compared;
  }
  EXPECT_GT(compared, kPrograms / 3);
}

}  // namespace
}  // namespace tilefarm::property
