// bisect: the commit that made a benchmark slower.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/cli/exit_codes.h"
#include "server/cli/regress_benchmark.h"
#include "server/cli/regress_run.h"
#include "server/cli/run_program.h"
#include "server/regression/bisect.h"
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
constexpr int kMostAtOnce = 8;

absl::StatusOr<std::string> Git(const std::string& repository,
                                std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "-C", repository});
  TF_ASSIGN_OR_RETURN(
      std::string output,
      RunProgram({.argv = std::move(arguments), .limit = absl::Minutes(10)}));
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

// The commits from the good one to the bad one, oldest first.
absl::StatusOr<std::vector<std::string>> CommitsOf(
    const RegressOptions& options) {
  TF_ASSIGN_OR_RETURN(
      const std::string good,
      Git(options.repository,
          {"rev-parse", "--verify", absl::StrCat(options.good, "^{commit}")}));
  TF_ASSIGN_OR_RETURN(
      const std::string list,
      Git(options.repository, {"rev-list", "--reverse", "--first-parent",
                               absl::StrCat(good, "..", options.bad)}));
  std::vector<std::string> commits = {good};
  for (const std::string& commit : std::vector<std::string>(
           absl::StrSplit(list, '\n', absl::SkipEmpty()))) {
    commits.push_back(commit);
  }
  if (commits.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no commit leads from ", options.good, " to ", options.bad));
  }
  return commits;
}

// Folders of commits, removed at the end.
class Worktrees {
 public:
  explicit Worktrees(std::string repository)
      : repository_(std::move(repository)) {
    std::string folder =
        (fs::temp_directory_path() / "tilefarm-bisect-XXXXXX").string();
    if (mkdtemp(folder.data()) != nullptr) folder_ = folder;
  }
  ~Worktrees() {
    std::error_code error;
    if (folder_.empty()) return;
    fs::remove_all(folder_, error);
    Git(repository_, {"worktree", "prune"}).status().IgnoreError();
  }
  absl::StatusOr<std::string> Make(const std::string& commit) const {
    if (folder_.empty()) {
      return absl::UnavailableError("no temporary folder can be made");
    }
    const std::string path = folder_ + "/" + commit;
    TF_RETURN_IF_ERROR(
        Git(repository_, {"worktree", "add", "--detach", path, commit})
            .status());
    return path;
  }

 private:
  const std::string repository_;
  std::string folder_;
};

// A program's artifacts at commits, compared on the farm.
class Bisector {
 public:
  Bisector(const Common& common, const RegressOptions& options)
      : common_(common),
        options_(options),
        client_(common.server, Say),
        worktrees_(options.repository) {}

