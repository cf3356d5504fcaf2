// The lookup of the best record.
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/best_match.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

using target::Match;
using target::Target;

// The combined re-measurements of a record.
struct Remeasured {
  bool failed = false;
  int64_t measurement_id = 0;  // the latest full one; 0: none
  Rounds rounds;
};

// Why records of the workload were passed over, for the answer "none".
struct Refusals {
  int failed = 0;  // not ok, unverified, stopped early
  int stale = 0;   // another fingerprint
  int emulated = 0;
  int floats = 0;   // change what floats come out
  int library = 0;  // call a library's kernel
  std::set<std::string> kernels;
  int unfit = 0;  // another target
  std::set<std::string> targets;
};

// Rows of `workloads` that are the program: same hash and same structure.
absl::StatusOr<std::vector<int64_t>> WorkloadIds(Connection& db,
                                                 const std::string& hash,
                                                 const ir::PrimFunc& wanted) {
  const std::string wanted_text = ir::Print(wanted);
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT id, canonical FROM workloads WHERE hash = ? "
                 "ORDER BY id"));
  query.Bind(hash);
  std::vector<int64_t> ids;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return ids;
    const std::string text = query.Text(1);
    bool same = text == wanted_text;
    if (!same && !text.empty()) {
      const absl::StatusOr<ir::PrimFuncPtr> stored = ir::ParseFunction(text);
      same = stored.ok() &&
             ir::StructuralEqual(*ir::Canonicalize(**stored), wanted);
    }
    if (same) ids.push_back(query.Int(0));
  }
}

absl::StatusOr<std::map<int64_t, Remeasured>> ReadRemeasured(
    Connection& db, int64_t workload_id) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT m.id, m.record_id, m.status, m.median_seconds, "
                 "m.job_id, m.seconds, "
                 "m.verified AND NOT m.stopped_early "
                 "AND m.emulated = r.emulated AND m.device = r.device AND "
                 "m.cold_cache = r.cold_cache "
                 "AND m.cores = r.cores AND m.layout = r.layout "
                 "FROM measurements m JOIN records r ON r.id = m.record_id "
                 "WHERE r.workload_id = ? ORDER BY m.id"));
  query.Bind(workload_id);
  std::map<int64_t, Remeasured> result;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return result;
    Remeasured& entry = result[query.Int(1)];
    const std::optional<Status> status = ParseStatus(query.Text(2));
    if (status && RulesOut(*status)) entry.failed = true;
    const double median = query.Double(3);
    if (status == Status::kOk && query.Bool(6) && median > 0) {
      entry.measurement_id = query.Int(0);
      TF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                          SecondsFromText(query.Text(5)));
      if (seconds.empty()) seconds = {median};
      entry.rounds.Add(query.Text(4), seconds);
    }
  }
}

bool Contains(const std::vector<std::string>& features,
              const std::string& feature) {
  for (const std::string& f : features) {
    if (f == feature) return true;
  }
  return false;
}

// The same cpu with features masked may lack an intrinsic of the trace.
bool LacksFeatures(const Target& wanted, const Target& recorded) {
  for (const std::string& feature : wanted.features) {
    if (feature[0] == '-' && !Contains(recorded.features, feature)) return true;
  }
  for (const std::string& feature : recorded.features) {
    if (feature[0] == '+' && !Contains(wanted.features, feature)) return true;
  }
  return false;
}

// Parses each target key of a query once.
class TargetCache {
 public:
  // Null where the key is not understood.
  const Target* Find(const std::string& key) {
    const auto [it, added] = targets_.try_emplace(key);
    if (added) {
      absl::StatusOr<Target> parsed = target::ParseKey(key);
      if (parsed.ok()) it->second = *std::move(parsed);
    }
    return it->second ? &*it->second : nullptr;
  }

 private:
  std::map<std::string, std::optional<Target>> targets_;
};

// BestQuery::keeps_floats of the record.
absl::StatusOr<bool> KeepsFloats(Connection& db, const BestQuery& wanted,
                                 int64_t record_id) {
  TF_ASSIGN_OR_RETURN(Statement select, db.Prepare(absl::StrCat(
                                            kSelectRecord, "WHERE r.id = ?")));
  TF_ASSIGN_OR_RETURN(const bool found, select.Bind(record_id).Step());
  if (!found) return absl::DataLossError("a record is gone");
  TF_ASSIGN_OR_RETURN(const Record record, ReadRecord(select));
  return wanted.keeps_floats(record.program, record.trace);
}

