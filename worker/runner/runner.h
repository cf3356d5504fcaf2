// Answers the worker's requests: keeps workloads, forks a child for each
// candidate, and judges its results.
#ifndef TILEFARM_WORKER_RUNNER_RUNNER_H_
#define TILEFARM_WORKER_RUNNER_RUNNER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/runner/buffers.h"
#include "worker/runner/child.h"
#include "worker/runner/compare.h"
#include "worker/runner/device_child.h"
#include "worker/runner/measure.h"
#include "worker/runner/sandbox.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// The process must have a single thread, because it forks without exec. Owns
// its workloads; beyond `cache_bytes` the least recently used are dropped.
class Runner {
 public:
  struct Options {
    int input_fd = 0;
    int output_fd = 1;
    uint64_t cache_bytes = DefaultCacheBytes();
    // Runs candidates, which use a device; null: they run on this machine's
    // processor. Oracles always do.
    DeviceChild* device = nullptr;
  };
  // `sandbox` and the device's child must outlive it.
  Runner(const Options& options, const Sandbox& sandbox);
  ~Runner();

  // Answers requests, and returns the exit status of the program: 0 at the end
  // of input, 2 if the peer breaks the protocol, 3 if a child cannot be ended.
  // The end of this process may end that child.
  int Serve();

  // 4 GiB, or a quarter of the memory of a smaller machine.
  static uint64_t DefaultCacheBytes();

 private:
  struct Workload;

  // Runs `body` with files of the artifacts in a child, and returns its
  // isolation. `may_call_libraries`: an artifact that names a library of
  // kernels is confined as that library needs.
  ChildOutcome RunConfined(
      const std::vector<const std::string*>& artifacts, bool may_call_libraries,
      const ChildLimits& limits, uint64_t run_id, SharedRun* run,
      const std::function<void(const std::vector<int>& files)>& body,
      const GiveUp& give_up, Isolation* isolation);
  // Describes how a child ended that did not finish.
  static std::string DescribeEnd(const ChildOutcome& outcome,
                                 const ChildLimits& limits,
                                 const ChildReport& report);
  // The limits of a child, plus the memory that it maps for our buffers.
  static ChildLimits WithBuffers(ChildLimits limits, const ProgramSpec& program,
                                 uint64_t further_bytes);
  bool Reply(RunnerFrame type, const std::string& payload);
  LoadReply Load(LoadWorkload request);
  RunReply Run(const RunRequest& request);
  // runner_compare.cc.
  CompareReply Compare(const CompareRequest& request);
  static void JudgeModels(const Workload& workload, const KeptOutputs& baseline,
                          const KeptOutputs& candidate, CompareReply* reply);
  // runner_device.cc. Moves the inputs to where the device's child gets them.
  // False: out of memory.
  bool PrepareForDevice(Workload* workload);
  RunReply RunOnDevice(const RunRequest& request, Workload& workload);
  // Runs the candidate once. `*suspect`: the device may be to blame.
  RunReply TryOnDevice(const RunRequest& request, Workload& workload,
                       int artifact_fd, bool* suspect);
  // Moves the workload to the front; null: the key is unknown.
  Workload* Find(const std::string& key);
  void EvictBeyondLimit();
  // Makes the inputs, the oracle's outputs and bounds, and finds out whether
  // all outputs are finite. The error is empty on success.
  std::string RunReference(const LoadWorkload& request, bool positive,
                           Workload* workload, double* seconds, bool* finite);
  // Gives the run the contention of the unshared core, as former children
  // measured it, and how long to wait for an unshared core.
  void DescribeCore(uint32_t cpu, bool races, SharedRun* run) const;
  // What a child has measured of its core, and how long it has waited.
  void NoteCore(const ChildLimits& limits, const ChildReport& report,
                double child_seconds);
  // Whether outputs of a first and a last run are right, and their errors.
  struct Judged {
    bool right = true;
    std::string error;  // of the first wrong one
    double max_abs_error = 0, max_rel_error = 0;
  };
  static Judged JudgeOutputs(const Workload& workload, const char* of_first_run,
                             const char* of_last_run, double spread);
  // `spread` as RunRequest has it.
  void Judge(const Workload& workload, const SharedRun& run, double spread,
             RunReply* reply);

  const Options options_;
  const Sandbox& sandbox_;
  DeviceChild* const device_;
  uint64_t last_serial_ = 0;  // of a workload for the device
  std::list<std::unique_ptr<Workload>> workloads_;  // most recent first
  // The contentions that children measured on each core, latest last.
  std::map<uint32_t, std::deque<double>> contentions_;
  double credit_ = 1.5;  // seconds that runs may wait for an unshared core
  uint64_t cancelled_run_ = 0;  // named by the last kCancel between runs
  bool worker_gone_ = false;
  bool stuck_ = false;  // a child cannot be ended
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_RUNNER_H_
