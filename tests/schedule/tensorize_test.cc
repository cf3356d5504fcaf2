// blockize, tensorize and the intrinsics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/target/target.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kRelu[] = R"(
for i, j in T.grid(16, 16):
    with T.block("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = T.max(C[vi, vj], T.float32(0)))";
constexpr char kTile4[] = R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l1, factors=[None, 4])
l6, l7 = sch.split(l2, factors=[None, 4])
l8, l9 = sch.split(l3, factors=[None, 4])
sch.reorder(l4, l6, l8, l5, l7, l9)
)";

TEST(Blockize, MakesATileABlock) {
  ExpectBecomes(MatmulRelu(), std::string(kTile4) + "b10 = sch.blockize(l5)\n",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
for i_0, j_0, k_0 in T.grid(4, 4, 4):
    with T.block("C_o"):
        vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
        T.reads(A[vi_o * 4:vi_o * 4 + 4, vk_o * 4:vk_o * 4 + 4], B[vk_o * 4:vk_o * 4 + 4, vj_o * 4:vj_o * 4 + 4])
        T.writes(C[vi_o * 4:vi_o * 4 + 4, vj_o * 4:vj_o * 4 + 4])
        with T.init():
            for i_1, j_1 in T.grid(4, 4):
                with T.block("C_init"):
                    vi_i_init, vj_i_init = T.axis.remap("SS", [i_1, j_1])
                    C[vi_o * 4 + vi_i_init, vj_o * 4 + vj_i_init] = T.float32(0)
        for i_1, j_1, k_1 in T.grid(4, 4, 4):
            with T.block("C"):
                vi_i, vj_i, vk_i = T.axis.remap("SSR", [i_1, j_1, k_1])
                C[vi_o * 4 + vi_i, vj_o * 4 + vj_i] = C[vi_o * 4 + vi_i, vj_o * 4 + vj_i] + A[vi_o * 4 + vi_i, vk_o * 4 + vk_i] * B[vk_o * 4 + vk_i, vj_o * 4 + vj_i])" +
                            std::string(kRelu)));
}

TEST(Blockize, KeepsAnOuterPredicate) {
  ExpectSameResults(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[None, 5])
l5, l6 = sch.split(l2, factors=[None, 8])
sch.reorder(l3, l5, l4, l6)
b7 = sch.blockize(l6)
)");
}

TEST(Blockize, RefusesTailsInsideAndSeveralBlocks) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[None, 5])
b7 = sch.blockize(l4)
)",
                kIllegal, {"blockize", "block B"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, l3 = sch.get_loops(b1)
sch.compute_at(b0, l2)
b7 = sch.blockize(l2)
)",
                kIllegal, {"blockize", "more than one block"});
}

TEST(Blockize, RefusesAHalo) {
  ExpectRefused(Program("A: T.Buffer((10,), \"float32\"), "
                        "C: T.Buffer((8,), \"float32\")",
                        R"(B = T.alloc_buffer((10,), "float32")
for i in range(10):
    with T.block("B"):
        vi = T.axis.spatial(10, i)
        B[vi] = A[vi] * T.float32(2)
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        C[vi] = B[vi] + B[vi + 2])"),
                R"(b0 = sch.get_block("B")
b1 = sch.get_block("C")
l2, = sch.get_loops(b1)
sch.compute_at(b0, l2)
l3, l4 = sch.get_loops(b0)
b5 = sch.blockize(l4)
)",
                kIllegal, {"blockize", "block B", "cannot be divided"});
}

TEST(Tensorize, ReplacesALoopNest) {
  ExpectBecomes(MatmulRelu(),
                std::string(kTile4) + R"(b10 = sch.decompose_reduction(b0, l8)
sch.tensorize(l5, "matmul4x4")
)",
                Program(kMatmulParams,
                        R"(C = T.alloc_buffer((16, 16), "float32")
for i_0, j_0 in T.grid(4, 4):
    for i_1_init, j_1_init in T.grid(4, 4):
        with T.block("C_init"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1_init)
            vj = T.axis.spatial(16, j_0 * 4 + j_1_init)
            C[vi, vj] = T.float32(0)
    for k_0 in range(4):
        with T.block("C_update_o"):
            vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
            T.reads(C[vi_o * 4:vi_o * 4 + 4, vj_o * 4:vj_o * 4 + 4], A[vi_o * 4:vi_o * 4 + 4, vk_o * 4:vk_o * 4 + 4], B[vk_o * 4:vk_o * 4 + 4, vj_o * 4:vj_o * 4 + 4])
            T.writes(C[vi_o * 4:vi_o * 4 + 4, vj_o * 4:vj_o * 4 + 4])
            for k in T.unroll(4):
                for i in T.unroll(4):
                    for j in T.vectorized(4):
                        with T.block("update"):
                            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                            C[vi_o * 4 + vi, vj_o * 4 + vj] = C[vi_o * 4 + vi, vj_o * 4 + vj] + A[vi_o * 4 + vi, vk_o * 4 + vk] * B[vk_o * 4 + vk, vj_o * 4 + vj])" +
                            std::string(kRelu)));
}

TEST(Tensorize, KeepsTheInitOfABlock) {
  ExpectSameResults(MatmulRelu(), std::string(kTile4) +
                                      "b10 = sch.blockize(l5)\n"
                                      "sch.tensorize(b10, \"matmul4x4\")\n");
}

