// Which sketch of a design space deserves a trial.
//
// Sketches are different ways to compute a task (directly or by Winograd's
// algorithm, with a packed operand or without), and each needs its own tiles. A
// few bad tiles do not show that a sketch is bad, and trials are wasted on a
// sketch that is explored. The rule: after n trials, a sketch may still improve
// its best time by a factor of 1 + kOptimism / n. If it would not be the
// fastest even then, it has had its share.
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
  // Trials before a sketch is judged, and its possible gain after one trial.
  static constexpr int64_t kMinTrials = 2;
  static constexpr double kOptimism = 2;

  explicit SketchShares(size_t sketches) : states_(sketches) {}

  // A candidate of the sketch was proposed.
  void Proposed(int sketch);
  // A candidate of the sketch took so many seconds. Nothing is called for a
  // failure: it is a proposal without a measurement.
  void Measured(int sketch, double seconds);

  // The sketch that deserves the next trial, of those with a finite `guess`,
  // the predicted time of the best candidate at hand. First those with fewer
  // than kMinTrials, ordered by trials and guess; then the one that may become
  // the fastest, unless it is the fastest already. nullopt: all had their
  // share.
  std::optional<int> Next(std::span<const double> guesses) const;

  int64_t trials(int sketch) const { return states_[Index(sketch)].trials; }
  // The sketch's best time; 0: none measured yet.
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
