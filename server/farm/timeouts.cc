#include "server/farm/timeouts.h"

#include "absl/strings/str_cat.h"

namespace tilefarm::farm {

Settings TimeoutSettings(Timeouts& timeouts) {
  constexpr Settings::Zero kOrNone = Settings::Zero::kAllowed;
  Settings settings;
  settings.Add("state_interval", &timeouts.state_interval);
  settings.Add("lease_duration", &timeouts.lease_duration);
  settings.Add("phase_grace", &timeouts.phase_grace);
  settings.Add("max_running_losses", &timeouts.max_running_losses);
  settings.Add("max_losses", &timeouts.max_losses);
  settings.Add("former_hold", &timeouts.former_hold, kOrNone);
  settings.Add("former_hold_max", &timeouts.former_hold_max, kOrNone);
  settings.Add("priority_aging", &timeouts.priority_aging);
  settings.Add("tick", &timeouts.tick);
  settings.Add("rate_window", &timeouts.rate_window);
  settings.Add("commit_delay", &timeouts.commit_delay, kOrNone);
  settings.Add("commit_max", &timeouts.commit_max);
  settings.Add("commit_backlog", &timeouts.commit_backlog);
  settings.Add("ack_delay", &timeouts.ack_delay, kOrNone);
  settings.Add("commit_retry", &timeouts.commit_retry);
  settings.Add("watch_interval", &timeouts.watch_interval);
  settings.Add("watch_idle_interval", &timeouts.watch_idle_interval);
  settings.Add("search_poll", &timeouts.search_poll);
  settings.Add("model_save_interval", &timeouts.model_save_interval, kOrNone);
  settings.Add("finalists", &timeouts.finalists);
  settings.Add("shutdown_grace", &timeouts.shutdown_grace);
  settings.Add("keepalive_interval", &timeouts.keepalive_interval);
  settings.Add("keepalive_timeout", &timeouts.keepalive_timeout);
  return settings;
}

absl::Status CheckTimeouts(const Timeouts& timeouts) {
  if (timeouts.lease_duration < 2 * timeouts.state_interval) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lease_duration (", absl::FormatDuration(timeouts.lease_duration),
        ") must be twice state_interval (",
        absl::FormatDuration(timeouts.state_interval),
        ") at least: a lease that one late message ends is lost too often"));
  }
  if (timeouts.former_hold > timeouts.former_hold_max) {
    return absl::InvalidArgumentError(
        "former_hold must not be longer than former_hold_max");
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::farm
