// Evolutionary search guided by a cost model, as in Ansor (OSDI 2020), with
// the population kept from call to call: each Propose evaluates a bounded
// number of new candidates, so that a proposal costs the same at the start and
// after thousands of trials.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "cost_model/skeleton/evaluator.h"
#include "server/search/individual.h"
#include "server/search/measured_candidates.h"
#include "server/search/search.h"
#include "server/search/sketch_shares.h"

namespace tilefarm::search {
namespace {

// Candidates evaluated in a call and for each one proposed, at least.
constexpr int64_t kMinEvaluations = 64;
constexpr int64_t kMinEvaluationsPerProposal = 24;
// One more of them for so many outcomes.
constexpr int64_t kOutcomesPerEvaluation = 4;
// What featurising costs by way of a program, in evaluations by skeleton.
constexpr int64_t kReplayCost = 8;
// Before the model knows anything: random candidates evaluated for each one
// proposed, and the share of proposals that are drawn blindly all the same.
constexpr int kDraftsPerProposal = 16;
constexpr double kBlindDrafts = 0.25;
// Of the drafts, so many go to sketches by their shares, whatever the estimate
// says of one against the other: every second one.
constexpr size_t kDraftsPerShare = 2;
// Fast measured candidates that stay parents.
constexpr size_t kElite = 48;
// One proposal in so many is a neighbour of one of the two fastest measured
// candidates: the best predicted of its mutations by one step. Where the
// measured best stands, the next step is worth a measurement whatever the model
// says.
constexpr int kProposalsPerNeighbour = 4;
constexpr size_t kNeighbourParents = 2;
constexpr int kNeighboursPerProposal = 16;
// One proposal in so many goes to a sketch that has not had its share: its best
// candidate by the model, out of so many new ones.
constexpr size_t kProposalsPerShare = 4;
constexpr int kCandidatesPerShare = 32;
// Of those by the model alone, one in so many has a register tile that none had
// before: what breeds from the fastest keeps to their tiles.
constexpr size_t kProposalsPerNewTile = 4;
// Past records that are featurised to train the model at the start.
constexpr size_t kMaxWarmRecords = 2048;

class EvolutionarySearch : public Search {
 public:
  EvolutionarySearch(std::shared_ptr<const space::DesignSpace> space,
                     const target::Target& target, std::string task_id,
                     std::shared_ptr<cost_model::CostModel> model,
                     SearchOptions options)
      : space_(std::move(space)),
        target_(target),
        task_id_(std::move(task_id)),
        model_(std::move(model)),
        options_(std::move(options)),
        evaluator_(space_, target_),
        shares_(space_->sketches().size()),
        best_of_sketch_(space_->sketches().size()),
        rng_(options_.seed),
        group_(static_cast<int64_t>(Sha256Prefix(task_id_) >> 1)) {}

  absl::Status Warm(std::span<const database::Record> known);
  absl::StatusOr<std::vector<Proposal>> Propose(int count) override;
  absl::Status Report(std::span<const Outcome> outcomes) override;
  std::optional<cost_model::RankingMetrics> last_metrics() const override {
    return last_metrics_;
  }
  double best_seconds() const override { return best_seconds_; }

