// Whether explanations name the bottlenecks that are built into six programs,
// by this machine's own rates, and how far the model is from the times.
//
//   explain_report [--cores N]
//
// Times vary on a shared machine; run it again before believing a surprise.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "compiler/driver/machine_peaks.h"
#include "compiler/driver/run_function.h"
#include "compiler/ir/parser.h"
#include "compiler/target/target.h"
#include "tests/cost_model/bottleneck_programs.h"

namespace tilefarm {
namespace {

using cost_model::BottleneckName;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "explain_report: %s\n", status.ToString().c_str());
  return 1;
}

int Main(int argc, char** argv) {
  int cores = 2;
  CLI::App app("Bottlenecks of six programs on this machine");
  app.add_option("--cores", cores, "Of the imbalanced program")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf("%-15s %-15s %12s %12s %8s\n", "built in", "found", "model us",
              "measured us", "ratio");
  int found = 0;
  const auto host = target::Parse("host");
  if (!host.ok()) return Fail(host.status());
  for (const cost_model::BuiltIn& one :
       cost_model::BuiltInBottlenecks(*host, cores)) {
    const auto target = target::Parse(absl::StrCat("host,cores=", one.cores));
    if (!target.ok()) return Fail(target.status());
    const auto peaks = driver::MeasurePeaks(*target, Clock::Real());
    if (!peaks.ok()) return Fail(peaks.status());
    const auto program = ir::ParseFunction(one.program);
    if (!program.ok()) return Fail(program.status());
    const cost_model::BottleneckReport report =
        cost_model::FindBottleneck(cost_model::BuildLoopNest(**program),
                                   *target, driver::CoreOf(*peaks, *target));
    auto function = driver::RunnableFunction::Make(**program, *target);
    if (!function.ok()) return Fail(function.status());
    const auto time =
        driver::TimeFunction(*function, absl::Seconds(1), Clock::Real());
    if (!time.ok()) return Fail(time.status());
    const double model = report.cycles / peaks->clock_hz;
    std::printf("%-15s %-15s %12.2f %12.2f %8.2f\n",
                std::string(BottleneckName(one.bottleneck)).c_str(),
                std::string(BottleneckName(report.bottleneck)).c_str(),
                model * 1e6, time->median * 1e6, time->median / model);
    for (const cost_model::WithoutCost& cost : report.without) {
      if (cost.share < 0.02) continue;
      std::printf("    without %s: %.0f %% less\n",
                  std::string(BottleneckName(cost.cost)).c_str(),
                  cost.share * 100);
    }
    found += report.bottleneck == one.bottleneck;
  }
  std::printf("%d of 6 are as built in\n", found);
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
