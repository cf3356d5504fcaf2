// Fetches artifacts of comparisons from the server.
#ifndef TILEFARM_WORKER_ARTIFACT_FETCHER_H_
#define TILEFARM_WORKER_ARTIFACT_FETCHER_H_

#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "transport/endpoint.h"

namespace grpc {
class ClientContext;
}

namespace tilefarm::worker {

// Thread-safe.
class ArtifactFetcher {
 public:
  explicit ArtifactFetcher(transport::Endpoint server)
      : server_(std::move(server)) {}

  // The artifact of the lease, without a check of its digest. Tries again while
  // the server is away or busy, for up to `limit`. DataLoss: it has more
  // bytes than announced.
  absl::StatusOr<std::string> Fetch(const std::string& lease_id,
                                    const v1::ComparedArtifact& artifact,
                                    absl::Duration limit);
  // Ends what is under way; later calls fail.
  void Shutdown();

 private:
  absl::StatusOr<std::string> FetchOnce(const std::string& lease_id,
                                        const v1::ComparedArtifact& artifact,
                                        absl::Duration limit);

  const transport::Endpoint server_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_ARTIFACT_FETCHER_H_
