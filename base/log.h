// Leveled lines on stderr: "I 03:12:55.123 server: text". One write(2) a
// line, so that lines of several processes do not mix.
#ifndef TILEFARM_BASE_LOG_H_
#define TILEFARM_BASE_LOG_H_

#include <string_view>

namespace tilefarm {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Thread-safe. Lines below the minimum level are dropped.
void Log(LogLevel level, std::string_view component, std::string_view text);
// Default kInfo; TILEFARM_LOG=debug|info|warning|error overrides at start.
void SetMinLogLevel(LogLevel level);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_LOG_H_
