// What tune-runner asks of its child that uses a device, one candidate after
// another, over a socket (descriptors.h):
//
//   runner                              child
//                                   <-    "" when its context is made; else why
//     job, descriptors              ->    loads, runs, times
//                                   <-    kReady or kSpent
//
// The descriptors are those of the artifact, of the inputs, which nobody can
// write to, and of the results. The child writes its report and the outputs
// into the results (ChildReport); a candidate's code can write there as well.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_JOB_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_JOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

struct DeviceJob {
  // Another number, other inputs: they stay on the device for later jobs.
  uint64_t workload = 0;
  ProgramSpec program;
  RunRequest request;  // without the artifact
};

std::string Encode(const DeviceJob& job);
bool Decode(std::string_view payload, DeviceJob* job);

// Answers to a job.
inline constexpr char kReady[] = "ready";
inline constexpr char kSpent[] = "spent";  // its context is no longer usable

// Where the inputs and the results of a program lie in their files.
struct DeviceLayout {
  explicit DeviceLayout(const ProgramSpec& program);
  std::vector<size_t> inputs;   // by parameter; meaningless unless it is read
  std::vector<size_t> outputs;  // in the order of the parameters written
  size_t inputs_bytes = 0;
  size_t outputs_bytes = 0;
  size_t report_bytes = 0;  // the first outputs follow, then the last ones
  size_t results_bytes() const { return report_bytes + 2 * outputs_bytes; }
};

// Rounded up to a multiple of 64, to which the parts of results are aligned.
inline size_t Padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_JOB_H_
