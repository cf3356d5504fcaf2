#include "database/regression_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/hash.h"
#include "database/backup.h"
#include "database/migrations.h"
#include "database/sqlite.h"
#include "database/store.h"
#include "tests/database/test_records.h"
#include "tests/support/fake_clock.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kDay = absl::Hours(24);

class RegressionTablesTest : public ::testing::Test {
 protected:
  RegressionTablesTest()
      : store_(*Store::Open(path_, Store::Mode::kReadWrite, clock_)),
        tables_(store_->regression_tables()) {}

  static ArtifactRow Artifact(const std::string& bytes) {
    return {.sha256 = Sha256Hex(bytes),
            .target = "x86-64:znver4,cores=1",
            .symbols = {"f"},
            .stored_by = "ci"};
  }
  // Returns its SHA-256.
  std::string Put(const std::string& bytes,
                  const ArtifactRetention& retention = {}) {
    const ArtifactRow row = Artifact(bytes);
    const absl::Status put = tables_.PutArtifact(row, bytes, retention);
    EXPECT_TRUE(put.ok()) << put;
    return row.sha256;
  }
  bool Has(const std::string& sha256) {
    return tables_.FindArtifact(sha256).ok();
  }
  std::string Read(const std::string& sha256) {
    std::string bytes;
    for (int64_t part = 0;; ++part) {
      const auto read = tables_.ReadArtifactPart(sha256, part);
      if (absl::IsNotFound(read.status())) return bytes;
      EXPECT_TRUE(read.ok()) << read.status();
      EXPECT_LE(read->size(), kArtifactPartBytes);
      bytes.append(*read);
    }
  }
  static HistoryRow Point(const std::string& benchmark,
                          const std::string& commit,
                          const std::string& branch = "main") {
    return {.series = "s",
            .benchmark = benchmark,
            .device_class = "cpu",
            .branch = branch,
            .commit = commit,
            .at = "2026-01-02T03:04:05Z",
            .device = "w",
            .seconds = 1e-3,
            .low_seconds = 0.9e-3,
            .high_seconds = 1.1e-3,
            .program = "program",
            .trace = "trace of " + commit};
  }
  void Append(const std::string& request, const std::vector<HistoryRow>& rows) {
    EXPECT_EQ(tables_.AppendHistory(request, rows).value_or(-1),
              static_cast<int64_t>(rows.size()));
  }
  std::vector<std::string> Commits(const HistoryFilter& filter) {
    std::vector<std::string> commits;
    const absl::Status read =
        tables_.ReadHistory(filter, [&](const HistoryRow& row) {
          commits.push_back(row.commit);
          return true;
        });
    EXPECT_TRUE(read.ok()) << read;
    return commits;
  }

  tilefarm::testing::FakeClock clock_;
  TempFolder folder_;
  std::string path_ = folder_.File("tune.db");
  std::unique_ptr<Store> store_;
  RegressionTables& tables_;
};

TEST_F(RegressionTablesTest, AnArtifactIsReadInParts) {
  std::string bytes(5 * kArtifactPartBytes / 2, 'x');
  for (size_t i = 0; i < bytes.size(); i += 1000) bytes[i] = '\0';
  const std::string sha256 = Put(bytes);
  EXPECT_EQ(Read(sha256), bytes);
  const auto row = tables_.FindArtifact(sha256);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_THAT(row->symbols, ElementsAre("f"));
  EXPECT_EQ(row->stored_by, "ci");
  EXPECT_EQ(row->baseline_at, "");
}

TEST_F(RegressionTablesTest, AMissingArtifactIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(tables_.FindArtifact("none").status()));
  EXPECT_TRUE(absl::IsNotFound(tables_.ReadArtifactPart("none", 0).status()));
  const std::string sha256 = Put("bytes");
  EXPECT_TRUE(absl::IsNotFound(tables_.NoteCompared("none", sha256)));
  EXPECT_TRUE(absl::IsNotFound(tables_.NoteCompared(sha256, "none")));
  EXPECT_EQ(tables_.FindArtifact(sha256)->baseline_at, "");
}

TEST_F(RegressionTablesTest, TheSameBytesAreStoredOnceWithAllTheirSymbols) {
  const std::string sha256 = Put("bytes");
  ArtifactRow again = Artifact("bytes");
  again.symbols = {"g", "f"};
  ASSERT_TRUE(tables_.PutArtifact(again, "bytes", {}).ok());
  EXPECT_EQ(tables_.CountArtifacts()->count, 1);
  EXPECT_THAT(tables_.FindArtifact(sha256)->symbols, ElementsAre("f", "g"));
}

