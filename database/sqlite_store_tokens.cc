// Tokens and revoked names.
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {

absl::Status SqliteStore::AddToken(const TokenRow& token,
                                   const std::string& actor) {
  const AuditEntry entry = {
      .at = token.created_at,
      .actor = actor,
      .action = "token create",
      .subject = token.name,
      .detail =
          absl::StrCat(token.role, token.expires_at.empty() ? "" : ", until ",
                       token.expires_at)};
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement known,
                        db.Prepare("SELECT n FROM tokens WHERE sha256 = ?"));
    TF_ASSIGN_OR_RETURN(const bool exists, known.Bind(token.sha256).Step());
    if (exists) return absl::AlreadyExistsError("the token is stored already");
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO tokens(name, role, sha256, created_at, "
                   "expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?)"));
    TF_RETURN_IF_ERROR(insert.Bind(token.name)
                           .Bind(token.role)
                           .Bind(token.sha256)
                           .Bind(token.created_at)
                           .Bind(token.expires_at)
                           .Bind(token.revoked_at)
                           .Run());
    return InsertAudit(db, {&entry, 1});
  });
}

absl::StatusOr<std::vector<TokenRow>> SqliteStore::ListTokens() const {
  std::vector<TokenRow> tokens;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT name, role, sha256, created_at, expires_at, "
                   "revoked_at FROM tokens ORDER BY n"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      tokens.push_back({.name = query.Text(0),
                        .role = query.Text(1),
                        .sha256 = query.Text(2),
                        .created_at = query.Text(3),
                        .expires_at = query.Text(4),
                        .revoked_at = query.Text(5)});
    }
  }));
  return tokens;
}

absl::StatusOr<int> SqliteStore::RevokeName(const std::string& name,
                                            const std::string& at,
                                            const std::string& actor) {
  int tokens = 0;
  TF_RETURN_IF_ERROR(Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement update,
        db.Prepare("UPDATE tokens SET revoked_at = ? WHERE name = ? AND "
                   "revoked_at = ''"));
    TF_RETURN_IF_ERROR(update.Bind(at).Bind(name).Run());
    tokens = db.changes();
    TF_ASSIGN_OR_RETURN(
        Statement put,
        db.Prepare("INSERT OR REPLACE INTO revoked_names VALUES (?, ?)"));
    TF_RETURN_IF_ERROR(put.Bind(name).Bind(at).Run());
    const AuditEntry entry = {.at = at,
                              .actor = actor,
                              .action = "token revoke",
                              .subject = name,
                              .detail = absl::StrCat(tokens, " tokens")};
    return InsertAudit(db, {&entry, 1});
  }));
  return tokens;
}

absl::StatusOr<std::map<std::string, std::string>>
SqliteStore::ListRevokedNames() const {
  std::map<std::string, std::string> names;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT name, revoked_at FROM revoked_names"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      names[query.Text(0)] = query.Text(1);
    }
  }));
  return names;
}

}  // namespace tilefarm::database
