// The client's calls for regression tracking.
#ifndef TILEFARM_SERVER_CLI_REGRESS_CLIENT_H_
#define TILEFARM_SERVER_CLI_REGRESS_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "transport/endpoint.h"

namespace tilefarm::cli {

struct History {
  std::vector<v1::HistoryPoint> points;  // in their order
  std::vector<v1::Acknowledgement> acknowledgements;
};

// Not thread-safe. A server that is away is waited for: a few seconds before it
// has answered once, up to two minutes each time afterwards, and no more once
// that was in vain. Then, and for wrong credentials at once, the error is
// Unavailable.
class RegressClient {
 public:
  // `say` gets a line where it waits for the server.
  RegressClient(const transport::Endpoint& endpoint,
                std::function<void(const std::string&)> say);

  // Stores the artifact unless it is stored already.
  absl::Status PutArtifact(const std::string& bytes, const std::string& sha256,
                           const std::string& target,
                           const std::vector<std::string>& symbols);
  absl::StatusOr<v1::FindDevicesResponse> FindDevices(
      const v1::FindDevicesRequest& request);
  // Calls `take` for every cluster of the request once. Clusters that a server
  // did not answer before it went away are asked for again. FailedPrecondition:
  // the device takes no comparisons; DeadlineExceeded: it did not answer for
  // `silence`.
  absl::Status Compare(
      const v1::CompareRequest& request, absl::Duration silence,
      const std::function<void(const v1::CompareUpdate&)>& take);
  // A retry adds nothing twice.
  absl::Status AppendPoints(v1::AppendPointsRequest request);
  absl::StatusOr<History> ReadHistory(const v1::ReadHistoryRequest& request);
  absl::Status Acknowledge(const v1::AcknowledgeRequest& request);

 private:
  // Calls until it answers, or the server has been away for too long.
  absl::Status Patiently(const std::function<grpc::Status()>& call);
  absl::Status Explain(const grpc::Status& status) const;

  const transport::Endpoint endpoint_;
  const std::function<void(const std::string&)> say_;
  absl::Status opened_;
  absl::Duration patience_;
  std::unique_ptr<v1::Regression::Stub> stub_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_CLIENT_H_
