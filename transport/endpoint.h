// A tune-server as its clients name it: its address, and the credentials of
// both sides.
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
  // From the environment (TUNE_TOKEN); token_file takes precedence.
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

// Whether the endpoint can be dialled as given: the files exist and match each
// other, and no secret would be sent without encryption. InvalidArgument or
// NotFound, with what to change.
absl::Status CheckEndpoint(const Endpoint& endpoint);

// The security options of the environment; see client_flags.h for their names.
std::string TokenOfEnvironment();

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_ENDPOINT_H_
