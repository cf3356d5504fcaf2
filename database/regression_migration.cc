#include "database/regression_migration.h"

namespace tilefarm::database {

const char kRegressionTables[] = R"sql(
-- Shared objects that commits were measured with. `symbols` is a JSON list.
CREATE TABLE artifacts(
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  sha256 TEXT NOT NULL UNIQUE,
  bytes INTEGER NOT NULL,
  target TEXT NOT NULL,
  symbols TEXT NOT NULL,
  stored_by TEXT NOT NULL,
  stored_at TEXT NOT NULL,
  used_at TEXT NOT NULL,
  baseline_at TEXT NOT NULL
);

-- Their bytes, in parts, so that reading one takes little memory.
CREATE TABLE artifact_parts(
  artifact INTEGER NOT NULL REFERENCES artifacts(n),
  part INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE(artifact, part)
);

-- Texts of programs and traces, which many points share.
CREATE TABLE regression_texts(
  n INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
);

-- One commit's measurement of one benchmark; only added to.
CREATE TABLE regression_points(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  request_id TEXT NOT NULL,
  series TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  device_class TEXT NOT NULL,
  branch TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  at TEXT NOT NULL,
  device TEXT NOT NULL,
  seconds REAL NOT NULL,
  low_seconds REAL NOT NULL,
  high_seconds REAL NOT NULL,
  ratio REAL NOT NULL,
  ratio_low REAL NOT NULL,
  ratio_high REAL,
  ratio_level REAL NOT NULL,
  clusters INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  baseline_commit TEXT NOT NULL,
  canary_seconds REAL NOT NULL,
  unsteady INTEGER NOT NULL,
  artifact TEXT NOT NULL,
  symbol TEXT NOT NULL,
  spread REAL NOT NULL,
  target TEXT NOT NULL,
  program INTEGER REFERENCES regression_texts(n),
  trace INTEGER REFERENCES regression_texts(n),
  fingerprint TEXT NOT NULL,
  user TEXT NOT NULL,
  workload TEXT NOT NULL
);
CREATE INDEX regression_points_by_series
  ON regression_points(series, benchmark, device_class, branch);
CREATE INDEX regression_points_by_artifact ON regression_points(artifact);
CREATE INDEX regression_points_by_request ON regression_points(request_id);

-- "From this commit on, the time is expected"; device_class '' is every class.
CREATE TABLE regression_acks(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  series TEXT NOT NULL,
  benchmark TEXT NOT NULL,
  device_class TEXT NOT NULL,
  branch TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  user TEXT NOT NULL,
  at TEXT NOT NULL
);
CREATE INDEX regression_acks_by_series ON regression_acks(series, benchmark);

CREATE TRIGGER regression_points_are_kept BEFORE UPDATE ON regression_points
BEGIN SELECT RAISE(ABORT, 'a history is only added to'); END;
CREATE TRIGGER regression_acks_are_kept BEFORE UPDATE ON regression_acks
BEGIN SELECT RAISE(ABORT, 'acknowledgements are only added to'); END;
)sql";

}  // namespace tilefarm::database
