#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace tilefarm {
namespace {

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};

LogLevel InitialLevel() {
  const char* text = std::getenv("TILEFARM_LOG");
  return ParseLogLevel(text == nullptr ? "" : text).value_or(LogLevel::kInfo);
}

std::atomic<LogLevel>& MinLevel() {
  static std::atomic<LogLevel> level{InitialLevel()};
  return level;
}

std::atomic<LogFormat>& Format() {
  static std::atomic<LogFormat> format{LogFormat::kText};
  return format;
}

// The bytes of the valid UTF-8 sequence that `text` starts with; 0: none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80,
                           unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    // Overlong forms and surrogates are not valid.
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void AppendJson(std::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    const unsigned char first = static_cast<unsigned char>(text[0]);
    size_t length = SequenceLength(text);
    if (length == 0) {
      out += "\\ufffd";
      length = 1;
    } else if (first == '"' || first == '\\') {
      out += {'\\', text[0]};
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\t') {
      out += "\\t";
    } else if (first < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", first);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  out.push_back('"');
}

void AppendMember(std::string_view key, std::string_view value,
                  std::string& out) {
  out.push_back(out.empty() ? '{' : ',');
  AppendJson(key, out);
  out.push_back(':');
  AppendJson(value, out);
}

}  // namespace

void SetMinLogLevel(LogLevel level) { MinLevel() = level; }
void SetLogFormat(LogFormat format) { Format() = format; }
LogFormat GetLogFormat() { return Format(); }

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (int level = 0; level < 4; ++level) {
    if (name == kLevelNames[level]) return static_cast<LogLevel>(level);
  }
  return std::nullopt;
}

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view component, std::string_view text,
                          std::initializer_list<LogField> fields) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  if (format == LogFormat::kText) {
    return absl::StrCat(std::string(1, "DIWE"[static_cast<int>(level)]), " ",
                        absl::FormatTime("%H:%M:%E3S", time, utc), " ",
                        absl::string_view(component.data(), component.size()),
                        ": ", absl::string_view(text.data(), text.size()));
  }
  std::string line;
  AppendMember("time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, utc),
               line);
  AppendMember("level", kLevelNames[static_cast<int>(level)], line);
  AppendMember("component", component, line);
  AppendMember("message", text, line);
  for (const LogField& field : fields) {
    AppendMember(field.key, field.value, line);
  }
  line.push_back('}');
  return line;
}

void Log(LogLevel level, std::string_view component, std::string_view text,
         std::initializer_list<LogField> fields) {
  if (level < MinLevel().load()) return;
  std::string line = FormatLogLine(GetLogFormat(), absl::Now(), level,
                                   component, text, fields);
  line.push_back('\n');
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
