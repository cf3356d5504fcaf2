// A tune-server as its clients name it: where it is, and how both sides know
// each other.
#ifndef TILEFARM_TRANSPORT_ENDPOINT_H_
#define TILEFARM_TRANSPORT_ENDPOINT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::transport {

// PEM files. Without `ca` nothing is encrypted and no secret is sent.
struct ClientSecurity {
  std::string ca;          // who signs the server's certificate
  std::string cert, key;   // this client's own
  std::string token_file;  // mode 0600; read anew for every call
  // Of the environment (TUNE_TOKEN); token_file counts where both are given.
  std::string token;

  bool tls() const { return !ca.empty(); }
  bool has_token() const { return !token.empty() || !token_file.empty(); }
};

struct Endpoint {
  std::string address = "127.0.0.1:7070";  // HOST:PORT
  ClientSecurity security;
};

struct HostAndPort {
  std::string host;  // without brackets
  int port = 0;
};
// HOST:PORT or [V6]:PORT. InvalidArgument.
absl::StatusOr<HostAndPort> SplitAddress(std::string_view address);
// 127.0.0.0/8, ::1 or localhost.
bool IsLoopback(const std::string& host);

// Whether the endpoint can be dialled as it is said: files that are there and
// fit each other, and no secret without encryption. InvalidArgument or
// NotFound, with what to change.
absl::Status CheckEndpoint(const Endpoint& endpoint);

// What the environment says about security; see client_flags.h for names.
std::string TokenOfEnvironment();

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_ENDPOINT_H_
