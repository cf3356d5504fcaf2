// Clusters of one comparison on the farm's devices, for tests that ask for as
// many as they need.
#ifndef TILEFARM_SERVER_CLI_REGRESS_CLUSTERS_H_
#define TILEFARM_SERVER_CLI_REGRESS_CLUSTERS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/tilefarm/v1/regression.pb.h"
#include "server/cli/regress_client.h"

namespace tilefarm::cli {

// Two stored artifacts of one program.
struct ComparedPair {
  struct Side {
    std::string sha256;
    std::string symbol;
    double spread = 0;
  };
  // The program that both compute, or the signature of two models.
  std::string program;
  std::string target;  // key
  Side baseline, candidate;
  std::vector<std::string> requirements;
};

// What all clusters have shown together.
struct ClusterTotals {
  // Medians of each cluster, seconds of one call.
  std::vector<double> baseline_seconds, candidate_seconds;
  std::vector<double> canary_seconds;
  std::set<std::string> devices;
  bool unsteady = false;  // a device was
  double device_seconds = 0;
};

// Not thread-safe.
class FarmClusters {
 public:
  // `seed` decides which artifact comes first in each cluster, and must be
  // drawn afresh for each comparison. The client outlives it.
  FarmClusters(RegressClient& client, ComparedPair pair, uint64_t seed)
      : client_(client), pair_(std::move(pair)), seed_(seed) {}

  // The classes of the devices that may take the comparison now, that of the
  // least busy one first. FailedPrecondition: there is none, and why.
  absl::StatusOr<std::vector<std::string>> DeviceClasses();
  // Chooses the least busy device of the class, a steady one if there is one.
  // FailedPrecondition: there is none.
  absl::Status ChooseDevice(const std::string& device_class);
  // Chooses another device of the same class. False: there is no other one, and
  // the same stays.
  absl::StatusOr<bool> ChooseAnotherDevice();
  const std::string& device() const { return device_; }
  const std::string& device_class() const { return device_class_; }

  // The logarithms of the ratios of `count` more clusters. If the device goes
  // away, others of its class take over. Aborted: an artifact failed, which the
  // message says; Unavailable, FailedPrecondition, DeadlineExceeded: no device
  // or server is left.
  absl::StatusOr<std::vector<double>> Measure(int count);

  const ClusterTotals& totals() const { return totals_; }

 private:
  absl::StatusOr<v1::FindDevicesResponse> Find();
  // Fails if the update is of a cluster that failed. `*lost`: no fault of the
  // artifacts.
  absl::StatusOr<double> Take(const v1::CompareUpdate& update, bool* lost);

  RegressClient& client_;
  const ComparedPair pair_;
  const uint64_t seed_;
  int64_t next_cluster_ = 0;
  std::string device_, device_class_;
  ClusterTotals totals_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_CLUSTERS_H_
