// Reading records and measurements.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/packed_columns.h"
#include "database/record_check.h"
#include "database/sqlite_store.h"
#include "database/trace_text.h"

namespace tilefarm::database {
namespace {

// Records that are read each time the lock is held.
constexpr int kRecordPage = 256;

// Reads kMeasurementColumns from column `at` on.
absl::Status ReadMeasured(const Statement& row, int at, Record& r) {
  r.device = row.Text(at++);
  const std::string status_name = row.Text(at++);
  const std::optional<Status> status = ParseStatus(status_name);
  if (!status) {
    return absl::DataLossError(absl::StrCat(
        "row ", r.id, " has the unknown status \"", status_name, "\""));
  }
  r.status = *status;
  r.median_seconds = row.Double(at++);
  r.ci_low_seconds = row.Double(at++);
  r.ci_high_seconds = row.Double(at++);
  TF_ASSIGN_OR_RETURN(r.seconds, row.IsBlob(at)
                                     ? UnpackSamples(row.Text(at))
                                     : SamplesFromText(row.Text(at)));
  ++at;
  r.verified = row.Bool(at++);
  r.max_abs_error = row.Double(at++);
  r.max_rel_error = row.Double(at++);
  r.stopped_early = row.Bool(at++);
  r.emulated = row.Bool(at++);
  r.protocol.cold_cache = row.Bool(at++);
  r.protocol.cores = static_cast<int>(row.Int(at++));
  r.protocol.layout = row.Text(at++);
  r.error = row.Text(at++);
  r.compile_seconds = row.Double(at++);
  r.isolation = row.Text(at++);
  r.device_state = row.Text(at++);
  r.fingerprint = row.Text(at++);
  r.code_digest = row.Text(at++);
  r.job_id = row.Text(at++);
  r.recorded_at = row.Text(at++);
  return absl::OkStatus();
}

absl::Status CollectMeasurements(Connection& db, int64_t record_id,
                                 std::vector<Record>& out) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(absl::StrCat("SELECT id, ", kMeasurementColumns,
                              " FROM measurements WHERE record_id = ? "
                              "ORDER BY id")));
  query.Bind(record_id);
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return absl::OkStatus();
    Record measured;
    measured.id = query.Int(0);
    TF_RETURN_IF_ERROR(ReadMeasured(query, 1, measured));
    out.push_back(std::move(measured));
  }
}

absl::Status CollectRecords(Statement& query, std::vector<Record>& out) {
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return absl::OkStatus();
    TF_ASSIGN_OR_RETURN(Record record, ReadRecord(query));
    out.push_back(std::move(record));
  }
}

}  // namespace

const char kMeasurementColumns[] =
    "device, status, median_seconds, ci_low_seconds, ci_high_seconds, seconds, "
    "verified, max_abs_error, max_rel_error, stopped_early, emulated, "
    "cold_cache, cores, layout, error, compile_seconds, isolation, "
    "device_state, fingerprint, code_digest, job_id, recorded_at";

// Both have the columns of ReadMeasured last. The first is of schema 4.
const char kSelectRecord[] =
    "SELECT r.id, CASE typeof(r.candidate) WHEN 'blob' "
    "THEN lower(hex(r.candidate)) ELSE r.candidate END, w.hash, p.text, "
    "f.target, s.text, r.decisions, d.model, r.model_score, r.sequence, "
    "r.content_check, d.device, r.status, r.median_seconds, r.ci_low_seconds, "
    "r.ci_high_seconds, r.samples, r.verified, r.max_abs_error, "
    "r.max_rel_error, r.stopped_early, f.emulated, f.cold_cache, f.cores, "
    "f.layout, r.error, r.compile_seconds, f.isolation, r.device_state, "
    "f.fingerprint, CASE typeof(r.code) WHEN 'blob' THEN lower(hex(r.code)) "
    "ELSE r.code END, f.job_id, r.recorded_at FROM stored_records r "
    "JOIN series f ON f.id = r.series_id "
    "JOIN workloads w ON w.id = f.workload_id "
    "JOIN programs p ON p.id = f.program_id "
    "JOIN sketches s ON s.id = r.sketch_id "
    "JOIN devices d ON d.id = f.device_id ";
const char kSelectRecord3[] =
    "SELECT r.id, r.candidate_id, r.workload, p.text, r.target, s.text, "
    "r.decisions, d.model, r.model_score, r.sequence, NULL, "
    "r.device, r.status, r.median_seconds, r.ci_low_seconds, "
    "r.ci_high_seconds, r.seconds, r.verified, r.max_abs_error, "
    "r.max_rel_error, r.stopped_early, r.emulated, r.cold_cache, r.cores, "
    "r.layout, r.error, r.compile_seconds, r.isolation, r.device_state, "
    "r.fingerprint, r.code_digest, r.job_id, r.recorded_at FROM records r "
    "JOIN programs p ON p.id = r.program_id "
    "JOIN sketches s ON s.id = r.sketch_id "
    "JOIN devices d ON d.id = r.device_id ";

absl::StatusOr<Record> ReadRecord(const Statement& row) {
  Record r;
  int at = 0;
  r.id = row.Int(at++);
  r.candidate_id = row.Text(at++);
  r.workload_hash = row.Text(at++);
  r.program = row.Text(at++);
  r.target = row.Text(at++);
  SplitTrace split;
  split.sketch = row.Text(at++);
  if (!row.IsNull(at)) split.decisions = row.Text(at);
  ++at;
  r.device_model = row.Text(at++);
  r.model_score = row.Text(at++);
  r.sequence = row.Int(at++);
  const int check = at++;
  TF_RETURN_IF_ERROR(ReadMeasured(row, at, r));
  TF_ASSIGN_OR_RETURN(r.trace, JoinTraceText(split));
  if (!row.IsNull(check) && row.Int(check) != CheckOf(r)) {
    return absl::DataLossError(absl::StrCat(
        "record ", r.id, " is damaged: its check sum does not fit"));
  }
  return r;
}

