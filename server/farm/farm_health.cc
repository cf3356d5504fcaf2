// The farm's side of device health: canaries handed out and taken, results
// that wait for one.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "server/farm/farm.h"
#include "server/farm/farm_state.h"
#include "server/farm/random_id.h"

namespace tilefarm::farm {
namespace {

CanaryResult ToCanaryResult(const Measurement& measurement) {
  CanaryResult result;
  if (measurement.status == database::Status::kOk && measurement.verified) {
    result.seconds = measurement.median_seconds;
    return result;
  }
  const bool slow = measurement.status == database::Status::kRunTimeout ||
                    measurement.status == database::Status::kCompileTimeout;
  result.kind =
      slow ? CanaryResult::Kind::kTooSlow : CanaryResult::Kind::kFailed;
  result.error =
      absl::StrCat(std::string(database::StatusName(measurement.status)),
                   measurement.error.empty() ? "" : ": ", measurement.error);
  return result;
}

// Whose failures may be the device's, and are worth waiting for.
bool MayWait(Purpose purpose) {
  return purpose == Purpose::kTrial || purpose == Purpose::kFinalist ||
         purpose == Purpose::kRemeasure;
}

}  // namespace

void Farm::Note(const Worker& worker, const std::string& action,
                const std::string& detail) {
  if (action != "connect" && action != "disconnect") {  // said already
    Log(LogLevel::kInfo, "farm",
        absl::StrCat("device ", worker.name, ": ", action, ": ", detail),
        {{"device", worker.name}});
  }
  if (listener_ == nullptr) return;
  listener_->OnDeviceEvent({.at = clock_.Now(),
                            .device = worker.name,
                            .action = action,
                            .detail = detail});
}

void Farm::Note(const Worker& worker,
                const std::optional<HealthChange>& change) {
  if (change.has_value()) Note(worker, change->action, change->detail);
}

void Farm::HealthOnConnect(Worker& worker, bool restarted) {
  // A stream that was replaced ended without a word.
  SettleDoubts(worker, /*trusted=*/false);
  const std::string id = DeviceId(worker.name, worker.properties);
  if (worker.device_id != id) {
    worker.device_id = id;
    worker.device_model = DeviceModel(worker.properties);
    const bool has_canary = options_.canary != nullptr &&
                            options_.canary(worker.target).has_value();
    const auto known = canary_seconds_.find(id);
    worker.health =
        has_canary
            ? DeviceHealth(options_.health,
                           known == canary_seconds_.end() ? 0 : known->second)
            : DeviceHealth();
  }
  worker.known.name = worker.name;
  worker.known.model = PeoplesModel(worker.properties);
  worker.known.target = worker.target.Key();
  Note(worker, "connect", worker.incompatible);
  Note(worker, worker.health.OnConnect(clock_.Monotonic(), restarted));
}

bool Farm::GrantCanary(Worker& worker) {
  std::optional<WorkItem> work = options_.canary(worker.target);
  if (!work.has_value()) return false;
  work->purpose = Purpose::kCanary;
  work->candidate_id = absl::StrCat("canary-", RandomId(128));
  work->queue.clear();
  work->device = worker.name;
  worker.link->SendLease(MakeLease(NewItem(*std::move(work)), worker));
  worker.health.CanaryGranted();
  Refresh(worker);
  return true;
}

void Farm::TakeCanary(Item& item, Worker& worker, Measurement measurement) {
  Note(worker,
       worker.health.OnCanary(clock_.Monotonic(), ToCanaryResult(measurement)));
  if (worker.health.known_seconds() > 0) {
    canary_seconds_[worker.device_id] = worker.health.known_seconds();
  }
  const bool works = worker.health.works(absl::InfiniteDuration());
  SettleDoubts(worker, works);
  // On its way through the sink it tells where, among the device's records, it
  // stood.
  Report(item, worker, std::move(measurement));
}

void Farm::LoseCanary(const std::string& candidate_id, Worker& worker,
                      bool hung) {
  const absl::Duration now = clock_.Monotonic();
  EraseItem(*items_.at(candidate_id));
  if (!hung) {
    worker.health.OnCanaryLost(now);
    Refresh(worker);
    return;
  }
  Note(worker, worker.health.OnCanary(
                   now, {.kind = CanaryResult::Kind::kFailed,
                         .seconds = 0,
                         .error = "it was handed out and never came back"}));
  Refresh(worker);
  SettleDoubts(worker, /*trusted=*/false);
}

bool Farm::Doubt(Item& item, Worker& worker, Measurement& measurement) {
  const bool ok = measurement.status == database::Status::kOk;
  const bool crashed = measurement.status == database::Status::kRunError;
  const bool doubtful = worker.health.OnResult(clock_.Monotonic(), ok, crashed);
  if (!doubtful || !MayWait(item.work.purpose) ||
      item.doubts >= options_.health.max_doubts) {
    return false;
  }
  SetState(item, Item::State::kDoubted);
  item.doubted = std::move(measurement);
  worker.doubted.insert(item.work.candidate_id);
  // Its last canary failed; that the next one may pass says nothing of now.
  if (worker.health.fallen()) SettleDoubts(worker, /*trusted=*/false);
  return true;
}

void Farm::SettleDoubts(Worker& worker, bool trusted) {
  const std::set<std::string> doubted = std::exchange(worker.doubted, {});
  for (const std::string& id : doubted) {
    Item& item = *items_.at(id);
    if (trusted) {
      Report(item, worker, std::exchange(item.doubted, {}));
      continue;
    }
    // Measured again, here or elsewhere. A worker that is gone replays what
    // was not acknowledged, and it is looked at then.
    if (worker.session != 0) {
      ++item.doubts;
      worker.link->SendAck(item.lease_id, /*superseded=*/true);
    }
    item.lost_leases.push_back({.lease_id = std::exchange(item.lease_id, {}),
                                .device_id = worker.device_id,
                                .attempt = item.attempts});
    item.doubted = {};
    MakeReady(item, /*front=*/true);
  }
}

}  // namespace tilefarm::farm
