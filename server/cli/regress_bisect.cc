// bisect: the commit that made a benchmark slower.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/cli/exit_codes.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_command_run.h"
#include "server/cli/regress_commits.h"
#include "server/cli/regress_run.h"
#include "server/cli/run_program.h"
#include "server/regression/bisect.h"
#include "server/regression/paired_ratio.h"
#include "server/regression/ratio_text.h"

namespace tilefarm::cli {
namespace {

namespace fs = std::filesystem;
using regression::BisectAnswer;
using regression::Bisection;
using regression::BisectStep;
using regression::SideTest;
using regression::SuiteBenchmark;

constexpr absl::Duration kBuildLimit = absl::Hours(4);
constexpr int kMostOfMeasure = 8;

// A commit as built: a program's artifact, or the folder of a command.
struct BuiltCommit {
  SuiteBenchmark benchmark;
  BuiltArtifact artifact;
  std::string folder;     // of the suite, where commands run
  std::string directory;  // what {dir} stands for
};

// Commits are compared on the farm or, if they are commands, on this machine.
class Bisector {
 public:
  Bisector(const Common& common, const RegressOptions& options)
      : common_(common),
        options_(options),
        client_(common.server, Say),
        worktrees_(options.repository) {}

  absl::Status Run(nlohmann::ordered_json& answer) {
    TF_ASSIGN_OR_RETURN(commits_, CommitsBetween(options_.repository,
                                                 options_.good, options_.bad));
    if (!options_.threshold.empty()) {
      TF_ASSIGN_OR_RETURN(threshold_,
                          regression::ParseThreshold(options_.threshold));
    }
    TF_ASSIGN_OR_RETURN(Bisection bisection,
                        Bisection::Create(static_cast<int>(commits_.size())));
    BisectStep step = bisection.Next();
    for (; step.kind == BisectStep::Kind::kMeasure; step = bisection.Next()) {
      TF_ASSIGN_OR_RETURN(const BisectAnswer given, Ask(step));
      TF_RETURN_IF_ERROR(bisection.Report(given));
    }
    Describe(bisection, step, answer);
    return absl::OkStatus();
  }

 private:
  const std::string& Commit(int index) const {
    return commits_[static_cast<size_t>(index)];
  }

  // Builds the commit. An error is one of the commit, which is skipped.
  absl::StatusOr<BuiltCommit> Build(const std::string& commit) {
    Say(absl::StrCat("builds ", commit.substr(0, 12)));
    TF_ASSIGN_OR_RETURN(const std::string folder, worktrees_.Make(commit));
    TF_RETURN_IF_ERROR(
        RunProgram({.argv = options_.build_command,
                    .folder = folder,
                    .environment = {absl::StrCat("TUNE_COMMIT=", commit)},
                    .limit = kBuildLimit,
                    .takes_output = false})
            .status());
    // The suite of the commit itself, where it has one.
    std::error_code error;
    const fs::path relative =
        fs::relative(options_.suite, options_.repository, error);
    const std::string own = folder + "/" + relative.string();
    TF_ASSIGN_OR_RETURN(const regression::Suite suite,
                        regression::ReadSuite(
                            !error && fs::exists(own) ? own : options_.suite));
    for (const SuiteBenchmark& benchmark : suite.benchmarks) {
      if (!IsWanted(benchmark)) continue;
      BuiltCommit built = {.benchmark = benchmark,
                           .artifact = {},
                           .folder = suite.folder,
                           .directory = InFolder(folder, options_.directory)};
      if (benchmark.kind == SuiteBenchmark::Kind::kCommand) return built;
      const ArtifactBuilder builder(
          common_.server,
          options_.tunec.empty() ? "" : InFolder(folder, options_.tunec));
      TF_ASSIGN_OR_RETURN(built.artifact, builder.Build(benchmark));
      TF_RETURN_IF_ERROR(
          client_.PutArtifact(built.artifact.bytes, built.artifact.sha256,
                              built.artifact.target, built.artifact.symbols));
      built.artifact.bytes.clear();
      return built;
    }
    return absl::NotFoundError(
        absl::StrCat("its suite has no benchmark ", options_.benchmark));
  }

  static std::string InFolder(const std::string& folder,
                              const std::string& path) {
    return (fs::path(folder) / path).lexically_normal().string();
  }

  // A command's benchmarks are NAME/BENCHMARK.
  bool IsWanted(const SuiteBenchmark& benchmark) const {
    return benchmark.kind == SuiteBenchmark::Kind::kCommand
               ? options_.benchmark.starts_with(benchmark.name + "/")
               : options_.benchmark == benchmark.name;
  }

