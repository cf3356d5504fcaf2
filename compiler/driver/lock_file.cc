#include "compiler/driver/lock_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"

namespace tilefarm::driver {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "tilefarm-lock";
constexpr int kVersion = 1;

std::string DigestOf(const LockEntry& entry) {
  return Sha256Hex(absl::StrCat(entry.program, "\n", entry.trace));
}

// Reads the fields of one object and remembers the first that is wrong.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  std::string Text(const char* key) {
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_string()) {
      if (wrong_.empty()) wrong_ = key;
      return "";
    }
    return it->get<std::string>();
  }
  double Number(const char* key) {
    const auto it = json_.find(key);
    if (it == json_.end() || !it->is_number()) {
      if (wrong_.empty()) wrong_ = key;
      return 0;
    }
    return it->get<double>();
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Json& json_;
  std::string wrong_;
};

absl::StatusOr<LockEntry> ParseEntry(const Json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError("an entry is not an object");
  }
  Fields fields(json);
  LockEntry entry;
  entry.function = fields.Text("function");
  entry.workload = fields.Text("workload");
  entry.schedule = fields.Text("schedule");
  entry.reason = fields.Text("reason");
  entry.scheduled = fields.Text("scheduled");
  std::string digest;
  if (entry.schedule == "record") {
    entry.candidate_id = fields.Text("candidate_id");
    entry.median_seconds = fields.Number("median_seconds");
    entry.program = fields.Text("program");
    entry.trace = fields.Text("trace");
    digest = fields.Text("digest");
  }
  if (!fields.wrong().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the entry of '", entry.function, "' has no '",
                     fields.wrong(), "' of the right type"));
  }
  if (entry.schedule != "record" && entry.schedule != "default") {
    return absl::InvalidArgumentError(
        absl::StrCat("the entry of '", entry.function,
                     "' has the unknown schedule '", entry.schedule, "'"));
  }
  if (entry.schedule == "record" && digest != DigestOf(entry)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the entry of '", entry.function,
                     "' was edited: its digest does not fit its program and "
                     "trace"));
  }
  return entry;
}

absl::StatusOr<LockFile> ParseFields(std::string_view text) {
  const Json json = ParseJson<Json>(text);
  if (!json.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  Fields fields(json);
  const std::string format = fields.Text("format");
  const double version = fields.Number("version");
  if (format != kFormat || version != kVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a lock file of version ", kVersion,
                     ": write it with --write-lock"));
  }
  LockFile lock;
  lock.target = fields.Text("target");
  lock.fingerprint = fields.Text("fingerprint");
  if (!fields.wrong().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has no '", fields.wrong(), "'"));
  }
  const auto functions = json.find("functions");
  if (functions == json.end() || !functions->is_array()) {
    return absl::InvalidArgumentError("it has no list 'functions'");
  }
  std::set<std::string> names;
  for (const Json& function : *functions) {
    TF_ASSIGN_OR_RETURN(LockEntry entry, ParseEntry(function));
    if (!names.insert(entry.function).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has two entries of '", entry.function, "'"));
    }
    lock.entries.push_back(std::move(entry));
  }
  return lock;
}

// Answers a lookup from the entries by function.
absl::StatusOr<database::BestMatch> FindEntry(
    const std::map<std::string, const LockEntry*>& entries,
    const database::BestQuery& query) {
  const auto it = entries.find(query.program->name);
  if (it == entries.end() ||
      it->second->workload != ir::WorkloadHash(*query.program)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the lock file has no entry for function ", query.program->name,
        " as it is now: write the file again with --write-lock"));
  }
  const LockEntry& entry = *it->second;
  if (entry.schedule == "default") {
    return absl::NotFoundError(absl::StrCat("it is locked: ", entry.reason));
  }
  if (query.keeps_floats != nullptr &&
      !query.keeps_floats(entry.program, entry.trace)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the locked schedule of ", query.program->name,
                     query.floats == ir::FloatRule::kAsWritten
                         ? " changes floats, which --strict-fp forbids"
                         : " uses winograd, which --no-winograd forbids"));
  }
  database::BestMatch match;
  match.record.candidate_id = entry.candidate_id;
  match.record.median_seconds = entry.median_seconds;
  match.record.program = entry.program;
  match.record.trace = entry.trace;
  match.reason = absl::StrCat("locked: ", entry.reason);
  return match;
}

}  // namespace

