#include "server/search/evolutionary_search.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"

namespace tilefarm::search {
namespace {

// Minimum number of candidates evaluated in a call for each one proposed.
constexpr int64_t kMinEvaluations = 64;
constexpr int64_t kMinEvaluationsPerProposal = 24;
// One more is evaluated for each so many outcomes.
constexpr int64_t kOutcomesPerEvaluation = 4;
// Cost of featurising through a program, in evaluations by skeleton.
constexpr int64_t kReplayCost = 8;
// Fast measured candidates that stay parents.
constexpr size_t kElite = 48;
// One proposal in so many is a neighbour of the fastest measured candidates,
// because a step from the measured best is worth a measurement whatever the
// model predicts. More are, after so many outcomes without a new best: by then
// the model's favourites were measured.
constexpr size_t kProposalsPerNeighbour = 4;
constexpr size_t kProposalsPerNeighbourLater = 2;
constexpr int64_t kPatience = 32;
// A time below the best by this factor counts as a new best.
constexpr double kGain = 0.99;
// One proposal in so many goes to a sketch that has not had its share.
constexpr size_t kProposalsPerShare = 4;
// Of the proposals chosen by the model alone, one in so many has a register
// tile that no candidate had before: descendants of the fastest keep their
// tiles.
constexpr size_t kProposalsPerNewTile = 4;
// One proposal in so many is what similar tasks suggest, while they do.
constexpr size_t kProposalsPerSuggestion = 4;
// Past records that are featurised to train the model at the start.
constexpr size_t kMaxWarmRecords = 2048;

}  // namespace

EvolutionarySearch::EvolutionarySearch(
    std::shared_ptr<const space::DesignSpace> space,
    const target::Target& target, std::string task_id,
    std::shared_ptr<cost_model::CostModel> model, SearchOptions options)
    : space_(std::move(space)),
      target_(target),
      task_id_(std::move(task_id)),
      model_(std::move(model)),
      options_(std::move(options)),
      evaluator_(space_, target_),
      shares_(space_->sketches().size()),
      best_of_sketch_(space_->sketches().size()),
      rng_(options_.seed),
      group_(static_cast<int64_t>(Sha256Prefix(task_id_) >> 1)),
      measured_candidates_(kElite) {}

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
    // Records of another space (an older rule set, a trace by hand) count as
    // measured, but the model cannot train on them.
    auto trace = schedule::Trace::Parse(record.trace);
    if (!trace.ok()) continue;
    auto candidate = space_->FromRecord(*trace);
    if (!candidate.ok()) continue;
    std::optional<Individual> individual = Evaluate(*std::move(candidate));
    if (!individual) continue;
    has_points_ = true;
    tried_.insert(individual->candidate.Fingerprint());
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
  return Featurize(std::move(candidate));
}

std::vector<Individual> EvolutionarySearch::EvaluateAll(
    std::vector<space::Candidate> candidates) {
  std::erase_if(candidates, [&](const space::Candidate& candidate) {
    return !seen_.insert(candidate.Fingerprint()).second;
  });
  std::vector<Individual> legal;
  for (std::optional<Individual>& one : FeaturizeAll(std::move(candidates))) {
    if (one) legal.push_back(*std::move(one));
  }
  return legal;
}

void EvolutionarySearch::DrawUntil(
    size_t want,
    const std::function<absl::StatusOr<space::Candidate>()>& draw_candidate,
    std::vector<Individual>& drawn) {
  for (size_t draws = 0; draws < 2 * want && drawn.size() < want;) {
    std::vector<space::Candidate> candidates;
    for (; draws < 2 * want && drawn.size() + candidates.size() < want;
         ++draws) {
      auto candidate = draw_candidate();
      if (!candidate.ok()) {
        draws = 2 * want;
        break;
      }
      candidates.push_back(*std::move(candidate));
    }
    for (Individual& one : EvaluateAll(std::move(candidates))) {
      drawn.push_back(std::move(one));
    }
  }
}

