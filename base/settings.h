// Durations and counts that can be set by name, from a command line or a
// configuration file.
//
//   Settings settings;
//   settings.Add("lease_duration", &timeouts.lease_duration);
//   settings.Set("lease_duration", "30s");
//   settings.SetPair("lease_duration=30s");
#ifndef TILEFARM_BASE_SETTINGS_H_
#define TILEFARM_BASE_SETTINGS_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tilefarm {

// Not thread-safe. Holds pointers to the variables, which must outlive it.
class Settings {
 public:
  enum class Zero { kRefused, kAllowed };

  // In the notation of Go and Abseil: "500ms", "1m30s".
  void Add(std::string key, absl::Duration* value, Zero zero = Zero::kRefused);
  // At least 1.
  void Add(std::string key, int* value);
  // A factor: at least 1, at most a million.
  void Add(std::string key, double* value);

  // InvalidArgument, without a change: an unknown key (the message lists the
  // known ones), or a value that cannot be parsed, is negative, is not finite,
  // or exceeds a year.
  absl::Status Set(std::string_view key, std::string_view value);
  // "KEY=VALUE"; spaces around both are ignored.
  absl::Status SetPair(std::string_view pair);

  // The keys, sorted, joined by ", ".
  std::string Keys() const;
  // The current value of each key, in the form that Set takes.
  std::map<std::string, std::string> Values() const;

 private:
  struct Entry {
    std::variant<absl::Duration*, int*, double*> value;
    Zero zero = Zero::kRefused;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_SETTINGS_H_
