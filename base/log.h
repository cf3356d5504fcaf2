// Leveled lines on stderr, as text
//
//   I 03:12:55.123 farm: device board1 connected
//
// or as one JSON object a line, with what the line is about as members:
//
//   {"time":"2026-01-31T03:12:55.123Z","level":"info","component":"farm",
//    "message":"device board1 connected","device":"board1"}
//
// One write(2) a line, so that lines of several processes do not mix.
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

// What a line is about: "job", "device", "lease". The text says it, too.
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

// The line without its end. JSON is valid whatever bytes come in.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view component, std::string_view text,
                          std::initializer_list<LogField> fields);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_LOG_H_
