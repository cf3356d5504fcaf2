#include "base/executor.h"

#include <utility>

namespace tilefarm {

Executor::Executor(int threads, int most_waiting)
    : most_waiting_(static_cast<size_t>(most_waiting)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Executor::~Executor() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::TryRun(std::function<void()> task) {
  MutexLock lock(mutex_);
  if (tasks_.size() >= most_waiting_) return false;
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
  return true;
}

void Executor::Run(std::function<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
}

void Executor::Loop() {
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !ending_) changed_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace tilefarm
