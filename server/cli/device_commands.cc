// devices and measure.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/record.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"
#include "server/cli/input.h"

namespace tilefarm::cli {
namespace {

absl::StatusOr<v1::MeasureRequest> MakeRequest(const MeasureOptions& options) {
  v1::MeasureRequest request;
  TF_ASSIGN_OR_RETURN(const std::string target, ResolveTarget(options.target));
  TF_ASSIGN_OR_RETURN(ProgramInput program, ReadProgram(options.program));
  if (program.module.functions.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.program, ":1:1: error: there are ",
                     program.module.functions.size(),
                     " functions; measure takes exactly one"));
  }
  request.set_program(std::move(program.text));
  request.set_target(target);
  request.set_device(options.device);
  request.set_user(UserName());
  if (!options.trace.empty()) {
    TF_ASSIGN_OR_RETURN(*request.mutable_trace(), ReadTrace(options.trace));
  }
  return request;
}

int Change(const Common& common, v1::ChangeDeviceRequest::Action action,
           const DeviceOptions& options) {
  v1::ChangeDeviceRequest request;
  request.set_name(options.name);
  request.set_action(action);
  request.set_user(UserName());
  request.set_reason(options.reason);
  request.set_reserve_for(options.user);
  if (!options.time.empty()) {
    const auto seconds = ParseSeconds(options.time);
    if (!seconds.ok()) return Fail(seconds.status());
    request.set_reserve_seconds(*seconds);
  }
  Client client(common.server);
  const auto changed = client.ChangeDevice(request);
  if (!changed.ok()) return Fail(changed.status());
  v1::ListDevicesResponse devices;
  if (changed->has_device()) *devices.add_devices() = changed->device();
  const bool gone = !changed->has_device();
  if (common.json) {
    const nlohmann::ordered_json json = {{"name", options.name},
                                         {"state", "forgotten"}};
    std::printf("%s\n",
                (gone ? json : DevicesJson(devices).front()).dump().c_str());
  } else if (gone) {
    std::printf("%s forgotten\n", options.name.c_str());
  } else {
    std::printf("%s", DevicesTable(devices).c_str());
  }
  return kSuccess;
}

bool IsWanted(const DeviceOptions& options, const v1::Device& device) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  if (!options.states.empty() &&
      std::find(options.states.begin(), options.states.end(), device.state()) ==
          options.states.end()) {
    return false;
  }
  if (!has(device.name(), options.named) ||
      !has(device.target(), options.target)) {
    return false;
  }
  if (options.label.empty()) return true;
  const size_t equals = options.label.find('=');
  const auto label = device.labels().find(options.label.substr(0, equals));
  return label != device.labels().end() &&
         (equals == std::string::npos ||
          label->second == options.label.substr(equals + 1));
}

bool IsBefore(const std::string& column, const v1::Device& a,
              const v1::Device& b) {
  if (column == "state") return a.state() < b.state();
  if (column == "model") return a.model() < b.model();
  if (column == "target") return a.target() < b.target();
  if (column == "seen") return a.last_seen() < b.last_seen();
  if (column == "rate") return a.trials_per_second() < b.trials_per_second();
  return a.name() < b.name();
}

}  // namespace

int DrainDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_DRAIN, options);
}
int ResumeDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_RESUME, options);
}
int QuarantineDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_QUARANTINE, options);
}
int ForgetDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_FORGET, options);
}
int ReserveDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_RESERVE, options);
}
int ReleaseDevice(const Common& common, const DeviceOptions& options) {
  return Change(common, v1::ChangeDeviceRequest::ACTION_RELEASE, options);
}

int DeviceLog(const Common& common, const DeviceOptions& options) {
  v1::DeviceLogRequest request;
  request.set_name(options.name);
  request.set_limit(options.limit);
  Client client(common.server);
  const auto log = client.DeviceLog(request);
  if (!log.ok()) {
    const int code = Fail(log.status());
    return absl::IsNotFound(log.status()) ? kNothingFound : code;
  }
  std::printf("%s",
              common.json
                  ? absl::StrCat(AuditJson(log->entries()).dump(), "\n").c_str()
                  : AuditTable(log->entries(), "DEVICE").c_str());
  return kSuccess;
}

int Devices(const Common& common, const DeviceOptions& options) {
  Client client(common.server);
  auto devices = client.ListDevices();
  if (!devices.ok()) return Fail(devices.status());
  auto& list = *devices->mutable_devices();
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const v1::Device& device) {
                              return !IsWanted(options, device);
                            }),
             list.end());
  KeepPage(options.paging, list, [&](const v1::Device& a, const v1::Device& b) {
    return IsBefore(options.paging.sort, a, b);
  });
  if (common.json) {
    std::printf("%s\n", DevicesJson(*devices).dump().c_str());
  } else {
    std::printf("%s", DevicesTable(*devices).c_str());
  }
  return kSuccess;
}

int Measure(const Common& common, const MeasureOptions& options) {
  const auto request = MakeRequest(options);
  if (!request.ok()) return Fail(request.status());
  Client client(common.server);
  const auto response = client.Measure(*request);
  if (!response.ok()) return Fail(response.status());
  const auto record = database::RecordFromJson(response->record_json());
  if (!record.ok()) return Fail(record.status());
  const bool ok = record->status == database::Status::kOk;
  if (common.json) {
    std::printf("%s\n", response->record_json().c_str());
  } else if (ok) {
    std::printf("%s (%s to %s, %zu samples) on %s, %s\n",
                Seconds(record->median_seconds).c_str(),
                Seconds(record->ci_low_seconds).c_str(),
                Seconds(record->ci_high_seconds).c_str(),
                record->seconds.size(), record->device.c_str(),
                record->verified ? "verified" : "not verified");
  }
  if (ok) return kSuccess;
  return Fail(absl::InternalError(absl::StrCat(
      std::string(database::StatusName(record->status)), ": ", record->error)));
}

}  // namespace tilefarm::cli
