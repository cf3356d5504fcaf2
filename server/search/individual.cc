#include "server/search/individual.h"

#include <algorithm>

#include "base/hash.h"

namespace tilefarm::search {
namespace {

// Weight of a sample whose device was unsteady: low, so that it matters only
// where there are no better samples.
constexpr float kUnsteadyWeight = 0.25f;

}  // namespace

void Predict(const cost_model::CostModel& model,
             std::vector<Individual>& individuals) {
  if (individuals.empty()) return;
  std::vector<const cost_model::FeatureRows*> rows;
  rows.reserve(individuals.size());
  for (const Individual& individual : individuals) {
    rows.push_back(&individual.features);
  }
  const std::vector<float> predicted = model.Predict(rows);
  for (size_t i = 0; i < individuals.size(); ++i) {
    individuals[i].predicted = predicted[i];
  }
}

void SortByPrediction(std::vector<Individual>& individuals) {
  std::stable_sort(individuals.begin(), individuals.end(),
                   [](const Individual& x, const Individual& y) {
                     return x.predicted > y.predicted;
                   });
}

void Rank(const cost_model::CostModel& model,
          std::vector<Individual>& individuals) {
  Predict(model, individuals);
  SortByPrediction(individuals);
}

cost_model::Sample MakeSample(const Individual& individual, int64_t group,
                              const std::string& candidate_id, double seconds,
                              bool unsteady) {
  cost_model::Sample sample;
  sample.features = individual.features;
  sample.group = group;
  sample.id = Sha256Prefix(candidate_id) | 1;  // 0 means no id
  if (unsteady) sample.weight = kUnsteadyWeight;
  // The model compares seconds with the best of the group, and does so again
  // when a better one comes.
  sample.seconds = seconds;
  return sample;
}

Individual Remove(std::vector<Individual>& individuals, size_t at) {
  Individual removed = std::move(individuals[at]);
  individuals.erase(individuals.begin() + static_cast<std::ptrdiff_t>(at));
  return removed;
}

Step StepBetween(const space::Candidate& parent,
                 const space::Candidate& child) {
  Step step;
  for (size_t i = 0; i < child.decisions.size(); ++i) {
    if (child.decisions[i] == parent.decisions[i]) continue;
    if (step.decision >= 0) return {};
    const ir::AttrList* factors = child.decisions[i].AsList();
    const ir::Attr& to = factors == nullptr || factors->empty()
                             ? child.decisions[i]
                             : factors->back();
    step = {static_cast<int>(i), to.AsInt().value_or(0)};
  }
  return step;
}

uint64_t RegisterTile(const space::Candidate& candidate) {
  size_t levels = 0;
  for (const ir::Attr& decision : candidate.decisions) {
    const ir::AttrList* factors = decision.AsList();
    if (factors != nullptr) levels = std::max(levels, factors->size());
  }
  space::Candidate tile{candidate.sketch, {}};
  for (const ir::Attr& decision : candidate.decisions) {
    const ir::AttrList* factors = decision.AsList();
    if (factors != nullptr && levels > 0 && factors->size() == levels) {
      tile.decisions.push_back(factors->back());
    }
  }
  return tile.Fingerprint();
}

size_t FirstWithNewTile(const std::vector<Individual>& individuals,
                        const absl::flat_hash_set<uint64_t>& tiles) {
  for (size_t i = 0; i < individuals.size(); ++i) {
    if (!tiles.contains(RegisterTile(individuals[i].candidate))) return i;
  }
  return 0;
}

}  // namespace tilefarm::search
