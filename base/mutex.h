// std::mutex with Clang thread-safety annotations. TSan reports false races on
// Debian's absl::Mutex, which is not instrumented; it sees this mutex.
#ifndef TILEFARM_BASE_MUTEX_H_
#define TILEFARM_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace tilefarm {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // `mutex` must be held. Wake-ups may be spurious: loop on the condition.
  void Wait(Mutex& mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // As Wait; false after a timeout.
  bool WaitFor(Mutex& mutex, absl::Duration timeout) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
#ifdef __SANITIZE_THREAD__
    // TSan intercepts waits on the system clock, not those on the steady one.
    const auto until = std::chrono::system_clock::now();
#else
    // The system clock may be stepped by hours during the wait.
    const auto until = std::chrono::steady_clock::now();
#endif
    const bool woken =
        cv_.wait_until(lock, until + absl::ToChronoMicroseconds(timeout)) ==
        std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_MUTEX_H_
