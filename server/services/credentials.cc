#include "server/services/credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <string>

#include "base/status_macros.h"
#include "server/services/rpc_status.h"
#include "transport/secret_file.h"

namespace tilefarm::services {
namespace {

constexpr char kAuthorization[] = "authorization";
constexpr char kPathKey[] = ":path";
constexpr char kPemProperty[] = "x509_pem_cert";

std::string ToString(grpc::string_ref text) {
  return std::string(text.data(), text.size());
}

std::string CertificateOf(const grpc::AuthContext& context) {
  const auto found = context.FindPropertyValues(kPemProperty);
  return found.empty() ? "" : ToString(found[0]);
}

template <typename Metadata>
std::string ValueOf(const Metadata& metadata, const char* key) {
  const auto [begin, end] = metadata.equal_range(key);
  if (begin == end) return "";
  // Two headers: neither counts, but the call is not one without credentials.
  return std::next(begin) == end ? ToString(begin->second) : "twice";
}

class Processor : public grpc::AuthMetadataProcessor {
 public:
  explicit Processor(security::Gate& gate) : gate_(gate) {}

  // Only looks things up in memory, so it does not block gRPC.
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata* /*consumed*/,
                       OutputMetadata* /*response*/) override {
    return ToGrpc(
        gate_.Authorize(ValueOf(metadata, kPathKey),
                        {.certificate = CertificateOf(*context),
                         .authorization = ValueOf(metadata, kAuthorization)}));
  }

 private:
  security::Gate& gate_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const ListenSecurity& security, security::Gate& gate) {
  if (!security.tls()) return grpc::InsecureServerCredentials();
  TF_RETURN_IF_ERROR(
      transport::CheckKeyPair(security.tls_cert, security.tls_key));
  const bool demand = !security.tls_client_ca.empty();
  if (demand) {
    TF_RETURN_IF_ERROR(
        transport::ReadPem(security.tls_client_ca, "--tls-client-ca").status());
  }
  const auto seconds = static_cast<unsigned>(
      std::max<int64_t>(1, absl::ToInt64Seconds(gate.limits().reload)));
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          security.tls_key, security.tls_cert, security.tls_client_ca,
          seconds));
  options.watch_identity_key_cert_pairs();
  if (demand) options.watch_root_certs();
  options.set_cert_request_type(
      demand ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<Processor>(gate));
  return credentials;
}

security::Credentials CredentialsOf(const grpc::ServerContextBase& context) {
  return {.certificate = CertificateOf(*context.auth_context()),
          .authorization = ValueOf(context.client_metadata(), kAuthorization)};
}

}  // namespace tilefarm::services
