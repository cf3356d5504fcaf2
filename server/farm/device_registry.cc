#include "server/farm/device_registry.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"

namespace tilefarm::farm {
namespace {

void LogInfo(const std::string& text, const std::string& device) {
  Log(LogLevel::kInfo, "farm", text, {{"device", device}});
}

absl::Status UnknownDevice(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("there is no device '", name, "'"));
}

// Joins the reasons that are there.
std::string JoinReasons(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? absl::StrCat(first, second)
                                         : absl::StrCat(first, "; ", second);
}

}  // namespace

DeviceRegistry::DeviceRegistry(Options options)
    : options_(std::move(options)), clock_(*options_.clock) {}

// --- Queries -----------------------------------------------------------------

const DeviceRegistry::Device* DeviceRegistry::Find(
    const std::string& name) const {
  const auto found = devices_.find(name);
  return found == devices_.end() ? nullptr : &found->second;
}

const DeviceRegistry::Device* DeviceRegistry::FindSession(
    int64_t session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

bool DeviceRegistry::AnyUnknownLeases() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& entry) {
    return entry.second.connected() && entry.second.has_unknown_leases;
  });
}

void DeviceRegistry::FillState(const Device& device, int leases,
                               DeviceStatus& status) const {
  const absl::Duration now = clock_.Monotonic();
  const std::string health = device.health.reason(now);
  const KnownDevice& known = device.known;
  std::string& reason = status.reason;
  if (!known.reserved_for.empty()) {
    reason = absl::StrCat(
        "reserved for ", known.reserved_for, " until ",
        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", known.reserved_until,
                         absl::UTCTimeZone()));
  }
  const std::string order =
      known.order == Order::kNone
          ? ""
          : absl::StrCat(std::string(OrderName(known.order)), " ",
                         known.order_reason);
  if (!device.connected()) {
    status.state = DeviceState::kOffline;
    reason = JoinReasons(JoinReasons(device.offline_reason, order), reason);
  } else if (!device.incompatible.empty()) {
    status.state = DeviceState::kIncompatible;
    reason = device.incompatible;
  } else if (known.order == Order::kQuarantined) {
    status.state = DeviceState::kQuarantined;
    reason = JoinReasons(order, reason);
  } else if (known.order == Order::kDrained) {
    status.state = leases == 0 ? DeviceState::kDrained : DeviceState::kDraining;
    reason = JoinReasons(order, reason);
  } else if (device.draining) {
    status.state = DeviceState::kDraining;
    reason = "finishes what it holds";
  } else if (device.health.state() == DeviceHealth::State::kQuarantined) {
    status.state = DeviceState::kQuarantined;
    reason = JoinReasons(health, reason);
  } else if (!device.health.promising(now)) {
    status.state = DeviceState::kPaused;
    reason = JoinReasons(health, reason);
  } else if (!device.health.works(now)) {
    status.state = DeviceState::kChecking;
    reason = JoinReasons(health, reason);
  } else {
    status.state = leases == 0 ? DeviceState::kIdle : DeviceState::kBusy;
    reason = JoinReasons(
        health.empty() ? "" : absl::StrCat("unsteady: ", health), reason);
  }
}

DeviceStatus DeviceRegistry::Status(const std::string& name, int leases) const {
  const Device& device = devices_.at(name);
  const DeviceProperties& properties = device.properties;
  DeviceStatus status;
  status.name = name;
  if (device.device_id.empty()) {  // not connected since the server started
    status.model = device.known.model;
    status.target = device.known.target;
  } else {
    status.model = DisplayModel(properties);
    status.target = device.target.Key();
  }
  status.labels = properties.labels;
  status.libraries = properties.libraries;
  status.isolation = properties.isolation;
  status.reserved_for = device.known.reserved_for;
  status.reserved_until = device.known.reserved_until;
  status.device_state = device.device_state;
  status.unsteady = device.health.state() == DeviceHealth::State::kUnsteady;
  status.last_seen = device.last_seen;
  status.leases = leases;
  status.busy_seconds = absl::ToDoubleSeconds(device.busy);
  const absl::Duration now = clock_.Monotonic();
  const absl::Duration window = options_.timeouts.rate_window;
  const auto recent =
      std::count_if(device.reported_at.begin(), device.reported_at.end(),
                    [&](absl::Duration at) { return now - at <= window; });
  if (recent > 1) {
    const absl::Duration span =
        std::max(now - device.reported_at.front(), absl::Seconds(1));
    status.trials_per_second = static_cast<double>(recent) /
                               absl::ToDoubleSeconds(std::min(span, window));
  }
  FillState(device, leases, status);
  return status;
}

