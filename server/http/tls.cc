#include "server/http/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "transport/secret_file.h"

namespace tilefarm::http {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

// The identity of a file, which changes when a new file replaces it.
std::vector<int64_t> StampOf(const TlsFiles& files) {
  std::vector<int64_t> stamp;
  for (const std::string& path : {files.cert, files.key, files.client_ca}) {
    struct stat facts = {};
    stat(path.c_str(), &facts);
    stamp.insert(stamp.end(), {static_cast<int64_t>(facts.st_ino),
                               static_cast<int64_t>(facts.st_mtim.tv_sec),
                               static_cast<int64_t>(facts.st_mtim.tv_nsec),
                               static_cast<int64_t>(facts.st_size)});
  }
  return stamp;
}

absl::StatusOr<Context> MakeContext(const TlsFiles& files) {
  TF_RETURN_IF_ERROR(transport::CheckKeyPair(files.cert, files.key));
  Context context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const raw = context.get();
  bool good =
      raw != nullptr &&
      SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
      SSL_CTX_use_certificate_chain_file(raw, files.cert.c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) ==
          1;
  if (good && !files.client_ca.empty()) {
    TF_RETURN_IF_ERROR(
        transport::ReadPem(files.client_ca, "--tls-client-ca").status());
    good = SSL_CTX_load_verify_locations(raw, files.client_ca.c_str(),
                                         nullptr) == 1;
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  }
  if (!good) {
    char reason[256] = "out of memory";
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert ", files.cert, ": ", reason));
  }
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(
      raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

class Session : public TlsSession {
 public:
  explicit Session(SSL* ssl) : ssl_(ssl) {}
  ~Session() override { SSL_free(ssl_); }

  Step Handshake() override { return StepOf(SSL_accept(ssl_)); }
  Step Read(char* buffer, size_t capacity, size_t& size) override {
    size = 0;
    const int got = SSL_read_ex(ssl_, buffer, capacity, &size);
    if (got == 1) return Step::kDone;
    if (SSL_get_error(ssl_, got) == SSL_ERROR_ZERO_RETURN) return Step::kDone;
    return StepOf(got);
  }
  Step Write(const char* data, size_t length, size_t& size) override {
    size = 0;
    return StepOf(SSL_write_ex(ssl_, data, length, &size));
  }
  void SayGoodbye() override {
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  std::string PeerCertificate() const override {
    X509* const certificate = SSL_get0_peer_certificate(ssl_);
    if (certificate == nullptr) return "";
    BIO* const bio = BIO_new(BIO_s_mem());
    std::string pem;
    if (PEM_write_bio_X509(bio, certificate) == 1) {
      char* data = nullptr;
      const auto size = BIO_get_mem_data(bio, &data);
      pem.assign(data, static_cast<size_t>(size));
    }
    BIO_free(bio);
    return pem;
  }
  bool IsFor(const std::string& host) const override {
    X509* const own = SSL_get_certificate(ssl_);
    return own != nullptr &&
           X509_check_host(own, host.c_str(), host.size(), 0, nullptr) == 1;
  }

 private:
  Step StepOf(int result) {
    if (result == 1) return Step::kDone;
    const int error = SSL_get_error(ssl_, result);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ) return Step::kWantsRead;
    if (error == SSL_ERROR_WANT_WRITE) return Step::kWantsWrite;
    return Step::kFailed;
  }

  SSL* const ssl_;
};

class OpenSslServer : public TlsServer {
 public:
  OpenSslServer(TlsFiles files, std::vector<int64_t> stamp, Context context)
      : files_(std::move(files)),
        stamp_(std::move(stamp)),
        context_(std::move(context)) {}

  std::unique_ptr<TlsSession> Accept(int fd) override {
    Reload();
    ERR_clear_error();
    SSL* const ssl = SSL_new(context_.get());
    if (ssl == nullptr) return nullptr;
    auto session = std::make_unique<Session>(ssl);
    return SSL_set_fd(ssl, fd) == 1 ? std::move(session) : nullptr;
  }

 private:
  void Reload() {
    std::vector<int64_t> stamp = StampOf(files_);
    if (stamp == stamp_) return;
    stamp_ = std::move(stamp);
    auto fresh = MakeContext(files_);
    if (fresh.ok()) {
      context_ = *std::move(fresh);
      return;
    }
    Log(LogLevel::kWarning, "http",
        absl::StrCat("the old certificate stays in use: ",
                     std::string(fresh.status().message())));
  }

  const TlsFiles files_;
  std::vector<int64_t> stamp_;
  Context context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TlsServer>> TlsServer::Open(TlsFiles files) {
  std::vector<int64_t> stamp = StampOf(files);
  TF_ASSIGN_OR_RETURN(Context context, MakeContext(files));
  return std::make_unique<OpenSslServer>(std::move(files), std::move(stamp),
                                         std::move(context));
}

}  // namespace tilefarm::http
