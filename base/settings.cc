#include "base/settings.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilefarm {
namespace {

// Longer durations are most likely mistakes, and their sums could overflow.
constexpr absl::Duration kLongest = absl::Hours(24 * 366);
constexpr double kLargestFactor = 1e6;

std::string Stripped(std::string_view text) {
  return std::string(
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())));
}

absl::Status Wrong(std::string_view key, const std::string& value,
                   const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(key), " = '", value, "': ", why));
}

}  // namespace

void Settings::Add(std::string key, absl::Duration* value, Zero zero) {
  entries_[std::move(key)] = {value, zero};
}

void Settings::Add(std::string key, int* value) {
  entries_[std::move(key)] = {value};
}

void Settings::Add(std::string key, double* value) {
  entries_[std::move(key)] = {value};
}

std::string Settings::Keys() const {
  return absl::StrJoin(entries_, ", ", [](std::string* out, const auto& entry) {
    out->append(entry.first);
  });
}

std::map<std::string, std::string> Settings::Values() const {
  std::map<std::string, std::string> values;
  for (const auto& [key, entry] : entries_) {
    if (const int* const* count = std::get_if<int*>(&entry.value)) {
      values[key] = absl::StrCat(**count);
    } else if (const double* const* factor =
                   std::get_if<double*>(&entry.value)) {
      values[key] = absl::StrCat(**factor);
    } else {
      values[key] =
          absl::FormatDuration(*std::get<absl::Duration*>(entry.value));
    }
  }
  return values;
}

absl::Status Settings::Set(std::string_view key, std::string_view value) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no '", std::string(key), "'; known are ", Keys()));
  }
  const std::string text = Stripped(value);
  if (int* const* const count = std::get_if<int*>(&found->second.value)) {
    int parsed = 0;
    if (!absl::SimpleAtoi(text, &parsed) || parsed < 1) {
      return Wrong(key, text, "must be a whole number of at least 1");
    }
    **count = parsed;
    return absl::OkStatus();
  }
  if (double* const* const factor =
          std::get_if<double*>(&found->second.value)) {
    double parsed = 0;
    if (!absl::SimpleAtod(text, &parsed) || !(parsed >= 1) ||
        parsed > kLargestFactor) {
      return Wrong(key, text, "must be a number from 1 to a million");
    }
    **factor = parsed;
    return absl::OkStatus();
  }
  absl::Duration parsed;
  if (!absl::ParseDuration(text, &parsed)) {
    return Wrong(key, text, "must be a duration such as 500ms, 30s or 1m30s");
  }
  const bool zero = found->second.zero == Zero::kAllowed;
  if (parsed < absl::ZeroDuration() ||
      (!zero && parsed == absl::ZeroDuration())) {
    return Wrong(key, text,
                 zero ? "must not be negative" : "must be more than nothing");
  }
  if (parsed > kLongest) return Wrong(key, text, "must be a year at most");
  *std::get<absl::Duration*>(found->second.value) = parsed;
  return absl::OkStatus();
}

absl::Status Settings::SetPair(std::string_view pair) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(pair), "' is not KEY=VALUE; known are ", Keys()));
  }
  return Set(Stripped(pair.substr(0, equals)), pair.substr(equals + 1));
}

}  // namespace tilefarm
