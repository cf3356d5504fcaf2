#include "worker/builder_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace tilefarm::worker {
namespace {

constexpr absl::Duration kHelloTimeout = absl::Seconds(30);
constexpr absl::Duration kWriteTimeout = absl::Seconds(30);
// How closely paused time is kept out of the limit.
constexpr absl::Duration kSlice = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::shared_ptr<Process>> BuilderClient::Started() {
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    if (process_ != nullptr) {
      // It owes us nothing: what can be read now is its end. The next request
      // must not pay for that.
      if (!process_->WaitReadable(absl::ZeroDuration())) return process_;
      process_->Kill();
      process_ = nullptr;
    }
  }
  TF_ASSIGN_OR_RETURN(std::unique_ptr<Process> started,
                      starter_.Start(command_));
  const std::shared_ptr<Process> process = std::move(started);
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    process_ = process;
    if (!cpus_.empty()) KeepProcessOnCpus(process->pid(), cpus_);
    if (paused_) process->Stop();
  }
  const absl::StatusOr<Frame> frame =
      Ask(*process, BuilderFrame::kHello, "", kHelloTimeout);
  if (frame.ok() &&
      frame->type == static_cast<uint32_t>(BuilderFrame::kHelloReply)) {
    return process;
  }
  return absl::UnavailableError(absl::StrCat(
      "builder ", command_[0], " does not start: ", Drop(*process)));
}

absl::StatusOr<Frame> BuilderClient::Ask(Process& process, BuilderFrame type,
                                         const std::string& payload,
                                         absl::Duration timeout) {
  TF_RETURN_IF_ERROR(
      process.Write(static_cast<uint32_t>(type), payload, kWriteTimeout));
  absl::Duration spent;
  absl::Duration last = Clock::Real().Monotonic();
  while (!process.WaitReadable(kSlice)) {
    const absl::Duration now = Clock::Real().Monotonic();
    bool paused;
    {
      MutexLock lock(mutex_);
      paused = paused_;
    }
    if (!paused)
      spent += std::clamp(now - last, absl::ZeroDuration(), 2 * kSlice);
    last = now;
    if (spent > timeout) {
      return absl::DeadlineExceededError(absl::StrCat(
          "compiling took longer than ", absl::FormatDuration(timeout)));
    }
  }
  // It answers: what remains is the time to move the bytes, or to be stopped
  // and continued while it does.
  return process.Read(absl::InfiniteDuration());
}

std::string BuilderClient::Drop(Process& process) {
  const std::string end = process.Kill();
  MutexLock lock(mutex_);
  process_ = nullptr;
  return end;
}

absl::StatusOr<BuildReply> BuilderClient::Build(const BuildRequest& request,
                                                absl::Duration timeout) {
  TF_ASSIGN_OR_RETURN(const std::shared_ptr<Process> process, Started());
  const absl::StatusOr<Frame> frame =
      Ask(*process, BuilderFrame::kBuild, Encode(request), timeout);
  BuildReply reply;
  if (frame.ok() &&
      frame->type == static_cast<uint32_t>(BuilderFrame::kBuildReply) &&
      Decode(frame->payload, &reply)) {
    return reply;
  }
  const std::string end = Drop(*process);
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
  }
  if (absl::IsDeadlineExceeded(frame.status())) return frame.status();
  if (end == absl::StrCat("exited with status ", kBuilderOutOfMemory)) {
    return absl::AbortedError("the builder ran out of memory");
  }
  return absl::AbortedError(absl::StrCat("the builder ", end));
}

void BuilderClient::RunOn(CpuList cpus) {
  MutexLock lock(mutex_);
  cpus_ = std::move(cpus);
  if (process_ != nullptr) KeepProcessOnCpus(process_->pid(), cpus_);
}

void BuilderClient::Pause() {
  MutexLock lock(mutex_);
  paused_ = true;
  if (process_ != nullptr) process_->Stop();
}

void BuilderClient::Resume() {
  MutexLock lock(mutex_);
  paused_ = false;
  if (process_ != nullptr) process_->Continue();
}

void BuilderClient::Shutdown() {
  std::shared_ptr<Process> process;
  {
    MutexLock lock(mutex_);
    ended_ = true;
    process = process_;
  }
  if (process != nullptr) process->Kill();
}

}  // namespace tilefarm::worker
