// The lookup of the best record.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/best_match.h"
#include "database/examine_records.h"
#include "database/record_rank.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

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

// The one workload with a hash, without a program to compare it to. The index
// answers alone: it need not read the program's text.
absl::StatusOr<std::vector<int64_t>> WorkloadOfHash(Connection& db,
                                                    const std::string& hash) {
  TF_ASSIGN_OR_RETURN(Statement query,
                      db.Prepare("SELECT id FROM workloads WHERE hash = ? "
                                 "AND canonical > ''"));
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

absl::StatusOr<Record> SqliteStore::ReadBest(Connection& db, int64_t record_id,
                                             bool confirmed) const {
  Record record;
  {
    TF_ASSIGN_OR_RETURN(
        Statement select,
        db.Prepare(absl::StrCat(select_record(), "WHERE r.id = ?")));
    TF_ASSIGN_OR_RETURN(const bool found, select.Bind(record_id).Step());
    if (!found) return absl::DataLossError("a record is gone");
    TF_ASSIGN_OR_RETURN(record, ReadRecord(select));
  }
  if (!confirmed) return record;
  TF_ASSIGN_OR_RETURN(const Remeasured remeasured,
                      RemeasuredOfRecord(db, record_id));
  if (remeasured.measurement_id != 0) {
    TF_RETURN_IF_ERROR(UseMeasurements(db, remeasured, record));
  }
  return record;
}

absl::StatusOr<BestMatch> SqliteStore::FindAmongAll(
    Connection& db, const std::string& hash,
    const std::vector<int64_t>& workloads, const BestQuery& query,
    Explanation* explanation) const {
  TF_ASSIGN_OR_RETURN(std::vector<Examined> examined,
                      ExamineRecords(db, select_record(), workloads, query));
  std::vector<Contender> contenders;
  std::vector<size_t> places;
  for (size_t i = 0; i < examined.size(); ++i) {
    if (examined[i].fate != Fate::kSlower) continue;
    contenders.push_back(examined[i].contender);
    places.push_back(i);
  }
  const std::optional<size_t> chosen = ChooseBest(contenders);
  BestMatch best;
  if (chosen) {
    const Contender& winner = contenders[*chosen];
    TF_ASSIGN_OR_RETURN(
        best.record, ReadBest(db, winner.record_id, winner.standing.confirmed));
    best.fit = FitOf(winner);
    best.reason = ReasonFor(winner);
    for (const std::string& left_out : LeftOut(examined)) {
      absl::StrAppend(&best.reason, ", without ", left_out);
    }
  }
  if (explanation != nullptr) {
    if (chosen) JudgeContenders(places[*chosen], examined);
    *explanation = Summarize(hash, examined);
    explanation->found = chosen.has_value();
    explanation->fit = best.fit;
    explanation->chosen = best.record.candidate_id;
    explanation->median_seconds = best.record.median_seconds;
    explanation->reason = chosen ? best.reason : WhyNone(hash, examined);
  }
  if (!chosen) return absl::NotFoundError(WhyNone(hash, examined));
  return best;
}

absl::Status SqliteStore::WithWorkloads(
    const BestQuery& query,
    const std::function<absl::Status(Connection&, const std::string& hash,
                                     const std::vector<int64_t>&)>& body)
    const {
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
  return Read([&](Connection& db) {
    return db.Snapshot([&]() -> absl::Status {
      TF_ASSIGN_OR_RETURN(const std::vector<int64_t> workloads,
                          canonical == nullptr
                              ? WorkloadOfHash(db, hash)
                              : WorkloadIds(db, hash, *canonical));
      return body(db, hash, workloads);
    });
  });
}

absl::StatusOr<BestMatch> SqliteStore::FindBest(const BestQuery& query) const {
  BestMatch best;
  TF_RETURN_IF_ERROR(WithWorkloads(
      query,
      [&](Connection& db, const std::string& hash,
          const std::vector<int64_t>& workloads) -> absl::Status {
        if (packs() && !query.examine_all) {
          TF_ASSIGN_OR_RETURN(auto ranked, FindByRank(db, workloads, query));
          if (ranked) {
            best = *std::move(ranked);
            return absl::OkStatus();
          }
        }
        TF_ASSIGN_OR_RETURN(best,
                            FindAmongAll(db, hash, workloads, query, nullptr));
        return absl::OkStatus();
      }));
  return best;
}

absl::StatusOr<Explanation> SqliteStore::ExplainBest(
    const BestQuery& query) const {
  Explanation explanation;
  TF_RETURN_IF_ERROR(WithWorkloads(
      query,
      [&](Connection& db, const std::string& hash,
          const std::vector<int64_t>& workloads) -> absl::Status {
        const absl::Status status =
            FindAmongAll(db, hash, workloads, query, &explanation).status();
        // That there is none is an explanation, too.
        return absl::IsNotFound(status) ? absl::OkStatus() : status;
      }));
  return explanation;
}

}  // namespace tilefarm::database
