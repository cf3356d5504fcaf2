// Histories of benchmarks, and acknowledgements.
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

constexpr int64_t kHistoryPage = 500;  // points that are read at once

// The row of the text, which is made unless it is there; nullopt: no text.
absl::StatusOr<std::optional<int64_t>> TextId(Connection& db,
                                              const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::string digest = Sha256Hex(text);
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare("SELECT n FROM regression_texts WHERE digest = ?"));
  TF_ASSIGN_OR_RETURN(const bool known, query.Bind(digest).Step());
  if (known) return query.Int(0);
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO regression_texts(digest, text) VALUES (?, ?)"));
  TF_RETURN_IF_ERROR(insert.Bind(digest).Bind(text).Run());
  return db.last_insert_id();
}

void BindId(Statement& statement, const std::optional<int64_t>& id) {
  if (id.has_value()) {
    statement.Bind(*id);
  } else {
    statement.BindNull();
  }
}

absl::Status Insert(Connection& db, const std::string& request_id,
                    const HistoryRow& row, const std::string& now) {
  TF_ASSIGN_OR_RETURN(const auto program, TextId(db, row.program));
  TF_ASSIGN_OR_RETURN(const auto trace, TextId(db, row.trace));
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare("INSERT INTO regression_points(request_id, series, benchmark, "
                 "device_class, branch, commit_id, at, device, seconds, "
                 "low_seconds, high_seconds, ratio, ratio_low, ratio_high, "
                 "ratio_level, clusters, verdict, baseline_commit, "
                 "canary_seconds, unsteady, artifact, symbol, spread, target, "
                 "program, trace, fingerprint, user, workload) VALUES (?, ?, "
                 "?, ?, ?, ?, ?, "
                 "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                 "?, ?)"));
  insert.Bind(request_id)
      .Bind(row.series)
      .Bind(row.benchmark)
      .Bind(row.device_class)
      .Bind(row.branch)
      .Bind(row.commit)
      .Bind(row.at.empty() ? now : row.at)
      .Bind(row.device)
      .Bind(row.seconds)
      .Bind(row.low_seconds)
      .Bind(row.high_seconds)
      .Bind(row.ratio)
      .Bind(row.ratio_low);
  // SQLite keeps infinity, but no other program expects it there.
  if (std::isfinite(row.ratio_high)) {
    insert.Bind(row.ratio_high);
  } else {
    insert.BindNull();
  }
  insert.Bind(row.ratio_level)
      .Bind(row.clusters)
      .Bind(row.verdict)
      .Bind(row.baseline_commit)
      .Bind(row.canary_seconds)
      .Bind(row.unsteady)
      .Bind(row.artifact)
      .Bind(row.symbol)
      .Bind(row.spread)
      .Bind(row.target);
  BindId(insert, program);
  BindId(insert, trace);
  return insert.Bind(row.fingerprint).Bind(row.user).Bind(row.workload).Run();
}

constexpr char kColumns[] =
    "p.id, p.series, p.benchmark, p.device_class, p.branch, p.commit_id, p.at, "
    "p.device, p.seconds, p.low_seconds, p.high_seconds, p.ratio, p.ratio_low, "
    "p.ratio_high, p.ratio_level, p.clusters, p.verdict, p.baseline_commit, "
    "p.canary_seconds, p.unsteady, p.artifact, p.symbol, p.spread, p.target, "
    "p.fingerprint, p.user, p.workload";

HistoryRow ReadHistoryRow(const Statement& row) {
  HistoryRow point;
  int at = 0;
  point.id = row.Int(at++);
  point.series = row.Text(at++);
  point.benchmark = row.Text(at++);
  point.device_class = row.Text(at++);
  point.branch = row.Text(at++);
  point.commit = row.Text(at++);
  point.at = row.Text(at++);
  point.device = row.Text(at++);
  point.seconds = row.Double(at++);
  point.low_seconds = row.Double(at++);
  point.high_seconds = row.Double(at++);
  point.ratio = row.Double(at++);
  point.ratio_low = row.Double(at++);
  point.ratio_high =
      row.IsNull(at) ? std::numeric_limits<double>::infinity() : row.Double(at);
  ++at;
  point.ratio_level = row.Double(at++);
  point.clusters = static_cast<int>(row.Int(at++));
  point.verdict = row.Text(at++);
  point.baseline_commit = row.Text(at++);
  point.canary_seconds = row.Double(at++);
  point.unsteady = row.Bool(at++);
  point.artifact = row.Text(at++);
  point.symbol = row.Text(at++);
  point.spread = row.Double(at++);
  point.target = row.Text(at++);
  point.fingerprint = row.Text(at++);
  point.user = row.Text(at++);
  point.workload = row.Text(at++);
  return point;
}

// Conditions on columns of the alias, and the values that they compare with.
struct HistoryConditions {
  std::vector<std::string> conditions;
  std::vector<std::string> values;

  void Equals(const char* column, const std::string& value) {
    if (value.empty()) return;
    conditions.push_back(absl::StrCat(column, " = ?"));
    values.push_back(value);
  }
  std::string Text() const {
    return conditions.empty() ? "1" : absl::StrJoin(conditions, " AND ");
  }
};

HistoryConditions WhereOf(const HistoryFilter& filter) {
  HistoryConditions where;
  where.Equals("p.series", filter.series);
  where.Equals("p.benchmark", filter.benchmark);
  where.Equals("p.device_class", filter.device_class);
  where.Equals("p.branch", filter.branch);
  where.Equals("p.commit_id", filter.commit);
  return where;
}

}  // namespace

