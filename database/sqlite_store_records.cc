// Records and measurements.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/sqlite_store.h"
#include "database/trace_text.h"

namespace tilefarm::database {
namespace {

// Records that are read each time the lock is held.
constexpr int kPage = 256;
// Programs whose facts are kept; a farm has a few dozen tasks at a time.
constexpr size_t kMaxFacts = 1024;

// "[0.001,0.0011]"; SQL's JSON functions read it.
std::string SecondsToText(const std::vector<double>& seconds) {
  return nlohmann::json(seconds).dump();
}

// The id of the row that `select` finds with `keys` bound; 0: none.
absl::StatusOr<int64_t> FindId(Connection& db, const char* select,
                               std::initializer_list<std::string_view> keys) {
  TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(select));
  for (const std::string_view key : keys) query.Bind(key);
  TF_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
}

// As FindId; inserts with the same keys where there is none.
absl::StatusOr<int64_t> FindOrInsert(
    Connection& db, const char* select, const char* insert_sql,
    std::initializer_list<std::string_view> find_keys,
    std::initializer_list<std::string_view> insert_keys) {
  TF_ASSIGN_OR_RETURN(const int64_t id, FindId(db, select, find_keys));
  if (id != 0) return id;
  TF_ASSIGN_OR_RETURN(Statement insert, db.Prepare(insert_sql));
  for (const std::string_view key : insert_keys) insert.Bind(key);
  TF_RETURN_IF_ERROR(insert.Run());
  return db.last_insert_id();
}

// `canonical` is empty for a program that is a variant of the workload.
absl::StatusOr<int64_t> WorkloadId(Connection& db, const std::string& hash,
                                   const std::string& canonical) {
  if (canonical.empty()) {
    return FindOrInsert(db,
                        "SELECT id FROM workloads WHERE hash = ? "
                        "ORDER BY canonical = '', id",
                        "INSERT INTO workloads(hash, canonical) VALUES (?, '')",
                        {hash}, {hash});
  }
  TF_ASSIGN_OR_RETURN(
      const int64_t known,
      FindId(db, "SELECT id FROM workloads WHERE hash = ? AND canonical = ?",
             {hash, canonical}));
  if (known != 0) return known;
  // Its variants came first.
  TF_ASSIGN_OR_RETURN(
      const int64_t unnamed,
      FindId(db, "SELECT id FROM workloads WHERE hash = ? AND canonical = ''",
             {hash}));
  if (unnamed != 0) {
    TF_ASSIGN_OR_RETURN(
        Statement update,
        db.Prepare("UPDATE workloads SET canonical = ? WHERE id = ?"));
    TF_RETURN_IF_ERROR(update.Bind(canonical).Bind(unnamed).Run());
    return unnamed;
  }
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO workloads(hash, canonical) VALUES (?, ?)"));
  TF_RETURN_IF_ERROR(insert.Bind(hash).Bind(canonical).Run());
  return db.last_insert_id();
}

absl::StatusOr<int64_t> ProgramId(Connection& db, int64_t workload_id,
                                  const std::string& digest,
                                  const std::string& text) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(
          "SELECT id FROM programs WHERE workload_id = ? AND digest = ?"));
  TF_ASSIGN_OR_RETURN(const bool found,
                      query.Bind(workload_id).Bind(digest).Step());
  if (found) return query.Int(0);
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO programs(workload_id, digest, text) "
                 "VALUES (?, ?, ?)"));
  TF_RETURN_IF_ERROR(insert.Bind(workload_id).Bind(digest).Bind(text).Run());
  return db.last_insert_id();
}

// The columns that `records` and `measurements` share, in this order.
constexpr char kMeasuredColumns[] =
    "device, status, median_seconds, ci_low_seconds, ci_high_seconds, seconds, "
    "verified, max_abs_error, max_rel_error, stopped_early, emulated, "
    "cold_cache, cores, layout, error, compile_seconds, isolation, "
    "device_state, fingerprint, code_digest, job_id, recorded_at";
constexpr char kMeasuredPlaces[] =
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

void BindMeasured(Statement& insert, const Record& r, const std::string& now) {
  insert.Bind(r.device)
      .Bind(StatusName(r.status))
      .Bind(r.median_seconds)
      .Bind(r.ci_low_seconds)
      .Bind(r.ci_high_seconds)
      .Bind(SecondsToText(r.seconds))
      .Bind(r.verified)
      .Bind(r.max_abs_error)
      .Bind(r.max_rel_error)
      .Bind(r.stopped_early)
      .Bind(r.emulated)
      .Bind(r.protocol.cold_cache)
      .Bind(r.protocol.cores)
      .Bind(r.protocol.layout)
      .Bind(r.error)
      .Bind(r.compile_seconds)
      .Bind(r.isolation)
      .Bind(r.device_state)
      .Bind(r.fingerprint)
      .Bind(r.code_digest)
      .Bind(r.job_id)
      .Bind(r.recorded_at.empty() ? now : r.recorded_at);
}

