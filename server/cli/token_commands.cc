// tokens create, list, log, revoke: through the server, or on a file.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "database/store.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"
#include "server/cli/input.h"
#include "server/security/token.h"

namespace tilefarm::cli {
namespace {

using database::Store;
using Json = nlohmann::ordered_json;

absl::StatusOr<std::unique_ptr<Store>> OpenFile(const TokenOptions& options,
                                                Store::Mode mode) {
  return Store::Open(options.db, mode);
}

absl::StatusOr<std::string> Create(const Common& common,
                                   const TokenOptions& options) {
  double seconds = 0;
  if (!options.expires.empty()) {
    TF_ASSIGN_OR_RETURN(seconds, ParseSeconds(options.expires));
  }
  if (options.db.empty()) {
    v1::CreateTokenRequest request;
    request.set_name(options.name);
    request.set_role(options.role);
    request.set_seconds(seconds);
    request.set_user(UserName());
    Client client(common.server);
    TF_ASSIGN_OR_RETURN(const auto response, client.CreateToken(request));
    return response.token();
  }
  const auto role = security::ParseRole(options.role);
  if (!role.has_value()) return absl::InvalidArgumentError("no such role");
  TF_ASSIGN_OR_RETURN(
      const security::NewTokenRow made,
      security::MakeToken(
          options.name, *role,
          seconds == 0 ? absl::InfiniteDuration() : absl::Seconds(seconds),
          absl::Now()));
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                      OpenFile(options, Store::Mode::kReadWrite));
  TF_RETURN_IF_ERROR(store->AddToken(made.row, UserName()));
  return made.token;
}

absl::StatusOr<v1::ListTokensResponse> List(const Common& common,
                                            const TokenOptions& options) {
  if (options.db.empty()) return Client(common.server).ListTokens();
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                      OpenFile(options, Store::Mode::kReadOnly));
  TF_ASSIGN_OR_RETURN(const std::vector<database::TokenRow> rows,
                      store->ListTokens());
  v1::ListTokensResponse tokens;
  for (const database::TokenRow& row : rows) {
    v1::Token& token = *tokens.add_tokens();
    token.set_name(row.name);
    token.set_role(row.role);
    token.set_created(row.created_at);
    token.set_expires(row.expires_at);
    token.set_revoked(row.revoked_at);
  }
  return tokens;
}

absl::StatusOr<v1::TokenLogResponse> Log(const Common& common,
                                         const TokenOptions& options) {
  if (options.db.empty()) {
    v1::TokenLogRequest request;
    request.set_name(options.name);
    request.set_limit(options.limit);
    return Client(common.server).TokenLog(request);
  }
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                      OpenFile(options, Store::Mode::kReadOnly));
  TF_ASSIGN_OR_RETURN(
      const std::vector<database::AuditEntry> entries,
      store->device_tables().ReadTokenAudit(options.name, options.limit));
  v1::TokenLogResponse log;
  for (const database::AuditEntry& entry : entries) {
    v1::AuditEntry& out = *log.add_entries();
    out.set_id(entry.id);
    out.set_at(entry.at);
    out.set_actor(entry.actor);
    out.set_action(entry.action);
    out.set_subject(entry.subject);
    out.set_detail(entry.detail);
  }
  return log;
}

absl::StatusOr<int> Revoke(const Common& common, const TokenOptions& options) {
  if (options.db.empty()) {
    v1::RevokeRequest request;
    request.set_name(options.name);
    request.set_user(UserName());
    Client client(common.server);
    TF_ASSIGN_OR_RETURN(const auto response, client.Revoke(request));
    return response.tokens();
  }
  TF_RETURN_IF_ERROR(security::CheckName(options.name));
  TF_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                      OpenFile(options, Store::Mode::kReadWrite));
  return store->RevokeName(options.name, security::TimeText(absl::Now()),
                           UserName());
}

// A new file that only its owner may read. It is created before the token, so
// that no token is lost if the folder is not writable.
absl::StatusOr<int> NewSecretFile(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot make ", path, ": ", std::strerror(errno)));
  }
  return fd;
}

}  // namespace

int TokensCreate(const Common& common, const TokenOptions& options) {
  int fd = -1;
  if (!options.output.empty()) {
    const auto opened = NewSecretFile(options.output);
    if (!opened.ok()) return Fail(opened.status());
    fd = *opened;
  }
  const auto token = Create(common, options);
  if (fd >= 0) {
    absl::Status written = token.status();
    if (token.ok()) {
      const std::string line = absl::StrCat(*token, "\n");
      if (write(fd, line.data(), line.size()) !=
          static_cast<ssize_t>(line.size())) {
        written = absl::UnavailableError(
            absl::StrCat(options.output, ": ", std::strerror(errno)));
      }
    }
    close(fd);
    if (!written.ok()) {
      unlink(options.output.c_str());
      return Fail(written);
    }
    std::fprintf(stderr, "tune: a token of %s %s is in %s\n",
                 options.role.c_str(), options.name.c_str(),
                 options.output.c_str());
    return kSuccess;
  }
  if (!token.ok()) return Fail(token.status());
  if (common.json) {
    std::printf(
        "%s\n",
        Json{{"name", options.name}, {"role", options.role}, {"token", *token}}
            .dump()
            .c_str());
  } else {
    std::printf("%s\n", token->c_str());
  }
  std::fprintf(stderr,
               "tune: keep it: it is not stored and cannot be shown again\n");
  return kSuccess;
}

int TokensList(const Common& common, const TokenOptions& options) {
  const auto tokens = List(common, options);
  if (!tokens.ok()) return Fail(tokens.status());
  std::printf("%s", common.json
                        ? absl::StrCat(TokensJson(*tokens).dump(), "\n").c_str()
                        : TokensTable(*tokens).c_str());
  return kSuccess;
}

int TokensLog(const Common& common, const TokenOptions& options) {
  const auto log = Log(common, options);
  if (!log.ok()) return Fail(log.status());
  std::printf("%s",
              common.json
                  ? absl::StrCat(AuditJson(log->entries()).dump(), "\n").c_str()
                  : AuditTable(log->entries(), "NAME").c_str());
  return kSuccess;
}

int TokensRevoke(const Common& common, const TokenOptions& options) {
  const auto tokens = Revoke(common, options);
  if (!tokens.ok()) return Fail(tokens.status());
  if (common.json) {
    std::printf(
        "%s\n",
        Json{{"name", options.name}, {"tokens", *tokens}}.dump().c_str());
  } else {
    std::printf(
        "%d tokens of %s revoked; certificates issued to it up to now "
        "are void\n",
        *tokens, options.name.c_str());
  }
  return kSuccess;
}

}  // namespace tilefarm::cli
