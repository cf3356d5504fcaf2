// tf_model_options.threads and .spin_us: which threads an instance uses, and
// how long they stay awake.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiler/driver/compile_model.h"
#include "compiler/graph/passes.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/driver/model_library.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

constexpr int64_t kRows = 64;

constexpr char kParallelRows[] = R"t(
b0 = sch.get_block("T_matmul", func_name="matmul_0")
l1, l2, l3 = sch.get_loops(block=b0)
sch.parallel(loop=l1)
)t";

// y = x * x, by rows on as many threads as there are.
const std::string& Library() {
  static const auto* library = [] {
    graph::GraphBuilder builder(graph::Interpreted);
    const auto x = builder.Input("x", graph::F32({kRows, kRows}));
    const auto v = builder.Input("v", graph::F32({kRows, kRows}));
    const auto graph = *builder.Finish({graph::Matmul(builder, x, v)}, {"y"});
    const ModelKernels kernels = ExtractKernels(graph);
    const auto trace = schedule::Trace::Parse(kParallelRows);
    EXPECT_TRUE(trace.ok()) << trace.status();
    const auto scheduled = schedule::Replay(*trace, kernels.module);
    EXPECT_TRUE(scheduled.ok()) << scheduled.status();
    ModelOptions options;
    options.target = *target::Parse("host,cores=8");
    options.symbol = "net";
    auto artifact = CompileModel(graph, kernels, scheduled->module(), options);
    EXPECT_TRUE(artifact.ok()) << artifact.status();
    return new std::string(artifact->shared_object);
  }();
  return *library;
}

int Cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  return CPU_COUNT(&mask);
}

std::set<std::string> Threads() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    names.insert(entry.path().filename());
  }
  return names;
}

// Threads that end may still be among those of `before`.
std::vector<std::string> NewThreads(const std::set<std::string>& before) {
  std::vector<std::string> names;
  std::ranges::set_difference(Threads(), before, std::back_inserter(names));
  return names;
}

// How often the thread went to sleep.
int64_t Sleeps(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  std::string word;
  int64_t count = -1;
  while (status >> word) {
    if (word == "voluntary_ctxt_switches:") status >> count;
  }
  return count;
}

// An instance with these options.
class Instance {
 public:
  Instance(const Net& net, int32_t threads, int32_t spin_us) : net_(net) {
    const Options options = {sizeof(Options), nullptr, threads, spin_us};
    EXPECT_EQ(net.create(&options, &model_), 0) << net.error();
  }
  ~Instance() { net_.destroy(model_); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Whether x * x is right for an x whose elements all are `value`.
  bool Run(float value) const {
    const std::vector<float> x(kRows * kRows, value);
    std::vector<float> y(x.size(), -1);
    const void* in[] = {x.data(), x.data()};
    void* out[] = {y.data()};
    return net_.run(model_, in, out) == 0 &&
           y == std::vector<float>(y.size(), kRows * value * value);
  }

 private:
  const Net& net_;
  void* model_ = nullptr;
};

TEST(ModelThreads, OneThreadStartsNoOther) {
  const Net net(Library());
  const std::set<std::string> before = Threads();
  const Instance one(net, 1, 0);
  for (int repeat = 0; repeat < 20; ++repeat) ASSERT_TRUE(one.Run(2));
  EXPECT_THAT(NewThreads(before), testing::IsEmpty());
}

TEST(ModelThreads, ThePoolGrowsToTheWidestInstance) {
  const auto cpus = static_cast<size_t>(Cpus());
  const Net net(Library());
  const std::set<std::string> before = Threads();
  for (int threads : {2, 1, 3, 2}) {
    ASSERT_TRUE(Instance(net, threads, 0).Run(3));
  }
  EXPECT_EQ(NewThreads(before).size(), std::min<size_t>(cpus, 3) - 1);
  // More threads than the target has cores are no error.
  ASSERT_TRUE(Instance(net, 1024, 0).Run(3));
  ASSERT_TRUE(Instance(net, 0, 0).Run(3));
  EXPECT_EQ(NewThreads(before).size(), std::min<size_t>(cpus, 8) - 1);
}

TEST(ModelThreads, InstancesWithDifferentLimitsRunAtTheSameTime) {
  const Net net(Library());
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const Instance limited(net, caller, 10 * caller);
      const Instance unlimited(net, 0, 0);
      for (int repeat = 0; repeat < 200; ++repeat) {
        const auto value = static_cast<float>(caller + repeat % 3);
        if (!limited.Run(value) || !unlimited.Run(value)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// The limit ends with the run: another instance in the same thread has none.
TEST(ModelThreads, ALimitBelongsToItsInstance) {
  if (Cpus() < 2) GTEST_SKIP() << "one core";
  const Net net(Library());
  const std::set<std::string> before = Threads();
  const Instance one(net, 1, 0);
  const Instance all(net, 0, 0);
  ASSERT_TRUE(one.Run(1));
  EXPECT_THAT(NewThreads(before), testing::IsEmpty());
  ASSERT_TRUE(all.Run(1));
  EXPECT_THAT(NewThreads(before), testing::Not(testing::IsEmpty()));
}

TEST(ModelThreads, SpinningThreadsDoNotSleepBetweenRuns) {
  if (Cpus() < 2) GTEST_SKIP() << "one core";
  const Net net(Library());
  const std::set<std::string> before = Threads();
  const Instance awake(net, 2, 1'000'000);
  const Instance sleepy(net, 2, 1);
  ASSERT_TRUE(awake.Run(1));
  const std::vector<std::string> worker = NewThreads(before);
  ASSERT_EQ(worker.size(), 1u);
  const auto sleeps_of = [&](const Instance& instance, int runs) {
    const int64_t begin = Sleeps(worker[0]);
    for (int run = 0; run < runs; ++run) EXPECT_TRUE(instance.Run(1));
    return Sleeps(worker[0]) - begin;
  };
  // Runs take microseconds, so that only a machine that stands still for a
  // second lets the thread sleep.
  EXPECT_LE(sleeps_of(awake, 50), 5);
  int64_t sleeps = 0;
  for (int wait = 0; wait < 10'000 && sleeps <= 5; ++wait) {
    sleeps += sleeps_of(sleepy, 1);
    usleep(1000);
  }
  EXPECT_GT(sleeps, 5);
}

TEST(ModelThreads, RejectsNumbersOutOfRange) {
  const Net net(Library());
  for (int32_t threads : {-1, INT32_MIN, 1025, INT32_MAX}) {
    Options options = {sizeof(Options), nullptr, threads, 0};
    void* model = &options;
    EXPECT_NE(net.create(&options, &model), 0) << threads;
    EXPECT_EQ(model, nullptr);
    EXPECT_THAT(net.error(), HasSubstr("options.threads must be")) << threads;
  }
  for (int32_t spin_us : {-1, INT32_MIN, 1'000'001, INT32_MAX}) {
    Options options = {sizeof(Options), nullptr, 0, spin_us};
    void* model = &options;
    EXPECT_NE(net.create(&options, &model), 0) << spin_us;
    EXPECT_EQ(model, nullptr);
    EXPECT_THAT(net.error(), HasSubstr("options.spin_us must be")) << spin_us;
  }
}

}  // namespace
}  // namespace tilefarm::driver
