#include "database/explanation.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/units.h"

namespace tilefarm::database {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 20> kFateNames = {
    "failed",
    "unverified",
    "stopped_early",
    "ruled_out",
    "other_target",
    "missing_features",
    "stale",
    "library",
    "emulated",
    "floats",
    "emulated_after_real",
    "farther_step",
    "other_cores",
    "farther_target",
    "stale_after_fresh",
    "other_protocol",
    "other_device_model",
    "slower",
    "earlier_database",
    "chosen",
};

constexpr std::array<std::string_view, 20> kFateTexts = {
    "failed",
    "not verified",
    "stopped early: not measured in full",
    "a later measurement of it failed",
    "made for another kind of target, or for vector or matrix instructions "
    "that the target lacks",
    "uses tensor intrinsics, and the target lacks features of its own",
    "stale: made by another compiler (--allow-stale takes them)",
    "calls a library's kernel (--allow-library takes them)",
    "timed by an emulator (--allow-emulated takes them)",
    "rounds differently or leaves out terms (--strict-fp, --no-winograd)",
    "timed by an emulator, and one of a real device fits",
    "fits, but at a later step of the fallback order",
    "fits, but is tuned for another number of cores",
    "fits, but its target is farther from the wanted one",
    "fits, but is stale, and a fresh one fits as well",
    "fits, but was measured under another protocol",
    "fits, but the device model with most records is preferred",
    "fits as well, but is not the fastest",
    "fits as well, but an earlier database has a record, too",
    "chosen",
};

std::string_view StepName(Step step) {
  switch (step) {
    case Step::kDeviceModel:
      return "device_model";
    case Step::kMicroarchitecture:
      return "microarchitecture";
    case Step::kFamily:
      break;
  }
  return "family";
}

std::string ProtocolText(const Protocol& protocol) {
  return absl::StrCat(protocol.cold_cache ? "cold cache" : "warm cache", ", ",
                      protocol.cores, protocol.cores == 1 ? " core" : " cores",
                      protocol.layout == "as_stated"
                          ? ""
                          : absl::StrCat(", ", protocol.layout));
}

Fate FateOfContender(const Contender& chosen, const Contender& other) {
  const Fate fit = FirstDifference(FitOf(chosen), FitOf(other));
  if (fit != Fate::kSlower) return fit;
  if (!(chosen.protocol == other.protocol)) return Fate::kOtherProtocol;
  return chosen.device_model == other.device_model ? Fate::kSlower
                                                   : Fate::kOtherDeviceModel;
}

bool ReadText(const Json& json, const char* key, std::string& out) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_string()) return false;
  out = it->get<std::string>();
  return true;
}

template <typename Number>
bool ReadNumber(const Json& json, const char* key, Number& out) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number()) return false;
  out = it->get<Number>();
  return true;
}

bool ReadBool(const Json& json, const char* key, bool& out) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_boolean()) return false;
  out = it->get<bool>();
  return true;
}

bool ReadGroup(const Json& json, ExplainedGroup& group) {
  if (!json.is_object()) return false;
  std::string fate;
  // A time that does not count is null.
  const auto best = json.find("best_seconds");
  if (best == json.end() || !(best->is_null() || best->is_number())) {
    return false;
  }
  group.best_seconds = best->is_null() ? 0 : best->get<double>();
  ReadText(json, "database", group.database);
  const auto protocol = json.find("protocol");
  if (!ReadText(json, "fate", fate) ||
      !ReadText(json, "target", group.target) ||
      !ReadText(json, "device", group.device) ||
      !ReadText(json, "device_model", group.device_model) ||
      !ReadText(json, "fingerprint", group.fingerprint) ||
      !ReadNumber(json, "records", group.records) || protocol == json.end() ||
      !protocol->is_object() ||
      !ReadBool(*protocol, "cold_cache", group.protocol.cold_cache) ||
      !ReadNumber(*protocol, "cores", group.protocol.cores) ||
      !ReadText(*protocol, "layout", group.protocol.layout)) {
    return false;
  }
  const std::optional<Fate> parsed = ParseFate(fate);
  if (parsed) group.fate = *parsed;
  return parsed.has_value();
}