absl::Status CollectContenders(Connection& db, int64_t workload_id,
                               const BestQuery& wanted,
                               const std::map<int64_t, Remeasured>& remeasured,
                               TargetCache& targets,
                               std::vector<Contender>& contenders,
                               Refusals& refusals) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT r.id, r.target, r.device, d.model, r.median_seconds, "
                 "r.fingerprint, r.cold_cache, r.cores, r.layout, "
                 "instr(s.text, 'tensorize') > 0, "
                 "r.ci_low_seconds, r.ci_high_seconds, s.text, s.id, "
                 "r.status = 'ok' AND r.verified, "
                 "instr(s.text, '.call_library(') > 0, r.emulated, "
                 "r.stopped_early "
                 "FROM records r JOIN devices d ON d.id = r.device_id "
                 "JOIN sketches s ON s.id = r.sketch_id "
                 "WHERE r.workload_id = ? ORDER BY r.id"));
  query.Bind(workload_id);
  // Thousands of records share a sketch: its text is read once.
  std::map<int64_t, int64_t> instructions;
  const auto instructions_of = [&](const Statement& row) {
    const auto [it, added] = instructions.try_emplace(row.Int(13));
    if (added) it->second = CountInstructions(row.Text(12));
    return it->second;
  };
  // Decisions change nothing about it: asked once for each sketch.
  std::map<int64_t, bool> keeps_floats;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return absl::OkStatus();
    Contender c;
    c.record_id = query.Int(0);
    c.standing = {.seconds = query.Double(4),
                  .low = query.Double(10),
                  .high = query.Double(11),
                  .instructions = instructions_of(query)};
    bool sound = query.Bool(14);
    if (const auto it = remeasured.find(c.record_id); it != remeasured.end()) {
      if (it->second.failed) sound = false;
      if (it->second.measurement_id != 0) {
        const MedianInterval interval = it->second.rounds.interval();
        c.standing.seconds = interval.median;
        c.standing.low = interval.low;
        c.standing.high = interval.high;
        c.standing.confirmed = true;
      }
    }
    // A later full measurement makes up for a first one that was stopped early.
    if (query.Bool(17) && !c.standing.confirmed) sound = false;
    if (!sound || !(c.standing.seconds > 0) || std::isinf(c.standing.seconds)) {
      ++refusals.failed;
      continue;
    }
    const std::string key = query.Text(1);
    const Target* recorded = targets.Find(key);
    c.match = recorded == nullptr ? Match::kNone
                                  : target::Compare(*recorded, wanted.target);
    const bool tensorized = query.Bool(9);
    if (c.match == Match::kNone ||
        (tensorized && c.match == Match::kMicroarch &&
         LacksFeatures(wanted.target, *recorded))) {
      ++refusals.unfit;
      refusals.targets.insert(key);
      continue;
    }
    c.fingerprint = query.Text(5);
    c.fresh = c.fingerprint == wanted.fingerprint;
    if (!c.fresh && !wanted.allow_stale) {
      ++refusals.stale;
      continue;
    }
    if (query.Bool(15) && !wanted.allow_library) {
      ++refusals.library;
      refusals.kernels.insert(LibraryOf(query.Text(12)));
      continue;
    }
    c.emulated = query.Bool(16);
    if (c.emulated && !wanted.allow_emulated) {
      ++refusals.emulated;
      continue;
    }
    if (wanted.keeps_floats != nullptr) {
      const auto [it, added] = keeps_floats.try_emplace(query.Int(13));
      if (added) {
        TF_ASSIGN_OR_RETURN(it->second, KeepsFloats(db, wanted, c.record_id));
      }
      if (!it->second) {
        ++refusals.floats;
        continue;
      }
    }
    c.device = query.Text(2);
    c.device_model = query.Text(3);
    c.same_model =
        !wanted.device_model.empty() && c.device_model == wanted.device_model;
    c.equal_cores = recorded->cores == wanted.target.cores;
    c.cores = recorded->cores;
    c.kind = recorded->kind;
    c.cpu = recorded->cpu;
    c.protocol.cold_cache = query.Bool(6);
    c.protocol.cores = static_cast<int>(query.Int(7));
    c.protocol.layout = query.Text(8);
    contenders.push_back(std::move(c));
  }
}

