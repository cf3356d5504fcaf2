// Attention as one kernel: by warpgroups, what its rule draws is compiled, and
// what a trace that says something else is refused for; and by threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/lower/pipeline.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/design_space.h"
#include "tests/space/gpu_test_programs.h"

namespace tilefarm::space {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// $0 queries, $1 keys; $2 numbers of each, and $3 of a value.
constexpr char kAttention[] = R"(
@T.prim_func
def main(Q: T.Buffer(($0, $2), "float16"), K: T.Buffer(($1, $2), "float16"),
         V: T.Buffer(($1, $3), "float16"), O: T.Buffer(($0, $3), "float32")):
    S = T.alloc_buffer(($0, $1), "float32")
    M = T.alloc_buffer(($0,), "float32")
    D = T.alloc_buffer(($0,), "float32")
    P = T.alloc_buffer(($0, $1), "float16")
    for i, j, k in T.grid($0, $1, $2):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + T.Cast("float32", Q[vi, vk]) * T.Cast("float32", K[vj, vk])
    for i, j in T.grid($0, $1):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(-3.4028234663852886e+38)
            M[vi] = T.max(M[vi], S[vi, vj])
    for i, j in T.grid($0, $1):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + T.exp(S[vi, vj] - M[vi])
    for i, j in T.grid($0, $1):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.Cast("float16", T.exp(S[vi, vj] - M[vi]) / D[vi])
    for i, j, k in T.grid($0, $3, $1):
        with T.block("O"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                O[vi, vj] = T.float32(0)
            O[vi, vj] = O[vi, vj] + T.Cast("float32", P[vi, vk]) * T.Cast("float32", V[vk, vj])
)";

class GpuChainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    module_ = Module({128, 256, 128, 128});
    const auto schedule = DefaultSchedule(module_, GpuTarget("cuda:sm_90a"),
                                          ir::FloatRule::kMayDiffer);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    trace_ = schedule->trace().Print();
    ASSERT_THAT(trace_, HasSubstr(R"(ann_val="wgmma")"));
  }

  static ir::IRModule Module(const std::array<int, 4>& sizes) {
    const auto module = ir::ParseModule(
        absl::Substitute(kAttention, sizes[0], sizes[1], sizes[2], sizes[3]));
    EXPECT_TRUE(module.ok()) << module.status();
    return *module;
  }

  // Of the program with a trace, up to code.
  absl::Status Compile(const std::string& trace, const char* target) const {
    TF_ASSIGN_OR_RETURN(const schedule::Trace parsed,
                        schedule::Trace::Parse(trace));
    TF_ASSIGN_OR_RETURN(const schedule::Schedule schedule,
                        schedule::Replay(parsed, module_));
    return lower::Lower(*schedule.module().Find("main"), GpuTarget(target))
        .status();
  }

  std::string With(const std::string& from, const std::string& to) const {
    EXPECT_THAT(trace_, HasSubstr(from));
    return absl::StrReplaceAll(trace_, {{from, to}});
  }
  // The last place alone.
  std::string WithLast(const std::string& from, const std::string& to) const {
    std::string text = trace_;
    const size_t at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }

  ir::IRModule module_;
  std::string trace_;
};

TEST_F(GpuChainTest, DefaultIsCompiled) {
  EXPECT_TRUE(Compile(trace_, "cuda:sm_90a").ok());
}

TEST_F(GpuChainTest, DefaultsOfAllSizesFit) {
  for (const auto& sizes :
       std::vector<std::array<int, 4>>{{65536, 2048, 64, 64},
                                       {49152, 512, 64, 64},
                                       {65536, 4096, 128, 128},
                                       {192, 96, 128, 64},
                                       {4096, 128, 64, 192},
                                       {4096, 1024, 64, 256},
                                       {1024, 65536, 256, 128}}) {
    const auto schedule = DefaultSchedule(
        Module(sizes), GpuTarget("cuda:sm_90a"), ir::FloatRule::kMayDiffer);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_THAT(schedule->trace().Print(), HasSubstr(R"(ann_val="wgmma")"))
        << ::testing::PrintToString(sizes);
  }
}

// However many sketches the others have.
TEST_F(GpuChainTest, IsDrawnOften) {
  const auto space =
      DesignSpace::Create(module_.Find("main"), GpuTarget("cuda:sm_90a"));
  ASSERT_TRUE(space.ok()) << space.status();
  Rng rng(20261129);
  int chains = 0;
  for (int i = 0; i < 60; ++i) {
    const auto candidate = (*space)->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    chains += absl::StrContains(
        (*space)->sketches()[static_cast<size_t>(candidate->sketch)].Print(),
        R"(ann_val="wgmma")");
  }
  EXPECT_GE(chains, 10);
}

TEST_F(GpuChainTest, NeedsWarpgroups) {
  EXPECT_THAT(Compile(trace_, "cuda:sm_80").message(),
              HasSubstr("the target has no matrix units of warpgroups"));
}

