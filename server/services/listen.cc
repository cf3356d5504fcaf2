#include "server/services/listen.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "transport/endpoint.h"

namespace tilefarm::services {

absl::Status CheckListenAddress(std::string_view address,
                                const ListenSecurity& security) {
  TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                      transport::SplitAddress(address));
  if (security.tls_cert.empty() != security.tls_key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-cert and --tls-key belong together: --tls-",
        security.tls_cert.empty() ? "cert" : "key", " is missing"));
  }
  if (security.tls() && security.insecure) {
    return absl::InvalidArgumentError(
        "--insecure means no TLS: take it or the --tls options away");
  }
  if (!security.tls() &&
      (!security.tls_client_ca.empty() || security.tokens_only)) {
    return absl::InvalidArgumentError(
        "--tls-client-ca and --tokens-only need TLS: --tls-cert and --tls-key "
        "are missing");
  }
  if (security.tokens_only && !security.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(
        "--tokens-only demands no client certificate, --tls-client-ca does: "
        "take one of them away");
  }
  if (transport::IsLoopback(at.host) || security.insecure) {
    return absl::OkStatus();
  }
  const std::string beyond =
      absl::StrCat("'", at.host, "' is not a loopback address: ");
  if (!security.tls()) {
    return absl::InvalidArgumentError(absl::StrCat(
        beyond,
        "others can reach it, so it takes TLS and authentication: --tls-cert, "
        "--tls-key and --tls-client-ca are missing (deploy/make-certs makes "
        "the files), or --insecure, which lets anybody in"));
  }
  if (security.tls_client_ca.empty() && !security.tokens_only) {
    return absl::InvalidArgumentError(absl::StrCat(
        beyond,
        "clients must prove who they are: --tls-client-ca is missing, the CA "
        "that signs their certificates (or --tokens-only, where tokens are "
        "enough)"));
  }
  return absl::OkStatus();
}

absl::Status CheckAddressIsFree(std::string_view address) {
  TF_ASSIGN_OR_RETURN(const transport::HostAndPort at,
                      transport::SplitAddress(address));
  const auto error = [&](const std::string& why) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", std::string(address), ": ", why));
  };
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(at.host.c_str(), absl::StrCat(at.port).c_str(),
                               &hints, &found);
  if (code != 0) return error(gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found,
                                                             freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;  // a family that this machine lacks
    // Connections of a former server may still be closing.
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    const int bound = bind(fd, one->ai_addr, one->ai_addrlen);
    const int why = errno;
    close(fd);
    if (bound == 0) continue;
    if (why == EADDRINUSE) return error("the address is in use");
    if (why == EADDRNOTAVAIL) return error("it is no address of this machine");
    return error(std::strerror(why));
  }
  return absl::OkStatus();
}

std::string InsecureWarning(std::string_view address,
                            const ListenSecurity& security) {
  const auto at = transport::SplitAddress(address);
  if (!security.insecure || !at.ok() || transport::IsLoopback(at->host)) {
    return "";
  }
  return absl::StrCat(
      "--insecure: whoever can reach ", std::string(address),
      " may run jobs, cancel those of others, read and change the database, "
      "and pose as a device; everything crosses the network in plain text, "
      "and names of users are only claimed. Keep the port behind a firewall");
}

}  // namespace tilefarm::services
