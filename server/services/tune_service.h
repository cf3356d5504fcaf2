// The gRPC service for clients. Translates and delegates.
//
// Watch and Measure last long and use gRPC's callback API. Its few threads also
// serve the workers' streams, so an executor does what may block: parsing,
// replaying, reading from the database. The other calls are short or stream
// rows; they are synchronous calls on gRPC's bounded pool of threads.
#ifndef TILEFARM_SERVER_SERVICES_TUNE_SERVICE_H_
#define TILEFARM_SERVER_SERVICES_TUNE_SERVICE_H_

#include <string>

#include "base/executor.h"
#include "database/store.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "server/api/parts.h"
#include "server/farm/farm.h"
#include "server/jobs/jobs.h"
#include "server/security/gate.h"

namespace tilefarm::services {

class TuneService
    : public v1::Tune::WithCallbackMethod_Watch<
          v1::Tune::WithCallbackMethod_Measure<v1::Tune::Service>> {
 public:
  // The parts outlive it.
  explicit TuneService(const api::Parts& parts)
      : parts_(parts),
        store_(parts.store),
        farm_(parts.farm),
        jobs_(parts.jobs),
        gate_(parts.gate),
        fingerprint_(parts.fingerprint),
        executor_(kExecutorThreads, kMostWaitingCalls) {}

  grpc::Status Submit(grpc::ServerContext* context,
                      const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override;
  grpc::ServerWriteReactor<v1::JobUpdate>* Watch(
      grpc::CallbackServerContext* context,
      const v1::WatchRequest* request) override;
  grpc::Status ListJobs(grpc::ServerContext* context,
                        const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status Cancel(grpc::ServerContext* context,
                      const v1::CancelRequest* request,
                      v1::CancelResponse* response) override;
  grpc::Status ListDevices(grpc::ServerContext* context,
                           const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override;
  grpc::Status ChangeDevice(grpc::ServerContext* context,
                            const v1::ChangeDeviceRequest* request,
                            v1::ChangeDeviceResponse* response) override;
  grpc::Status DeviceLog(grpc::ServerContext* context,
                         const v1::DeviceLogRequest* request,
                         v1::DeviceLogResponse* response) override;
  grpc::Status Best(grpc::ServerContext* context,
                    const v1::BestRequest* request,
                    v1::BestResponse* response) override;
  grpc::ServerUnaryReactor* Measure(grpc::CallbackServerContext* context,
                                    const v1::MeasureRequest* request,
                                    v1::MeasureResponse* response) override;
  grpc::Status Read(grpc::ServerContext* context,
                    const v1::ReadRequest* request,
                    v1::ReadResponse* response) override;
  grpc::Status DbStats(grpc::ServerContext* context,
                       const v1::DbStatsRequest* request,
                       v1::DbStatsResponse* response) override;
  grpc::Status DbExport(grpc::ServerContext* context,
                        const v1::DbExportRequest* request,
                        grpc::ServerWriter<v1::DbLine>* writer) override;
  grpc::Status DbImport(grpc::ServerContext* context,
                        grpc::ServerReader<v1::DbLine>* reader,
                        v1::DbImportResponse* response) override;

 private:
  // For calls that begin: each may parse and replay for a second.
  static constexpr int kExecutorThreads = 4;
  static constexpr int kMostWaitingCalls = 256;

  const api::Parts& parts_;
  database::Store& store_;
  farm::Farm& farm_;
  jobs::Jobs& jobs_;
  security::Gate& gate_;
  const std::string fingerprint_;
  Executor executor_;
};

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_TUNE_SERVICE_H_
