// How well change points are found, beside a fixed threshold:
//
//   change_points_report [--json] [--tolerance 5] [--replicates 20]
//
// The twenty synthetic histories and the examples of the literature with known
// changes (tests/server/regression/known_series.h), and the simulation study of
// Matteson and James (2014, section 4): normal series of three equal parts, the
// middle one with another mean, variance or tail, by the adjusted Rand index of
// the found segmentation (1: exact). Only reports;
// tests/server/regression/change_points_test.cc asserts the counts.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/rng.h"
#include "server/regression/change_points.h"
#include "tests/server/regression/known_series.h"
#include "tests/server/regression/random_noise.h"

namespace tilefarm::regression {
namespace {

using Json = nlohmann::ordered_json;

std::vector<size_t> Find(const std::vector<double>& values,
                         const ChangePointOptions& options = {}) {
  const absl::StatusOr<std::vector<ChangePoint>> changes =
      FindChangePoints(values, options);
  TF_CHECK(changes.ok());
  std::vector<size_t> indices;
  for (const ChangePoint& change : *changes) indices.push_back(change.index);
  return indices;
}

// The segment of each point.
std::vector<size_t> Labels(size_t points, const std::vector<size_t>& changes) {
  std::vector<size_t> labels;
  size_t segment = 0;
  for (size_t i = 0; i < points; ++i) {
    while (segment < changes.size() && i >= changes[segment]) ++segment;
    labels.push_back(segment);
  }
  return labels;
}

// Hubert and Arabie, 1985.
double AdjustedRand(size_t points, const std::vector<size_t>& a,
                    const std::vector<size_t>& b) {
  const std::vector<size_t> first = Labels(points, a);
  const std::vector<size_t> second = Labels(points, b);
  const auto pairs = [](double n) { return n * (n - 1) / 2; };
  std::vector<std::vector<double>> table(a.size() + 1,
                                         std::vector<double>(b.size() + 1, 0));
  for (size_t i = 0; i < points; ++i) ++table[first[i]][second[i]];
  double both = 0, rows = 0, columns = 0;
  for (const std::vector<double>& row : table) {
    double sum = 0;
    for (const double cell : row) {
      both += pairs(cell);
      sum += cell;
    }
    rows += pairs(sum);
  }
  for (size_t j = 0; j <= b.size(); ++j) {
    double sum = 0;
    for (const std::vector<double>& row : table) sum += row[j];
    columns += pairs(sum);
  }
  const double expected = rows * columns / pairs(static_cast<double>(points));
  const double most = (rows + columns) / 2;
  return most == expected ? 1 : (both - expected) / (most - expected);
}

struct Totals {
  size_t known = 0, found = 0, matched = 0;
  void Add(const std::vector<size_t>& known_changes,
           const std::vector<size_t>& found_changes, size_t tolerance) {
    known += known_changes.size();
    found += found_changes.size();
    matched += Matches(known_changes, found_changes, tolerance);
  }
  double precision() const {
    return found == 0
               ? 1
               : static_cast<double>(matched) / static_cast<double>(found);
  }
  double recall() const {
    return known == 0
               ? 1
               : static_cast<double>(matched) / static_cast<double>(known);
  }
  Json ToJson() const {
    return {{"known", known},
            {"found", found},
            {"matched", matched},
            {"precision", precision()},
            {"recall", recall()}};
  }
};

Json SeriesReport(const std::vector<KnownSeries>& all, size_t tolerance,
                  const ChangePointOptions& options) {
  Json json;
  json["series"] = Json::array();
  Totals divisive, threshold;
  for (const KnownSeries& series : all) {
    const std::vector<size_t> found = Find(series.values, options);
    const std::vector<size_t> alarms =
        ThresholdAlarms(series.values, series.threshold);
    divisive.Add(series.changes, found, tolerance);
    threshold.Add(series.changes, alarms, tolerance);
    json["series"].push_back({{"name", series.name},
                              {"known", series.changes},
                              {"found", found},
                              {"threshold_alarms", alarms}});
  }
  json["e_divisive"] = divisive.ToJson();
  json["threshold"] = threshold.ToJson();
  return json;
}

// One design of the paper: the middle third differs.
double MeanRand(const std::string& kind, double value, size_t points,
                int replicates) {
  double sum = 0;
  for (int replicate = 0; replicate < replicates; ++replicate) {
    Rng rng(static_cast<uint64_t>(replicate) + 1);
    std::vector<double> values;
    for (size_t i = 0; i < points; ++i) {
      const bool middle = i >= points / 3 && i < 2 * points / 3;
      double x = Normal(rng);
      if (middle && kind == "mean") x += value;
      if (middle && kind == "variance") x *= std::sqrt(value);
      if (middle && kind == "tail") {
        x = StudentT(rng, static_cast<int>(value));
      }
      values.push_back(x);
    }
    const ChangePointOptions paper = {
        .least_segment = 30, .significance = 0.05, .permutations = 199};
    sum +=
        AdjustedRand(points, {points / 3, 2 * points / 3}, Find(values, paper));
  }
  return sum / replicates;
}

Json SimulationReport(int replicates) {
  Json rows = Json::array();
  struct Design {
    const char* kind;
    std::vector<double> values;
  };
  for (const Design& design :
       {Design{"mean", {1, 2, 4}}, Design{"variance", {2, 5, 10}},
        Design{"tail", {2, 8, 16}}}) {
    for (const double value : design.values) {
      for (const size_t points : {size_t{150}, size_t{300}}) {
        rows.push_back(
            {{"change", design.kind},
             {"value", value},
             {"points", points},
             {"rand", MeanRand(design.kind, value, points, replicates)}});
      }
    }
  }
  return rows;
}

std::string Join(const Json& indices) {
  return indices.empty()
             ? "-"
             : absl::StrJoin(indices.get<std::vector<size_t>>(), " ");
}

void PrintSeries(const Json& report, const char* title) {
  std::cout << title << "\n"
            << absl::StrFormat("%-44s %-28s %-34s %s\n", "series", "known",
                               "E-Divisive", "alarms of a threshold");
  for (const Json& series : report["series"]) {
    std::cout << absl::StrFormat("%-44s %-28s %-34s %d\n",
                                 series["name"].get<std::string>(),
                                 Join(series["known"]), Join(series["found"]),
                                 series["threshold_alarms"].size());
  }
  for (const char* method : {"e_divisive", "threshold"}) {
    const Json& totals = report[method];
    std::cout << absl::StrFormat(
        "%-10s precision %.2f, recall %.2f (%d of %d found are right, of %d "
        "known)\n",
        method, totals["precision"].get<double>(),
        totals["recall"].get<double>(), totals["matched"].get<int>(),
        totals["found"].get<int>(), totals["known"].get<int>());
  }
  std::cout << "\n";
}

int Main(int argc, char** argv) {
  bool json = false;
  size_t tolerance = 5;
  int replicates = 20;
  CLI::App app("Precision and recall of change points");
  app.add_flag("--json", json, "One document instead of tables");
  app.add_option("--tolerance", tolerance,
                 "Points by which a change may be off");
  app.add_option("--replicates", replicates, "Of each simulated design")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  Json report;
  report["synthetic"] = SeriesReport(SyntheticSeries(), tolerance, {});
  // With the options of the publications.
  std::vector<KnownSeries> published = LiteratureSeries();
  const std::vector<KnownSeries> short_ones(published.begin() + 2,
                                            published.end());
  published.resize(2);
  report["literature"] = SeriesReport(
      published, 2 * tolerance,
      {.least_segment = 30, .significance = 0.05, .permutations = 499});
  report["literature_short"] =
      SeriesReport(short_ones, 0, {.least_segment = 2, .significance = 0.05});
  report["simulation"] = SimulationReport(replicates);
  if (json) {
    std::cout << report.dump(2) << "\n";
    return 0;
  }
  PrintSeries(report["synthetic"], "Synthetic histories");
  PrintSeries(report["literature"], "Examples of ecp");
  PrintSeries(report["literature_short"], "Examples of Otava");
  std::cout << "Simulations of Matteson and James: adjusted Rand index\n";
  for (const Json& row : report["simulation"]) {
    std::cout << absl::StrFormat(
        "%-9s %4.0f  %d points  %.3f\n", row["change"].get<std::string>(),
        row["value"].get<double>(), row["points"].get<int>(),
        row["rand"].get<double>());
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm::regression

int main(int argc, char** argv) {
  return tilefarm::regression::Main(argc, argv);
}
