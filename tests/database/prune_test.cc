#include "database/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/hash.h"
#include "database/sqlite.h"
#include "tests/database/lookup_fixture.h"

namespace tilefarm::database {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using PruneTest = LookupTest;

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(PruneTest, KeepsTheBestOfEachGroup) {
  std::vector<Record> records;
  for (int i = 0; i < 6; ++i) {
    records.push_back(Good("c" + std::to_string(i), 1e-3 * (6 - i)));
  }
  Record early = Good("early", 1e-4);
  early.stopped_early = true;
  Record other = Good("other", 9e-3);
  other.device_model = "another";
  Record stale = Good("stale", 9e-3);
  stale.fingerprint = "llvm-18";
  Record failed = Good("failed", 1e-3);
  failed.status = Status::kRunError;
  for (const Record& r : {early, other, stale, failed}) records.push_back(r);
  const std::string path = File("a.db", records);
  const auto facts = Prune(path, {.keep = 2, .dry_run = false});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->records, 10);
  EXPECT_EQ(facts->dropped_ok, 5);
  EXPECT_EQ(facts->dropped_failed, 0);
  EXPECT_THAT(Candidates(path),
              ElementsAre("c4", "c5", "other", "stale", "failed"));
}

TEST_F(PruneTest, ADryRunChangesNothing) {
  const std::string path =
      File("a.db", {Good("a", 1e-3), Good("b", 2e-3), Good("c", 3e-3)});
  const std::string before = Bytes(path);
  // Also beside a writer.
  auto writer = Store::Open(path, Store::Mode::kReadWrite);
  ASSERT_TRUE(writer.ok());
  const auto facts = Prune(path, {.keep = 1});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->dropped_ok, 2);
  EXPECT_EQ(Prune(path, {.keep = 1, .dry_run = false}).status().code(),
            absl::StatusCode::kUnavailable);
  writer->reset();
  EXPECT_EQ(Bytes(path), before);
  EXPECT_EQ(Candidates(path).size(), 3u);
}

TEST_F(PruneTest, FailedOnesOfBeforeADate) {
  std::vector<Record> records;
  const auto add = [&](const std::string& id,
                       const std::string& at) -> Record& {
    Record& r = records.emplace_back(Good(id, 1e-3));
    r.recorded_at = at;
    return r;
  };
  add("old failure", "2026-01-30T23:59:59Z").status = Status::kCompileError;
  add("new failure", "2026-01-31T00:00:00Z").status = Status::kCompileError;
  add("old success", "2025-01-01T00:00:00Z");
  add("ruled out", "2025-01-01T00:00:00Z")
      .remeasured.push_back(MakeRecord("", 1e-3));
  records.back().remeasured[0].status = Status::kWrongResult;
  const std::string path = File("a.db", records);
  const auto facts =
      Prune(path, {.failed_before = "2026-01-31", .dry_run = false});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->dropped_failed, 2);
  EXPECT_THAT(Candidates(path), ElementsAre("new failure", "old success"));
  // The measurements of dropped records went with them.
  auto db = Connection::Open(path, Connection::Access::kReadOnly);
  ASSERT_TRUE(db.ok());
  EXPECT_EQ(*(*db)->QueryInt("SELECT count(*) FROM measurements"), 0);
}

TEST_F(PruneTest, WhatARuledOutRecordSaysIsKept) {
  Record ruled_out = Good("ruled out", 1e-4);
  ruled_out.remeasured.push_back(MakeRecord("", 1e-4));
  ruled_out.remeasured[0].status = Status::kWrongResult;
  const std::string path =
      File("a.db", {ruled_out, Good("a", 1e-3), Good("b", 2e-3)});
  ASSERT_TRUE(Prune(path, {.keep = 1, .dry_run = false}).ok());
  EXPECT_THAT(Candidates(path), UnorderedElementsAre("ruled out", "a"));
}

TEST_F(PruneTest, CompactingGivesSpaceBack) {
  std::vector<Record> records;
  for (int i = 0; i < 2000; ++i) {
    records.push_back(Good(Sha256Hex(std::to_string(i)), 1e-3 + 1e-6 * i));
  }
  const std::string path = File("a.db", records);
  const auto facts =
      Prune(path, {.keep = 5, .dry_run = false, .compact = true});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(Candidates(path).size(), 5u);
  EXPECT_LT(facts->bytes_after, facts->bytes_before / 3);
  EXPECT_EQ(facts->bytes_after, static_cast<int64_t>(fs::file_size(path)));
}

