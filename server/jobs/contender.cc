#include "server/jobs/contender.h"

#include <algorithm>
#include <utility>

#include "server/jobs/job.h"

namespace tilefarm::jobs {
namespace {

constexpr size_t kMostContenders = 16;

bool Faster(const Contender& a, const Contender& b) {
  return a.seconds < b.seconds;
}

// The fault is the code's, not the day's.
bool RulesOut(database::Status status) {
  return status == database::Status::kWrongResult ||
         status == database::Status::kRunError ||
         status == database::Status::kRunTimeout;
}

}  // namespace

void Contenders::Add(const database::Record& record) {
  Contender contender = {record, record.median_seconds};
  const auto place =
      std::upper_bound(list_.begin(), list_.end(), contender, Faster);
  list_.insert(place, std::move(contender));
  if (list_.size() > kMostContenders) list_.pop_back();
}

void Contenders::NoteMeasurement(const std::string& candidate_id,
                                 const database::Record& measured,
                                 const std::string& fingerprint) {
  const auto found =
      std::find_if(list_.begin(), list_.end(), [&](const Contender& one) {
        return one.record.candidate_id == candidate_id;
      });
  if (found == list_.end()) return;
  if (RulesOut(measured.status)) {
    list_.erase(found);
    return;
  }
  if (!CountsAsBest(measured, fingerprint) ||
      measured.device != found->record.device) {
    return;
  }
  found->seconds = measured.median_seconds;
  found->remeasured = true;
  std::stable_sort(list_.begin(), list_.end(), Faster);
}

void Contenders::NoteStored(const database::Store& store,
                            const std::string& fingerprint) {
  const std::vector<Contender> before = list_;
  for (const Contender& contender : before) {
    const auto measurements = store.FindMeasurements(contender.record.id);
    if (!measurements.ok()) continue;
    for (const database::Record& measured : *measurements) {
      NoteMeasurement(contender.record.candidate_id, measured, fingerprint);
    }
  }
}

double Contenders::best_seconds() const {
  return list_.empty() ? 0 : list_.front().seconds;
}

}  // namespace tilefarm::jobs
