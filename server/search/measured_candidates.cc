#include "server/search/measured_candidates.h"

#include <algorithm>
#include <cstdint>

namespace tilefarm::search {

void MeasuredCandidates::Add(const std::string& candidate_id,
                             Individual individual) {
  if (individual.seconds <= 0) return;
  recent_.emplace_back(candidate_id, individual);
  if (recent_.size() > most_recent_) recent_.pop_front();
  if (!individual.in_space) return;
  const auto place =
      std::upper_bound(elite_.begin(), elite_.end(), individual,
                       [](const Individual& x, const Individual& y) {
                         return x.seconds < y.seconds;
                       });
  elite_.insert(place, std::move(individual));
  if (elite_.size() > most_elite_) elite_.pop_back();
}

std::optional<Individual> MeasuredCandidates::Take(
    const std::string& candidate_id) {
  const auto found = std::find_if(
      recent_.begin(), recent_.end(),
      [&](const auto& entry) { return entry.first == candidate_id; });
  if (found == recent_.end()) return std::nullopt;
  Individual taken = std::move(found->second);
  recent_.erase(found);
  if (taken.in_space) {
    const uint64_t fingerprint = taken.candidate.Fingerprint();
    std::erase_if(elite_, [&](const Individual& one) {
      return one.candidate.Fingerprint() == fingerprint;
    });
  }
  return taken;
}

}  // namespace tilefarm::search
