// A cluster of the study: a fresh process, pinned to a core, that loads two
// artifacts and times them alternately (server/regression/paired_ratio.h).
//
// The process is this program itself, executed anew, so that it gets its own
// addresses and pages.
#ifndef TILEFARM_TESTS_PERF_REGRESSION_GATE_CLUSTER_PROCESS_H_
#define TILEFARM_TESTS_PERF_REGRESSION_GATE_CLUSTER_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

struct ClusterRequest {
  std::string baseline, candidate;  // files of the artifacts
  int64_t baseline_work = 0, candidate_work = 0;
  int64_t n = 96;  // of the matrices
  bool candidate_first = false;
  int rounds = 1;
  int calls_per_sample = 1;
  int core = 0;
};

// Runs it and waits. Unavailable: the process cannot be started or fails.
absl::StatusOr<std::vector<Pair>> RunCluster(const ClusterRequest& request);

// The first argument of such a process.
inline constexpr char kClusterArgument[] = "--as-cluster";
// What it does; returns its exit code.
int ClusterMain(int argc, char** argv);

// Pins the calling thread. False: there is no such core, or not for us.
bool PinToCore(int core);

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_PERF_REGRESSION_GATE_CLUSTER_PROCESS_H_
