#include "transport/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "transport/secret_file.h"

namespace tilefarm::transport {
namespace {

// How often the files are checked for changes.
constexpr unsigned kReloadSeconds = 1;

// "authorization: Bearer TOKEN" on each call. gRPC itself sends such metadata
// over TLS only.
class BearerToken : public grpc::MetadataCredentialsPlugin {
 public:
  explicit BearerToken(ClientSecurity security)
      : security_(std::move(security)) {}

  grpc::Status GetMetadata(
      grpc::string_ref /*service_url*/, grpc::string_ref /*method_name*/,
      const grpc::AuthContext& /*context*/,
      std::multimap<std::string, std::string>* metadata) override {
    std::string token = security_.token;
    if (!security_.token_file.empty()) {
      auto read = ReadTokenFile(security_.token_file);
      if (!read.ok()) {
        return {grpc::StatusCode::UNAUTHENTICATED,
                std::string(read.status().message())};
      }
      token = *std::move(read);
    }
    metadata->emplace("authorization", absl::StrCat("Bearer ", token));
    return grpc::Status::OK;
  }
  // The default text holds the object's address.
  grpc::string DebugString() override { return "bearer token"; }

 private:
  const ClientSecurity security_;
};

std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(
    const ClientSecurity& security) {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<FileWatcherCertificateProvider>(
          security.key, security.cert, security.ca, kReloadSeconds));
  options.watch_root_certs();
  if (!security.cert.empty()) options.watch_identity_key_cert_pairs();
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::experimental::TlsCredentials(options);
  if (!security.has_token()) return credentials;
  return grpc::CompositeChannelCredentials(
      credentials, grpc::MetadataCredentialsFromPlugin(
                       std::make_unique<BearerToken>(security)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(
    const Endpoint& endpoint, const grpc::ChannelArguments& arguments) {
  TF_RETURN_IF_ERROR(CheckEndpoint(endpoint));
  if (!endpoint.security.tls()) {
    if (endpoint.security.has_token()) {
      Log(LogLevel::kInfo, "transport",
          "the token is not sent: it needs TLS (--tls-ca); a server on "
          "loopback without TLS asks for none");
    }
    return grpc::CreateCustomChannel(
        endpoint.address, grpc::InsecureChannelCredentials(), arguments);
  }
  return grpc::CreateCustomChannel(
      endpoint.address, MakeCredentials(endpoint.security), arguments);
}

}  // namespace tilefarm::transport
