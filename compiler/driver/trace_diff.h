// What one schedule of a program decides differently than another.
#ifndef TILEFARM_COMPILER_DRIVER_TRACE_DIFF_H_
#define TILEFARM_COMPILER_DRIVER_TRACE_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::driver {

// A decision that two traces take differently.
struct DecisionDiff {
  std::string what;   // "tile of loop i of block C"
  std::string first;  // "[8, 1, 4, 4]"; empty: it has no such decision
  std::string second;
};

struct TraceDiff {
  // The same instructions, but for decisions.
  bool same_sketch = false;
  // With the same sketch: each decision that differs, in order of the trace.
  // Otherwise: how often each has instructions and annotations that the other
  // has in another number, such as "rfactor": "1", "0"; with equal numbers, the
  // first instruction that differs: "instruction 7" and its texts.
  std::vector<DecisionDiff> decisions;
};

// Traces and program as text, as in records. InvalidArgument: a text does not
// parse. Names of loops and blocks are those where the decision is taken; a
// trace that does not replay so far has numbers in their place.
absl::StatusOr<TraceDiff> CompareTraces(const std::string& program,
                                        const std::string& first,
                                        const std::string& second);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_TRACE_DIFF_H_
