// Decides how long a candidate is measured.
//
// A candidate races against the best median so far. It has lost when its
// samples cannot be those of a candidate that is as fast. It has run long
// enough when its own median is known well, or its time is over.
#ifndef TILEFARM_WORKER_RUNNER_SAMPLE_RACE_H_
#define TILEFARM_WORKER_RUNNER_SAMPLE_RACE_H_

#include <cstdint>
#include <vector>

namespace tilefarm::worker {

enum class RaceVerdict {
  kGoOn,
  kEnough,     // measured in full
  kCannotWin,  // slower than the best with sufficient certainty
};

struct RaceRules {
  uint32_t least = 5;  // samples of a candidate that may win
  uint32_t most = 30;
  double target_seconds = 0.04;  // spent on samples, where `least` allows
  double best_seconds = 0;       // 0: nothing to race against
};

// A verdict is made after every sample, so the test must be valid for repeated
// use:
//
// kCannotWin: each of the first n samples is slower than the best by a factor,
// where (n, factor) is (2, 1.5), (3, 1.25) or (5, 1.1). If the true median were
// no more than the best, five independent samples would all be above it with
// probability 1/32, for every distribution and however often this is tested:
// the event for six samples is part of that for five. The tests of two and
// three samples rest on the size of disturbances of a sample that was not
// switched out: at most one sample in twenty is a quarter slower, so three in a
// row, or two that are half as slow again, are very rare. The factors also
// allow for a machine that became slower after the best was measured.
//
// kEnough: at least six samples are so close together that the 95 % interval of
// the median is within 1 %, or that interval begins 3 % behind the best, or the
// target time is spent. A candidate that is 3 to 10 % behind may still become a
// finalist, whose time is measured again, in case the machine was slow for a
// while.
class SampleRace {
 public:
  explicit SampleRace(const RaceRules& rules) : rules_(rules) {}

  // The verdict after another sample with `seconds` per run, which took `spent`
  // in total.
  RaceVerdict Add(double seconds, double spent);

  // The samples so far may be slower than the candidate itself by this factor:
  // a candidate loses only if it is slower than the best by that much more.
  void Excuse(double factor) { excuse_ = factor; }

 private:
  bool CannotWin() const;

  const RaceRules rules_;
  double excuse_ = 1;
  std::vector<double> samples_;
  double spent_ = 0;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SAMPLE_RACE_H_
