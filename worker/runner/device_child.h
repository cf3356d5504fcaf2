// The child that uses a device. A context does not survive a fork, and takes up
// to half a second to make with CUDA, so one child serves many candidates. It
// is replaced after an error that ends its context, at a deadline, after
// kMostJobs, and after a wrong result, because a kernel that writes anywhere
// may have changed what later ones find on the device.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_CHILD_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_CHILD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/control_group.h"
#include "worker/runner/child.h"
#include "worker/runner/device_driver.h"
#include "worker/runner/device_job.h"
#include "worker/runner/sandbox.h"

namespace tilefarm::worker {

// Of the runner, which has a single thread and never calls the driver itself.
class DeviceChild {
 public:
  // Candidates of one process. Each may leave something on the device.
  static constexpr uint32_t kMostJobs = 256;

  // `sandbox` must outlive it.
  DeviceChild(Sandbox& sandbox, DeviceName device)
      : sandbox_(sandbox), device_(std::move(device)) {}
  ~DeviceChild() { Drop(); }

  const DeviceName& device() const { return device_; }

  // Finds out with which confinement the driver works, and lowers the sandbox's
  // to that. The error; empty: a child is ready.
  std::string Try();

  // Measures a candidate, after starting a child if there is none. While it
  // runs, `control_fd` is watched as by Child::Await. kNotStarted: there is no
  // child, and `*error` says why. kAnswered: the results have its report.
  ChildOutcome Run(const DeviceJob& job, const std::vector<int>& descriptors,
                   int control_fd, const GiveUp& give_up, std::string* error);
  // Whether the last candidate was the first one of its child.
  bool was_first() const { return jobs_ == 1; }
  // Ends the child; the next candidate gets another one. False: it is stuck.
  bool Drop();

 private:
  // kAnswered: it is ready.
  ChildOutcome Start(const ChildLimits& limits, int control_fd, uint64_t run_id,
                     std::string* error);

  Sandbox& sandbox_;
  const DeviceName device_;
  std::unique_ptr<ControlGroup> group_;  // outlives child_
  std::unique_ptr<Child> child_;
  std::string folder_;  // for files of the driver; empty: none
  int socket_ = -1;
  uint32_t jobs_ = 0;  // that the child has got
  bool spent_ = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_CHILD_H_