bool ReadExplanation(const Json& json, Explanation& out) {
  if (!json.is_object() || !ReadText(json, "workload", out.workload) ||
      !ReadBool(json, "found", out.found) ||
      !ReadText(json, "reason", out.reason)) {
    return false;
  }
  ReadText(json, "database", out.database);
  if (out.found) {
    std::string step;
    if (!ReadText(json, "candidate_id", out.chosen) ||
        !ReadNumber(json, "median_seconds", out.median_seconds) ||
        !ReadText(json, "step", step)) {
      return false;
    }
    bool known = false;
    for (const Step one :
         {Step::kDeviceModel, Step::kMicroarchitecture, Step::kFamily}) {
      if (StepName(one) != step) continue;
      out.fit.step = one;
      known = true;
    }
    if (!known) return false;
  }
  const auto groups = json.find("records");
  if (groups == json.end() || !groups->is_array()) return false;
  for (const Json& group : *groups) {
    if (!ReadGroup(group, out.groups.emplace_back())) return false;
  }
  return true;
}

}  // namespace

std::string_view FateName(Fate fate) {
  return kFateNames[static_cast<size_t>(fate)];
}

std::optional<Fate> ParseFate(std::string_view name) {
  for (size_t i = 0; i < kFateNames.size(); ++i) {
    if (kFateNames[i] == name) return static_cast<Fate>(i);
  }
  return std::nullopt;
}

std::string FateText(Fate fate) {
  return std::string(kFateTexts[static_cast<size_t>(fate)]);
}

int64_t Explanation::records() const {
  int64_t sum = 0;
  for (const ExplainedGroup& group : groups) sum += group.records;
  return sum;
}

Fate FirstDifference(const Fit& better, const Fit& worse) {
  if (better.emulated != worse.emulated) return Fate::kEmulatedAfterReal;
  if (better.step != worse.step) return Fate::kFartherStep;
  if (better.other_cores != worse.other_cores) return Fate::kOtherCores;
  if (better.distance != worse.distance) return Fate::kFartherTarget;
  if (better.stale != worse.stale) return Fate::kStaleAfterFresh;
  return Fate::kSlower;
}

void JudgeContenders(size_t chosen, std::span<Examined> examined) {
  for (Examined& record : examined) {
    if (record.fate != Fate::kSlower) continue;
    record.fate = FateOfContender(examined[chosen].contender, record.contender);
  }
  examined[chosen].fate = Fate::kChosen;
}

Explanation Summarize(const std::string& workload,
                      std::span<const Examined> examined) {
  Explanation explanation;
  explanation.workload = workload;
  const auto key_of = [](const Examined& record) {
    const Contender& c = record.contender;
    // Later fates first: chosen, then what came close to it.
    return std::make_tuple(-static_cast<int>(record.fate), record.target,
                           c.device, c.device_model, c.fingerprint,
                           c.protocol.cold_cache, c.protocol.cores,
                           c.protocol.layout);
  };
  std::map<decltype(key_of(Examined{})), ExplainedGroup> groups;
  for (const Examined& record : examined) {
    const Contender& c = record.contender;
    ExplainedGroup& group = groups[key_of(record)];
    if (group.records++ == 0) {
      group.fate = record.fate;
      group.target = record.target;
      group.device = c.device;
      group.device_model = c.device_model;
      group.fingerprint = c.fingerprint;
      group.protocol = c.protocol;
    }
    const double seconds = c.standing.seconds;
    if (seconds > 0 &&
        (group.best_seconds == 0 || seconds < group.best_seconds)) {
      group.best_seconds = seconds;
    }
  }
  for (auto& [key, group] : groups) {
    explanation.groups.push_back(std::move(group));
  }
  return explanation;
}

std::vector<std::string> LeftOut(std::span<const Examined> examined) {
  int64_t library = 0, floats = 0;
  std::set<std::string> kernels;
  for (const Examined& record : examined) {
    if (record.fate == Fate::kLibrary) {
      ++library;
      kernels.insert(record.library);
    }
    if (record.fate == Fate::kFloats) ++floats;
  }
  std::vector<std::string> reasons;
  if (library > 0) {
    reasons.push_back(absl::StrCat(library, " that call ",
                                   absl::StrJoin(kernels, ", "),
                                   " (--allow-library takes them)"));
  }
  if (floats > 0) {
    reasons.push_back(
        absl::StrCat(floats,
                     " that round differently or leave out terms (--strict-fp, "
                     "--no-winograd)"));
  }
  return reasons;
}

