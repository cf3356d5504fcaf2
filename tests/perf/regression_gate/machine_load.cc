#include "tests/perf/regression_gate/machine_load.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "base/rng.h"
#include "tests/perf/regression_gate/cluster_process.h"

namespace tilefarm::regression {
namespace {

constexpr double kLongestPhase = 0.5;  // seconds

[[noreturn]] void Load(uint64_t seed, int cores) {
  using Clock = std::chrono::steady_clock;
  Rng rng(seed);
  std::vector<char> memory(size_t{64} << 20);
  volatile float value = 1;
  size_t at = 0;
  for (;;) {
    PinToCore(static_cast<int>(rng.Below(static_cast<uint64_t>(cores))));
    const std::chrono::duration<double> work(kLongestPhase * rng.Uniform());
    const double pause = kLongestPhase * rng.Uniform();
    const bool in_memory = rng.Chance(0.5);
    for (const auto start = Clock::now(); Clock::now() - start < work;) {
      for (int i = 0; i < 20'000; ++i) {
        if (in_memory) {
          ++memory[at];
          at = (at + 64) % memory.size();
        } else {
          value = value * 0.999f + 0.001f;
        }
      }
    }
    usleep(static_cast<useconds_t>(pause * 1e6));
  }
}

}  // namespace

MachineLoad::MachineLoad(uint64_t seed, int cores) {
  process_ = fork();
  if (process_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Load(seed, cores);
}

MachineLoad::~MachineLoad() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace tilefarm::regression
