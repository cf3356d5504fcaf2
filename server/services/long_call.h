// The common base of calls that last long and use gRPC's callback API.
#ifndef TILEFARM_SERVER_SERVICES_LONG_CALL_H_
#define TILEFARM_SERVER_SERVICES_LONG_CALL_H_

#include <atomic>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "base/executor.h"

namespace tilefarm::services {

// Parts of the call may block and run on the executor, while the call may end
// at any time. `this` is deleted when those parts and gRPC are all done with
// it. Thread-safe.
class LongCall {
 public:
  explicit LongCall(Executor& executor) : executor_(executor) {}
  virtual ~LongCall() = default;
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;

 protected:
  // Runs the task on a thread of the executor. False: too many tasks wait, and
  // it does not run.
  bool TryRun(std::function<void()> task) {
    ++users_;
    if (executor_.TryRun([this, task = std::move(task)] {
          task();
          Release();
        })) {
      return true;
    }
    --users_;
    return false;
  }
  // Whoever calls this uses the call until EndLater.
  void Use() { ++users_; }
  // gRPC makes no more calls, or a use ends.
  void EndLater() {
    executor_.Run([this] { Release(); });
  }
  // Runs last, on a thread of the executor, before `this` is deleted.
  virtual void End() = 0;

 private:
  void Release() {
    if (--users_ > 0) return;
    End();
    delete this;
  }

  Executor& executor_;
  std::atomic<int> users_{1};  // gRPC, running tasks, and uses
};

inline absl::Status TooManyCalls() {
  return absl::ResourceExhaustedError(
      "too many calls begin at once: try again in a moment");
}

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_LONG_CALL_H_
