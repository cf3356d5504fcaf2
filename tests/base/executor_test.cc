#include "base/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/mutex.h"

namespace tilefarm {
namespace {

// A door at which tasks wait.
class Door {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  // Reports that a task waits here.
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (!open_) changed_.Wait(mutex_);
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mutex_);
    while (waiting_ < count) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ = false;
  int waiting_ = 0;
};

TEST(ExecutorTest, BoundsWhatWaitsAndRunsItInOrder) {
  Door door;
  std::vector<int> done;  // by the only thread
  {
    Executor executor(/*threads=*/1, /*most_waiting=*/2);
    ASSERT_TRUE(executor.TryRun([&] { door.Pass(); }));
    door.AwaitWaiting(1);
    EXPECT_TRUE(executor.TryRun([&] { done.push_back(1); }));
    EXPECT_TRUE(executor.TryRun([&] { done.push_back(2); }));
    EXPECT_FALSE(executor.TryRun([&] { done.push_back(0); }));
    executor.Run([&] { done.push_back(3); });
    EXPECT_TRUE(done.empty());
    door.Open();
  }
  EXPECT_THAT(done, testing::ElementsAre(1, 2, 3));
}

TEST(ExecutorTest, HasAsManyThreadsAsAskedFor) {
  Door door;
  Executor executor(/*threads=*/3, /*most_waiting=*/3);
  for (int i = 0; i < 3; ++i) executor.Run([&] { door.Pass(); });
  door.AwaitWaiting(3);
  door.Open();
}

}  // namespace
}  // namespace tilefarm
