#include "server/services/orders.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::services {
namespace {

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

absl::StatusOr<jobs::JobState> CancelJob(jobs::Jobs& jobs,
                                         const security::Caller& caller,
                                         const std::string& job_id) {
  if (!caller.admin()) {
    TF_ASSIGN_OR_RETURN(const jobs::JobSnapshot job, jobs.Get(job_id));
    if (job.user != caller.name) {
      return absl::PermissionDeniedError(
          absl::StrCat(job_id, " is a job of ", job.user,
                       ": its owner or an admin may cancel it"));
    }
  }
  return jobs.Cancel(job_id);
}

absl::StatusOr<std::optional<farm::DeviceStatus>> ChangeDevice(
    jobs::Jobs& jobs, farm::Farm& farm, const security::Caller& caller,
    const v1::ChangeDeviceRequest& request) {
  const std::string user = caller.NameOr(request.user());
  TF_RETURN_IF_ERROR(CheckMayChange(caller, user, request, farm.Devices()));
  TF_RETURN_IF_ERROR(Change(jobs.devices(), user, request));
  for (farm::DeviceStatus& device : farm.Devices()) {
    if (device.name == request.name()) return std::move(device);
  }
  return std::nullopt;
}

}  // namespace tilefarm::services
