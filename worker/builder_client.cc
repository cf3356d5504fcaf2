#include "worker/builder_client.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/helper_environment.h"

namespace tilefarm::worker {
namespace {

// The precision with which paused time is excluded from the limits.
constexpr absl::Duration kSlice = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::shared_ptr<Process>> BuilderClient::Started() {
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    if (process_ != nullptr) {
      // No answer is due, so readable input means that it has ended. It is
      // replaced now, so that the next request does not fail.
      if (!process_->WaitReadable(absl::ZeroDuration())) return process_;
      End(*process_);
      process_ = nullptr;
    }
  }
  TF_ASSIGN_OR_RETURN(std::unique_ptr<Process> started,
                      starter_.Start(command_, BuilderEnvironment()));
  const std::shared_ptr<Process> process = std::move(started);
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::UnavailableError("shutting down");
    process_ = process;
    if (!cpus_.empty()) KeepProcessOnCpus(process->pid(), cpus_);
    if (paused_) process->Stop();
  }
  const absl::StatusOr<Frame> frame =
      Ask(*process, BuilderFrame::kHello, "", timeouts_.start);
  BuilderHelloReply hello;
  if (frame.ok() &&
      frame->type == static_cast<uint32_t>(BuilderFrame::kHelloReply) &&
      Decode(frame->payload, &hello)) {
    SayConfinement(hello);
    MutexLock lock(directory_mutex_);
    directory_ = hello.directory;
    return process;
  }
  return absl::UnavailableError(absl::StrCat(
      "builder ", command_[0], " does not start: ", Drop(*process)));
}

void BuilderClient::SayConfinement(const BuilderHelloReply& hello) {
  if (std::exchange(said_confinement_, true)) return;
  Log(hello.shortfall.empty() ? LogLevel::kDebug : LogLevel::kWarning, "worker",
      absl::StrCat("builders are confined by ", hello.confinement,
                   hello.shortfall.empty() ? "" : "; ", hello.shortfall));
}

absl::StatusOr<Frame> BuilderClient::Ask(Process& process, BuilderFrame type,
                                         const std::string& payload,
                                         absl::Duration timeout) {
  TF_RETURN_IF_ERROR(
      process.Write(static_cast<uint32_t>(type), payload, timeouts_.transfer));
  // Limits of the answer: until its first byte, and after that.
  absl::Duration waited, read;
  absl::Duration last = Clock::Real().Monotonic();
  for (;;) {
    absl::StatusOr<Frame> frame = process.Read(kSlice);
    if (!absl::IsDeadlineExceeded(frame.status())) return frame;
    const absl::Duration now = Clock::Real().Monotonic();
    bool paused;
    {
      MutexLock lock(mutex_);
      paused = paused_;
    }
    absl::Duration& spent = process.in_frame() ? read : waited;
    if (!paused) {
      spent += std::clamp(now - last, absl::ZeroDuration(), 2 * kSlice);
    }
    last = now;
    if (waited > timeout) {
      return absl::DeadlineExceededError(absl::StrCat(
          "compiling took longer than ", absl::FormatDuration(timeout)));
    }
    if (read > timeouts_.transfer) {
      return absl::DeadlineExceededError(
          absl::StrCat("the builder's answer took longer than ",
                       absl::FormatDuration(timeouts_.transfer)));
    }
  }
}

std::string BuilderClient::End(Process& process) {
  const std::string end = process.Kill();
  MutexLock lock(directory_mutex_);
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  directory_.clear();
  return end;
}

std::string BuilderClient::Drop(Process& process) {
  const std::string end = End(process);
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
  if (process != nullptr) End(*process);
}

}  // namespace tilefarm::worker
