// Merging and comparing databases.
#include "database/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "database/diff.h"
#include "tests/database/lookup_fixture.h"

namespace tilefarm::database {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using MergeTest = LookupTest;

TEST_F(MergeTest, TheNewFileHasTheRecordsOfAll) {
  const std::string a = File("a.db", {Good("a", 1e-3), Good("both", 2e-3)});
  const std::string b = File("b.db", {Good("both", 5e-3), Good("b", 3e-3)});
  const auto facts = Merge({a, b}, folder_.File("out.db"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->added, 3);
  EXPECT_EQ(facts->known, 1);
  EXPECT_EQ(facts->other_model, 0);
  EXPECT_THAT(Candidates(folder_.File("out.db")),
              ElementsAre("a", "both", "b"));
  // The first source's record is kept.
  const auto records =
      Reader(folder_.File("out.db"))
          ->FindRecords(Good("both", 1).workload_hash, query_.target.Key());
  ASSERT_TRUE(records.ok());
  EXPECT_EQ((*records)[1].median_seconds, 2e-3);
  EXPECT_EQ(Reader(folder_.File("out.db"))->FindBest(query_)->record.program,
            std::string(kProgram));
}

TEST_F(MergeTest, AnExistingFileKeepsItsRecordsAndGetsNewMeasurements) {
  const std::string out = File("out.db", {Good("both", 2e-3)});
  Record measured = Good("both", 5e-3);
  measured.remeasured.push_back(MakeRecord("", 1e-3));
  measured.remeasured[0].job_id = "later";
  const std::string a = File("a.db", {measured});
  for (int time = 0; time < 2; ++time) {
    const auto facts = Merge({a}, out);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->added, 0);
    EXPECT_EQ(facts->known, 1);
    EXPECT_EQ(Reader(out)->FindMeasurements(1)->size(), 1u);
    EXPECT_EQ(Reader(out)->FindBest(query_)->record.median_seconds, 1e-3);
  }
}

TEST_F(MergeTest, CountsCandidatesOfAnotherDeviceModel) {
  Record elsewhere = Good("both", 2e-3);
  elsewhere.device_model = "another";
  const std::string a = File("a.db", {Good("both", 1e-3)});
  const std::string b = File("b.db", {elsewhere});
  EXPECT_EQ(Merge({a, b}, folder_.File("out.db"))->other_model, 1);
}

TEST_F(MergeTest, WhereItFailsANewFileIsRemoved) {
  const std::string a = File("a.db", {Good("a", 1e-3)});
  const std::string out = folder_.File("out.db");
  const auto missing = Merge({a, folder_.File("none.db")}, out);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none.db"));
  EXPECT_FALSE(fs::exists(out));
  // A source that is damaged far into the file.
  std::vector<Record> many;
  for (int i = 0; i < 2000; ++i) {
    many.push_back(Good("c" + std::to_string(i), 1e-3));
  }
  const std::string b = File("b.db", many);
  {
    std::fstream file(b, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(b) / 2));
    file << std::string(40000, 'x');
  }
  const auto damaged = Merge({a, b}, out);
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss)
      << damaged.status();
  EXPECT_THAT(std::string(damaged.status().message()), HasSubstr(b));
  for (const char* part : {"", "-wal", "-shm", ".lock"}) {
    EXPECT_FALSE(fs::exists(out + part)) << part;
  }
}

TEST_F(MergeTest, TheOutputIsNoSource) {
  const std::string a = File("a.db", {Good("a", 1e-3)});
  const auto facts = Merge({a}, folder_.path() + "/./a.db");
  EXPECT_EQ(facts.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Candidates(a), ElementsAre("a"));
}

TEST_F(MergeTest, AnOutputThatIsOpenElsewhereIsLeftAlone) {
  const std::string a = File("a.db", {Good("a", 1e-3)});
  const std::string out = folder_.File("out.db");
  auto writer = Store::Open(out, Store::Mode::kReadWrite);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(Merge({a}, out).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(fs::exists(out));
}

// --- Differences -----------------------------------------------------------

class DiffTest : public LookupTest {
 protected:
  // "TARGET'S CPU: DIFFERENCE RATIO" of each entry.
  std::vector<std::string> Differences(const std::vector<Record>& a,
                                       const std::vector<Record>& b) {
    const int n = ++files_;
    const auto entries = Diff(*Reader(File("a" + std::to_string(n), a)),
                              *Reader(File("b" + std::to_string(n), b)));
    EXPECT_TRUE(entries.ok()) << entries.status();
    std::vector<std::string> out;
    for (const DiffEntry& entry : *entries) {
      out.push_back(target::ParseKey(entry.task.target)->cpu + ": " +
                    DifferenceName(entry.difference) + " " +
                    std::to_string(entry.ratio).substr(0, 4));
    }
    return out;
  }
  int files_ = 0;
};

TEST_F(DiffTest, ByWorkloadAndTarget) {
  Record v3 = Good("v3", 1e-3);
  v3.target = target::Parse("x86-64:x86-64-v3,cores=1")->Key();
  EXPECT_THAT(Differences({Good("a", 1e-3)}, {Good("a", 1e-3), v3}),
              ElementsAre("x86-64-v3: only_b 1.00", "znver4: same 1.00"));
  EXPECT_THAT(Differences({v3}, {}), ElementsAre("x86-64-v3: only_a 1.00"));
  EXPECT_THAT(Differences({Good("a", 3e-3)}, {Good("b", 1e-3)}),
              ElementsAre("znver4: faster_b 3.00"));
  EXPECT_THAT(Differences({Good("a", 1e-3)}, {Good("b", 1.5e-3)}),
              ElementsAre("znver4: faster_a 1.50"));
  EXPECT_THAT(Differences({Good("a", 1e-3)}, {Good("b", 1e-3)}),
              ElementsAre("znver4: equal 1.00"));
}

TEST_F(DiffTest, TimesOfOtherDevicesAreNotCompared) {
  Record elsewhere = Good("b", 1e-4);
  elsewhere.device_model = "another";
  EXPECT_THAT(Differences({Good("a", 1e-3)}, {elsewhere}),
              ElementsAre("znver4: incomparable 1.00"));
  Record cold = Good("b", 1e-4);
  cold.protocol.cold_cache = true;
  EXPECT_THAT(Differences({Good("a", 1e-3)}, {cold}),
              ElementsAre("znver4: incomparable 1.00"));
}

TEST_F(DiffTest, RecordsThatAreNeverTheBestDoNotCount) {
  Record bad = Good("bad", 1e-4);
  bad.verified = false;
  EXPECT_THAT(Differences({bad}, {bad}), ElementsAre());
  EXPECT_THAT(Differences({bad}, {Good("b", 1e-3)}),
              ElementsAre("znver4: only_b 1.00"));
  // Those of another compiler do.
  Record stale = Good("stale", 1e-3);
  stale.fingerprint = "llvm-18";
  EXPECT_THAT(Differences({stale}, {}), ElementsAre("znver4: only_a 1.00"));
}

}  // namespace
}  // namespace tilefarm::database
