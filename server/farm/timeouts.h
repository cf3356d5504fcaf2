// Every duration and count that the farm, its jobs and its services wait for.
#ifndef TILEFARM_SERVER_FARM_TIMEOUTS_H_
#define TILEFARM_SERVER_FARM_TIMEOUTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/settings.h"

namespace tilefarm::farm {

struct Timeouts {
  // How often a worker reports which leases it holds. A sixth of
  // lease_duration, so that a few lost or late messages do no harm.
  absl::Duration state_interval = absl::Seconds(5);
  // A lease that is not renewed for so long is lost, and its candidate is
  // requeued.
  absl::Duration lease_duration = absl::Seconds(30);
  // How much longer than the candidate's own limits building and running may
  // take before a renewed lease is lost: time for the reference, and for a slow
  // machine. A lease may wait in the worker for as long as everything that the
  // worker has places for may take.
  absl::Duration phase_grace = absl::Seconds(60);
  // A candidate is recorded as device_lost, instead of being tried again, when
  // so many of its leases were lost while running.
  int max_running_losses = 3;
  // The same for losses in any phase: a candidate that ends its worker at once
  // does so before the server knows that it ran.
  int max_losses = 10;

  // After a restart, candidates that a former server process had granted wait
  // for so long for their results from the workers' spools. Then they are
  // granted again.
  absl::Duration former_hold = absl::Seconds(10);
  // The same while some worker still works on leases that this process did not
  // grant.
  absl::Duration former_hold_max = absl::Seconds(120);

  // The priority of a waiting queue grows by one each time this has passed.
  absl::Duration priority_aging = absl::Seconds(10);

  // How often expiry is checked.
  absl::Duration tick = absl::Milliseconds(500);
  // The window over which a device's trials per second are counted.
  absl::Duration rate_window = absl::Seconds(30);

  // Results are committed in groups: those that arrive within this time after
  // the first one, up to commit_max.
  absl::Duration commit_delay = absl::Milliseconds(5);
  int commit_max = 256;
  // While so many results wait to be committed, no leases are granted.
  int commit_backlog = 1024;
  // Acknowledgements are sent with the next lease, or alone at the first tick
  // after they have waited for so long. A worker that drains gets them at once.
  absl::Duration ack_delay = absl::Seconds(1);
  // A failed commit (disk full, file busy) is tried again after this.
  absl::Duration commit_retry = absl::Seconds(1);

  // The longest time between two updates to watchers of a job that changes.
  absl::Duration watch_interval = absl::Milliseconds(250);
  // The same for a job that does not change.
  absl::Duration watch_idle_interval = absl::Seconds(5);
  // A search thread without work checks again after this.
  absl::Duration search_poll = absl::Milliseconds(100);
  // The cost model is saved at most this often while a job runs.
  absl::Duration model_save_interval = absl::Seconds(20);
  // How long a job waits after its last trial for its finalists to be measured
  // again.
  absl::Duration finalists = absl::Seconds(60);
  // How long calls may continue after SIGTERM.
  absl::Duration shutdown_grace = absl::Seconds(3);

  // A keepalive ping is sent on a connection without traffic for so long.
  absl::Duration keepalive_interval = absl::Seconds(20);
  // The connection is closed if no answer to the ping comes within this time.
  absl::Duration keepalive_timeout = absl::Seconds(10);
};

// Every member under its own name, for `--timeout KEY=DURATION` and for the
// configuration file. The settings point into `timeouts`.
Settings TimeoutSettings(Timeouts& timeouts);
// InvalidArgument: values contradict each other.
absl::Status CheckTimeouts(const Timeouts& timeouts);

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_TIMEOUTS_H_
