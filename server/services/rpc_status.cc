#include "server/services/rpc_status.h"

#include <string>

namespace tilefarm::services {
namespace {

// Far below the 8 KiB of metadata that a peer accepts, including
// percent-encoding.
constexpr size_t kMaxMessage = 2000;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message());
  if (message.size() > kMaxMessage) {
    message = message.substr(0, kMaxMessage) + " ...";
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace tilefarm::services
