// How long a candidate is measured: as long as the decision about it needs.
//
// A candidate races against the best median so far. It is out once its samples
// cannot be those of a candidate that is as fast, and it has run long enough
// once its own median is known well, or its time is up.
#ifndef TILEFARM_WORKER_RUNNER_SAMPLE_RACE_H_
#define TILEFARM_WORKER_RUNNER_SAMPLE_RACE_H_

#include <cstdint>
#include <vector>

namespace tilefarm::worker {

enum class RaceVerdict {
  kGoOn,
  kEnough,     // measured in full
  kCannotWin,  // measured well enough to say so
};

struct RaceRules {
  uint32_t least = 5;  // samples of one that may win
  uint32_t most = 30;
  double target_seconds = 0.04;  // spent on samples, where `least` allows
  double best_seconds = 0;       // 0: nothing to race against
};

// Samples are looked at one by one, so the test must hold at every look:
//
// kCannotWin where each of the first n samples is slower than the best by a
// factor, n and factor being (2, 1.5), (3, 1.25) or (5, 1.1). Were the true
// median no more than the best, five independent samples would all lie above
// it once in 32 times, whatever their distribution, and however often it is
// looked at: the event for six samples is part of that for five. The shorter
// looks rest on the size of what disturbs a sample that was not switched out:
// it adds a quarter to one of twenty at most, so to three in a row, or a half
// to two, hardly ever. The factors leave room for a machine that has become
// slower since the best was measured.
//
// kEnough where at least six samples lie so close together that the 95 %
// interval of the median is within 1 %, or where that interval begins 3 %
// behind the best, or the target time is spent. What is 3 to 10 % behind may
// still become a finalist, whose time is measured anew: should the machine have
// been slow for a while, nothing is lost.
class SampleRace {
 public:
  explicit SampleRace(const RaceRules& rules) : rules_(rules) {}

  // The verdict after a further sample, of `seconds` a run, that took `spent`
  // in all.
  RaceVerdict Add(double seconds, double spent);

  // The samples so far may be slower than the candidate is, by this factor:
  // only what is slower than the best by so much more cannot win.
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