TEST(Tensorize, MakesByteDotProducts) {
  const std::string program = Program(
      "A: T.Buffer((6, 16), \"uint8\"), B: T.Buffer((32, 16), \"int8\"), "
      "C: T.Buffer((6, 32), \"int32\")",
      R"(for i, j, k in T.grid(6, 32, 16):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = 0
        C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32"))");
  ExpectSameResults(program, R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l2, factors=[None, 16])
l6, l7 = sch.split(l3, factors=[None, 4])
sch.reorder(l1, l4, l6, l5, l7)
b8 = sch.decompose_reduction(b0, l6)
sch.tensorize(l5, "dot_16x4_vnni")
)");
  ExpectSameResults(program, R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l6, l7 = sch.split(l3, factors=[None, 4])
b8 = sch.decompose_reduction(b0, l6)
sch.tensorize(l7, "dot_4x1x1_uint8_int8_int32")
)");
}

TEST(Tensorize, RefusesOtherComputations) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
l1, l2 = sch.get_loops(b0)
sch.tensorize(l1, "matmul4x4")
)",
                kIllegal, {"tensorize", "matmul4x4"});
  ExpectRefused(MatmulRelu(),
                std::string(kTile4) + "sch.tensorize(l5, \"dot_16x4_vnni\")\n",
                kIllegal, {"tensorize", "dot_16x4_vnni"});
  ExpectRefused(MatmulRelu(),
                std::string(kTile4) + "sch.tensorize(l5, \"no_such_unit\")\n",
                kInvalid, {"tensorize", "no_such_unit", "matmul4x4"});
}

// Every implementation computes the same as its description.
TEST(TensorIntrins, ComputeWhatTheyDescribe) {
  ASSERT_FALSE(schedule::TensorIntrins().empty());
  for (const schedule::TensorIntrin& intrin : schedule::TensorIntrins()) {
    Rng rng(7);
    std::vector<std::vector<std::byte>> a;
    for (const ir::Buffer& param : intrin.description->params) {
      std::vector<std::byte> data;
      for (int64_t i = 0; i < param->num_elements(); ++i) {
        const float value = static_cast<float>(rng.Between(-8, 8));
        std::byte bytes[4];
        if (param->dtype == ir::DataType::BFloat16()) {
          const auto bits = std::bit_cast<uint32_t>(value) >> 16;
          std::memcpy(bytes, &bits, 4);
        } else if (param->dtype.is_float()) {
          std::memcpy(bytes, &value, 4);
        } else {
          for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(rng.Below(256));
          }
        }
        data.insert(data.end(), bytes, bytes + param->dtype.bytes());
      }
      a.push_back(std::move(data));
    }
    auto b = a;
    const std::vector<std::span<std::byte>> in_a(a.begin(), a.end());
    const std::vector<std::span<std::byte>> in_b(b.begin(), b.end());
    EXPECT_TRUE(ir::Interpret(*intrin.description, in_a).ok());
    EXPECT_TRUE(ir::Interpret(*intrin.implementation, in_b).ok());
    EXPECT_TRUE(a == b) << intrin.name;
  }
  EXPECT_EQ(schedule::FindTensorIntrin("nothing").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(TensorIntrins, NeedWhatTheirInstructionNeeds) {
  const auto check = [](const std::string& intrin, const std::string& target) {
    const auto trace = schedule::Trace::Parse(
        "b0 = sch.get_block(\"C\")\nsch.tensorize(b0, \"" + intrin + "\")\n");
    EXPECT_TRUE(trace.ok()) << trace.status();
    return schedule::CheckCapabilities(*trace,
                                       target::Parse(target)->capabilities);
  };
  EXPECT_TRUE(check("dot_16x4_vnni", "x86-64:cascadelake").ok());
  EXPECT_TRUE(check("dot_8x4_vnni", "x86-64:alderlake").ok());
  EXPECT_TRUE(check("matmul4x4", "x86-64").ok());
  const absl::Status lacking = check("dot_16x2_bf16", "x86-64:cascadelake");
  EXPECT_EQ(lacking.code(), kInvalid);
  EXPECT_THAT(std::string(lacking.message()),
              ::testing::HasSubstr("dot_16x2_bf16 needs a target with "
                                   "avx512bf16"));
  // Without AVX-512VL the instruction has no form for eight lanes.
  const absl::Status wide =
      check("dot_8x4_vnni", "x86-64:cascadelake,-avx512vl");
  EXPECT_THAT(std::string(wide.message()),
              ::testing::HasSubstr("avxvnni or avx512vnni with avx512vl"));
  // Replay reports an unknown name.
  EXPECT_TRUE(check("no_such_unit", "x86-64").ok());
}

// Panels by division and remainder: equal only within the lanes' bounds.
TEST(Tensorize, ReadsPanels) {
  ExpectSameResults(Program("A: T.Buffer((6, 16), \"uint8\"), "
                            "B: T.Buffer((16, 64), \"int8\"), "
                            "C: T.Buffer((6, 64), \"int32\")",
                            R"(for i, j, k in T.grid(6, 64, 16):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = 0
        C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vk, vj], "int32"))"),
                    R"(b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l2, factors=[None, 16])
l6, l7 = sch.split(l3, factors=[None, 4])
sch.reorder(l1, l4, l6, l5, l7)
b8 = sch.cache_read(b0, 1, "global")
sch.transform_layout(b8, buffer=("write", 0), index_map=lambda k, n: (n // 32, k // 4, n % 32 // 16, n % 16, k % 4))
b9 = sch.decompose_reduction(b0, l6)
sch.tensorize(l5, "dot_16x4_vnni")
)");
}

}  // namespace
}  // namespace tilefarm::testing
