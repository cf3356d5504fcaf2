#include "transport/endpoint.h"

#include <arpa/inet.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "transport/secret_file.h"

namespace tilefarm::transport {

absl::StatusOr<HostAndPort> SplitAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  HostAndPort out;
  if (colon == std::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(absl::string_view(address.data() + colon + 1,
                                          address.size() - colon - 1),
                        &out.port) ||
      out.port < 0 || out.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(address), "' is not HOST:PORT"));
  }
  out.host = std::string(address.substr(0, colon));
  if (out.host.size() > 2 && out.host.front() == '[' &&
      out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  return out;
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckEndpoint(const Endpoint& endpoint) {
  TF_ASSIGN_OR_RETURN(const HostAndPort at, SplitAddress(endpoint.address));
  const ClientSecurity& security = endpoint.security;
  if (security.cert.empty() != security.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert and --tls-key belong together: --tls-",
                     security.cert.empty() ? "cert" : "key", " is missing"));
  }
  if (!security.tls()) {
    if (!security.cert.empty()) {
      return absl::InvalidArgumentError(
          "--tls-cert needs --tls-ca, the file of the CA that signed the "
          "server's certificate");
    }
    if (security.has_token() && !IsLoopback(at.host)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a token is never sent without TLS, and ", endpoint.address,
          " is another machine: give --tls-ca, or take the token away"));
    }
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(const std::string ca, ReadPem(security.ca, "--tls-ca"));
  if (!security.cert.empty()) {
    TF_RETURN_IF_ERROR(CheckKeyPair(security.cert, security.key));
  }
  if (!security.token_file.empty()) {
    TF_RETURN_IF_ERROR(ReadTokenFile(security.token_file).status());
  } else if (!security.token.empty()) {
    TF_RETURN_IF_ERROR(CheckToken(security.token, "TUNE_TOKEN"));
  }
  return absl::OkStatus();
}

std::string TokenOfEnvironment() {
  const char* const token = std::getenv("TUNE_TOKEN");
  return token == nullptr ? "" : token;
}

}  // namespace tilefarm::transport
