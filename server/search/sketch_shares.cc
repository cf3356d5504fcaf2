#include "server/search/sketch_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tilefarm::search {

void SketchShares::Proposed(int sketch) { ++states_[Index(sketch)].trials; }

void SketchShares::Measured(int sketch, double seconds) {
  double& best = states_[Index(sketch)].best_seconds;
  if (seconds > 0 && (best == 0 || seconds < best)) best = seconds;
}

std::optional<int> SketchShares::Next(std::span<const double> guesses) const {
  double fastest = std::numeric_limits<double>::infinity();
  size_t leader = states_.size();
  for (size_t i = 0; i < states_.size(); ++i) {
    const double best = states_[i].best_seconds;
    if (best == 0 || best >= fastest) continue;
    fastest = best;
    leader = i;
  }
  std::optional<int> next;
  // The least (trials up to kMinTrials, guess or hoped-for seconds).
  std::pair<int64_t, double> least;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!std::isfinite(guesses[i])) continue;
    const State& state = states_[i];
    std::pair<int64_t, double> rank{state.trials, guesses[i]};
    if (state.trials >= kMinTrials) {
      if (state.best_seconds == 0 || i == leader) continue;
      const double hope = state.best_seconds /
                          (1 + kOptimism / static_cast<double>(state.trials));
      if (hope >= fastest) continue;
      rank = {kMinTrials, hope};
    }
    if (next && rank >= least) continue;
    next = static_cast<int>(i);
    least = rank;
  }
  return next;
}

}  // namespace tilefarm::search
