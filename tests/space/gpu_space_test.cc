// The design space of GPUs: every candidate is legal, keeps the program, and
// fits the target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/sanitizers.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/verifier.h"
#include "compiler/space/design_space.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/space/gpu/products.h"
#include "tests/space/gpu_test_programs.h"

namespace tilefarm::space {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSeed = 20261203;
// Draws for each sketch; with a sanitizer each takes twelve times as long.
constexpr int kUsualDraws = TILEFARM_SANITIZED ? 1 : 10;
constexpr int kSmallDraws = TILEFARM_SANITIZED ? 4 : 50;

std::unique_ptr<DesignSpace> Space(const ir::PrimFuncPtr& program,
                                   const target::Target& target) {
  auto space = DesignSpace::Create(program, target);
  EXPECT_TRUE(space.ok()) << space.status();
  return space.ok() ? *std::move(space) : nullptr;
}

// Applies the candidate and checks everything but the results; null if it is
// illegal.
ir::PrimFuncPtr Checked(const DesignSpace& space, const Candidate& candidate,
                        const target::Target& target) {
  const auto applied = space.Apply(candidate);
  const auto draft = space.Draft(candidate);
  EXPECT_EQ(draft.ok(), applied.ok()) << draft.status() << applied.status();
  if (!applied.ok()) {
    EXPECT_EQ(applied.status().code(), absl::StatusCode::kFailedPrecondition)
        << applied.status();
    return nullptr;
  }
  const std::string text = applied->trace().Print();
  const ir::PrimFuncPtr scheduled = applied->module().Find("main");
  EXPECT_EQ(draft.ok() ? ir::Print(**draft) : "", ir::Print(*scheduled));
  const absl::Status verified = ir::Verify(*scheduled);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << text;
  const absl::Status kernels = CheckKernels(*scheduled, *target.gpu);
  EXPECT_TRUE(kernels.ok()) << kernels << "\n" << text;
  // Loops that fetch are not unrolled: only registers need it.
  const std::string printed = ir::Print(*scheduled);
  for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
    EXPECT_FALSE(absl::StrContains(line, "T.unroll(") &&
                 absl::StrContains(line, "shared_stages"))
        << line;
  }
  EXPECT_EQ(*space.FromRecord(applied->trace()), candidate);
  // The complete trace gives the same program.
  const auto replayed = schedule::Replay(*schedule::Trace::Parse(text),
                                         ir::IRModule{{space.program()}});
  EXPECT_TRUE(replayed.ok()) << replayed.status() << "\n" << text;
  if (replayed.ok()) {
    EXPECT_EQ(ir::Print(*replayed->module().Find("main")),
              ir::Print(*scheduled));
  }
  return scheduled;
}

class GpuSpaceTest : public ::testing::TestWithParam<GpuProgram> {};

TEST_P(GpuSpaceTest, NearlyEveryCandidateOfAUsualSizeFits) {
  for (const char* text : {"sim:sm_80", "cuda:sm_90a"}) {
    const target::Target target = GpuTarget(text);
    const auto space = Space(GetParam().usual, target);
    ASSERT_NE(space, nullptr);
    Rng rng(kSeed);
    const int draws = kUsualDraws * static_cast<int>(space->sketches().size());
    int legal = 0;
    for (int i = 0; i < draws; ++i) {
      const auto candidate = space->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto applied = space->Apply(*candidate);
      if (!applied.ok()) continue;
      ++legal;
      const absl::Status kernels =
          CheckKernels(*applied->module().Find("main"), *target.gpu);
      EXPECT_TRUE(kernels.ok()) << kernels << applied->trace().Print();
    }
    if (!TILEFARM_SANITIZED) {
      EXPECT_GE(legal * 20, draws * 19) << "seed " << kSeed;
    }
  }
}

