// How often the gate is wrong on real measurements: simulated pull requests
// whose kernel is really slower by 0, 2, 5, 10 or 20 %, measured while another
// process loads the machine at random.
//
//   regression_gate [--unchanged 400] [--changed 100] [--log FILE] [--json]
//
// Every pull request is judged as `tune regress gate` does it (a screening,
// and for a suspect a confirmation), each cluster being a fresh process. Beside
// it the usual way: one run of the candidate against the last run of the
// baseline, an alarm from 5 % on. Rates have exact 95 % bounds. The whole study
// takes about an hour; --unchanged 40 --changed 10 a few minutes. Only reports.
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/regression/confirmed_test.h"
#include "server/regression/ratio_text.h"
#include "tests/perf/regression_gate/binomial_interval.h"
#include "tests/perf/regression_gate/cluster_process.h"
#include "tests/perf/regression_gate/machine_load.h"

namespace tilefarm::regression {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

constexpr int kLevels[] = {0, 2, 5, 10, 20};  // percent
constexpr double kNaiveThreshold = 1.05;

struct Options {
  int unchanged = 400;
  int changed = 100;  // of each other level
  uint64_t seed = 1;
  int core = -1;  // -1: the last one
  bool load = true;
  double budget_seconds = 6;  // wall time of a pull request
  std::string log;
  bool json = false;
};

double Since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Both artifacts as files of their own, in a folder that ends with this object.
class Artifacts {
 public:
  Artifacts() {
    folder_ =
        (fs::temp_directory_path() / absl::StrCat("regression_gate.", getpid()))
            .string();
    fs::create_directory(folder_);
    for (const char* side : {"baseline", "candidate"}) {
      fs::copy_file(TILEFARM_GATE_KERNEL, Path(side));
    }
  }
  ~Artifacts() { fs::remove_all(folder_); }
  std::string Path(const char* side) const {
    return absl::StrCat(folder_, "/", side, ".so");
  }

 private:
  std::string folder_;
};

// One run as it is usually made: a process that times one artifact.
struct NaiveRun {
  double mean = 0, median = 0;
};

struct PullRequest {
  int level = 0;
  TestOutcome outcome;
  bool suspect = false;
  int clusters = 0;
  double seconds = 0;
  bool mean_alarm = false, median_alarm = false;
};

class Study {
 public:
  explicit Study(const Options& options)
      : options_(options), rng_(options.seed) {}

  absl::Status Run() {
    TF_RETURN_IF_ERROR(Calibrate());
    std::unique_ptr<MachineLoad> load;
    if (options_.load) {
      load = std::make_unique<MachineLoad>(options_.seed, Cores());
    }
    std::ofstream log;
    if (!options_.log.empty()) log.open(options_.log, std::ios::app);
    std::vector<int> levels;
    for (const int level : kLevels) {
      levels.insert(levels.end(),
                    static_cast<size_t>(level == 0 ? options_.unchanged
                                                   : options_.changed),
                    level);
    }
    // In a random order: the hours of the machine belong to all levels.
    rng_.Shuffle(levels);
    TF_ASSIGN_OR_RETURN(NaiveRun last, RunNaively(0));
    for (const int level : levels) {
      TF_ASSIGN_OR_RETURN(PullRequest request, Judge(level));
      TF_ASSIGN_OR_RETURN(const NaiveRun run, RunNaively(level));
      request.mean_alarm = run.mean > kNaiveThreshold * last.mean;
      request.median_alarm = run.median > kNaiveThreshold * last.median;
      // The next one is compared with the baseline's run of now.
      TF_ASSIGN_OR_RETURN(last, RunNaively(0));
      if (log.is_open()) log << LineOf(request).dump() << std::endl;
      requests_.push_back(std::move(request));
      if (requests_.size() % 10 == 0) {
        std::cerr << requests_.size() << " of " << levels.size() << "\n";
      }
    }
    return absl::OkStatus();
  }