// --- Connections -------------------------------------------------------------

absl::StatusOr<target::Target> DeviceRegistry::CheckHello(
    const WorkerHello& hello) {
  if (hello.protocol_version != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this server speaks protocol ", kProtocolVersion, ", the worker ",
        hello.protocol_version, "; use the same release on both sides"));
  }
  if (hello.name.empty() || hello.boot_id.empty()) {
    return absl::InvalidArgumentError("a worker needs a name and a boot id");
  }
  auto target = target::ParseKey(hello.device.target);
  if (!target.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the worker's target '", hello.device.target,
                     "' is not valid: ", target.status().message()));
  }
  return target;
}

absl::Status DeviceRegistry::CheckRoom(const WorkerHello& hello) const {
  if (devices_.contains(hello.name)) return absl::OkStatus();
  if (static_cast<int>(devices_.size()) >= options_.most_devices) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server knows ", devices_.size(),
        " devices, as many as it may; `tune devices forget` makes room"));
  }
  if (hello.owner.empty()) return absl::OkStatus();
  int count = static_cast<int>(devices_.count(hello.owner));
  const std::string prefix = absl::StrCat(hello.owner, ".");
  for (auto it = devices_.lower_bound(prefix);
       it != devices_.end() && it->first.rfind(prefix, 0) == 0; ++it) {
    ++count;
  }
  if (count < options_.most_devices_of_owner) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the credential of ", hello.owner, " has ", count,
      " devices, as many as one may; `tune devices forget` makes room"));
}

bool DeviceRegistry::IsRestart(const WorkerHello& hello) const {
  const Device* const device = Find(hello.name);
  if (device == nullptr || device->boot_id.empty()) return false;
  return device->boot_id != hello.boot_id ||
         device->device_id != DeviceId(hello.name, hello.device);
}

const DeviceRegistry::Device& DeviceRegistry::Connect(
    const WorkerHello& hello, const target::Target& target,
    std::shared_ptr<WorkerLink> link) {
  Device& device = devices_[hello.name];
  if (device.connected()) {
    device.link->Close(absl::AbortedError(
        absl::StrCat("replaced by another connection of '", hello.name, "'")));
    sessions_.erase(device.session);
  }
  const std::string device_id = DeviceId(hello.name, hello.device);
  const bool restarted =
      device.boot_id != hello.boot_id || device.device_id != device_id;
  device.boot_id = hello.boot_id;
  device.properties = hello.device;
  device.target = target;
  device.incompatible.clear();
  if (hello.fingerprint != options_.fingerprint) {
    device.incompatible = absl::StrCat("its compiler is ", hello.fingerprint,
                                       ", the server's ", options_.fingerprint);
  }
  device.session = next_session_++;
  sessions_[device.session] = &device;
  device.link = std::move(link);
  device.draining = false;
  device.capacity = 0;
  device.clogged = false;
  device.has_unknown_leases = false;
  device.offline_reason.clear();
  device.last_seen = clock_.Now();
  if (device.device_id != device_id) {
    device.device_id = device_id;
    device.device_model = DeviceModel(device.properties);
    const bool has_canary =
        options_.has_canary != nullptr && options_.has_canary(device.target);
    device.health =
        has_canary ? DeviceHealth(options_.health, CanarySeconds(device_id))
                   : DeviceHealth();
  }
  device.known.name = hello.name;
  device.known.model = DisplayModel(device.properties);
  device.known.target = device.target.Key();
  // The device's digest and its model contain them; nothing else asks for them,
  // and a worker may announce many.
  device.properties.features = std::vector<std::string>();
  LogInfo(absl::StrCat("device ", hello.name,
                       " connected: ", device.properties.target,
                       device.incompatible.empty() ? "" : "; no leases: ",
                       device.incompatible),
          hello.name);
  Note(device, "connect", device.incompatible);
  Note(device, device.health.OnConnect(clock_.Monotonic(), restarted));
  return device;
}

