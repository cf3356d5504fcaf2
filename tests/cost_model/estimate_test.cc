#include "cost_model/estimate.h"

#include <cmath>

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
  // The same work; the panel of B fits L1 or does not fit L2.
  const MatmulTiles fits{.m0 = 64, .m1 = 8, .n0 = 64, .k0 = 16, .k1 = 64};
  const MatmulTiles spills{.m0 = 512, .m1 = 1, .n0 = 64, .k0 = 1, .k1 = 1024};
  EXPECT_LT(Cycles(fits), Cycles(spills));
}

TEST(EstimateCycles, IsPositiveAndFiniteWhateverTheRows) {
  EXPECT_GT(EstimateCycles({}, Avx512(1)), 0);
  FeatureRows rows;
  rows.rows = 1;
  rows.values.assign(kColumns, 0);
  EXPECT_GT(EstimateCycles(rows, Avx512(2)), 0);
  EXPECT_TRUE(std::isfinite(EstimateCycles(rows, Avx512(2))));
}

}  // namespace
}  // namespace tilefarm::cost_model
