#include "server/services/check_config.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "database/store.h"
#include "transport/secret_file.h"

namespace tilefarm::services {
namespace {

absl::Status CheckDatabase(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("--db is required");
  if (access(path.c_str(), F_OK) == 0) {
    if (access(path.c_str(), R_OK | W_OK) != 0) {
      return absl::PermissionDeniedError(
          absl::StrCat("--db ", path, ": ", std::strerror(errno)));
    }
    return database::Store::Open(path, database::Store::Mode::kReadOnly)
        .status();
  }
  // SQLite creates further files in the same folder.
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("--db ", path, ": the folder ", folder,
                     " takes no files: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> CheckConfig(const ServerOptions& options) {
  std::vector<std::string> problems;
  const auto note = [&](const char* what, const absl::Status& status) {
    if (status.ok()) return;
    problems.push_back(absl::StrCat(what, std::string(status.message())));
  };
  const ListenSecurity& security = options.security;
  note("", CheckDatabase(options.database_path));
  note("--timeout: ", farm::CheckTimeouts(options.timeouts));
  note("--health: ", farm::CheckHealth(options.health));
  note("--listen: ", CheckListenAddress(options.listen, security));
  if (!options.http.empty()) {
    note("--http: ", CheckListenAddress(options.http, security));
  }
  if (!options.spans.url.empty()) {
    note("--otlp: ", spans::CheckExporter(options.spans));
  }
  if (!security.tls_cert.empty() && !security.tls_key.empty()) {
    note("", transport::CheckKeyPair(security.tls_cert, security.tls_key));
  }
  if (!security.tls_client_ca.empty()) {
    note(
        "",
        transport::ReadPem(security.tls_client_ca, "--tls-client-ca").status());
  }
  return problems;
}

}  // namespace tilefarm::services
