// Artifacts of commits.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "database/regression_migration.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

std::string TextOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string ToJson(const std::vector<std::string>& symbols) {
  return nlohmann::json(symbols).dump();
}

std::vector<std::string> FromJson(const std::string& text) {
  std::vector<std::string> symbols;
  const auto json = ParseJson(text);
  if (!json.is_array()) return symbols;
  for (const auto& one : json) {
    if (one.is_string()) symbols.push_back(one.get<std::string>());
  }
  return symbols;
}

absl::Status NotStored(const std::string& sha256) {
  return absl::NotFoundError(absl::StrCat(
      "the artifact ", sha256.substr(0, 12),
      " is not stored: it was never stored, or was deleted to make room"));
}

// Artifacts of the newest points of histories that are not older than `?`.
constexpr char kNewest[] =
    "SELECT p.artifact FROM regression_points p WHERE p.at >= ? AND p.id = "
    "(SELECT max(q.id) FROM regression_points q WHERE q.series = p.series AND "
    "q.benchmark = p.benchmark AND q.device_class = p.device_class AND "
    "q.branch = p.branch)";

absl::Status Delete(Connection& db, int64_t artifact) {
  for (const char* sql : {"DELETE FROM artifact_parts WHERE artifact = ?",
                          "DELETE FROM artifacts WHERE n = ?"}) {
    TF_ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
    TF_RETURN_IF_ERROR(statement.Bind(artifact).Run());
  }
  return absl::OkStatus();
}

// Deletes what is too old, and then, the longest unused first, as much as
// `needed` more bytes take.
absl::Status MakeRoom(Connection& db, int64_t needed, absl::Time now,
                      const ArtifactRetention& retention) {
  TF_ASSIGN_OR_RETURN(
      int64_t total,
      db.QueryInt("SELECT coalesce(sum(bytes), 0) FROM artifacts"));
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(absl::StrCat(
          "SELECT n, bytes, used_at < ? FROM artifacts WHERE baseline_at < ? "
          "AND sha256 NOT IN (",
          kNewest, ") ORDER BY used_at, n")));
  query.Bind(TextOf(now - retention.unused))
      .Bind(TextOf(now - retention.baseline_unused))
      .Bind(TextOf(now - retention.baseline_unused));
  std::vector<int64_t> deleted;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) break;
    if (!query.Bool(2) && total + needed <= retention.most_bytes) break;
    deleted.push_back(query.Int(0));
    total -= query.Int(1);
  }
  if (total + needed > retention.most_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the artifact has ", needed >> 10, " KiB, and the store is full: ",
        total >> 20, " of ", retention.most_bytes >> 20,
        " MiB are artifacts that are kept as baselines (tune-server "
        "--artifact-quota)"));
  }
  for (const int64_t artifact : deleted) {
    TF_RETURN_IF_ERROR(Delete(db, artifact));
  }
  return absl::OkStatus();
}

constexpr char kSelectArtifact[] =
    "SELECT sha256, bytes, target, symbols, stored_by, stored_at, used_at, "
    "baseline_at, n FROM artifacts WHERE sha256 = ?";

ArtifactRow ReadArtifactRow(const Statement& row) {
  return {.sha256 = row.Text(0),
          .bytes = row.Int(1),
          .target = row.Text(2),
          .symbols = FromJson(row.Text(3)),
          .stored_by = row.Text(4),
          .stored_at = row.Text(5),
          .used_at = row.Text(6),
          .baseline_at = row.Text(7)};
}

absl::Status Touch(Connection& db, const std::string& sha256,
                   const std::string& now) {
  TF_ASSIGN_OR_RETURN(
      Statement update,
      db.Prepare("UPDATE artifacts SET used_at = ? WHERE sha256 = ?"));
  TF_RETURN_IF_ERROR(update.Bind(now).Bind(sha256).Run());
  return db.changes() == 0 ? NotStored(sha256) : absl::OkStatus();
}

