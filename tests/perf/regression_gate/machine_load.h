// Another process that loads the machine at random: it works for up to half a
// second, on a core drawn at random, in registers or through 64 MiB of memory,
// and sleeps as long.
#ifndef TILEFARM_TESTS_PERF_REGRESSION_GATE_MACHINE_LOAD_H_
#define TILEFARM_TESTS_PERF_REGRESSION_GATE_MACHINE_LOAD_H_

#include <sys/types.h>

#include <cstdint>

namespace tilefarm::regression {

class MachineLoad {
 public:
  // Starts it on the cores 0 ... cores - 1. It ends with this object, or with
  // this process.
  MachineLoad(uint64_t seed, int cores);
  ~MachineLoad();
  MachineLoad(const MachineLoad&) = delete;
  MachineLoad& operator=(const MachineLoad&) = delete;

 private:
  pid_t process_ = -1;
};

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_PERF_REGRESSION_GATE_MACHINE_LOAD_H_