void DeviceRegistry::Disconnect(int64_t session) {
  const auto found = sessions_.find(session);
  Device& device = *found->second;
  sessions_.erase(found);
  device.session = 0;
  device.link.reset();
  device.has_unknown_leases = false;
  device.offline_reason = "its connection ended";
  device.health.OnDisconnect(clock_.Monotonic());
  Note(device, "disconnect", device.offline_reason);
  LogInfo(absl::StrCat("device ", device.name(), " disconnected"),
          device.name());
}

void DeviceRegistry::CloseAll(const absl::Status& why) {
  for (const auto& [session, device] : sessions_) {
    device->link->Close(why);
    device->session = 0;
    device->link.reset();
  }
  sessions_.clear();
}

// --- What a connected device says and does -----------------------------------

void DeviceRegistry::Seen(const std::string& name) {
  Get(name).last_seen = clock_.Now();
}

void DeviceRegistry::OnState(const std::string& name, bool draining,
                             int capacity, bool has_unknown_leases) {
  Device& device = Get(name);
  device.last_seen = clock_.Now();
  device.draining = draining;
  device.capacity = capacity;
  device.has_unknown_leases = has_unknown_leases;
}

void DeviceRegistry::OnReport(const std::string& name,
                              const std::string& device_state,
                              absl::Duration running) {
  Device& device = Get(name);
  const absl::Duration now = clock_.Monotonic();
  if (running > -absl::InfiniteDuration()) {
    device.busy += now - std::max(running, device.last_report);
  }
  device.last_report = now;
  // A candidate that did not run to its end has no canary: the clock of the
  // device is that of the last one that has it.
  constexpr absl::string_view kCanary = "\"canary_seconds\":";
  if (!device_state.empty() &&
      (absl::StrContains(device_state, kCanary) ||
       !absl::StrContains(device.device_state, kCanary))) {
    device.device_state = device_state;
  }
}

void DeviceRegistry::SetClogged(const std::string& name, bool clogged) {
  Get(name).clogged = clogged;
}

// --- Health ------------------------------------------------------------------

void DeviceRegistry::Note(const Device& device, const std::string& action,
                          const std::string& detail) {
  if (action != "connect" && action != "disconnect") {  // logged already
    LogInfo(absl::StrCat("device ", device.name(), ": ", action, ": ", detail),
            device.name());
  }
  if (listener_ == nullptr) return;
  listener_->OnDeviceEvent({.at = clock_.Now(),
                            .device = device.name(),
                            .action = action,
                            .detail = detail});
}

void DeviceRegistry::Note(const Device& device,
                          const std::optional<HealthChange>& change) {
  if (change.has_value()) Note(device, change->action, change->detail);
}

void DeviceRegistry::OnCanaryGranted(const std::string& name) {
  Get(name).health.CanaryGranted();
}

void DeviceRegistry::OnCanary(const std::string& name,
                              const CanaryResult& result) {
  Device& device = Get(name);
  Note(device, device.health.OnCanary(clock_.Monotonic(), result));
  if (device.health.known_seconds() > 0) {
    canary_seconds_[device.device_id] = device.health.known_seconds();
  }
}

void DeviceRegistry::OnCanaryLost(const std::string& name) {
  Get(name).health.OnCanaryLost(clock_.Monotonic());
}

bool DeviceRegistry::OnOutcome(const std::string& name, bool ok, bool crashed) {
  Device& device = Get(name);
  const absl::Duration now = clock_.Monotonic();
  device.reported_at.push_back(now);
  while (now - device.reported_at.front() > options_.timeouts.rate_window) {
    device.reported_at.pop_front();
  }
  return device.health.OnResult(now, ok, crashed);
}

