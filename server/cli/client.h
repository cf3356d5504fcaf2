// The client's calls of the server.
#ifndef TILEFARM_SERVER_CLI_CLIENT_H_
#define TILEFARM_SERVER_CLI_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/tilefarm/v1/admin.grpc.pb.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "transport/endpoint.h"

namespace tilefarm::cli {

// Not thread-safe. Every call returns Unavailable with the address if the
// server cannot be reached.
class Client {
 public:
  // An error in the endpoint is returned by every call.
  explicit Client(const transport::Endpoint& endpoint);

  absl::StatusOr<v1::ListJobsResponse> ListJobs(
      const v1::ListJobsRequest& request);
  absl::StatusOr<v1::ListDevicesResponse> ListDevices();
  absl::StatusOr<v1::ChangeDeviceResponse> ChangeDevice(
      const v1::ChangeDeviceRequest& request);
  absl::StatusOr<v1::DeviceLogResponse> DeviceLog(
      const v1::DeviceLogRequest& request);
  absl::StatusOr<v1::CancelResponse> Cancel(const v1::CancelRequest& request);
  absl::StatusOr<v1::BestResponse> Best(const v1::BestRequest& request);
  absl::StatusOr<v1::DbStatsResponse> DbStats();
  // The answer of the JSON API to GET PATH?QUERY. FailedPrecondition: the
  // server is of an earlier release.
  absl::StatusOr<std::string> Read(const std::string& path,
                                   const std::string& query = "");
  // May wait for a device's turn.
  absl::StatusOr<v1::MeasureResponse> Measure(
      const v1::MeasureRequest& request);
  // Retries while the server is unavailable for a moment; the request id makes
  // that safe. Returns the job's id.
  absl::StatusOr<std::string> Submit(const v1::SubmitRequest& request);
  // Calls `take` for each update until the job has ended, and returns the last
  // update. Reconnects if the server is unavailable, for up to `patience` each
  // time, and reports that through `say`.
  absl::StatusOr<v1::JobUpdate> Watch(
      const std::string& job_id,
      const std::function<void(const v1::JobUpdate&)>& take,
      const std::function<void(const std::string&)>& say,
      absl::Duration patience);
  absl::Status Export(const std::function<bool(const std::string&)>& take);
  // `next` returns false at the end.
  absl::StatusOr<v1::DbImportResponse> Import(
      const std::function<bool(std::string*)>& next);

  absl::StatusOr<v1::CreateTokenResponse> CreateToken(
      const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensResponse> ListTokens();
  absl::StatusOr<v1::RevokeResponse> Revoke(const v1::RevokeRequest& request);
  absl::StatusOr<v1::TokenLogResponse> TokenLog(
      const v1::TokenLogRequest& request);

 private:
  absl::Status Explain(const grpc::Status& status) const;

  const transport::Endpoint endpoint_;
  absl::Status opened_;
  std::unique_ptr<v1::Tune::Stub> stub_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// The id that starts with `given`, which may lack "job-"; the latest job's if
// it is empty. NotFound; InvalidArgument: several ids do.
absl::StatusOr<std::string> FindJob(Client& client, const std::string& given);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_CLIENT_H_
