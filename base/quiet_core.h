// Whether this thread has its core to itself.
//
// Another hardware thread of the core, used by this system or by another
// virtual machine, takes a share of the core's ports and of its first-level
// cache. This slows kernels down by up to a third, and neither context switches
// nor the clock show it. Uses the C++ library only, because tune-runner
// compiles it and links nothing else.
#ifndef TILEFARM_BASE_QUIET_CORE_H_
#define TILEFARM_BASE_QUIET_CORE_H_

#include <vector>

namespace tilefarm {

// The ratio of two times: reading from the second-level cache, and a chain of
// dependent multiplications, which another hardware thread hardly slows down.
// The clock frequency cancels out. While the core is not shared, the ratio is a
// constant of the kind of core, to about 2 %; on a shared core it is a fifth
// more up to twice as much. Takes about 8 microseconds and 128 KiB of that
// cache.
double CoreContention();

// Estimates from several contentions that of the unshared core: a low quantile,
// but of many values not the least, because another hardware thread may slow
// down the chain, too. 0 if there are none.
double AloneContention(std::vector<double> seen);

// AloneContention of `looks` at this core, half a millisecond apart.
double LearnAloneContention(int looks);

// Looks at the core that the calling thread runs on.
class QuietCore {
 public:
  // `alone` is the contention of this kind of core when it is not shared. 0: it
  // is not known, and the core counts as quiet.
  explicit QuietCore(double alone) : alone_(alone) {}

  bool IsQuiet() const { return !(alone_ > 0) || IsQuiet(CoreContention()); }
  // Whether the core was quiet when it had this contention.
  bool IsQuiet(double contention) const;
  // Sleeps until the core is quiet, for at most `seconds`; with 0 it looks
  // once. Returns whether the core is quiet.
  bool Await(double seconds) const;

 private:
  const double alone_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_QUIET_CORE_H_
