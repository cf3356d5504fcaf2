#include "server/farm/health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilefarm::farm {
namespace {

std::string Microseconds(double seconds) {
  return absl::StrFormat("%.1f us", seconds * 1e6);
}

std::string Wait(absl::Duration duration) {
  return absl::FormatDuration(absl::Ceil(duration, absl::Seconds(1)));
}

}  // namespace

Settings HealthSettings(HealthRules& rules) {
  Settings settings;
  settings.Add("canary_period", &rules.canary_period);
  settings.Add("canary_results", &rules.canary_results);
  settings.Add("failure_gap", &rules.failure_gap, Settings::Zero::kAllowed);
  settings.Add("failures_in_a_row", &rules.failures_in_a_row);
  settings.Add("max_doubts", &rules.max_doubts);
  settings.Add("unsteady_factor", &rules.unsteady_factor);
  settings.Add("pause_factor", &rules.pause_factor);
  settings.Add("unsteady_limit", &rules.unsteady_limit);
  settings.Add("pause_limit", &rules.pause_limit);
  settings.Add("unsteady_period", &rules.unsteady_period);
  settings.Add("first_retry", &rules.first_retry);
  settings.Add("last_retry", &rules.last_retry);
  settings.Add("forgiven_after", &rules.forgiven_after);
  settings.Add("barren_connection", &rules.barren_connection);
  settings.Add("barren_connections", &rules.barren_connections);
  settings.Add("first_rest", &rules.first_rest);
  settings.Add("last_rest", &rules.last_rest);
  return settings;
}

absl::Status CheckHealth(const HealthRules& rules) {
  if (rules.unsteady_factor > rules.pause_factor) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unsteady_factor (", rules.unsteady_factor,
        ") must not be more than pause_factor (", rules.pause_factor, ")"));
  }
  if (rules.first_retry > rules.last_retry) {
    return absl::InvalidArgumentError(
        "first_retry must not be longer than last_retry");
  }
  if (rules.first_rest > rules.last_rest) {
    return absl::InvalidArgumentError(
        "first_rest must not be longer than last_rest");
  }
  return absl::OkStatus();
}

std::optional<HealthChange> DeviceHealth::OnConnect(absl::Duration now,
                                                    bool restarted) {
  fruitful_ = false;
  connected_at_ = now;
  if (!has_canary_) return std::nullopt;
  const bool worked = state_ == State::kSteady || state_ == State::kUnsteady;
  // A reconnect after a cut connection does not change the state.
  if (worked && (restarted || now - last_canary_ >= rules_.canary_period)) {
    state_ = State::kUnchecked;
  }
  if (state_ == State::kUnchecked) next_canary_ = now;
  // A reconnect during a rest neither shortens nor prolongs it.
  if (now < rests_until_ || barren_ < rules_.barren_connections) {
    return std::nullopt;
  }
  const int doublings = std::min(barren_ - rules_.barren_connections, 20);
  const absl::Duration rest =
      std::min(rules_.first_rest * (1 << doublings), rules_.last_rest);
  rests_until_ = now + rest;
  return HealthChange{
      "rest", absl::StrCat(barren_,
                           " connections in a row ended without a result: "
                           "no work for ",
                           Wait(rest))};
}

void DeviceHealth::OnDisconnect(absl::Duration now) {
  if (now < rests_until_) return;
  const bool barren =
      !fruitful_ && now - connected_at_ < rules_.barren_connection;
  barren_ = barren ? barren_ + 1 : 0;
}

HealthChange DeviceHealth::Fall(absl::Duration now, State state,
                                std::string why) {
  const bool forgiven =
      retry_ == absl::ZeroDuration() ||
      (state_ != State::kPaused && state_ != State::kQuarantined &&
       now - last_fall_ >= rules_.forgiven_after);
  retry_ =
      forgiven ? rules_.first_retry : std::min(2 * retry_, rules_.last_retry);
  if (state_ != State::kPaused) paused_since_ = now;
  last_fall_ = now;
  next_canary_ = now + retry_;
  state_ = state;
  why_ = std::move(why);
  return {state == State::kPaused ? "pause" : "quarantine", reason(now)};
}

