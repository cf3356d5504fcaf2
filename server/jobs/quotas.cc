#include "server/jobs/quotas.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "base/units.h"

namespace tilefarm::jobs {
namespace {

constexpr int kMostDays = 366;

std::string DayOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number) ||
      !std::isfinite(number) || !(number > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is not a number above 0"));
  }
  return number;
}

absl::StatusOr<int64_t> ParseCount(std::string_view text) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &count) ||
      count < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' is not a whole number above 0"));
  }
  return count;
}

absl::StatusOr<int64_t> ParseStorage(std::string_view text) {
  const std::optional<int64_t> bytes = ParseBytes(text);
  if (!bytes || *bytes == 0 || !text.ends_with('B')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' is not a size such as 512MiB or 2GiB"));
  }
  return *bytes;
}

}  // namespace

absl::Status Quotas::Set(std::string_view text) {
  const size_t equals = text.find('=');
  const size_t colon = text.substr(0, equals).rfind(':');
  if (equals == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' is neither KEY=VALUE nor USER:KEY=VALUE"));
  }
  const bool of_user = colon != std::string_view::npos;
  const std::string user(of_user ? text.substr(0, colon) : "");
  const std::string_view key = of_user
                                   ? text.substr(colon + 1, equals - colon - 1)
                                   : text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (of_user && user.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' names no user"));
  }
  if (key == "days" && !of_user) {
    TF_ASSIGN_OR_RETURN(const int64_t count, ParseCount(value));
    if (count > kMostDays) {
      return absl::InvalidArgumentError(
          absl::StrCat("days: at most ", kMostDays, " are kept"));
    }
    days = static_cast<int>(count);
    return absl::OkStatus();
  }
  Quota changed = of_user ? users[user] : all;
  if (key == "jobs") {
    TF_ASSIGN_OR_RETURN(changed.jobs, ParseCount(value));
  } else if (key == "device_hours") {
    TF_ASSIGN_OR_RETURN(changed.device_hours, ParseNumber(value));
  } else if (key == "storage") {
    TF_ASSIGN_OR_RETURN(changed.storage_bytes, ParseStorage(value));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no quota '", std::string(key), "'; there are ",
                     of_user ? "" : "days, ", "device_hours, jobs, storage"));
  }
  (of_user ? users[user] : all) = changed;
  return absl::OkStatus();
}

Quota Quotas::Of(const std::string& user) const {
  const auto own = users.find(user);
  if (own == users.end()) return all;
  Quota quota = own->second;
  if (quota.jobs == 0) quota.jobs = all.jobs;
  if (quota.device_hours == 0) quota.device_hours = all.device_hours;
  if (quota.storage_bytes == 0) quota.storage_bytes = all.storage_bytes;
  return quota;
}

bool Quotas::BoundDeviceTime() const {
  if (all.device_hours > 0) return true;
  for (const auto& [user, quota] : users) {
    if (quota.device_hours > 0) return true;
  }
  return false;
}

bool Quotas::BoundStorage() const {
  if (all.storage_bytes > 0) return true;
  for (const auto& [user, quota] : users) {
    if (quota.storage_bytes > 0) return true;
  }
  return false;
}

void DeviceTime::Add(const std::string& user, absl::Time at,
                     absl::Duration used) {
  days_[user][DayOf(at)] += absl::ToDoubleSeconds(used);
}

absl::Duration DeviceTime::Used(const std::string& user, absl::Time now,
                                int days) const {
  const auto found = days_.find(user);
  if (found == days_.end()) return absl::ZeroDuration();
  const std::string first = DayOf(now - absl::Hours(24) * (days - 1));
  double seconds = 0;
  for (auto day = found->second.lower_bound(first); day != found->second.end();
       ++day) {
    seconds += day->second;
  }
  return absl::Seconds(seconds);
}

void DeviceTime::Forget(absl::Time now, int days) {
  const std::string first = DayOf(now - absl::Hours(24) * (days - 1));
  for (auto user = days_.begin(); user != days_.end();) {
    user->second.erase(user->second.begin(), user->second.lower_bound(first));
    user = user->second.empty() ? days_.erase(user) : std::next(user);
  }
}

std::string DeviceTime::Print() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [user, days] : days_) {
    for (const auto& [day, seconds] : days) json[user][day] = seconds;
  }
  return json.dump();
}

absl::StatusOr<DeviceTime> DeviceTime::Parse(std::string_view text) {
  const auto json = ParseJson(text);
  const absl::Status wrong =
      absl::DataLossError("the stored device time of users is damaged");
  if (!json.is_object()) return wrong;
  DeviceTime result;
  for (const auto& [user, days] : json.items()) {
    if (!days.is_object()) return wrong;
    for (const auto& [day, seconds] : days.items()) {
      if (!seconds.is_number() || !(seconds.get<double>() >= 0)) return wrong;
      result.days_[user][day] = seconds.get<double>();
    }
  }
  return result;
}

absl::Status CheckDeviceTime(const Quotas& quotas, const std::string& user,
                             absl::Duration used) {
  const double most = quotas.Of(user).device_hours;
  const double hours = absl::ToDoubleHours(used);
  if (most == 0 || hours < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s has used %.1f device hours of %g in %d days: wait until the oldest "
      "of these days no longer counts, or ask for a larger quota "
      "(tune-server --quota %s:device_hours=...)",
      user, hours, most, quotas.days, user));
}

absl::Status CheckStorage(const Quotas& quotas, const std::string& user,
                          int64_t bytes) {
  const int64_t most = quotas.Of(user).storage_bytes;
  if (most == 0 || bytes < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "records of ", user, "'s jobs take ",
      FormatBytes(static_cast<double>(bytes)), " of ",
      FormatBytes(static_cast<double>(most)),
      ": tune db prune makes room, or ask for a larger quota (tune-server "
      "--quota ",
      user, ":storage=...)"));
}

}  // namespace tilefarm::jobs