// Reads kMeasuredColumns from column `at` on.
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
  TF_ASSIGN_OR_RETURN(r.seconds, SecondsFromText(row.Text(at++)));
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

absl::Status InsertMeasurement(Connection& db, int64_t record_id,
                               const Record& measured, const std::string& now) {
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare(absl::StrCat("INSERT INTO measurements(record_id, ",
                              kMeasuredColumns, ") VALUES (?, ",
                              kMeasuredPlaces, ")")));
  insert.Bind(record_id);
  BindMeasured(insert, measured, now);
  return insert.Run();
}

// Stores those of an imported record that are not there yet.
absl::Status MergeMeasurements(Connection& db, int64_t record_id,
                               const std::vector<Record>& measurements,
                               const std::string& now) {
  for (const Record& measured : measurements) {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT 1 FROM measurements WHERE record_id = ? "
                   "AND device = ? AND status = ? AND recorded_at = ? "
                   "AND seconds = ?"));
    TF_ASSIGN_OR_RETURN(const bool known,
                        query.Bind(record_id)
                            .Bind(measured.device)
                            .Bind(StatusName(measured.status))
                            .Bind(measured.recorded_at)
                            .Bind(SecondsToText(measured.seconds))
                            .Step());
    if (known) continue;
    TF_RETURN_IF_ERROR(InsertMeasurement(db, record_id, measured, now));
  }
  return absl::OkStatus();
}

absl::Status CollectMeasurements(Connection& db, int64_t record_id,
                                 std::vector<Record>& out) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(absl::StrCat("SELECT id, ", kMeasuredColumns,
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

// The columns of ReadMeasured come last.
const char kSelectRecord[] =
    "SELECT r.id, r.candidate_id, r.workload, p.text, r.target, s.text, "
    "r.decisions, d.model, r.model_score, r.sequence, "
    "r.device, r.status, r.median_seconds, r.ci_low_seconds, "
    "r.ci_high_seconds, r.seconds, r.verified, r.max_abs_error, "
    "r.max_rel_error, r.stopped_early, r.emulated, r.cold_cache, r.cores, "
    "r.layout, r.error, r.compile_seconds, r.isolation, r.device_state, "
    "r.fingerprint, r.code_digest, r.job_id, r.recorded_at FROM records r "
    "JOIN programs p ON p.id = r.program_id "
    "JOIN sketches s ON s.id = r.sketch_id "
    "JOIN devices d ON d.id = r.device_id ";

absl::StatusOr<std::vector<double>> SecondsFromText(const std::string& text) {
  const nlohmann::json json = ParseJson(text);
  if (!json.is_array()) {
    return absl::DataLossError("the samples are not a JSON array");
  }
  std::vector<double> seconds;
  for (const nlohmann::json& value : json) {
    // JSON has no NaN: it was written as null.
    seconds.push_back(value.is_number()
                          ? value.get<double>()
                          : std::numeric_limits<double>::quiet_NaN());
  }
  return seconds;
}

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
  TF_RETURN_IF_ERROR(ReadMeasured(row, at, r));
  TF_ASSIGN_OR_RETURN(r.trace, JoinTraceText(split));
  return r;
}

SqliteStore::ProgramFacts SqliteStore::FactsOf(const std::string& program) {
  std::string digest = Sha256Hex(program);
  {
    MutexLock lock(facts_mutex_);
    if (const auto it = facts_.find(digest); it != facts_.end()) {
      return it->second;
    }
  }
  ProgramFacts facts;
  facts.digest = std::move(digest);
  // A text that does not parse is stored, too, because the measurement was
  // made. It is never returned as an answer.
  const absl::StatusOr<ir::PrimFuncPtr> function = ir::ParseFunction(program);
  if (function.ok()) {
    facts.canonical = ir::Print(*ir::Canonicalize(**function));
    facts.workload_hash = ir::WorkloadHash(**function);
  }
  MutexLock lock(facts_mutex_);
  if (facts_.size() >= kMaxFacts) facts_.clear();
  facts_.emplace(facts.digest, facts);
  return facts;
}

absl::Status SqliteStore::InsertRecord(Connection& db, const Record& record,
                                       const ProgramFacts& facts) {
  const bool variant = facts.workload_hash != record.workload_hash;
  TF_ASSIGN_OR_RETURN(const int64_t workload_id,
                      WorkloadId(db, record.workload_hash,
                                 variant ? std::string() : facts.canonical));
  TF_ASSIGN_OR_RETURN(const int64_t program_id,
                      ProgramId(db, workload_id, facts.digest, record.program));
  const SplitTrace split = SplitTraceText(record.trace);
  const std::string sketch_digest = Sha256Hex(split.sketch);
  TF_ASSIGN_OR_RETURN(
      const int64_t sketch_id,
      FindOrInsert(db, "SELECT id FROM sketches WHERE digest = ?",
                   "INSERT INTO sketches(digest, text) VALUES (?, ?)",
                   {sketch_digest}, {sketch_digest, split.sketch}));
  TF_ASSIGN_OR_RETURN(
      const int64_t device_id,
      FindOrInsert(db, "SELECT id FROM devices WHERE device = ? AND model = ?",
                   "INSERT INTO devices(device, model) VALUES (?, ?)",
                   {record.device, record.device_model},
                   {record.device, record.device_model}));
  static const std::string* const kInsert = new std::string(absl::StrCat(
      "INSERT INTO records(candidate_id, workload, target, model_score, "
      "sequence, decisions, workload_id, program_id, sketch_id, device_id, ",
      kMeasuredColumns, ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ",
      kMeasuredPlaces, ")"));
  TF_ASSIGN_OR_RETURN(Statement insert, db.Prepare(*kInsert));
  insert.Bind(record.candidate_id)
      .Bind(record.workload_hash)
      .Bind(record.target)
      .Bind(record.model_score)
      .Bind(record.sequence)
      .Bind(split.decisions)
      .Bind(workload_id)
      .Bind(program_id)
      .Bind(sketch_id)
      .Bind(device_id);
  BindMeasured(insert, record, NowText());
  return insert.Run();
}

absl::StatusOr<std::vector<bool>> SqliteStore::AddRecords(
    std::span<const Record> records) {
  std::vector<ProgramFacts> facts;
  facts.reserve(records.size());
  for (const Record& record : records) {
    if (record.candidate_id.empty() || record.workload_hash.empty()) {
      return absl::InvalidArgumentError(
          "a record needs a candidate id and a workload hash");
    }
    facts.push_back(FactsOf(record.program));
  }
  std::vector<bool> added(records.size(), false);
  TF_RETURN_IF_ERROR(Write([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < records.size(); ++i) {
      TF_ASSIGN_OR_RETURN(
          const int64_t known,
          FindId(db, "SELECT id FROM records WHERE candidate_id = ?",
                 {records[i].candidate_id}));
      if (known == 0) {
        TF_RETURN_IF_ERROR(InsertRecord(db, records[i], facts[i]));
        added[i] = true;
      }
      TF_RETURN_IF_ERROR(
          MergeMeasurements(db, known != 0 ? known : db.last_insert_id(),
                            records[i].remeasured, NowText()));
    }
    return absl::OkStatus();
  }));
  return added;
}

