// Asks a tune-runner about itself and its device, before it is started to
// measure.
#ifndef TILEFARM_WORKER_RUNNER_QUERY_H_
#define TILEFARM_WORKER_RUNNER_QUERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::worker {

// The standard output of `runner_command` with `question` as another argument,
// as far as it arrives within some seconds; empty: it cannot be started.
std::string AskRunner(std::vector<std::string> runner_command,
                      const std::string& question);

// How that runner isolates candidates (isolation.h); "none": it does not say.
std::string RunnersIsolation(std::vector<std::string> runner_command);

// What the runner of a GPU says about it (`--properties`).
struct GpuDevice {
  std::string target;  // "cuda:sm_90a", "opencl:mali"
  std::string brand;   // with driver and clocks
  std::string bus_id;  // unique in its machine
  int64_t multiprocessor_shared_bytes = 0;
  int64_t l2_bytes = 0;
  uint64_t memory_bytes = 0;
};

// FailedPrecondition: there is no such GPU, or no driver for it; says why.
absl::StatusOr<GpuDevice> RunnersGpu(std::vector<std::string> runner_command);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_QUERY_H_
