// Random tiles: what the design space draws of ThreadTiles.
#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/algorithm/container.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/gpu/thread_tiles.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

constexpr int kTileDraws = 400;
// More iterations than this share of those needed is never better than smaller
// tiles, of which there are some with less.
constexpr double kMostWaste = 2.0;
// Terms of a sum for each fetch: up to two cache lines of float32.
constexpr int64_t kMostFetchedTerms = 64;

// Splits 2^`twos` at random into one factor for each entry of `most`, an axis
// that needs no more than that.
std::vector<int64_t> DealTwos(int64_t twos, std::vector<int64_t> most,
                              Rng& rng) {
  std::vector<int64_t> factors(most.size(), 1);
  for (; twos > 0; --twos) {
    std::vector<size_t> open;
    for (size_t i = 0; i < most.size(); ++i) {
      if (factors[i] < most[i]) open.push_back(i);
    }
    // All axes are short: threads of the last one idle.
    const size_t at =
        open.empty() ? most.size() - 1 : open[rng.Below(open.size())];
    factors[at] *= 2;
  }
  return factors;
}

int64_t FloorLog2(int64_t n) {
  int64_t log = 0;
  while ((int64_t{2} << log) <= n) ++log;
  return log;
}

int64_t CeilPowerOfTwo(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

std::optional<int64_t> ThreadTiles::DrawWholeTerms(int64_t extent,
                                                   Rng& rng) const {
  std::vector<int64_t> parts;
  for (int64_t part = 4; part <= std::min(extent, kMostFetchedTerms); ++part) {
    if (extent % part == 0 && IsWhole(part, periods_)) parts.push_back(part);
  }
  if (parts.empty()) return std::nullopt;
  return parts[rng.Below(parts.size())];
}

std::optional<TileFactors> ThreadTiles::Draw(int stages, Rng& rng) const {
  std::vector<size_t> spatial, reduce;
  for (size_t a = 0; a < axes_.size(); ++a) {
    (axes_[a].reduces ? reduce : spatial).push_back(a);
  }
  if (spatial.empty()) return std::nullopt;
  std::vector<int64_t> extents;
  double outputs = 1;
  for (const size_t a : spatial) {
    extents.push_back(axes_[a].extent);
    outputs *= static_cast<double>(axes_[a].extent);
  }
  const int64_t most_warps =
      std::max<int64_t>(1, limits_.block_threads / limits_.warp_lanes);
  for (int draw = 0; draw < kTileDraws; ++draw) {
    TileFactors factors(axes_.size());
    const std::vector<int64_t> lanes =
        DealTwos(FloorLog2(limits_.warp_lanes), extents, rng);
    std::vector<int64_t> left;
    for (size_t i = 0; i < spatial.size(); ++i) {
      left.push_back(CeilDiv(extents[i], lanes[i]));
    }
    const std::vector<int64_t> warps = DealTwos(
        static_cast<int64_t>(rng.Below(FloorLog2(most_warps) + 1)), left, rng);
    const int64_t registers = LocalRegisters(
        limits_, limits_.warp_lanes * absl::c_accumulate(warps, int64_t{1},
                                                         std::multiplies<>()));
    // The tile of a thread on a logarithmic scale, in both levels.
    std::vector<int64_t> rest;
    for (size_t i = 0; i < spatial.size(); ++i) {
      rest.push_back(CeilDiv(left[i], warps[i]));
    }
    const std::vector<int64_t> tile =
        DealTwos(static_cast<int64_t>(
                     rng.Below(FloorLog2(std::max<int64_t>(registers, 1)) + 1)),
                 rest, rng);
    for (size_t i = 0; i < spatial.size(); ++i) {
      int64_t own = std::min(tile[i], CeilPowerOfTwo(rest[i]));
      // Sometimes a width that divides the axis, such as 7 of 56.
      const int64_t threads = lanes[i] * warps[i];
      if (extents[i] % (own * threads) != 0 && extents[i] % threads == 0) {
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= 2 * own; ++d) {
          if (extents[i] / threads % d == 0) divisors.push_back(d);
        }
        own = divisors[rng.Below(divisors.size())];
      }
      // Mostly vectors: lanes side by side then read without bank conflicts.
      int64_t inner = own;
      if (own % 2 == 0 && rng.Chance(0.75)) {
        inner = rng.Chance(0.5) ? kVectorElements
                                : int64_t{1} << rng.Below(FloorLog2(own) + 1);
        while (own % inner != 0) inner /= 2;
      }
      factors[spatial[i]] = {CeilDiv(extents[i], threads * own), own / inner,
                             warps[i], lanes[i], inner};
    }
    int64_t steps = int64_t{4}
                    << rng.Below(FloorLog2(kMostFetchedTerms / 4) + 1);
    std::vector<size_t> order = reduce;
    rng.Shuffle(order);
    for (const size_t a : order) {
      const int64_t extent = axes_[a].extent;
      int64_t own = std::min(steps, extent);
      if (a == PeriodicAxis() && rng.Chance(0.75)) {
        own = DrawWholeTerms(extent, rng).value_or(own);
      }
      if (extent % own != 0 && rng.Chance(0.75)) {
        while (extent % own != 0) --own;
      }
      steps = std::max<int64_t>(1, steps / own);
      int64_t inner = 1;
      if (own % 2 == 0 && rng.Chance(0.5)) inner = own % 4 == 0 ? 4 : 2;
      factors[a] = {CeilDiv(extent, own), own / inner, inner};
    }
    if (!WhyNot(factors, stages).empty()) continue;
    // Tiny programs cannot fill one warp.
    const bool tiny = outputs < 4.0 * limits_.warp_lanes;
    if (!tiny && draw < kTileDraws / 2 && Waste(factors) > kMostWaste) continue;
    return factors;
  }
  return std::nullopt;
}

}  // namespace tilefarm::space
