// A candidate as the search carries it.
#ifndef TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_
#define TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/space/design_space.h"
#include "cost_model/cost_model.h"

namespace tilefarm::search {

// A candidate that has been featurised.
struct Individual {
  space::Candidate candidate;
  cost_model::FeatureRows features;
  float predicted = 0;
  double seconds = 0;    // measured; 0: not yet
  bool in_space = true;  // has a candidate, so that it may breed
};

void Predict(const cost_model::CostModel& model,
             std::vector<Individual>& individuals);
// The best predicted first.
void SortByPrediction(std::vector<Individual>& individuals);
// Both.
void Rank(const cost_model::CostModel& model,
          std::vector<Individual>& individuals);

// What the model learns of one that took so many seconds; 0: it failed.
// `unsteady`: its device was not well.
cost_model::Sample MakeSample(const Individual& individual, int64_t group,
                              const std::string& candidate_id, double seconds,
                              bool unsteady);

// Equal for candidates of one sketch whose deepest tilings (those of spatial
// loops) have the same innermost factors.
uint64_t RegisterTile(const space::Candidate& candidate);

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_
