#include "database/examine_records.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/best_match.h"
#include "database/record_rank.h"
#include "database/sqlite_store.h"
#include "database/target_fit.h"

namespace tilefarm::database {
namespace {

using target::Match;
using target::Target;

constexpr char kSelect[] =
    "SELECT r.id, r.target, r.device, d.model, r.median_seconds, "
    "r.fingerprint, r.cold_cache, r.cores, r.layout, "
    "instr(s.text, 'tensorize') > 0, "
    "r.ci_low_seconds, r.ci_high_seconds, s.text, s.id, "
    "r.status = 'ok', r.verified, "
    "instr(s.text, '.call_library(') > 0, r.emulated, "
    "r.stopped_early "
    "FROM records r JOIN devices d ON d.id = r.device_id "
    "JOIN sketches s ON s.id = r.sketch_id "
    "WHERE r.workload_id = ? ORDER BY r.id";

// Examines the rows of kSelect one after the other.
class Examiner {
 public:
  Examiner(Connection& db, const char* select_record, const BestQuery& wanted)
      : db_(db), select_record_(select_record), wanted_(wanted) {}

  absl::StatusOr<Examined> Examine(const Statement& row,
                                   const Remeasured* remeasured) {
    Examined out;
    Contender& c = out.contender;
    c.record_id = row.Int(0);
    out.target = row.Text(1);
    c.device = row.Text(2);
    c.device_model = row.Text(3);
    c.fingerprint = row.Text(5);
    c.protocol.cold_cache = row.Bool(6);
    c.protocol.cores = static_cast<int>(row.Int(7));
    c.protocol.layout = row.Text(8);
    c.emulated = row.Bool(17);
    const bool ok = row.Bool(14), verified = row.Bool(15);
    const std::optional<Standing> standing =
        StandingOf({.verified = ok && verified,
                    .stopped_early = row.Bool(18),
                    .median = row.Double(4),
                    .low = row.Double(10),
                    .high = row.Double(11)},
                   remeasured);
    if (!standing) {
      out.fate = !ok         ? Fate::kFailed
                 : !verified ? Fate::kUnverified
                 : remeasured != nullptr && remeasured->failed
                     ? Fate::kRuledOut
                     : Fate::kStoppedEarly;
      return out;
    }
    c.standing = *standing;
    c.standing.instructions = InstructionsOf(row);
    const Target* recorded = targets_.Find(out.target);
    c.match = TargetFit(recorded, wanted_.target, /*tensorized=*/row.Bool(9));
    if (c.match == Match::kNone) {
      out.fate = TargetFit(recorded, wanted_.target, /*tensorized=*/false) ==
                         Match::kNone
                     ? Fate::kTarget
                     : Fate::kFeatures;
      return out;
    }
    c.fresh = c.fingerprint == wanted_.fingerprint;
    c.same_model =
        !wanted_.device_model.empty() && c.device_model == wanted_.device_model;
    c.equal_cores = recorded->cores == wanted_.target.cores;
    c.cores = recorded->cores;
    c.kind = recorded->kind;
    c.cpu = recorded->cpu;
    if (!c.fresh && !wanted_.allow_stale) {
      out.fate = Fate::kStale;
    } else if (row.Bool(16) && !wanted_.allow_library) {
      out.fate = Fate::kLibrary;
      out.library = LibraryOf(row.Text(12));
    } else if (c.emulated && !wanted_.allow_emulated) {
      out.fate = Fate::kEmulated;
    } else if (wanted_.keeps_floats != nullptr) {
      TF_ASSIGN_OR_RETURN(const bool keeps, KeepsFloats(row));
      if (!keeps) out.fate = Fate::kFloats;
    }
    return out;
  }

 private:
  // Thousands of records share a sketch: its text is read once.
  int64_t InstructionsOf(const Statement& row) {
    const auto [it, added] = instructions_.try_emplace(row.Int(13));
    if (added) it->second = CountInstructions(row.Text(12));
    return it->second;
  }

  // BestQuery::keeps_floats of the row's record. Decisions change nothing about
  // it: asked once for each sketch.
  absl::StatusOr<bool> KeepsFloats(const Statement& row) {
    const auto [it, added] = keeps_floats_.try_emplace(row.Int(13));
    if (added) {
      TF_ASSIGN_OR_RETURN(
          Statement select,
          db_.Prepare(absl::StrCat(select_record_, "WHERE r.id = ?")));
      TF_ASSIGN_OR_RETURN(const bool found, select.Bind(row.Int(0)).Step());
      if (!found) return absl::DataLossError("a record is gone");
      TF_ASSIGN_OR_RETURN(const Record record, ReadRecord(select));
      it->second = wanted_.keeps_floats(record.program, record.trace);
    }
    return it->second;
  }

  Connection& db_;
  const char* const select_record_;
  const BestQuery& wanted_;
  TargetCache targets_;
  std::map<int64_t, int64_t> instructions_;
  std::map<int64_t, bool> keeps_floats_;
};

}  // namespace

absl::StatusOr<std::vector<Examined>> ExamineRecords(
    Connection& db, const char* select_record,
    const std::vector<int64_t>& workloads, const BestQuery& wanted) {
  std::vector<Examined> all;
  Examiner examiner(db, select_record, wanted);
  for (const int64_t workload : workloads) {
    TF_ASSIGN_OR_RETURN(const auto remeasured,
                        RemeasuredOfWorkload(db, workload));
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(kSelect));
    query.Bind(workload);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      const auto again = remeasured.find(query.Int(0));
      TF_ASSIGN_OR_RETURN(
          Examined record,
          examiner.Examine(
              query, again == remeasured.end() ? nullptr : &again->second));
      all.push_back(std::move(record));
    }
  }
  return all;
}

}  // namespace tilefarm::database
