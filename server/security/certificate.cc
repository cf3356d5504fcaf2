#include "server/security/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/security/token.h"

namespace tilefarm::security {
namespace {

absl::StatusOr<absl::Time> TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) {
    return absl::UnauthenticatedError("the certificate has a bad date");
  }
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

absl::StatusOr<std::string> CommonName(X509* certificate) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) {
    return absl::UnauthenticatedError(
        "the certificate has not exactly one common name");
  }
  std::string name(
      TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  const absl::Status good = CheckName(name);
  if (!good.ok()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate's common name is none: ", good.message()));
  }
  return name;
}

std::vector<std::string> RoleUris(X509* certificate) {
  std::vector<std::string> roles;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const std::string_view uri = TextOf(name->d.uniformResourceIdentifier);
    if (uri.substr(0, kRoleUri.size()) == kRoleUri) {
      roles.emplace_back(uri.substr(kRoleUri.size()));
    }
  }
  return roles;
}

}  // namespace

absl::StatusOr<CertificateFacts> ReadCertificate(std::string_view pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
  ERR_clear_error();
  if (certificate == nullptr) {
    return absl::UnauthenticatedError("the certificate cannot be read");
  }
  CertificateFacts facts;
  TF_ASSIGN_OR_RETURN(facts.name, CommonName(certificate.get()));
  const std::vector<std::string> roles = RoleUris(certificate.get());
  const std::optional<Role> role =
      roles.size() == 1 ? ParseRole(roles[0]) : std::nullopt;
  if (!role.has_value()) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate of ", facts.name,
        " has not exactly one role: make it with deploy/make-certs --worker, "
        "--user or --admin"));
  }
  facts.role = *role;
  TF_ASSIGN_OR_RETURN(facts.not_before,
                      TimeOf(X509_get0_notBefore(certificate.get())));
  TF_ASSIGN_OR_RETURN(facts.not_after,
                      TimeOf(X509_get0_notAfter(certificate.get())));
  return facts;
}

}  // namespace tilefarm::security