std::optional<HealthChange> DeviceHealth::OnCanary(absl::Duration now,
                                                   const CanaryResult& result) {
  if (!has_canary_) return std::nullopt;
  canary_out_ = false;
  last_canary_ = now;
  results_ = 0;
  failures_ = 0;
  if (result.kind != CanaryResult::Kind::kTimed) works_on_ = false;
  if (result.kind == CanaryResult::Kind::kFailed) {
    return Fall(now, State::kQuarantined,
                absl::StrCat("its canary failed: ", result.error));
  }
  if (result.kind == CanaryResult::Kind::kTooSlow) {
    return Fall(now, State::kPaused,
                absl::StrCat("its canary took too long: ", result.error));
  }
  const double known = known_seconds_ > 0 ? known_seconds_ : result.seconds;
  const double factor = known > 0 ? result.seconds / known : 1;
  const std::string figures =
      absl::StrCat("its canary took ", Microseconds(result.seconds), ", ",
                   absl::StrFormat("%.1f", factor), " times its known ",
                   Microseconds(known));
  const bool worked = state_ == State::kSteady || state_ == State::kUnsteady;
  const bool slow = factor >= rules_.unsteady_factor;
  works_on_ =
      slow && (works_on_ || (state_ == State::kPaused &&
                             now - paused_since_ >= rules_.pause_limit));
  if (slow && !works_on_ &&
      (factor >= rules_.pause_factor || fallen() ||
       (state_ == State::kUnsteady &&
        now - unsteady_since_ >= rules_.unsteady_limit))) {
    return Fall(now, State::kPaused, figures);
  }
  if (slow) {
    next_canary_ = now + rules_.unsteady_period;
    why_ = figures;
    if (state_ == State::kUnsteady) return std::nullopt;
    state_ = State::kUnsteady;
    unsteady_since_ = now;
    return HealthChange{"unsteady", figures};
  }
  known_seconds_ = std::min(known, result.seconds);
  next_canary_ = now + rules_.canary_period;
  why_.clear();
  const State before = std::exchange(state_, State::kSteady);
  if (before == State::kUnchecked || (worked && before == State::kSteady)) {
    return std::nullopt;
  }
  return HealthChange{"recover", figures};
}

void DeviceHealth::OnCanaryLost(absl::Duration now) {
  canary_out_ = false;
  next_canary_ = std::min(next_canary_, now);
}

bool DeviceHealth::OnResult(absl::Duration now, bool ok, bool crashed) {
  fruitful_ = true;
  barren_ = 0;
  if (!has_canary_) return false;
  failures_ = ok ? 0 : failures_ + 1;
  if (++results_ >= rules_.canary_results) {
    next_canary_ = std::min(next_canary_, now);
  }
  const bool doubtful =
      crashed || failures_ >= rules_.failures_in_a_row || (!ok && fallen());
  if (doubtful && !fallen()) {
    next_canary_ = std::min(next_canary_,
                            std::max(now, last_canary_ + rules_.failure_gap));
  }
  return doubtful;
}

void DeviceHealth::Reset(absl::Duration now) {
  if (!has_canary_) return;
  state_ = State::kUnchecked;
  known_seconds_ = 0;
  works_on_ = false;
  next_canary_ = now;
  retry_ = absl::ZeroDuration();
  why_.clear();
  failures_ = 0;
  barren_ = 0;
  rests_until_ = -absl::InfiniteDuration();
}

std::string DeviceHealth::reason(absl::Duration now) const {
  switch (state_) {
    case State::kPaused:
    case State::kQuarantined:
      return absl::StrCat(why_, "; tried every ", Wait(retry_),
                          ", longer "
                          "each time");
    case State::kUnsteady:
      if (now >= rests_until_) return why_;
      break;
    case State::kUnchecked:
      if (now >= rests_until_) return "runs its canary";
      break;
    case State::kSteady:
      break;
  }
  if (now >= rests_until_) return "";
  return absl::StrCat(barren_,
                      " connections in a row ended without a result; "
                      "rests for another ",
                      Wait(rests_until_ - now));
}

}  // namespace tilefarm::farm
