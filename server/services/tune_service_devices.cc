// Calls of operators about devices.
#include <algorithm>
#include <string>

#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/orders.h"
#include "server/services/rpc_status.h"
#include "server/services/tune_service.h"

namespace tilefarm::services {
namespace {}  // namespace

grpc::Status TuneService::ChangeDevice(grpc::ServerContext* context,
                                       const v1::ChangeDeviceRequest* request,
                                       v1::ChangeDeviceResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/ChangeDevice", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const auto device = services::ChangeDevice(jobs_, farm_, *caller, *request);
  if (!device.ok()) return ToGrpc(device.status());
  if (device->has_value()) *response->mutable_device() = ToProto(**device);
  return grpc::Status::OK;
}

grpc::Status TuneService::DeviceLog(grpc::ServerContext* context,
                                    const v1::DeviceLogRequest* request,
                                    v1::DeviceLogResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/DeviceLog", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const int64_t limit = LogEntries(request->limit());
  const auto entries = jobs_.devices().Log(request->name(), limit);
  if (!entries.ok()) return ToGrpc(entries.status());
  for (const database::AuditEntry& entry : *entries) {
    *response->add_entries() = ToProto(entry);
  }
  return grpc::Status::OK;
}

}  // namespace tilefarm::services