LockFile MakeLock(const ir::IRModule& module, const target::Target& target,
                  const std::string& fingerprint,
                  const ScheduledModule& scheduled) {
  LockFile lock;
  lock.target = target.Key();
  lock.fingerprint = fingerprint;
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Choice& choice = scheduled.choices[i];
    LockEntry entry;
    entry.workload = ir::WorkloadHash(*module.functions[i]);
    entry.function = choice.function;
    entry.schedule = choice.schedule;
    entry.reason = choice.reason;
    entry.scheduled = ir::ProgramHash(*scheduled.module.functions[i]);
    entry.candidate_id = choice.candidate_id;
    entry.median_seconds = choice.median_seconds;
    entry.program = choice.program;
    entry.trace = choice.trace;
    lock.entries.push_back(std::move(entry));
  }
  return lock;
}

std::string PrintLock(const LockFile& lock) {
  Json functions = Json::array();
  for (const LockEntry& entry : lock.entries) {
    Json json = {{"function", entry.function},
                 {"workload", entry.workload},
                 {"schedule", entry.schedule},
                 {"reason", entry.reason},
                 {"scheduled", entry.scheduled}};
    if (entry.schedule == "record") {
      json["candidate_id"] = entry.candidate_id;
      json["median_seconds"] = entry.median_seconds;
      json["program"] = entry.program;
      json["trace"] = entry.trace;
      json["digest"] = DigestOf(entry);
    }
    functions.push_back(std::move(json));
  }
  return Json{{"format", kFormat},
              {"version", kVersion},
              {"target", lock.target},
              {"fingerprint", lock.fingerprint},
              {"functions", std::move(functions)}}
             .dump(1) +
         "\n";
}

absl::StatusOr<LockFile> ParseLock(std::string_view text,
                                   const std::string& name) {
  absl::StatusOr<LockFile> lock = ParseFields(text);
  if (!lock.ok()) {
    return absl::Status(lock.status().code(),
                        absl::StrCat(name, ": ", lock.status().message()));
  }
  return lock;
}

absl::StatusOr<ScheduledModule> ScheduleFromLock(const ir::IRModule& module,
                                                 const target::Target& target,
                                                 const std::string& fingerprint,
                                                 const Permissions& permissions,
                                                 const LockFile& lock) {
  if (lock.target != target.Key()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lock file is of target ", lock.target, ", not ",
                     target.Key(), ": give that target, or write it again"));
  }
  if (lock.fingerprint != fingerprint) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the lock file was written by the compiler ", lock.fingerprint,
        "; this one is ", fingerprint, ": use that one, or write it again"));
  }
  std::map<std::string, const LockEntry*> entries;
  for (const LockEntry& entry : lock.entries) entries[entry.function] = &entry;
  TF_ASSIGN_OR_RETURN(
      ScheduledModule scheduled,
      ScheduleFromRecords(module, target, fingerprint, permissions,
                          [&](const database::BestQuery& query) {
                            return FindEntry(entries, query);
                          }));
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const LockEntry& entry = *entries.at(module.functions[i]->name);
    if (ir::ProgramHash(*scheduled.module.functions[i]) != entry.scheduled) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the locked schedule of ", module.functions[i]->name,
          " does not come out as when the lock was written: build with the "
          "flags of then, or write it again"));
    }
  }
  return scheduled;
}

}  // namespace tilefarm::driver
