// Sums of narrow products: which ones become dot products, the bounds of their
// tiles, and the results of the postprocs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/lower/pipeline.h"
#include "compiler/lower/split_prepack.h"
#include "compiler/space/design_space.h"
#include "compiler/space/sample_site.h"
#include "compiler/space/sketch_rules.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/candidate_text.h"

namespace tilefarm::space {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVnni[] = "x86-64:icelake-server,cores=1";
constexpr char kBf16[] = "x86-64:cooperlake,cores=1";
constexpr char kAvxVnni[] = "x86-64:alderlake,cores=1";
constexpr char kAmx[] = "x86-64:sapphirerapids,cores=1";
constexpr char kNeither[] = "x86-64:skylake-avx512,cores=1";
constexpr char kAvx2[] = "x86-64:haswell,cores=1";
constexpr char kSse[] = "x86-64:nehalem,cores=1";

std::unique_ptr<DesignSpace> Space(const ir::PrimFuncPtr& program,
                                   const char* target) {
  auto space = DesignSpace::Create(program, *target::Parse(target));
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

// The intrinsic that all sketches use; "" if there is none.
std::string IntrinOf(const DesignSpace& space) {
  std::string found;
  for (const schedule::Trace& sketch : space.sketches()) {
    const std::string text = sketch.Print();
    const std::string key = "\"meta_schedule.auto_tensorize\", ann_val=\"";
    const size_t at = text.find(key);
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size();
    found = text.substr(begin, text.find('"', begin) - begin);
  }
  return found;
}

// The padded input does not move into the loops of the instruction.
TEST(MultiLevelTilingWithIntrinTest, EveryPlaceOfAProducerIsLegal) {
  const auto program = NarrowConvRelu(8, 8, 32);
  const auto space = Space(program, kVnni);
  int places = 0;
  for (size_t i = 0; i < space->sketches().size(); ++i) {
    const auto sites = FindSites(space->sketches()[i], {{program}});
    ASSERT_TRUE(sites.ok()) << sites.status();
    Rng rng(5);
    auto candidate = space->Sample(rng);
    while (candidate.ok() && candidate->sketch != static_cast<int>(i)) {
      candidate = space->Sample(rng);
    }
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    for (size_t site = 0; site < sites->size(); ++site) {
      if ((*sites)[site].kind != SiteKind::kComputeLocation) continue;
      // Not only the root.
      EXPECT_GT((*sites)[site].locations.size(), 4u);
      for (const int64_t location : (*sites)[site].locations) {
        candidate->decisions[site] = ir::Attr(location);
        const auto schedule = space->Apply(*candidate);
        EXPECT_TRUE(schedule.ok()) << location << ": " << schedule.status();
        ++places;
      }
    }
  }
  EXPECT_GT(places, 0);
}

TEST(MultiLevelTilingWithIntrinTest, TakesTheWidestThatTheTargetHas) {
  const auto bytes = NarrowMatmul(32, 64, 32, "uint8", "int8", "int32");
  EXPECT_EQ(IntrinOf(*Space(bytes, kVnni)), "dot_16x4_vnni");
  EXPECT_EQ(IntrinOf(*Space(bytes, kAvxVnni)), "dot_8x4_vnni");
  EXPECT_EQ(IntrinOf(*Space(bytes, kNeither)), "dot_16x4_u8i8s32_madd");
  EXPECT_EQ(IntrinOf(*Space(bytes, kAvx2)), "dot_8x4_u8i8s32_madd");
  EXPECT_EQ(IntrinOf(*Space(bytes, kSse)), "");
  // Only eight columns.
  EXPECT_EQ(IntrinOf(*Space(NarrowMatmul(32, 24, 32, "uint8", "int8", "int32"),
                            kVnni)),
            "dot_8x4_vnni");
  const auto words = NarrowMatmul(32, 64, 32, "int16", "int16", "int32");
  EXPECT_EQ(IntrinOf(*Space(words, kVnni)), "dot_16x2_vnni");
  EXPECT_EQ(IntrinOf(*Space(words, kNeither)), "dot_16x2_i16i16s32_madd");
  EXPECT_EQ(IntrinOf(*Space(words, kAvx2)), "dot_8x2_i16i16s32_madd");
  const auto equal = NarrowMatmul(32, 64, 32, "int8", "int8", "int32");
  EXPECT_EQ(IntrinOf(*Space(equal, kVnni)), "dot_16x4_i8i8s32_madd");
  EXPECT_EQ(IntrinOf(*Space(equal, kAvxVnni)), "dot_8x4_i8i8s32_madd");
  const auto floats =
      NarrowMatmul(32, 64, 32, "bfloat16", "bfloat16", "float32");
  EXPECT_EQ(IntrinOf(*Space(floats, kBf16)), "dot_16x2_bf16");
  EXPECT_EQ(IntrinOf(*Space(floats, kVnni)), "");
}

TEST(MultiLevelTilingWithIntrinTest, LeavesVectorsOf128BitsAlone) {
  const auto mixed = NarrowMatmul(32, 4, 32, "uint8", "int8", "int32");
  for (const char* target :
       {"x86-64:alderlake,cores=1", "aarch64:cortex-x2,cores=1"}) {
    ASSERT_TRUE(
        target::Parse(target)->Has(target::Capability::kMixedByteDot128));
    EXPECT_EQ(IntrinOf(*Space(mixed, target)), "") << target;
  }
  EXPECT_EQ(IntrinOf(*Space(NarrowMatmul(32, 64, 32, "int8", "int8", "int32"),
                            "aarch64:cortex-x2,cores=1")),
            "");
}

TEST(MultiLevelTilingWithIntrinTest, LeavesOtherProductsAlone) {
  // Fewer columns or products than an instruction has; types without an
  // instruction.
  for (const auto& program :
       {NarrowMatmul(32, 7, 32, "uint8", "int8", "int32"),
        NarrowMatmul(32, 64, 1, "uint8", "int8", "int32"),
        NarrowMatmul(32, 64, 32, "int8", "int16", "int32"),
        NarrowMatmul(32, 64, 32, "uint8", "int8", "float32"),
        NarrowMatmul(32, 64, 32, "float32", "float32", "float32"),
        Matmul(32, 64, 32)}) {
    const auto space = Space(program, kVnni);
    EXPECT_EQ(IntrinOf(*space), "");
    Rng rng(1);
    EXPECT_TRUE(space->Sample(rng).ok());
  }
}

// Operands with tails get zero-padded copies, which replace other copies.
TEST(MultiLevelTilingWithIntrinTest, TailsArePadded) {
  const struct {
    ir::PrimFuncPtr program;
    const char* target;
    const char* intrin;
    const char* padding;
    bool pads_a, pads_b;
  } kCases[] = {
      {NarrowMatmul(32, 20, 32, "uint8", "int8", "int32"), kVnni,
       "dot_16x4_vnni", "padding=[1, 16, 4]", false, true},
      {NarrowMatmul(32, 64, 30, "uint8", "int8", "int32"), kVnni,
       "dot_16x4_vnni", "padding=[1, 16, 4]", true, true},
      // Two registers of sixteen, not three of eight.
      {NarrowMatmul(9, 23, 30, "uint8", "int8", "int32"), kVnni,
       "dot_16x4_vnni", "padding=[1, 16, 4]", true, true},
      // Less than sixteen, but sixteen after padding.
      {NarrowMatmul(9, 15, 32, "uint8", "int8", "int32"), kVnni,
       "dot_16x4_vnni", "padding=[1, 8, 4]", false, true},
      // Three channels of an image.
      {NarrowMatmul(32, 64, 3, "uint8", "int8", "int32"), kVnni,
       "dot_16x4_vnni", "padding=[1, 16, 4]", true, true},
      {NarrowMatmul(33, 37, 13, "bfloat16", "bfloat16", "float32"), kBf16,
       "dot_16x2_bf16", "padding=[1, 16, 2]", true, true},
      // Rows only, and all dimensions.
      {NarrowMatmul(24, 64, 64, "uint8", "int8", "int32"), kAmx,
       "amx_16x16x64_u8i8s32", "padding=[16, 16, 64]", true, false},
      {NarrowMatmul(61, 75, 100, "bfloat16", "bfloat16", "float32"), kAmx,
       "amx_16x16x32_bf16", "padding=[16, 16, 32]", true, true},
  };
  for (const auto& test : kCases) {
    for (const bool constant : {false, true}) {
      const auto space =
          Space(constant ? WithConstants(test.program, {1}) : test.program,
                test.target);
      Rng rng(9);
      for (int i = 0; i < 12; ++i) {
        const auto candidate = space->Sample(rng);
        ASSERT_TRUE(candidate.ok()) << candidate.status();
        const auto scheduled = space->Apply(*candidate);
        ASSERT_TRUE(scheduled.ok())
            << scheduled.status() << CandidateText(*candidate);
        const std::string trace = scheduled->trace().Print();
        EXPECT_THAT(trace, HasSubstr(test.padding));
        EXPECT_THAT(trace, HasSubstr(test.intrin));
        const std::string text = ir::Print(scheduled->module());
        EXPECT_EQ(text.find("A_pad") != std::string::npos, test.pads_a);
        EXPECT_EQ(text.find("B_pad") != std::string::npos, test.pads_b);
        EXPECT_THAT(text, Not(HasSubstr("B_pad_global")));
        EXPECT_EQ(text.find("tilefarm.prepack") != std::string::npos, constant);
        EXPECT_THAT(text, HasSubstr(test.target == kAmx
                                        ? "\"tilefarm.matrix_product\": 1"
                                        : "\"tilefarm.dot_product\": 1"));
      }
    }
  }
}

TEST(MultiLevelTilingWithIntrinTest, FewRowsMayDoWithoutPacking) {
  const auto space =
      Space(NarrowMatmul(4, 64, 64, "uint8", "int8", "int32"), kVnni);
  int with = 0, without = 0;
  for (const schedule::Trace& sketch : space->sketches()) {
    const bool found =
        sketch.Print().find("dot_16x4_vnni") != std::string::npos;
    (found ? with : without) += 1;
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

TEST(MultiLevelTilingWithIntrinTest, TilesFitTheRegisters) {
  const auto space =
      Space(NarrowMatmul(64, 256, 64, "uint8", "int8", "int32"), kVnni);
  Rng rng(2);
  for (int i = 0; i < 200; ++i) {
    const auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    // Rows, groups, vectors.
    const auto innermost = [&](int site) {
      return *candidate->decisions[site].AsList()->back().AsInt();
    };
    const int64_t rows = innermost(0), vectors = innermost(2);
    EXPECT_LE(rows * vectors + vectors + 1, 32) << CandidateText(*candidate);
  }
}

TEST(RewriteTensorizeTest, EveryCandidateIsTensorizedAndReplays) {
  const auto target = *target::Parse(kVnni);
  const auto program = NarrowMatmul(24, 128, 32, "uint8", "int8", "int32");
  const auto space = Space(program, kVnni);
  EXPECT_EQ(space->sketches().size(), 6u);
  Rng rng(3);
  for (int i = 0; i < 100; ++i) {
    const auto candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const auto scheduled = space->Apply(*candidate);
    ASSERT_TRUE(scheduled.ok())
        << scheduled.status() << CandidateText(*candidate);
    const std::string trace = scheduled->trace().Print();
    EXPECT_THAT(trace, HasSubstr("tensor_intrin=\"dot_16x4_vnni\""));
    const std::string text = ir::Print(scheduled->module());
    EXPECT_THAT(text, HasSubstr("\"tilefarm.dot_product\": 1"));
    // No annotation of unfinished work is left.
    EXPECT_THAT(text, Not(HasSubstr("tilefarm.pack")));
    const auto parsed = schedule::Trace::Parse(trace);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const auto replayed = schedule::Replay(*parsed, ir::IRModule{{program}});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(ir::Print(replayed->module()), text);
    const auto again = space->FromRecord(*parsed);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, *candidate);
  }
}

// Constants are packed ahead of time in the intrinsic's layout.
TEST(RewriteTensorizeTest, ConstantsAreLaidOutAheadOfTime) {
  const struct {
    const char* target;
    ir::PrimFuncPtr program;
    std::string tensorized;
  } kCases[] = {
      {kVnni, NarrowMatmul(24, 128, 32, "uint8", "int8", "int32"),
       "\"tilefarm.dot_product\": 1"},
      // Too few rows for packing in the call.
      {kVnni, NarrowMatmul(2, 128, 32, "uint8", "int8", "int32"),
       "\"tilefarm.dot_product\": 1"},
      {kBf16, NarrowMatmul(24, 128, 32, "bfloat16", "bfloat16", "float32"),
       "\"tilefarm.dot_product\": 1"},
      {kAmx, NarrowMatmul(32, 64, 128, "uint8", "int8", "int32"),
       "\"tilefarm.matrix_product\": 1"},
  };
  for (const auto& test : kCases) {
    const ir::PrimFuncPtr program = WithConstants(test.program, {1});
    const auto space = Space(program, test.target);
    Rng rng(6);
    for (int i = 0; i < 30; ++i) {
      const auto candidate = space->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto scheduled = space->Apply(*candidate);
      ASSERT_TRUE(scheduled.ok())
          << scheduled.status() << CandidateText(*candidate);
      const ir::PrimFuncPtr function = scheduled->module().Find("main");
      const std::string text = ir::Print(*function);
      EXPECT_THAT(text, HasSubstr(test.tensorized));
      EXPECT_THAT(text, HasSubstr("tilefarm.prepack"));
      EXPECT_THAT(text, Not(HasSubstr("tilefarm.pack")));
      const auto split = lower::SplitPrepack(*function);
      ASSERT_TRUE(split.ok()) << split.status() << text;
      ASSERT_EQ(split->params.size(), 1u);
      ASSERT_NE(split->params[0].pack, nullptr);
      // Groups of 32 bits, and lanes, are innermost.
      const ir::Buffer& packed = split->packed->params[1];
      EXPECT_EQ(packed->shape.back() * packed->dtype.bits, 32) << text;
      EXPECT_EQ(packed->shape[packed->shape.size() - 2], 16) << text;
      EXPECT_EQ(packed->num_elements(), program->params[1]->num_elements());
      const auto parsed = schedule::Trace::Parse(scheduled->trace().Print());
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      const auto replayed = schedule::Replay(*parsed, ir::IRModule{{program}});
      ASSERT_TRUE(replayed.ok()) << replayed.status();
      EXPECT_EQ(ir::Print(replayed->module()), ir::Print(scheduled->module()));
    }
  }
}

TEST(RewriteTensorizeTest, MatrixUnitsHaveEightTiles) {
  const auto target = *target::Parse(kAmx);
  for (const auto& [program, intrin] :
       {std::pair{NarrowMatmul(64, 128, 128, "uint8", "int8", "int32"),
                  "amx_16x16x64_u8i8s32"},
        std::pair{NarrowMatmul(64, 128, 128, "int8", "int8", "int32"),
                  "amx_16x16x64_i8i8s32"},
        std::pair{NarrowMatmul(96, 64, 64, "bfloat16", "bfloat16", "float32"),
                  "amx_16x16x32_bf16"}}) {
    const auto space = Space(program, kAmx);
    EXPECT_EQ(IntrinOf(*space), intrin);
    Rng rng(5);
    for (int i = 0; i < 40; ++i) {
      const auto candidate = space->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto innermost = [&](int site) {
        return *candidate->decisions[site].AsList()->back().AsInt();
      };
      EXPECT_LE(innermost(0) * innermost(2) + innermost(2) + 1, 8);
      const auto scheduled = space->Apply(*candidate);
      ASSERT_TRUE(scheduled.ok())
          << scheduled.status() << CandidateText(*candidate);
      const auto lowered =
          lower::Lower(*scheduled->module().Find("main"), target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_THAT(ir::Print(**lowered), HasSubstr("= T.tile_product("));
    }
  }
  // Too few rows for a tile, even with padding: a dot product.
  for (const auto& few : {NarrowMatmul(7, 64, 64, "uint8", "int8", "int32"),
                          NarrowMatmul(9, 24, 64, "uint8", "int8", "int32")}) {
    EXPECT_EQ(IntrinOf(*Space(WithConstants(few, {1}), kAmx)).substr(0, 4),
              "dot_");
  }
}

// A reduction of one group has only loops of one iteration around the
// intrinsic's loops.
TEST(RewriteTensorizeTest, OneGroupIsInitialisedOutside) {
  for (const auto& [program, target] :
       {std::pair{NarrowMatmul(16, 64, 4, "uint8", "int8", "int32"), kVnni},
        std::pair{NarrowMatmul(32, 64, 64, "uint8", "int8", "int32"), kAmx}}) {
    const auto space = Space(WithConstants(program, {1}), target);
    Rng rng(7);
    for (int i = 0; i < 20; ++i) {
      const auto candidate = space->Sample(rng);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const auto scheduled = space->Apply(*candidate);
      ASSERT_TRUE(scheduled.ok())
          << scheduled.status() << CandidateText(*candidate);
      EXPECT_THAT(ir::Print(scheduled->module()), HasSubstr("C_update_o"));
    }
  }
}

TEST(RewriteTensorizeTest, TracesNeedTheirTarget) {
  const auto program = NarrowMatmul(32, 64, 32, "uint8", "int8", "int32");
  const auto space = Space(program, kVnni);
  Rng rng(4);
  const auto scheduled = space->Apply(*space->Sample(rng));
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  const auto elsewhere = DesignSpace::FromTrace(
      program, *target::Parse(kNeither), scheduled->trace());
  EXPECT_EQ(elsewhere.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(elsewhere.status().message()),
              HasSubstr("dot_16x4_vnni needs a target with avx512vnni"));
}

TEST(WidenOperandsTest, CopiesTheOperandThatIsNotPacked) {
  const RuleContext context{"main", *target::Parse(kNeither)};
  const auto apply = [&](const ir::PrimFuncPtr& program) {
    const auto results =
        ApplyRule(WidenOperands, context,
                  schedule::Schedule(ir::IRModule{{program}}), "C");
    EXPECT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->size(), 1u);
    return ir::Print(results->front().module());
  };
  const std::string halves =
      apply(NarrowMatmul(32, 64, 32, "float16", "float16", "float32"));
  EXPECT_THAT(halves, HasSubstr("A_global[v0, v1] = A[v0, v1]"));
  EXPECT_THAT(halves, Not(HasSubstr("B_global")));
  EXPECT_THAT(apply(NarrowMatmul(32, 64, 32, "int8", "int8", "int32")),
              Not(HasSubstr("A_global")));
  EXPECT_THAT(apply(Matmul(32, 64, 32)), Not(HasSubstr("A_global")));
}

// 16-bit constants that are used often become float32 ahead of time; nothing
// widens them before.
TEST(WidenOperandsTest, ConstantsAreWidenedAheadOfTime) {
  const auto first = [](const ir::PrimFuncPtr& program) {
    const auto space = Space(program, kNeither);
    Rng rng(8);
    const auto scheduled = space->Apply(*space->Sample(rng));
    EXPECT_TRUE(scheduled.ok()) << scheduled.status();
    return ir::Print(scheduled->module());
  };
  const auto often = WithConstants(
      NarrowMatmul(32, 64, 32, "float16", "float16", "float32"), {1});
  EXPECT_THAT(first(often), HasSubstr("tilefarm.prepack_float32"));
  EXPECT_THAT(first(often), HasSubstr("A_global"));
  const auto seldom = WithConstants(
      NarrowMatmul(8, 64, 32, "float16", "float16", "float32"), {1});
  EXPECT_THAT(first(seldom), HasSubstr("tilefarm.prepack"));
  EXPECT_THAT(first(seldom), Not(HasSubstr("tilefarm.prepack_float32")));
  // Both operands are constant: no copy in the call.
  const auto both = WithConstants(
      NarrowMatmul(64, 64, 32, "bfloat16", "bfloat16", "float32"), {0, 1});
  EXPECT_THAT(first(both), Not(HasSubstr("A_global_global")));
  EXPECT_THAT(first(WithConstants(
                  NarrowMatmul(64, 64, 32, "int8", "int8", "int32"), {1})),
              Not(HasSubstr("tilefarm.prepack_float32")));
}

}  // namespace
}  // namespace tilefarm::space
