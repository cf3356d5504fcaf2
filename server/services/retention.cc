#include "server/services/retention.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "database/prune.h"

namespace tilefarm::services {
namespace {

// Of records or days; a date so many days ago has four digits.
constexpr int64_t kMost = 100'000;

}  // namespace

absl::Status Retention::Set(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string key(text.substr(0, equals));
  int64_t* const value = key == "keep"          ? &keep
                         : key == "failed_days" ? &failed_days
                                                : nullptr;
  if (equals == std::string_view::npos || value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text),
                     "' is no rule; there are keep=RECORDS and "
                     "failed_days=DAYS"));
  }
  const std::string number(text.substr(equals + 1));
  int64_t parsed = 0;
  if (!absl::SimpleAtoi(number, &parsed) || parsed < 1 || parsed > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", number, "' is not a whole number from 1 to ", kMost));
  }
  *value = parsed;
  return absl::OkStatus();
}

absl::Status ApplyRetention(const std::string& database_path,
                            const Retention& retention, Clock& clock) {
  std::error_code error;
  if (!retention.drops() || !std::filesystem::exists(database_path, error)) {
    return absl::OkStatus();
  }
  database::PruneOptions options;
  options.keep = retention.keep;
  options.dry_run = false;
  if (retention.failed_days > 0) {
    options.failed_before = absl::FormatTime(
        "%Y-%m-%d",
        clock.Now() -
            absl::Hours(24) * static_cast<double>(retention.failed_days),
        absl::UTCTimeZone());
  }
  TF_ASSIGN_OR_RETURN(const database::PruneFacts facts,
                      database::Prune(database_path, options));
  Log(LogLevel::kInfo, "server",
      absl::StrCat("retention: dropped ", facts.dropped_ok,
                   " records that are not among the best and ",
                   facts.dropped_failed, " failed ones, of ", facts.records));
  return absl::OkStatus();
}

}  // namespace tilefarm::services
