#include "transport/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace tilefarm::transport {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMinToken = 16;
constexpr size_t kMaxToken = 512;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

// `secret`: only the owner may read it.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::string_view flag, bool secret) {
  const std::string name = absl::StrCat(std::string(flag), " ", path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(absl::StrCat(name, ": ", std::strerror(errno)));
  }
  struct stat facts = {};
  absl::Status wrong;
  if (fstat(fd, &facts) != 0 || S_ISDIR(facts.st_mode)) {
    wrong = absl::InvalidArgumentError(absl::StrCat(name, ": is not a file"));
  } else if (secret && (facts.st_mode & 077) != 0) {
    wrong = absl::PermissionDeniedError(absl::StrFormat(
        "%s has mode %04o: others may read it; make it private with: chmod "
        "600 %s",
        name, facts.st_mode & 07777, path));
  }
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while (wrong.ok() && text.size() <= kMaxFileBytes &&
         (size = read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(size));
  }
  close(fd);
  if (!wrong.ok()) return wrong;
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is too large"));
  }
  return text;
}

Bio BioOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate FirstCertificate(const std::string& pem) {
  const Bio bio = BioOf(pem);
  Certificate out(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return out;
}

// Otherwise OpenSSL would ask for a password on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*write*/, void* /*data*/) {
  return -1;
}

}  // namespace

absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    std::string_view flag) {
  TF_ASSIGN_OR_RETURN(std::string pem, ReadFile(path, flag, /*secret=*/false));
  if (FirstCertificate(pem) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(flag), " ", path, ": there is no PEM certificate in it"));
  }
  return pem;
}

absl::Status CheckKeyPair(const std::string& cert, const std::string& key) {
  TF_ASSIGN_OR_RETURN(const std::string cert_pem, ReadPem(cert, "--tls-cert"));
  TF_ASSIGN_OR_RETURN(const std::string key_pem,
                      ReadFile(key, "--tls-key", /*secret=*/true));
  const Certificate certificate = FirstCertificate(cert_pem);
  const Bio bio = BioOf(key_pem);
  const Key pair(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (pair == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-key ", key,
                     ": there is no PEM private key without a password in it"));
  }
  const bool fits = X509_check_private_key(certificate.get(), pair.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-key ", key, " is not the key of the certificate ", cert));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--tls-cert ", cert, ": the certificate has expired"));
  }
  return absl::OkStatus();
}

absl::Status CheckToken(std::string_view token, std::string_view from) {
  bool plain = token.size() >= kMinToken && token.size() <= kMaxToken;
  for (const char c : token) plain = plain && absl::ascii_isgraph(c);
  if (plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(from),
      " holds no token: one line as `tune tokens create` printed it"));
}

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  TF_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(path, "--token-file", /*secret=*/true));
  const std::string token(absl::StripAsciiWhitespace(text));
  TF_RETURN_IF_ERROR(CheckToken(token, absl::StrCat("--token-file ", path)));
  return token;
}

}  // namespace tilefarm::transport
