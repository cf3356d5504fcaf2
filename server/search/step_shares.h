// Which step away from the fastest candidates is taken next.
//
// A model that saw a decision together with bad ones predicts it to be bad
// everywhere. By its predictions alone, the same few decisions would be changed
// again and again. Therefore every decision of the fastest candidates gets its
// turn, and so does each value of a decision; the model chooses only between
// steps with equal claims.
#ifndef TILEFARM_SERVER_SEARCH_STEP_SHARES_H_
#define TILEFARM_SERVER_SEARCH_STEP_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "server/search/individual.h"

namespace tilefarm::search {

class StepShares {
 public:
  // The index of the neighbour that is due. `ranked` by the model; not empty.
  size_t Next(std::span<const Individual> ranked) const;
  // The neighbour was proposed.
  void Proposed(const Individual& neighbour);

 private:
  // Counts by sketch and decision, and by these and the new value.
  std::map<std::pair<int, int>, int64_t> by_decision_;
  std::map<std::pair<int, Step>, int64_t> by_step_;
};

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_STEP_SHARES_H_
