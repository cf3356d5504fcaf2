#include "server/cli/explain_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "compiler/driver/kept_floats.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

using cost_model::Bottleneck;
using cost_model::NestRow;
using cost_model::NestTable;
using cost_model::WithoutCost;

// Stores below this share of the time are left out of the text, and causes
// below the other one.
constexpr double kShownStore = 0.05;
constexpr double kShownCause = 0.02;
// Model and measurement agree within this factor. Those of the programs of
// tests/perf/explain_report.cc are within 1.25.
constexpr double kAgrees = 1.5;
// Of slots: enough to be named.
constexpr double kMuch = 0.25;

std::string ShareText(const ExplainReport& report, double cycles) {
  return FormatShare(cycles / std::max(report.model.cycles, 1.0));
}

double StoreBytes(const ExplainReport& report, int level) {
  double bytes = 0;
  for (const auto& store : report.model.stores) bytes += store.bytes[level];
  return bytes;
}

bool FitsCaches(const ExplainReport& report) {
  return report.parameter_bytes <=
         static_cast<double>(report.target.caches.l3_bytes);
}

std::string TimeLines(const ExplainReport& report) {
  std::string text;
  std::vector<std::string> times;
  if (report.record_seconds > 0) {
    times.push_back(
        absl::StrCat(Seconds(report.record_seconds), " by its record"));
  }
  if (report.run_seconds > 0) {
    times.push_back(
        absl::StrCat(Seconds(report.run_seconds), " in this process now"));
  } else if (!report.not_run.empty()) {
    times.push_back(absl::StrCat("not run: ", report.not_run));
  }
  if (report.model_seconds() > 0) {
    times.push_back(
        absl::StrCat(Seconds(report.model_seconds()), " by the model"));
  }
  absl::StrAppend(&text, "  time        ", absl::StrJoin(times, ", "), "\n");
  return text;
}

