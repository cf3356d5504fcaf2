// Leveled lines on stderr, as text
//
//   I 03:12:55.123 farm: device board1 connected
//
// or as one JSON object per line, with the subjects of the line as members:
//
//   {"time":"2026-01-31T03:12:55.123Z","level":"info","component":"farm",
//    "message":"device board1 connected","device":"board1"}
//
// Each line is one write(2), so that lines of several processes do not mix.
#ifndef TILEFARM_BASE_LOG_H_
#define TILEFARM_BASE_LOG_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace tilefarm {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// The subject of a line: "job", "device" or "lease". The text names it, too.
struct LogField {
  std::string_view key, value;
};

// Thread-safe. Lines below the minimum level are dropped.
void Log(LogLevel level, std::string_view component, std::string_view text,
         std::initializer_list<LogField> fields = {});

// Default kInfo; TILEFARM_LOG=debug|info|warning|error overrides at start.
void SetMinLogLevel(LogLevel level);
// Default kText.
void SetLogFormat(LogFormat format);
LogFormat GetLogFormat();
std::optional<LogLevel> ParseLogLevel(std::string_view name);

// The line without a line break. JSON is valid for any bytes of input.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view component, std::string_view text,
                          std::initializer_list<LogField> fields);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_LOG_H_
