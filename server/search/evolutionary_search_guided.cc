// Proposals by the trained model: from the population, from neighbours of the
// fastest candidates, and from sketches that deserve a trial.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "server/search/evolutionary_search.h"

namespace tilefarm::search {
namespace {

// Neighbours are made of the fastest measured candidates of so many register
// tiles, because one tile may show which decisions another one needs. So many
// are made for each proposal.
constexpr size_t kNeighbourParents = 4;
constexpr size_t kNeighboursPerProposal = 16;
// One neighbour in so many has a register tile that no candidate had before;
// StepShares chooses the others.
constexpr int64_t kNeighboursPerNewTile = 2;
// A sketch that deserves a trial proposes the best by the model of so many new
// candidates.
constexpr size_t kCandidatesPerShare = 32;

}  // namespace

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
    const int64_t most_tries = 4 * want + 16;
    for (int64_t tries = 0; tries < most_tries && EvaluationCost() < until;) {
      std::vector<space::Candidate> bred;
      const size_t at_once = EvaluatedAtOnce(until - EvaluationCost());
      for (; tries < most_tries && bred.size() < at_once; ++tries) {
        auto child = Breed(parents);
        if (child.ok() && seen_.insert(child->Fingerprint()).second) {
          bred.push_back(*std::move(child));
        }
      }
      for (std::optional<Individual>& child : FeaturizeAll(std::move(bred))) {
        if (child) children.push_back(*std::move(child));
      }
    }
    Predict(*model_, children);
    for (Individual& child : children) population_.push_back(std::move(child));
    SortByPrediction(population_);
    if (static_cast<int>(population_.size()) > options_.population) {
      population_.resize(options_.population);
    }
  }
}

std::vector<Individual> EvolutionarySearch::Neighbours(size_t want) {
  std::vector<Individual> neighbours;
  std::vector<const Individual*> parents;
  std::set<uint64_t> tiles;
  for (const Individual& one : measured_candidates_.elite()) {
    if (parents.size() == kNeighbourParents) break;
    if (tiles.insert(RegisterTile(one.candidate)).second) {
      parents.push_back(&one);
    }
  }
  if (parents.empty()) return neighbours;
  const size_t most = want * kNeighboursPerProposal;
  absl::flat_hash_set<uint64_t> drawn;
  for (size_t draw = 0; draw < 2 * most && neighbours.size() < most;) {
    std::vector<space::Candidate> bred;
    std::vector<const space::Candidate*> bred_from;
    for (; draw < 2 * most && neighbours.size() + bred.size() < most; ++draw) {
      const space::Candidate& parent =
          parents[rng_.Below(parents.size())]->candidate;
      auto child = space_->Mutate(parent, rng_);
      if (!child.ok()) continue;
      // Evolution has evaluated most of them, and dropped those that an earlier
      // model ranked low.
      const uint64_t fingerprint = child->Fingerprint();
      if (tried_.contains(fingerprint) || !drawn.insert(fingerprint).second) {
        continue;
      }
      bred.push_back(*std::move(child));
      bred_from.push_back(&parent);
    }
    std::vector<std::optional<Individual>> made = FeaturizeAll(std::move(bred));
    for (size_t i = 0; i < made.size(); ++i) {
      if (!made[i]) continue;
      made[i]->step = StepBetween(*bred_from[i], made[i]->candidate);
      neighbours.push_back(*std::move(made[i]));
    }
  }
  Rank(*model_, neighbours);
  return neighbours;
}

absl::Status EvolutionarySearch::TakeNeighbours(
    size_t want, std::vector<Proposal>* proposals) {
  std::vector<Individual> neighbours = Neighbours(want);
  while (proposals->size() < want && !neighbours.empty()) {
    const bool new_tile = ++near_taken_ % kNeighboursPerNewTile == 0;
    // A tile that was tried with other decisions counts as new here.
    const size_t next = new_tile ? FirstWithNewTile(neighbours, near_tiles_)
                                 : steps_.Next(neighbours);
    if (!new_tile) steps_.Proposed(neighbours[next]);
    near_tiles_.insert(RegisterTile(neighbours[next].candidate));
    TF_RETURN_IF_ERROR(Take(Remove(neighbours, next), proposals));
  }
  return absl::OkStatus();
}

std::vector<Individual> EvolutionarySearch::CandidatesOf(int sketch) {
  const auto& best = best_of_sketch_[static_cast<size_t>(sketch)];
  std::vector<space::Candidate> drawn;
  for (size_t i = 0; i < kCandidatesPerShare / 2 && best; ++i) {
    auto candidate = space_->Mutate(best->candidate, rng_);
    if (candidate.ok()) drawn.push_back(*std::move(candidate));
  }
  std::vector<Individual> made = EvaluateAll(std::move(drawn));
  DrawUntil(
      kCandidatesPerShare, [&] { return space_->SampleOf(sketch, rng_); },
      made);
  Rank(*model_, made);
  return made;
}

absl::Status EvolutionarySearch::TakeShares(size_t want,
                                            std::vector<Proposal>* proposals) {
  // Sketches are compared by their trials alone, and the candidates of one
  // sketch by the model.
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

}  // namespace tilefarm::search
