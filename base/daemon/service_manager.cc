#include "base/daemon/service_manager.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"

namespace tilefarm::daemon {
namespace {

std::string Take(const char* variable) {
  const char* const value = getenv(variable);
  std::string text = value == nullptr ? "" : value;
  unsetenv(variable);
  return text;
}

class NotifySocket : public ServiceManager {
 public:
  // An empty path: there is no service manager. Zero: no watchdog.
  NotifySocket(std::string path, absl::Duration watchdog)
      : path_(std::move(path)), watchdog_(watchdog) {}
  ~NotifySocket() override { StopWatching(); }

  void Ready(Stuck stuck) override {
    Send("READY=1");
    if (path_.empty() || watchdog_ <= absl::ZeroDuration()) return;
    stuck_ = std::move(stuck);
    watcher_ = std::thread([this] { Watch(); });
  }
  void Stopping() override {
    StopWatching();
    Send("STOPPING=1");
  }

 private:
  void Watch() {
    bool said = false;
    while (true) {
      const std::string stuck = stuck_(watchdog_ / 2);
      if (stuck.empty()) {
        Send("WATCHDOG=1");
      } else if (!said) {
        Log(LogLevel::kError, "watchdog",
            absl::StrCat(stuck,
                         ": the service manager is not told that all "
                         "is well"));
      }
      said = !stuck.empty();
      MutexLock lock(mutex_);
      if (!stopping_) changed_.WaitFor(mutex_, watchdog_ / 3);
      if (stopping_) return;
    }
  }

  void StopWatching() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (watcher_.joinable()) watcher_.join();
  }

  void Send(std::string_view state) const {
    sockaddr_un to = {};
    if (path_.empty() || path_.size() >= sizeof to.sun_path) return;
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path_.data(), path_.size());
    // A name that begins with "@" is in the abstract namespace: the first byte
    // is 0.
    if (path_[0] == '@') to.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
    if (fd < 0 ||
        sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), size) < 0) {
      Log(LogLevel::kWarning, "watchdog",
          absl::StrCat(path_, ": ", std::strerror(errno)));
    }
    if (fd >= 0) close(fd);
  }

  const std::string path_;
  const absl::Duration watchdog_;
  Stuck stuck_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<ServiceManager> ServiceManager::FromEnvironment() {
  std::string path = Take("NOTIFY_SOCKET");
  const std::string microseconds = Take("WATCHDOG_USEC");
  const std::string pid = Take("WATCHDOG_PID");
  int64_t watchdog = 0;
  // WATCHDOG_PID may name another process.
  if (!absl::SimpleAtoi(microseconds, &watchdog) ||
      (!pid.empty() && pid != absl::StrCat(getpid()))) {
    watchdog = 0;
  }
  return std::make_unique<NotifySocket>(std::move(path),
                                        absl::Microseconds(watchdog));
}

}  // namespace tilefarm::daemon
