// Whether this thread has its core to itself.
//
// Another hardware thread of the core, of this system or of another virtual
// machine, takes a share of its ports and of its first-level cache. Neither
// context switches nor the clock tell, and kernels run up to a third slower
// meanwhile. Knows the C++ library only: tune-runner, which links nothing else,
// compiles it too.
#ifndef TILEFARM_BASE_QUIET_CORE_H_
#define TILEFARM_BASE_QUIET_CORE_H_

#include <vector>

namespace tilefarm {

// The time of reading from the second-level cache over that of a chain of
// dependent multiplications, which a neighbour hardly touches. The clock
// cancels out: a constant of the kind of core while it is alone, to about 2 %,
// and from a fifth more up to twice as much otherwise. Takes some 8
// microseconds, and 128 KiB of that cache.
double CoreContention();

// What of several contentions is that of the core alone: a low one of them; of
// many not the least, since a neighbour may hinder the chain as well. 0 for
// none.
double AloneContention(std::vector<double> seen);

// AloneContention of `looks` at this core, half a millisecond apart.
double LearnAloneContention(int looks);

// Of the core that the thread runs on.
class QuietCore {
 public:
  // `alone` is the contention of this kind of core while nothing else uses it;
  // 0: not known, and the core counts as quiet.
  explicit QuietCore(double alone) : alone_(alone) {}

  bool IsQuiet() const { return !(alone_ > 0) || IsQuiet(CoreContention()); }
  // Whether it was with this contention.
  bool IsQuiet(double contention) const;
  // Sleeps until it is, for at most `seconds`; looks once where that is 0.
  // Returns whether it is.
  bool Await(double seconds) const;

 private:
  const double alone_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_QUIET_CORE_H_
