// A few threads for work that must not run on the thread that requests it, such
// as a gRPC thread, which serves every stream.
#ifndef TILEFARM_BASE_EXECUTOR_H_
#define TILEFARM_BASE_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace tilefarm {

// Thread-safe. Tasks start in the order of the calls.
class Executor {
 public:
  // At most `most_waiting` tasks of TryRun wait for a thread.
  Executor(int threads, int most_waiting);
  // Runs all given tasks to the end.
  ~Executor();

  // False, without running the task, if too many tasks wait.
  bool TryRun(std::function<void()> task);
  // Ignores the limit: for tasks that finish what TryRun started.
  void Run(std::function<void()> task);

 private:
  void Loop();

  const size_t most_waiting_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_EXECUTOR_H_
