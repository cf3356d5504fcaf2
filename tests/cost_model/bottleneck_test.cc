// FindBottleneck on six kinds of programs, each with one bottleneck that is
// built in, and without it.
#include "cost_model/bottleneck.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cost_model/bottleneck_programs.h"

namespace tilefarm::cost_model {
namespace {

target::Target Processor(const char* kind, int vector_bits, int registers,
                         target::CacheSizes caches) {
  target::Target target;
  target.kind = kind;
  target.vector_bits = vector_bits;
  target.vector_registers = registers;
  target.caches = caches;
  target.cores = 1;
  return target;
}

target::Target Avx512(int cores) {
  target::Target target =
      Processor("x86-64", 512, 32, {32 << 10, 1 << 20, 32 << 20});
  target.cores = cores;
  return target;
}

// As measured on a core of Zen 4; the shared rate is of eight cores.
CoreModel Zen4() {
  return {.vector_ops = 1,
          .loads = 2,
          .stores = 1,
          .latency = 4,
          .bytes_from_l2 = 32,
          .bytes_from_l3 = 16,
          .bytes_from_memory = 6,
          .bytes_from_memory_shared = 2};
}

BottleneckReport ReportOn(const std::string& text, const target::Target& target,
                          const CoreModel& core) {
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status() << text;
  if (!function.ok()) return {};
  return FindBottleneck(BuildLoopNest(**function), target, core);
}

BottleneckReport Report(const std::string& text, int cores = 1) {
  return ReportOn(text, Avx512(cores), Zen4());
}

double ShareOf(const BottleneckReport& report, Bottleneck what) {
  for (const WithoutCost& one : report.without) {
    if (one.cost == what) return one.share;
  }
  return 0;
}

std::string Explain(const BottleneckReport& report) {
  std::string text = absl::StrCat(report.cycles, " cycles");
  for (const WithoutCost& one : report.without) {
    absl::StrAppend(&text, "\n  ", std::string(BottleneckName(one.cost)), " ",
                    one.share);
  }
  for (const StoreCost& c : report.stores) {
    absl::StrAppend(&text, "\n  store: bands ", c.bands, " arithmetic ",
                    c.arithmetic, " latency ", c.latency, " ports ", c.ports,
                    " masked ", c.masked, " spills ", c.spills, " guards ",
                    c.guards, " loops ", c.loops, " runs ", c.runs, " bytes ",
                    c.bytes[0], " ", c.bytes[1], " ", c.bytes[2], " lanes ",
                    c.lane_waste, " repeated ", c.repeated);
  }
  return text;
}

// Three processors, each with the rates of a typical core and with those of one
// that was measured; the sizes of the programs follow from the processor.
TEST(FindBottleneck, NamesWhatIsBuiltIn) {
  const target::Target processors[] = {
      Avx512(1), Processor("x86-64", 256, 16, {48 << 10, 2 << 20, 24 << 20}),
      Processor("aarch64", 128, 32, {64 << 10, 1 << 20, 8 << 20})};
  for (const target::Target& processor : processors) {
    for (const CoreModel& core : {Zen4(), CoreModel()}) {
      for (const int cores : {2, 8}) {
        for (const BuiltIn& one : BuiltInBottlenecks(processor, cores)) {
          target::Target target = processor;
          target.cores = one.cores;
          const BottleneckReport report = ReportOn(one.program, target, core);
          EXPECT_EQ(BottleneckName(report.bottleneck),
                    BottleneckName(one.bottleneck))
              << processor.vector_bits << " bits, " << core.vector_ops
              << " operations a cycle, " << cores
              << " cores: " << Explain(report);
          const BottleneckReport without = ReportOn(one.without, target, core);
          EXPECT_NE(BottleneckName(without.bottleneck),
                    BottleneckName(one.bottleneck))
              << processor.vector_bits << " bits, " << core.vector_ops
              << " operations a cycle, " << cores
              << " cores: " << Explain(without);
          // It is worth less there, too, and so not a matter of the order.
          EXPECT_LT(ShareOf(without, one.bottleneck),
                    ShareOf(report, one.bottleneck) / 2)
              << Explain(without);
        }
      }
    }
  }
}

// The name of a program and those of its parts play no part.
TEST(FindBottleneck, NamesAreIgnored) {
  for (const BuiltIn& one : BuiltInBottlenecks(Avx512(1), 8)) {
    const std::string renamed =
        absl::StrReplaceAll(one.program, {{"def mm(", "def x("},
                                          {"def dot(", "def x("},
                                          {"def scale(", "def x("},
                                          {"\"P\"", "\"copy\""},
                                          {"\"C\"", "\"y\""}});
    EXPECT_EQ(Report(renamed, one.cores).bottleneck, one.bottleneck) << renamed;
  }
}

// Where traffic from memory and arithmetic meet, the answer changes: at the
// reuse that the rates give, not at a size.
TEST(FindBottleneck, MemoryGivesWayToArithmeticWithReuse) {
  const target::Target target = Avx512(1);
  const auto bound_at = [&](double bytes_a_cycle) {
    CoreModel core = Zen4();
    core.bytes_from_memory = bytes_a_cycle;
    // B's panels and A are too large for the last cache together. Rows of A do
    // not share sets of the first one.
    return ReportOn(TiledProduct(14 * 1024, 64, 4112, 14, 32), target, core)
        .bottleneck;
  };
  EXPECT_EQ(bound_at(0.1), Bottleneck::kMemory);
  EXPECT_EQ(bound_at(64), Bottleneck::kArithmetic);
}

TEST(FindBottleneck, StreamingIsBoundByMemory) {
  const BottleneckReport report = Report(Scaling(16 << 20, 16));
  EXPECT_EQ(report.bottleneck, Bottleneck::kMemory) << Explain(report);
  EXPECT_GT(ShareOf(report, Bottleneck::kMemory), 0.5);
  // A run finds in the caches what the run before left there.
  EXPECT_EQ(ShareOf(Report(Scaling(1024, 16)), Bottleneck::kMemory), 0);
}

TEST(FindBottleneck, ALargeRegisterTileIsBoundByFmaPorts) {
  const BottleneckReport report = Report(TiledProduct(96, 256, 256, 12, 32));
  EXPECT_EQ(report.bottleneck, Bottleneck::kArithmetic) << Explain(report);
  // Two reads, a multiplication and an addition of 16 lanes in a cycle.
  EXPECT_LT(report.cycles, 1.2 * 96 * 256 * 256 / 16);
  for (const WithoutCost& one : report.without) {
    if (IsLoss(one.cost)) {
      EXPECT_LT(one.share, kLossShare) << Explain(report);
    }
  }
}

TEST(FindBottleneck, OneSumIsALatencyChain) {
  const BottleneckReport report = Report(SerialSum(4096));
  EXPECT_EQ(report.bottleneck, Bottleneck::kLatency) << Explain(report);
  EXPECT_GT(ShareOf(report, Bottleneck::kLatency), 0.5) << Explain(report);
}

TEST(FindBottleneck, CopiesForFewRowsArePacking) {
  const BottleneckReport report = Report(PackedProduct(1, 4, 32));
  EXPECT_EQ(report.bottleneck, Bottleneck::kPacking) << Explain(report);
}

TEST(FindBottleneck, ColumnsThatDoNotFillTheirVectorsAreATail) {
  // 17 columns take two vectors of 16 lanes.
  const BottleneckReport report = Report(TiledProduct(96, 17, 256, 12, 17));
  EXPECT_EQ(report.bottleneck, Bottleneck::kTail) << Explain(report);
  EXPECT_GT(ShareOf(report, Bottleneck::kTail), 0.3);
  const BottleneckReport whole = Report(TiledProduct(96, 32, 256, 12, 32));
  EXPECT_NE(whole.bottleneck, Bottleneck::kTail) << Explain(whole);
}

TEST(FindBottleneck, OneIterationMoreThanCoresIsImbalance) {
  const std::string nine =
      TiledProduct(1536, 9 * 32, 512, 12, 32, "T.parallel");
  const BottleneckReport report = Report(nine, 8);
  EXPECT_EQ(report.bottleneck, Bottleneck::kImbalance) << Explain(report);
  EXPECT_GT(ShareOf(report, Bottleneck::kImbalance), 0.3);
  const BottleneckReport even =
      Report(TiledProduct(1536, 16 * 32, 512, 12, 32, "T.parallel"), 8);
  EXPECT_EQ(even.bottleneck, Bottleneck::kArithmetic) << Explain(even);
}

TEST(FindBottleneck, CoresWithoutWorkAreImbalance) {
  const BottleneckReport report =
      Report(TiledProduct(1536, 512, 512, 12, 32), 8);
  EXPECT_EQ(report.bottleneck, Bottleneck::kImbalance) << Explain(report);
  // Starting threads for a small product costs more than they gain.
  EXPECT_NE(Report(TiledProduct(12, 32, 16, 12, 32), 8).bottleneck,
            Bottleneck::kImbalance);
}

TEST(FindBottleneck, ATileBeyondTheRegistersSpills) {
  EXPECT_EQ(Report(TiledProduct(96, 256, 256, 24, 64)).bottleneck,
            Bottleneck::kSpills);
}

TEST(FindBottleneck, SharesAreSortedAndEachCostIsNamed) {
  const BottleneckReport report = Report(PackedProduct(1, 4, 32));
  for (size_t i = 1; i < report.without.size(); ++i) {
    EXPECT_GE(report.without[i - 1].share, report.without[i].share);
  }
  ASSERT_EQ(report.stores.size(), report.store_cycles.size());
  for (const Bottleneck what : kBottlenecks) {
    EXPECT_NE(BottleneckName(what), "?");
    EXPECT_FALSE(BottleneckAdvice(what).empty());
  }
}

}  // namespace
}  // namespace tilefarm::cost_model
