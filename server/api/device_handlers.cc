// Devices: lists, one device, their last hours, and orders.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "proto/tilefarm/v1/tune.pb.h"
#include "server/api/handlers.h"
#include "server/api/shapes.h"
#include "server/services/orders.h"

namespace tilefarm::api {
namespace {

constexpr int64_t kAuditEntries = 100;
constexpr size_t kMostReasonBytes = 256;

// One letter for each state, in the history of many devices.
struct Letter {
  farm::DeviceState state;
  char letter;
};
constexpr Letter kLetters[] = {
    {farm::DeviceState::kIdle, 'i'},        {farm::DeviceState::kBusy, 'b'},
    {farm::DeviceState::kChecking, 'c'},    {farm::DeviceState::kDraining, 'd'},
    {farm::DeviceState::kDrained, 'D'},     {farm::DeviceState::kPaused, 'p'},
    {farm::DeviceState::kQuarantined, 'q'}, {farm::DeviceState::kOffline, 'o'},
    {farm::DeviceState::kIncompatible, 'x'}};
static_assert(std::size(kLetters) == std::size(farm::kDeviceStates));

char LetterOf(farm::DeviceState state) {
  for (const Letter& one : kLetters) {
    if (one.state == state) return one.letter;
  }
  return 'o';
}

struct Action {
  const char* name;
  v1::ChangeDeviceRequest::Action action;
};
constexpr Action kActions[] = {
    {"drain", v1::ChangeDeviceRequest::ACTION_DRAIN},
    {"resume", v1::ChangeDeviceRequest::ACTION_RESUME},
    {"quarantine", v1::ChangeDeviceRequest::ACTION_QUARANTINE},
    {"forget", v1::ChangeDeviceRequest::ACTION_FORGET},
    {"release", v1::ChangeDeviceRequest::ACTION_RELEASE}};

absl::StatusOr<farm::DeviceStatus> FindDevice(const Parts& parts,
                                              const std::string& name) {
  for (farm::DeviceStatus& device : parts.farm.Devices()) {
    if (device.name == name) return std::move(device);
  }
  return absl::NotFoundError(absl::StrCat("there is no device ", name));
}

absl::StatusOr<DeviceHistory::Step> StepOf(const std::string& name) {
  if (name.empty() || name == "fine") return DeviceHistory::Step::kFine;
  if (name == "coarse") return DeviceHistory::Step::kCoarse;
  return absl::InvalidArgumentError("the parameter step is fine or coarse");
}

}  // namespace

absl::StatusOr<Json> ListDevices(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  Json list = Json::array();
  for (const farm::DeviceStatus& device : parts.farm.Devices()) {
    list.push_back(DeviceJson(device));
  }
  return Json{{"devices", std::move(list)}};
}

absl::StatusOr<Json> GetDevice(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  const std::string& name = call.path.at("device");
  TF_ASSIGN_OR_RETURN(const farm::DeviceStatus device, FindDevice(parts, name));
  TF_ASSIGN_OR_RETURN(const auto log,
                      parts.jobs.devices().Log(name, kAuditEntries));
  const auto history = [&](DeviceHistory::Step step) {
    const auto found = parts.history.Read(step, name);
    return HistoryJson(found.empty() ? std::vector<DeviceSample>()
                                     : found.begin()->second);
  };
  Json json = DeviceJson(device);
  const auto state = ParseJson<Json>(device.device_state);
  json["device_state"] = state.is_object() ? state : Json::object();
  json["log"] = AuditJson(log);
  json["hour"] = history(DeviceHistory::Step::kFine);
  json["day"] = history(DeviceHistory::Step::kCoarse);
  return json;
}

absl::StatusOr<Json> ListHistory(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({"step"}));
  TF_ASSIGN_OR_RETURN(const DeviceHistory::Step step,
                      StepOf(call.query.Text("step")));
  const auto all = parts.history.Read(step, "");
  // All devices are sampled together, so that the longest one has the times of
  // all, and the others are its latest part.
  const std::vector<DeviceSample>* longest = nullptr;
  for (const auto& [name, samples] : all) {
    if (longest == nullptr || samples.size() > longest->size()) {
      longest = &samples;
    }
  }
  Json at = Json::array(), devices = Json::object(), letters = Json::object();
  if (longest != nullptr) {
    for (const DeviceSample& sample : *longest) {
      at.push_back(absl::ToUnixMillis(sample.at));
    }
  }
  for (const auto& [name, samples] : all) {
    std::string states, busy;
    for (const DeviceSample& sample : samples) {
      states.push_back(LetterOf(sample.state));
      busy.push_back(static_cast<char>(
          '0' + std::min(9, static_cast<int>(sample.busy * 10))));
    }
    devices[name] = {{"states", states}, {"busy", busy}};
  }
  for (const Letter& one : kLetters) {
    letters[std::string(1, one.letter)] =
        std::string(farm::DeviceStateName(one.state));
  }
  return Json{{"at", std::move(at)},
              {"letters", std::move(letters)},
              {"devices", std::move(devices)}};
}

absl::StatusOr<Json> ChangeDevice(const Parts& parts, const Call& call) {
  TF_RETURN_IF_ERROR(call.query.Allow({}));
  v1::ChangeDeviceRequest request;
  request.set_name(call.path.at("device"));
  const std::string& wanted = call.path.at("action");
  for (const Action& one : kActions) {
    if (wanted == one.name) request.set_action(one.action);
  }
  if (request.action() == v1::ChangeDeviceRequest::ACTION_UNSPECIFIED) {
    return absl::NotFoundError(absl::StrCat(
        "'", wanted,
        "' is no order: drain, resume, quarantine, forget, release"));
  }
  if (!call.body.empty()) {
    const auto body = ParseJson(call.body);
    if (!body.is_object()) {
      return absl::InvalidArgumentError("the body is no JSON object");
    }
    for (const auto& [key, value] : body.items()) {
      if (key != "reason" || !value.is_string() ||
          value.get<std::string>().size() > kMostReasonBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("the body has a reason, a text of at most ",
                         kMostReasonBytes, " bytes, and nothing else"));
      }
      request.set_reason(value.get<std::string>());
    }
  }
  TF_ASSIGN_OR_RETURN(
      const auto device,
      services::ChangeDevice(parts.jobs, parts.farm, call.caller, request));
  if (!device.has_value()) {
    return Json{{"name", request.name()}, {"state", "forgotten"}};
  }
  return DeviceJson(*device);
}

}  // namespace tilefarm::api