std::string RooflineLines(const ExplainReport& report) {
  std::string text;
  const double seconds = report.seconds();
  const double intensity = report.flops / std::max(report.parameter_bytes, 1.0);
  absl::StrAppend(&text, "  arithmetic  ",
                  absl::StrFormat("%.4g MFLOP", report.flops * 1e-6));
  if (seconds > 0) {
    absl::StrAppend(&text, ", ", FormatRate(report.flops / seconds, "FLOPS"));
    if (report.peaks) {
      const double peak = report.peaks->all_float32_flops;
      absl::StrAppend(&text, ", ", FormatShare(report.flops / seconds / peak),
                      " of the ", FormatRate(peak, "FLOPS"),
                      " that multiply-adds of float32 reach here");
    }
  }
  absl::StrAppend(&text, "\n  data        ",
                  FormatBytes(report.parameter_bytes), " in parameters, ",
                  absl::StrFormat("%.3g", intensity), " FLOP a byte");
  if (report.peaks) {
    const double ridge =
        report.peaks->all_float32_flops / report.peaks->all_bytes_from_memory;
    absl::StrAppend(&text, "; from memory, arithmetic is the limit above ",
                    absl::StrFormat("%.3g", ridge));
  }
  absl::StrAppend(&text, "\n");
  const double least = LeastSeconds(report);
  if (least > 0) {
    absl::StrAppend(&text, "  least time  ", Seconds(least),
                    FitsCaches(report)
                        ? " for this arithmetic, with data in the caches"
                        : " for this arithmetic and this data from memory");
    if (seconds > 0) {
      absl::StrAppend(&text, ": ", absl::StrFormat("%.2g", seconds / least),
                      " times that");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string BottleneckLines(const ExplainReport& report) {
  const Bottleneck what = report.model.bottleneck;
  const bool is_uncertain = !report.agrees().value_or(true);
  std::string text = absl::StrCat(
      "  bottleneck  ", std::string(cost_model::BottleneckName(what)),
      is_uncertain ? " (uncertain)\n" : "\n", "              ",
      std::string(cost_model::BottleneckAdvice(what)), "\n");
  if (is_uncertain) {
    absl::StrAppend(&text, "              The model gives ",
                    FormatShare(report.model_seconds() / report.seconds()),
                    " of the measured time: something else than it knows "
                    "counts here.\n");
  }
  std::vector<std::vector<std::string>> rows = {
      {"", "WITHOUT", "SAVES", "KIND"}};
  for (const WithoutCost& one : report.model.without) {
    if (one.share < kShownCause) continue;
    rows.push_back({"", std::string(cost_model::BottleneckName(one.cost)),
                    FormatShare(one.share),
                    cost_model::IsLoss(one.cost) ? "loss of this schedule"
                                                 : "limit of the device"});
  }
  if (rows.size() > 1) absl::StrAppend(&text, "\n", Table(rows));
  return text;
}

std::string TrafficLines(const ExplainReport& report) {
  constexpr const char* kFrom[] = {"L2 to L1", "L3 to L2", "memory to L3"};
  std::vector<std::vector<std::string>> rows = {
      {"", "TRAFFIC", "BYTES", "RATE", "REACHED ALONE"}};
  const double seconds = report.seconds();
  for (int level = 0; level < 3; ++level) {
    const double bytes = StoreBytes(report, level);
    std::string peak = "-";
    if (report.peaks) {
      const driver::MachinePeaks& peaks = *report.peaks;
      const double cores = std::max(report.target.cores, 1);
      peak = FormatRate(level == 0   ? peaks.bytes_from_l2 * cores
                        : level == 1 ? peaks.bytes_from_l3 * cores
                                     : peaks.all_bytes_from_memory,
                        "B/s");
    }
    rows.push_back({"", kFrom[level], FormatBytes(bytes),
                    seconds > 0 ? FormatRate(bytes / seconds, "B/s") : "-",
                    peak});
  }
  return Table(rows);
}

std::string CountLines(const ExplainReport& report) {
  if (!report.counts) {
    return report.no_counts.empty()
               ? ""
               : absl::StrCat("  counters    none: ", report.no_counts, "\n");
  }
  const PerfCounts& counts = *report.counts;
  std::vector<std::string> parts;
  const auto add = [&](const std::optional<double>& count, const char* what) {
    if (count) parts.push_back(absl::StrFormat("%.4g %s", *count, what));
  };
  add(counts.cycles, "cycles");
  add(counts.instructions, "instructions");
  if (counts.cycles && counts.instructions && *counts.cycles > 0) {
    parts.push_back(
        absl::StrFormat("%.2f a cycle", *counts.instructions / *counts.cycles));
  }
  add(counts.l1_misses, "misses in L1");
  add(counts.cache_misses, "in the last cache");
  add(counts.branch_misses, "branches mispredicted");
  std::string text =
      absl::StrCat("  counters    ", absl::StrJoin(parts, ", "), "\n");
  if (counts.top_down) {
    const TopDown& slots = *counts.top_down;
    absl::StrAppend(&text, "  slots       retiring ",
                    FormatShare(slots.retiring), ", back end ",
                    FormatShare(slots.backend_bound), ", front end ",
                    FormatShare(slots.frontend_bound), ", bad speculation ",
                    FormatShare(slots.bad_speculation), "\n");
    if (slots.frontend_bound > kMuch) {
      absl::StrAppend(&text,
                      "              Instructions come too slowly: less "
                      "unrolling makes the code smaller.\n");
    }
    if (slots.bad_speculation > kMuch) {
      absl::StrAppend(&text,
                      "              Branches are mispredicted: conditions "
                      "within inner loops.\n");
    }
  }
  return text;
}

std::string NestLines(const ExplainReport& report) {
  std::string text;
  for (size_t i = 0; i < report.nests.size(); ++i) {
    const double cycles = report.model.store_cycles[i];
    if (cycles < kShownStore * report.model.cycles) continue;
    const NestTable& nest = report.nests[i];
    absl::StrAppend(&text, "\n  ", nest.is_init ? "init of " : "", nest.buffer,
                    nest.block.empty() ? "" : " in block ", nest.block, ", ",
                    ShareText(report, cycles), " of the time by the model\n");
    std::vector<std::vector<std::string>> rows = {
        {"", "LOOP", "KIND", "RUNS", "ONE RUN TOUCHES", "FITS", "REUSE"}};
    for (const NestRow& row : nest.rows) {
      rows.push_back({"", row.loop.empty() ? "(the store)" : row.loop, row.kind,
                      absl::StrFormat("%.6g", row.runs), FormatBytes(row.bytes),
                      row.fits_in, absl::StrFormat("%.3gx", row.reuse)});
    }
    absl::StrAppend(&text, Table(rows));
  }
  return text;
}

std::string RunnerUpLines(const ExplainReport& report) {
  if (!report.runner_up) {
    return report.no_runner_up.empty()
               ? ""
               : absl::StrCat("\n  runner-up   none: ", report.no_runner_up,
                              "\n");
  }
  const RunnerUp& other = *report.runner_up;
  std::string text = absl::StrCat(
      "\n  runner-up   ", Seconds(other.seconds), ", ",
      absl::StrFormat("%.1f %% slower",
                      (other.seconds / report.record_seconds - 1) * 100),
      other.diff.same_sketch ? ", the same sketch, decided otherwise"
                             : ", another sketch",
      "\n");
  std::vector<std::vector<std::string>> rows = {
      {"", other.diff.same_sketch ? "DECISION" : "INSTRUCTIONS", "BEST",
       "RUNNER-UP"}};
  for (const driver::DecisionDiff& one : other.diff.decisions) {
    rows.push_back({"", one.what, one.first, one.second});
  }
  if (rows.size() > 1) absl::StrAppend(&text, Table(rows));
  return text;
}

nlohmann::ordered_json NumberOrNull(double number) {
  return number > 0 && std::isfinite(number) ? nlohmann::ordered_json(number)
                                             : nlohmann::ordered_json();
}

nlohmann::ordered_json CountsJson(const PerfCounts& counts) {
  const auto value = [](const std::optional<double>& count) {
    return count ? nlohmann::ordered_json(*count) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json = {{"cycles", value(counts.cycles)},
                                 {"instructions", value(counts.instructions)},
                                 {"l1_misses", value(counts.l1_misses)},
                                 {"cache_misses", value(counts.cache_misses)},
                                 {"branch_misses", value(counts.branch_misses)},
                                 {"top_down", nullptr}};
  if (counts.top_down) {
    json["top_down"] = {{"retiring", counts.top_down->retiring},
                        {"bad_speculation", counts.top_down->bad_speculation},
                        {"frontend_bound", counts.top_down->frontend_bound},
                        {"backend_bound", counts.top_down->backend_bound}};
  }
  return json;
}

nlohmann::ordered_json NestsJson(const ExplainReport& report) {
  auto stores = nlohmann::ordered_json::array();
  for (size_t i = 0; i < report.nests.size(); ++i) {
    const NestTable& nest = report.nests[i];
    auto rows = nlohmann::ordered_json::array();
    for (const NestRow& row : nest.rows) {
      rows.push_back({{"loop", row.loop},
                      {"kind", row.kind},
                      {"runs", row.runs},
                      {"bytes", row.bytes},
                      {"fits_in", row.fits_in},
                      {"reuse", row.reuse}});
    }
    stores.push_back({{"buffer", nest.buffer},
                      {"block", nest.block},
                      {"is_init", nest.is_init},
                      {"share", report.model.store_cycles[i] /
                                    std::max(report.model.cycles, 1.0)},
                      {"loops", std::move(rows)}});
  }
  return stores;
}

nlohmann::ordered_json RunnerUpJson(const RunnerUp& runner_up) {
  auto decisions = nlohmann::ordered_json::array();
  for (const driver::DecisionDiff& one : runner_up.diff.decisions) {
    decisions.push_back(
        {{"what", one.what}, {"best", one.first}, {"runner_up", one.second}});
  }
  return {{"seconds", runner_up.seconds},
          {"same_sketch", runner_up.diff.same_sketch},
          {"differences", std::move(decisions)}};
}

}  // namespace

std::optional<bool> ExplainReport::agrees() const {
  const double model_time = model_seconds(), measured = seconds();
  if (!(model_time > 0) || !(measured > 0)) return std::nullopt;
  return measured <= kAgrees * model_time && model_time <= kAgrees * measured;
}

double LeastSeconds(const ExplainReport& report) {
  if (!report.peaks) return 0;
  const double arithmetic = report.flops / report.peaks->all_float32_flops;
  if (FitsCaches(report)) return arithmetic;
  return std::max(arithmetic,
                  report.parameter_bytes / report.peaks->all_bytes_from_memory);
}

std::string ExplainText(const ExplainReport& report) {
  std::string text =
      absl::StrCat(report.function, " on ", ShortTarget(report.target.Key()),
                   ", schedule: ", report.schedule, " (", report.reason, ")\n");
  const std::string algorithms =
      driver::DescribeAlgorithms(report.algorithms, report.keeps_floats);
  if (!algorithms.empty()) {
    absl::StrAppend(&text, "  algorithm   ", algorithms, "\n");
  }
  absl::StrAppend(&text, TimeLines(report), RooflineLines(report), "\n",
                  BottleneckLines(report), "\n", TrafficLines(report),
                  CountLines(report), NestLines(report), RunnerUpLines(report));
  return text;
}

nlohmann::ordered_json ExplainJson(const ExplainReport& report) {
  auto without = nlohmann::ordered_json::array();
  for (const WithoutCost& one : report.model.without) {
    without.push_back(
        {{"cost", std::string(cost_model::BottleneckName(one.cost))},
         {"share", one.share},
         {"is_loss", cost_model::IsLoss(one.cost)}});
  }
  nlohmann::ordered_json json = {
      {"function", report.function},
      {"target", report.target.Key()},
      {"schedule", report.schedule},
      {"reason", report.reason},
      {"algorithms", report.algorithms},
      {"keeps_floats", report.keeps_floats},
      {"flops", report.flops},
      {"parameter_bytes", report.parameter_bytes},
      {"record_seconds", NumberOrNull(report.record_seconds)},
      {"run_seconds", NumberOrNull(report.run_seconds)},
      {"model_seconds", NumberOrNull(report.model_seconds())},
      {"model_cycles", report.model.cycles},
      {"least_seconds", NumberOrNull(LeastSeconds(report))},
      {"bottleneck",
       std::string(cost_model::BottleneckName(report.model.bottleneck))},
      {"model_agrees", nullptr},
      {"without", std::move(without)},
      {"traffic_bytes",
       {{"l2_to_l1", StoreBytes(report, 0)},
        {"l3_to_l2", StoreBytes(report, 1)},
        {"memory_to_l3", StoreBytes(report, 2)}}},
      {"peaks", nullptr},
      {"counters", nullptr},
      {"stores", NestsJson(report)},
      {"runner_up", nullptr}};
  if (report.peaks) {
    json["peaks"] =
        nlohmann::ordered_json::parse(driver::PeaksToJson(*report.peaks));
  }
  if (const auto agrees = report.agrees()) json["model_agrees"] = *agrees;
  if (report.counts) json["counters"] = CountsJson(*report.counts);
  if (report.runner_up) json["runner_up"] = RunnerUpJson(*report.runner_up);
  return json;
}

}  // namespace tilefarm::cli
