// Change points of a series by E-Divisive (Matteson and James, "A Nonparametric
// Approach for Multiple Change Point Analysis of Multivariate Data", JASA
// 109(505), 2014), with their permutation test of significance.
//
// The energy distance between two samples is zero only if their distributions
// are equal, so a change of any kind is found: level, spread or shape. The
// series is bisected again and again at the split (tau, kappa) that maximises
// the scaled distance between the points up to tau and those after it up to
// kappa, as long as the split is significant against permutations of the
// segment's points.
//
// Two differences from the paper. A segment is tested against permutations of
// its own points instead of all segments together: histories change their noise
// with the machines, and a noisy segment must not hide a change in a quiet one.
// And a long series is analysed in overlapping windows, so that time is linear
// in its length and old results do not change when new points come.
#ifndef TILEFARM_SERVER_REGRESSION_CHANGE_POINTS_H_
#define TILEFARM_SERVER_REGRESSION_CHANGE_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::regression {

inline constexpr size_t kMostSeriesPoints = 10'000;

struct ChangePointOptions {
  // Each segment has at least so many points; at least 2.
  int least_segment = 4;
  // A split with a larger p-value is no change.
  double significance = 0.01;
  int permutations = 499;
  uint64_t seed = 0;
  // Points that are looked at together; at least 4 * least_segment. The time of
  // one evaluation is quadratic in it, the memory linear.
  int window = 512;
};

struct ChangePoint {
  // The first point of the new regime.
  size_t index = 0;
  // Of the permutation test: (1 + permutations that reach the split) /
  // (1 + permutations).
  double p_value = 1;
  // Medians of the segments on both sides, up to the neighbouring change
  // points.
  double before = 0, after = 0;
  double magnitude() const { return after - before; }
};

// Ascending indices. A function of values and options: the same on every
// platform. InvalidArgument: more than kMostSeriesPoints values, one that is
// not finite, or options out of range. Too few values for two segments: none.
absl::StatusOr<std::vector<ChangePoint>> FindChangePoints(
    std::span<const double> values, const ChangePointOptions& options = {});

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_CHANGE_POINTS_H_
