#include "server/farm/requirement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"

namespace tilefarm::farm {
namespace {

constexpr char kKnownKeys[] =
    "cores, memory, l1, l2, l3, cpu, brand, isolation, emulated, artifacts, "
    "device, "
    "library.NAME, label.NAME";
constexpr size_t kMostRequirements = 64;
constexpr size_t kMostBytes = 256;

enum class Type { kCount, kSize, kText, kIsolation, kBool };

std::optional<Type> TypeOf(const std::string& key) {
  static const auto& types = *new std::map<std::string, Type>{
      {"cores", Type::kCount},    {"memory", Type::kSize},
      {"l1", Type::kSize},        {"l2", Type::kSize},
      {"l3", Type::kSize},        {"cpu", Type::kText},
      {"brand", Type::kText},     {"isolation", Type::kIsolation},
      {"device", Type::kText},    {"emulated", Type::kBool},
      {"artifacts", Type::kBool},
  };
  for (const char* prefix : {"library.", "label."}) {
    if (absl::StartsWith(key, prefix) && key != prefix) return Type::kText;
  }
  const auto found = types.find(key);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

absl::Status Bad(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("require: '", text, "': ", why));
}

absl::StatusOr<Requirement> ParseOne(const std::string& text) {
  if (text.size() > kMostBytes) {
    return Bad(text.substr(0, 32) + "...", "is too long");
  }
  Requirement one;
  one.text = text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Bad(text, "is not KEY=VALUE or KEY>=VALUE");
  }
  one.at_least = text[equals - 1] == '>';
  one.key = text.substr(0, equals - (one.at_least ? 1 : 0));
  one.value = text.substr(equals + 1);
  const std::optional<Type> type = TypeOf(one.key);
  if (!type.has_value()) {
    return Bad(text, absl::StrCat("no device has a property '", one.key,
                                  "'; there are ", kKnownKeys));
  }
  if (one.value.empty()) return Bad(text, "has no value");
  if (one.at_least && (*type == Type::kText || *type == Type::kBool)) {
    return Bad(text,
               absl::StrCat(one.key, " is no number: use ", one.key, "=VALUE"));
  }
  switch (*type) {
    case Type::kText:
      break;
    case Type::kIsolation:
      if (one.at_least && !ParseIsolation(one.value, &one.isolation)) {
        return Bad(text, "is no isolation, such as seccomp+netns+cgroup");
      }
      break;
    case Type::kBool:
      if (one.value != "true" && one.value != "false") {
        return Bad(text, "is neither true nor false");
      }
      break;
    case Type::kCount:
      if (one.value.find_first_not_of("0123456789") != std::string::npos ||
          !absl::SimpleAtoi(one.value, &one.number)) {
        return Bad(text, "is not a whole number");
      }
      break;
    case Type::kSize: {
      const auto bytes = ParseBytes(one.value);
      if (!bytes.has_value()) {
        return Bad(text, "is not a size, such as 8GiB");
      }
      one.number = *bytes;
      break;
    }
  }
  return one;
}

struct Range {
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
};

std::string Flag(bool value) { return value ? "true" : "false"; }

std::string Lookup(const std::map<std::string, std::string>& map,
                   const std::string& key, bool& found) {
  const auto at = map.find(key);
  found = at != map.end();
  return found ? at->second : std::string();
}

bool Meets(const Requirement& one, const std::string& name,
           const DeviceProperties& device) {
  const auto number = [&](int64_t value) {
    return one.at_least ? value >= one.number : value == one.number;
  };
  if (one.key == "cores") return number(device.cores);
  if (one.key == "memory") return number(device.memory_bytes);
  if (one.key == "l1") return number(device.l1_bytes);
  if (one.key == "l2") return number(device.l2_bytes);
  if (one.key == "l3") return number(device.l3_bytes);
  if (one.key == "cpu") return device.cpu == one.value;
  if (one.key == "brand") return device.brand == one.value;
  if (one.key == "isolation") {
    if (!one.at_least) return device.isolation == one.value;
    Isolation isolation;
    return ParseIsolation(device.isolation, &isolation) &&
           isolation.Covers(one.isolation);
  }
  if (one.key == "emulated") return Flag(device.emulated) == one.value;
  if (one.key == "artifacts") {
    return Flag(device.takes_artifacts) == one.value;
  }
  if (one.key == "device") return name == one.value;
  const size_t dot = one.key.find('.');
  bool found = false;
  const std::string value = Lookup(
      one.key.substr(0, dot) == "label" ? device.labels : device.libraries,
      one.key.substr(dot + 1), found);
  return found && value == one.value;
}

}  // namespace

absl::StatusOr<Requirements> ParseRequirements(
    std::span<const std::string> texts, const target::Target& target) {
  if (texts.size() > kMostRequirements) {
    return absl::InvalidArgumentError(absl::StrCat("require: ", texts.size(),
                                                   " are too many; at most ",
                                                   kMostRequirements));
  }
  Requirements all;
  std::map<std::string, Range> ranges;
  ranges["cores"].low = target.cores;
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    TF_ASSIGN_OR_RETURN(Requirement one, ParseOne(text));
    const Type type = *TypeOf(one.key);
    if (type == Type::kCount || type == Type::kSize) {
      Range& range = ranges[one.key];
      range.low = std::max(range.low, one.number);
      if (!one.at_least) range.high = std::min(range.high, one.number);
      if (range.low > range.high) {
        return Bad(text,
                   absl::StrCat("no device can have it: ", one.key,
                                " would be at least ", range.low,
                                one.key == "cores" && range.low == target.cores
                                    ? " (as the target has)"
                                    : "",
                                " and exactly ", range.high));
      }
    } else if (!one.at_least) {
      const auto [at, is_new] = values.emplace(one.key, one.value);
      if (!is_new && at->second != one.value) {
        return Bad(text, absl::StrCat("no device can have it: ", one.key,
                                      " would be '", at->second, "', too"));
      }
    }
    all.push_back(std::move(one));
  }
  // One isolation exactly, and at least another.
  const auto exact = values.find("isolation");
  Isolation isolation;
  if (exact == values.end() || !ParseIsolation(exact->second, &isolation)) {
    return all;
  }
  for (const Requirement& one : all) {
    if (one.key != "isolation" || !one.at_least) continue;
    if (isolation.Covers(one.isolation)) continue;
    return Bad(one.text, absl::StrCat("no device can have it: isolation would "
                                      "be '",
                                      exact->second, "', too"));
  }
  return all;
}

const Requirement* FirstUnmet(const Requirements& requirements,
                              const std::string& name,
                              const DeviceProperties& device) {
  for (const Requirement& one : requirements) {
    if (!Meets(one, name, device)) return &one;
  }
  return nullptr;
}

}  // namespace tilefarm::farm