absl::Status SqliteStore::AddMeasurement(int64_t record_id,
                                         const Record& measured) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query,
                        db.Prepare("SELECT 1 FROM records WHERE id = ?"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(record_id).Step());
    if (!found) {
      return absl::NotFoundError(absl::StrCat("no record ", record_id));
    }
    return InsertMeasurement(db, record_id, measured, NowText());
  });
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
  const std::string sql =
      absl::StrCat(kSelectRecord, "WHERE r.id > ? ORDER BY r.id LIMIT ", kPage);
  int64_t last = 0;
  while (true) {
    // The callback runs without the lock, so that it may call the store.
    std::vector<Record> page;
    TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
      TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(sql));
      TF_RETURN_IF_ERROR(CollectRecords(query.Bind(last), page));
      for (Record& record : page) {
        TF_RETURN_IF_ERROR(
            CollectMeasurements(db, record.id, record.remeasured));
      }
      return absl::OkStatus();
    }));
    for (const Record& record : page) {
      if (!visit(record)) return absl::OkStatus();
    }
    if (page.size() < static_cast<size_t>(kPage)) return absl::OkStatus();
    last = page.back().id;
  }
}

absl::StatusOr<std::vector<Record>> SqliteStore::FindRecords(
    const std::string& workload_hash, const std::string& target_key) const {
  std::vector<Record> records;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat(
            kSelectRecord,
            "WHERE r.workload = ? AND r.target = ? ORDER BY r.id")));
    return CollectRecords(query.Bind(workload_hash).Bind(target_key), records);
  }));
  return records;
}

absl::StatusOr<int64_t> SqliteStore::RecordOf(
    const std::string& candidate_id) const {
  int64_t id = 0;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        id, FindId(db, "SELECT id FROM records WHERE candidate_id = ?",
                   {candidate_id}));
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

absl::StatusOr<Stats> SqliteStore::GetStats() const {
  Stats stats;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT status, count(*) FROM records GROUP BY status"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      stats.by_status[query.Text(0)] = query.Int(1);
      stats.records += query.Int(1);
    }
    TF_ASSIGN_OR_RETURN(
        stats.workloads,
        db.QueryInt("SELECT count(DISTINCT workload_id) FROM records"));
    return absl::OkStatus();
  }));
  return stats;
}

}  // namespace tilefarm::database