TEST_P(GpuSpaceTest, EveryCandidateKeepsTheProgram) {
  const target::Target target = GpuTarget();
  const ir::PrimFuncPtr& program = GetParam().small;
  const auto space = Space(program, target);
  ASSERT_NE(space, nullptr);
  Rng rng(kSeed);
  std::set<int> sketches;
  const int draws = kSmallDraws * static_cast<int>(space->sketches().size());
  for (int i = 0; i < draws; ++i) {
    auto candidate =
        space->SampleOf(i % static_cast<int>(space->sketches().size()), rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    if (rng.Chance(0.3)) {
      const auto mutant = space->Mutate(*candidate, rng);
      if (mutant.ok()) candidate = mutant;
    }
    SCOPED_TRACE(absl::StrCat("seed ", kSeed, ", candidate ", i));
    const ir::PrimFuncPtr scheduled = Checked(*space, *candidate, target);
    if (scheduled == nullptr) continue;
    sketches.insert(candidate->sketch);
    ExpectSameOutputs(*program, *scheduled);
    if (::testing::Test::HasFailure()) return;
  }
  if (!TILEFARM_SANITIZED) {
    EXPECT_EQ(sketches.size(), space->sketches().size());
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, GpuSpaceTest,
                         ::testing::ValuesIn(GpuPrograms()),
                         [](const auto& info) { return info.param.name; });

TEST(GpuSpace, PartsOfWindowsAreWhole) {
  for (const int64_t whole : {1, 3, 9, 18, 36}) {
    EXPECT_TRUE(IsWhole(whole, {3, 9})) << whole;
  }
  for (const int64_t other : {2, 4, 6, 8, 12, 64}) {
    EXPECT_FALSE(IsWhole(other, {3, 9})) << other;
  }
  EXPECT_TRUE(IsWhole(32, {}));
  // Channels last: a part of one place of the window.
  EXPECT_TRUE(IsWhole(32, {256, 768}));
}

// A 3x3 convolution of 16 images of 14 x 14 without padding; sums in float32.
ir::PrimFuncPtr Conv(bool channels_last, int64_t channels,
                     const std::string& dtype) {
  const std::string x = channels_last
                            ? absl::StrCat("16, 14, 14, ", channels)
                            : absl::StrCat("16, ", channels, ", 14, 14");
  const std::string w = channels_last
                            ? absl::StrCat("128, 3, 3, ", channels)
                            : absl::StrCat("128, ", channels, ", 3, 3");
  const std::string y = channels_last ? "16, 12, 12, 128" : "16, 128, 12, 12";
  const char* indices =
      channels_last ? "X[n, y + u, x + v, c]" : "X[n, c, y + u, x + v]";
  const char* weight = channels_last ? "W[f, u, v, c]" : "W[f, c, u, v]";
  const char* out = channels_last ? "n, y, x, f" : "n, f, y, x";
  const char* terms = channels_last ? "u, v, c" : "c, u, v";
  const std::string reduced = channels_last ? absl::StrCat("3, 3, ", channels)
                                            : absl::StrCat(channels, ", 3, 3");
  const auto program = ir::ParseFunction(
      absl::StrCat(
          "@T.prim_func\ndef main(X: T.Buffer((", x, "), \"", dtype,
          "\"), W: T.Buffer((", w, "), \"", dtype, "\"), Y: T.Buffer((", y,
          "), \"float32\")):\n"
          "    for i0, i1, i2, i3, i4, i5, i6 in T.grid(",
          y, ", ", reduced,
          "):\n"
          "        with T.block(\"conv\"):\n            ",
          out, ", ", terms,
          " = T.axis.remap(\"SSSSRRR\", [i0, i1, i2, i3, i4, i5, i6])\n"
          "            with T.init():\n                Y[",
          out, "] = T.float32(0)\n            Y[", out, "] = Y[", out,
          "] + T.Cast(\"float32\", ", indices, ") * T.Cast(\"float32\", ",
          weight, ")\n"),
      "<test>");
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : nullptr;
}

// The traces of all sketches, the default one first.
std::vector<std::string> Sketches(const ir::PrimFuncPtr& program,
                                  const std::string& target) {
  std::vector<std::string> out;
  const auto space = Space(program, GpuTarget(target));
  if (space == nullptr) return out;
  for (const auto& sketch : space->sketches()) out.push_back(sketch.Print());
  return out;
}

TEST(GpuSpace, ConvolutionsOfHopperAreFetchedAsWindows) {
  constexpr char kStages[] = "tilefarm.warpgroup_stages";
  const auto none_has = [&](const std::vector<std::string>& sketches) {
    EXPECT_FALSE(sketches.empty());
    for (const std::string& sketch : sketches) {
      EXPECT_THAT(sketch, Not(HasSubstr(kStages)));
    }
  };
  EXPECT_THAT(Sketches(Conv(true, 128, "float16"), "sim:sm_90a").front(),
              HasSubstr(kStages));
  EXPECT_THAT(Sketches(Conv(true, 64, "bfloat16"), "sim:sm_90a").front(),
              HasSubstr(kStages));
  // Without warpgroups; of a type that they do not multiply; a row of 96 bytes.
  none_has(Sketches(Conv(true, 128, "float16"), "sim:sm_80"));
  none_has(Sketches(Conv(true, 128, "float32"), "sim:sm_90a"));
  none_has(Sketches(Conv(true, 48, "float16"), "sim:sm_90a"));
}

TEST(GpuSpace, NarrowOperandsGetTheChannelsLast) {
  constexpr char kCopied[] = "tilefarm.laid_out";
  for (const char* target : {"sim:sm_80", "sim:sm_90a"}) {
    const auto sketches = Sketches(Conv(false, 64, "float16"), target);
    ASSERT_FALSE(sketches.empty());
    EXPECT_THAT(sketches.front(), HasSubstr(kCopied));
    EXPECT_THAT(sketches, Contains(Not(HasSubstr(kCopied))));
  }
  // Where they are last, where elements are wide, or channels are few.
  for (const auto& program :
       {Conv(true, 64, "float16"), Conv(false, 64, "float32"),
        Conv(false, 4, "float16")}) {
    for (const std::string& sketch : Sketches(program, "sim:sm_80")) {
      EXPECT_THAT(sketch, Not(HasSubstr(kCopied)));
    }
  }
}

TEST(GpuSpace, NamesTheLimitThatNoPointKeeps) {
  target::Target target = GpuTarget();
  target.gpu->block_shared = 64;
  const auto space = Space(Matmul(64, 64, 64), target);
  ASSERT_NE(space, nullptr);
  Rng rng(kSeed);
  const auto candidate = space->Sample(rng);
  EXPECT_EQ(candidate.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(candidate.status().message()),
              HasSubstr("bytes of shared memory, the target has 64"));
}

TEST(GpuSpace, CandidatesBeyondALimitAreIllegalAndSayWhich) {
  const target::Target target = GpuTarget();
  const auto space = Space(Matmul(1024, 1024, 1024), target);
  ASSERT_NE(space, nullptr);
  Rng rng(kSeed);
  auto candidate = space->Sample(rng);
  // The first sketch has tiles of threads.
  while (candidate.ok() && candidate->sketch != 0) {
    candidate = space->Sample(rng);
  }
  ASSERT_TRUE(candidate.ok());
  const auto set = [&](size_t site, std::vector<int64_t> factors) {
    candidate->decisions[site] =
        ir::Attr(ir::AttrList(factors.begin(), factors.end()));
  };
  // Blocks, virtual threads, warps, lanes, registers.
  set(0, {1, 1, 32, 32, 1});
  set(1, {512, 1, 1, 2, 1});
  set(2, {1024, 1, 1});
  EXPECT_THAT(std::string(space->Apply(*candidate).status().message()),
              HasSubstr("needs 2048 threads of a block, the target has 1024"));
  set(0, {8, 1, 1, 4, 32});
  set(1, {4, 1, 1, 8, 32});
  EXPECT_THAT(std::string(space->Apply(*candidate).status().message()),
              HasSubstr("bytes of registers of a thread, the target has"));
}

}  // namespace
}  // namespace tilefarm::space