TEST_F(RegressionTablesTest, TheLongestUnusedArtifactsMakeRoom) {
  const ArtifactRetention retention{.most_bytes = 100};
  const std::string first = Put(std::string(40, 'a'), retention);
  clock_.Advance(absl::Minutes(1));
  const std::string second = Put(std::string(40, 'b'), retention);
  clock_.Advance(absl::Minutes(1));
  Put(std::string(40, 'a'), retention);  // used again
  const std::string third = Put(std::string(40, 'c'), retention);
  EXPECT_TRUE(Has(first));
  EXPECT_FALSE(Has(second));
  EXPECT_TRUE(Has(third));
  EXPECT_EQ(tables_.CountArtifacts()->bytes, 80);
}

TEST_F(RegressionTablesTest, BaselinesAreKeptAndNothingIsStoredBesideThem) {
  const ArtifactRetention retention{.most_bytes = 100};
  const std::string baseline = Put(std::string(80, 'a'), retention);
  const std::string candidate = Put(std::string(10, 'b'), retention);
  ASSERT_TRUE(tables_.NoteCompared(baseline, candidate).ok());
  clock_.Advance(100 * kDay);
  const std::string more(30, 'c');
  const absl::Status full =
      tables_.PutArtifact(Artifact(more), more, retention);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("--artifact-quota"));
  // A refusal deletes nothing.
  EXPECT_TRUE(Has(candidate));
  EXPECT_TRUE(Has(baseline));
  clock_.Advance(100 * kDay);
  ASSERT_TRUE(tables_.PutArtifact(Artifact(more), more, retention).ok());
  EXPECT_FALSE(Has(baseline));
}

TEST_F(RegressionTablesTest, ArtifactsOfTheNewestPointsAreKept) {
  const ArtifactRetention retention{.most_bytes = 100};
  const std::string older = Put(std::string(40, 'a'), retention);
  const std::string newest = Put(std::string(40, 'b'), retention);
  HistoryRow one = Point("conv", "c1"), two = Point("conv", "c2");
  one.at = two.at = "";
  one.artifact = older;
  two.artifact = newest;
  Append("r", {one, two});
  Put(std::string(40, 'c'), retention);
  EXPECT_FALSE(Has(older));
  EXPECT_TRUE(Has(newest));
}

TEST_F(RegressionTablesTest, OldArtifactsGoWhenNewOnesCome) {
  const std::string old = Put("old");
  clock_.Advance(31 * kDay);
  Put("new");
  EXPECT_FALSE(Has(old));
}

TEST_F(RegressionTablesTest, PointsComeBackAsTheyWere) {
  HistoryRow row = Point("conv", "c1");
  row.ratio = 1.05;
  row.ratio_low = 1.02;
  row.ratio_high = std::numeric_limits<double>::infinity();
  row.ratio_level = 0.99;
  row.clusters = 12;
  row.verdict = "slower";
  row.baseline_commit = "c0";
  row.canary_seconds = 1e-5;
  row.unsteady = true;
  row.artifact = "sha";
  row.symbol = "conv";
  row.spread = 0.25;
  row.target = "t";
  row.fingerprint = "llvm";
  row.user = "ann";
  row.workload = "hash";
  Append("r", {row});
  row.id = 1;
  std::vector<HistoryRow> read;
  const auto take = [&](const HistoryRow& one) {
    read.push_back(one);
    return true;
  };
  ASSERT_TRUE(tables_.ReadHistory({.texts = true}, take).ok());
  EXPECT_THAT(read, ElementsAre(row));
  read.clear();
  row.program = row.trace = "";
  ASSERT_TRUE(tables_.ReadHistory({}, take).ok());
  EXPECT_THAT(read, ElementsAre(row));
}

