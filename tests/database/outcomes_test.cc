// The numbers of many records, as pages list and draw them.
#include "database/outcomes.h"

#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutcomesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::Open(":memory:", Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    Record first = MakeRecord("a", 2e-3);
    Record second = MakeRecord("b", 1e-3);
    second.job_id = "job-2";
    second.device = "rack#4567";
    second.device_state = R"({"unsteady":true})";
    Record third = MakeRecord("c", 0);
    third.status = Status::kRunError;
    third.verified = false;
    third.median_seconds = std::numeric_limits<double>::quiet_NaN();
    third.trace = "sch.enter_postproc()\n";
    third.workload_hash = std::string(64, 'b');
    third.program = kOtherProgram;
    ASSERT_TRUE(store_->AddRecords(std::vector{first, second, third}).ok());
  }
  std::vector<int64_t> Ids(const OutcomeFilter& filter) {
    std::vector<int64_t> ids;
    const auto rows = store_->ListOutcomes(filter);
    EXPECT_TRUE(rows.ok()) << rows.status();
    for (const OutcomeRow& row : *rows) ids.push_back(row.id);
    return ids;
  }

  std::unique_ptr<Store> store_;
};

TEST_F(OutcomesTest, HasTheNumbersOfTheRecords) {
  const auto rows = store_->ListOutcomes({});
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);
  const OutcomeRow& first = rows->front();
  EXPECT_EQ(first.id, 1);
  EXPECT_EQ(first.workload_hash, std::string(64, 'a'));
  EXPECT_EQ(first.target, "x86-64:znver4,cores=1");
  EXPECT_EQ(first.device, "box#0123");
  EXPECT_EQ(first.job_id, "job-1");
  EXPECT_EQ(first.fingerprint, "llvm-19.1.7+tf1");
  EXPECT_EQ(first.status, Status::kOk);
  EXPECT_EQ(first.median_seconds, 2e-3);
  EXPECT_EQ(first.ci_low_seconds, 2e-3 * 0.9);
  EXPECT_EQ(first.rank_seconds, 2e-3 * 1.25);
  EXPECT_EQ(first.compile_seconds, 0.04);
  EXPECT_TRUE(first.verified);
  EXPECT_FALSE(first.unsteady);
  EXPECT_FALSE(first.confirmed);
  EXPECT_EQ(first.sequence, 7);
  EXPECT_EQ(first.model_score, "0.75");
  EXPECT_EQ(first.recorded_at, "2026-01-02T03:04:05Z");
  EXPECT_TRUE((*rows)[1].unsteady);
  EXPECT_EQ((*rows)[1].sketch, first.sketch);
  // What was not timed is 0, and is never the best.
  EXPECT_EQ((*rows)[2].status, Status::kRunError);
  EXPECT_EQ((*rows)[2].median_seconds, 0);
  EXPECT_EQ((*rows)[2].rank_seconds, 0);
  EXPECT_NE((*rows)[2].sketch, first.sketch);
}

TEST_F(OutcomesTest, ARemeasurementIsTheRank) {
  Record again = MakeRecord("a", 3e-3);
  ASSERT_TRUE(store_->AddMeasurement(1, again).ok());
  const auto rows = store_->ListOutcomes({.limit = 1});
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE(rows->front().confirmed);
  EXPECT_EQ(rows->front().rank_seconds, 3e-3);
  EXPECT_EQ(rows->front().median_seconds, 2e-3);
}

TEST_F(OutcomesTest, FiltersHoldTogether) {
  EXPECT_THAT(Ids({}), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids({.job_id = "job-1"}), ElementsAre(1, 3));
  EXPECT_THAT(Ids({.job_id = "job-1", .status = "ok"}), ElementsAre(1));
  EXPECT_THAT(Ids({.workload_hash = std::string(64, 'a')}), ElementsAre(1, 2));
  EXPECT_THAT(Ids({.workload_prefix = "bb"}), ElementsAre(3));
  EXPECT_THAT(Ids({.workload_prefix = "%"}), IsEmpty());
  EXPECT_THAT(Ids({.device = "rack#4567"}), ElementsAre(2));
  EXPECT_THAT(Ids({.target = "cuda:sm_90"}), IsEmpty());
  EXPECT_THAT(Ids({.text = "T.float32(2)"}), ElementsAre(3));
}

