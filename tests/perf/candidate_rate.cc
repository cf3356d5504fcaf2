// Measures the rate at which the search evaluates candidates, on one thread:
//
//   candidate_rate [--json] [--choices] [--target T] [--seconds S]
//                  [PROGRAM.py ...]
//
// For each program: candidates per second that are sampled or mutated,
// scheduled, featurised and scored; the share of each step and of candidates
// that had to be replayed (made into programs); the rate if all are replayed;
// the time to make the design space, and to choose 64 proposals out of 8,000
// candidates. With --choices,
// only the last one. "chosen" is a hash of all proposals in their order: two
// builds with equal hashes made the same choices. Without arguments: the
// examples and the programs next to this file. Only reports.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"
#include "cost_model/cost_model.h"
#include "cost_model/features.h"
#include "cost_model/skeleton/evaluator.h"
#include "server/search/search.h"
#include "tests/search/fake_seconds.h"

namespace tilefarm {
namespace {

// The model is trained on so many candidates, or on what the seconds allow.
constexpr int kTrained = 512;
constexpr int kBatch = 256;  // candidates scored together
constexpr int kChosen = 64;
// Until the search evaluates 125 candidates for each one that it proposes.
constexpr int kRounds = 8;

struct Options {
  std::string target = "x86-64:x86-64-v4,cores=1";
  double seconds = 2;
  std::vector<std::string> programs;
  bool json = false;
  bool choices = false;  // only the choices
};

// CPU time of this thread, so that other load does not count.
double Now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Rates {
  int64_t candidates = 0;  // scored
  int64_t illegal = 0;
  double draw = 0, evaluate = 0, score = 0;  // seconds
  skeleton::EvaluatorStats stats;
  double total() const { return draw + evaluate + score; }
};

struct Choice {
  double seconds = 0;        // of the last Propose, CPU time
  double total_seconds = 0;  // of all rounds, including trainings
  std::string chosen;        // Sha256Hex of the candidates' ids
};

class Bench {
 public:
  Bench(ir::PrimFuncPtr program, const target::Target& target)
      : program_(std::move(program)), target_(target) {}

  absl::Status MakeSpace() {
    TF_ASSIGN_OR_RETURN(space_, space::DesignSpace::Create(program_, target_));
    return absl::OkStatus();
  }

  absl::Status TrainModel(double seconds) {
    model_ = cost_model::MakeXgboostModel(1);
    std::vector<cost_model::Sample> samples;
    const double end = Now() + seconds;
    while (samples.empty() || (samples.size() < kTrained && Now() < end)) {
      TF_ASSIGN_OR_RETURN(space::Candidate candidate, space_->Sample(rng_));
      auto features = Replay(candidate);
      if (!features) continue;
      cost_model::Sample sample;
      sample.features = *std::move(features);
      sample.seconds = search::FakeSeconds(candidate);
      samples.push_back(std::move(sample));
    }
    return model_->Update(samples).status();
  }

  // Half of the candidates are new, half are neighbours of earlier ones.
  absl::StatusOr<Rates> Measure(double seconds, bool skeletons) {
    Rates rates;
    skeleton::CandidateEvaluator evaluator(space_, target_);
    std::vector<space::Candidate> parents;
    std::vector<cost_model::FeatureRows> rows;
    while (rates.total() < seconds) {
      std::vector<space::Candidate> batch;
      double start = Now();
      while (batch.size() < kBatch) {
        if (parents.size() < kBatch || rng_.Chance(0.5)) {
          TF_ASSIGN_OR_RETURN(space::Candidate next, space_->Sample(rng_));
          if (parents.size() < kBatch) parents.push_back(next);
          batch.push_back(std::move(next));
        } else {
          auto child = space_->Mutate(parents[rng_.Below(kBatch)], rng_);
          if (child.ok()) batch.push_back(*std::move(child));
        }
      }
      double end = Now();
      rates.draw += end - start;
      rows.clear();
      for (const space::Candidate& candidate : batch) {
        auto features =
            skeletons ? evaluator.Evaluate(candidate) : Replay(candidate);
        if (features) {
          rows.push_back(*std::move(features));
        } else {
          ++rates.illegal;
        }
      }
      start = Now();
      rates.evaluate += start - end;
      std::vector<const cost_model::FeatureRows*> pointers;
      for (const cost_model::FeatureRows& row : rows) pointers.push_back(&row);
      const std::vector<float> scores = model_->Predict(pointers);
      rates.score += Now() - start;
      rates.candidates += static_cast<int64_t>(scores.size());
    }
    rates.stats = evaluator.stats();
    return rates;
  }

