// The lookup of the best record.
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
#include "database/record_rank.h"
#include "database/sqlite_store.h"
#include "database/target_fit.h"

namespace tilefarm::database {
namespace {

using target::Match;
using target::Target;

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

// BestQuery::keeps_floats of the record.
absl::StatusOr<bool> KeepsFloats(Connection& db, const char* select_record,
                                 const BestQuery& wanted, int64_t record_id) {
  TF_ASSIGN_OR_RETURN(Statement select, db.Prepare(absl::StrCat(
                                            select_record, "WHERE r.id = ?")));
  TF_ASSIGN_OR_RETURN(const bool found, select.Bind(record_id).Step());
  if (!found) return absl::DataLossError("a record is gone");
  TF_ASSIGN_OR_RETURN(const Record record, ReadRecord(select));
  return wanted.keeps_floats(record.program, record.trace);
}

absl::Status CollectContenders(Connection& db, const char* select_record,
                               int64_t workload_id, const BestQuery& wanted,
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
    const auto again = remeasured.find(c.record_id);
    const std::optional<Standing> standing =
        StandingOf({.verified = query.Bool(14),
                    .stopped_early = query.Bool(17),
                    .median = query.Double(4),
                    .low = query.Double(10),
                    .high = query.Double(11)},
                   again == remeasured.end() ? nullptr : &again->second);
    if (!standing) {
      ++refusals.failed;
      continue;
    }
    c.standing = *standing;
    c.standing.instructions = instructions_of(query);
    const std::string key = query.Text(1);
    const Target* recorded = targets.Find(key);
    c.match = TargetFit(recorded, wanted.target, /*tensorized=*/query.Bool(9));
    if (c.match == Match::kNone) {
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
        TF_ASSIGN_OR_RETURN(
            it->second, KeepsFloats(db, select_record, wanted, c.record_id));
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

// The one workload with a hash, without a program to compare it to.
absl::StatusOr<std::vector<int64_t>> WorkloadOfHash(Connection& db,
                                                    const std::string& hash) {
  TF_ASSIGN_OR_RETURN(Statement query,
                      db.Prepare("SELECT id FROM workloads WHERE hash = ? "
                                 "AND canonical <> '' ORDER BY id"));
  query.Bind(hash);
  std::vector<int64_t> ids;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    ids.push_back(query.Int(0));
  }
  if (ids.size() > 1) {
    return absl::NotFoundError(
        absl::StrCat("several programs have the workload hash ",
                     hash.substr(0, 12), ": look it up with the program"));
  }
  return ids;
}

}  // namespace

absl::StatusOr<Record> SqliteStore::ReadBest(Connection& db,
                                             int64_t record_id) const {
  Record record;
  {
    TF_ASSIGN_OR_RETURN(
        Statement select,
        db.Prepare(absl::StrCat(select_record(), "WHERE r.id = ?")));
    TF_ASSIGN_OR_RETURN(const bool found, select.Bind(record_id).Step());
    if (!found) return absl::DataLossError("a record is gone");
    TF_ASSIGN_OR_RETURN(record, ReadRecord(select));
  }
  TF_ASSIGN_OR_RETURN(const Remeasured remeasured,
                      RemeasuredOfRecord(db, record_id));
  if (remeasured.measurement_id != 0) {
    TF_RETURN_IF_ERROR(UseMeasurements(db, remeasured, record));
  }
  return record;
}

absl::StatusOr<BestMatch> SqliteStore::FindAmongAll(
    Connection& db, const std::string& hash,
    const std::vector<int64_t>& workloads, const BestQuery& query) const {
  std::vector<Contender> contenders;
  Refusals refusals;
  TargetCache targets;
  for (const int64_t workload : workloads) {
    TF_ASSIGN_OR_RETURN(const auto remeasured,
                        RemeasuredOfWorkload(db, workload));
    TF_RETURN_IF_ERROR(CollectContenders(db, select_record(), workload, query,
                                         remeasured, targets, contenders,
                                         refusals));
  }
  const std::optional<size_t> chosen = ChooseBest(contenders);
  if (!chosen) return absl::NotFoundError(Explain(hash, refusals));
  BestMatch best;
  TF_ASSIGN_OR_RETURN(best.record, ReadBest(db, contenders[*chosen].record_id));
  best.reason = ReasonFor(contenders[*chosen]);
  for (const std::string& left_out : LeftOut(refusals)) {
    absl::StrAppend(&best.reason, ", without ", left_out);
  }
  return best;
}

absl::StatusOr<BestMatch> SqliteStore::FindBest(const BestQuery& query) const {
  if ((query.program == nullptr) == query.workload_hash.empty()) {
    return absl::InvalidArgumentError(
        "the query needs either a program or a workload hash");
  }
  ir::PrimFuncPtr canonical;
  std::string hash = query.workload_hash;
  if (query.program != nullptr) {
    canonical = ir::Canonicalize(*query.program);
    hash = ir::WorkloadHash(*query.program);
  }
  BestMatch best;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) {
    return db.Snapshot([&]() -> absl::Status {
      TF_ASSIGN_OR_RETURN(const std::vector<int64_t> workloads,
                          canonical == nullptr
                              ? WorkloadOfHash(db, hash)
                              : WorkloadIds(db, hash, *canonical));
      if (packs() && !query.examine_all) {
        TF_ASSIGN_OR_RETURN(auto ranked, FindByRank(db, workloads, query));
        if (ranked) {
          best = *std::move(ranked);
          return absl::OkStatus();
        }
      }
      TF_ASSIGN_OR_RETURN(best, FindAmongAll(db, hash, workloads, query));
      return absl::OkStatus();
    });
  }));
  return best;
}

}  // namespace tilefarm::database