TEST_F(OutcomesTest, PagesGoBothWays) {
  EXPECT_THAT(Ids({.limit = 2}), ElementsAre(1, 2));
  EXPECT_THAT(Ids({.after = 2}), ElementsAre(3));
  EXPECT_THAT(Ids({.reverse = true, .limit = 2}), ElementsAre(3, 2));
  EXPECT_THAT(Ids({.after = 2, .reverse = true}), ElementsAre(1));
  EXPECT_THAT(Ids({.job_id = "job-1", .after = 3, .reverse = true}),
              ElementsAre(1));
}

TEST_F(OutcomesTest, DecisionsAreReadWhereTheyAreAskedFor) {
  const auto without = store_->ListOutcomes({});
  const auto with = store_->ListOutcomes({.decisions = true});
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(without->front().decisions, "");
  EXPECT_EQ(with->front().decisions, "[4, 16];1");
  EXPECT_EQ((*with)[2].decisions, "");
  const auto sketch = store_->GetSketch(with->front().sketch);
  ASSERT_TRUE(sketch.ok()) << sketch.status();
  EXPECT_THAT(*sketch, ::testing::HasSubstr("factor=64, decision=?)"));
  EXPECT_TRUE(absl::IsNotFound(store_->GetSketch(99).status()));
}

TEST_F(OutcomesTest, TasksAreSummedUp) {
  const auto tasks = store_->ListTaskFigures();
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  ASSERT_EQ(tasks->size(), 2u);
  const TaskFigures& first = tasks->front();
  EXPECT_EQ(first.workload_hash, std::string(64, 'a'));
  EXPECT_EQ(first.target, "x86-64:znver4,cores=1");
  EXPECT_EQ(first.records, 2);
  EXPECT_EQ(first.ok, 2);
  EXPECT_EQ(first.best_seconds, 1e-3 * 1.25);
  EXPECT_EQ(first.recorded_at, "2026-01-02T03:04:05Z");
  EXPECT_EQ((*tasks)[1].ok, 0);
  EXPECT_EQ((*tasks)[1].best_seconds, 0);
}

TEST_F(OutcomesTest, WorkloadsOfATargetHaveTheirPrograms) {
  const auto of = [](const char* id, const char* program, const char* target) {
    Record record = MakeRecord(id, 1e-3);
    record.program = program;
    record.workload_hash = ir::WorkloadHash(**ir::ParseFunction(program));
    record.target = target;
    return record;
  };
  constexpr char kHere[] = "x86-64:znver4,cores=3";
  ASSERT_TRUE(store_
                  ->AddRecords(std::vector{
                      of("d", kProgram, kHere), of("e", kOtherProgram, kHere),
                      // Equal but for names: no workload of its own.
                      of("f", kSameProgram, kHere),
                      of("g", kOtherProgram, "x86-64:znver4,cores=2")})
                  .ok());
  std::map<std::string, std::string> workloads;
  const auto note = [&](const std::string& hash, const std::string& text) {
    EXPECT_TRUE(workloads.emplace(hash, text).second);
    return true;
  };
  ASSERT_TRUE(store_->ForEachWorkload(kHere, note).ok());
  std::map<std::string, std::string> expected;
  for (const char* program : {kProgram, kOtherProgram}) {
    const auto function = *ir::ParseFunction(program);
    expected[ir::WorkloadHash(*function)] =
        ir::Print(*ir::Canonicalize(*function));
  }
  EXPECT_EQ(workloads, expected);
  workloads.clear();
  ASSERT_TRUE(store_->ForEachWorkload("x86-64:znver5,cores=1", note).ok());
  EXPECT_THAT(workloads, IsEmpty());
  int visited = 0;
  const auto stop = [&](const std::string&, const std::string&) {
    ++visited;
    return false;
  };
  ASSERT_TRUE(store_->ForEachWorkload(kHere, stop).ok());
  EXPECT_EQ(visited, 1);
}

TEST_F(OutcomesTest, OneRecordHasItsMeasurements) {
  ASSERT_TRUE(store_->AddMeasurement(2, MakeRecord("b", 4e-3)).ok());
  const auto record = store_->GetRecord(2);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->candidate_id, "b");
  EXPECT_EQ(record->remeasured.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->GetRecord(4).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->GetRecord(-1).status()));
}

}  // namespace
}  // namespace tilefarm::database
