#include "database/series_migration.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/packed_columns.h"
#include "database/record_check.h"
#include "database/record_rank.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {

const char kSeriesTables[] = R"sql(
-- What records have in common: task, program, device, protocol, compiler, job,
-- and two properties of their sketches.
CREATE TABLE series(
  id INTEGER PRIMARY KEY,
  workload_id INTEGER NOT NULL REFERENCES workloads(id),
  program_id INTEGER NOT NULL REFERENCES programs(id),
  target TEXT NOT NULL,
  device_id INTEGER NOT NULL REFERENCES devices(id),
  fingerprint TEXT NOT NULL,
  job_id TEXT NOT NULL,
  isolation TEXT NOT NULL,
  layout TEXT NOT NULL,
  cores INTEGER NOT NULL,
  cold_cache INTEGER NOT NULL,
  emulated INTEGER NOT NULL,
  library INTEGER NOT NULL,
  tensorized INTEGER NOT NULL,
  UNIQUE(workload_id, program_id, target, device_id, fingerprint, job_id,
         isolation, layout, cores, cold_cache, emulated, library, tensorized)
);

CREATE TABLE stored_records(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  series_id INTEGER NOT NULL REFERENCES series(id),
  sketch_id INTEGER NOT NULL REFERENCES sketches(id),
  -- A digest of 64 hexadecimal digits is a blob of 32 bytes, any other id text.
  candidate NOT NULL UNIQUE,
  status TEXT NOT NULL,
  median_seconds REAL,
  ci_low_seconds REAL,
  ci_high_seconds REAL,
  -- A blob of big-endian doubles, or a JSON array.
  samples NOT NULL,
  verified INTEGER NOT NULL,
  max_abs_error REAL,
  max_rel_error REAL,
  stopped_early INTEGER NOT NULL,
  error TEXT NOT NULL,
  compile_seconds REAL,
  device_state TEXT NOT NULL,
  -- As candidate.
  code NOT NULL,
  model_score TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  recorded_at TEXT NOT NULL,
  decisions TEXT,
  -- What lookups order the records of a series by, re-measurements included;
  -- NULL: never the best.
  rank_seconds REAL,
  confirmed INTEGER NOT NULL DEFAULT 0,
  -- Of all that the record says: record_check.h.
  content_check INTEGER
);
CREATE INDEX stored_records_by_rank
  ON stored_records(series_id, rank_seconds, confirmed);

CREATE TABLE new_measurements(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  record_id INTEGER NOT NULL REFERENCES stored_records(id),
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
)sql";

