// Which step away from the fastest candidates is taken next.
//
// A model that has seen a decision fail in bad company has no hopes for it in
// good company, and by its word alone the same few decisions would be changed
// again and again. So of the neighbours of the fastest every decision has its
// turn, and in its turns everything it may become; only between steps alike
// does the model choose.
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
  // The index of the one that is due, of neighbours ranked by the model; there
  // is at least one.
  size_t Next(std::span<const Individual> ranked) const;
  // The neighbour was proposed.
  void Proposed(const Individual& neighbour);

 private:
  // Sketch and decision; the same and what it became.
  std::map<std::pair<int, int>, int64_t> by_decision_;
  std::map<std::pair<int, Step>, int64_t> by_step_;
};

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_STEP_SHARES_H_
