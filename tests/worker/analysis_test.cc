#include "worker/builder/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/parser.h"

namespace tilefarm::worker {
namespace {

ProgramSpec Analyze(const std::string& function) {
  const auto parsed = ir::ParseFunction("@T.prim_func\n" + function);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return {};
  absl::StatusOr<ProgramSpec> spec = AnalyzeProgram(**parsed);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : ProgramSpec{};
}

TEST(AnalysisTest, SumIsAnOutputAlone) {
  const ProgramSpec spec = Analyze(R"(
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 16):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)");
  ASSERT_EQ(spec.buffers.size(), 2u);
  EXPECT_TRUE(spec.buffers[0].read);
  EXPECT_FALSE(spec.buffers[0].written);
  EXPECT_FALSE(spec.buffers[1].read);
  EXPECT_TRUE(spec.buffers[1].written);
  EXPECT_EQ(spec.buffers[0].elements, 128u);
  EXPECT_FALSE(spec.cold_constants);
}

TEST(AnalysisTest, ConstantsAreLayoutFree) {
  const ProgramSpec spec = Analyze(R"(
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
         C: T.Buffer((8,), "float32")):
    T.func_attr({"layout_free_buffers": [1], "tilefarm.cold_constants": 1})
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * B[vi]
)");
  ASSERT_EQ(spec.buffers.size(), 3u);
  EXPECT_FALSE(spec.buffers[0].layout_free);
  EXPECT_TRUE(spec.buffers[1].layout_free);
  EXPECT_FALSE(spec.buffers[2].layout_free);
  EXPECT_TRUE(spec.cold_constants);
}

TEST(AnalysisTest, InPlaceProgramReadsWhatItWrites) {
  const ProgramSpec spec = Analyze(R"(
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] * T.float32(2)
)");
  ASSERT_EQ(spec.buffers.size(), 1u);
  EXPECT_TRUE(spec.buffers[0].read);
  EXPECT_TRUE(spec.buffers[0].written);
}

TEST(AnalysisTest, IndexInputsAreInBounds) {
  const ProgramSpec spec = Analyze(R"(
def main(data: T.Buffer((50, 4), "float32"), idx: T.Buffer((6,), "int32"),
         other: T.Buffer((6,), "int32"), mask: T.Buffer((6,), "uint8"),
         out: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = data[idx[vi], vj] + T.Cast("float32", other[vi]) + T.Cast("float32", mask[vi])
)");
  ASSERT_EQ(spec.buffers.size(), 5u);
  EXPECT_EQ(spec.buffers[1].low, 0);
  EXPECT_EQ(spec.buffers[1].high, 49);
  EXPECT_LT(spec.buffers[2].low, 0);
  EXPECT_EQ(spec.buffers[3].low, 0);
}

}  // namespace
}  // namespace tilefarm::worker
