// Compares candidates that were measured several times: combines the
// measurements of each and finds the fastest. Pure functions, so that the
// database and a running job draw the same conclusions.
#ifndef TILEFARM_DATABASE_RACE_H_
#define TILEFARM_DATABASE_RACE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/statistics.h"
#include "database/record.h"

namespace tilefarm::database {

// A failure that is caused by the code and not by circumstances. A candidate
// with one such failure is never the best.
bool RulesOut(Status status);

// The re-measurements of one candidate, in their order. The rounds of one job
// were interleaved with those of its rivals, each in a process of its own, and
// count together; a measurement of another job, or by hand, replaces them.
class Rounds {
 public:
  // A full and verified one.
  void Add(const std::string& job_id, std::span<const double> seconds);

  int count() const { return count_; }  // 0: none
  const std::string& job_id() const { return job_id_; }
  const std::vector<double>& seconds() const { return seconds_; }
  MedianInterval interval() const { return MedianOf(seconds_); }

 private:
  int count_ = 0;
  std::string job_id_;
  std::vector<double> seconds_;
};

// Where a candidate stands.
struct Standing {
  double seconds = 0;        // median
  double low = 0, high = 0;  // its 95 % interval; 0 where it is not known
  // Measured again after it was found to be fast.
  bool confirmed = false;
  // Instructions of its trace: how complicated it is.
  int64_t instructions = 0;
};

// Instructions of a trace's text, one a line.
int64_t CountInstructions(std::string_view trace);

// What a candidate is ordered by: the median of a confirmed one, the upper end
// of the interval of any other.
double ClaimOf(const Standing& standing);
// Confirmed candidates are tied with the leader up to this ratio.
inline constexpr double kTied = 1.01;

// The index of the winner; there is at least one.
//
//  1. The one with the least claim leads. An unconfirmed one claims only the
//     upper end of its interval, since the fastest of many first times is
//     mostly the luckiest.
//  2. Confirmed ones within 1 % of a confirmed leader that its interval does
//     not tell from it are tied with it; of those the one with the fewest
//     instructions wins, then the faster, then the first.
size_t PickWinner(std::span<const Standing> standings);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RACE_H_