// Those that a flag of the user decides about; empty: none.
std::vector<std::string> LeftOut(const Refusals& refusals) {
  std::vector<std::string> reasons;
  if (refusals.library > 0) {
    reasons.push_back(absl::StrCat(refusals.library, " that call ",
                                   absl::StrJoin(refusals.kernels, ", "),
                                   " (--allow-library takes them)"));
  }
  if (refusals.floats > 0) {
    reasons.push_back(absl::StrCat(
        refusals.floats,
        " that round differently or leave out terms (--strict-fp)"));
  }
  return reasons;
}

std::string Explain(const std::string& hash, const Refusals& refusals) {
  std::string text =
      absl::StrCat("no usable record of workload ", hash.substr(0, 12));
  std::vector<std::string> reasons;
  if (refusals.stale > 0) {
    reasons.push_back(absl::StrCat(
        refusals.stale,
        " of another compiler fingerprint (--allow-stale takes them)"));
  }
  if (refusals.emulated > 0) {
    reasons.push_back(
        absl::StrCat(refusals.emulated,
                     " timed by an emulator (--allow-emulated takes "
                     "them)"));
  }
  for (std::string& reason : LeftOut(refusals)) {
    reasons.push_back(std::move(reason));
  }
  if (refusals.unfit > 0) {
    reasons.push_back(absl::StrCat(refusals.unfit,
                                   " of targets that do not fit (",
                                   absl::StrJoin(refusals.targets, " "), ")"));
  }
  if (refusals.failed > 0) {
    reasons.push_back(
        absl::StrCat(refusals.failed, " failed, unverified or stopped early"));
  }
  if (reasons.empty()) return absl::StrCat(text, ": there is none");
  return absl::StrCat(text, ": ", absl::StrJoin(reasons, ", "));
}

// Replaces the samples of the record by those of its re-measurements.
absl::Status UseMeasurements(Connection& db, const Remeasured& remeasured,
                             Record& record) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT max_abs_error, max_rel_error, device_state "
                 "FROM measurements WHERE id = ?"));
  TF_ASSIGN_OR_RETURN(const bool found,
                      query.Bind(remeasured.measurement_id).Step());
  if (!found) return absl::DataLossError("a measurement is gone");
  const MedianInterval interval = remeasured.rounds.interval();
  record.stopped_early = false;
  record.seconds = remeasured.rounds.seconds();
  record.median_seconds = interval.median;
  record.ci_low_seconds = interval.low;
  record.ci_high_seconds = interval.high;
  record.max_abs_error = query.Double(0);
  record.max_rel_error = query.Double(1);
  record.device_state = query.Text(2);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BestMatch> SqliteStore::FindBest(const BestQuery& query) const {
  if (query.program == nullptr) {
    return absl::InvalidArgumentError("the query has no program");
  }
  const ir::PrimFuncPtr canonical = ir::Canonicalize(*query.program);
  const std::string hash = ir::WorkloadHash(*query.program);
  BestMatch best;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> workloads,
                        WorkloadIds(db, hash, *canonical));
    std::vector<Contender> contenders;
    std::map<int64_t, Remeasured> remeasured;
    Refusals refusals;
    TargetCache targets;
    for (const int64_t workload : workloads) {
      TF_ASSIGN_OR_RETURN(const auto more, ReadRemeasured(db, workload));
      remeasured.insert(more.begin(), more.end());
      TF_RETURN_IF_ERROR(CollectContenders(db, workload, query, remeasured,
                                           targets, contenders, refusals));
    }
    const std::optional<size_t> chosen = ChooseBest(contenders);
    if (!chosen) return absl::NotFoundError(Explain(hash, refusals));
    const Contender& winner = contenders[*chosen];

    TF_ASSIGN_OR_RETURN(
        Statement select,
        db.Prepare(absl::StrCat(kSelectRecord, "WHERE r.id = ?")));
    TF_ASSIGN_OR_RETURN(const bool found, select.Bind(winner.record_id).Step());
    if (!found) return absl::DataLossError("a record is gone");
    TF_ASSIGN_OR_RETURN(best.record, ReadRecord(select));
    best.reason = ReasonFor(winner);
    for (const std::string& left_out : LeftOut(refusals)) {
      absl::StrAppend(&best.reason, ", without ", left_out);
    }
    const auto it = remeasured.find(winner.record_id);
    if (it != remeasured.end() && it->second.measurement_id != 0) {
      return UseMeasurements(db, it->second, best.record);
    }
    return absl::OkStatus();
  }));
  return best;
}

}  // namespace tilefarm::database
