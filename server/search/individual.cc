#include "server/search/individual.h"

#include <algorithm>

namespace tilefarm::search {

void Predict(const cost_model::CostModel& model,
             std::vector<Individual>& individuals) {
  if (individuals.empty()) return;
  std::vector<const cost_model::FeatureRows*> rows;
  rows.reserve(individuals.size());
  for (const Individual& individual : individuals) {
    rows.push_back(&individual.features);
  }
  const std::vector<float> predicted = model.PredictAll(rows);
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

}  // namespace tilefarm::search
