// The options by which every client (rpc-worker, tune, tunec) names its
// credentials. Flags take precedence over the environment.
#ifndef TILEFARM_TRANSPORT_CLIENT_FLAGS_H_
#define TILEFARM_TRANSPORT_CLIENT_FLAGS_H_

#include <CLI/CLI.hpp>

#include "transport/endpoint.h"

namespace tilefarm::transport {

inline void AddClientFlags(CLI::App& app, ClientSecurity& security) {
  security.token = TokenOfEnvironment();
  app.add_option("--tls-ca", security.ca,
                 "PEM file of the CA that signed the server's certificate: "
                 "speak TLS")
      ->envname("TUNE_TLS_CA");
  app.add_option("--tls-cert", security.cert,
                 "PEM file of this client's own "
                 "certificate")
      ->envname("TUNE_TLS_CERT");
  app.add_option("--tls-key", security.key,
                 "PEM file of its private key, mode 0600")
      ->envname("TUNE_TLS_KEY");
  app.add_option("--token-file", security.token_file,
                 "File with a token, mode 0600; or the token in TUNE_TOKEN. "
                 "Sent over TLS only")
      ->envname("TUNE_TOKEN_FILE");
}

}  // namespace tilefarm::transport

#endif  // TILEFARM_TRANSPORT_CLIENT_FLAGS_H_