absl::Status InsertParts(Connection& db, int64_t artifact,
                         std::string_view bytes) {
  int64_t part = 0;
  for (size_t at = 0; at < bytes.size(); at += kArtifactPartBytes) {
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO artifact_parts VALUES (?, ?, ?)"));
    TF_RETURN_IF_ERROR(insert.Bind(artifact)
                           .Bind(part++)
                           .BindBlob(bytes.substr(at, kArtifactPartBytes))
                           .Run());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SqliteStore::HasRegressionTables() const {
  if (schema_version_ >= kRegressionVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the database has schema version ", schema_version_,
      ", which has no tables of regression tracking: open it once with "
      "tune-server, which migrates it"));
}

absl::StatusOr<ArtifactRow> SqliteStore::FindArtifact(
    const std::string& sha256) const {
  TF_RETURN_IF_ERROR(HasRegressionTables());
  ArtifactRow found;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(kSelectArtifact));
    TF_ASSIGN_OR_RETURN(const bool row, query.Bind(sha256).Step());
    if (!row) return NotStored(sha256);
    found = ReadArtifactRow(query);
    return absl::OkStatus();
  }));
  return found;
}

absl::Status SqliteStore::PutArtifact(const ArtifactRow& row,
                                      std::string_view bytes,
                                      const ArtifactRetention& retention) {
  return Write([&](Connection& db) -> absl::Status {
    const std::string now = NowText();
    TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(kSelectArtifact));
    TF_ASSIGN_OR_RETURN(const bool known, query.Bind(row.sha256).Step());
    if (known) {
      std::vector<std::string> symbols = ReadArtifactRow(query).symbols;
      for (const std::string& one : row.symbols) {
        if (std::find(symbols.begin(), symbols.end(), one) == symbols.end()) {
          symbols.push_back(one);
        }
      }
      TF_ASSIGN_OR_RETURN(
          Statement update,
          db.Prepare("UPDATE artifacts SET symbols = ?, used_at = ? WHERE n = "
                     "?"));
      return update.Bind(ToJson(symbols)).Bind(now).Bind(query.Int(8)).Run();
    }
    TF_RETURN_IF_ERROR(MakeRoom(db, static_cast<int64_t>(bytes.size()),
                                clock_.Now(), retention));
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO artifacts(sha256, bytes, target, symbols, "
                   "stored_by, stored_at, used_at, baseline_at) VALUES (?, ?, "
                   "?, ?, ?, ?, ?, '')"));
    TF_RETURN_IF_ERROR(insert.Bind(row.sha256)
                           .Bind(static_cast<int64_t>(bytes.size()))
                           .Bind(row.target)
                           .Bind(ToJson(row.symbols))
                           .Bind(row.stored_by)
                           .Bind(now)
                           .Bind(now)
                           .Run());
    return InsertParts(db, db.last_insert_id(), bytes);
  });
}

absl::Status SqliteStore::TouchArtifact(const std::string& sha256) {
  return Write([&](Connection& db) { return Touch(db, sha256, NowText()); });
}

absl::StatusOr<std::string> SqliteStore::ReadArtifactPart(
    const std::string& sha256, int64_t part) const {
  TF_RETURN_IF_ERROR(HasRegressionTables());
  std::string bytes;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT p.bytes FROM artifact_parts p JOIN artifacts a ON "
                   "a.n = p.artifact WHERE a.sha256 = ? AND p.part = ?"));
    TF_ASSIGN_OR_RETURN(const bool row, query.Bind(sha256).Bind(part).Step());
    if (!row) return NotStored(sha256);
    bytes = query.Text(0);
    return absl::OkStatus();
  }));
  return bytes;
}

absl::Status SqliteStore::NoteCompared(const std::string& baseline,
                                       const std::string& candidate) {
  return Write([&](Connection& db) -> absl::Status {
    const std::string now = NowText();
    TF_RETURN_IF_ERROR(Touch(db, baseline, now));
    TF_RETURN_IF_ERROR(Touch(db, candidate, now));
    TF_ASSIGN_OR_RETURN(
        Statement update,
        db.Prepare("UPDATE artifacts SET baseline_at = ? WHERE sha256 = ?"));
    return update.Bind(now).Bind(baseline).Run();
  });
}

absl::StatusOr<RegressionTables::ArtifactTotals> SqliteStore::CountArtifacts()
    const {
  TF_RETURN_IF_ERROR(HasRegressionTables());
  ArtifactTotals totals;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT count(*), coalesce(sum(bytes), 0) FROM artifacts"));
    TF_RETURN_IF_ERROR(query.Step().status());
    totals = {.count = query.Int(0), .bytes = query.Int(1)};
    return absl::OkStatus();
  }));
  return totals;
}

}  // namespace tilefarm::database
