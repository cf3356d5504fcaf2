// The runner's conversation with its worker: keeps workloads, forks a child
// per candidate, and judges what comes back.
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
#include "worker/runner/measure.h"
#include "worker/runner/sandbox.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Single-threaded, and the process must be: it forks without exec. Owns its
// workloads; the least recently used are dropped beyond `cache_bytes`.
class Runner {
 public:
  struct Options {
    int input_fd = 0;
    int output_fd = 1;
    uint64_t cache_bytes = DefaultCacheBytes();
  };
  // `sandbox` must outlive it.
  Runner(const Options& options, const Sandbox& sandbox);
  ~Runner();

  // Answers requests until the end of input (0), until the peer breaks the
  // protocol (2), or until a child has been left that nothing ends (3), which
  // the end of this process may: the exit status of the program.
  int Serve();

  // 4 GiB, or a quarter of a smaller machine's memory.
  static uint64_t DefaultCacheBytes();

 private:
  struct Workload;

  // Has a child run `body` with the artifact; says what it had of the sandbox.
  ChildOutcome RunConfined(const std::string& bytes, const ChildLimits& limits,
                           uint64_t run_id, SharedRun* run,
                           const std::function<void(int artifact_fd)>& body,
                           const GiveUp& give_up, Isolation* isolation);
  bool Reply(RunnerFrame type, const std::string& payload);
  LoadReply Load(LoadWorkload request);
  RunReply Run(const RunRequest& request);
  // Null where the key is unknown; moves it to the front.
  Workload* Find(const std::string& key);
  void EvictBeyondLimit();
  // Inputs, the oracle's outputs and bounds, and whether all outputs are
  // finite. The error is empty on success.
  std::string RunReference(const LoadWorkload& request, bool positive,
                           Workload* workload, double* seconds, bool* finite);
  // Tells the run how the core is alone, as former children saw it, and how
  // long to wait for that.
  void DescribeCore(uint32_t cpu, bool races, SharedRun* run) const;
  // `spread` as RunRequest has it.
  void Judge(const Workload& workload, const SharedRun& run, double spread,
             RunReply* reply);

  const Options options_;
  const Sandbox& sandbox_;
  std::list<std::unique_ptr<Workload>> workloads_;  // most recent first
  // What children saw of each core, latest last.
  std::map<uint32_t, std::deque<double>> contentions_;
  double credit_ = 1.5;  // seconds that runs may wait for a core to be alone
  uint64_t cancelled_run_ = 0;  // named by the last kCancel between runs
  bool worker_gone_ = false;
  bool stuck_ = false;  // a child does not end
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_RUNNER_H_
