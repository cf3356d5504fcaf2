// Programs printed by TVM 0.8 to 0.27 can be parsed: each form gives the same
// program as its modern spelling, prints to a fixed point, and computes,
// compiled, the same as in the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "tests/lower/compiled_program.h"
#include "tests/lower/dialect_programs.h"

namespace tilefarm::testing {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;

std::vector<std::span<std::byte>> Spans(Buffers& buffers) {
  return {buffers.begin(), buffers.end()};
}

Buffers RandomBuffers(const ir::PrimFunc& function) {
  Rng rng(1);
  Buffers buffers;
  for (const ir::Buffer& param : function.params) {
    std::vector<std::byte>& bytes =
        buffers.emplace_back(param->memory_elements() * param->dtype.bytes());
    for (size_t at = 0; at < bytes.size(); at += 4) {
      const float real = static_cast<float>(rng.Uniform() * 2 - 1);
      const auto integer = static_cast<int32_t>(rng.Between(-12, 12));
      std::memcpy(
          &bytes[at],
          param->dtype.is_float() ? static_cast<const void*>(&real) : &integer,
          4);
    }
  }
  return buffers;
}

class DialectTest : public ::testing::TestWithParam<DialectProgram> {};

TEST_P(DialectTest, IsTheProgramOfItsModernSpelling) {
  const auto read = ir::ParseFunction(GetParam().dialect, "dialect");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto modern = ir::ParseFunction(GetParam().modern, "modern");
  ASSERT_TRUE(modern.ok()) << modern.status().message();
  EXPECT_TRUE(ir::StructuralEqual(**read, **modern))
      << ir::Print(**read) << ir::Print(**modern);
  const std::string printed = ir::Print(**read);
  const auto again = ir::ParseFunction(printed, "printed");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ir::Print(**again), printed);
  EXPECT_TRUE(ir::StructuralEqual(**read, **again));

  const auto compiled =
      CompiledProgram::Compile(ir::IRModule{{*read}}, "host,cores=1");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Buffers expected = RandomBuffers(**read);
  Buffers got = expected;
  ASSERT_TRUE(ir::Interpret(**read, Spans(expected)).ok());
  ASSERT_TRUE(compiled->Run(Spans(got)).ok());
  for (size_t p = 0; p < got.size(); ++p) {
    if (!(*read)->params[p]->dtype.is_float()) {
      EXPECT_EQ(got[p], expected[p]) << "parameter " << p;
      continue;
    }
    for (size_t at = 0; at < got[p].size(); at += 4) {
      float a, b;
      std::memcpy(&a, &got[p][at], 4);
      std::memcpy(&b, &expected[p][at], 4);
      EXPECT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)))
          << "parameter " << p << ", element " << at / 4;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DialectTest,
                         ::testing::ValuesIn(DialectPrograms()),
                         [](const auto& info) { return info.param.name; });

// --- Strides and offsets of parameters ---------------------------------------

// A has rows of 4 elements with stride 6, from element 5 on; B repeats one row;
// C has contiguous columns.
constexpr char kStrided[] = R"(
@T.prim_func
def f(A: T.Buffer((3, 4), "float32", strides=(6, 1), elem_offset=5),
      B: T.Buffer((3, 4), "float32", strides=(0, 2)),
      c: T.handle):
    C = T.match_buffer(c, (3, 4), "float32", strides=[1, 3], elem_offset=2)
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(100) + B[vi, vj]
)";

TEST(StridedParameters, KeepTheirLayoutInTheText) {
  const auto function = ir::ParseFunction(kStrided);
  ASSERT_TRUE(function.ok()) << function.status();
  const std::string printed = ir::Print(**function);
  EXPECT_NE(printed.find("strides=(6, 1), elem_offset=5)"), std::string::npos)
      << printed;
  const auto again = ir::ParseFunction(printed);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(**again), printed);
  EXPECT_TRUE(ir::StructuralEqual(**function, **again));
  // The layout is part of the program's identity.
  std::string other = printed;
  other.replace(other.find("strides=(6, 1)"), 14, "strides=(7, 1)");
  const auto wider = ir::ParseFunction(other);
  ASSERT_TRUE(wider.ok()) << wider.status();
  EXPECT_FALSE(ir::StructuralEqual(**function, **wider));
  EXPECT_NE(ir::WorkloadHash(**function), ir::WorkloadHash(**wider));
}

TEST(StridedParameters, RowMajorOnesAreNone) {
  const auto strided = ir::ParseFunction(R"(
@T.prim_func
def f(A: T.Buffer((1, 4, 1), "float32", strides=(99, 1, 7), elem_offset=0)):
    for i in range(4):
        A[0, i, 0] = T.float32(1)
)");
  ASSERT_TRUE(strided.ok()) << strided.status();
  EXPECT_TRUE((*strided)->params[0]->is_dense());
}

TEST(StridedParameters, AreReadAndWrittenWhereTheyAre) {
  const auto function = ir::ParseFunction(kStrided);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ((*function)->params[0]->memory_elements(), 5 + 2 * 6 + 3 + 1);
  EXPECT_EQ((*function)->params[1]->memory_elements(), 3 * 2 + 1);
  EXPECT_EQ((*function)->params[2]->memory_elements(), 2 + 2 + 3 * 3 + 1);
  const auto compiled =
      CompiledProgram::Compile(ir::IRModule{{*function}}, "host,cores=1");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  for (const bool interpreted : {true, false}) {
    SCOPED_TRACE(interpreted ? "interpreted" : "compiled");
    std::vector<std::vector<float>> data = {std::vector<float>(21),
                                            std::vector<float>(7),
                                            std::vector<float>(14, -1.0f)};
    for (size_t p = 0; p < 2; ++p) {
      for (size_t i = 0; i < data[p].size(); ++i) {
        data[p][i] = static_cast<float>(i);
      }
    }
    std::vector<std::span<std::byte>> spans;
    for (std::vector<float>& one : data) {
      spans.push_back(std::as_writable_bytes(std::span<float>(one)));
    }
    const absl::Status run =
        interpreted ? ir::Interpret(**function, spans) : compiled->Run(spans);
    ASSERT_TRUE(run.ok()) << run;
    std::vector<float> expected(14, -1.0f);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 4; ++j) {
        expected[static_cast<size_t>(2 + i + 3 * j)] =
            static_cast<float>(100 * (5 + 6 * i + j) + 2 * j);
      }
    }
    EXPECT_EQ(data[2], expected);
  }
}

}  // namespace
}  // namespace tilefarm::testing
