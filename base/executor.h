// A few threads that do what must not be done where it came up: on a thread of
// gRPC's, say, which serves every stream.
#ifndef TILEFARM_BASE_EXECUTOR_H_
#define TILEFARM_BASE_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace tilefarm {

// Thread-safe. Tasks start in the order in which they were given.
class Executor {
 public:
  // At most `most_waiting` tasks of TryRun wait for a thread.
  Executor(int threads, int most_waiting);
  // Runs everything that was given to the end.
  ~Executor();

  // False where too many tasks wait: it is not run.
  bool TryRun(std::function<void()> task);
  // Whatever waits: for tasks that end what TryRun began.
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
