#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/http/tls_internal.h"
#include "transport/secret_file.h"

namespace tilefarm::http {
namespace {

using Context = boost::asio::ssl::context;

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

absl::StatusOr<std::shared_ptr<Context>> MakeContext(const TlsFiles& files) {
  TF_RETURN_IF_ERROR(transport::CheckKeyPair(files.cert, files.key));
  auto context = std::make_shared<Context>(Context::tls_server);
  SSL_CTX* const raw = context->native_handle();
  boost::system::error_code error;
  context->use_certificate_chain_file(files.cert, error);
  if (!error) context->use_private_key_file(files.key, Context::pem, error);
  if (!error && !files.client_ca.empty()) {
    TF_RETURN_IF_ERROR(
        transport::ReadPem(files.client_ca, "--tls-client-ca").status());
    context->load_verify_file(files.client_ca, error);
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  }
  ERR_clear_error();
  if (error || SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-cert ", files.cert, ": ", error.message()));
  }
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  return context;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Open(TlsFiles files) {
  std::unique_ptr<TlsContext> made(new TlsContext);
  made->stamp_ = StampOf(files);
  TF_ASSIGN_OR_RETURN(made->context_, MakeContext(files));
  made->files_ = std::move(files);
  return made;
}

std::shared_ptr<Context> TlsContext::Current() {
  std::vector<int64_t> stamp = StampOf(files_);
  if (stamp != stamp_) {
    stamp_ = std::move(stamp);
    auto fresh = MakeContext(files_);
    if (fresh.ok()) {
      context_ = *std::move(fresh);
    } else {
      Log(LogLevel::kWarning, "http",
          absl::StrCat("the old certificate stays in use: ",
                       std::string(fresh.status().message())));
    }
  }
  return context_;
}

std::string PeerCertificate(SSL* ssl) {
  X509* const certificate = SSL_get0_peer_certificate(ssl);
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

bool IsCertifiedFor(SSL* ssl, const std::string& host) {
  X509* const own = SSL_get_certificate(ssl);
  return own != nullptr &&
         X509_check_host(own, host.c_str(), host.size(), 0, nullptr) == 1;
}

}  // namespace tilefarm::http
