// How well the estimate (cost_model/estimate.h) ranks what a database has
// measured: for each workload of a target, the rank correlation of estimate and
// time, and the share of the best speed that the record with the least estimate
// has.
//
//   estimate_report DB [--target host,cores=1] [--records N] [--dump FILE]
//
// --dump writes the features of every record for fits elsewhere: a line with
// their names; then for each record, as little-endian numbers, int32 workload,
// int32 rows, double seconds, double bytes of all buffers, and rows * kColumns
// floats.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "database/store.h"

namespace tilefarm {
namespace {

struct Options {
  std::string db, target = "host,cores=1", dump;
  size_t records = 1000;
};

struct Point {
  double seconds = 0;
  double cycles = 0;
};

std::vector<double> Ranks(const std::vector<Point>& points, double Point::*of) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return points[i].*of; });
  std::vector<double> ranks(points.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() &&
           points[order[end]].*of == points[order[begin]].*of) {
      ++end;
    }
    // Equal ones share the mean of their ranks.
    for (size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    }
  }
  return ranks;
}

// Spearman's.
double Correlation(const std::vector<Point>& points) {
  const std::vector<double> x = Ranks(points, &Point::seconds);
  const std::vector<double> y = Ranks(points, &Point::cycles);
  const double mean = static_cast<double>(points.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx == 0 || yy == 0 ? 0 : xy / std::sqrt(xx * yy);
}

template <typename T>
void Write(std::ofstream& file, const T& value) {
  file.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

absl::Status Run(const Options& options) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.target));
  TF_ASSIGN_OR_RETURN(
      const auto store,
      database::Store::Open(options.db, database::Store::Mode::kReadOnly));
  TF_ASSIGN_OR_RETURN(const auto tasks, store->ListTasks());
  std::ofstream dump;
  if (!options.dump.empty()) {
    dump.open(options.dump, std::ios::binary);
    dump << absl::StrJoin(cost_model::FeatureNames(), " ") << "\n";
  }
  double logs = 0, correlations = 0;
  int32_t workloads = 0;
  for (const database::Task& task : tasks) {
    if (task.target != target.Key()) continue;
    TF_ASSIGN_OR_RETURN(auto records,
                        store->FindRecords(task.workload_hash, task.target));
    std::erase_if(records, [](const database::Record& one) {
      return one.status != database::Status::kOk;
    });
    if (records.size() > options.records) records.resize(options.records);
    std::vector<Point> points;
    std::string name;
    for (const database::Record& record : records) {
      TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                          ir::ParseModule(record.program));
      TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                          schedule::Trace::Parse(record.trace));
      TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                          schedule::Replay(trace, module));
      const cost_model::LoopNest nest =
          cost_model::BuildLoopNest(*scheduled.module().functions[0]);
      const cost_model::FeatureRows rows = cost_model::FeaturesOf(nest, target);
      points.push_back(
          {record.median_seconds, cost_model::EstimateCycles(rows, target)});
      if (!dump.is_open()) continue;
      Write(dump, workloads);
      Write(dump,
            static_cast<int32_t>(rows.values.size() / cost_model::kColumns));
      Write(dump, record.median_seconds);
      Write(dump, cost_model::BytesOf(nest));
      dump.write(
          reinterpret_cast<const char*>(rows.values.data()),
          static_cast<std::streamsize>(rows.values.size() * sizeof(float)));
    }
    if (points.size() < 2) continue;
    ++workloads;
    const double correlation = Correlation(points);
    const double share = std::ranges::min(points, {}, &Point::seconds).seconds /
                         std::ranges::min(points, {}, &Point::cycles).seconds;
    correlations += correlation;
    logs += std::log(share);
    std::printf("%s  %5zu records  correlation %5.2f  share %.2f\n",
                task.workload_hash.substr(0, 10).c_str(), points.size(),
                correlation, share);
  }
  if (workloads == 0) {
    return absl::NotFoundError("no workload of " + target.Key());
  }
  std::printf(
      "%d workloads: mean correlation %.3f, geometric mean share %.3f\n",
      workloads, correlations / workloads, std::exp(logs / workloads));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("How well the estimate ranks measured candidates.");
  Options options;
  app.add_option("db", options.db)->required()->check(CLI::ExistingFile);
  app.add_option("--target", options.target);
  app.add_option("--records", options.records, "of each workload, the first");
  app.add_option("--dump", options.dump, "file for features and times");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "estimate_report: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