  Json Report() const {
    Json json;
    json["seed"] = options_.seed;
    json["load"] = options_.load;
    json["threshold"] = gate_.threshold;
    json["call_seconds"] = call_seconds_;
    json["levels"] = Json::array();
    for (const int level : kLevels) {
      const Counts counts = CountsOf(level);
      if (counts.total == 0) continue;
      Json row;
      row["percent"] = level;
      row["calibrated"] = ratios_[Index(level)].ratio;
      row["pull_requests"] = counts.total;
      row["alarms"] = RateJson(counts.alarms, counts.total);
      row["suspects"] = counts.suspects;
      row["same"] = counts.same;
      row["inconclusive"] = counts.inconclusive;
      row["clusters_median"] = counts.clusters.median;
      row["seconds_median"] = counts.seconds.median;
      row["seconds_most"] = counts.most_seconds;
      row["one_run_mean"] = RateJson(counts.mean_alarms, counts.total);
      row["one_run_median"] = RateJson(counts.median_alarms, counts.total);
      json["levels"].push_back(std::move(row));
    }
    return json;
  }

  void Print() const {
    std::cout << "kernel of " << SecondsText(call_seconds_)
              << (options_.load ? ", another process loads the machine"
                                : ", no other load")
              << "; threshold " << PercentText(gate_.threshold) << "\n\n"
              << "change  measured  PRs   alarms               suspects  same  "
                 "inconcl.  processes  seconds (most)\n";
    for (const int level : kLevels) {
      const Counts c = CountsOf(level);
      if (c.total == 0) continue;
      std::cout << absl::StrFormat(
          "%4d %%  %8s  %3d   %-22s %6d  %4d  %8d  %9.0f  %4.1f (%.1f)\n",
          level, ChangeText(ratios_[Index(level)].ratio), c.total,
          RateText(c.alarms, c.total), c.suspects, c.same, c.inconclusive,
          c.clusters.median, c.seconds.median, c.most_seconds);
    }
    std::cout << "\none run against the last, alarm from 5 % on\n"
              << "change  PRs   alarms by means        alarms by medians\n";
    for (const int level : kLevels) {
      const Counts c = CountsOf(level);
      if (c.total == 0) continue;
      std::cout << absl::StrFormat("%4d %%  %3d   %-22s %-22s\n", level,
                                   c.total, RateText(c.mean_alarms, c.total),
                                   RateText(c.median_alarms, c.total));
    }
  }

 private:
  struct Counts {
    int total = 0, alarms = 0, suspects = 0, same = 0, inconclusive = 0;
    int mean_alarms = 0, median_alarms = 0;
    MedianInterval clusters, seconds;
    double most_seconds = 0;
  };

  static size_t Index(int level) {
    return static_cast<size_t>(
        std::find(std::begin(kLevels), std::end(kLevels), level) -
        std::begin(kLevels));
  }

