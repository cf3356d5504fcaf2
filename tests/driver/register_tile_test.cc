// The inner loop of a register-tiled matmul is optimal: fused multiply-adds
// with memory operands or broadcasts, no spill, no reload.
#include <regex>
#include <sstream>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/parser.h"
#include "compiler/lower/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm {
namespace {

// A 6 x 64 tile of C (6 rows, 4 vectors of 16) in registers over all of k.
constexpr char kTiledMatmul[] = R"(
@T.prim_func
def matmul(A: T.Buffer((96, 256), "float32"), B: T.Buffer((256, 128), "float32"),
           C: T.Buffer((96, 128), "float32")):
    for io, jo in T.grid(16, 2):
        for ii_init in T.unroll(6):
            for jm_init in T.unroll(4):
                for ji_init in T.vectorized(16):
                    with T.block("C_init"):
                        vi = T.axis.spatial(96, io * 6 + ii_init)
                        vj = T.axis.spatial(128, jo * 64 + jm_init * 16 + ji_init)
                        C[vi, vj] = T.float32(0)
        for k in range(256):
            for ii in T.unroll(6):
                for jm in T.unroll(4):
                    for ji in T.vectorized(16):
                        with T.block("C_update"):
                            vi = T.axis.spatial(96, io * 6 + ii)
                            vj = T.axis.spatial(128, jo * 64 + jm * 16 + ji)
                            vk = T.axis.reduce(256, k)
                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

// The lines of the basic block with the most fused multiply-adds.
std::vector<std::string> HottestBlock(const std::string& assembly) {
  std::vector<std::string> best, block;
  int best_count = 0, count = 0;
  const auto finish = [&] {
    if (count > best_count) {
      best_count = count;
      best = block;
    }
    block.clear();
    count = 0;
  };
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == '.') {
      finish();
      continue;
    }
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    if (line[first] == '.') continue;  // a directive
    block.push_back(line);
    count += line.find("vfmadd") != std::string::npos;
    if (line[first] == 'j') finish();
  }
  finish();
  return best;
}

TEST(RegisterTile, InnerLoopHasNoSpillAndNoScalarLoad) {
  const auto target = target::Parse("x86-64:sapphirerapids,cores=1");
  ASSERT_TRUE(target.ok()) << target.status();
  const auto program = ir::ParseFunction(kTiledMatmul);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto lowered = lower::Lower(**program, *target);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::vector<codegen::LoweredFunction> functions = {
      {*lowered, "matmul"}};
  const auto assembly = codegen::EmitAssembly(functions, {*target});
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  const std::vector<std::string> loop = HottestBlock(*assembly);
  const std::regex stack(R"(\(%rsp)");
  const std::regex scalar_load(R"(vmovs[sd]\s+[^,]*\()");
  const std::regex store(R"(vmov[ua]ps\s+%zmm\d+,\s+[^,]*\()");
  int multiply_adds = 0;
  for (const std::string& line : loop) {
    EXPECT_FALSE(std::regex_search(line, stack)) << line;
    EXPECT_FALSE(std::regex_search(line, scalar_load)) << line;
    EXPECT_FALSE(std::regex_search(line, store)) << line;
    if (line.find("vfmadd") != std::string::npos) {
      ++multiply_adds;
      EXPECT_THAT(line, testing::HasSubstr("zmm"));
    }
  }
  EXPECT_EQ(multiply_adds % 24, 0) << *assembly;
  EXPECT_GE(multiply_adds, 24) << *assembly;
  // 24 multiply-adds, 4 vectors of B, 6 broadcasts at most, the loop itself.
  EXPECT_LE(loop.size(), static_cast<size_t>(multiply_adds / 24 * 40));
}

}  // namespace
}  // namespace tilefarm
