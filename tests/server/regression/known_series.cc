#include "tests/server/regression/known_series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/rng.h"
#include "tests/server/regression/r_random.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

// A level from a point on, in percent, and its noise.
using Noise = std::function<double(Rng&)>;
struct Segment {
  size_t points;
  double percent;
  Noise noise;
};

Noise NormalNoise(double percent) {
  return [percent](Rng& rng) { return percent / 100 * Normal(rng); };
}

Noise HeavyNoise(double percent, int degrees) {
  return [percent, degrees](Rng& rng) {
    return percent / 100 * StudentT(rng, degrees);
  };
}

// Interruptions only make things slower.
Noise SkewedNoise(double percent) {
  return [percent](Rng& rng) {
    return percent / 100 * (std::exp(Normal(rng)) - 1);
  };
}

// Some processes get bad pages.
Noise BimodalNoise(double percent, double chance, double distance) {
  return [=](Rng& rng) {
    return percent / 100 * Normal(rng) +
           (rng.Chance(chance) ? distance / 100 : 0);
  };
}

// Single points that are far off.
Noise OutlierNoise(double percent, double chance, double distance) {
  return [=](Rng& rng) {
    const double noise = percent / 100 * Normal(rng);
    return rng.Chance(chance) ? noise + distance / 100 * rng.Uniform() : noise;
  };
}

KnownSeries Make(const char* name, uint64_t seed,
                 const std::vector<Segment>& segments) {
  Rng rng(seed);
  KnownSeries series{.name = name};
  for (const Segment& segment : segments) {
    if (!series.values.empty()) series.changes.push_back(series.values.size());
    for (size_t i = 0; i < segment.points; ++i) {
      series.values.push_back(std::log1p(segment.percent / 100) +
                              segment.noise(rng));
    }
  }
  return series;
}

}  // namespace

std::vector<KnownSeries> SyntheticSeries() {
  const Noise one = NormalNoise(1);
  std::vector<KnownSeries> all;
  const auto add = [&](const char* name, const std::vector<Segment>& segments) {
    all.push_back(Make(name, all.size() + 1, segments));
  };
  add("nothing, normal noise of 1 %", {{150, 0, one}});
  add("nothing, heavy tails", {{150, 0, HeavyNoise(1, 2)}});
  add("nothing, skewed noise", {{150, 0, SkewedNoise(1)}});
  add("nothing, outliers up to 30 %", {{150, 0, OutlierNoise(1, 0.08, 30)}});
  add("+5 %", {{70, 0, one}, {60, 5, one}});
  add("-8 %", {{50, 0, one}, {80, -8, one}});
  add("+3 %", {{80, 0, one}, {80, 3, one}});
  add("+2 %", {{100, 0, one}, {100, 2, one}});
  add("+0.5 % in noise of 0.1 %",
      {{60, 0, NormalNoise(0.1)}, {60, 0.5, NormalNoise(0.1)}});
  add("+6 % for 20 points", {{100, 0, one}, {20, 6, one}, {100, 0, one}});
  add("staircase of 4 %",
      {{40, 0, one}, {40, 4, one}, {40, 8, one}, {40, 12, one}});
  add("+5 %, 8 points before the end", {{120, 0, one}, {8, 5, one}});
  add("+5 %, 8 points after the beginning", {{8, 0, one}, {120, 5, one}});
  add("+5 %, heavy tails",
      {{80, 0, HeavyNoise(1, 2)}, {80, 5, HeavyNoise(1, 2)}});
  add("+5 %, outliers up to 30 %",
      {{80, 0, OutlierNoise(1, 0.08, 30)}, {80, 5, OutlierNoise(1, 0.08, 30)}});
  add("noise from 0.5 % to 3 %",
      {{80, 0, NormalNoise(0.5)}, {80, 0, NormalNoise(3)}});
  add("slow pages from 5 % to 50 % of processes",
      {{120, 0, BimodalNoise(0.5, 0.05, 6)},
       {120, 0, BimodalNoise(0.5, 0.5, 6)}});
  add("noisy machine, then a quiet one with +1 %", {{90, 0, NormalNoise(4)},
                                                    {60, 6, NormalNoise(0.2)},
                                                    {60, 7, NormalNoise(0.2)}});
  add("+5 %, fixed, -3 %, +4 %",
      {{50, 0, one}, {30, 5, one}, {50, 0, one}, {40, -3, one}, {50, 1, one}});
  add("six changes in 1,500 points", {{250, 0, one},
                                      {150, 4, one},
                                      {300, 1, one},
                                      {200, 6, one},
                                      {250, 9, one},
                                      {100, 4, one},
                                      {250, 0, one}});
  return all;
}

std::vector<KnownSeries> LiteratureSeries() {
  std::vector<KnownSeries> all;
  {
    KnownSeries series{.name = "ecp, set.seed(250)",
                       .changes = {100, 200, 300},
                       .threshold = 3};
    RRandom random(250);
    random.Normals(100, 0, 1, &series.values);
    random.Normals(100, 0, 3, &series.values);
    random.Normals(100, 2, 1, &series.values);
    random.Normals(100, 2, 4, &series.values);
    all.push_back(std::move(series));
  }
  {
    KnownSeries series{
        .name = "ecp, set.seed(100)", .changes = {100, 200}, .threshold = 3};
    RRandom random(100);
    random.Normals(100, 0, 1, &series.values);
    random.Normals(100, 3, 1, &series.values);
    random.Normals(100, 0, 2, &series.values);
    all.push_back(std::move(series));
  }
  all.push_back({.name = "Otava, first",
                 .values = {1.02, 0.95, 0.99, 1.00, 1.12, 0.90, 0.50, 0.51,
                            0.48, 0.48, 0.55},
                 .changes = {6}});
  all.push_back({.name = "Otava, second",
                 .values = {2.02, 2.03, 2.01, 2.04, 1.82, 1.85, 1.79, 1.81,
                            1.80, 1.76, 1.78},
                 .changes = {4},
                 .threshold = 0.1});
  return all;
}

size_t Matches(const std::vector<size_t>& known,
               const std::vector<size_t>& found, size_t tolerance) {
  std::vector<bool> taken(known.size(), false);
  size_t matches = 0;
  for (const size_t index : found) {
    for (size_t i = 0; i < known.size(); ++i) {
      const size_t distance =
          index > known[i] ? index - known[i] : known[i] - index;
      if (taken[i] || distance > tolerance) continue;
      taken[i] = true;
      ++matches;
      break;
    }
  }
  return matches;
}

std::vector<size_t> ThresholdAlarms(const std::vector<double>& values,
                                    double threshold) {
  constexpr size_t kFewest = 3, kMost = 10;
  std::vector<size_t> alarms;
  for (size_t i = kFewest; i < values.size(); ++i) {
    const size_t count = std::min(i, kMost);
    double sum = 0;
    for (size_t j = i - count; j < i; ++j) sum += values[j];
    const double mean = sum / static_cast<double>(count);
    if (std::abs(values[i] - mean) > threshold) alarms.push_back(i);
  }
  return alarms;
}

}  // namespace tilefarm::regression
