#include "server/cli/regress_flags.h"

#include <string>

#include "server/cli/exit_codes.h"
#include "server/cli/input.h"
#include "server/regression/suite.h"

namespace tilefarm::cli {
namespace {

std::string CheckThreshold(const std::string& text) {
  return std::string(regression::ParseThreshold(text).status().message());
}

std::string CheckTime(const std::string& text) {
  return std::string(ParseSeconds(text).status().message());
}

void AddSuite(CLI::App& command, RegressOptions& options) {
  command.add_option("--suite", options.suite, "The suite: a TOML file")
      ->required();
  command
      .add_option("--commit", options.commit, "What is measured: its commit")
      ->envname("TUNE_COMMIT")
      ->required();
  command.add_option("--series", options.series,
                     "The history's name; otherwise the suite's");
  command
      .add_option("--only", options.only,
                  "This benchmark of the suite; several times")
      ->allow_extra_args(false);
  command.add_option("--tunec", options.tunec,
                     "Compile with this tunec, not with this program");
  command.add_option("--baseline-tunec", options.baseline_tunec,
                     "The baseline's tunec: tells whether code generator or "
                     "schedule made a change");
  command.add_option("--dir", options.directory,
                     "The candidate's build folder: {dir} of the suite's "
                     "commands");
  command.add_option("--baseline-dir", options.baseline_directory,
                     "The baseline's build folder: its commands run "
                     "alternately with the candidate's");
  command.add_flag("--no-attribution", options.no_attribution,
                   "Do not look for the causes of changes");
}

void AddJudgement(CLI::App& command, RegressOptions& options) {
  command
      .add_option("--threshold", options.threshold,
                  "Changes up to this count as none: 3%; otherwise the suite's")
      ->check(CheckThreshold);
  command
      .add_option("--most-clusters", options.most_clusters,
                  "Processes that a benchmark is measured in, at most")
      ->check(CLI::Range(8, 1000))
      ->capture_default_str();
  command
      .add_option("--budget", options.budget,
                  "Device time of a benchmark: 10s; otherwise the suite's")
      ->check(CheckTime);
}

void AddReports(CLI::App& command, RegressOptions& options) {
  ReportFiles& files = options.reports;
  command.add_option("--markdown", files.markdown,
                     "Write the report for a pull request; - is stdout");
  command.add_option("--junit", files.junit, "Write it as JUnit XML");
  command.add_option("--gbench", files.gbench,
                     "Write the candidate's times as Google Benchmark's JSON");
  command.add_option("--gbench-baseline", files.gbench_baseline,
                     "The same of the baseline, for tools/compare.py");
  command.add_option("--smaller-is-better", files.smaller_is_better,
                     "Write it as customSmallerIsBetter JSON");
  command.add_option("--csv", files.csv, "Write it as CSV");
  command.add_option("--link", files.link, "An address that the report names");
  auto* url = command.add_option("--webhook", options.webhook.url,
                                 "Post a notification to this URL unless the "
                                 "gate passes");
  command
      .add_option("--webhook-secret", options.webhook.secret_file,
                  "File with the secret that signs it, mode 0600")
      ->needs(url);
  command
      .add_option("--webhook-format", options.webhook.format,
                  "slack, or report: also the whole report")
      ->check(CLI::IsMember({"slack", "report"}))
      ->capture_default_str();
  command
      .add_flag("--webhook-always", options.webhook.always,
                "Also where the gate passes")
      ->needs(url);
}

void AddFilters(CLI::App& command, RegressOptions& options) {
  command.add_option("--series", options.series, "Of this series");
  command.add_option("--benchmark", options.benchmark, "Of this benchmark");
  command.add_option("--class", options.device_class, "Of this device class");
  command.add_option("--branch", options.branch, "Of this branch");
}

}  // namespace

CLI::App* RegressCommands::Add(CLI::App& regress, const char* name,
                               const char* what, Command run) {
  CLI::App* command = regress.add_subcommand(name, what);
  commands_.emplace_back(command, run);
  return command;
}

RegressCommands::RegressCommands(CLI::App& regress, RegressOptions& options) {
  regress.require_subcommand(1);
  regress.fallthrough();
  auto* run = Add(regress, "run",
                  "Measure a suite at a commit, against the branch's baseline, "
                  "and add it to the history",
                  RegressRun);
  AddSuite(*run, options);
  AddJudgement(*run, options);
  AddReports(*run, options);
  run->add_option("--branch", options.branch,
                  "The branch of the commit (default: main)");
  run->add_option("--baseline", options.baseline,
                  "Compare with this branch; otherwise the commit's own");

  auto* gate = Add(regress, "gate",
                   "Measure a suite at a commit against another branch; exits "
                   "with 1 for a regression and 4 without a verdict",
                   RegressGate);
  AddSuite(*gate, options);
  AddJudgement(*gate, options);
  AddReports(*gate, options);
  gate->add_option("--baseline", options.baseline, "The branch")->required();
  gate->add_option("--branch", options.branch,
                   "Add the points to this branch's history");

  auto* compare =
      Add(regress, "compare", "Compare two measured commits", RegressCompare);
  compare->add_option("a", options.commit, "The baseline's commit")->required();
  compare->add_option("b", options.other_commit, "The candidate's commit")
      ->required();
  compare->add_option("--series", options.series, "Of this series");
  compare->add_option("--only", options.only, "This benchmark; several times")
      ->allow_extra_args(false);
  AddJudgement(*compare, options);
  AddReports(*compare, options);

  auto* history =
      Add(regress, "history", "Show measured commits and changes of level",
          RegressHistory);
  AddFilters(*history, options);
  history
      ->add_option("--limit", options.limit,
                   "The latest so many of each benchmark (default: 50)")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000}));
  history->add_option("--threshold", options.threshold, "As in gate")
      ->check(CheckThreshold);

  auto* ack = Add(regress, "ack",
                  "Say that a benchmark's time is expected from a commit on: "
                  "it becomes the baseline",
                  RegressAck);
  ack->add_option("benchmark", options.benchmark, "Its name")->required();
  ack->add_option("commit", options.commit, "The commit")->required();
  ack->add_option("--series", options.series, "The history's name")->required();
  ack->add_option("--branch", options.branch, "The branch (default: main)");
  ack->add_option("--class", options.device_class,
                  "On this device class alone");
  ack->add_option("--reason", options.reason, "Why")->required();

  auto* bisect = Add(regress, "bisect",
                     "Find the commit that made a benchmark slower: builds "
                     "commits in folders of their own",
                     RegressBisect);
  bisect->add_option("good", options.good, "A commit that is fast")->required();
  bisect->add_option("bad", options.bad, "A later one that is slow")
      ->required();
  bisect
      ->add_option("build", options.build_command,
                   "-- COMMAND that builds a commit, where it is checked out")
      ->required();
  bisect->add_option("--suite", options.suite, "The suite")->required();
  bisect->add_option("--benchmark", options.benchmark, "Of the suite")
      ->required();
  bisect->add_option("--repository", options.repository, "The git repository")
      ->capture_default_str();
  bisect->add_option("--tunec", options.tunec,
                     "The commit's tunec, as built: a path in its folder");
  bisect->add_option("--dir", options.directory,
                     "The commit's build folder, in its folder: {dir} of the "
                     "suite's commands (default: its folder)");
  bisect
      ->add_option("--threshold", options.threshold,
                   "Smaller changes are not looked for")
      ->check(CheckThreshold);
}

int RegressCommands::Run(const Common& common,
                         const RegressOptions& options) const {
  for (const auto& [command, run] : commands_) {
    if (*command) return run(common, options);
  }
  return kBadUsage;
}

}  // namespace tilefarm::cli
