#include "worker/runner/sample_race.h"

#include <algorithm>

#include "base/statistics.h"

namespace tilefarm::worker {
namespace {

struct Look {
  size_t samples;
  double slower_by;
};
constexpr Look kLooks[] = {{2, 1.5}, {3, 1.25}, {5, 1.1}};

// The smallest number of samples with a 95 % interval.
constexpr size_t kIntervalSamples = 6;
constexpr double kCloseTogether = 0.01;
// A candidate that is certainly slower than the best by this factor needs no
// more exact time.
constexpr double kSurelyBehind = 1.03;

}  // namespace

bool SampleRace::CannotWin() const {
  if (rules_.best_seconds <= 0) return false;
  const double fastest = *std::min_element(samples_.begin(), samples_.end());
  return std::any_of(std::begin(kLooks), std::end(kLooks), [&](Look look) {
    return samples_.size() >= look.samples &&
           fastest > look.slower_by * excuse_ * rules_.best_seconds;
  });
}

RaceVerdict SampleRace::Add(double seconds, double spent) {
  samples_.push_back(seconds);
  spent_ += spent;
  if (CannotWin()) return RaceVerdict::kCannotWin;
  if (samples_.size() < rules_.least) return RaceVerdict::kGoOn;
  if (samples_.size() >= rules_.most || spent_ >= rules_.target_seconds) {
    return RaceVerdict::kEnough;
  }
  if (samples_.size() < kIntervalSamples) return RaceVerdict::kGoOn;
  const MedianInterval interval = MedianOf(samples_);
  const bool known =
      interval.high - interval.low <= kCloseTogether * interval.median;
  const bool behind =
      rules_.best_seconds > 0 &&
      interval.low > kSurelyBehind * excuse_ * rules_.best_seconds;
  return known || behind ? RaceVerdict::kEnough : RaceVerdict::kGoOn;
}

}  // namespace tilefarm::worker
