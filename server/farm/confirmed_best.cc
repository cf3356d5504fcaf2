#include "server/farm/confirmed_best.h"

#include <algorithm>

namespace tilefarm::farm {

void ConfirmedBest::Insert(double seconds, Times& times) {
  if (times.best == 0 || seconds < times.best) {
    times.second = times.best;
    times.best = seconds;
  } else if (times.second == 0 || seconds < times.second) {
    times.second = seconds;
  }
}

void ConfirmedBest::Note(const std::string& device_id, double seconds) {
  Insert(seconds, devices_[device_id]);
  if (device_id == leader_) {
    of_devices_.best = std::min(of_devices_.best, seconds);
    return;
  }
  if (of_devices_.best == 0 || seconds < of_devices_.best) {
    leader_ = device_id;
  }
  Insert(seconds, of_devices_);
}

double ConfirmedBest::For(const std::string& device_id) const {
  const auto own = devices_.find(device_id);
  const double own_second = own == devices_.end() ? 0 : own->second.second;
  if (own_second == 0) return of_devices_.second;
  if (of_devices_.second == 0) return own_second;
  return std::min(own_second, of_devices_.second);
}

}  // namespace tilefarm::farm
