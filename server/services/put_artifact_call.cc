#include "server/services/put_artifact_call.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "compiler/codegen/artifact_check.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "server/services/admit.h"
#include "server/services/long_call.h"
#include "server/services/rpc_status.h"

namespace tilefarm::services {
namespace {

constexpr char kPutArtifact[] = "/tilefarm.v1.Regression/PutArtifact";

bool IsSha256(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The states of a call. Every change is made under the lock; the members that
// parts of the artifact go to are used by one thread at a time, since one read
// is under way at a time.
//
//   read header -> check it -> read parts -> check and store -> finished
class PutArtifactCall : public grpc::ServerReadReactor<v1::ArtifactPart>,
                        private LongCall {
 public:
  PutArtifactCall(const PutArtifactContext& service,
                  const grpc::ServerContextBase& context,
                  v1::PutArtifactResponse* response)
      : LongCall(service.executor),
        service_(service),
        limits_(service.gate.limits()),
        response_(response) {
    const absl::Status entered = Enter(context);
    if (!entered.ok()) {
      FinishOnce(entered);
      return;
    }
    Use();  // by the alarm
    alarm_.Set(std::chrono::system_clock::now() +
                   absl::ToChronoMilliseconds(limits_.artifact_transfer),
               [this](bool expired) {
                 if (expired) {
                   FinishOnce(absl::DeadlineExceededError(absl::StrCat(
                       "the artifact did not arrive within ",
                       absl::FormatDuration(limits_.artifact_transfer))));
                 }
                 EndLater();
               });
    StartRead(&part_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return TakeEnd();
    const absl::Status taken = Take();
    if (!taken.ok()) FinishOnce(taken);
  }
  void OnCancel() override { FinishOnce(absl::CancelledError("cancelled")); }
  void OnDone() override {
    alarm_.Cancel();
    EndLater();
  }

 private:
  absl::Status Enter(const grpc::ServerContextBase& context) {
    TF_ASSIGN_OR_RETURN(const security::Caller caller,
                        service_.gate.Identify(CredentialsOf(context)));
    open_ = caller.open;
    name_ = caller.name;
    TF_RETURN_IF_ERROR(service_.comparisons.CheckAllowed());
    TF_ASSIGN_OR_RETURN(
        live_call_, service_.gate.Enter(
                        caller, security::CallKind::kTransfer,
                        [this](const absl::Status& why) { FinishOnce(why); }));
    return absl::OkStatus();
  }

  absl::Status Take() {
    TF_RETURN_IF_ERROR(CheckMessage(service_.gate, kPutArtifact, part_));
    if (row_.sha256.empty() != part_.has_header()) {
      return absl::InvalidArgumentError(
          "the header stands in the first part, and there alone");
    }
    if (part_.has_header()) TF_RETURN_IF_ERROR(TakeHeader(part_.header()));
    if (bytes_.size() + part_.data().size() > static_cast<size_t>(row_.bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the artifact has more bytes than the ", row_.bytes, " announced"));
    }
    bytes_.append(part_.data());
    if (!part_.has_header()) {
      ReadMore();
      return absl::OkStatus();
    }
    // Whether it is stored already is a question to the database.
    return TryRun([this] { LookUp(); }) ? absl::OkStatus() : TooManyCalls();
  }

  absl::Status TakeHeader(const v1::ArtifactHeader& header) {
    if (!IsSha256(header.sha256())) {
      return absl::InvalidArgumentError(
          "the header's sha256 is not 64 lower-case hexadecimal digits");
    }
    if (header.bytes() == 0 ||
        header.bytes() > static_cast<uint64_t>(limits_.artifact_bytes)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the artifact has ", header.bytes(),
                       " bytes; it may have 1 to ", limits_.artifact_bytes));
    }
    if (header.symbols().empty()) {
      return absl::InvalidArgumentError("the header names no function");
    }
    for (const std::string& symbol : header.symbols()) {
      TF_RETURN_IF_ERROR(driver::CheckSymbol(symbol));
    }
    TF_ASSIGN_OR_RETURN(target_, target::ParseKey(header.target()));
    const auto bytes = static_cast<int64_t>(header.bytes());
    if (service_.incoming_bytes.fetch_add(bytes) + bytes >
        limits_.incoming_artifact_bytes) {
      service_.incoming_bytes -= bytes;
      return absl::ResourceExhaustedError(
          "too many artifacts arrive at once: try again in a moment");
    }
    reserved_ = bytes;
    row_ = {.sha256 = header.sha256(),
            .bytes = bytes,
            .target = target_.Key(),
            .symbols = {header.symbols().begin(), header.symbols().end()},
            .stored_by = open_ ? header.user() : name_};
    return absl::OkStatus();
  }

  void LookUp() {
    const auto known =
        service_.store.regression_tables().FindArtifact(row_.sha256);
    if (known.ok() && std::all_of(row_.symbols.begin(), row_.symbols.end(),
                                  [&](const std::string& symbol) {
                                    return std::find(known->symbols.begin(),
                                                     known->symbols.end(),
                                                     symbol) !=
                                           known->symbols.end();
                                  })) {
      const absl::Status touched =
          service_.store.regression_tables().TouchArtifact(row_.sha256);
      // Otherwise it was deleted just now.
      if (!absl::IsNotFound(touched)) {
        response_->set_known(true);
        return FinishOnce(touched);
      }
    }
    if (!known.ok() && !absl::IsNotFound(known.status())) {
      return FinishOnce(known.status());
    }
    ReadMore();
  }

  void ReadMore() {
    MutexLock lock(mutex_);
    if (!finished_) StartRead(&part_);
  }

  void TakeEnd() {
    {
      MutexLock lock(mutex_);
      if (finished_) return;
    }
    if (static_cast<int64_t>(bytes_.size()) != row_.bytes || bytes_.empty()) {
      return FinishOnce(absl::InvalidArgumentError(
          absl::StrCat("the artifact ended after ", bytes_.size(), " of ",
                       row_.bytes, " bytes")));
    }
    if (!TryRun([this] { FinishOnce(Store()); })) FinishOnce(TooManyCalls());
  }

  absl::Status Store() {
    if (Sha256Hex(bytes_) != row_.sha256) {
      return absl::InvalidArgumentError(
          "the bytes of the artifact are not those of its sha256");
    }
    TF_RETURN_IF_ERROR(codegen::CheckArtifact(bytes_, target_, row_.symbols));
    return service_.store.regression_tables().PutArtifact(row_, bytes_,
                                                          service_.retention);
  }

  void End() override {
    service_.incoming_bytes -= reserved_;
    live_call_.reset();
  }
  void FinishOnce(const absl::Status& status) {
    MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(ToGrpc(status));
  }

  const PutArtifactContext service_;
  const security::Limits& limits_;
  v1::PutArtifactResponse* const response_;
  bool open_ = false;
  std::string name_;  // of the caller
  std::unique_ptr<security::Gate::LiveCall> live_call_;
  grpc::Alarm alarm_;
  v1::ArtifactPart part_;
  target::Target target_;
  database::ArtifactRow row_;
  std::string bytes_;
  int64_t reserved_ = 0;
  Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerReadReactor<v1::ArtifactPart>* NewPutArtifactCall(
    const PutArtifactContext& service, const grpc::ServerContextBase& context,
    v1::PutArtifactResponse* response) {
  return new PutArtifactCall(service, context, response);
}

}  // namespace tilefarm::services