  const absl::StatusOr<BuiltCommit>& Built(int index) {
    const auto found = built_.find(index);
    if (found != built_.end()) return found->second;
    absl::StatusOr<BuiltCommit> built = Build(Commit(index));
    if (!built.ok()) SayIsSkipped(index, built.status());
    return built_.emplace(index, std::move(built)).first->second;
  }

  void SayIsSkipped(int index, const absl::Status& why) const {
    Say(absl::StrCat(Commit(index).substr(0, 12),
                     " is skipped: ", std::string(why.message())));
  }

  // Log ratios of so many clusters.
  using Measure = std::function<absl::StatusOr<std::vector<double>>(int count)>;

  absl::StatusOr<Measure> OnFarm(const BuiltCommit& reference,
                                 const BuiltCommit& candidate) {
    const auto side = [](const BuiltArtifact& artifact) {
      return ComparedPair::Side{.sha256 = artifact.sha256,
                                .symbol = artifact.symbol,
                                .spread = artifact.spread};
    };
    auto clusters = std::make_shared<FarmClusters>(
        client_,
        ComparedPair{.program = candidate.artifact.program,
                     .target = candidate.artifact.target,
                     .baseline = side(reference.artifact),
                     .candidate = side(candidate.artifact),
                     .requirements = candidate.benchmark.require},
        FreshSeed());
    if (device_class_.empty()) {
      TF_ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                          clusters->DeviceClasses());
      device_class_ = classes.front();
    }
    TF_RETURN_IF_ERROR(clusters->ChooseDevice(device_class_));
    return [clusters](int count) { return clusters->Measure(count); };
  }

  // A run of each side is a cluster.
  Measure Here(const BuiltCommit& reference, const BuiltCommit& candidate) {
    const auto seconds =
        [this](const BuiltCommit& side) -> absl::StatusOr<double> {
      TF_ASSIGN_OR_RETURN(
          const CommandSamples samples,
          RunBenchmarks(side.benchmark, side.folder, side.directory));
      const auto found = samples.find(
          options_.benchmark.substr(side.benchmark.name.size() + 1));
      if (found != samples.end()) return MedianOf(found->second).median;
      return absl::NotFoundError(
          absl::StrCat("its command has no benchmark ", options_.benchmark));
    };
    return [=, seed = FreshSeed(), next = int64_t{0}](
               int count) mutable -> absl::StatusOr<std::vector<double>> {
      std::vector<double> ratios;
      while (static_cast<int>(ratios.size()) < count) {
        regression::Pair pair;
        const bool candidate_first = regression::CandidateFirst(seed, next++);
        for (const bool is_candidate : {candidate_first, !candidate_first}) {
          TF_ASSIGN_OR_RETURN(
              (is_candidate ? pair.candidate_seconds : pair.baseline_seconds),
              seconds(is_candidate ? candidate : reference));
        }
        TF_ASSIGN_OR_RETURN(const double ratio,
                            regression::ClusterLogRatio({&pair, 1}));
        ratios.push_back(ratio);
      }
      return ratios;
    };
  }

  // The ratio of a slow commit to a fast one, by all comparisons of such; 1
  // before the first.
  double Change() const {
    return slower_.empty() ? 1 : std::exp(MedianOf(slower_).median);
  }

  // Between slow and fast commits: in the middle of the change, or of the
  // smallest one that counts.
  double Bound() const { return std::sqrt(std::max(1 + threshold_, Change())); }

