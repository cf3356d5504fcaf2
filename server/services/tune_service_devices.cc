// Calls of operators about devices.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/services/admit.h"
#include "server/services/convert.h"
#include "server/services/rpc_status.h"
#include "server/services/tune_service.h"

namespace tilefarm::services {
namespace {

constexpr int64_t kMostEntries = 1000;

// Users may reserve a device for themselves, and release it.
absl::Status CheckMayChange(const security::Caller& caller,
                            const std::string& user,
                            const v1::ChangeDeviceRequest& request,
                            const std::vector<farm::DeviceStatus>& devices) {
  if (caller.admin()) return absl::OkStatus();
  if (request.action() == v1::ChangeDeviceRequest::ACTION_RESERVE &&
      (request.reserve_for().empty() || request.reserve_for() == user)) {
    return absl::OkStatus();
  }
  if (request.action() == v1::ChangeDeviceRequest::ACTION_RELEASE) {
    for (const farm::DeviceStatus& device : devices) {
      if (device.name == request.name() && device.reserved_for == user) {
        return absl::OkStatus();
      }
    }
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "device ", request.name(), ": ", user,
      " may reserve devices for himself and release those; anything else takes "
      "an admin"));
}

absl::Status Change(jobs::DeviceAdministration& devices,
                    const std::string& user,
                    const v1::ChangeDeviceRequest& request) {
  const std::string& name = request.name();
  if (name.empty()) return absl::InvalidArgumentError("name: there is none");
  if (user.empty()) return absl::InvalidArgumentError("user: there is none");
  switch (request.action()) {
    case v1::ChangeDeviceRequest::ACTION_DRAIN:
      return devices.SetOrder(name, farm::Order::kDrained, user,
                              request.reason());
    case v1::ChangeDeviceRequest::ACTION_RESUME:
      return devices.SetOrder(name, farm::Order::kNone, user, request.reason());
    case v1::ChangeDeviceRequest::ACTION_QUARANTINE:
      return devices.SetOrder(name, farm::Order::kQuarantined, user,
                              request.reason());
    case v1::ChangeDeviceRequest::ACTION_FORGET:
      return devices.Forget(name, user);
    case v1::ChangeDeviceRequest::ACTION_RESERVE:
      if (!std::isfinite(request.reserve_seconds())) {
        return absl::InvalidArgumentError("time: not a number of seconds");
      }
      return devices.Reserve(
          name, request.reserve_for().empty() ? user : request.reserve_for(),
          absl::Seconds(request.reserve_seconds()), user);
    case v1::ChangeDeviceRequest::ACTION_RELEASE:
      return devices.Release(name, user);
    default:
      return absl::InvalidArgumentError(
          "action: this server does not know it; use the same release on both "
          "sides");
  }
}

}  // namespace

grpc::Status TuneService::ChangeDevice(grpc::ServerContext* context,
                                       const v1::ChangeDeviceRequest* request,
                                       v1::ChangeDeviceResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/ChangeDevice", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const std::string user = caller->NameOr(request->user());
  const absl::Status allowed =
      CheckMayChange(*caller, user, *request, farm_.Devices());
  if (!allowed.ok()) return ToGrpc(allowed);
  const absl::Status changed = Change(jobs_.devices(), user, *request);
  if (!changed.ok()) return ToGrpc(changed);
  for (const farm::DeviceStatus& device : farm_.Devices()) {
    if (device.name == request->name()) {
      *response->mutable_device() = ToProto(device);
    }
  }
  return grpc::Status::OK;
}

grpc::Status TuneService::DeviceLog(grpc::ServerContext* context,
                                    const v1::DeviceLogRequest* request,
                                    v1::DeviceLogResponse* response) {
  const auto caller =
      Admit(gate_, *context, "/tilefarm.v1.Tune/DeviceLog", *request);
  if (!caller.ok()) return ToGrpc(caller.status());
  const int64_t limit = request->limit() <= 0
                            ? kMostEntries
                            : std::min(request->limit(), kMostEntries);
  const auto entries = jobs_.devices().Log(request->name(), limit);
  if (!entries.ok()) return ToGrpc(entries.status());
  for (const database::AuditEntry& entry : *entries) {
    *response->add_entries() = ToProto(entry);
  }
  return grpc::Status::OK;
}

}  // namespace tilefarm::services
