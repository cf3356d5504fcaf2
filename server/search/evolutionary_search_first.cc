// Proposals before the model has results of the task, and random proposals.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "server/search/evolutionary_search.h"

namespace tilefarm::search {
namespace {

// Random candidates evaluated for each draft proposed, and the share of drafts
// that are drawn at random nevertheless.
constexpr int kDraftsPerProposal = 16;
constexpr double kBlindDrafts = 0.25;
// If so many points in a row are illegal, and none was legal before, there is
// none.
constexpr int kMostIllegal = 500;
// One draft in so many goes to the sketch that deserves a trial (SketchShares),
// whatever the estimates of the sketches are.
constexpr size_t kDraftsPerShare = 2;

}  // namespace

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
  if (default_candidate_.empty()) {
    default_candidate_ = CandidateId(task_id_, ir::ProgramHash(*scheduled),
                                     options_.fingerprint);
  }
  Individual individual;
  individual.features = cost_model::ExtractFeatures(*scheduled, target_);
  // The default schedule is a point of the space, and breeds like others.
  absl::StatusOr<space::Candidate> candidate = space_->FromRecord(trace);
  individual.in_space = candidate.ok();
  if (candidate.ok()) {
    seen_.insert(candidate->Fingerprint());
    tried_.insert(candidate->Fingerprint());
    individual.candidate = *std::move(candidate);
  }
  ProposeOnce(*scheduled, text, std::move(individual), proposals);
  return absl::OkStatus();
}

void EvolutionarySearch::Suggest(const std::string& source,
                                 const std::string& trace) {
  if (options_.strategy != Strategy::kEvolutionary) return;
  const auto parsed = schedule::Trace::Parse(trace);
  if (!parsed.ok()) return;
  auto candidate = space_->Nearest(*parsed);
  if (!candidate.ok()) return;
  std::erase_if(suggestions_, [&](const Suggestion& one) {
    return one.source == source || one.candidate == *candidate;
  });
  suggestions_.push_back({source, *std::move(candidate)});
}

absl::Status EvolutionarySearch::TakeSuggestions(
    size_t most, std::vector<Proposal>* proposals) {
  const size_t until = proposals->size() + most;
  size_t taken = 0;
  while (proposals->size() < until && taken < suggestions_.size()) {
    space::Candidate candidate = std::move(suggestions_[taken++].candidate);
    if (tried_.contains(candidate.Fingerprint())) continue;
    std::vector<Individual> one;
    if (auto individual = Featurize(std::move(candidate))) {
      one.push_back(*std::move(individual));
    }
    if (one.empty()) continue;
    if (model_->trained()) Predict(*model_, one);
    TF_RETURN_IF_ERROR(Take(std::move(one.front()), proposals));
  }
  suggestions_.erase(suggestions_.begin(),
                     suggestions_.begin() + static_cast<std::ptrdiff_t>(taken));
  return absl::OkStatus();
}

absl::Status EvolutionarySearch::TakeRandom(size_t want,
                                            std::vector<Proposal>* proposals) {
  // In a small space the last points are rarely drawn: the loop ends after so
  // many repeats in a row that hardly any point is left.
  const int64_t size = std::min<int64_t>(space_->ApproximateSize(), 20000);
  const int64_t max_repeats = 1000 + 12 * size;
  absl::Status why_not;
  int illegal = 0;
  for (int64_t repeats = 0; proposals->size() < want && repeats < max_repeats;
       ++repeats) {
    auto candidate = space_->Sample(rng_);
    if (!candidate.ok()) {
      why_not = candidate.status();
      break;
    }
    if (!seen_.insert(candidate->Fingerprint()).second) continue;
    std::optional<Individual> individual = Featurize(*candidate);
    if (!individual) {
      if (has_points_ || ++illegal < kMostIllegal) continue;
      why_not = space_->Apply(*candidate).status();
      break;
    }
    const size_t before = proposals->size();
    TF_RETURN_IF_ERROR(Take(*std::move(individual), proposals));
    if (proposals->size() > before) repeats = 0;
  }
  if (has_points_ || why_not.ok() || !proposals->empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the design space has no legal point: ", std::string(why_not.message())));
}

absl::Status EvolutionarySearch::TakeDrafts(size_t want,
                                            std::vector<Proposal>* proposals) {
  struct Draft {
    Individual individual;
    double cycles;
  };
  std::vector<Individual> drawn;
  DrawUntil(
      want * kDraftsPerProposal, [&] { return space_->Sample(rng_); }, drawn);
  if (model_->trained()) Predict(*model_, drawn);
  std::vector<Draft> drafts;
  for (Individual& one : drawn) {
    const double cycles = cost_model::EstimateCycles(one.features, target_);
    drafts.push_back({std::move(one), cycles});
  }
  std::stable_sort(
      drafts.begin(), drafts.end(),
      [](const Draft& x, const Draft& y) { return x.cycles < y.cycles; });
  // A model of other tasks, or of few results, does not decide alone.
  const auto favourite = [&](size_t turn) -> size_t {
    if (rng_.Chance(kBlindDrafts)) return rng_.Below(drafts.size());
    if (!model_->trained() || turn / kDraftsPerShare % 2 == 1) return 0;
    const auto best = std::ranges::max_element(
        drafts, {}, [](const Draft& d) { return d.individual.predicted; });
    return static_cast<size_t>(best - drafts.begin());
  };
  // The first remaining draft of the sketch that deserves a trial, if any does.
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
    if (!at) at = favourite(turn);
    Individual individual = std::move(drafts[*at].individual);
    drafts.erase(drafts.begin() + static_cast<std::ptrdiff_t>(*at));
    TF_RETURN_IF_ERROR(Take(std::move(individual), proposals));
  }
  // Drafts that are not proposed stay in the population for the model.
  for (Draft& draft : drafts) {
    if (static_cast<int>(population_.size()) >= options_.population) break;
    population_.push_back(std::move(draft.individual));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::search