  absl::StatusOr<BisectAnswer> Ask(const BisectStep& step) {
    const absl::StatusOr<BuiltCommit>& reference = Built(step.reference);
    if (!reference.ok()) {
      if (step.reference == 0) return reference.status();
      return BisectAnswer::kSkip;
    }
    const absl::StatusOr<BuiltCommit>& candidate = Built(step.commit);
    if (!candidate.ok()) return BisectAnswer::kSkip;
    const bool is_command =
        candidate->benchmark.kind == SuiteBenchmark::Kind::kCommand;
    if (candidate->artifact.workload != reference->artifact.workload) {
      SayIsSkipped(step.commit,
                   absl::InvalidArgumentError("it computes something else"));
      return BisectAnswer::kSkip;
    }
    if (!is_command &&
        candidate->artifact.sha256 == reference->artifact.sha256) {
      return BisectAnswer::kGood;
    }
    Measure measure;
    if (is_command) {
      measure = Here(*reference, *candidate);
    } else {
      TF_ASSIGN_OR_RETURN(measure, OnFarm(*reference, *candidate));
    }
    TF_ASSIGN_OR_RETURN(SideTest test, SideTest::Create({.bound = Bound()}));
    std::vector<double> log_ratios;
    while (!test.settled()) {
      const auto ratios =
          measure(std::min(test.clusters_to_next_look(), kMostOfMeasure));
      // An artifact or a command that fails is the commit's fault.
      if (absl::IsAborted(ratios.status()) || (is_command && !ratios.ok())) {
        SayIsSkipped(step.commit, ratios.status());
        return BisectAnswer::kSkip;
      }
      TF_RETURN_IF_ERROR(ratios.status());
      for (const double ratio : *ratios) TF_RETURN_IF_ERROR(test.Add(ratio));
      log_ratios.insert(log_ratios.end(), ratios->begin(), ratios->end());
    }
    // There is one change: whatever is slower at all has all of it, also if
    // this answer stays unclear because the earlier ones made it too large.
    if (test.interval().low > 1) {
      slower_.insert(slower_.end(), log_ratios.begin(), log_ratios.end());
    }
    Say(absl::StrCat(Commit(step.commit).substr(0, 12), " against ",
                     Commit(step.reference).substr(0, 12), ": ",
                     regression::ChangeText(test.interval().ratio)));
    switch (test.side()) {
      case regression::Side::kAbove:
        return BisectAnswer::kBad;
      case regression::Side::kBelow:
        return BisectAnswer::kGood;
      case regression::Side::kUnclear:
        break;
    }
    return BisectAnswer::kUnclear;
  }

  void Describe(const Bisection& bisection, const BisectStep& step,
                nlohmann::ordered_json& answer) const {
    const char* result = "undecided";
    if (step.kind == BisectStep::Kind::kFound) result = "found";
    if (step.kind == BisectStep::Kind::kRange) result = "range";
    if (step.kind == BisectStep::Kind::kNoChange) result = "no_change";
    answer = {{"result", result}, {"benchmark", options_.benchmark}};
    if (step.kind == BisectStep::Kind::kFound) {
      answer["commit"] = Commit(step.commit);
      answer["after_commit"] = Commit(step.commit - 1);
    } else if (step.kind != BisectStep::Kind::kNoChange) {
      answer["first_commit"] = Commit(step.first);
      answer["last_commit"] = Commit(step.last);
    }
    answer["probability"] = step.probability;
    answer["ratio"] = Change();
    answer["commits"] = commits_.size();
    answer["builds"] = bisection.builds();
    answer["questions"] = bisection.questions();
  }

  const Common& common_;
  const RegressOptions& options_;
  RegressClient client_;
  const Worktrees worktrees_;
  std::vector<std::string> commits_;
  std::map<int, absl::StatusOr<BuiltCommit>> built_;  // by commit
  std::string device_class_;
  double threshold_ = 0.03;
  std::vector<double> slower_;  // log ratios of slow commits to fast ones
};

std::string Text(const nlohmann::ordered_json& answer) {
  const std::string result = answer["result"];
  const std::string effort =
      absl::StrCat("(", answer["builds"].get<int>(), " builds, ",
                   answer["questions"].get<int>(), " comparisons)\n");
  if (result == "found") {
    return absl::StrCat(answer["commit"].get<std::string>(), " made ",
                        answer["benchmark"].get<std::string>(), " ",
                        regression::ChangeText(answer["ratio"].get<double>()),
                        " ", effort);
  }
  if (result == "no_change") {
    return absl::StrCat("the bad commit is not slower than the good one ",
                        effort);
  }
  return absl::StrCat(result == "range"
                          ? "one of these commits, which do not all build: "
                          : "undecided; most likely one of ",
                      answer["first_commit"].get<std::string>(), " to ",
                      answer["last_commit"].get<std::string>(), " ", effort);
}

}  // namespace

int RegressBisect(const Common& common, const RegressOptions& options) {
  nlohmann::ordered_json answer;
  const absl::Status status = Bisector(common, options).Run(answer);
  if (!status.ok()) {
    Say(std::string(status.message()));
    return absl::IsInvalidArgument(status) ? kBadUsage
                                           : regression::kGateNoVerdict;
  }
  std::printf("%s", common.json ? absl::StrCat(answer.dump(), "\n").c_str()
                                : Text(answer).c_str());
  const std::string result = answer["result"];
  if (result == "no_change") return kNothingFound;
  return result == "undecided" ? regression::kGateNoVerdict : kSuccess;
}

}  // namespace tilefarm::cli
