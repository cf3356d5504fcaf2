// Parallel loops and the thread pool of an artifact.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {
namespace {

using ir::DataType;
using ir::IntConst;

constexpr DataType kI64 = DataType::Int(64);
constexpr int64_t kRows = 1000;
constexpr int64_t kColumns = 3000;

// out[i] = sum over j of (tmp[j] = i + j), where tmp is private to an iteration
// and too large for the stack.
ir::PrimFuncPtr RowSums(ir::ForKind inner_kind = ir::ForKind::kSerial) {
  const auto out = ir::MakeBuffer("out", kI64, {kRows});
  const auto tmp = ir::MakeBuffer("tmp", kI64, {kColumns});
  const auto i = ir::MakeVar("i"), j = ir::MakeVar("j"), k = ir::MakeVar("k");
  const ir::Stmt body = ir::MakeAlloc(
      tmp, ir::MakeSeq({ir::MakeStore(out, {i}, IntConst(0)),
                        ir::MakeFor(j, IntConst(kColumns),
                                    ir::MakeStore(tmp, {j}, ir::Expr(i) + j),
                                    inner_kind),
                        ir::MakeFor(k, IntConst(kColumns),
                                    ir::MakeStore(out, {i},
                                                  ir::Load(out, {i}) +
                                                      ir::Load(tmp, {k})))}));
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {out};
  function->body =
      ir::MakeFor(i, IntConst(kRows), body, ir::ForKind::kParallel);
  return function;
}

std::vector<int64_t> Expected() {
  std::vector<int64_t> sums(kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    sums[i] = i * kColumns + kColumns * (kColumns - 1) / 2;
  }
  return sums;
}

Options Cores(int cores) {
  Options options;
  options.target = *target::Parse("host,cores=" + std::to_string(cores));
  return options;
}

int ThreadCount() {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    (void)entry;
    ++count;
  }
  return count;
}

TEST(Parallel, ManyCallsGiveTheSerialResult) {
  const auto kernel = Kernel::Build(RowSums(), Cores(8));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<int64_t> got(kRows, -1);
    ASSERT_EQ(kernel->Call("kernel", got.data()), 0);
    ASSERT_EQ(got, Expected());
  }
}

TEST(Parallel, NestedParallelLoopsRunSerially) {
  const auto kernel = Kernel::Build(RowSums(ir::ForKind::kParallel), Cores(4));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<int64_t> got(kRows, -1);
  ASSERT_EQ(kernel->Call("kernel", got.data()), 0);
  EXPECT_EQ(got, Expected());
}

TEST(Parallel, PoolIsLazyAndJoinedOnUnload) {
  const int before = ThreadCount();
  {
    const auto kernel = Kernel::Build(RowSums(), Cores(2));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(ThreadCount(), before);
    std::vector<int64_t> got(kRows);
    ASSERT_EQ(kernel->Call("kernel", got.data()), 0);
    EXPECT_LE(ThreadCount(), before + 1);
  }
  // The kernel's list of threads may lag behind the join.
  for (int wait = 0; wait < 1000 && ThreadCount() > before; ++wait) {
    usleep(1000);
  }
  EXPECT_EQ(ThreadCount(), before);
}

