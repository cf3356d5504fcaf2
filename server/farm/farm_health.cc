// How the farm uses canaries: it grants and takes them, and keeps results that
// may be the device's fault until its next canary.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/farm/farm.h"
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

// Whether a failure may wait for the device's canary: somebody waits for the
// answer to the other kinds.
bool MayWait(Purpose purpose) {
  return purpose == Purpose::kTrial || purpose == Purpose::kFinalist ||
         purpose == Purpose::kRemeasure;
}

}  // namespace

void Farm::GrantCanary(const std::string& name) {
  const Device& device = *registry_.Find(name);
  std::optional<WorkItem> work = options_.canary(device.target);
  if (!work.has_value()) return;
  work->purpose = Purpose::kCanary;
  work->candidate_id = absl::StrCat("canary-", RandomId(128));
  work->queue.clear();
  work->device = name;
  const std::string id = work->candidate_id;
  leases_.Add(*std::move(work), LeaseTable::State::kReady);
  device.link->SendLease(
      leases_.Grant(id, HolderOf(device), absl::ZeroDuration()));
  registry_.OnCanaryGranted(name);
  Refresh(name);
}

void Farm::TakeCanary(const Candidate& candidate, const Device& device,
                      Measurement measurement) {
  registry_.OnCanary(device.name(), ToCanaryResult(measurement));
  SettleDoubts(device, device.health.works(absl::InfiniteDuration()));
  // The result passes through the sink, so that it has a place among the
  // device's records.
  Deliver(candidate, device, std::move(measurement));
}

void Farm::LoseCanary(const std::string& candidate_id,
                      const std::string& device, Loss loss) {
  leases_.Erase(candidate_id);
  if (loss != Loss::kHung) {
    registry_.OnCanaryLost(device);
    Refresh(device);
    return;
  }
  registry_.OnCanary(device,
                     {.kind = CanaryResult::Kind::kFailed,
                      .seconds = 0,
                      .error = "it was handed out and never came back"});
  Refresh(device);
  SettleDoubts(*registry_.Find(device), /*trusted=*/false);
}

void Farm::TakeResult(const Candidate& candidate, const Device& device,
                      Measurement measurement) {
  const bool ok = measurement.status == database::Status::kOk;
  const bool crashed = measurement.status == database::Status::kRunError;
  const bool doubtful = registry_.OnOutcome(device.name(), ok, crashed);
  if (!doubtful || !MayWait(candidate.work.purpose) ||
      candidate.doubts >= options_.health.max_doubts) {
    Deliver(candidate, device, std::move(measurement));
    return;
  }
  leases_.Doubt(candidate.work.candidate_id, std::move(measurement));
  // If its last canary failed, a next one that passes says nothing about now.
  if (device.health.fallen()) SettleDoubts(device, /*trusted=*/false);
}

void Farm::SettleDoubts(const Device& device, bool trusted) {
  for (const std::string& id : leases_.DoubtedOf(device.name())) {
    const Candidate& candidate = *leases_.Find(id);
    if (trusted) {
      Measurement measurement = leases_.Confirm(id);
      Deliver(candidate, device, std::move(measurement));
      continue;
    }
    // The candidate is measured again, here or elsewhere. A worker that is gone
    // sends the result again when it connects, because it was not acknowledged;
    // the result is judged then.
    if (device.connected()) {
      device.link->SendAck(candidate.lease_id, /*superseded=*/true);
    }
    leases_.Retract(id, /*counts=*/device.connected());
    MakeReady(id);
  }
}

}  // namespace tilefarm::farm