namespace {

constexpr char kMove[] = R"sql(
INSERT INTO series(workload_id, program_id, target, device_id, fingerprint,
                   job_id, isolation, layout, cores, cold_cache, emulated,
                   library, tensorized)
SELECT DISTINCT r.workload_id, r.program_id, r.target, r.device_id,
       r.fingerprint, r.job_id, r.isolation, r.layout, r.cores, r.cold_cache,
       r.emulated, instr(s.text, '.call_library(') > 0,
       instr(s.text, 'tensorize') > 0
FROM records r JOIN sketches s ON s.id = r.sketch_id
ORDER BY r.id;

INSERT INTO stored_records
SELECT r.id, f.id, r.sketch_id, pack_digest(r.candidate_id), r.status,
       r.median_seconds, r.ci_low_seconds, r.ci_high_seconds,
       pack_samples(r.seconds), r.verified, r.max_abs_error, r.max_rel_error,
       r.stopped_early, r.error, r.compile_seconds, r.device_state,
       pack_digest(r.code_digest), r.model_score, r.sequence, r.recorded_at,
       r.decisions,
       CASE WHEN r.status = 'ok' AND r.verified AND NOT r.stopped_early AND
                 r.median_seconds > 0 AND r.median_seconds < 9e999
            THEN max(r.median_seconds, ifnull(r.ci_high_seconds, 0)) END,
       0, NULL
FROM records r JOIN sketches s ON s.id = r.sketch_id
JOIN series f ON f.workload_id = r.workload_id AND
     f.program_id = r.program_id AND f.target = r.target AND
     f.device_id = r.device_id AND f.fingerprint = r.fingerprint AND
     f.job_id = r.job_id AND f.isolation = r.isolation AND
     f.layout = r.layout AND f.cores = r.cores AND
     f.cold_cache = r.cold_cache AND f.emulated = r.emulated AND
     f.library = (instr(s.text, '.call_library(') > 0) AND
     f.tensorized = (instr(s.text, 'tensorize') > 0)
ORDER BY r.id;

INSERT INTO new_measurements SELECT * FROM measurements;
DROP VIEW record_traces;
DROP TABLE measurements;
DROP TABLE records;
ALTER TABLE new_measurements RENAME TO measurements;
CREATE INDEX measurements_by_record ON measurements(record_id);

-- Samples are decoded from the bits of doubles: 11 of the exponent, and 52 of
-- the mantissa after a leading one.
CREATE VIEW records AS
SELECT r.id AS id,
  CASE typeof(r.candidate) WHEN 'blob' THEN lower(hex(r.candidate))
    ELSE r.candidate END AS candidate_id,
  w.hash AS workload, f.target AS target, d.device AS device,
  r.status AS status, r.median_seconds AS median_seconds,
  r.ci_low_seconds AS ci_low_seconds, r.ci_high_seconds AS ci_high_seconds,
  CASE typeof(r.samples) WHEN 'blob' THEN (
    WITH RECURSIVE
    digits(i, text) AS (
      SELECT 0, hex(substr(r.samples, 1, 8))
      UNION ALL
      SELECT i + 1, hex(substr(r.samples, 8 * i + 9, 8)) FROM digits
      WHERE 8 * i + 8 < length(r.samples)),
    bits(i, text, at, value) AS (
      SELECT i, text, 0, 0 FROM digits
      UNION ALL
      SELECT i, text, at + 1,
             value << 4 |
             instr('123456789ABCDEF', substr(text, at + 1, 1))
      FROM bits WHERE at < 16),
    parts(i, mantissa, shift) AS (
      SELECT i, value & 0xfffffffffffff | 0x10000000000000,
             1075 - (value >> 52 & 0x7ff)
      FROM bits WHERE at = 16)
    SELECT json_group_array(CASE
        WHEN shift < 0 THEN 1.0 * mantissa * (1 << -shift)
        ELSE 1.0 * mantissa / (1 << min(shift, 62)) /
             (1 << max(shift - 62, 0)) END)
    FROM (SELECT * FROM parts ORDER BY i))
    ELSE r.samples END AS seconds,
  r.verified AS verified, r.max_abs_error AS max_abs_error,
  r.max_rel_error AS max_rel_error, r.stopped_early AS stopped_early,
  f.emulated AS emulated, f.cold_cache AS cold_cache, f.cores AS cores,
  f.layout AS layout, r.error AS error, r.compile_seconds AS compile_seconds,
  f.isolation AS isolation, r.device_state AS device_state,
  f.fingerprint AS fingerprint,
  CASE typeof(r.code) WHEN 'blob' THEN lower(hex(r.code)) ELSE r.code END
    AS code_digest,
  f.job_id AS job_id, r.model_score AS model_score, r.sequence AS sequence,
  r.recorded_at AS recorded_at, r.decisions AS decisions,
  f.workload_id AS workload_id, f.program_id AS program_id,
  r.sketch_id AS sketch_id, f.device_id AS device_id
FROM stored_records r
JOIN series f ON f.id = r.series_id
JOIN workloads w ON w.id = f.workload_id
JOIN devices d ON d.id = f.device_id;

-- The complete traces, for people who read the file with SQL.
CREATE VIEW record_traces AS
WITH RECURSIVE fill(id, done, rest, decisions) AS (
  SELECT r.id, '', s.text, r.decisions || ';'
  FROM stored_records r JOIN sketches s ON s.id = r.sketch_id
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

std::optional<std::string> PackSamplesText(std::string_view text) {
  const auto seconds = SamplesFromText(text);
  return seconds.ok() ? PackSamples(*seconds) : std::nullopt;
}

absl::Status FillChecks(Connection& connection) {
  for (int64_t last = 0;;) {
    std::vector<Record> page;
    {
      TF_ASSIGN_OR_RETURN(
          Statement query,
          connection.Prepare(absl::StrCat(
              kSelectRecord, "WHERE r.id > ? ORDER BY r.id LIMIT 256")));
      query.Bind(last);
      while (true) {
        TF_ASSIGN_OR_RETURN(const bool row, query.Step());
        if (!row) break;
        TF_ASSIGN_OR_RETURN(Record record, ReadRecord(query));
        page.push_back(std::move(record));
      }
    }
    if (page.empty()) return absl::OkStatus();
    for (const Record& record : page) {
      TF_ASSIGN_OR_RETURN(
          Statement update,
          connection.Prepare(
              "UPDATE stored_records SET content_check = ? WHERE id = ?"));
      TF_RETURN_IF_ERROR(update.Bind(CheckOf(record)).Bind(record.id).Run());
    }
    last = page.back().id;
  }
}

}  // namespace

absl::Status FillSeries(Connection& connection) {
  TF_RETURN_IF_ERROR(connection.DefinePacking("pack_digest", PackDigest));
  TF_RETURN_IF_ERROR(connection.DefinePacking("pack_samples", PackSamplesText));
  TF_RETURN_IF_ERROR(connection.Execute(kMove));
  std::vector<int64_t> measured;
  {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        connection.Prepare("SELECT DISTINCT record_id FROM measurements"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      measured.push_back(query.Int(0));
    }
  }
  for (const int64_t record_id : measured) {
    TF_RETURN_IF_ERROR(UpdateRank(connection, record_id));
  }
  return FillChecks(connection);
}

}  // namespace tilefarm::database
