// Runs and times one scheduled function in this process.
#ifndef TILEFARM_COMPILER_DRIVER_RUN_FUNCTION_H_
#define TILEFARM_COMPILER_DRIVER_RUN_FUNCTION_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "compiler/driver/loaded_library.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// A compiled function and memory for its parameters. Floats are between 1/2
// and 1, integers 0 (which is within bounds where they are indices), constant
// parameters packed ahead of time. Not thread-safe.
class RunnableFunction {
 public:
  // `target` is this machine, or fits it. InvalidArgument: more than 64
  // parameters; a GPU's; errors of Compile. ResourceExhausted: no memory for
  // the parameters.
  static absl::StatusOr<RunnableFunction> Make(const ir::PrimFunc& scheduled,
                                               const target::Target& target);

  // Internal: the function reports an error.
  absl::Status Run();

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  using Memory = std::unique_ptr<void, Free>;
  static absl::StatusOr<Memory> Allocate(size_t bytes);
  absl::Status Pack(const std::vector<int>& parameters);

  LoadedLibrary library_;
  void* function_ = nullptr;
  std::vector<Memory> memory_;
  std::vector<void*> arguments_;  // for any number of parameters
  size_t parameters_ = 0;
};

// Seconds of one run: the median of samples of `budget` in all, each long
// enough for the clock, after a first run that does not count. Warm caches.
absl::StatusOr<MedianInterval> TimeFunction(RunnableFunction& function,
                                            absl::Duration budget,
                                            Clock& clock);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_RUN_FUNCTION_H_
