#include "compiler/driver/remote_best.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/printer.h"
#include "proto/tilefarm/v1/tune.grpc.pb.h"
#include "transport/channel.h"
#include "transport/diagnose.h"

namespace tilefarm::driver {
namespace {

constexpr std::chrono::seconds kTimeout{10};
constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace

FindBest BestOfServer(const transport::Endpoint& server,
                      TakeExplanation explain) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel = transport::OpenChannel(server, arguments);
  if (!channel.ok()) {
    return [status = channel.status()](const database::BestQuery& /*query*/)
               -> absl::StatusOr<database::BestMatch> { return status; };
  }
  const std::shared_ptr<v1::Tune::Stub> stub = v1::Tune::NewStub(*channel);
  return [stub, server,
          explain = std::move(explain)](const database::BestQuery& query)
             -> absl::StatusOr<database::BestMatch> {
    v1::BestRequest request;
    request.set_program(ir::Print(ir::IRModule{{query.program}}));
    request.set_target(query.target.Key());
    request.set_device_model(query.device_model);
    request.set_fingerprint(query.fingerprint);
    request.set_allow_stale(query.allow_stale);
    request.set_allow_library(query.allow_library);
    request.set_allow_emulated(query.allow_emulated);
    request.set_strict_fp(query.floats == ir::FloatRule::kAsWritten);
    request.set_no_winograd(query.floats == ir::FloatRule::kNoWinograd);
    request.set_explain(explain != nullptr);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kTimeout);
    v1::BestResponse response;
    const grpc::Status status = stub->Best(&context, request, &response);
    if (!status.ok()) {
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
        TF_RETURN_IF_ERROR(transport::Diagnose(server));
      }
      // gRPC's codes and Abseil's have the same numbers.
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                          absl::StrCat("server ", server.address, ": ",
                                       status.error_message()));
    }
    if (explain != nullptr) {
      if (response.explanation_json().empty()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "server ", server.address,
            " is older than this tunec and cannot explain lookups: leave out "
            "--explain, or give --db"));
      }
      TF_ASSIGN_OR_RETURN(
          database::Explanation explanation,
          database::ExplanationFromJson(response.explanation_json()));
      const bool found = explanation.found;
      explain(std::move(explanation));
      if (!found) return absl::NotFoundError(response.reason());
    }
    TF_ASSIGN_OR_RETURN(database::Record record,
                        database::RecordFromJson(response.record_json()));
    database::BestMatch best;
    best.record = std::move(record);
    best.reason = response.reason();
    return best;
  };
}

}  // namespace tilefarm::driver
