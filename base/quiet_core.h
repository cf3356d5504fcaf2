// Whether this thread has its core to itself.
//
// Another hardware thread of the core, used by this system or by another
// virtual machine, takes a share of the core's ports and of its L1 cache. This
// slows kernels down by up to a third, and is not visible in context switches
// or the clock. Uses the C++ library only, because tune-runner compiles it and
// links nothing else.
#ifndef TILEFARM_BASE_QUIET_CORE_H_
#define TILEFARM_BASE_QUIET_CORE_H_

#include <vector>

namespace tilefarm {

// The ratio of two times: reading from the L2 cache, and a chain of dependent
// multiplications, which another hardware thread hardly slows down. The clock
// frequency cancels out. While the core is not shared, the ratio is a constant
// of the kind of core, to about 2 %; on a shared core it is 1.2 to 2 times as
// large. Takes about 8 microseconds and uses 128 KiB of that cache.
double CoreContention();

// Estimates the contention of the unshared core from several measured ones: a
// low quantile, but not the minimum of many values, because another hardware
// thread may slow down the chain, too. 0 if there are none.
double AloneContention(std::vector<double> seen);

// AloneContention of `looks` measurements on this core, 0.5 ms apart.
double LearnAloneContention(int looks);

// Measures the core on which the calling thread runs.
class QuietCore {
 public:
  // `alone` is the contention of this kind of core when it is not shared. 0:
  // unknown; the core then counts as quiet.
  explicit QuietCore(double alone) : alone_(alone) {}

  bool IsQuiet() const { return !(alone_ > 0) || IsQuiet(CoreContention()); }
  // Whether the core was quiet when it had this contention.
  bool IsQuiet(double contention) const;
  // Sleeps until the core is quiet, for at most `seconds`; 0: checks once.
  // Returns whether the core is quiet.
  bool Await(double seconds) const;

 private:
  const double alone_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_QUIET_CORE_H_
