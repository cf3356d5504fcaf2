// The gRPC service of regression tracking. Translates and delegates.
#ifndef TILEFARM_SERVER_SERVICES_REGRESSION_SERVICE_H_
#define TILEFARM_SERVER_SERVICES_REGRESSION_SERVICE_H_

#include <atomic>

#include "base/executor.h"
#include "database/store.h"
#include "proto/tilefarm/v1/regression.grpc.pb.h"
#include "server/farm/farm.h"
#include "server/jobs/comparisons.h"
#include "server/security/gate.h"

namespace tilefarm::services {

class RegressionService
    : public v1::Regression::WithCallbackMethod_PutArtifact<
          v1::Regression::WithCallbackMethod_Compare<v1::Regression::Service>> {
 public:
  // All outlive it.
  RegressionService(database::Store& store, farm::Farm& farm,
                    jobs::Comparisons& comparisons, security::Gate& gate,
                    const database::ArtifactRetention& retention)
      : store_(store),
        farm_(farm),
        comparisons_(comparisons),
        gate_(gate),
        retention_(retention),
        executor_(kExecutorThreads, kMostWaitingCalls) {}

  grpc::ServerReadReactor<v1::ArtifactPart>* PutArtifact(
      grpc::CallbackServerContext* context,
      v1::PutArtifactResponse* response) override;
  grpc::Status FindDevices(grpc::ServerContext* context,
                           const v1::FindDevicesRequest* request,
                           v1::FindDevicesResponse* response) override;
  grpc::ServerWriteReactor<v1::CompareUpdate>* Compare(
      grpc::CallbackServerContext* context,
      const v1::CompareRequest* request) override;
  grpc::Status AppendPoints(grpc::ServerContext* context,
                            const v1::AppendPointsRequest* request,
                            v1::AppendPointsResponse* response) override;
  grpc::Status ReadHistory(
      grpc::ServerContext* context, const v1::ReadHistoryRequest* request,
      grpc::ServerWriter<v1::HistoryEntry>* writer) override;
  grpc::Status Acknowledge(grpc::ServerContext* context,
                           const v1::AcknowledgeRequest* request,
                           v1::AcknowledgeResponse* response) override;

 private:
  // For what may block: checking an artifact, parsing, the database.
  static constexpr int kExecutorThreads = 2;
  static constexpr int kMostWaitingCalls = 256;

  database::Store& store_;
  farm::Farm& farm_;
  jobs::Comparisons& comparisons_;
  security::Gate& gate_;
  const database::ArtifactRetention retention_;
  std::atomic<int64_t> incoming_bytes_{0};
  Executor executor_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_REGRESSION_SERVICE_H_