TEST_F(RegressionTablesTest, ARetryAddsNothing) {
  Append("r", {Point("conv", "c1")});
  EXPECT_EQ(
      tables_.AppendHistory("r", std::vector{Point("conv", "c1")}).value_or(-1),
      0);
  EXPECT_EQ(tables_.AppendHistory("", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Commits({}), ElementsAre("c1"));
}

TEST_F(RegressionTablesTest, FiltersHoldTogether) {
  Append("r1", {Point("conv", "c1"), Point("dense", "c1"),
                Point("conv", "c1", "feature")});
  Append("r2", {Point("conv", "c2")});
  Append("r3", {Point("conv", "c3"), Point("dense", "c3")});
  EXPECT_THAT(Commits({.benchmark = "conv", .branch = "main"}),
              ElementsAre("c1", "c2", "c3"));
  EXPECT_THAT(Commits({.benchmark = "conv", .branch = "main", .latest = 2}),
              ElementsAre("c2", "c3"));
  // The latest of each series.
  EXPECT_THAT(Commits({.latest = 1}), ElementsAre("c1", "c3", "c3"));
  EXPECT_THAT(Commits({.commit = "c2"}), ElementsAre("c2"));
  EXPECT_THAT(Commits({.series = "other"}), IsEmpty());
}

TEST_F(RegressionTablesTest, LongHistoriesAreReadInPages) {
  std::vector<HistoryRow> rows;
  for (int i = 0; i < 1201; ++i) {
    rows.push_back(Point("conv", std::to_string(i)));
  }
  Append("r", rows);
  const auto commits = Commits({});
  ASSERT_EQ(commits.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(commits[i], rows[i].commit);
  }
  EXPECT_EQ(Commits({.latest = 700}).size(), 700u);
  EXPECT_EQ(Commits({.latest = 700}).front(), "501");
}

TEST_F(RegressionTablesTest, AcknowledgementsNeedTheirPoint) {
  Append("r", {Point("conv", "c1")});
  AcknowledgementRow row{.series = "s",
                         .benchmark = "conv",
                         .branch = "main",
                         .commit = "c1",
                         .reason = "new rounding",
                         .user = "ann",
                         .at = "2026-01-02T03:04:05Z"};
  ASSERT_TRUE(tables_.Acknowledge(row).ok());
  EXPECT_THAT(*tables_.ListAcknowledgements({}), ElementsAre(row));
  EXPECT_THAT(*tables_.ListAcknowledgements({.device_class = "cpu"}),
              ElementsAre(row));
  EXPECT_THAT(*tables_.ListAcknowledgements({.benchmark = "dense"}), IsEmpty());
  row.commit = "c9";
  EXPECT_TRUE(absl::IsNotFound(tables_.Acknowledge(row)));
  row.commit = "c1";
  row.device_class = "gpu";
  EXPECT_TRUE(absl::IsNotFound(tables_.Acknowledge(row)));
}

TEST_F(RegressionTablesTest, HistoriesAreOnlyAddedTo) {
  Append("r", {Point("conv", "c1")});
  store_.reset();
  auto db = Connection::Open(path_, Connection::Access::kReadWriteCreate);
  ASSERT_TRUE(db.ok());
  EXPECT_FALSE((*db)->Execute("UPDATE regression_points SET seconds = 1").ok());
}

TEST_F(RegressionTablesTest, ABackupHasArtifactsAndHistories) {
  const std::string sha256 = Put("bytes");
  Append("r", {Point("conv", "c1")});
  const std::string copy = folder_.File("copy.db");
  ASSERT_TRUE(Backup(path_, copy).ok());
  auto read = Store::Open(copy, Store::Mode::kReadOnly);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE((*read)->regression_tables().FindArtifact(sha256).ok());
  EXPECT_EQ((*read)->regression_tables().PutArtifact({}, "", {}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RegressionTablesReaderTest, FilesOfOlderSchemasSaySo) {
  TempFolder folder;
  const std::string path = folder.File("old.db");
  {
    auto db = Connection::Open(path, Connection::Access::kReadWriteCreate);
    ASSERT_TRUE(db.ok());
    ASSERT_TRUE(Migrate(**db, Migrations().first(4)).ok());
    ASSERT_TRUE((*db)->Execute("INSERT INTO meta VALUES ('uuid', 'u')").ok());
  }
  auto store = Store::Open(path, Store::Mode::kReadOnly);
  ASSERT_TRUE(store.ok()) << store.status();
  RegressionTables& tables = (*store)->regression_tables();
  for (const absl::Status& status :
       {tables.FindArtifact("x").status(),
        tables.ReadHistory({}, [](const HistoryRow&) { return true; }),
        tables.ListAcknowledgements({}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("schema version 4"));
  }
}

}  // namespace
}  // namespace tilefarm::database
