// Every duration and count that the farm, its jobs and its services wait for,
// in one place.
#ifndef TILEFARM_SERVER_FARM_TIMEOUTS_H_
#define TILEFARM_SERVER_FARM_TIMEOUTS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/settings.h"

namespace tilefarm::farm {

struct Timeouts {
  // How often a worker says which leases it holds. A sixth of the lease, so
  // that a few lost or late messages cost nothing.
  absl::Duration state_interval = absl::Seconds(5);
  // A lease that is not renewed for so long is lost, and its candidate is
  // requeued.
  absl::Duration lease_duration = absl::Seconds(30);
  // What building and running may take beyond the candidate's own limits
  // before the lease is lost although renewed: for the reference, and a slow
  // machine. A lease that waits in the worker may wait as long as everything
  // that the worker has places for may take.
  absl::Duration phase_grace = absl::Seconds(60);
  // So many leases of one candidate lost while running, and it is recorded as
  // device_lost instead of being tried again.
  int max_running_losses = 3;
  // So many leases of it lost in any phase, with the same end: what takes its
  // worker down at once does so before the server knows that it ran.
  int max_losses = 10;

  // After a restart, candidates that a former server process had handed out
  // wait for their results to arrive from the workers' spools before they are
  // granted again ...
  absl::Duration former_hold = absl::Seconds(10);
  // ... and for so long at most while a worker still works on leases that this
  // process did not grant.
  absl::Duration former_hold_max = absl::Seconds(120);

  // The priority of a queue that waits grows by one for every such time.
  absl::Duration priority_aging = absl::Seconds(10);

  // How often expiry is looked at.
  absl::Duration tick = absl::Milliseconds(500);
  // A device's trials per second are counted over this window.
  absl::Duration rate_window = absl::Seconds(30);

  // Results are committed in groups: whatever arrives in this time after the
  // first, up to this number.
  absl::Duration commit_delay = absl::Milliseconds(5);
  int commit_max = 256;
  // While so many wait to be committed, no leases are handed out.
  int commit_backlog = 1024;
  // Acknowledgements go with the next lease, or alone at the first tick after
  // they have waited for so long; at once to a worker that drains.
  absl::Duration ack_delay = absl::Seconds(1);
  // A commit that fails (disk full, file busy) is tried again after this.
  absl::Duration commit_retry = absl::Seconds(1);

  // The longest time between two updates to those who watch a job that
  // changes.
  absl::Duration watch_interval = absl::Milliseconds(250);
  // ... and that does not.
  absl::Duration watch_idle_interval = absl::Seconds(5);
  // A search thread with nothing to do looks again after this.
  absl::Duration search_poll = absl::Milliseconds(100);
  // The cost model is saved at most this often while a job runs.
  absl::Duration model_save_interval = absl::Seconds(20);
  // A job whose trials are done waits so long for its finalists to be measured
  // once more.
  absl::Duration finalists = absl::Seconds(60);
  // Calls in flight at SIGTERM get this long.
  absl::Duration shutdown_grace = absl::Seconds(3);

  // A connection on which nothing was heard for so long is asked for a sign of
  // life ...
  absl::Duration keepalive_interval = absl::Seconds(20);
  // ... and closed where none comes in this time.
  absl::Duration keepalive_timeout = absl::Seconds(10);
};

// Every member under its own name: for `--timeout KEY=DURATION` and for the
// configuration file. Points into `timeouts`.
Settings TimeoutSettings(Timeouts& timeouts);
// InvalidArgument where values do not go together.
absl::Status CheckTimeouts(const Timeouts& timeouts);

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_TIMEOUTS_H_