 private:
  // Featurises a candidate never seen before; nullopt where it was, or where
  // it is illegal.
  std::optional<Individual> Evaluate(space::Candidate candidate);
  // Evaluates `budget` new candidates, fewer where their sketches have no
  // skeletons, and keeps the best.
  void Evolve(int64_t budget);
  // What the evaluations so far cost, in those by skeleton.
  int64_t EvaluationCost() const {
    const skeleton::EvaluatorStats& stats = evaluator_.stats();
    return stats.by_skeleton + kReplayCost * stats.by_replay;
  }
  // New candidates one step away from the fastest measured ones, best predicted
  // first; about kNeighboursPerProposal for each of `want`.
  std::vector<Individual> Neighbours(int want);
  // New candidates of the sketch, best predicted first: neighbours of its
  // fastest, and points drawn at random.
  std::vector<Individual> CandidatesOf(int sketch);
  // One proposal of each sketch that deserves it, up to `want`.
  absl::Status TakeShares(size_t want, std::vector<Proposal>* proposals);
  absl::StatusOr<space::Candidate> Breed(
      const std::vector<const Individual*>& parents);
  // Into `proposals` unless its program was proposed before.
  void ProposeOnce(const ir::PrimFunc& scheduled, std::string trace,
                   Individual individual, std::vector<Proposal>* proposals);
  absl::Status Take(Individual individual, std::vector<Proposal>* proposals);
  absl::Status TakeRandom(size_t want, std::vector<Proposal>* proposals);
  // options_.first_traces.
  absl::Status TakeFirst(size_t want, std::vector<Proposal>* proposals);
  absl::Status TakeTrace(const std::string& text,
                         std::vector<Proposal>* proposals);
  // The best of many random candidates by EstimateCycles.
  absl::Status TakeDrafts(size_t want, std::vector<Proposal>* proposals);
  // `seconds` 0: it failed.
  void Learn(const Individual& individual, const std::string& candidate_id,
             double seconds, bool unsteady);
  void Correct(const Outcome& outcome);
  absl::Status Retrain();
  // The next of population_ to propose: where `new_tile`, the best whose
  // register tile no proposal had yet, else the best. `taken` says which are
  // gone.
  size_t NextOfPopulation(const std::vector<bool>& taken, bool new_tile) const;
  const std::shared_ptr<const space::DesignSpace> space_;
  const target::Target target_;
  const std::string task_id_;
  const std::shared_ptr<cost_model::CostModel> model_;
  const SearchOptions options_;
  skeleton::CandidateEvaluator evaluator_;
  SketchShares shares_;
  // The fastest measured of each sketch; those far behind are no elite.
  std::vector<std::optional<Individual>> best_of_sketch_;
  Rng rng_;
  const int64_t group_;  // of the task, in the model