TEST_F(PruneTest, BadRequestsAreRefused) {
  const std::string path = File("a.db", {Good("a", 1e-3)});
  EXPECT_EQ(Prune(path, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Prune(path, {.keep = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const char* date : {"yesterday", "2026-13-01", "2026-01-01T00:00"}) {
    const auto facts = Prune(path, {.failed_before = date});
    EXPECT_EQ(facts.status().code(), absl::StatusCode::kInvalidArgument)
        << date;
    EXPECT_THAT(std::string(facts.status().message()), HasSubstr(date));
  }
  const std::string none = folder_.File("none.db");
  EXPECT_EQ(Prune(none, {.keep = 1, .dry_run = false}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(none));
  std::ofstream(folder_.File("text.db")) << std::string(5000, 'x');
  EXPECT_EQ(Prune(folder_.File("text.db"), {.keep = 1, .dry_run = false})
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
}

// Whatever is asked of a pruned database, the answer is as before, for each
// device model.
TEST_F(PruneTest, LookupsFindTheSameRecords) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 engine(seed);
    const auto below = [&](uint64_t n) { return engine() % n; };
    std::vector<Record> records;
    for (int i = 0; i < 60; ++i) {
      Record r = Good("c" + std::to_string(i),
                      1e-3 * (1 + 0.004 * static_cast<double>(below(8))));
      r.ci_high_seconds = r.median_seconds * 1.002;
      if (below(3) == 0) {
        r.target = target::Parse("x86-64:znver4,cores=8")->Key();
      }
      if (below(3) == 0) r.fingerprint = "llvm-18";
      if (below(6) == 0) r.emulated = true;
      if (below(6) == 0) r.stopped_early = true;
      if (below(6) == 0) r.protocol.cold_cache = true;
      if (below(2) == 0) r.trace += "sch.unroll(loop=l4)\n";
      if (below(5) == 0) {
        r.trace += "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
      }
      if (below(3) == 0) {
        Record again =
            MakeRecord("", 1e-3 * (1 + 0.004 * static_cast<double>(below(8))));
        again.protocol = r.protocol;
        again.emulated = r.emulated;
        again.job_id = "race";
        if (below(6) == 0) again.status = Status::kWrongResult;
        r.remeasured.push_back(again);
      }
      records.push_back(r);
    }
    const std::string path = File("p" + std::to_string(seed), records);
    const auto answers = [&] {
      const auto store = Reader(path);
      std::string all;
      for (int flags = 0; flags < 32; ++flags) {
        BestQuery query = query_;
        if ((flags & 1) != 0) {
          query.target = *target::Parse("x86-64:znver4,cores=8");
        }
        query.allow_stale = (flags & 2) != 0;
        query.allow_library = (flags & 4) != 0;
        query.allow_emulated = (flags & 8) != 0;
        if ((flags & 16) != 0) {
          query.keeps_floats = [](const std::string&, const std::string& t) {
            return t.find("unroll") == t.npos;
          };
        }
        const auto best = store->FindBest(query);
        all += (best.ok() ? best->record.candidate_id
                          : std::string(absl::StatusCodeToString(
                                best.status().code()))) +
               "\n";
      }
      return all;
    };
    const std::string before = answers();
    const auto facts = Prune(path, {.keep = 1, .dry_run = false});
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_GT(facts->dropped_ok, 10);
    EXPECT_EQ(answers(), before);
    // Nothing refers to a row that is gone, and no unused row is left.
    auto db = Connection::Open(path, Connection::Access::kReadOnly);
    ASSERT_TRUE(db.ok());
    EXPECT_EQ(*(*db)->QueryInt("SELECT count(*) FROM pragma_foreign_key_check"),
              0);
    EXPECT_EQ(*(*db)->QueryInt("SELECT count(*) FROM series WHERE id NOT IN "
                               "(SELECT series_id FROM stored_records)"),
              0);
  }
}

}  // namespace
}  // namespace tilefarm::database
