// Series whose change points are known, for tests and reports of the detector.
#ifndef TILEFARM_TESTS_SERVER_REGRESSION_KNOWN_SERIES_H_
#define TILEFARM_TESTS_SERVER_REGRESSION_KNOWN_SERIES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace tilefarm::regression {

struct KnownSeries {
  std::string name;
  std::vector<double> values;
  std::vector<size_t> changes;  // indices of the first points after changes
  // What a fixed threshold would be: 5 % of a time, or three standard
  // deviations of the first segment where values are no times.
  double threshold = 0.05;
};

// Twenty histories of a benchmark, logarithms of times: steps of 0.5 to 8 %,
// near each other, near the ends, in normal, heavy-tailed, skewed and bimodal
// noise, with outliers, and none at all.
std::vector<KnownSeries> SyntheticSeries();

// Examples of the literature on E-Divisive, number by number:
// - James and Matteson, "ecp: An R Package for Nonparametric Multiple Change
//   Point Analysis of Multivariate Data", Journal of Statistical Software
//   62(7), 2014, section 4.1: changes of mean and variance after set.seed(250)
// - the example of the package's e.divisive, after set.seed(100)
// - the two series of Apache Otava (once Hunter) that its documentation uses
std::vector<KnownSeries> LiteratureSeries();

// How many of the found changes are within `tolerance` points of a known one
// that no other found one has taken.
size_t Matches(const std::vector<size_t>& known,
               const std::vector<size_t>& found, size_t tolerance);

// What it is compared with: alarms where a point is above or below the mean of
// the points before it, at most ten and at least three, by more than
// `threshold`.
std::vector<size_t> ThresholdAlarms(const std::vector<double>& values,
                                    double threshold);

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_SERVER_REGRESSION_KNOWN_SERIES_H_