  int Cores() const { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

  ClusterRequest RequestOf(int64_t work, bool candidate_first) const {
    return {.baseline = artifacts_.Path("baseline"),
            .candidate = artifacts_.Path("candidate"),
            .candidate_work = work,
            .candidate_first = candidate_first,
            .rounds = plan_.rounds,
            .calls_per_sample = plan_.calls_per_sample,
            .core = options_.core < 0 ? Cores() - 1 : options_.core};
  }

  absl::StatusOr<double> RunOne(int64_t work, bool candidate_first) const {
    TF_ASSIGN_OR_RETURN(const std::vector<Pair> pairs,
                        RunCluster(RequestOf(work, candidate_first)));
    return ClusterLogRatio(pairs);
  }

  // The ratio of so much inserted work, from `clusters` processes.
  absl::StatusOr<RatioInterval> RatioOf(int64_t work, int clusters) {
    std::vector<double> logs;
    for (int i = 0; i < clusters; ++i) {
      TF_ASSIGN_OR_RETURN(const double log, RunOne(work, rng_.Chance(0.5)));
      logs.push_back(log);
    }
    return EstimateRatio(logs, 0.95);
  }

  // Finds the work that makes each level. Without load.
  absl::Status Calibrate() {
    plan_ = {.rounds = 8, .calls_per_sample = 1};
    TF_ASSIGN_OR_RETURN(const std::vector<Pair> pairs,
                        RunCluster(RequestOf(0, false)));
    std::vector<double> seconds;
    for (const Pair& pair : pairs) seconds.push_back(pair.baseline_seconds);
    call_seconds_ = MedianOf(std::move(seconds)).median;
    TF_ASSIGN_OR_RETURN(plan_, PlanCluster(call_seconds_));
    work_ = {0};
    ratios_ = {RatioInterval{.clusters = 1}};
    // Two amounts of work whose effect is near the levels' begin it.
    const int64_t cycles = std::llround(call_seconds_ * 3e9);
    std::vector<std::pair<double, double>> points;  // work, ratio
    const auto measure = [&](int64_t work,
                             int clusters) -> absl::StatusOr<RatioInterval> {
      TF_ASSIGN_OR_RETURN(const RatioInterval ratio, RatioOf(work, clusters));
      points.emplace_back(static_cast<double>(work), ratio.ratio);
      return ratio;
    };
    for (const int64_t share : {100, 10}) {
      TF_RETURN_IF_ERROR(measure(cycles / share, 5).status());
    }
    for (size_t i = 1; i < std::size(kLevels); ++i) {
      const double wanted = 1 + kLevels[i] / 100.0;
      // The line through the two points that are nearest to the level: out of
      // order, the first steps cost less than the later ones.
      int64_t work = 0;
      for (int step = 0; step < 3; ++step) {
        std::sort(
            points.begin(), points.end(), [&](const auto& a, const auto& b) {
              return std::abs(a.second - wanted) < std::abs(b.second - wanted);
            });
        const auto [near_work, near_ratio] = points[0];
        const auto other =
            std::find_if(points.begin(), points.end(), [&](const auto& point) {
              return std::abs(point.second - near_ratio) > 0.005;
            });
        if (other == points.end()) {
          return absl::InternalError("inserted work does not slow the kernel");
        }
        work = std::llround(near_work + (wanted - near_ratio) *
                                            (other->first - near_work) /
                                            (other->second - near_ratio));
        work = std::max<int64_t>(work, 1);
        TF_RETURN_IF_ERROR(measure(work, 5).status());
      }
      TF_ASSIGN_OR_RETURN(const RatioInterval ratio, measure(work, 11));
      work_.push_back(work);
      ratios_.push_back(ratio);
      std::cerr << kLevels[i] << " %: work " << work << ", measured "
                << ChangeText(ratio.ratio) << " (" << IntervalText(ratio)
                << ")\n";
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PullRequest> Judge(int level) {
    PullRequest request;
    request.level = level;
    const auto start = SteadyClock::now();
    TF_ASSIGN_OR_RETURN(ConfirmedTest test, ConfirmedTest::Create(gate_, 1));
    auto phase = test.phase();
    uint64_t coins = rng_.Next();
    int64_t index = 0;
    while (test.clusters_wanted() > 0) {
      if (Since(start) > options_.budget_seconds) {
        test.Finish();
        continue;
      }
      if (test.phase() != phase) {
        phase = test.phase();
        coins = rng_.Next();
        index = 0;
      }
      TF_ASSIGN_OR_RETURN(
          const double log,
          RunOne(work_[Index(level)], CandidateFirst(coins, index++)));
      TF_RETURN_IF_ERROR(test.Add(log));
      ++request.clusters;
    }
    request.seconds = Since(start);
    request.outcome = test.outcome();
    request.suspect = test.confirmation() != nullptr;
    return request;
  }

  // A process that times the artifact of a level alone, twice as often as a
  // cluster times it. Both of its files have the same code.
  absl::StatusOr<NaiveRun> RunNaively(int level) {
    ClusterRequest request = RequestOf(work_[Index(level)], true);
    request.baseline_work = request.candidate_work;
    TF_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, RunCluster(request));
    std::vector<double> seconds;
    double sum = 0;
    for (const Pair& pair : pairs) {
      for (const double s : {pair.baseline_seconds, pair.candidate_seconds}) {
        seconds.push_back(s);
        sum += s;
      }
    }
    const auto count = static_cast<double>(seconds.size());
    return NaiveRun{.mean = sum / count,
                    .median = MedianOf(std::move(seconds)).median};
  }

  Counts CountsOf(int level) const {
    Counts counts;
    std::vector<double> clusters, seconds;
    for (const PullRequest& request : requests_) {
      if (request.level != level) continue;
      ++counts.total;
      counts.alarms += request.outcome.confirmed ? 1 : 0;
      counts.suspects += request.suspect ? 1 : 0;
      counts.same += request.outcome.verdict == Verdict::kSame ? 1 : 0;
      counts.inconclusive +=
          request.outcome.verdict == Verdict::kInconclusive ? 1 : 0;
      counts.mean_alarms += request.mean_alarm ? 1 : 0;
      counts.median_alarms += request.median_alarm ? 1 : 0;
      counts.most_seconds = std::max(counts.most_seconds, request.seconds);
      clusters.push_back(request.clusters);
      seconds.push_back(request.seconds);
    }
    counts.clusters = MedianOf(std::move(clusters));
    counts.seconds = MedianOf(std::move(seconds));
    return counts;
  }

  static Json RateJson(int count, int total) {
    const RateInterval bounds = BinomialInterval(count, total);
    Json json;
    json["count"] = count;
    json["low"] = bounds.low;
    json["high"] = bounds.high;
    return json;
  }

  // "0 (0.0 - 0.9 %)"
  static std::string RateText(int count, int total) {
    const RateInterval bounds = BinomialInterval(count, total);
    return absl::StrFormat("%3d (%.1f - %.1f %%)", count, 100 * bounds.low,
                           100 * bounds.high);
  }

  static Json LineOf(const PullRequest& request) {
    Json json;
    json["percent"] = request.level;
    json["verdict"] = VerdictName(request.outcome.verdict);
    json["confirmed"] = request.outcome.confirmed;
    json["ratio"] = request.outcome.ratio.ratio;
    json["low"] = request.outcome.ratio.low;
    json["high"] = request.outcome.ratio.high;
    json["suspect"] = request.suspect;
    json["clusters"] = request.clusters;
    json["seconds"] = request.seconds;
    json["one_run_mean_alarm"] = request.mean_alarm;
    json["one_run_median_alarm"] = request.median_alarm;
    return json;
  }

  const Options options_;
  const GateOptions gate_;
  const Artifacts artifacts_;
  Rng rng_;
  ClusterPlan plan_;
  double call_seconds_ = 0;
  std::vector<int64_t> work_;          // as kLevels
  std::vector<RatioInterval> ratios_;  // measured at calibration
  std::vector<PullRequest> requests_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("How often the regression gate is wrong");
  app.add_option("--unchanged", options.unchanged,
                 "Pull requests without a change");
  app.add_option("--changed", options.changed,
                 "Pull requests of each other level");
  app.add_option("--seed", options.seed, "Of orders, coins and load");
  app.add_option("--core", options.core, "To which processes are pinned");
  app.add_option("--budget", options.budget_seconds,
                 "Most seconds of a pull request");
  app.add_option("--log", options.log, "A line of JSON for each pull request");
  app.add_flag("!--no-load", options.load, "Without the other process");
  app.add_flag("--json", options.json, "One document instead of a table");
  CLI11_PARSE(app, argc, argv);
  Study study(options);
  if (const absl::Status status = study.Run(); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  if (options.json) {
    std::cout << study.Report().dump(2) << "\n";
  } else {
    study.Print();
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm::regression

int main(int argc, char** argv) {
  if (argc > 1 &&
      std::string(argv[1]) == tilefarm::regression::kClusterArgument) {
    return tilefarm::regression::ClusterMain(argc, argv);
  }
  return tilefarm::regression::Main(argc, argv);
}
