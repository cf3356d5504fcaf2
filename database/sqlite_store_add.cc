// Storing records and measurements.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/packed_columns.h"
#include "database/record_check.h"
#include "database/record_rank.h"
#include "database/sqlite_store.h"
#include "database/trace_text.h"

namespace tilefarm::database {
namespace {

// Programs whose facts are kept; a farm has a few dozen tasks at a time.
constexpr size_t kMaxFacts = 1024;

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

constexpr char kMeasuredPlaces[] =
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

void BindMeasured(Statement& insert, const Record& r, const std::string& now) {
  insert.Bind(r.device)
      .Bind(StatusName(r.status))
      .Bind(r.median_seconds)
      .Bind(r.ci_low_seconds)
      .Bind(r.ci_high_seconds)
      .Bind(SamplesToText(r.seconds))
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

// A digest in the form that the file has: schema 4 packs it.
void BindDigest(Statement& query, bool packs, const std::string& id) {
  const std::optional<std::string> packed =
      packs ? PackDigest(id) : std::nullopt;
  if (packed) {
    query.BindBlob(*packed);
  } else {
    query.Bind(id);
  }
}

absl::Status InsertMeasurement(Connection& db, int64_t record_id,
                               const Record& measured, const std::string& now) {
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare(absl::StrCat("INSERT INTO measurements(record_id, ",
                              kMeasurementColumns, ") VALUES (?, ",
                              kMeasuredPlaces, ")")));
  insert.Bind(record_id);
  BindMeasured(insert, measured, now);
  return insert.Run();
}

// What all records of one series share.
absl::StatusOr<int64_t> SeriesId(Connection& db, const Record& record,
                                 int64_t workload_id, int64_t program_id,
                                 int64_t device_id, const std::string& sketch) {
  const auto bind = [&](Statement& statement) {
    statement.Bind(workload_id)
        .Bind(program_id)
        .Bind(record.target)
        .Bind(device_id)
        .Bind(record.fingerprint)
        .Bind(record.job_id)
        .Bind(record.isolation)
        .Bind(record.protocol.layout)
        .Bind(record.protocol.cores)
        .Bind(record.protocol.cold_cache)
        .Bind(record.emulated)
        .Bind(sketch.find(".call_library(") != std::string::npos)
        .Bind(sketch.find("tensorize") != std::string::npos);
  };
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT id FROM series WHERE workload_id = ? "
                 "AND program_id = ? AND target = ? AND device_id = ? "
                 "AND fingerprint = ? AND job_id = ? AND isolation = ? "
                 "AND layout = ? AND cores = ? AND cold_cache = ? "
                 "AND emulated = ? AND library = ? AND tensorized = ?"));
  bind(query);
  TF_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found) return query.Int(0);
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO series(workload_id, program_id, target, "
                 "device_id, fingerprint, job_id, isolation, layout, cores, "
                 "cold_cache, emulated, library, tensorized) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  bind(insert);
  TF_RETURN_IF_ERROR(insert.Run());
  return db.last_insert_id();
}

absl::Status InsertStored(Connection& db, const Record& r, int64_t series_id,
                          int64_t sketch_id,
                          const std::optional<std::string>& decisions) {
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO stored_records(series_id, sketch_id, candidate, "
                 "status, median_seconds, ci_low_seconds, ci_high_seconds, "
                 "samples, verified, max_abs_error, max_rel_error, "
                 "stopped_early, error, compile_seconds, device_state, code, "
                 "model_score, sequence, recorded_at, decisions, rank_seconds, "
                 "content_check) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                 "?, ?, ?, ?, ?)"));
  insert.Bind(series_id).Bind(sketch_id);
  BindDigest(insert, /*packs=*/true, r.candidate_id);
  insert.Bind(StatusName(r.status))
      .Bind(r.median_seconds)
      .Bind(r.ci_low_seconds)
      .Bind(r.ci_high_seconds);
  if (const auto samples = PackSamples(r.seconds)) {
    insert.BindBlob(*samples);
  } else {
    insert.Bind(SamplesToText(r.seconds));
  }
  insert.Bind(r.verified)
      .Bind(r.max_abs_error)
      .Bind(r.max_rel_error)
      .Bind(r.stopped_early)
      .Bind(r.error)
      .Bind(r.compile_seconds)
      .Bind(r.device_state);
  BindDigest(insert, /*packs=*/true, r.code_digest);
  insert.Bind(r.model_score)
      .Bind(r.sequence)
      .Bind(r.recorded_at)
      .Bind(decisions);
  const std::optional<Standing> standing =
      StandingOf({.verified = r.status == Status::kOk && r.verified,
                  .stopped_early = r.stopped_early,
                  .median = r.median_seconds,
                  .low = r.ci_low_seconds,
                  .high = r.ci_high_seconds},
                 nullptr);
  if (standing) {
    insert.Bind(ClaimOf(*standing));
  } else {
    insert.BindNull();
  }
  return insert.Bind(CheckOf(r)).Run();
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
                            .Bind(SamplesToText(measured.seconds))
                            .Step());
    if (known) continue;
    TF_RETURN_IF_ERROR(InsertMeasurement(db, record_id, measured, now));
  }
  return UpdateRank(db, record_id);
}

}  // namespace

absl::StatusOr<int64_t> RecordIdOf(Connection& db, bool packs,
                                   const std::string& candidate_id) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(packs ? "SELECT id FROM stored_records WHERE candidate = ?"
                       : "SELECT id FROM records WHERE candidate_id = ?"));
  BindDigest(query, packs, candidate_id);
  TF_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
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
  TF_ASSIGN_OR_RETURN(
      const int64_t series_id,
      SeriesId(db, record, workload_id, program_id, device_id, split.sketch));
  if (!record.recorded_at.empty()) {
    return InsertStored(db, record, series_id, sketch_id, split.decisions);
  }
  Record dated = record;
  dated.recorded_at = NowText();
  return InsertStored(db, dated, series_id, sketch_id, split.decisions);
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
      TF_ASSIGN_OR_RETURN(const int64_t known,
                          RecordIdOf(db, packs(), records[i].candidate_id));
      if (known == 0) {
        TF_RETURN_IF_ERROR(InsertRecord(db, records[i], facts[i]));
        added[i] = true;
      }
      if (records[i].remeasured.empty()) continue;
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
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT 1 FROM stored_records WHERE id = ?"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(record_id).Step());
    if (!found) {
      return absl::NotFoundError(absl::StrCat("no record ", record_id));
    }
    TF_RETURN_IF_ERROR(InsertMeasurement(db, record_id, measured, NowText()));
    return UpdateRank(db, record_id);
  });
}

}  // namespace tilefarm::database
