#include "transport/diagnose.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace tilefarm::transport {
namespace {

constexpr absl::Duration kSecondLook = absl::Milliseconds(500);

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class Deadline {
 public:
  explicit Deadline(absl::Duration limit)
      : end_(Clock::Real().Monotonic() + limit) {}
  int Milliseconds() const {
    return static_cast<int>(std::clamp<int64_t>(
        absl::ToInt64Milliseconds(end_ - Clock::Real().Monotonic()), 0,
        60'000));
  }

 private:
  const absl::Duration end_;
};

bool Await(int fd, short events, const Deadline& deadline) {
  pollfd poll_fd = {fd, events, 0};
  return poll(&poll_fd, 1, deadline.Milliseconds()) > 0;
}

class Socket {
 public:
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  bool Connect(const HostAndPort& at, const Deadline& deadline) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(at.host.c_str(), absl::StrCat(at.port).c_str(), &hints,
                    &found) != 0) {
      return false;
    }
    for (addrinfo* one = found; one != nullptr && fd_ < 0; one = one->ai_next) {
      fd_ =
          socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd_ < 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      const bool begun = connect(fd_, one->ai_addr, one->ai_addrlen) == 0 ||
                         errno == EINPROGRESS;
      if (begun && Await(fd_, POLLOUT, deadline) &&
          getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
          error == 0) {
        break;
      }
      close(fd_);
      fd_ = -1;
    }
    freeaddrinfo(found);
    return fd_ >= 0;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// How far the handshake came.
struct Outcome {
  enum class End { kFine, kTimeout, kClosed, kError };
  End end = End::kFine;
  int reason = 0;  // of OpenSSL, with kError
};

// Repeats `step`, which returns what SSL_connect or SSL_read do.
template <typename Step>
Outcome Drive(SSL* ssl, const Deadline& deadline, const Step& step) {
  while (true) {
    ERR_clear_error();
    const int result = step();
    if (result > 0) return {};
    switch (SSL_get_error(ssl, result)) {
      case SSL_ERROR_WANT_READ:
        if (!Await(SSL_get_fd(ssl), POLLIN, deadline)) {
          return {Outcome::End::kTimeout};
        }
        break;
      case SSL_ERROR_WANT_WRITE:
        if (!Await(SSL_get_fd(ssl), POLLOUT, deadline)) {
          return {Outcome::End::kTimeout};
        }
        break;
      case SSL_ERROR_SSL:
        return {Outcome::End::kError, ERR_GET_REASON(ERR_peek_error())};
      default:
        return {Outcome::End::kClosed};
    }
  }
}

// TLS alerts are reasons of 1000 and the alert's number.
bool IsAlert(int reason) {
  return reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256;
}

bool SpeaksNoTls(const Outcome& outcome) {
  return outcome.end == Outcome::End::kError &&
         (outcome.reason == SSL_R_WRONG_VERSION_NUMBER ||
          outcome.reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
          outcome.reason == SSL_R_HTTP_REQUEST ||
          outcome.reason == SSL_R_BAD_RECORD_TYPE);
}

bool HungUp(const Outcome& outcome) {
  return outcome.end == Outcome::End::kClosed ||
         (outcome.end == Outcome::End::kError &&
          outcome.reason == SSL_R_UNEXPECTED_EOF_WHILE_READING);
}

std::string NameOf(X509* certificate) {
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                            name, sizeof name);
  return name;
}

absl::Status AboutTheServer(SSL* ssl, const Endpoint& endpoint,
                            const std::string& host) {
  const long verified = SSL_get_verify_result(ssl);
  const std::string& ca = endpoint.security.ca;
  switch (verified) {
    case X509_V_OK:
      return absl::OkStatus();
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: {
      const std::unique_ptr<X509, decltype(&X509_free)> peer(
          SSL_get1_peer_certificate(ssl), X509_free);
      return absl::FailedPreconditionError(absl::StrCat(
          "the server's certificate (",
          peer == nullptr ? "" : NameOf(peer.get()), ") is not for ", host,
          ": use a name or address that stands in it, or make one for it with "
          "deploy/make-certs --server ",
          host));
    }
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::FailedPreconditionError(absl::StrCat(
          "the server's certificate ",
          verified == X509_V_ERR_CERT_HAS_EXPIRED ? "has expired"
                                                  : "is not valid yet",
          ": renew it on the server, and compare the clocks of both machines"));
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          "the server's certificate is not signed by the CA in ", ca, " (",
          X509_verify_cert_error_string(verified),
          "): give the CA that signed it with --tls-ca; if it is the right "
          "one, this is not your server"));
  }
}

