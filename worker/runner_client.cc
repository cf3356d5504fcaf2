#include "worker/runner_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "worker/helper_environment.h"

namespace tilefarm::worker {
namespace {

// A runner for a device starts its driver first.
constexpr absl::Duration kHelloTimeout = absl::Seconds(90);
constexpr absl::Duration kWriteTimeout = absl::Seconds(60);
// Time for making inputs and comparing outputs, in addition to the child's
// limit.
constexpr absl::Duration kSlack = absl::Seconds(60);

absl::StatusOr<Frame> Ask(Process& process, RunnerFrame type,
                          const std::string& payload, absl::Duration timeout) {
  TF_RETURN_IF_ERROR(
      process.Write(static_cast<uint32_t>(type), payload, kWriteTimeout));
  return process.Read(timeout);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Process>> RunnerClient::Started() {
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    if (process_ != nullptr) return process_;
  }
  TF_ASSIGN_OR_RETURN(std::unique_ptr<Process> started,
                      starter_.Start(command_, RunnerEnvironment()));
  const std::shared_ptr<Process> process = std::move(started);
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    process_ = process;
  }
  return process;
}

absl::StatusOr<Frame> RunnerClient::Exchange(RunnerFrame type, uint64_t run_id,
                                             const std::string& payload,
                                             RunnerFrame expected,
                                             absl::Duration timeout) {
  bool fresh;
  {
    MutexLock lock(mutex_);
    fresh = process_ == nullptr;
  }
  if (fresh && type != RunnerFrame::kHello) {
    TF_ASSIGN_OR_RETURN(const Frame hello,
                        Exchange(RunnerFrame::kHello, 0, "",
                                 RunnerFrame::kHelloReply, kHelloTimeout));
    HelloReply reply;
    if (Decode(hello.payload, &reply)) {
      MutexLock lock(mutex_);
      isolation_ = reply.isolation;
    }
  }
  TF_ASSIGN_OR_RETURN(const std::shared_ptr<Process> process, Started());
  {
    // An earlier Cancel is seen here; a later one finds the process and sends
    // it a frame.
    MutexLock lock(mutex_);
    if (run_id != 0 && run_id == cancelled_run_) {
      return absl::CancelledError("cancelled");
    }
  }
  absl::StatusOr<Frame> frame = Ask(*process, type, payload, timeout);
  if (frame.ok() && frame->type != static_cast<uint32_t>(expected)) {
    frame = absl::DataLossError("an answer to something else");
  }
  if (frame.ok()) return frame;
  const std::string end = process->Kill();
  MutexLock lock(mutex_);
  process_ = nullptr;
  return absl::UnavailableError(absl::StrCat(
      "the runner ", end, ": ", std::string(frame.status().message())));
}

absl::StatusOr<LoadReply> RunnerClient::Load(const LoadWorkload& request) {
  // The runner may run the reference twice.
  const absl::Duration timeout =
      2 * absl::Milliseconds(request.limits.timeout_ms) + kSlack;
  TF_ASSIGN_OR_RETURN(
      const Frame frame,
      Exchange(RunnerFrame::kLoadWorkload, request.run_id, Encode(request),
               RunnerFrame::kLoadReply, timeout));
  LoadReply reply;
  if (!Decode(frame.payload, &reply)) {
    return absl::UnavailableError("the runner answered nonsense");
  }
  return reply;
}

absl::StatusOr<RunReply> RunnerClient::Run(const RunRequest& request) {
  const absl::Duration timeout =
      absl::Milliseconds(request.limits.timeout_ms) + kSlack;
  const absl::StatusOr<Frame> frame =
      Exchange(RunnerFrame::kRun, request.run_id, Encode(request),
               RunnerFrame::kRunReply, timeout);
  RunReply reply;
  if (absl::IsCancelled(frame.status())) {
    reply.status = RunStatus::kCancelled;
    return reply;
  }
  if (!frame.ok()) return frame.status();
  if (!Decode(frame->payload, &reply)) {
    return absl::UnavailableError("the runner answered nonsense");
  }
  return reply;
}

absl::StatusOr<CompareReply> RunnerClient::Compare(
    const CompareRequest& request) {
  const absl::Duration timeout =
      absl::Milliseconds(request.limits.timeout_ms) + kSlack;
  const absl::StatusOr<Frame> frame =
      Exchange(RunnerFrame::kCompare, request.run_id, Encode(request),
               RunnerFrame::kCompareReply, timeout);
  CompareReply reply;
  if (absl::IsCancelled(frame.status())) {
    reply.status = RunStatus::kCancelled;
    return reply;
  }
  if (!frame.ok()) return frame.status();
  if (!Decode(frame->payload, &reply)) {
    return absl::UnavailableError("the runner answered nonsense");
  }
  return reply;
}

void RunnerClient::Cancel(uint64_t run_id) {
  std::shared_ptr<Process> process;
  {
    MutexLock lock(mutex_);
    cancelled_run_ = run_id;
    process = process_;
  }
  if (process == nullptr) return;
  // A runner that does not read is killed at its deadline.
  process
      ->Write(static_cast<uint32_t>(RunnerFrame::kCancel),
              Encode(CancelRun{run_id}), absl::Seconds(1))
      .IgnoreError();
}

void RunnerClient::Shutdown() {
  std::shared_ptr<Process> process;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    process = process_;
  }
  if (process != nullptr) process->Kill();
}

std::string RunnerClient::isolation() {
  MutexLock lock(mutex_);
  return isolation_;
}

}  // namespace tilefarm::worker
