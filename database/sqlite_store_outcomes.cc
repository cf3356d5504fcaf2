// Reading the numbers of many records.
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/outcomes.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

constexpr char kSelectOutcome[] =
    "SELECT r.id, w.hash, f.target, d.device, f.job_id, f.fingerprint, "
    "r.status, r.median_seconds, r.ci_low_seconds, r.ci_high_seconds, "
    "r.compile_seconds, r.rank_seconds, r.confirmed, r.verified, "
    "r.stopped_early, instr(r.device_state, '\"unsteady\":true') > 0, "
    "f.library, r.sketch_id, r.sequence, r.model_score, r.recorded_at, "
    "CASE WHEN ? THEN r.decisions END FROM stored_records r "
    "JOIN series f ON f.id = r.series_id "
    "JOIN workloads w ON w.id = f.workload_id "
    "JOIN devices d ON d.id = f.device_id ";

// A NULL, and a number that JSON does not have, is 0.
double Number(const Statement& row, int column) {
  const double number = row.Double(column);
  return std::isfinite(number) ? number : 0;
}

absl::StatusOr<OutcomeRow> ReadOutcome(const Statement& row) {
  OutcomeRow out;
  int at = 0;
  out.id = row.Int(at++);
  out.workload_hash = row.Text(at++);
  out.target = row.Text(at++);
  out.device = row.Text(at++);
  out.job_id = row.Text(at++);
  out.fingerprint = row.Text(at++);
  const auto status = ParseStatus(row.Text(at++));
  if (!status) {
    return absl::DataLossError(
        absl::StrCat("record ", out.id, " has an unknown status"));
  }
  out.status = *status;
  out.median_seconds = Number(row, at++);
  out.ci_low_seconds = Number(row, at++);
  out.ci_high_seconds = Number(row, at++);
  out.compile_seconds = Number(row, at++);
  out.rank_seconds = Number(row, at++);
  out.confirmed = row.Bool(at++);
  out.verified = row.Bool(at++);
  out.stopped_early = row.Bool(at++);
  out.unsteady = row.Bool(at++);
  out.library = row.Bool(at++);
  out.sketch = row.Int(at++);
  out.sequence = row.Int(at++);
  out.model_score = row.Text(at++);
  out.recorded_at = row.Text(at++);
  out.decisions = row.Text(at++);
  return out;
}

absl::Status OldSchema() {
  return absl::FailedPreconditionError(
      "the database has an old schema: open it once with tune-server, which "
      "migrates it");
}

// The conditions of a filter, and their parameters in order.
struct OutcomeConditions {
  std::string sql = "WHERE 1 ";
  std::vector<std::string> texts;

  void Add(const char* condition, const std::string& text) {
    if (text.empty()) return;
    absl::StrAppend(&sql, "AND ", condition, " ");
    texts.push_back(text);
  }
};

}  // namespace

absl::StatusOr<std::vector<OutcomeRow>> SqliteStore::ListOutcomes(
    const OutcomeFilter& filter) const {
  if (!packs()) return OldSchema();
  OutcomeConditions where;
  where.Add("f.job_id = ?", filter.job_id);
  where.Add("w.hash = ?", filter.workload_hash);
  where.Add("substr(w.hash, 1, length(?)) = ?", filter.workload_prefix);
  if (!filter.workload_prefix.empty()) {
    where.texts.push_back(filter.workload_prefix);
  }
  where.Add("f.target = ?", filter.target);
  where.Add("d.device = ?", filter.device);
  where.Add("r.status = ?", filter.status);
  where.Add("instr((SELECT text FROM programs WHERE id = f.program_id), ?) > 0",
            filter.text);
  const bool bounded = filter.after > 0 || !filter.reverse;
  // The plus keeps SQLite from walking all ids for the records of a few series.
  const bool few = !filter.job_id.empty() || !filter.workload_hash.empty();
  const char* const id = few ? "+r.id" : "r.id";
  const std::string sql = absl::StrCat(
      kSelectOutcome, where.sql,
      bounded ? absl::StrCat("AND ", id, filter.reverse ? " < ? " : " > ? ")
              : "",
      "ORDER BY ", id, filter.reverse ? " DESC " : " ", "LIMIT ?");
  std::vector<OutcomeRow> rows;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(sql));
    query.Bind(filter.decisions);
    for (const std::string& text : where.texts) query.Bind(text);
    if (bounded) query.Bind(filter.after);
    query.Bind(filter.limit > 0 ? filter.limit : int64_t{-1});
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      TF_ASSIGN_OR_RETURN(OutcomeRow outcome, ReadOutcome(query));
      rows.push_back(std::move(outcome));
    }
  }));
  return rows;
}

absl::StatusOr<std::vector<TaskFigures>> SqliteStore::ListTaskFigures() const {
  if (!packs()) return OldSchema();
  std::vector<TaskFigures> tasks;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT w.hash, f.target, count(*), sum(r.status = 'ok'), "
                   "min(CASE WHEN NOT f.emulated THEN r.rank_seconds END), "
                   "max(r.recorded_at) FROM series f "
                   "JOIN workloads w ON w.id = f.workload_id "
                   "JOIN stored_records r ON r.series_id = f.id "
                   "GROUP BY w.hash, f.target ORDER BY w.hash, f.target"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      tasks.push_back({.workload_hash = query.Text(0),
                       .target = query.Text(1),
                       .records = query.Int(2),
                       .ok = query.Int(3),
                       .best_seconds = Number(query, 4),
                       .recorded_at = query.Text(5)});
    }
  }));
  return tasks;
}

absl::Status SqliteStore::ForEachWorkload(
    const std::string& target_key,
    const std::function<bool(const std::string& hash,
                             const std::string& canonical)>& visit) const {
  if (!packs()) return OldSchema();
  return Read([&](Connection& db) -> absl::Status {
    // A workload of which only variants are stored has no text yet.
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT w.hash, w.canonical FROM workloads w "
                   "WHERE w.canonical != '' AND EXISTS(SELECT 1 FROM series f "
                   "WHERE f.workload_id = w.id AND f.target = ?) "
                   "ORDER BY w.hash"));
    query.Bind(target_key);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row || !visit(query.Text(0), query.Text(1))) return absl::OkStatus();
    }
  });
}

absl::StatusOr<std::string> SqliteStore::GetSketch(int64_t id) const {
  std::string text;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query,
                        db.Prepare("SELECT text FROM sketches WHERE id = ?"));
    TF_ASSIGN_OR_RETURN(const bool row, query.Bind(id).Step());
    if (!row) {
      return absl::NotFoundError(absl::StrCat("there is no sketch ", id));
    }
    text = query.Text(0);
    return absl::OkStatus();
  }));
  return text;
}

absl::StatusOr<Record> SqliteStore::GetRecord(int64_t id) const {
  Record record;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat(select_record(), "WHERE r.id = ?")));
    TF_ASSIGN_OR_RETURN(const bool row, query.Bind(id).Step());
    if (!row) {
      return absl::NotFoundError(absl::StrCat("there is no record ", id));
    }
    TF_ASSIGN_OR_RETURN(record, ReadRecord(query));
    return absl::OkStatus();
  }));
  TF_ASSIGN_OR_RETURN(record.remeasured, FindMeasurements(id));
  return record;
}

}  // namespace tilefarm::database
