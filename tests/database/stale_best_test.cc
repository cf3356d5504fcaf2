#include "database/stale_best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNow[] = "llvm-19.1.7+tf1";

Record Made(const std::string& id, double seconds,
            const std::string& fingerprint = "llvm-18") {
  Record record = MakeRecord(id, seconds);
  record.fingerprint = fingerprint;
  record.trace = "# " + id + "\n";
  return record;
}

std::vector<std::string> Taken(const std::vector<Record>& records,
                               size_t most = 10) {
  StaleBest best(kNow, most);
  for (const Record& record : records) best.Add(record);
  std::vector<std::string> ids;
  for (const Record& record : std::move(best).Take()) {
    ids.push_back(record.candidate_id);
  }
  return ids;
}

TEST(StaleBest, ThoseThatBeatThePresentCompiler) {
  const std::vector<Record> records = {Made("slow", 5e-3), Made("b", 2e-3),
                                       Made("now", 4e-3, kNow), Made("a", 1e-3),
                                       Made("equal", 4e-3)};
  EXPECT_THAT(Taken(records), ElementsAre("a", "b"));
  EXPECT_THAT(Taken(records, 1), ElementsAre("a"));
  EXPECT_THAT(Taken({Made("now", 9e-4, kNow), Made("a", 1e-3)}), IsEmpty());
  EXPECT_THAT(Taken({Made("a", 1e-3), Made("now", 9e-4, kNow)}), IsEmpty());
}

TEST(StaleBest, TasksAreApart) {
  Record target = Made("target", 3e-3);
  target.target = "x86-64:znver3,cores=1";
  Record model = Made("model", 3e-3);
  model.device_model = "another";
  Record workload = Made("workload", 3e-3);
  workload.workload_hash = std::string(64, '0');
  EXPECT_EQ(Taken({target, model, workload, Made("now", 1e-3, kNow)}, 1).size(),
            3u);
}

TEST(StaleBest, LaterMeasurementsCount) {
  Record slower = Made("slower", 1e-3);
  slower.remeasured = {Made("", 5e-3)};
  Record failed = Made("failed", 2e-3);
  failed.remeasured = {Made("", 1e-3)};
  failed.remeasured[0].status = Status::kRunError;
  EXPECT_THAT(Taken({slower, failed, Made("now", 3e-3, kNow)}),
              ElementsAre("failed"));
}

TEST(StaleBest, OneTraceIsMeasuredOnce) {
  Record again = Made("again", 1e-3, "llvm-17");
  Record first = Made("first", 2e-3);
  again.trace = first.trace;
  EXPECT_THAT(Taken({first, again, Made("b", 3e-3)}),
              ElementsAre("again", "b"));
  EXPECT_THAT(Taken({again, first, Made("b", 3e-3)}),
              ElementsAre("again", "b"));
}

TEST(StaleBest, OnlyWhatALookupMayUse) {
  std::vector<Record> records;
  const auto add = [&](const auto& change) {
    Record record = Made("c" + std::to_string(records.size()), 1e-3);
    change(record);
    records.push_back(std::move(record));
  };
  add([](Record& r) { r.status = Status::kWrongResult; });
  add([](Record& r) { r.verified = false; });
  add([](Record& r) { r.stopped_early = true; });
  add([](Record& r) { r.emulated = true; });
  add([](Record& r) { r.protocol.cold_cache = true; });
  add([](Record& r) {
    r.trace = "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  });
  EXPECT_THAT(Taken(records), IsEmpty());
}

}  // namespace
}  // namespace tilefarm::database