  // Propose(64) in a search that has run for a while.
  absl::StatusOr<Choice> MeasureChoice() {
    search::SearchOptions options;
    options.seed = 3;
    TF_ASSIGN_OR_RETURN(
        std::unique_ptr<search::Search> search,
        search::Search::Create(space_, target_, "task",
                               cost_model::MakeXgboostModel(1), options, {}));
    Choice choice;
    std::string ids;
    for (int round = 0; round < kRounds; ++round) {
      const double start = Now();
      TF_ASSIGN_OR_RETURN(std::vector<search::Proposal> proposals,
                          search->Propose(kChosen));
      choice.seconds = Now() - start;
      std::vector<search::Outcome> outcomes;
      for (const search::Proposal& proposal : proposals) {
        absl::StrAppend(&ids, proposal.candidate_id, "\n");
        outcomes.push_back({proposal.candidate_id, database::Status::kOk,
                            search::FakeSeconds(proposal.candidate)});
      }
      const double chosen = Now();
      TF_RETURN_IF_ERROR(search->Report(outcomes));
      choice.total_seconds += choice.seconds + (Now() - chosen);
    }
    choice.chosen = Sha256Hex(ids);
    return choice;
  }

 private:
  std::optional<cost_model::FeatureRows> Replay(
      const space::Candidate& candidate) const {
    auto schedule = space_->Apply(candidate);
    if (!schedule.ok()) return std::nullopt;
    return cost_model::ExtractFeatures(*schedule->module().Find(program_->name),
                                       target_);
  }

  const ir::PrimFuncPtr program_;
  const target::Target target_;
  Rng rng_{7};
  std::shared_ptr<const space::DesignSpace> space_;
  std::unique_ptr<cost_model::CostModel> model_;
};

absl::StatusOr<nlohmann::json> MeasureProgram(const std::string& path,
                                              const Options& options) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::ostringstream text;
  text << in.rdbuf();
  TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                      ir::ParseModule(text.str(), path));
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.target));
  Bench bench(module.functions.front(), target);
  const double begin = Now();
  TF_RETURN_IF_ERROR(bench.MakeSpace());
  const double space_seconds = Now() - begin;
  TF_ASSIGN_OR_RETURN(const Choice choice, bench.MeasureChoice());
  nlohmann::json result{{"program", path.substr(path.rfind('/') + 1)},
                        {"target", target.Key()},
                        {"space_seconds", space_seconds},
                        {"choose_64_seconds", choice.seconds},
                        {"choose_8_times_64_seconds", choice.total_seconds},
                        {"chosen", choice.chosen}};
  if (options.choices) return result;
  TF_RETURN_IF_ERROR(bench.TrainModel(options.seconds));
  TF_ASSIGN_OR_RETURN(const Rates rates, bench.Measure(options.seconds, true));
  TF_ASSIGN_OR_RETURN(const Rates replayed,
                      bench.Measure(options.seconds / 4, false));
  const double each = 1e6 / static_cast<double>(rates.candidates);
  result.update(nlohmann::json{
      {"candidates_per_second",
       static_cast<double>(rates.candidates) / rates.total()},
      {"replayed_per_second",
       static_cast<double>(replayed.candidates) / replayed.total()},
      {"candidates", rates.candidates},
      {"illegal", rates.illegal},
      {"by_skeleton", rates.stats.by_skeleton},
      {"by_replay", rates.stats.by_replay},
      {"reasons", rates.stats.reasons},
      {"skeletons", rates.stats.skeletons},
      {"mismatches", rates.stats.mismatches},
      {"microseconds",
       {{"draw", rates.draw * each},
        {"evaluate", rates.evaluate * each},
        {"score", rates.score * each}}}});
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app("candidates looked at a second");
  Options options;
  const std::string root = TILEFARM_SOURCE_DIR;
  app.add_flag("--json", options.json, "one JSON object a line");
  app.add_flag("--choices", options.choices, "only choose 64 of 8,000");
  app.add_option("--target", options.target, "what to tune for");
  app.add_option("--seconds", options.seconds, "CPU time a program");
  app.add_option("programs", options.programs, "TVMScript files");
  CLI11_PARSE(app, argc, argv);
  if (options.programs.empty()) {
    options.programs = {root + "/examples/mm_relu.py",
                        root + "/examples/conv2d_3x3.py"};
    for (const char* name :
         {"mm_relu_1024", "conv2d_3x3_bias_relu", "int8_gemm_1024",
          "row_sums_4096", "norm_256", "softmax_4608x8192"}) {
      options.programs.push_back(
          absl::StrCat(root, "/tests/perf/programs/", name, ".py"));
    }
  }
  for (const std::string& path : options.programs) {
    auto result = MeasureProgram(path, options);
    if (!result.ok()) {
      std::cerr << path << ": " << result.status() << "\n";
      return 1;
    }
    if (options.json) {
      std::cout << result->dump() << std::endl;
      continue;
    }
    std::cout << (*result)["program"].get<std::string>() << ": space "
              << (*result)["space_seconds"].get<double>() << " s, choose 64: "
              << (*result)["choose_64_seconds"].get<double>() << " s"
              << std::endl;
    if (options.choices) continue;
    std::cout << "  "
              << static_cast<int64_t>((*result)["candidates_per_second"])
              << " candidates/s, microseconds "
              << (*result)["microseconds"].dump() << ", "
              << (*result)["by_replay"] << " of " << (*result)["candidates"]
              << " replayed" << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
