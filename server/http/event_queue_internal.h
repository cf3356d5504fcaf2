// What a stream of events has to send, between the threads that give it and
// the connection that sends it.
#ifndef TILEFARM_SERVER_HTTP_EVENT_QUEUE_INTERNAL_H_
#define TILEFARM_SERVER_HTTP_EVENT_QUEUE_INTERNAL_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.h"
#include "server/http/exchange.h"

namespace tilefarm::http {

// Thread-safe.
class EventQueue : public EventStream {
 public:
  // `wake` makes the connection look at the queue; called without the lock.
  EventQueue(size_t most_bytes, std::function<void()> wake)
      : most_bytes_(most_bytes), wake_(std::move(wake)) {}

  bool Send(std::string_view event, std::string_view data) override {
    {
      MutexLock lock(mutex_);
      if (state_ != State::kOpen) return false;
      if (waiting_.size() + sending_ + data.size() > most_bytes_) {
        state_ = State::kAborted;
        waiting_.clear();
      } else {
        waiting_.append("event: ").append(event).append("\ndata: ");
        waiting_.append(data).append("\n\n");
      }
    }
    wake_();
    return true;
  }
  void Close() override {
    {
      MutexLock lock(mutex_);
      if (state_ == State::kOpen) state_ = State::kClosing;
    }
    wake_();
  }

  // --- For the connection ---
  struct Next {
    std::string bytes;     // to send; empty: none
    bool closing = false;  // after these bytes
  };
  // The bytes count as unread until the next call.
  Next Take() {
    MutexLock lock(mutex_);
    Next next{.bytes = std::exchange(waiting_, {}),
              .closing = state_ != State::kOpen};
    sending_ = next.bytes.size();
    return next;
  }
  // The client reads too slowly: no more is sent.
  bool aborted() {
    MutexLock lock(mutex_);
    return state_ == State::kAborted;
  }
  // The connection is gone.
  void End() {
    MutexLock lock(mutex_);
    state_ = State::kAborted;
    waiting_ = {};
  }

 private:
  enum class State { kOpen, kClosing, kAborted };

  const size_t most_bytes_;
  const std::function<void()> wake_;
  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpen;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  size_t sending_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_EVENT_QUEUE_INTERNAL_H_
