// Notifies a service manager (systemd, Type=notify) by the datagrams of
// sd_notify(3), without its library.
#ifndef TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_
#define TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace tilefarm::daemon {

// Without a service manager every call does nothing. Thread-safe.
class ServiceManager {
 public:
  // Returns the name of a loop that made no progress for longer than `limit`;
  // empty if there is none.
  using Stuck = std::function<std::string(absl::Duration limit)>;

  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from
  // the environment, so that child processes do not notify in place of this
  // one. Call it before threads are started.
  static std::unique_ptr<ServiceManager> FromEnvironment();
  virtual ~ServiceManager() = default;

  // The daemon is ready. From now on, the watchdog is pinged three times per
  // watchdog period, each time only if all loops made progress within half a
  // period; otherwise this is logged once.
  virtual void Ready(Stuck stuck) = 0;
  // The daemon ends; no pings follow.
  virtual void Stopping() = 0;
};

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_SERVICE_MANAGER_H_