double DeviceRegistry::CanarySeconds(const std::string& device_id) const {
  const auto found = canary_seconds_.find(device_id);
  return found == canary_seconds_.end() ? 0 : found->second;
}

void DeviceRegistry::SetCanarySeconds(const std::string& device_id,
                                      double seconds) {
  canary_seconds_[device_id] = seconds;
}

// --- Availability ------------------------------------------------------------

Availability DeviceRegistry::Refresh(const std::string& name, int leases) {
  Device& device = Get(name);
  const absl::Duration now = clock_.Monotonic();
  const bool accepts = device.accepts();
  const bool has_slot = device.has_slot(leases);
  const bool works = accepts && device.health.works(now);
  // The one change that time alone makes is the end of a rest.
  if (!works && accepts &&
      device.health.promising(absl::InfiniteDuration()) !=
          device.health.promising(now)) {
    resting_.insert(name);
  } else {
    resting_.erase(name);
  }
  const absl::Duration canary_at = accepts && has_slot
                                       ? device.health.next_canary()
                                       : absl::InfiniteDuration();
  if (canary_at != device.canary_at) {
    canaries_.erase({device.canary_at, name});
    if (canary_at != absl::InfiniteDuration()) {
      canaries_.emplace(canary_at, name);
    }
    device.canary_at = canary_at;
  }
  return {.works = works,
          .free = works && has_slot,
          .slots = device.is_promising(now) ? device.capacity : 0};
}

std::set<std::string> DeviceRegistry::DueCanaries() const {
  const absl::Duration now = clock_.Monotonic();
  std::set<std::string> due;
  for (const auto& [at, name] : canaries_) {
    if (at > now) break;
    due.insert(name);
  }
  return due;
}

// --- What operators decide ---------------------------------------------------

void DeviceRegistry::Know(const KnownDevice& known) {
  const auto [at, is_new] = devices_.try_emplace(known.name);
  Device& device = at->second;
  if (is_new) {
    device.last_seen = known.last_seen;
    device.offline_reason = "not connected since the server started";
  }
  device.known = known;
}

absl::Status DeviceRegistry::SetOrder(const std::string& name, Order order,
                                      const std::string& reason) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return UnknownDevice(name);
  Device& device = found->second;
  device.known.order = order;
  device.known.order_reason = order == Order::kNone ? "" : reason;
  if (order == Order::kNone) {
    device.health.Reset(clock_.Monotonic());
    canary_seconds_.erase(device.device_id);
  }
  return absl::OkStatus();
}

absl::Status DeviceRegistry::Reserve(const std::string& name,
                                     const std::string& user,
                                     absl::Time until) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return UnknownDevice(name);
  found->second.known.reserved_for = user;
  found->second.known.reserved_until = until;
  return absl::OkStatus();
}

absl::Status DeviceRegistry::CheckForget(const std::string& name) const {
  const Device* const device = Find(name);
  if (device == nullptr) return UnknownDevice(name);
  if (device->connected()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device '", name, "' is connected; stop its rpc-worker first"));
  }
  return absl::OkStatus();
}

void DeviceRegistry::Forget(const std::string& name) {
  const auto found = devices_.find(name);
  canary_seconds_.erase(found->second.device_id);
  canaries_.erase({found->second.canary_at, name});
  resting_.erase(name);
  devices_.erase(found);
}

std::vector<std::string> DeviceRegistry::ExpireReservations() {
  const absl::Time now = clock_.Now();
  std::vector<std::string> released;
  for (auto& [name, device] : devices_) {
    KnownDevice& known = device.known;
    if (known.reserved_for.empty() || now < known.reserved_until) continue;
    Note(device, "release",
         absl::StrCat("the time of ", known.reserved_for, " is over"));
    known.reserved_for.clear();
    released.push_back(name);
  }
  return released;
}

}  // namespace tilefarm::farm