  // Evaluated or illegal, by Fingerprint: thousands come with every batch.
  absl::flat_hash_set<uint64_t> seen_;
  std::unordered_set<std::string> proposed_;  // candidate ids
  absl::flat_hash_set<uint64_t> tiles_;       // proposed, by RegisterTile
  std::unordered_map<std::string, Individual> pending_;  // by candidate id
  std::vector<Individual> population_;  // not proposed, best predicted first
  MeasuredCandidates measured_candidates_{kElite};
  std::vector<cost_model::Sample> fresh_;  // not trained on yet
  size_t first_taken_ = 0;                 // of options_.first_traces
  int64_t measured_ = 0;
  double best_seconds_ = 0;
  std::optional<cost_model::RankingMetrics> last_metrics_;
};

absl::Status EvolutionarySearch::Warm(std::span<const database::Record> known) {
  size_t skip =
      known.size() > kMaxWarmRecords ? known.size() - kMaxWarmRecords : 0;
  for (const database::Record& record : known) {
    proposed_.insert(record.candidate_id);
    ++measured_;
    const bool ok = record.status == database::Status::kOk;
    if (ok && (best_seconds_ == 0 || record.median_seconds < best_seconds_)) {
      best_seconds_ = record.median_seconds;
    }
    if (skip > 0) {
      --skip;
      continue;
    }
    // Records of another space (an older rule set, a trace by hand) still
    // count as measured, but teach nothing.
    auto trace = schedule::Trace::Parse(record.trace);
    if (!trace.ok()) continue;
    auto candidate = space_->FromRecord(*trace);
    if (!candidate.ok()) continue;
    std::optional<Individual> individual = Evaluate(*std::move(candidate));
    if (!individual) continue;
    shares_.Proposed(individual->candidate.sketch);
    tiles_.insert(RegisterTile(individual->candidate));
    Learn(*individual, record.candidate_id, ok ? record.median_seconds : 0,
          record.unsteady());
  }
  return fresh_.empty() ? absl::OkStatus() : Retrain();
}

std::optional<Individual> EvolutionarySearch::Evaluate(
    space::Candidate candidate) {
  if (!seen_.insert(candidate.Fingerprint()).second) return std::nullopt;
  std::optional<cost_model::FeatureRows> features =
      evaluator_.Evaluate(candidate);
  if (!features) return std::nullopt;
  Individual individual;
  individual.features = *std::move(features);
  individual.candidate = std::move(candidate);
  return individual;
}

absl::StatusOr<space::Candidate> EvolutionarySearch::Breed(
    const std::vector<const Individual*>& parents) {
  if (parents.empty()) return space_->Sample(rng_);
  // Rank selection: the best parent is drawn most often.
  const auto pick = [&]() -> const Individual& {
    const double u = rng_.Uniform();
    return *parents[static_cast<size_t>(u * u * parents.size())];
  };
  const double kind = rng_.Uniform();
  if (kind < options_.mutation_probability) {
    TF_ASSIGN_OR_RETURN(space::Candidate child,
                        space_->Mutate(pick().candidate, rng_));
    // A second step half of the time, to leave small plateaus.
    if (rng_.Chance(0.5)) {
      auto further = space_->Mutate(child, rng_);
      if (further.ok()) child = *std::move(further);
    }
    return child;
  }
  if (kind < options_.mutation_probability + options_.crossover_probability) {
    return space_->Crossover(pick().candidate, pick().candidate, rng_);
  }
  return space_->Sample(rng_);
}

size_t EvolutionarySearch::NextOfPopulation(const std::vector<bool>& taken,
                                            bool new_tile) const {
  size_t best = population_.size();
  for (size_t i = 0; i < population_.size(); ++i) {
    if (taken[i]) continue;
    best = std::min(best, i);
    if (!new_tile || !tiles_.contains(RegisterTile(population_[i].candidate))) {
      return i;
    }
  }
  return best;
}

void EvolutionarySearch::Evolve(int64_t budget) {
  const int generations = std::max(1, options_.generations);
  for (int generation = 0; generation < generations; ++generation) {
    // Measured and predicted candidates breed together, each in its order.
    std::vector<const Individual*> parents;
    size_t a = 0, b = 0;
    const std::vector<Individual>& elite = measured_candidates_.elite();
    while (a < elite.size() || b < population_.size()) {
      if (a < elite.size()) parents.push_back(&elite[a++]);
      if (b < population_.size()) parents.push_back(&population_[b++]);
    }
    std::vector<Individual> children;
    const int64_t want = budget / generations;
    const int64_t until = EvaluationCost() + std::max<int64_t>(want, 1);
    for (int64_t tries = 0; tries < 4 * want + 16 && EvaluationCost() < until;
         ++tries) {
      auto child = Breed(parents);
      if (!child.ok()) continue;
      std::optional<Individual> individual = Evaluate(*std::move(child));
      if (individual) children.push_back(*std::move(individual));
    }
    Predict(*model_, children);
    for (Individual& child : children) population_.push_back(std::move(child));
    SortByPrediction(population_);
    if (static_cast<int>(population_.size()) > options_.population) {
      population_.resize(options_.population);
    }
  }
}

std::vector<Individual> EvolutionarySearch::Neighbours(int want) {
  std::vector<Individual> neighbours;
  const std::vector<Individual>& elite = measured_candidates_.elite();
  const size_t parents = std::min(elite.size(), kNeighbourParents);
  if (parents == 0) return neighbours;
  const size_t most = static_cast<size_t>(want) * kNeighboursPerProposal;
  for (size_t draw = 0; draw < 2 * most && neighbours.size() < most; ++draw) {
    auto child = space_->Mutate(elite[rng_.Below(parents)].candidate, rng_);
    if (!child.ok()) continue;
    std::optional<Individual> individual = Evaluate(*std::move(child));
    if (individual) neighbours.push_back(*std::move(individual));
  }
  Rank(*model_, neighbours);
  return neighbours;
}

std::vector<Individual> EvolutionarySearch::CandidatesOf(int sketch) {
  const auto index = static_cast<size_t>(sketch);
  std::vector<Individual> made;
  const auto add = [&](absl::StatusOr<space::Candidate> candidate) {
    if (!candidate.ok() || candidate->sketch != sketch) return;
    std::optional<Individual> individual = Evaluate(*std::move(candidate));
    if (individual) made.push_back(*std::move(individual));
  };
  if (best_of_sketch_[index]) {
    for (int i = 0; i < kCandidatesPerShare / 2; ++i) {
      add(space_->Mutate(best_of_sketch_[index]->candidate, rng_));
    }
  }
  // Draws are of any sketch, and cheap beside an evaluation.
  const size_t draws = 2 * kCandidatesPerShare * space_->sketches().size();
  for (size_t i = 0; i < draws && made.size() < kCandidatesPerShare; ++i) {
    add(space_->Sample(rng_));
  }
  Rank(*model_, made);
  return made;
}

absl::Status EvolutionarySearch::TakeShares(size_t want,
                                            std::vector<Proposal>* proposals) {
  // Sketches are told apart by their trials alone, the candidates of each by
  // the model.
  std::vector<double> guesses(space_->sketches().size(), 1);
  while (proposals->size() < want) {
    const std::optional<int> sketch = shares_.Next(guesses);
    if (!sketch) break;
    // Each at most once a call.
    guesses[static_cast<size_t>(*sketch)] =
        std::numeric_limits<double>::infinity();
    std::vector<Individual> made = CandidatesOf(*sketch);
    const size_t before = proposals->size();
    size_t next = 0;
    while (proposals->size() == before && next < made.size()) {
      TF_RETURN_IF_ERROR(Take(std::move(made[next++]), proposals));
    }
    for (; next < made.size(); ++next) {
      population_.push_back(std::move(made[next]));
    }
  }
  return absl::OkStatus();
}

void EvolutionarySearch::ProposeOnce(const ir::PrimFunc& scheduled,
                                     std::string trace, Individual individual,
                                     std::vector<Proposal>* proposals) {
  Proposal proposal;
  proposal.scheduled_hash = ir::ProgramHash(scheduled);
  proposal.candidate_id =
      CandidateId(task_id_, proposal.scheduled_hash, options_.fingerprint);
  if (!proposed_.insert(proposal.candidate_id).second) return;
  proposal.candidate = individual.candidate;
  proposal.trace = std::move(trace);
  proposal.predicted = individual.predicted;
  if (individual.in_space) {
    shares_.Proposed(individual.candidate.sketch);
    tiles_.insert(RegisterTile(individual.candidate));
  }
  pending_.emplace(proposal.candidate_id, std::move(individual));
  proposals->push_back(std::move(proposal));
}

absl::Status EvolutionarySearch::Take(Individual individual,
                                      std::vector<Proposal>* proposals) {
  auto schedule = space_->Apply(individual.candidate);
  // What a skeleton lets pass may still be illegal.
  if (!schedule.ok()) return absl::OkStatus();
  const ir::PrimFuncPtr scheduled =
      schedule->module().Find(space_->program()->name);
  evaluator_.Check(individual.candidate, *scheduled, individual.features);
  ProposeOnce(*scheduled, schedule->trace().Print(), std::move(individual),
              proposals);
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::TakeFirst(size_t want,
                                           std::vector<Proposal>* proposals) {
  while (first_taken_ < options_.first_traces.size() &&
         proposals->size() < want) {
    TF_RETURN_IF_ERROR(
        TakeTrace(options_.first_traces[first_taken_++], proposals));
  }
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::TakeTrace(const std::string& text,
                                           std::vector<Proposal>* proposals) {
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(text));
  TF_ASSIGN_OR_RETURN(
      const schedule::Schedule schedule,
      schedule::Replay(trace, ir::IRModule{{space_->program()}}));
  const ir::PrimFuncPtr scheduled =
      schedule.module().Find(space_->program()->name);
  Individual individual;
  individual.features = cost_model::ExtractFeatures(*scheduled, target_);
  // The drafted default is a point of the space, and breeds as others do.
  absl::StatusOr<space::Candidate> candidate = space_->FromRecord(trace);
  individual.in_space = candidate.ok();
  if (candidate.ok()) {
    seen_.insert(candidate->Fingerprint());
    individual.candidate = *std::move(candidate);
  }
  ProposeOnce(*scheduled, text, std::move(individual), proposals);
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::TakeRandom(size_t want,
                                            std::vector<Proposal>* proposals) {
  // In a small space the last points are hard to hit: draw until a run of
  // repeats makes it all but certain that none is left.
  const int64_t size = std::min<int64_t>(space_->ApproximateSize(), 20000);
  const int64_t max_repeats = 1000 + 12 * size;
  for (int64_t repeats = 0; proposals->size() < want && repeats < max_repeats;
       ++repeats) {
    auto candidate = space_->Sample(rng_);
    if (!candidate.ok()) break;
    std::optional<Individual> individual = Evaluate(*std::move(candidate));
    if (!individual) continue;
    const size_t before = proposals->size();
    TF_RETURN_IF_ERROR(Take(*std::move(individual), proposals));
    if (proposals->size() > before) repeats = 0;
  }
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::TakeDrafts(size_t want,
                                            std::vector<Proposal>* proposals) {
  struct Draft {
    Individual individual;
    double cycles;
  };
  std::vector<Draft> drafts;
  const size_t most = want * kDraftsPerProposal;
  for (size_t draw = 0; draw < 2 * most && drafts.size() < most; ++draw) {
    auto candidate = space_->Sample(rng_);
    if (!candidate.ok()) break;
    std::optional<Individual> individual = Evaluate(*std::move(candidate));
    if (!individual) continue;
    const double cycles =
        cost_model::EstimateCycles(individual->features, target_);
    drafts.push_back({*std::move(individual), cycles});
  }
  std::stable_sort(
      drafts.begin(), drafts.end(),
      [](const Draft& x, const Draft& y) { return x.cycles < y.cycles; });
  // The first draft left of the sketch that deserves a trial, if one does.
  const auto deserving = [&]() -> std::optional<size_t> {
    std::vector<double> guesses(space_->sketches().size(),
                                std::numeric_limits<double>::infinity());
    for (const Draft& draft : drafts) {
      double& guess =
          guesses[static_cast<size_t>(draft.individual.candidate.sketch)];
      guess = std::min(guess, draft.cycles);
    }
    const std::optional<int> sketch = shares_.Next(guesses);
    for (size_t i = 0; sketch && i < drafts.size(); ++i) {
      if (drafts[i].individual.candidate.sketch == *sketch) return i;
    }
    return std::nullopt;
  };
  for (size_t turn = 0; proposals->size() < want && !drafts.empty(); ++turn) {
    std::optional<size_t> at;
    if (turn % kDraftsPerShare == 0) at = deserving();
    if (!at) at = rng_.Chance(kBlindDrafts) ? rng_.Below(drafts.size()) : 0;
    Individual individual = std::move(drafts[*at].individual);
    drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(*at));
    TF_RETURN_IF_ERROR(Take(std::move(individual), proposals));
  }
  // What is not taken may still be by the model, once it knows more.
  for (Draft& draft : drafts) {
    if (static_cast<int>(population_.size()) >= options_.population) break;
    population_.push_back(std::move(draft.individual));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Proposal>> EvolutionarySearch::Propose(int count) {
  std::vector<Proposal> proposals;
  const int64_t known = measured_ + static_cast<int64_t>(pending_.size());
  const int64_t warm_up =
      model_->trained() ? options_.initial_random / 4 : options_.initial_random;
  const bool guided = options_.strategy == Strategy::kEvolutionary &&
                      model_->trained() && known >= warm_up;
  const size_t want = static_cast<size_t>(std::max(count, 0));
  TF_RETURN_IF_ERROR(TakeFirst(want, &proposals));
  if (guided) {
    const int64_t each = std::min<int64_t>(
        options_.evaluations_per_proposal,
        kMinEvaluationsPerProposal + measured_ / kOutcomesPerEvaluation);
    const int64_t until = EvaluationCost() + each * count;
    const int near =
        (count + kProposalsPerNeighbour - 1) / kProposalsPerNeighbour;
    std::vector<Individual> neighbours = Neighbours(near);
    size_t taken_near = 0;
    while (taken_near < neighbours.size() &&
           proposals.size() < std::min<size_t>(want, near)) {
      TF_RETURN_IF_ERROR(Take(std::move(neighbours[taken_near++]), &proposals));
    }
    for (; taken_near < neighbours.size(); ++taken_near) {
      population_.push_back(std::move(neighbours[taken_near]));
    }
    const size_t shares = (want + kProposalsPerShare - 1) / kProposalsPerShare;
    TF_RETURN_IF_ERROR(
        TakeShares(std::min(want, proposals.size() + shares), &proposals));
    Evolve(std::max(kMinEvaluations, until - EvaluationCost()));
    std::vector<bool> taken(population_.size(), false);
    for (size_t turn = 0; proposals.size() < want; ++turn) {
      if (rng_.Chance(options_.epsilon)) {
        TF_RETURN_IF_ERROR(TakeRandom(proposals.size() + 1, &proposals));
        continue;
      }
      const size_t next =
          NextOfPopulation(taken, turn % kProposalsPerNewTile == 0);
      if (next == population_.size()) break;
      taken[next] = true;
      TF_RETURN_IF_ERROR(Take(population_[next], &proposals));
    }
    std::vector<Individual> rest;
    for (size_t i = 0; i < population_.size(); ++i) {
      if (!taken[i]) rest.push_back(std::move(population_[i]));
    }
    population_ = std::move(rest);
  }
  if (!guided && options_.strategy == Strategy::kEvolutionary) {
    TF_RETURN_IF_ERROR(TakeDrafts(want, &proposals));
  }
  if (proposals.size() < want) TF_RETURN_IF_ERROR(TakeRandom(want, &proposals));
  // What evolution left over is part of the space, too.
  while (proposals.size() < want && !population_.empty()) {
    Individual individual = std::move(population_.back());
    population_.pop_back();
    TF_RETURN_IF_ERROR(Take(std::move(individual), &proposals));
  }
  return proposals;
}

void EvolutionarySearch::Correct(const Outcome& outcome) {
  if (outcome.status == database::Status::kDeviceLost) return;
  const auto known = measured_candidates_.Take(outcome.candidate_id);
  if (!known) return;
  const double seconds =
      outcome.status == database::Status::kOk ? outcome.seconds : 0;
  if (seconds > 0) best_seconds_ = std::min(best_seconds_, seconds);
  Learn(*known, outcome.candidate_id, seconds, outcome.unsteady);
}

void EvolutionarySearch::Learn(const Individual& individual,
                               const std::string& candidate_id, double seconds,
                               bool unsteady) {
  fresh_.push_back(
      MakeSample(individual, group_, candidate_id, seconds, unsteady));
  Individual measured = individual;
  measured.seconds = seconds;
  if (seconds > 0 && individual.in_space) {
    const int sketch = measured.candidate.sketch;
    const double before = shares_.best_seconds(sketch);
    shares_.Measured(sketch, seconds);
    if (before == 0 || seconds < before) {
      best_of_sketch_[static_cast<size_t>(sketch)] = measured;
    }
  }
  measured_candidates_.Add(candidate_id, std::move(measured));
}

absl::Status EvolutionarySearch::Retrain() {
  TF_ASSIGN_OR_RETURN(cost_model::RankingMetrics metrics,
                      model_->Update(fresh_));
  last_metrics_ = metrics;
  fresh_.clear();
  Rank(*model_, population_);
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::Report(std::span<const Outcome> outcomes) {
  for (const Outcome& outcome : outcomes) {
    const auto found = pending_.find(outcome.candidate_id);
    if (found == pending_.end()) {
      Correct(outcome);
      continue;
    }
    const bool ok = outcome.status == database::Status::kOk;
    if (ok && (best_seconds_ == 0 || outcome.seconds < best_seconds_)) {
      best_seconds_ = outcome.seconds;
    }
    // A lost device says nothing about the candidate.
    if (outcome.status != database::Status::kDeviceLost) {
      Learn(found->second, outcome.candidate_id, ok ? outcome.seconds : 0,
            outcome.unsteady);
    }
    ++measured_;
    pending_.erase(found);
  }
  const int64_t interval =
      std::max<int64_t>(options_.retrain_every, measured_ / 8);
  if (options_.strategy == Strategy::kEvolutionary &&
      static_cast<int64_t>(fresh_.size()) >= interval) {
    return Retrain();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Search>> Search::Create(
    std::shared_ptr<const space::DesignSpace> space,
    const target::Target& target, const std::string& task_id,
    std::shared_ptr<cost_model::CostModel> model, SearchOptions options,
    std::span<const database::Record> known) {
  auto search = std::make_unique<EvolutionarySearch>(
      std::move(space), target, task_id, std::move(model), std::move(options));
  TF_RETURN_IF_ERROR(search->Warm(known));
  return search;
}

}  // namespace tilefarm::search
