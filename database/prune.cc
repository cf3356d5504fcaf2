#include "database/prune.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "database/sqlite.h"
#include "database/sqlite_open.h"

namespace tilefarm::database {
namespace {

// As RulesOut (race.h) of a later measurement.
constexpr char kRuledOut[] =
    "EXISTS (SELECT 1 FROM measurements m WHERE m.record_id = r.id AND "
    "m.status IN ('wrong_result', 'run_error', 'run_timeout'))";

// Contenders of a lookup are compared within such a group.
constexpr char kGroup[] =
    "f.workload_id, f.target, d.model, f.fingerprint, f.cold_cache, f.cores, "
    "f.layout, f.emulated";

// What is left unused by the remaining records.
constexpr char kDropUnused[] = R"sql(
DELETE FROM series WHERE id NOT IN (SELECT series_id FROM stored_records);
DELETE FROM sketches WHERE id NOT IN (SELECT sketch_id FROM stored_records);
DELETE FROM programs WHERE id NOT IN (SELECT program_id FROM series);
DELETE FROM devices WHERE id NOT IN (SELECT device_id FROM series);
DELETE FROM workloads WHERE id NOT IN (SELECT workload_id FROM series);
)sql";

absl::Status CheckOptions(const PruneOptions& options) {
  if (options.keep < 0) {
    return absl::InvalidArgumentError("a negative number of records to keep");
  }
  if (options.keep == 0 && options.failed_before.empty()) {
    return absl::InvalidArgumentError(
        "neither a number of records to keep nor a date of failed ones");
  }
  if (options.failed_before.empty()) return absl::OkStatus();
  absl::Time parsed;
  std::string error;
  if (!absl::ParseTime("%Y-%m-%d", options.failed_before, &parsed, &error) &&
      !absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", options.failed_before, &parsed,
                       &error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.failed_before,
                     "' is not a date: 2026-01-31 or 2026-01-31T12:00:00Z"));
  }
  return absl::OkStatus();
}

// Fills the temporary table `doomed`.
absl::Status ChooseRecords(Connection& db, const PruneOptions& options,
                           PruneFacts& facts) {
  TF_RETURN_IF_ERROR(
      db.Execute("CREATE TEMP TABLE doomed(id INTEGER PRIMARY KEY)"));
  TF_ASSIGN_OR_RETURN(facts.records,
                      db.QueryInt("SELECT count(*) FROM stored_records"));
  if (options.keep > 0) {
    TF_ASSIGN_OR_RETURN(
        Statement choose,
        db.Prepare(absl::StrCat(
            "INSERT INTO doomed SELECT id FROM (SELECT r.id AS id, "
            "r.rank_seconds IS NULL AS unranked, "
            "row_number() OVER (PARTITION BY ",
            kGroup,
            " ORDER BY r.rank_seconds IS NULL, r.rank_seconds, r.id) AS place, "
            "row_number() OVER (PARTITION BY ",
            kGroup,
            ", f.program_id, r.sketch_id, r.confirmed ORDER BY "
            "r.rank_seconds IS NULL, r.rank_seconds, r.id) AS place_of_sketch "
            "FROM stored_records r JOIN series f ON f.id = r.series_id "
            "JOIN devices d ON d.id = f.device_id "
            "WHERE r.status = 'ok' AND NOT ",
            kRuledOut,
            ") WHERE unranked OR (place > ? AND place_of_sketch > 1)")));
    TF_RETURN_IF_ERROR(choose.Bind(options.keep).Run());
    TF_ASSIGN_OR_RETURN(facts.dropped_ok,
                        db.QueryInt("SELECT count(*) FROM doomed"));
  }
  if (!options.failed_before.empty()) {
    TF_ASSIGN_OR_RETURN(
        Statement choose,
        db.Prepare(
            absl::StrCat("INSERT INTO doomed SELECT r.id FROM stored_records r "
                         "WHERE r.recorded_at < ? AND (r.status <> 'ok' OR ",
                         kRuledOut, ")")));
    TF_RETURN_IF_ERROR(choose.Bind(options.failed_before).Run());
    TF_ASSIGN_OR_RETURN(facts.dropped_failed,
                        db.QueryInt("SELECT count(*) FROM doomed"));
    facts.dropped_failed -= facts.dropped_ok;
  }
  return absl::OkStatus();
}

absl::Status Drop(Connection& db, const PruneOptions& options,
                  PruneFacts& facts) {
  // The statements below keep references whole by themselves. SQLite would look
  // for references to every deleted sketch in all records.
  TF_RETURN_IF_ERROR(db.Execute("PRAGMA foreign_keys = OFF"));
  TF_RETURN_IF_ERROR(db.Transaction([&]() -> absl::Status {
    TF_RETURN_IF_ERROR(ChooseRecords(db, options, facts));
    TF_RETURN_IF_ERROR(db.Execute(
        "DELETE FROM measurements WHERE record_id IN (SELECT id FROM doomed);"
        "DELETE FROM stored_records WHERE id IN (SELECT id FROM doomed);"));
    return db.Execute(kDropUnused);
  }));
  return options.compact ? db.Execute("VACUUM") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<PruneFacts> Prune(const std::string& path,
                                 const PruneOptions& options) {
  TF_RETURN_IF_ERROR(CheckOptions(options));
  PruneFacts facts;
  facts.bytes_before = FileSize(path);
  {
    // Opening for writing would create a missing file.
    TF_ASSIGN_OR_RETURN(const OpenFiles files, OpenForReading(path));
    if (options.dry_run) {
      TF_ASSIGN_OR_RETURN(const int64_t version,
                          files.reader->QueryInt("PRAGMA user_version"));
      if (version < 4) {
        return absl::FailedPreconditionError(
            absl::StrCat(path, " has schema version ", version,
                         ": open it once with tune-server, which migrates it"));
      }
      TF_RETURN_IF_ERROR(files.reader->Snapshot(
          [&] { return ChooseRecords(*files.reader, options, facts); }));
      facts.bytes_after = facts.bytes_before;
      return facts;
    }
  }
  {
    TF_ASSIGN_OR_RETURN(OpenFiles files, OpenForWriting(path));
    files.reader.reset();
    TF_RETURN_IF_ERROR(Drop(*files.writer, options, facts));
    // Closed within the lock: as the last connection it writes its log into the
    // file.
    files.writer.reset();
  }
  facts.bytes_after = FileSize(path);
  return facts;
}

}  // namespace tilefarm::database
