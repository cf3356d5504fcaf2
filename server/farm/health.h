// Whether a device can be trusted: what its canaries and failures say, and
// when the next canary is due. Pure logic: time comes in with every call.
//
// A canary is a fixed kernel with a known time (the device's own best median
// so far), leased to the device like any candidate, so that builder, runner,
// verification and timing are all tried.
//
//                 good
//   unchecked ----------> steady <------------------ good ------------.
//       |                  |  ^                                       |
//       |      slow (1.5x) |  | good         slow for a minute, or 3x |
//       |                  v  |        .-------------> paused --------|
//       |                unsteady -----'                 |            |
//       |                  ^---------- slow for a minute '            |
//       '-- failed --------+-- failed ---------------> quarantined ---'
//
// A device that stays slow for a minute of its pause is what it is now: it
// works on, unsteady, until a canary is good or fails. Records that say
// "unsteady" are better than jobs that never end.
//
// Steady and unsteady devices get work (records of the latter are marked);
// the others get canaries alone: after 1 s, then twice as long each time, up
// to 5 min. The wait starts at 1 s again only where the device was good for
// long, so one that alternates rests longer and longer.
//
// A killed worker or a cut connection is no failure of the device, and a
// canary lost that way says nothing. But a device whose connections end again
// and again before they bring anything rests after each, too.
#ifndef TILEFARM_SERVER_FARM_HEALTH_H_
#define TILEFARM_SERVER_FARM_HEALTH_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/settings.h"

namespace tilefarm::farm {

// Every threshold and time of device health; each can be set by its name
// (`tune-server --health unsteady_factor=2`).
struct HealthRules {
  // A canary runs this long after the one before, or after so many results.
  absl::Duration canary_period = absl::Seconds(60);
  int canary_results = 250;
  // ... and after failures, this long after the one before at the soonest.
  absl::Duration failure_gap = absl::Seconds(1);
  // Results in a row that are not ok, after which failures of every kind (not
  // only crashes) wait for a canary.
  int failures_in_a_row = 5;
  // So often a failure is taken back because the device failed its canary;
  // after that the failure is the candidate's.
  int max_doubts = 2;

  // A canary this much slower than the known time makes the device unsteady
  // ...
  double unsteady_factor = 1.5;
  // ... this much slower pauses it at once ...
  double pause_factor = 3;
  // ... and so does being unsteady for so long, with canaries this often.
  absl::Duration unsteady_limit = absl::Seconds(60);
  // A pause whose canaries are slow, but right, lasts so long at most.
  absl::Duration pause_limit = absl::Seconds(60);
  absl::Duration unsteady_period = absl::Seconds(10);

  // How long a paused or quarantined device waits for its next canary: the
  // first time, and at most. A device good for `forgiven_after` starts anew.
  absl::Duration first_retry = absl::Seconds(1);
  absl::Duration last_retry = absl::Minutes(5);
  absl::Duration forgiven_after = absl::Minutes(5);

  // So many connections in a row that ended within this time and without a
  // result, and the device rests when it connects: the first time, and at
  // most.
  absl::Duration barren_connection = absl::Seconds(30);
  int barren_connections = 5;
  absl::Duration first_rest = absl::Seconds(1);
  absl::Duration last_rest = absl::Minutes(1);
};

// The rules by name. Points into them.
Settings HealthSettings(HealthRules& rules);
// InvalidArgument where two rules contradict each other.
absl::Status CheckHealth(const HealthRules& rules);

// What became of a canary.
struct CanaryResult {
  enum class Kind { kTimed, kTooSlow, kFailed };
  Kind kind = Kind::kTimed;
  double seconds = 0;  // median, of kTimed
  std::string error;   // of the others
};

// A change worth an entry in the audit log.
struct HealthChange {
  std::string action;  // "pause", "quarantine", "unsteady", "recover", "rest"
  std::string detail;
};

// A value; its owner locks.
class DeviceHealth {
 public:
  enum class State { kUnchecked, kSteady, kUnsteady, kPaused, kQuarantined };

  // Without canaries the device is steady whatever happens.
  DeviceHealth() = default;
  DeviceHealth(const HealthRules& rules, double known_seconds)
      : rules_(rules),
        has_canary_(true),
        state_(State::kUnchecked),
        known_seconds_(known_seconds) {}

  // --- What happens ---
  // `restarted`: a new process, which a reconnect is not.
  std::optional<HealthChange> OnConnect(absl::Duration now, bool restarted);
  void OnDisconnect(absl::Duration now);
  std::optional<HealthChange> OnCanary(absl::Duration now,
                                       const CanaryResult& result);
  // It was handed out and will not come back, for no fault of the device.
  void OnCanaryLost(absl::Duration now);
  // Any other result. True: a failure that may be the device's own, so that it
  // should not count before the next canary has passed; one is due soon.
  bool OnResult(absl::Duration now, bool ok, bool crashed);
  // An operator says that it is well: canaries start anew, and the known time
  // as well.
  void Reset(absl::Duration now);

  // --- What follows ---
  bool has_canary() const { return has_canary_; }
  State state() const { return state_; }
  bool canary_due(absl::Duration now) const {
    return has_canary_ && !canary_out_ && now >= next_canary_;
  }
  // When the next one is due; infinite while one is out, or without canaries.
  absl::Duration next_canary() const {
    return has_canary_ && !canary_out_ ? next_canary_
                                       : absl::InfiniteDuration();
  }
  void CanaryGranted() { canary_out_ = true; }
  // Whether candidates may be measured on it now.
  bool works(absl::Duration now) const {
    return (state_ == State::kSteady || state_ == State::kUnsteady) &&
           now >= rests_until_;
  }
  // Its last canary was bad.
  bool fallen() const {
    return state_ == State::kPaused || state_ == State::kQuarantined;
  }
  // Works, or will unless its first canary says otherwise.
  bool promising(absl::Duration now) const {
    return works(now) || (state_ == State::kUnchecked && now >= rests_until_);
  }
  // Why it does not work, or is unsteady; empty otherwise.
  std::string reason(absl::Duration now) const;
  double known_seconds() const { return known_seconds_; }  // 0: none yet

 private:
  HealthChange Fall(absl::Duration now, State state, std::string why);

  HealthRules rules_;
  bool has_canary_ = false;
  State state_ = State::kSteady;
  double known_seconds_ = 0;
  bool canary_out_ = false;
  absl::Duration next_canary_ = -absl::InfiniteDuration();
  absl::Duration last_canary_ = -absl::InfiniteDuration();
  absl::Duration unsteady_since_;
  absl::Duration paused_since_;
  bool works_on_ = false;  // slow for longer than a pause
  // When it was last found paused or quarantined, and how long it waited then.
  absl::Duration last_fall_ = -absl::InfiniteDuration();
  absl::Duration retry_;
  std::string why_;
  int results_ = 0;   // since the last canary
  int failures_ = 0;  // in a row
  // Of the connection: whether it brought a result.
  bool fruitful_ = false;
  absl::Duration connected_at_;
  int barren_ = 0;
  absl::Duration rests_until_ = -absl::InfiniteDuration();
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_HEALTH_H_
