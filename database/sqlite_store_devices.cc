// Devices, canaries and the audit log.
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
absl::Status SqliteStore::InsertAudit(Connection& db,
                                      std::span<const AuditEntry> entries) {
  for (const AuditEntry& entry : entries) {
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO audit_log(at, actor, action, subject, detail) "
                   "VALUES (?, ?, ?, ?, ?)"));
    TF_RETURN_IF_ERROR(insert.Bind(entry.at)
                           .Bind(entry.actor)
                           .Bind(entry.action)
                           .Bind(entry.subject)
                           .Bind(entry.detail)
                           .Run());
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::PutDevices(std::span<const DeviceRow> rows,
                                     std::span<const AuditEntry> audit) {
  return Write([&](Connection& db) -> absl::Status {
    for (const DeviceRow& row : rows) {
      TF_ASSIGN_OR_RETURN(
          Statement put,
          db.Prepare("INSERT OR REPLACE INTO device_states(name, "
                     "operator_state, reason, actor, reserved_for, "
                     "reserved_until, model, target, last_seen) "
                     "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
      TF_RETURN_IF_ERROR(put.Bind(row.name)
                             .Bind(row.operator_state)
                             .Bind(row.reason)
                             .Bind(row.actor)
                             .Bind(row.reserved_for)
                             .Bind(row.reserved_until)
                             .Bind(row.model)
                             .Bind(row.target)
                             .Bind(row.last_seen)
                             .Run());
    }
    return InsertAudit(db, audit);
  });
}

absl::Status SqliteStore::ForgetDevice(const std::string& name,
                                       std::span<const AuditEntry> audit) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement row,
                        db.Prepare("DELETE FROM device_states WHERE name = ?"));
    TF_RETURN_IF_ERROR(row.Bind(name).Run());
    // "NAME@" and a digest of a fixed length; names may hold an "@", too.
    TF_ASSIGN_OR_RETURN(
        Statement canary,
        db.Prepare("DELETE FROM device_canaries WHERE "
                   "substr(device, 1, length(device) - 12) = ?"));
    TF_RETURN_IF_ERROR(canary.Bind(absl::StrCat(name, "@")).Run());
    return InsertAudit(db, audit);
  });
}

absl::StatusOr<std::vector<DeviceRow>> SqliteStore::ListDevices() const {
  std::vector<DeviceRow> rows;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT name, operator_state, reason, actor, reserved_for, "
                   "reserved_until, model, target, last_seen "
                   "FROM device_states ORDER BY name"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return absl::OkStatus();
      rows.push_back({.name = query.Text(0),
                      .operator_state = query.Text(1),
                      .reason = query.Text(2),
                      .actor = query.Text(3),
                      .reserved_for = query.Text(4),
                      .reserved_until = query.Text(5),
                      .model = query.Text(6),
                      .target = query.Text(7),
                      .last_seen = query.Text(8)});
    }
  }));
  return rows;
}

absl::Status SqliteStore::PutCanaries(std::span<const CanaryRow> rows) {
  return Write([&](Connection& db) -> absl::Status {
    for (const CanaryRow& row : rows) {
      TF_ASSIGN_OR_RETURN(
          Statement put,
          db.Prepare("INSERT OR REPLACE INTO device_canaries(device, "
                     "fingerprint, seconds, good_through, suspect_after, "
                     "suspect_through) VALUES (?, ?, ?, ?, ?, ?)"));
      TF_RETURN_IF_ERROR(put.Bind(row.device)
                             .Bind(row.fingerprint)
                             .Bind(row.seconds)
                             .Bind(row.good_through)
                             .Bind(row.suspect_after)
                             .Bind(row.suspect_through)
                             .Run());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<CanaryRow>> SqliteStore::ListCanaries() const {
  std::vector<CanaryRow> rows;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT device, fingerprint, seconds, good_through, "
                   "suspect_after, suspect_through FROM device_canaries "
                   "ORDER BY device"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return absl::OkStatus();
      rows.push_back({.device = query.Text(0),
                      .fingerprint = query.Text(1),
                      .seconds = query.Double(2),
                      .good_through = query.Int(3),
                      .suspect_after = query.Int(4),
                      .suspect_through = query.Int(5)});
    }
  }));
  return rows;
}

absl::StatusOr<std::vector<AuditEntry>> SqliteStore::ReadAudit(
    const std::string& subject, int64_t limit) const {
  return ReadAuditOf(/*tokens=*/false, subject, limit);
}

absl::StatusOr<std::vector<AuditEntry>> SqliteStore::ReadTokenAudit(
    const std::string& name, int64_t limit) const {
  return ReadAuditOf(/*tokens=*/true, name, limit);
}

absl::StatusOr<std::vector<AuditEntry>> SqliteStore::ReadAuditOf(
    bool tokens, const std::string& subject, int64_t limit) const {
  std::vector<AuditEntry> entries;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT * FROM (SELECT id, at, actor, action, subject, "
                   "detail FROM audit_log WHERE (?1 = '' OR subject = ?1) "
                   "AND (action GLOB 'token *') = ?3 "
                   "ORDER BY id DESC LIMIT ?2) ORDER BY id"));
    query.Bind(subject).Bind(limit).Bind(int64_t{tokens});
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return absl::OkStatus();
      entries.push_back({.id = query.Int(0),
                         .at = query.Text(1),
                         .actor = query.Text(2),
                         .action = query.Text(3),
                         .subject = query.Text(4),
                         .detail = query.Text(5)});
    }
  }));
  return entries;
}

absl::StatusOr<int64_t> SqliteStore::LastRecordId() const {
  int64_t id = 0;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        id, db.QueryInt(absl::StrCat("SELECT ifnull(max(id), 0) FROM ",
                                     packs() ? "stored_records" : "records")));
    return absl::OkStatus();
  }));
  return id;
}

absl::StatusOr<std::vector<Record>> SqliteStore::RecordsOfDevice(
    const std::string& device, int64_t after, int64_t through) const {
  std::vector<Record> records;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare(
            absl::StrCat(select_record(), "WHERE r.id > ? AND r.id <= ? AND ",
                         packs() ? "d" : "r", ".device = ? ORDER BY r.id")));
    query.Bind(after).Bind(through).Bind(device);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return absl::OkStatus();
      TF_ASSIGN_OR_RETURN(Record record, ReadRecord(query));
      records.push_back(std::move(record));
    }
  }));
  return records;
}

}  // namespace tilefarm::database
