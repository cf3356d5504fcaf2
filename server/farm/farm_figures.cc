// How much there is of what: Farm::Figures.
#include "server/farm/farm_state.h"

namespace tilefarm::farm {

FarmFigures Farm::Figures() const {
  MutexLock lock(mutex_);
  FarmFigures figures;
  for (const auto& [id, lease] : leases_) {
    switch (lease.phase) {
      case Phase::kGranted:
        ++figures.leases_granted;
        break;
      case Phase::kBuilding:
        ++figures.leases_building;
        break;
      case Phase::kBuilt:
        ++figures.leases_built;
        break;
      case Phase::kRunning:
        ++figures.leases_running;
        break;
    }
  }
  for (const auto& [id, item] : items_) {
    switch (item->state) {
      case Item::State::kNew:
        break;
      case Item::State::kHeld:
        ++figures.candidates_held;
        break;
      case Item::State::kReady:
        ++figures.candidates_ready;
        break;
      case Item::State::kLeased:
        ++figures.candidates_leased;
        break;
      case Item::State::kDoubted:
        ++figures.candidates_doubted;
        break;
      case Item::State::kCommitting:
        ++figures.candidates_committing;
        break;
    }
  }
  for (const auto& [name, worker] : workers_) {
    const double seconds = worker->health.known_seconds();
    if (seconds > 0) figures.canary_seconds.emplace_back(name, seconds);
  }
  return figures;
}

}  // namespace tilefarm::farm