// `alert`: the server's TLS alert; 0 if it closed the connection without one.
absl::Status AboutTheClient(int alert, const ClientSecurity& security) {
  if (security.cert.empty()) {
    return absl::FailedPreconditionError(
        "the server demands a client certificate: give --tls-cert and "
        "--tls-key (deploy/make-certs makes them)");
  }
  std::string why = "refuses it";
  if (alert == SSL_AD_CERTIFICATE_EXPIRED) why = "says that it has expired";
  if (alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_DECRYPT_ERROR) {
    why = "does not know the CA that signed it";
  }
  if (alert == SSL_AD_CERTIFICATE_REVOKED) why = "says that it is revoked";
  return absl::FailedPreconditionError(absl::StrCat(
      "the server does not take this client's certificate ", security.cert,
      ": it ", why, "; give one of the farm's CA with --tls-cert"));
}

void SetUp(SSL* ssl, const HostAndPort& at) {
  // The protocol that gRPC negotiates.
  static const unsigned char kProtocols[] = "\x02h2";
  SSL_set_alpn_protos(ssl, kProtocols, sizeof(kProtocols) - 1);
  unsigned char address[16];
  if (inet_pton(AF_INET, at.host.c_str(), address) == 1 ||
      inet_pton(AF_INET6, at.host.c_str(), address) == 1) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), at.host.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl, at.host.c_str());
    SSL_set1_host(ssl, at.host.c_str());
  }
}

// `hung_up`: the only evidence is that the server closed the connection, which
// a server that shuts down does, too.
absl::Status DiagnoseOnce(const Endpoint& endpoint, const Deadline& deadline,
                          bool* hung_up) {
  TF_ASSIGN_OR_RETURN(const HostAndPort at, SplitAddress(endpoint.address));
  const ClientSecurity& security = endpoint.security;
  Socket socket;
  if (!socket.Connect(at, deadline)) return absl::OkStatus();

  const std::unique_ptr<SSL_CTX, FreeContext> context(
      SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return absl::OkStatus();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (security.tls() && SSL_CTX_load_verify_locations(
                            context.get(), security.ca.c_str(), nullptr) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-ca ", security.ca, " cannot be read any more"));
  }
  if (!security.cert.empty() &&
      (SSL_CTX_use_certificate_chain_file(context.get(),
                                          security.cert.c_str()) != 1 ||
       SSL_CTX_use_PrivateKey_file(context.get(), security.key.c_str(),
                                   SSL_FILETYPE_PEM) != 1)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--tls-cert ", security.cert, " and --tls-key ", security.key,
        " cannot be read or do not fit each other any more"));
  }
  // The verification result is checked later, so that the handshake continues.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  const std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context.get()));
  if (ssl == nullptr) return absl::OkStatus();
  SetUp(ssl.get(), at);
  SSL_set_fd(ssl.get(), socket.fd());

  const Outcome handshake =
      Drive(ssl.get(), deadline, [&] { return SSL_connect(ssl.get()); });
  const bool shook = handshake.end == Outcome::End::kFine;
  if (!security.tls()) {
    const bool alert =
        handshake.end == Outcome::End::kError && IsAlert(handshake.reason);
    if (!shook && !alert) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", endpoint.address,
        " speaks TLS: give the CA that signed its certificate with --tls-ca "
        "(or TUNE_TLS_CA), and a certificate (--tls-cert, --tls-key) or a "
        "token (--token-file) where it asks for one"));
  }
  if (SpeaksNoTls(handshake)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", endpoint.address,
        " speaks no TLS: start it with --tls-cert and --tls-key, or leave out "
        "--tls-ca (TUNE_TLS_CA) if it is meant to be open"));
  }
  if (shook) {
    TF_RETURN_IF_ERROR(AboutTheServer(ssl.get(), endpoint, at.host));
    // With TLS 1.3 the server judges the client's certificate after the
    // client has finished; otherwise it starts to speak.
    char byte;
    const Outcome read = Drive(ssl.get(), deadline,
                               [&] { return SSL_read(ssl.get(), &byte, 1); });
    if (read.end == Outcome::End::kError && IsAlert(read.reason)) {
      return AboutTheClient(read.reason - SSL_AD_REASON_OFFSET, security);
    }
    if (HungUp(read)) {
      *hung_up = true;
      return AboutTheClient(/*alert=*/0, security);
    }
    return absl::OkStatus();
  }
  if (handshake.end == Outcome::End::kError && IsAlert(handshake.reason)) {
    return AboutTheClient(handshake.reason - SSL_AD_REASON_OFFSET, security);
  }
  if (handshake.end == Outcome::End::kTimeout) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", endpoint.address,
        " does not answer a TLS handshake: does it speak TLS at all? Start it "
        "with --tls-cert and --tls-key, or leave out --tls-ca"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Diagnose(const Endpoint& endpoint, absl::Duration limit) {
  const Deadline deadline(limit);
  bool hung_up = false;
  const absl::Status found = DiagnoseOnce(endpoint, deadline, &hung_up);
  if (found.ok() || !hung_up) return found;
  absl::SleepFor(kSecondLook);
  return DiagnoseOnce(endpoint, deadline, &hung_up);
}

}  // namespace tilefarm::transport