TEST_F(GpuChainTest, ProductsAreInTheLoopOfStages) {
  EXPECT_THAT(
      Compile(With("tilefarm.warpgroup_stages", "tilefarm.shared_stages"),
              "cuda:sm_90a")
          .message(),
      HasSubstr("a product is in no loop with tilefarm.warpgroup_stages"));
}

TEST_F(GpuChainTest, TilesAreForTheUnitAlone) {
  EXPECT_THAT(
      Compile(WithLast(R"(ann_val="wgmma")", R"(ann_val="mma")"), "cuda:sm_90a")
          .message(),
      HasSubstr("a tile is read by no product of the unit"));
}

TEST_F(GpuChainTest, WarpsAreWholeGroups) {
  EXPECT_THAT(
      Compile(With("candidates=[4, 8]", "candidates=[2, 8]"), "cuda:sm_90a")
          .message(),
      HasSubstr("it has 2 warps, which are no whole warpgroups"));
}

TEST_F(GpuChainTest, RowsOfTilesAreLoopsOfTheirOwn) {
  EXPECT_THAT(
      Compile(With("factors=[None, 64]", "factors=[None, 128]"), "cuda:sm_90a")
          .message(),
      HasSubstr("an index is not affine"));
}

TEST_F(GpuChainTest, StagesHaveRoom) {
  EXPECT_THAT(Compile(With("candidates=[1, 2, 3]", "candidates=[1, 17, 3]"),
                      "cuda:sm_90a")
                  .message(),
              HasSubstr("it needs from 1 to 16 stages"));
}

TEST_F(GpuChainTest, OtherTargetsUseWarps) {
  const auto schedule = DefaultSchedule(module_, GpuTarget("cuda:sm_80"),
                                        ir::FloatRule::kMayDiffer);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_THAT(schedule->trace().Print(), HasSubstr(R"(ann_val="mma")"));
}

// Chains for threads: by default, with floats as the program has them.
class GpuThreadChainTest : public GpuChainTest {
 protected:
  void SetUp() override {}

  // Of the default schedule.
  static int Kernels(const ir::IRModule& module) {
    const auto schedule = DefaultSchedule(module, GpuTarget("cuda:sm_90a"),
                                          ir::FloatRule::kAsWritten);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    const std::string trace = schedule->trace().Print();
    EXPECT_THAT(trace, Not(HasSubstr(R"(ann_val="mma)")));
    const std::vector<std::string> parts =
        absl::StrSplit(trace, R"("blockIdx.x")");
    return static_cast<int>(parts.size()) - 1;
  }
  // In float32, which tensor cores round.
  static ir::IRModule Floats(const std::array<int, 4>& sizes) {
    const auto module = ir::ParseModule(absl::StrReplaceAll(
        absl::Substitute(kAttention, sizes[0], sizes[1], sizes[2], sizes[3]),
        {{"float16", "float32"}}));
    EXPECT_TRUE(module.ok()) << module.status();
    return *module;
  }
};

TEST_F(GpuThreadChainTest, AttentionIsOneKernel) {
  for (const auto& sizes :
       std::vector<std::array<int, 4>>{{4096, 512, 64, 64},
                                       {197, 197, 64, 64},
                                       {50, 77, 20, 18},
                                       {16384, 128, 128, 128}}) {
    EXPECT_EQ(Kernels(Floats(sizes)), 1) << ::testing::PrintToString(sizes);
  }
}

// Tiles of 8 rows would read all of K and V for each.
TEST_F(GpuThreadChainTest, MuchWorkOfFewRowsIsSeveral) {
  EXPECT_GT(Kernels(Floats({256, 4096, 512, 512})), 1);
}

TEST_F(GpuThreadChainTest, ScoresNeedRoom) {
  EXPECT_GT(Kernels(Floats({64, 65536, 16, 16})), 1);
}

// Whatever rows, warps and terms are drawn.
TEST_F(GpuThreadChainTest, DrawsAreCompiled) {
  module_ = Floats({37, 45, 20, 18});
  const auto space =
      DesignSpace::Create(module_.Find("main"), GpuTarget("cuda:sm_75"));
  ASSERT_TRUE(space.ok()) << space.status();
  Rng rng(20261130);
  int chains = 0;
  for (int i = 0; i < 40; ++i) {
    const auto candidate = (*space)->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const auto applied = (*space)->Apply(*candidate);
    if (!applied.ok()) continue;
    const std::string trace = applied->trace().Print();
    if (!absl::StrContains(trace, R"("threadIdx.y")")) continue;
    ++chains;
    const absl::Status compiled = Compile(trace, "cuda:sm_75");
    EXPECT_TRUE(compiled.ok()) << compiled << trace;
  }
  EXPECT_GE(chains, 5);
}

}  // namespace
}  // namespace tilefarm::space
