// Which sketch of a design space deserves a trial.
//
// Sketches are ways to do a thing (direct or by Winograd's algorithm, with a
// packed operand or without), each with tiles of its own. How good one is shows
// when its tiles are good, so a few bad tiles must not end it; nor may trials
// go to one that has shown what it can do. The rule: with n trials behind it, a
// sketch may still gain a factor of 1 + kOptimism / n on its best. One that
// would not be ahead even so has had its share.
#ifndef TILEFARM_SERVER_SEARCH_SKETCH_SHARES_H_
#define TILEFARM_SERVER_SEARCH_SKETCH_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilefarm::search {

class SketchShares {
 public:
  // Trials before a sketch is judged, and what it may gain after one.
  static constexpr int64_t kMinTrials = 2;
  static constexpr double kOptimism = 2;

  explicit SketchShares(size_t sketches) : states_(sketches) {}

  // A candidate of the sketch is on its way.
  void Proposed(int sketch);
  // It ran, in so many seconds; failures are proposals without a measurement.
  void Measured(int sketch, double seconds);

  // The sketch that deserves the next trial, of those with a finite `guess`
  // (the time of the best candidate at hand, by whatever model there is): first
  // those with fewer than kMinTrials, in the order of trials and guesses; then
  // the one that may become the fastest, unless it is that already. nullopt
  // where all have had their share.
  std::optional<int> Next(std::span<const double> guesses) const;

  int64_t trials(int sketch) const { return states_[Index(sketch)].trials; }
  // Of the sketch; 0: none measured yet.
  double best_seconds(int sketch) const {
    return states_[Index(sketch)].best_seconds;
  }

 private:
  struct State {
    int64_t trials = 0;
    double best_seconds = 0;
  };
  static size_t Index(int sketch) { return static_cast<size_t>(sketch); }

  std::vector<State> states_;
};

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_SKETCH_SHARES_H_
