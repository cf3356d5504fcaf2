#include "server/jobs/similar_tasks.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "compiler/ir/parser.h"
#include "tests/server/jobs_fixture.h"

namespace tilefarm::jobs {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeWorker;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string Function(const std::string& name, int extent, const char* value) {
  return absl::StrCat("    @T.prim_func\n    def ", name, "(A: T.Buffer((",
                      extent, ",), \"float32\"), C: T.Buffer((", extent,
                      ",), \"float32\")):\n        for i in range(", extent,
                      "):\n            with T.block(\"C\"):\n"
                      "                v = T.axis.spatial(",
                      extent, ", i)\n                C[v] = ", value, "\n\n");
}
constexpr char kAddOne[] = "A[v] + T.float32(1)";
constexpr char kMax[] = "T.max(A[v], T.float32(0))";

std::string Module(const std::vector<std::string>& functions) {
  std::string text =
      "from tvm.script import ir as I\nfrom tvm.script import tir as T\n\n"
      "@I.ir_module\nclass Module:\n";
  for (const std::string& function : functions) text += function;
  return text;
}

// What searches were told: "task <- source: trace".
class Notes {
 public:
  void Add(std::string note) {
    MutexLock lock(mutex_);
    notes_.push_back(std::move(note));
  }
  std::vector<std::string> Get() {
    MutexLock lock(mutex_);
    return notes_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> notes_;
};

class NotingSearch : public testing::FakeSearch {
 public:
  NotingSearch(const SearchRequest& request, Notes& notes)
      : FakeSearch(request, 1'000'000), task_(request.task_id), notes_(notes) {}
  void Suggest(const std::string& source, const std::string& trace) override {
    notes_.Add(absl::StrCat(task_, " <- ", source, ": ", trace));
  }

 private:
  const std::string task_;
  Notes& notes_;
};

class SimilarTasksTest : public JobsTest {
 protected:
  SimilarTasksTest() {
    SearchFactory factory = testing::FakeSearchFactory();
    factory.make_search = [this](const SearchRequest& request) {
      return std::make_unique<NotingSearch>(request, notes_);
    };
    Restart(std::move(factory));
  }
  // The job's spec with its tasks, once it has ended.
  JobSpec Tune(const std::vector<std::string>& functions, int64_t trials) {
    JobSpec spec = Spec(trials);
    spec.program = Module(functions);
    EXPECT_EQ(WaitForEnd(*jobs_->Submit(spec)).state, JobState::kDone);
    EXPECT_TRUE(ResolveJob(*store_, spec).ok());
    return spec;
  }

  Notes notes_;
};

TEST_F(SimilarTasksTest, TheNearestOfTheKindAreFoundFirst) {
  FakeWorker worker(*farm_, "w", Quick);
  const JobSpec spec =
      Tune({Function("a", 64, kAddOne), Function("b", 1024, kAddOne),
            Function("c", 96, kAddOne), Function("d", 64, kMax)},
           40);
  std::vector<std::string> hashes;
  for (const TaskSpec& task : spec.tasks) hashes.push_back(task.workload_hash);
  const ProgramKind kind = KindOf(
      **ir::ParseFunction(Module({Function("main", 80, kAddOne)}).c_str()));
  const auto similar =
      SimilarTasks::Read(*store_, spec.targets[0].key, {&kind});
  ASSERT_TRUE(similar.ok()) << similar.status();
  EXPECT_THAT(similar->Find(kind, "", 10),
              ElementsAre(hashes[2], hashes[0], hashes[1]));
  EXPECT_THAT(similar->Find(kind, "", 1), ElementsAre(hashes[2]));
  EXPECT_THAT(similar->Find(kind, hashes[2], 10),
              ElementsAre(hashes[0], hashes[1]));
  const auto elsewhere = SimilarTasks::Read(*store_, "aarch64", {&kind});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_THAT(elsewhere->Find(kind, "", 10), IsEmpty());
}

// Sums of rows, with `value` of each behind them.
std::string Sums(int rows, int terms, const char* value) {
  return absl::StrCat(
      "@T.prim_func\ndef main(A: T.Buffer((", rows, ", ", terms,
      "), \"float32\"), B: T.Buffer((", rows,
      ",), \"float32\")):\n    S = T.alloc_buffer((", rows,
      ",), \"float32\")\n    for i, k in T.grid(", rows, ", ", terms,
      "):\n        with T.block(\"S\"):\n"
      "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
      "            with T.init():\n                S[vi] = T.float32(0)\n"
      "            S[vi] = S[vi] + A[vi, vk]\n    for i in range(",
      rows,
      "):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(",
      rows, ", i)\n            B[vi] = ", value, "\n");
}

TEST(ProgramKindTest, IsThatOfTheReductions) {
  const auto kind = [](const std::string& text) {
    return KindOf(**ir::ParseFunction(text));
  };
  const ProgramKind halves = kind(Sums(8, 64, "S[vi] * T.float32(0.5)"));
  const ProgramKind positive = kind(Sums(8, 64, "T.max(S[vi], T.float32(0))"));
  EXPECT_EQ(halves.text, positive.text);
  EXPECT_EQ(halves.numbers, positive.numbers);
  EXPECT_NE(halves.whole, positive.whole);
  const ProgramKind longer = kind(Sums(8, 128, "S[vi] * T.float32(0.5)"));
  EXPECT_EQ(halves.whole, longer.whole);
  EXPECT_NE(halves.numbers, longer.numbers);
  // Without reductions, the whole counts.
  EXPECT_NE(kind(Module({Function("main", 8, kAddOne)})).text,
            kind(Module({Function("main", 8, kMax)})).text);
}

TEST_F(SimilarTasksTest, RecordsOfEarlierJobsAreSuggested) {
  FakeWorker worker(*farm_, "w", Quick);
  const JobSpec before = Tune({Function("a", 64, kAddOne)}, 20);
  EXPECT_THAT(notes_.Get(), IsEmpty());
  const JobSpec now =
      Tune({Function("a", 128, kAddOne), Function("m", 64, kMax)}, 4);
  // The first candidate was the fastest.
  EXPECT_THAT(notes_.Get(),
              ElementsAre(absl::StrCat(TaskId(now.tasks[0]), " <- ",
                                       before.tasks[0].workload_hash,
                                       ": # candidate 0")));
}

TEST_F(SimilarTasksTest, ANewBestIsSuggestedToTasksOfTheKind) {
  // Each trial is faster than the one before.
  FakeWorker worker(*farm_, "w", [](const farm::Lease& lease) {
    return testing::Measured(1e-3 / static_cast<double>(lease.item.sequence));
  });
  const JobSpec spec =
      Tune({Function("a", 64, kAddOne), Function("b", 128, kAddOne),
            Function("m", 64, kMax)},
           60);
  const std::string a = absl::StrCat(TaskId(spec.tasks[1]), " <- ",
                                     spec.tasks[0].workload_hash, ": ");
  const std::string b = absl::StrCat(TaskId(spec.tasks[0]), " <- ",
                                     spec.tasks[1].workload_hash, ": ");
  EXPECT_THAT(notes_.Get(), Contains(StartsWith(a)));
  EXPECT_THAT(notes_.Get(), Contains(StartsWith(b)));
  EXPECT_THAT(notes_.Get(), Contains(a + "# candidate 3"));
  EXPECT_THAT(notes_.Get(), Each(Not(StartsWith(TaskId(spec.tasks[2])))));
}

}  // namespace
}  // namespace tilefarm::jobs
