#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tilefarm {
namespace {

LogLevel InitialLevel() {
  const char* text = std::getenv("TILEFARM_LOG");
  const std::string_view name = text == nullptr ? "" : text;
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

std::atomic<LogLevel>& MinLevel() {
  static std::atomic<LogLevel> level{InitialLevel()};
  return level;
}

}  // namespace

void SetMinLogLevel(LogLevel level) { MinLevel() = level; }

void Log(LogLevel level, std::string_view component, std::string_view text) {
  if (level < MinLevel().load()) return;
  const char letter = "DIWE"[static_cast<int>(level)];
  std::string line = absl::StrCat(
      std::string(1, letter), " ",
      absl::FormatTime("%H:%M:%E3S", absl::Now(), absl::UTCTimeZone()), " ",
      absl::string_view(component.data(), component.size()), ": ",
      absl::string_view(text.data(), text.size()), "\n");
  const char* data = line.data();
  size_t left = line.size();
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, data, left);
    if (written <= 0) return;
    data += written;
    left -= written;
  }
}

}  // namespace tilefarm