std::optional<Individual> EvolutionarySearch::Featurize(
    space::Candidate candidate) {
  return std::move(FeaturizeAll({std::move(candidate)}).front());
}

std::vector<std::optional<Individual>> EvolutionarySearch::FeaturizeAll(
    std::vector<space::Candidate> candidates) {
  std::vector<std::optional<cost_model::FeatureRows>> features =
      evaluator_.EvaluateAll(candidates);
  std::vector<std::optional<Individual>> individuals(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!features[i]) continue;
    individuals[i].emplace();
    individuals[i]->features = *std::move(features[i]);
    individuals[i]->candidate = std::move(candidates[i]);
  }
  return individuals;
}

size_t EvolutionarySearch::EvaluatedAtOnce(int64_t cost_left) const {
  // A skeleton's cost shows only afterwards.
  if (!evaluator_.replays_all()) return 1;
  return static_cast<size_t>((cost_left + kReplayCost - 1) / kReplayCost);
}

int64_t EvolutionarySearch::EvaluationCost() const {
  const skeleton::EvaluatorStats& stats = evaluator_.stats();
  return stats.by_skeleton + kReplayCost * stats.by_replay;
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
  seen_.insert(individual.candidate.Fingerprint());
  tried_.insert(individual.candidate.Fingerprint());
  auto schedule = space_->Apply(individual.candidate);
  // A candidate that its skeleton accepts may still be illegal.
  if (!schedule.ok()) return absl::OkStatus();
  has_points_ = true;
  const ir::PrimFuncPtr scheduled =
      schedule->module().Find(space_->program()->name);
  evaluator_.Check(individual.candidate, *scheduled, individual.features);
  ProposeOnce(*scheduled, schedule->trace().Print(), std::move(individual),
              proposals);
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
  TF_RETURN_IF_ERROR(TakeFirst((want + 1) / 2, &proposals));
  TF_RETURN_IF_ERROR(TakeSuggestions(
      std::min(want - proposals.size(),
               (want + kProposalsPerSuggestion - 1) / kProposalsPerSuggestion),
      &proposals));
  if (guided) {
    const int64_t each = std::min<int64_t>(
        options_.evaluations_per_proposal,
        kMinEvaluationsPerProposal + measured_ / kOutcomesPerEvaluation);
    const int64_t until = EvaluationCost() + each * count;
    const size_t one_in = measured_ - gained_at_ > kPatience
                              ? kProposalsPerNeighbourLater
                              : kProposalsPerNeighbour;
    const size_t near = (want + one_in - 1) / one_in;
    TF_RETURN_IF_ERROR(
        TakeNeighbours(std::min(want, proposals.size() + near), &proposals));
    const size_t shares = (want + kProposalsPerShare - 1) / kProposalsPerShare;
    TF_RETURN_IF_ERROR(
        TakeShares(std::min(want, proposals.size() + shares), &proposals));
    Evolve(std::max(kMinEvaluations, until - EvaluationCost()));
    for (size_t turn = 0; proposals.size() < want; ++turn) {
      if (rng_.Chance(options_.epsilon)) {
        TF_RETURN_IF_ERROR(TakeRandom(proposals.size() + 1, &proposals));
        continue;
      }
      if (population_.empty()) break;
      const size_t next = turn % kProposalsPerNewTile == 0
                              ? FirstWithNewTile(population_, tiles_)
                              : 0;
      TF_RETURN_IF_ERROR(Take(Remove(population_, next), &proposals));
    }
  }
  if (!guided && options_.strategy == Strategy::kEvolutionary) {
    TF_RETURN_IF_ERROR(TakeDrafts(want, &proposals));
  }
  if (proposals.size() < want) TF_RETURN_IF_ERROR(TakeRandom(want, &proposals));
  // The rest of the population is part of the space as well.
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
      if (outcome.seconds < kGain * best_seconds_) gained_at_ = measured_;
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