std::string WhyNone(const std::string& workload,
                    std::span<const Examined> examined) {
  int64_t stale = 0, emulated = 0, unfit = 0, failed = 0;
  std::set<std::string> targets;
  for (const Examined& record : examined) {
    switch (record.fate) {
      case Fate::kStale:
        ++stale;
        break;
      case Fate::kEmulated:
        ++emulated;
        break;
      case Fate::kTarget:
      case Fate::kFeatures:
        ++unfit;
        targets.insert(record.target);
        break;
      case Fate::kFailed:
      case Fate::kUnverified:
      case Fate::kStoppedEarly:
      case Fate::kRuledOut:
        ++failed;
        break;
      default:
        break;
    }
  }
  std::vector<std::string> reasons;
  if (stale > 0) {
    reasons.push_back(absl::StrCat(
        stale, " of another compiler fingerprint (--allow-stale takes them)"));
  }
  if (emulated > 0) {
    reasons.push_back(absl::StrCat(
        emulated, " timed by an emulator (--allow-emulated takes them)"));
  }
  for (std::string& reason : LeftOut(examined)) {
    reasons.push_back(std::move(reason));
  }
  if (unfit > 0) {
    reasons.push_back(absl::StrCat(unfit, " of targets that do not fit (",
                                   absl::StrJoin(targets, " "), ")"));
  }
  if (failed > 0) {
    reasons.push_back(
        absl::StrCat(failed, " failed, unverified or stopped early"));
  }
  return absl::StrCat(
      "no usable record of workload ", workload.substr(0, 12), ": ",
      reasons.empty() ? "there is none" : absl::StrJoin(reasons, ", "));
}

std::string ExplanationToJson(const Explanation& explanation) {
  Json json = {{"workload", explanation.workload},
               {"found", explanation.found},
               {"reason", explanation.reason}};
  if (explanation.found) {
    json["step"] = std::string(StepName(explanation.fit.step));
    json["candidate_id"] = explanation.chosen;
    json["median_seconds"] = explanation.median_seconds;
  }
  if (!explanation.database.empty()) json["database"] = explanation.database;
  Json& groups = json["records"] = Json::array();
  for (const ExplainedGroup& group : explanation.groups) {
    Json entry = {{"fate", std::string(FateName(group.fate))},
                  {"why", FateText(group.fate)},
                  {"records", group.records},
                  {"target", group.target},
                  {"device", group.device},
                  {"device_model", group.device_model},
                  {"fingerprint", group.fingerprint},
                  {"protocol",
                   {{"cold_cache", group.protocol.cold_cache},
                    {"cores", group.protocol.cores},
                    {"layout", group.protocol.layout}}}};
    entry["best_seconds"] =
        group.best_seconds > 0 ? Json(group.best_seconds) : Json();
    if (!group.database.empty()) entry["database"] = group.database;
    groups.push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Explanation> ExplanationFromJson(std::string_view text) {
  const Json json = ParseJson<Json>(text);
  Explanation explanation;
  if (!ReadExplanation(json, explanation)) {
    return absl::InvalidArgumentError("not an explanation of a lookup");
  }
  return explanation;
}

std::string ExplanationText(const Explanation& explanation) {
  std::string text =
      absl::StrCat("workload ", explanation.workload.substr(0, 12), ": ",
                   explanation.records(), " records considered\n");
  if (explanation.found) {
    absl::StrAppendFormat(
        &text, "  chosen: %s, %s%s%s\n",
        FormatSeconds(explanation.median_seconds), explanation.reason,
        explanation.database.empty() ? "" : ", from ", explanation.database);
  } else {
    absl::StrAppend(&text, "  none: ", explanation.reason, "\n");
  }
  for (const ExplainedGroup& group : explanation.groups) {
    absl::StrAppend(&text, "  ", group.records, " of ", group.target, " on ",
                    group.device, ": ", FateText(group.fate));
    if (group.best_seconds > 0) {
      absl::StrAppend(&text, "; best ", FormatSeconds(group.best_seconds));
    }
    absl::StrAppend(&text, " (", group.fingerprint, "; ",
                    ProtocolText(group.protocol), ")");
    if (!group.database.empty()) {
      absl::StrAppend(&text, " in ", group.database);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace tilefarm::database
