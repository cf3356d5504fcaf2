// The clock of a device while it measured.
#ifndef TILEFARM_SERVER_SERVICES_DEVICE_CLOCK_H_
#define TILEFARM_SERVER_SERVICES_DEVICE_CLOCK_H_

#include <string>

namespace tilefarm::services {

struct DeviceClock {
  double mhz = 0;  // 0: not known
  // By the time of the clock canary (base/clock_canary.h). False: as the
  // system reports it; virtual machines report the base clock whatever the
  // core does.
  bool measured = false;
};

// `target`: a target's key. `device_state`: of a measurement, JSON.
DeviceClock ClockOf(const std::string& target, const std::string& device_state);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_DEVICE_CLOCK_H_