  absl::Status Run(nlohmann::ordered_json& answer) {
    TF_ASSIGN_OR_RETURN(commits_, CommitsOf(options_));
    double threshold = 0.03;
    if (!options_.threshold.empty()) {
      TF_ASSIGN_OR_RETURN(threshold,
                          regression::ParseThreshold(options_.threshold));
    }
    TF_ASSIGN_OR_RETURN(Bisection bisection,
                        Bisection::Create(static_cast<int>(commits_.size())));
    // The first question tells how large the change is.
    double bound = 1 + threshold;
    bool first = true;
    BisectStep step = bisection.Next();
    for (; step.kind == BisectStep::Kind::kMeasure; step = bisection.Next()) {
      TF_ASSIGN_OR_RETURN(const BisectAnswer given, Ask(step, bound));
      if (first && given == BisectAnswer::kBad) {
        change_ = last_ratio_;
        bound = std::sqrt(std::max(last_ratio_, bound));
      }
      first = false;
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
  absl::StatusOr<BuiltArtifact> Build(const std::string& commit) {
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
    const std::string tunec =
        options_.tunec.empty() || fs::path(options_.tunec).is_absolute()
            ? options_.tunec
            : folder + "/" + options_.tunec;
    const ArtifactBuilder builder(common_.server, tunec);
    for (const SuiteBenchmark& benchmark : suite.benchmarks) {
      if (benchmark.name != options_.benchmark) continue;
      if (benchmark.kind == SuiteBenchmark::Kind::kCommand) {
        return absl::UnimplementedError(
            "commands cannot be bisected by the farm");
      }
      requirements_ = benchmark.require;
      return builder.Build(benchmark);
    }
    return absl::NotFoundError(
        absl::StrCat("its suite has no benchmark ", options_.benchmark));
  }

  const absl::StatusOr<BuiltArtifact>& Artifact(int index) {
    const auto found = artifacts_.find(index);
    if (found != artifacts_.end()) return found->second;
    absl::StatusOr<BuiltArtifact> built = Build(Commit(index));
    if (built.ok()) {
      const absl::Status put = client_.PutArtifact(
          built->bytes, built->sha256, built->target, built->symbols);
      if (!put.ok()) built = put;
      if (built.ok()) built->bytes.clear();
    }
    if (!built.ok()) {
      Say(absl::StrCat(Commit(index).substr(0, 12),
                       " is skipped: ", std::string(built.status().message())));
    }
    return artifacts_.emplace(index, std::move(built)).first->second;
  }

  absl::StatusOr<BisectAnswer> Ask(const BisectStep& step, double bound) {
    const absl::StatusOr<BuiltArtifact>& reference = Artifact(step.reference);
    if (!reference.ok()) {
      if (step.reference == 0) return reference.status();
      return BisectAnswer::kSkip;
    }
    const absl::StatusOr<BuiltArtifact>& candidate = Artifact(step.commit);
    if (!candidate.ok()) return BisectAnswer::kSkip;
    last_ratio_ = 1;
    if (candidate->sha256 == reference->sha256) return BisectAnswer::kGood;
    if (candidate->workload != reference->workload) return BisectAnswer::kSkip;
    ComparedPair pair = {
        .program = candidate->program,
        .target = candidate->target,
        .baseline = {reference->sha256, reference->symbol, reference->spread},
        .candidate = {candidate->sha256, candidate->symbol, candidate->spread},
        .requirements = requirements_};
    FarmClusters clusters(client_, std::move(pair), FreshSeed());
    TF_RETURN_IF_ERROR(clusters.ChooseDevice(device_class_));
    device_class_ = clusters.device_class();
    TF_ASSIGN_OR_RETURN(SideTest test, SideTest::Create({.bound = bound}));
    while (!test.settled()) {
      const auto ratios =
          clusters.Measure(std::min(test.clusters_to_next_look(), kMostAtOnce));
      // An artifact that fails is the commit's fault.
      if (absl::IsAborted(ratios.status())) {
        Say(absl::StrCat(Commit(step.commit).substr(0, 12), " is skipped: ",
                         std::string(ratios.status().message())));
        return BisectAnswer::kSkip;
      }
      TF_RETURN_IF_ERROR(ratios.status());
      for (const double ratio : *ratios) TF_RETURN_IF_ERROR(test.Add(ratio));
    }
    last_ratio_ = test.interval().ratio;
    Say(absl::StrCat(Commit(step.commit).substr(0, 12), " against ",
                     Commit(step.reference).substr(0, 12), ": ",
                     regression::ChangeText(last_ratio_)));
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
    answer["ratio"] = change_;
    answer["commits"] = commits_.size();
    answer["builds"] = bisection.builds();
    answer["questions"] = bisection.questions();
  }

  const Common& common_;
  const RegressOptions& options_;
  RegressClient client_;
  const Worktrees worktrees_;
  std::vector<std::string> commits_;
  std::map<int, absl::StatusOr<BuiltArtifact>> artifacts_;  // by commit
  std::vector<std::string> requirements_;
  std::string device_class_;
  double last_ratio_ = 1;
  double change_ = 1;  // of the bad commit against the good one
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
