// The time of a candidate on an invented device.
#ifndef TILEFARM_TESTS_SEARCH_FAKE_SECONDS_H_
#define TILEFARM_TESTS_SEARCH_FAKE_SECONDS_H_

#include <cmath>

#include "compiler/space/design_space.h"

namespace tilefarm::search {

// Tiles near 16 x 16 with a long inner reduction are fast, in few blocks.
inline double FakeSeconds(const space::Candidate& candidate) {
  double penalty = 1;
  for (const ir::Attr& decision : candidate.decisions) {
    const ir::AttrList* factors = decision.AsList();
    if (factors == nullptr || factors->empty()) continue;
    const double inner =
        static_cast<double>(factors->back().AsInt().value_or(1));
    const double outer =
        static_cast<double>(factors->front().AsInt().value_or(1));
    penalty += std::abs(std::log2(inner) - 4) + std::log2(outer) / 4;
  }
  return 1e-4 * penalty;
}

}  // namespace tilefarm::search

#endif  // TILEFARM_TESTS_SEARCH_FAKE_SECONDS_H_
