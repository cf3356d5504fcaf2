#include "worker/runner/device_child.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "worker/runner/descriptors.h"
#include "worker/runner/device_measure.h"

namespace tilefarm::worker {
namespace {

// The first context after a start of the system takes seconds.
constexpr uint32_t kStartMs = 60000;
// Memory of the driver itself, beside the candidate's.
constexpr uint64_t kDriverBytes = uint64_t{16} << 30;

// An answer of the child in printable characters.
std::string Printable(std::string text) {
  constexpr size_t kMost = 512;
  if (text.size() > kMost) text.resize(kMost);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// With everything in it, without following links. std::filesystem would double
// the size of this program.
void RemoveFolder(const std::string& folder) {
  constexpr int kOpenFolders = 16;
  nftw(
      folder.c_str(),
      [](const char* path, const struct stat*, int, FTW*) {
        remove(path);
        return 0;
      },
      kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

}  // namespace

bool DeviceChild::Drop() {
  const bool ended = child_ == nullptr || child_->End();
  child_.reset();
  group_.reset();
  if (!folder_.empty()) {
    // Its processes are gone, so nobody changes it meanwhile.
    RemoveFolder(folder_);
    folder_.clear();
  }
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  jobs_ = 0;
  spent_ = false;
  return ended;
}

ChildOutcome DeviceChild::Start(const ChildLimits& limits, int control_fd,
                                uint64_t run_id, std::string* error) {
  ChildOutcome failed = {ChildEnd::kNotStarted};
  int ends[2];
  if (!MakeSocketPair(ends)) {
    *error = std::string("no socket: ") + strerror(errno);
    return failed;
  }
  socket_ = ends[0];
  ChildLimits group_limits = limits;
  if (group_limits.memory_bytes > 0) group_limits.memory_bytes += kDriverBytes;
  group_ = sandbox_.MakeGroup(group_limits, error);
  if (!error->empty()) {
    close(ends[1]);
    return failed;
  }
  const int socket = ends[1];
  folder_ = sandbox_.NewDeviceFolder();
  child_ = std::make_unique<Child>(ChildSetup{sandbox_,
                                              {socket},
                                              nullptr,
                                              group_.get(),
                                              /*uses_device=*/true,
                                              folder_},
                                   limits, [this, socket] {
                                     ServeDevice(socket, device_, [this] {
                                       return sandbox_.CloseForDevice();
                                     });
                                   });
  close(ends[1]);
  ChildLimits start = limits;
  start.timeout_ms = kStartMs;
  ChildOutcome outcome =
      child_->Await(start, control_fd, run_id, nullptr, socket_);
  std::string answer = "does not start";
  std::vector<int> none;
  if (outcome.end == ChildEnd::kAnswered) {
    if (ReceiveMessage(socket_, &answer, &none)) {
      for (const int fd : none) close(fd);
      answer = Printable(answer);
      if (answer == kReady) return outcome;
    } else {
      outcome = child_->Await(start, control_fd, run_id, nullptr);
      answer = outcome.Describe(start) + " before its context was made";
    }
  } else {
    answer = outcome.Describe(start) + " before its context was made";
  }
  const bool ended = Drop();
  if (outcome.end == ChildEnd::kCancelled ||
      outcome.end == ChildEnd::kParentGone) {
    return outcome;
  }
  *error = answer;
  failed.end = ended && outcome.end != ChildEnd::kStuck ? ChildEnd::kNotStarted
                                                        : ChildEnd::kStuck;
  return failed;
}

std::string DeviceChild::Try() {
  const DeviceConfinement wanted = sandbox_.device_confinement();
  std::string first_error;
  for (int level = static_cast<int>(wanted); level >= 0; --level) {
    const auto confinement = static_cast<DeviceConfinement>(level);
    sandbox_.Confine(confinement, "");
    std::string error;
    const ChildOutcome outcome = Start(ChildLimits{}, -1, 0, &error);
    if (outcome.end == ChildEnd::kAnswered) {
      if (!first_error.empty()) {
        sandbox_.Confine(
            confinement,
            "the device does not work when confined further: " + first_error +
                (confinement == DeviceConfinement::kLinker
                     ? " (a filter of system calls remains, which permits a "
                       "linker)"
                     : ""));
      }
      return "";
    }
    if (first_error.empty()) first_error = error;
  }
  // It works with none, so confinement is not the reason.
  sandbox_.Confine(wanted, "");
  return first_error;
}

ChildOutcome DeviceChild::Run(const DeviceJob& job,
                              const std::vector<int>& descriptors,
                              int control_fd, const GiveUp& give_up,
                              std::string* error) {
  const ChildLimits& limits = job.request.limits;
  const uint64_t run_id = job.request.run_id;
  if (child_ != nullptr && (spent_ || jobs_ >= kMostJobs) && !Drop()) {
    return {ChildEnd::kStuck};
  }
  const std::string message = Encode(job);
  if (child_ != nullptr && !SendMessage(socket_, message, descriptors)) {
    // It has ended since its last candidate.
    if (!Drop()) return {ChildEnd::kStuck};
  } else if (child_ != nullptr) {
    ++jobs_;
  }
  if (child_ == nullptr) {
    const ChildOutcome started = Start(limits, control_fd, run_id, error);
    if (started.end != ChildEnd::kAnswered) return started;
    if (!SendMessage(socket_, message, descriptors)) {
      *error = "its child has ended";
      return {Drop() ? ChildEnd::kNotStarted : ChildEnd::kStuck};
    }
    jobs_ = 1;
  }
  ChildOutcome outcome =
      child_->Await(limits, control_fd, run_id, give_up, socket_);
  std::string answer;
  std::vector<int> none;
  if (outcome.end == ChildEnd::kAnswered) {
    if (ReceiveMessage(socket_, &answer, &none)) {
      for (const int fd : none) close(fd);
      spent_ = answer != kReady;
      return outcome;
    }
    outcome = child_->Await(limits, control_fd, run_id, nullptr);
  }
  const uint32_t jobs = jobs_;
  const bool ended = Drop();
  jobs_ = jobs;  // for was_first
  if (!ended) outcome.end = ChildEnd::kStuck;
  return outcome;
}

}  // namespace tilefarm::worker
