// Whether a device can be trusted: what its canaries and failures say, and
// when the next canary is due. Pure logic: time comes in with every call.
//
// A canary is a fixed kernel with a known time (the device's own best median so
// far). It is leased to the device like any candidate, so that it tests
// builder, runner, verification and timing.
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
// A device that stays slow for a minute of its pause works again, as unsteady,
// until a canary is good or fails. Records marked "unsteady" are better than
// jobs that never end.
//
// Steady and unsteady devices get work; records of the latter are marked. Other
// devices get only canaries: after 1 s, then after twice as long each time, up
// to 5 min. The wait starts at 1 s again only if the device was good for long,
// so a device that alternates waits longer and longer.
//
// A killed worker or a cut connection is not a failure of the device, and a
// canary lost that way does not count. But a device whose connections end again
// and again before they bring a result rests after each one.
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
  // A canary runs this long after the previous one, or after so many results.
  absl::Duration canary_period = absl::Seconds(60);
  int canary_results = 250;
  // After failures, a canary runs no sooner than this after the previous one.
  absl::Duration failure_gap = absl::Seconds(1);
  // After so many results in a row that are not ok, failures of every kind wait
  // for a canary; before, only crashes do.
  int failures_in_a_row = 5;
  // How often a candidate's failure is dropped because its device failed the
  // canary. The next failure counts as the candidate's own.
  int max_doubts = 2;

  // A canary slower than the known time by this factor makes the device
  // unsteady.
  double unsteady_factor = 1.5;
  // A canary slower by this factor pauses it at once.
  double pause_factor = 3;
  // A device that is unsteady for so long is paused. Meanwhile canaries run
  // every unsteady_period.
  absl::Duration unsteady_limit = absl::Seconds(60);
  // The longest pause of a device whose canaries are correct but slow.
  absl::Duration pause_limit = absl::Seconds(60);
  absl::Duration unsteady_period = absl::Seconds(10);

  // How long a paused or quarantined device waits for its next canary: the
  // first time, and at most. After `forgiven_after` of being good it starts
  // again with first_retry.
  absl::Duration first_retry = absl::Seconds(1);
  absl::Duration last_retry = absl::Minutes(5);
  absl::Duration forgiven_after = absl::Minutes(5);

  // After so many connections in a row that ended within barren_connection and
  // without a result, the device rests when it connects: for first_rest the
  // first time, and for last_rest at most.
  absl::Duration barren_connection = absl::Seconds(30);
  int barren_connections = 5;
  absl::Duration first_rest = absl::Seconds(1);
  absl::Duration last_rest = absl::Minutes(1);
};

// The rules by name. The settings point into `rules`.
Settings HealthSettings(HealthRules& rules);
// InvalidArgument: two rules contradict each other.
absl::Status CheckHealth(const HealthRules& rules);

// The result of a canary.
struct CanaryResult {
  enum class Kind { kTimed, kTooSlow, kFailed };
  Kind kind = Kind::kTimed;
  double seconds = 0;  // median, of kTimed
  std::string error;   // of the others
};

// A change that goes into the audit log.
struct HealthChange {
  std::string action;  // "pause", "quarantine", "unsteady", "recover", "rest"
  std::string detail;
};

// A value type; its owner locks.
class DeviceHealth {
 public:
  enum class State { kUnchecked, kSteady, kUnsteady, kPaused, kQuarantined };

  // A device without canaries is always steady.
  DeviceHealth() = default;
  DeviceHealth(const HealthRules& rules, double known_seconds)
      : rules_(rules),
        has_canary_(true),
        state_(State::kUnchecked),
        known_seconds_(known_seconds) {}

  // --- What happens ---
  // `restarted`: the worker is a new process; false for a reconnect.
  std::optional<HealthChange> OnConnect(absl::Duration now, bool restarted);
  void OnDisconnect(absl::Duration now);
  std::optional<HealthChange> OnCanary(absl::Duration now,
                                       const CanaryResult& result);
  // The canary was granted and will not come back, for no fault of the device.
  void OnCanaryLost(absl::Duration now);
  // The result of a candidate. True: a failure that may be the device's fault.
  // It should not count before the next canary has passed, which is due soon.
  bool OnResult(absl::Duration now, bool ok, bool crashed);
  // An operator says that it is well: forgets the known time and past canaries.
  void Reset(absl::Duration now);

  // --- What follows ---
  bool has_canary() const { return has_canary_; }
  State state() const { return state_; }
  bool canary_due(absl::Duration now) const {
    return has_canary_ && !canary_out_ && now >= next_canary_;
  }
  // When the next canary is due; infinite while one is granted, or without
  // canaries.
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
  // Works, or will work if its first canary passes.
  bool promising(absl::Duration now) const {
    return works(now) || (state_ == State::kUnchecked && now >= rests_until_);
  }
  // Why it does not work or is unsteady; empty otherwise.
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
  bool works_on_ = false;  // works although slow, after its longest pause
  // When it was last paused or quarantined, and how long it waited then.
  absl::Duration last_fall_ = -absl::InfiniteDuration();
  absl::Duration retry_;
  std::string why_;
  int results_ = 0;   // since the last canary
  int failures_ = 0;  // in a row
  // Whether the connection has brought a result.
  bool fruitful_ = false;
  absl::Duration connected_at_;
  int barren_ = 0;
  absl::Duration rests_until_ = -absl::InfiniteDuration();
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_HEALTH_H_
