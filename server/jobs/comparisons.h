// Comparisons of two artifacts on one device, cluster by cluster.
//
//   client --CompareSpec--> Comparisons --a candidate per cluster--> farm
//          <--- ClusterResult ------ OnCompleted <--- ResultWriter <---'
//
// Nothing is stored: a comparison lives as long as whoever asked for it.
// Clusters whose leases are lost are measured again by the farm.
#ifndef TILEFARM_SERVER_JOBS_COMPARISONS_H_
#define TILEFARM_SERVER_JOBS_COMPARISONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "database/store.h"
#include "server/farm/farm.h"

namespace tilefarm::jobs {

struct CompareSpec {
  struct Side {
    std::string sha256;  // of a stored artifact
    std::string symbol;
    double spread = 0;
  };
  // Either the program that both compute, or what two model artifacts take and
  // give.
  std::string program;
  std::optional<farm::ModelSignature> model;
  std::string target;  // canonical key
  Side baseline, candidate;
  std::string device;  // name
  std::vector<std::string> requirements;
  std::string user;
  // One cluster for each: whether the candidate comes first.
  std::vector<bool> candidate_first;
  // The size of a cluster; 0: the default of farm::Comparison.
  absl::Duration sample, cluster;
  int fewest_rounds = 0, most_rounds = 0;
  bool flush_cache = false;
};

// One cluster, done.
struct ClusterResult {
  int cluster = 0;     // its index
  std::string device;  // name
  bool unsteady = false;
  farm::Measurement measurement;
};

struct ComparisonsOptions {
  bool allowed = false;  // tune-server --allow-artifacts
  // How devices must confine artifacts at least (base/isolation.h); "none": any
  // way.
  std::string isolation = "seccomp+netns";
};

// Thread-safe.
class Comparisons {
 public:
  // Called for each cluster, on any thread; must not block or call this.
  using Done = std::function<void(ClusterResult)>;

  // Both outlive it.
  Comparisons(database::Store& store, farm::Farm& farm,
              ComparisonsOptions options);

  // FailedPrecondition unless the server takes artifacts.
  absl::Status CheckAllowed() const;
  // What a queue of the user for such artifacts demands of devices.
  // InvalidArgument: a requirement is wrong.
  absl::StatusOr<farm::QueueTerms> Terms(
      const target::Target& target, const std::string& user,
      const std::vector<std::string>& requirements) const;

  // Returns a ticket for Abandon. InvalidArgument: bad program, target,
  // requirements or sizes, artifacts for another target, a function that was
  // not checked when the artifact was stored; NotFound: an artifact is not
  // stored; FailedPrecondition: the device takes no such work now.
  absl::StatusOr<std::string> Start(const CompareSpec& spec, Done done);
  // The results are no longer needed: `done` is not called afterwards.
  void Abandon(const std::string& ticket);

  // A result of Purpose::kCompare.
  void OnCompleted(const farm::Completion& completion);

 private:
  // `suffixes`: of the symbol, for each function that will be called.
  absl::StatusOr<farm::ComparedArtifact> Find(
      const CompareSpec::Side& side, const target::Target& target,
      const char* which, std::span<const char* const> suffixes) const;

  database::Store& store_;
  farm::Farm& farm_;
  const ComparisonsOptions options_;

  Mutex mutex_;
  std::map<std::string, Done> running_ ABSL_GUARDED_BY(mutex_);  // by ticket
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_COMPARISONS_H_