absl::StatusOr<int64_t> SqliteStore::AppendHistory(
    const std::string& request_id, std::span<const HistoryRow> rows) {
  if (request_id.empty()) {
    return absl::InvalidArgumentError("points need a request id");
  }
  int64_t added = 0;
  TF_RETURN_IF_ERROR(Write([&](Connection& db) -> absl::Status {
    added = 0;
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(
            "SELECT 1 FROM regression_points WHERE request_id = ? LIMIT 1"));
    TF_ASSIGN_OR_RETURN(const bool known, query.Bind(request_id).Step());
    if (known) return absl::OkStatus();
    const std::string now = NowText();
    for (const HistoryRow& row : rows) {
      TF_RETURN_IF_ERROR(Insert(db, request_id, row, now));
      ++added;
    }
    return absl::OkStatus();
  }));
  return added;
}

absl::Status SqliteStore::ReadHistory(
    const HistoryFilter& filter,
    const std::function<bool(const HistoryRow&)>& take) const {
  TF_RETURN_IF_ERROR(HasRegressionTables());
  const HistoryConditions where = WhereOf(filter);
  // The rank among the points of its series, the newest being 1.
  std::string sql =
      absl::StrCat("SELECT ", kColumns, filter.texts ? ", a.text, b.text" : "",
                   " FROM regression_points p");
  if (filter.texts) {
    absl::StrAppend(&sql,
                    " LEFT JOIN regression_texts a ON a.n = p.program LEFT "
                    "JOIN regression_texts b ON b.n = p.trace");
  }
  absl::StrAppend(&sql, " WHERE p.id > ? AND ", where.Text());
  if (filter.latest > 0) {
    absl::StrAppend(&sql,
                    " AND p.id IN (SELECT id FROM (SELECT p.id AS id, "
                    "row_number() OVER (PARTITION BY p.series, p.benchmark, "
                    "p.device_class, p.branch ORDER BY p.id DESC) AS rank FROM "
                    "regression_points p WHERE ",
                    where.Text(), ") WHERE rank <= ?)");
  }
  absl::StrAppend(&sql, " ORDER BY p.id LIMIT ", kHistoryPage);
  for (int64_t after = 0;;) {
    std::vector<HistoryRow> page;
    TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
      TF_ASSIGN_OR_RETURN(Statement query, db.Prepare(sql));
      query.Bind(after);
      for (const std::string& value : where.values) query.Bind(value);
      if (filter.latest > 0) {
        for (const std::string& value : where.values) query.Bind(value);
        query.Bind(filter.latest);
      }
      while (true) {
        TF_ASSIGN_OR_RETURN(const bool row, query.Step());
        if (!row) return absl::OkStatus();
        page.push_back(ReadHistoryRow(query));
        if (!filter.texts) continue;
        page.back().program = query.Text(27);
        page.back().trace = query.Text(28);
      }
    }));
    for (const HistoryRow& row : page) {
      if (!take(row)) return absl::OkStatus();
    }
    if (static_cast<int64_t>(page.size()) < kHistoryPage)
      return absl::OkStatus();
    after = page.back().id;
  }
}

absl::Status SqliteStore::Acknowledge(const AcknowledgementRow& row) {
  return Write([&](Connection& db) -> absl::Status {
    const HistoryConditions where = WhereOf({.series = row.series,
                                             .benchmark = row.benchmark,
                                             .device_class = row.device_class,
                                             .branch = row.branch,
                                             .commit = row.commit});
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat("SELECT 1 FROM regression_points p WHERE ",
                                where.Text(), " LIMIT 1")));
    for (const std::string& value : where.values) query.Bind(value);
    TF_ASSIGN_OR_RETURN(const bool known, query.Step());
    if (!known) {
      return absl::NotFoundError(absl::StrCat(
          "no point of benchmark ", row.benchmark, " in series ", row.series,
          " has the commit ", row.commit, " on branch ", row.branch));
    }
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO regression_acks(series, benchmark, "
                   "device_class, branch, commit_id, reason, user, at) VALUES "
                   "(?, ?, ?, ?, ?, ?, ?, ?)"));
    return insert.Bind(row.series)
        .Bind(row.benchmark)
        .Bind(row.device_class)
        .Bind(row.branch)
        .Bind(row.commit)
        .Bind(row.reason)
        .Bind(row.user)
        .Bind(row.at.empty() ? NowText() : row.at)
        .Run();
  });
}

absl::StatusOr<std::vector<AcknowledgementRow>>
SqliteStore::ListAcknowledgements(const HistoryFilter& filter) const {
  TF_RETURN_IF_ERROR(HasRegressionTables());
  HistoryConditions where;
  where.Equals("series", filter.series);
  where.Equals("benchmark", filter.benchmark);
  where.Equals("branch", filter.branch);
  if (!filter.device_class.empty()) {
    where.conditions.push_back("device_class IN ('', ?)");
    where.values.push_back(filter.device_class);
  }
  std::vector<AcknowledgementRow> rows;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(absl::StrCat(
            "SELECT series, benchmark, device_class, branch, commit_id, "
            "reason, user, at FROM regression_acks WHERE ",
            where.Text(), " ORDER BY id")));
    for (const std::string& value : where.values) query.Bind(value);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      rows.push_back({.series = query.Text(0),
                      .benchmark = query.Text(1),
                      .device_class = query.Text(2),
                      .branch = query.Text(3),
                      .commit = query.Text(4),
                      .reason = query.Text(5),
                      .user = query.Text(6),
                      .at = query.Text(7)});
    }
  }));
  return rows;
}

}  // namespace tilefarm::database
