// What a service manager (systemd, Type=notify) wants to hear: sd_notify(3)'s
// datagrams, without its library.
#ifndef TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_
#define TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace tilefarm::daemon {

// Where there is none every call does nothing. Thread-safe.
class ServiceManager {
 public:
  // What stands still, in words; empty: all moves. `limit`: longer than this.
  using Stuck = std::function<std::string(absl::Duration limit)>;

  // Of the environment (NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID), which it
  // cleans, so that child processes do not speak for this one. Before threads
  // are started.
  static std::unique_ptr<ServiceManager> FromEnvironment();
  virtual ~ServiceManager() = default;

  // The daemon serves. From now on it is pinged three times in the time that
  // its watchdog waits, each time only if nothing has stood still for half of
  // it; otherwise that is logged, once.
  virtual void Ready(Stuck stuck) = 0;
  // The daemon ends; no pings after.
  virtual void Stopping() = 0;
};

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_
