// Evolutionary search guided by a cost model, as in Ansor (OSDI 2020), with
// the population kept from call to call: each Propose evaluates a bounded
// number of new candidates, so that a proposal costs the same at the start and
// after thousands of trials. Search::Create makes one.
#ifndef TILEFARM_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
#define TILEFARM_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "cost_model/skeleton/evaluator.h"
#include "server/search/individual.h"
#include "server/search/measured_candidates.h"
#include "server/search/search.h"
#include "server/search/sketch_shares.h"
#include "server/search/step_shares.h"

namespace tilefarm::search {

class EvolutionarySearch : public Search {
 public:
  EvolutionarySearch(std::shared_ptr<const space::DesignSpace> space,
                     const target::Target& target, std::string task_id,
                     std::shared_ptr<cost_model::CostModel> model,
                     SearchOptions options);

  absl::Status Warm(std::span<const database::Record> known);
  absl::StatusOr<std::vector<Proposal>> Propose(int count) override;
  absl::Status Report(std::span<const Outcome> outcomes) override;
  void Suggest(const std::string& source, const std::string& trace) override;
  std::optional<cost_model::RankingMetrics> last_metrics() const override {
    return last_metrics_;
  }
  double best_seconds() const override { return best_seconds_; }
  std::string default_candidate() const override { return default_candidate_; }

 private:
  // Featurises a candidate; nullopt: it was seen before, or is illegal.
  std::optional<Individual> Evaluate(space::Candidate candidate);
  // Of those that were not seen before and are legal, in their order.
  std::vector<Individual> EvaluateAll(std::vector<space::Candidate> candidates);
  // Adds new and legal candidates until there are `want`, or as many as two
  // draws for each of them find.
  void DrawUntil(
      size_t want,
      const std::function<absl::StatusOr<space::Candidate>()>& draw_candidate,
      std::vector<Individual>& drawn);
  // Of each, in their order; nullopt: it is illegal.
  std::vector<std::optional<Individual>> FeaturizeAll(
      std::vector<space::Candidate> candidates);
  // How many candidates to evaluate before the cost is looked at again.
  size_t EvaluatedAtOnce(int64_t cost_left) const;
  // As above, whether it was seen before or not.
  std::optional<Individual> Featurize(space::Candidate candidate);
  // Cost of the evaluations so far, in evaluations by skeleton.
  int64_t EvaluationCost() const;
  // Adds it to `proposals` unless its program was proposed before.
  void ProposeOnce(const ir::PrimFunc& scheduled, std::string trace,
                   Individual individual, std::vector<Proposal>* proposals);
  absl::Status Take(Individual individual, std::vector<Proposal>* proposals);
  // `seconds` 0: it failed.
  void Learn(const Individual& individual, const std::string& candidate_id,
             double seconds, bool unsteady);
  void Correct(const Outcome& outcome);
  absl::Status Retrain();

  // evolutionary_search_guided.cc:

  // Evaluates `budget` new candidates, fewer where their sketches have no
  // skeletons, and keeps the best.
  void Evolve(int64_t budget);
  absl::StatusOr<space::Candidate> Breed(
      const std::vector<const Individual*>& parents);
  // Untried candidates one step away from the fastest measured ones, best
  // predicted first; several for each of `want`.
  std::vector<Individual> Neighbours(size_t want);
  // Proposes up to `want` of them.
  absl::Status TakeNeighbours(size_t want, std::vector<Proposal>* proposals);
  // New candidates of the sketch, best predicted first: neighbours of its
  // fastest, and points drawn at random.
  std::vector<Individual> CandidatesOf(int sketch);
  // One proposal of each sketch that deserves a trial, up to `want`.
  absl::Status TakeShares(size_t want, std::vector<Proposal>* proposals);

  // evolutionary_search_first.cc:

  // FailedPrecondition, with the reason, if no point of the space is legal.
  absl::Status TakeRandom(size_t want, std::vector<Proposal>* proposals);
  // options_.first_traces.
  absl::Status TakeFirst(size_t want, std::vector<Proposal>* proposals);
  absl::Status TakeTrace(const std::string& text,
                         std::vector<Proposal>* proposals);
  // Up to `most` of suggestions_.
  absl::Status TakeSuggestions(size_t most, std::vector<Proposal>* proposals);
  // The best of many random candidates, by EstimateCycles and by the model if
  // it is trained.
  absl::Status TakeDrafts(size_t want, std::vector<Proposal>* proposals);

  const std::shared_ptr<const space::DesignSpace> space_;
  const target::Target target_;
  const std::string task_id_;
  const std::shared_ptr<cost_model::CostModel> model_;
  const SearchOptions options_;
  skeleton::CandidateEvaluator evaluator_;
  SketchShares shares_;
  // The fastest measured candidates of each sketch, without those far behind.
  std::vector<std::optional<Individual>> best_of_sketch_;
  Rng rng_;
  const int64_t group_;  // of the task, in the model

  // Evaluated or illegal candidates, by Fingerprint; thousands for every batch.
  absl::flat_hash_set<uint64_t> seen_;
  absl::flat_hash_set<uint64_t> tried_;       // applied, by Fingerprint
  std::unordered_set<std::string> proposed_;  // candidate ids
  // Proposed candidates by RegisterTile, and the neighbours among them.
  absl::flat_hash_set<uint64_t> tiles_, near_tiles_;
  std::unordered_map<std::string, Individual> pending_;  // by candidate id
  std::vector<Individual> population_;  // not proposed, best predicted first
  MeasuredCandidates measured_candidates_;
  std::vector<cost_model::Sample> fresh_;  // not trained on yet
  size_t first_taken_ = 0;                 // of options_.first_traces
  struct Suggestion {
    std::string source;
    space::Candidate candidate;
  };
  std::vector<Suggestion> suggestions_;  // not proposed yet, in order
  std::string default_candidate_;
  StepShares steps_;
  int64_t near_taken_ = 0;   // neighbours proposed
  bool has_points_ = false;  // some point that was drawn is legal
  int64_t measured_ = 0;
  int64_t gained_at_ = 0;  // measured_ when there was last a new best
  double best_seconds_ = 0;
  std::optional<cost_model::RankingMetrics> last_metrics_;
};

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_EVOLUTIONARY_SEARCH_H_
