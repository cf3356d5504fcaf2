#include "database/migrations.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/regression_migration.h"
#include "database/series_migration.h"

namespace tilefarm::database {
namespace {

constexpr const char* kVersion1 = R"sql(
CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- One row a workload. Two workloads may share a hash (a collision), so the
-- canonical text is part of the key; '' where only variants are stored yet.
CREATE TABLE workloads(
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  canonical TEXT NOT NULL,
  UNIQUE(hash, canonical)
);

-- Exact texts that traces were made on.
CREATE TABLE programs(
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workloads(id),
  digest TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE(workload_id, digest)
);

-- Fixed texts of traces: '?' stands for each decision.
CREATE TABLE sketches(
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
);

CREATE TABLE devices(
  id INTEGER PRIMARY KEY,
  device TEXT NOT NULL,
  model TEXT NOT NULL,
  UNIQUE(device, model)
);

CREATE TABLE records(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  candidate_id TEXT NOT NULL UNIQUE,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  device TEXT NOT NULL,
  status TEXT NOT NULL,
  median_seconds REAL,
  ci_low_seconds REAL,
  ci_high_seconds REAL,
  seconds TEXT NOT NULL,
  verified INTEGER NOT NULL,
  max_abs_error REAL,
  max_rel_error REAL,
  stopped_early INTEGER NOT NULL,
  emulated INTEGER NOT NULL,
  cold_cache INTEGER NOT NULL,
  cores INTEGER NOT NULL,
  layout TEXT NOT NULL,
  error TEXT NOT NULL,
  compile_seconds REAL,
  isolation TEXT NOT NULL,
  device_state TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  code_digest TEXT NOT NULL,
  job_id TEXT NOT NULL,
  model_score TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  recorded_at TEXT NOT NULL,
  decisions TEXT,
  workload_id INTEGER NOT NULL REFERENCES workloads(id),
  program_id INTEGER NOT NULL REFERENCES programs(id),
  sketch_id INTEGER NOT NULL REFERENCES sketches(id),
  device_id INTEGER NOT NULL REFERENCES devices(id)
);
CREATE INDEX records_by_workload ON records(workload, target);
CREATE INDEX records_by_job ON records(job_id);

-- Re-measurements of records.
CREATE TABLE measurements(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  record_id INTEGER NOT NULL REFERENCES records(id),
  device TEXT NOT NULL,
  status TEXT NOT NULL,
  median_seconds REAL,
  ci_low_seconds REAL,
  ci_high_seconds REAL,
  seconds TEXT NOT NULL,
  verified INTEGER NOT NULL,
  max_abs_error REAL,
  max_rel_error REAL,
  stopped_early INTEGER NOT NULL,
  emulated INTEGER NOT NULL,
  cold_cache INTEGER NOT NULL,
  cores INTEGER NOT NULL,
  layout TEXT NOT NULL,
  error TEXT NOT NULL,
  compile_seconds REAL,
  isolation TEXT NOT NULL,
  device_state TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  code_digest TEXT NOT NULL,
  job_id TEXT NOT NULL,
  recorded_at TEXT NOT NULL
);
CREATE INDEX measurements_by_record ON measurements(record_id);

CREATE TABLE jobs(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  request_id TEXT UNIQUE,
  state TEXT NOT NULL,
  user TEXT NOT NULL,
  program TEXT NOT NULL,
  target TEXT NOT NULL,
  trials INTEGER NOT NULL,
  spec_json TEXT NOT NULL,
  error TEXT NOT NULL,
  created_at TEXT NOT NULL,
  ended_at TEXT NOT NULL
);

CREATE TABLE job_log(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES jobs(n),
  line TEXT NOT NULL
);
CREATE INDEX job_log_by_job ON job_log(job);

CREATE TABLE blobs(
  key TEXT PRIMARY KEY,
  bytes BLOB NOT NULL,
  stored_at TEXT NOT NULL
);

-- The complete traces, for people who read the file with SQL.
CREATE VIEW record_traces AS
WITH RECURSIVE fill(id, done, rest, decisions) AS (
  SELECT r.id, '', s.text, r.decisions || ';'
  FROM records r JOIN sketches s ON s.id = r.sketch_id
  UNION ALL
  SELECT id,
         done || substr(rest, 1, instr(rest, '?') - 1) ||
             substr(decisions, 1, instr(decisions, ';') - 1),
         substr(rest, instr(rest, '?') + 1),
         substr(decisions, instr(decisions, ';') + 1)
  FROM fill WHERE decisions IS NOT NULL AND instr(rest, '?') > 0
)
SELECT id, done || rest AS trace FROM fill
WHERE decisions IS NULL OR instr(rest, '?') = 0;
)sql";

constexpr const char* kVersion2 = R"sql(
-- What operators decided about devices, by name.
CREATE TABLE device_states(
  name TEXT PRIMARY KEY,
  operator_state TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  reserved_for TEXT NOT NULL,
  reserved_until TEXT NOT NULL,
  model TEXT NOT NULL,
  target TEXT NOT NULL,
  last_seen TEXT NOT NULL
) WITHOUT ROWID;

-- What canaries told of each device ("NAME@DIGEST").
CREATE TABLE device_canaries(
  device TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  seconds REAL NOT NULL,
  good_through INTEGER NOT NULL,
  suspect_after INTEGER NOT NULL,
  suspect_through INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit_log(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE INDEX audit_log_by_subject ON audit_log(subject);
)sql";

constexpr const char* kVersion3 = R"sql(
-- Bearer tokens; '' is never.
CREATE TABLE tokens(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  sha256 TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  revoked_at TEXT NOT NULL
);

-- Names whose certificates issued up to then are void.
CREATE TABLE revoked_names(
  name TEXT PRIMARY KEY,
  revoked_at TEXT NOT NULL
) WITHOUT ROWID;
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},
    {2, kVersion2},
    {3, kVersion3},
    {4, kSeriesTables, FillSeries},
    {kRegressionVersion, kRegressionTables},
};

