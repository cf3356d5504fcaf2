// A candidate of the search, with its features.
#ifndef TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_
#define TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/space/design_space.h"
#include "cost_model/cost_model.h"

namespace tilefarm::search {

// The difference between two candidates of one sketch: one decision.
struct Step {
  int decision = -1;  // which one; -1: more than one, or none
  // Its new value; for a tiling, the innermost factor.
  int64_t to = 0;
  auto operator<=>(const Step&) const = default;
};

// A candidate that has been featurised.
struct Individual {
  space::Candidate candidate;
  cost_model::FeatureRows features;
  float predicted = 0;
  double seconds = 0;    // measured; 0: not yet
  bool in_space = true;  // a point of the design space, so that it may breed
  Step step;             // of a neighbour: from its parent
};

void Predict(const cost_model::CostModel& model,
             std::vector<Individual>& individuals);
// The best predicted first.
void SortByPrediction(std::vector<Individual>& individuals);
// Both.
void Rank(const cost_model::CostModel& model,
          std::vector<Individual>& individuals);

// The training sample of a candidate that took so many seconds; 0: it failed.
// `unsteady`: its device was not well.
cost_model::Sample MakeSample(const Individual& individual, int64_t group,
                              const std::string& candidate_id, double seconds,
                              bool unsteady);

// Takes one out.
Individual Remove(std::vector<Individual>& individuals, size_t at);

Step StepBetween(const space::Candidate& parent, const space::Candidate& child);

// Equal for candidates of one sketch whose deepest tilings (those of spatial
// loops) have the same innermost factors.
uint64_t RegisterTile(const space::Candidate& candidate);
// The index of the first whose register tile is not one of these; 0: none.
size_t FirstWithNewTile(const std::vector<Individual>& individuals,
                        const absl::flat_hash_set<uint64_t>& tiles);

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_INDIVIDUAL_H_