// Unloads the artifact right after a loop that its threads have hardly noticed.
// Runs in a child, so that a thread that waits forever is a failure instead of
// an endless test.
TEST(Parallel, ThreadsThatWakeUpLateEndOnUnload) {
  const auto out = ir::MakeBuffer("out", kI64, {2});
  const auto i = ir::MakeVar("i");
  auto function = std::make_shared<ir::PrimFunc>();
  function->name = "kernel";
  function->params = {out};
  function->body = ir::MakeFor(i, IntConst(2), ir::MakeStore(out, {i}, i),
                               ir::ForKind::kParallel);
  const std::vector<LoweredFunction> functions = {{function, "kernel"}};
  const auto object = EmitObject(functions, Cores(8));
  ASSERT_TRUE(object.ok()) << object.status();
  const auto bytes = LinkSharedObject({&*object, 1}, Cores(8).target);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int repeat = 0; repeat < 8000; ++repeat) {
      const auto kernel = Kernel::Load(*bytes);
      std::vector<int64_t> got(2, -1);
      if (!kernel.ok() || kernel->Call("kernel", got.data()) != 0 ||
          got != std::vector<int64_t>{0, 1}) {
        _exit(1);
      }
      // 0 to 120 us, as long as a thread takes to start.
      const auto begin = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - begin <
             std::chrono::nanoseconds(repeat % 1000 * 120)) {
      }
    }
    _exit(0);
  }
  int status = 0, waited = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (++waited == 60'000) kill(child, SIGKILL);
    usleep(1000);
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

std::set<int> CpusOf(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::set<int> cpus;
  if (sched_getaffinity(thread, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  }
  return cpus;
}

// The cpus of each other thread once all of them sleep: one each.
std::vector<std::set<int>> HomesOfSleepers() {
  std::vector<std::set<int>> homes;
  size_t bound = 0;
  for (int wait = 0; wait < 10000 && (homes.empty() || bound < homes.size());
       ++wait) {
    usleep(1000);
    homes.clear();
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/self/task")) {
      const pid_t thread = std::stoi(entry.path().filename());
      if (thread != gettid()) homes.push_back(CpusOf(thread));
    }
    bound = std::count_if(homes.begin(), homes.end(),
                          [](const auto& home) { return home.size() == 1; });
  }
  EXPECT_EQ(bound, homes.size());
  return homes;
}

// While asleep, each worker is bound to a cpu of its own; the caller and awake
// workers are not bound.
TEST(Parallel, WorkersSleepOnCpusOfTheirOwn) {
  const std::set<int> all = CpusOf(0);
  if (all.size() < 2) GTEST_SKIP() << "one core";
  const auto kernel = Kernel::Build(RowSums(), Cores(8));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<int64_t> got(kRows, -1);
    ASSERT_EQ(kernel->Call("kernel", got.data()), 0);
    ASSERT_EQ(got, Expected());
    EXPECT_EQ(CpusOf(0), all);
    std::vector<std::set<int>> homes = HomesOfSleepers();
    EXPECT_EQ(homes.size(), std::min<size_t>(8, all.size()) - 1);
    std::sort(homes.begin(), homes.end());
    EXPECT_EQ(std::adjacent_find(homes.begin(), homes.end()), homes.end());
  }
}

TEST(Parallel, EnvironmentLimitsThreads) {
  const int before = ThreadCount();
  setenv("TILEFARM_NUM_THREADS", "1", 1);
  const auto kernel = Kernel::Build(RowSums(), Cores(64));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<int64_t> got(kRows);
  EXPECT_EQ(kernel->Call("kernel", got.data()), 0);
  unsetenv("TILEFARM_NUM_THREADS");
  EXPECT_EQ(ThreadCount(), before);
  EXPECT_EQ(got, Expected());
}

TEST(Parallel, OneCoreHasNoPoolAtAll) {
  const std::vector<LoweredFunction> functions = {{RowSums(), "kernel"}};
  const auto text = EmitLlvmIr(functions, Cores(1), /*optimized=*/true);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::Not(testing::HasSubstr("pthread")));
}

TEST(Parallel, ConcurrentCallersAllGetTheirResult) {
  const auto kernel = Kernel::Build(RowSums(), Cores(4));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<std::thread> callers;
  std::vector<int> wrong(4, 0);
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<int64_t> got(kRows, -1);
        if (kernel->Call("kernel", got.data()) != 0 || got != Expected()) {
          ++wrong[caller];
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(Parallel, WorksInAForkedChildOfAUser) {
  const auto kernel = Kernel::Build(RowSums(), Cores(4));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<int64_t> got(kRows);
  ASSERT_EQ(kernel->Call("kernel", got.data()), 0);
  // A thread that starts or ends may hold locks of a sanitizer's allocator, for
  // which the child would wait forever.
  if (CpusOf(0).size() > 1) HomesOfSleepers();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<int64_t> mine(kRows, -1);
    const bool right =
        kernel->Call("kernel", mine.data()) == 0 && mine == Expected();
    dlclose(kernel->handle());
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace tilefarm::codegen