absl::StatusOr<std::vector<Record>> SqliteStore::FindMeasurements(
    int64_t record_id) const {
  std::vector<Record> measurements;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) {
    return CollectMeasurements(db, record_id, measurements);
  }));
  return measurements;
}

absl::Status SqliteStore::ForEachRecord(
    const std::function<bool(const Record&)>& visit) const {
  int64_t last = 0;
  while (true) {
    // The callback runs without the lock, so that it may call the store.
    TF_ASSIGN_OR_RETURN(const std::vector<Record> page, NextRecords("", last));
    if (page.empty()) return absl::OkStatus();
    for (const Record& record : page) {
      if (!visit(record)) return absl::OkStatus();
    }
    last = page.back().id;
  }
}

absl::StatusOr<std::vector<Record>> SqliteStore::NextRecords(
    const std::string& workload_hash, int64_t after) const {
  // The plus keeps SQLite from walking all ids for the records of a workload.
  const char* where = "WHERE r.id > ? ";
  if (!workload_hash.empty()) {
    where = packs() ? "WHERE +r.id > ? AND w.hash = ? "
                    : "WHERE +r.id > ? AND r.workload = ? ";
  }
  const std::string sql =
      absl::StrCat(select_record(), where, "ORDER BY r.id LIMIT ", kRecordPage);
  std::vector<Record> page;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(sql));
    query.Bind(after);
    if (!workload_hash.empty()) query.Bind(workload_hash);
    TF_RETURN_IF_ERROR(CollectRecords(query, page));
    // In a damaged file they may not ascend; paging would not end.
    int64_t last = after;
    for (Record& record : page) {
      if (record.id <= last) {
        return absl::DataLossError(absl::StrCat(
            "the database is damaged: record ", record.id, " follows ", last));
      }
      last = record.id;
      TF_RETURN_IF_ERROR(CollectMeasurements(db, record.id, record.remeasured));
    }
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<std::vector<Task>> SqliteStore::ListTasks() const {
  std::vector<Task> tasks;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(packs() ? "SELECT DISTINCT w.hash, f.target FROM series f "
                             "JOIN workloads w ON w.id = f.workload_id "
                             "ORDER BY w.hash, f.target"
                           : "SELECT DISTINCT workload, target FROM records "
                             "ORDER BY workload, target"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      tasks.push_back(
          {.workload_hash = query.Text(0), .target = query.Text(1)});
    }
  }));
  return tasks;
}

absl::StatusOr<std::vector<Record>> SqliteStore::FindRecords(
    const std::string& workload_hash, const std::string& target_key) const {
  std::vector<Record> records;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat(
            select_record(),
            packs() ? "WHERE w.hash = ? AND f.target = ? ORDER BY r.id"
                    : "WHERE r.workload = ? AND r.target = ? ORDER BY r.id")));
    return CollectRecords(query.Bind(workload_hash).Bind(target_key), records);
  }));
  return records;
}

absl::StatusOr<int64_t> SqliteStore::RecordOf(
    const std::string& candidate_id) const {
  int64_t id = 0;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(id, RecordIdOf(db, packs(), candidate_id));
    return absl::OkStatus();
  }));
  if (id == 0) {
    return absl::NotFoundError(
        absl::StrCat("candidate ", candidate_id, " has no record"));
  }
  return id;
}

absl::StatusOr<bool> SqliteStore::HasCandidate(
    const std::string& candidate_id) const {
  const auto id = RecordOf(candidate_id);
  if (absl::IsNotFound(id.status())) return false;
  TF_RETURN_IF_ERROR(id.status());
  return true;
}

absl::StatusOr<int64_t> SqliteStore::BytesOfUser(
    const std::string& user) const {
  int64_t bytes = 0;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    const char* const of_user =
        packs() ? "SELECT count(*) FROM jobs j JOIN series s ON s.job_id = "
                  "j.id JOIN stored_records r ON r.series_id = s.id WHERE "
                  "j.user = ?"
                : "SELECT count(*) FROM jobs j JOIN records r ON r.job_id = "
                  "j.id WHERE j.user = ?";
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(of_user));
    TF_RETURN_IF_ERROR(query.Bind(user).Step().status());
    const int64_t own = query.Int(0);
    TF_ASSIGN_OR_RETURN(
        const int64_t all,
        db.QueryInt(absl::StrCat("SELECT count(*) FROM ",
                                 packs() ? "stored_records" : "records")));
    TF_ASSIGN_OR_RETURN(const int64_t pages, db.QueryInt("PRAGMA page_count"));
    TF_ASSIGN_OR_RETURN(const int64_t size, db.QueryInt("PRAGMA page_size"));
    if (all > 0) {
      bytes = static_cast<int64_t>(static_cast<double>(pages * size) *
                                   static_cast<double>(own) /
                                   static_cast<double>(all));
    }
    return absl::OkStatus();
  }));
  return bytes;
}

absl::StatusOr<Stats> SqliteStore::GetStats() const {
  Stats stats;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat("SELECT status, count(*) FROM ",
                                packs() ? "stored_records" : "records",
                                " GROUP BY status")));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      stats.by_status[query.Text(0)] = query.Int(1);
      stats.records += query.Int(1);
    }
    TF_ASSIGN_OR_RETURN(
        stats.workloads,
        db.QueryInt(absl::StrCat("SELECT count(DISTINCT workload_id) FROM ",
                                 packs() ? "series" : "records")));
    return absl::OkStatus();
  }));
  return stats;
}

}  // namespace tilefarm::database