struct Header {
  int version = 0;
  int64_t application_id = 0;
  int64_t objects = 0;
};

absl::StatusOr<Header> ReadHeader(Connection& connection) {
  Header header;
  // Read the schema first, because that fails if the file is no database of
  // ours.
  TF_ASSIGN_OR_RETURN(
      header.objects,
      connection.QueryInt("SELECT count(*) FROM sqlite_master"));
  TF_ASSIGN_OR_RETURN(const int64_t version,
                      connection.QueryInt("PRAGMA user_version"));
  header.version = static_cast<int>(version);
  TF_ASSIGN_OR_RETURN(header.application_id,
                      connection.QueryInt("PRAGMA application_id"));
  return header;
}

absl::Status CheckOurs(const Header& header) {
  if (header.objects > 0 && header.application_id != kApplicationId) {
    return absl::InvalidArgumentError(
        "the file is an SQLite database, but not a tuning database");
  }
  return absl::OkStatus();
}

absl::Status Newer(int found, int known) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the database has schema version ", found, ", newer than this program's ",
      known, "; use a newer release"));
}

}  // namespace

std::span<const Migration> Migrations() { return kMigrations; }

int SchemaVersion() { return kMigrations[std::size(kMigrations) - 1].version; }

absl::Status Migrate(Connection& connection,
                     std::span<const Migration> migrations) {
  TF_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection));
  TF_RETURN_IF_ERROR(CheckOurs(header));
  const int last = migrations.back().version;
  if (header.version > last) return Newer(header.version, last);
  for (const Migration& migration : migrations) {
    if (migration.version <= header.version) continue;
    TF_RETURN_IF_ERROR(connection.Transaction([&]() -> absl::Status {
      TF_RETURN_IF_ERROR(connection.Execute(
          absl::StrCat("PRAGMA application_id = ", kApplicationId)));
      TF_RETURN_IF_ERROR(connection.Execute(migration.sql));
      if (migration.then != nullptr) {
        TF_RETURN_IF_ERROR(migration.then(connection));
      }
      // Written with the tables: a crash leaves the old version whole.
      return connection.Execute(
          absl::StrCat("PRAGMA user_version = ", migration.version));
    }));
  }
  return absl::OkStatus();
}

absl::Status CheckReadable(Connection& connection) {
  TF_ASSIGN_OR_RETURN(const Header header, ReadHeader(connection));
  TF_RETURN_IF_ERROR(CheckOurs(header));
  const int known = SchemaVersion();
  if (header.version > known) return Newer(header.version, known);
  if (header.version < 1) {
    return absl::FailedPreconditionError(
        "the database is empty: nothing has been stored in it yet");
  }
  if (header.version < kOldestReadable) {
    return absl::FailedPreconditionError(
        absl::StrCat("the database has schema version ", header.version,
                     "; this program reads ", kOldestReadable, " to ", known,
                     ": open it once with tune-server, which migrates it"));
  }
  if (header.version < 4) {
    TF_ASSIGN_OR_RETURN(
        const int64_t later,
        connection.QueryInt("SELECT count(*) FROM sqlite_master "
                            "WHERE name = 'stored_records'"));
    if (later > 0) {
      return absl::DataLossError(
          absl::StrCat("the database says that it has schema version ",
                       header.version, ", but it has tables of a later one"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::database
