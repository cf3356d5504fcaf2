#include "cost_model/estimate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/ir/parser.h"
#include "cost_model/feature_columns.h"
#include "cost_model/features.h"
#include "gtest/gtest.h"
#include "tests/cost_model/test_programs.h"

namespace tilefarm::cost_model {
namespace {

target::Target Avx512(int cores) {
  target::Target target;
  target.kind = "x86-64";
  target.cpu = "znver4";
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.caches = {32 << 10, 1 << 20, 32 << 20};
  target.cores = cores;
  return target;
}

double Cycles(const MatmulTiles& tiles, int cores = 1) {
  const target::Target target = Avx512(cores);
  return EstimateCycles(ExtractFeatures(TiledMatmul(tiles), target), target);
}

TEST(EstimateCycles, VectorsAreFasterThanElements) {
  MatmulTiles scalar;
  scalar.inner = ir::ForKind::kSerial;
  EXPECT_LT(Cycles({}), Cycles(scalar) / 4);
}

TEST(EstimateCycles, MoreWorkTakesLonger) {
  MatmulTiles twice;
  twice.m0 *= 2;
  EXPECT_GT(Cycles(twice), 1.5 * Cycles({}));
}

TEST(EstimateCycles, CoresHelpWhereALoopIsParallelAndLongEnough) {
  MatmulTiles large{.m0 = 64, .n0 = 16, .k0 = 64};
  const double serial = Cycles(large, 4);
  large.outer = ir::ForKind::kParallel;
  EXPECT_LT(Cycles(large, 4), serial / 2);
  // Starting threads costs more than a tiny loop.
  MatmulTiles tiny{.m0 = 4, .m1 = 1, .n0 = 1, .k0 = 1};
  const double alone = Cycles(tiny, 4);
  tiny.outer = ir::ForKind::kParallel;
  EXPECT_GT(Cycles(tiny, 4), alone);
}

TEST(EstimateCycles, TilesThatOverflowACacheCostTraffic) {
  // The same work; the panel of B fits L1 or does not fit L2. Its rows are no
  // multiple of a page apart.
  const MatmulTiles fits{.m0 = 64, .m1 = 8, .n0 = 65, .k0 = 4, .k1 = 256};
  const MatmulTiles spills{.m0 = 512, .m1 = 1, .n0 = 65, .k0 = 1, .k1 = 1024};
  EXPECT_LT(Cycles(fits), Cycles(spills));
}

TEST(EstimateCycles, UnrollingDoesNotRemoveWork) {
  // At best two vector multiply-adds per cycle.
  MatmulTiles tiles{.m0 = 64, .m1 = 8, .n0 = 16, .n1 = 32, .k0 = 64};
  const double least =
      64.0 * 8 * 16 * 32 * 64 * static_cast<double>(tiles.k1) / 16 / 2;
  EXPECT_GE(Cycles(tiles), least);
  tiles.reduce = ir::ForKind::kUnrolled;
  EXPECT_GE(Cycles(tiles), least);
}

TEST(EstimateCycles, AFewMoreAccumulatorsThanRegistersCost) {
  // 16 vectors of results, or 64.
  const MatmulTiles fits{.n0 = 8, .n1 = 256, .k0 = 1, .k1 = 64};
  const MatmulTiles spills{.n0 = 2, .n1 = 1024, .k0 = 1, .k1 = 64};
  EXPECT_LT(1.5 * Cycles(fits), Cycles(spills));
}

TEST(EstimateCycles, LongRunsInRegistersAreCheaperThanShortOnes) {
  // The same register tile for 256 steps of the reduction, or for 4.
  const MatmulTiles longer{.m0 = 64, .m1 = 1, .n1 = 64, .k0 = 1, .k1 = 256};
  const MatmulTiles shorter{.m0 = 1, .m1 = 64, .n1 = 64, .k0 = 64, .k1 = 4};
  EXPECT_LT(Cycles(longer), Cycles(shorter));
}

TEST(EstimateCycles, LoadsOfLanesThatAreApartCostByTheVector) {
  // One vector of A, whose lanes are apart, serves eight rows of the result.
  const auto cycles = [](int stride) {
    const auto module = ir::ParseModule(absl::StrFormat(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((256, %d), "float32"), B: T.Buffer((8, 256), "float32"), C: T.Buffer((8, 32), "float32")):
        for k in range(256):
            for i in T.unroll(8):
                for j in T.vectorized(32):
                    with T.block("C"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        C[vi, vj] = C[vi, vj] + A[vk, vj * %d] * B[vi, vk]
)",
                                                        32 * stride, stride));
    EXPECT_TRUE(module.ok()) << module.status();
    const target::Target target = Avx512(1);
    return EstimateCycles(ExtractFeatures(*module->functions[0], target),
                          target);
  };
  EXPECT_LT(cycles(1), cycles(2));
  EXPECT_LT(cycles(2), 2 * cycles(1));
  EXPECT_LT(cycles(2), cycles(16));
  EXPECT_LT(cycles(16), 16 * cycles(1));
}

TEST(EstimateCycles, MaskedSumsInMemoryAreSlow) {
  // Sums that change with every iteration around the tile are in memory.
  const MatmulTiles whole{.n1 = 16, .k1 = 1}, masked{.n1 = 14, .k1 = 1};
  EXPECT_GT(Cycles(masked), 2 * Cycles(whole));
  // In registers, a mask costs nothing but its lanes.
  MatmulTiles kept = masked;
  kept.k1 = 64;
  EXPECT_LT(Cycles(kept) / 64, Cycles(masked) / 2);
}

TEST(EstimateCycles, StoresOfOneParallelLoopStartItOnce) {
  const target::Target target = Avx512(2);
  MatmulTiles tiles;
  tiles.outer = ir::ForKind::kParallel;
  FeatureRows one = ExtractFeatures(TiledMatmul(tiles), target);
  FeatureRows twice = one;
  twice.rows *= 2;
  twice.values.insert(twice.values.end(), one.values.begin(), one.values.end());
  // Twice the work but one start, which takes thousands of cycles.
  EXPECT_LT(EstimateCycles(twice, target),
            2 * EstimateCycles(one, target) - 1000);
}

TEST(EstimateCycles, IsPositiveAndFiniteWhateverTheRows) {
  EXPECT_GT(EstimateCycles({}, Avx512(1)), 0);
  FeatureRows rows;
  rows.rows = 1;
  rows.values.assign(kColumns, 0);
  EXPECT_GT(EstimateCycles(rows, Avx512(2)), 0);
  EXPECT_TRUE(std::isfinite(EstimateCycles(rows, Avx512(2))));
}

TEST(WriteEstimate, RowsSayWhatEachStoreAndAllOfThemTake) {
  const target::Target target = Avx512(1);
  const FeatureRows rows = ExtractFeatures(TiledMatmul({}), target);
  const std::vector<std::string> names = FeatureNames();
  const auto column = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const double all = EstimateCycles(rows, target);
  double sum = 1;
  ASSERT_GT(rows.rows, 1);
  for (int r = 0; r < rows.rows; ++r) {
    const float* row = rows.values.data() + r * kColumns;
    EXPECT_NEAR(row[column("estimate.total")], std::log2(1 + all), 1e-4);
    sum += std::exp2(row[column("estimate.cycles")]) - 1;
  }
  EXPECT_NEAR(sum / all, 1, 1e-3);
  // The columns of the estimate do not change the estimate.
  FeatureRows again = rows;
  WriteEstimate(again, target);
  EXPECT_EQ(again.values, rows.values);
}

}  // namespace
}  // namespace tilefarm::cost_model
