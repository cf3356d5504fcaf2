#include "database/record_writer.h"

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "database/packed_columns.h"
#include "database/race.h"
#include "database/record_check.h"
#include "database/record_rank.h"
#include "database/trace_text.h"

namespace tilefarm::database {
namespace {

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
absl::StatusOr<int64_t> FindWorkload(Connection& db, const std::string& hash,
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

void AppendPart(std::string& key, int64_t number) {
  absl::StrAppend(&key, number, ";");
}
// With its length, because texts may hold any character.
void AppendPart(std::string& key, const std::string& text) {
  absl::StrAppend(&key, text.size(), ":", text);
}

// Different parts give different keys.
template <typename... Parts>
std::string KeyOf(const Parts&... parts) {
  std::string key;
  (AppendPart(key, parts), ...);
  return key;
}

}  // namespace

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

absl::StatusOr<int64_t> RecordWriter::WorkloadId(const std::string& hash,
                                                 const std::string& canonical) {
  const auto [known, added] = workloads_.try_emplace(KeyOf(hash, canonical));
  if (added) {
    TF_ASSIGN_OR_RETURN(known->second, FindWorkload(db_, hash, canonical));
  }
  return known->second;
}

absl::StatusOr<int64_t> RecordWriter::ProgramId(int64_t workload_id,
                                                const std::string& digest,
                                                const std::string& text) {
  const auto [known, added] = programs_.try_emplace(KeyOf(workload_id, digest));
  if (!added) return known->second;
  {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db_.Prepare(
            "SELECT id FROM programs WHERE workload_id = ? AND digest = ?"));
    TF_ASSIGN_OR_RETURN(const bool found,
                        query.Bind(workload_id).Bind(digest).Step());
    if (found) return known->second = query.Int(0);
  }
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db_.Prepare("INSERT INTO programs(workload_id, digest, text) "
                  "VALUES (?, ?, ?)"));
  TF_RETURN_IF_ERROR(insert.Bind(workload_id).Bind(digest).Bind(text).Run());
  return known->second = db_.last_insert_id();
}

absl::StatusOr<int64_t> RecordWriter::SketchId(const std::string& text) {
  const auto [known, added] = sketches_.try_emplace(text);
  if (!added) return known->second;
  const std::string digest = Sha256Hex(text);
  TF_ASSIGN_OR_RETURN(
      known->second,
      FindOrInsert(db_, "SELECT id FROM sketches WHERE digest = ?",
                   "INSERT INTO sketches(digest, text) VALUES (?, ?)", {digest},
                   {digest, text}));
  return known->second;
}

absl::StatusOr<int64_t> RecordWriter::DeviceId(const Record& record) {
  const auto [known, added] =
      devices_.try_emplace(KeyOf(record.device, record.device_model));
  if (!added) return known->second;
  TF_ASSIGN_OR_RETURN(
      known->second,
      FindOrInsert(db_, "SELECT id FROM devices WHERE device = ? AND model = ?",
                   "INSERT INTO devices(device, model) VALUES (?, ?)",
                   {record.device, record.device_model},
                   {record.device, record.device_model}));
  return known->second;
}

// What all records of one series share.
absl::StatusOr<int64_t> RecordWriter::SeriesId(const Record& record,
                                               int64_t workload_id,
                                               int64_t program_id,
                                               int64_t device_id,
                                               const std::string& sketch) {
  const bool library = sketch.find(".call_library(") != std::string::npos;
  const bool tensorized = sketch.find("tensorize") != std::string::npos;
  const auto [known, added] = series_.try_emplace(
      KeyOf(workload_id, program_id, record.target, device_id,
            record.fingerprint, record.job_id, record.isolation,
            record.protocol.layout, record.protocol.cores,
            record.protocol.cold_cache, record.emulated, library, tensorized));
  if (!added) return known->second;
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
        .Bind(library)
        .Bind(tensorized);
  };
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db_.Prepare("SELECT id FROM series WHERE workload_id = ? "
                  "AND program_id = ? AND target = ? AND device_id = ? "
                  "AND fingerprint = ? AND job_id = ? AND isolation = ? "
                  "AND layout = ? AND cores = ? AND cold_cache = ? "
                  "AND emulated = ? AND library = ? AND tensorized = ?"));
  bind(query);
  TF_ASSIGN_OR_RETURN(const bool found, query.Step());
  if (found) return known->second = query.Int(0);
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db_.Prepare("INSERT INTO series(workload_id, program_id, target, "
                  "device_id, fingerprint, job_id, isolation, layout, cores, "
                  "cold_cache, emulated, library, tensorized) "
                  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  bind(insert);
  TF_RETURN_IF_ERROR(insert.Run());
  return known->second = db_.last_insert_id();
}

absl::Status RecordWriter::Insert(const Record& record,
                                  const ProgramFacts& facts) {
  const bool variant = facts.workload_hash != record.workload_hash;
  TF_ASSIGN_OR_RETURN(const int64_t workload_id,
                      WorkloadId(record.workload_hash,
                                 variant ? std::string() : facts.canonical));
  TF_ASSIGN_OR_RETURN(const int64_t program_id,
                      ProgramId(workload_id, facts.digest, record.program));
  const SplitTrace split = SplitTraceText(record.trace);
  TF_ASSIGN_OR_RETURN(const int64_t sketch_id, SketchId(split.sketch));
  TF_ASSIGN_OR_RETURN(const int64_t device_id, DeviceId(record));
  TF_ASSIGN_OR_RETURN(
      const int64_t series_id,
      SeriesId(record, workload_id, program_id, device_id, split.sketch));
  if (!record.recorded_at.empty()) {
    return InsertStored(db_, record, series_id, sketch_id, split.decisions);
  }
  Record dated = record;
  dated.recorded_at = now_;
  return InsertStored(db_, dated, series_id, sketch_id, split.decisions);
}

}  // namespace tilefarm::database
