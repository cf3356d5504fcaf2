#include "tests/schedule/block_test_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::testing {
namespace {

constexpr uint64_t kSeed = 20261121;

using Arrays = std::vector<std::vector<std::byte>>;

// Small integers are exact in every dtype, and so are float sums of them, so
// that results can be compared bit by bit.
Arrays RandomArrays(const ir::PrimFunc& function) {
  Rng rng(kSeed);
  Arrays arrays;
  for (const ir::Buffer& param : function.params) {
    const int64_t n = param->num_elements();
    const int bytes = param->dtype.bytes();
    std::vector<std::byte> data(static_cast<size_t>(n * bytes));
    for (int64_t i = 0; i < n; ++i) {
      const int value = static_cast<int>(rng.Below(7)) - 3;
      std::byte* at = data.data() + i * bytes;
      if (param->dtype == ir::DataType::Float(32)) {
        const float f = static_cast<float>(value);
        std::memcpy(at, &f, sizeof(f));
      } else {
        const int64_t whole = value + 3;
        std::memcpy(at, &whole, static_cast<size_t>(bytes));
      }
    }
    arrays.push_back(std::move(data));
  }
  return arrays;
}

Arrays Run(const ir::PrimFunc& function, Arrays arrays) {
  std::vector<std::span<std::byte>> buffers(arrays.begin(), arrays.end());
  const absl::Status status = ir::Interpret(function, buffers);
  EXPECT_TRUE(status.ok()) << status;
  return arrays;
}

void ExpectEqualResults(const ir::IRModule& a, const ir::IRModule& b) {
  const Arrays inputs = RandomArrays(*a.functions[0]);
  EXPECT_TRUE(Run(*a.functions[0], inputs) == Run(*b.functions[0], inputs))
      << "seed " << kSeed << ": other results than the program as written\n"
      << ir::Print(b);
}

}  // namespace

std::string Program(std::string_view params, std::string_view body) {
  std::string text =
      absl::StrCat("@T.prim_func\ndef main(", std::string(params), "):\n");
  for (const auto line :
       absl::StrSplit(absl::string_view(body.data(), body.size()), '\n')) {
    absl::StrAppend(&text, line.empty() ? "" : "    ", line, "\n");
  }
  return text;
}

ir::IRModule ParseProgram(const std::string& text) {
  auto module = ir::ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? *std::move(module) : ir::IRModule{};
}

absl::StatusOr<schedule::Schedule> Apply(const ir::IRModule& module,
                                         std::string_view trace) {
  auto parsed = schedule::Trace::Parse(trace);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return parsed.status();
  return schedule::Replay(*parsed, module);
}

void ExpectSameResults(const std::string& program, std::string_view trace) {
  const ir::IRModule module = ParseProgram(program);
  ASSERT_FALSE(module.functions.empty());
  auto schedule = Apply(module, trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::Status verified = ir::Verify(schedule->module());
  EXPECT_TRUE(verified.ok()) << verified << "\n"
                             << ir::Print(schedule->module());
  ExpectEqualResults(module, schedule->module());
}

void ExpectBecomes(const std::string& program, std::string_view trace,
                   const std::string& expected) {
  const ir::IRModule module = ParseProgram(program);
  const ir::IRModule wanted = ParseProgram(expected);
  ASSERT_FALSE(module.functions.empty() || wanted.functions.empty());
  auto schedule = Apply(module, trace);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_TRUE(ir::StructuralEqual(*schedule->module().functions[0],
                                  *wanted.functions[0]))
      << ir::Print(schedule->module()) << "\nexpected\n"
      << ir::Print(wanted);
  const absl::Status verified = ir::Verify(schedule->module());
  EXPECT_TRUE(verified.ok()) << verified;
  ExpectEqualResults(module, schedule->module());
}

void ExpectRefused(const std::string& program, std::string_view trace,
                   absl::StatusCode code,
                   const std::vector<std::string>& parts) {
  const ir::IRModule module = ParseProgram(program);
  ASSERT_FALSE(module.functions.empty());
  auto schedule = Apply(module, trace);
  ASSERT_FALSE(schedule.ok()) << ir::Print(schedule->module());
  EXPECT_EQ(schedule.status().code(), code) << schedule.status();
  for (const std::string& part : parts) {
    EXPECT_NE(std::string(schedule.status().message()).find(part),
              std::string::npos)
        << "\"" << part << "\" is not in: " << schedule.status();
  }
}

std::string MatmulRelu() {
  return Program(
      "A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16, 16), \"float32\"), "
      "D: T.Buffer((16, 16), \"float32\")",
      R"(C = T.alloc_buffer((16, 16), "float32")
for i, j, k in T.grid(16, 16, 16):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], T.float32(0)))");
}

std::string TwoElementwise() {
  return Program(
      "A: T.Buffer((32, 32), \"float32\"), C: T.Buffer((32, 32), \"float32\")",
      R"(B = T.alloc_buffer((32, 32), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] * T.float32(2)
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + T.float32(1))");
}

}  // namespace tilefarm::testing
