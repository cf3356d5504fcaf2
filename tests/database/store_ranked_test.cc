// Lookups by stored ranks against lookups that compare all records, and schema
// 3 against schema 4.
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/hash.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/migrations.h"
#include "database/sqlite.h"
#include "database/store.h"
#include "database/trace_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

constexpr char kFingerprint[] = "llvm-19.1.7+tf1";

// Draws numbers below `n`, the same on every platform.
class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n));
  }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }

 private:
  std::mt19937_64 engine_;
};

Record RandomRecord(Draw& draw, int index, const std::string& hash) {
  // Few different times, so that there are ties.
  Record r =
      MakeRecord(draw.Below(3) == 0 ? "c" + std::to_string(index)
                                    : Sha256Hex("c" + std::to_string(index)),
                 1e-3 * (1 + 0.004 * static_cast<double>(draw.Below(8))));
  r.workload_hash = hash;
  r.ci_high_seconds = draw.Below(4) == 0
                          ? std::numeric_limits<double>::quiet_NaN()
                          : r.median_seconds * 1.002;
  r.target =
      target::Parse(draw.Of({"x86-64:znver4,cores=1", "x86-64:znver4,cores=8",
                             "x86-64:znver3,cores=1"}))
          ->Key();
  r.device = draw.Of({"box#0123", "box#4567"});
  r.device_model = draw.Of({"AMD EPYC 9R14; znver4", "another model"});
  r.fingerprint = draw.Of({kFingerprint, kFingerprint, "llvm-18+tf1"});
  r.job_id = draw.Of({"job-1", "job-2"});
  r.status = draw.Below(6) == 0 ? Status::kRunError : Status::kOk;
  r.verified = draw.Below(8) != 0;
  r.stopped_early = draw.Below(4) == 0;
  r.emulated = draw.Below(8) == 0;
  r.protocol.cold_cache = draw.Below(8) == 0;
  if (draw.Below(4) == 0) r.trace += "sch.unroll(loop=l4)\n";
  if (draw.Below(12) == 0) r.trace += "sch.tensorize(l5, \"dot\")\n";
  if (draw.Below(16) == 0) {
    r.trace += "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
  }
  for (int64_t i = draw.Below(3); i > 0; --i) {
    Record again =
        MakeRecord("", 1e-3 * (1 + 0.004 * static_cast<double>(draw.Below(8))));
    again.device = draw.Below(5) == 0 ? "elsewhere" : r.device;
    again.protocol = r.protocol;
    again.emulated = r.emulated;
    again.job_id = draw.Of({"", "race-1", "race-2"});
    again.status = draw.Below(8) == 0 ? Status::kWrongResult : Status::kOk;
    again.stopped_early = draw.Below(6) == 0;
    again.recorded_at = "2026-02-0" + std::to_string(i) + "T00:00:00Z";
    r.remeasured.push_back(again);
  }
  return r;
}

std::vector<BestQuery> Queries() {
  const auto program = ir::ParseFunction(kProgram);
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<BestQuery> queries;
  for (const char* target :
       {"x86-64:znver4,cores=1", "x86-64:znver4,cores=8",
        "x86-64:znver3,cores=1", "x86-64:znver5,cores=2"}) {
    for (int flags = 0; flags < 8; ++flags) {
      for (const char* model : {"", "AMD EPYC 9R14; znver4"}) {
        BestQuery query;
        query.program = *program;
        query.target = *target::Parse(target);
        query.device_model = model;
        query.fingerprint = kFingerprint;
        query.allow_stale = (flags & 1) != 0;
        query.allow_library = (flags & 2) != 0;
        query.allow_emulated = (flags & 4) != 0;
        queries.push_back(query);
      }
    }
  }
  return queries;
}

std::string AnswerOf(const absl::StatusOr<BestMatch>& best) {
  if (!best.ok()) return best.status().ToString();
  return RecordToJson(best->record) + "\n" + best->reason;
}

TEST(StoreRankedTest, AnswersAsComparingAllRecordsDoes) {
  const std::string hash = ir::WorkloadHash(**ir::ParseFunction(kProgram));
  int found = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    auto store = Store::Open(":memory:", Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    const int64_t count = draw.Of<int64_t>({1, 3, 10, 40});
    for (int i = 0; i < count; ++i) {
      const auto added =
          (*store)->AddRecords(std::vector{RandomRecord(draw, i, hash)});
      ASSERT_TRUE(added.ok()) << added.status();
    }
    // A later measurement changes a rank.
    Record later = MakeRecord("", 1e-3);
    later.device = "box#0123";
    ASSERT_TRUE((*store)->AddMeasurement(1, later).ok());
    for (BestQuery query : Queries()) {
      const auto ranked = (*store)->FindBest(query);
      query.examine_all = true;
      ASSERT_EQ(AnswerOf(ranked), AnswerOf((*store)->FindBest(query)))
          << "seed " << seed << ", target " << query.target.Key();
      query.examine_all = false;
      query.workload_hash = hash;
      query.program = nullptr;
      ASSERT_EQ(AnswerOf(ranked), AnswerOf((*store)->FindBest(query)))
          << "seed " << seed;
      if (ranked.ok()) ++found;
    }
  }
  EXPECT_GT(found, 100);
}

TEST(StoreRankedTest, AHashAloneMustNameOneProgram) {
  auto store = Store::Open(":memory:", Store::Mode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  Record record = MakeRecord("c1");
  record.workload_hash = ir::WorkloadHash(**ir::ParseFunction(kProgram));
  ASSERT_TRUE((*store)->AddRecords(std::vector{record}).ok());
  BestQuery query;
  query.target = *target::Parse("x86-64:znver4,cores=1");
  query.allow_stale = true;
  EXPECT_EQ((*store)->FindBest(query).status().code(),
            absl::StatusCode::kInvalidArgument);
  query.workload_hash = std::string(64, '0');
  EXPECT_EQ((*store)->FindBest(query).status().code(),
            absl::StatusCode::kNotFound);
  query.workload_hash = record.workload_hash;
  EXPECT_TRUE((*store)->FindBest(query).ok());
  query.program = *ir::ParseFunction(kProgram);
  EXPECT_EQ((*store)->FindBest(query).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Writes records as version 3 stored them.
void WriteVersion3(const std::string& path,
                   const std::vector<Record>& records) {
  auto opened = Connection::Open(path, Connection::Access::kReadWriteCreate);
  ASSERT_TRUE(opened.ok()) << opened.status();
  Connection& db = **opened;
  ASSERT_TRUE(Migrate(db, Migrations().first(3)).ok());
  ASSERT_TRUE(db.Execute("INSERT INTO meta VALUES ('uuid', 'u-1')").ok());
  const auto run = [&](const std::string& sql,
                       const std::vector<std::string>& texts) {
    auto statement = db.Prepare(sql);
    ASSERT_TRUE(statement.ok()) << statement.status();
    for (const std::string& text : texts) statement->Bind(text);
    ASSERT_TRUE(statement->Run().ok()) << sql;
  };
  const auto number = [](double value) {
    return std::isnan(value) ? std::string() : nlohmann::json(value).dump();
  };
  const auto measured = [&](const Record& r) {
    return std::vector<std::string>{r.device,
                                    std::string(StatusName(r.status)),
                                    number(r.median_seconds),
                                    number(r.ci_low_seconds),
                                    number(r.ci_high_seconds),
                                    nlohmann::json(r.seconds).dump(),
                                    r.verified ? "1" : "0",
                                    number(r.max_abs_error),
                                    number(r.max_rel_error),
                                    r.stopped_early ? "1" : "0",
                                    r.emulated ? "1" : "0",
                                    r.protocol.cold_cache ? "1" : "0",
                                    std::to_string(r.protocol.cores),
                                    r.protocol.layout,
                                    r.error,
                                    number(r.compile_seconds),
                                    r.isolation,
                                    r.device_state,
                                    r.fingerprint,
                                    r.code_digest,
                                    r.job_id,
                                    r.recorded_at};
  };
  const std::string columns =
      "device, status, median_seconds, ci_low_seconds, ci_high_seconds, "
      "seconds, verified, max_abs_error, max_rel_error, stopped_early, "
      "emulated, cold_cache, cores, layout, error, compile_seconds, "
      "isolation, device_state, fingerprint, code_digest, job_id, recorded_at";
  // A text without digits is NaN, which SQLite stores as NULL.
  const std::string places =
      "?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, nullif(?, ''), "
      "nullif(?, ''), ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?";
  const auto program = ir::ParseFunction(kProgram);
  ASSERT_TRUE(program.ok());
  run("INSERT INTO workloads VALUES (1, ?, ?)",
      {ir::WorkloadHash(**program), ir::Print(*ir::Canonicalize(**program))});
  run("INSERT INTO programs VALUES (1, 1, ?, ?)",
      {Sha256Hex(kProgram), kProgram});
  int64_t id = 0;
  for (const Record& r : records) {
    ++id;
    const SplitTrace split = SplitTraceText(r.trace);
    run("INSERT OR IGNORE INTO sketches(digest, text) VALUES (?, ?)",
        {Sha256Hex(split.sketch), split.sketch});
    run("INSERT OR IGNORE INTO devices(device, model) VALUES (?, ?)",
        {r.device, r.device_model});
    std::vector<std::string> texts = measured(r);
    texts.insert(texts.end(),
                 {r.candidate_id, r.workload_hash, r.target, r.model_score,
                  std::to_string(r.sequence), *split.decisions,
                  Sha256Hex(split.sketch), r.device, r.device_model});
    run("INSERT INTO records(" + columns +
            ", candidate_id, workload, target, model_score, sequence, "
            "decisions, workload_id, program_id, sketch_id, device_id) "
            "VALUES (" +
            places +
            ", ?, ?, ?, ?, ?, ?, 1, 1, "
            "(SELECT id FROM sketches WHERE digest = ?), "
            "(SELECT id FROM devices WHERE device = ? AND model = ?))",
        texts);
    for (const Record& again : r.remeasured) {
      run("INSERT INTO measurements(" + columns + ", record_id) VALUES (" +
              places + ", " + std::to_string(id) + ")",
          measured(again));
    }
  }
}

std::vector<std::string> Export(const Store& store) {
  std::vector<std::string> lines;
  const absl::Status status = store.ForEachRecord([&](const Record& record) {
    lines.push_back(RecordToJson(record));
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

std::vector<std::string> Answers(const Store& store) {
  std::vector<std::string> answers;
  for (const BestQuery& query : Queries()) {
    answers.push_back(AnswerOf(store.FindBest(query)));
  }
  return answers;
}

TEST(SeriesMigrationTest, KeepsRecordsMeasurementsAndAnswers) {
  TempFolder folder;
  const std::string path = folder.File("tune.db");
  Draw draw(7);
  const std::string hash = ir::WorkloadHash(**ir::ParseFunction(kProgram));
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) records.push_back(RandomRecord(draw, i, hash));
  ASSERT_NO_FATAL_FAILURE(WriteVersion3(path, records));

  // A reader of this release understands the file as it is.
  std::vector<std::string> lines, answers;
  {
    auto reader = Store::Open(path, Store::Mode::kReadOnly);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->schema_version(), 3);
    lines = Export(**reader);
    answers = Answers(**reader);
    EXPECT_EQ((*reader)->GetStats()->records, 60);
    EXPECT_EQ(*(*reader)->RecordOf(records[4].candidate_id), 5);
    EXPECT_EQ((*reader)->ListTasks()->size(), 3u);
    EXPECT_FALSE((*reader)->FindRecords(hash, records[0].target)->empty());
  }
  ASSERT_EQ(lines.size(), 60u);

  auto writer = Store::Open(path, Store::Mode::kReadWrite);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ((*writer)->schema_version(), SchemaVersion());
  EXPECT_EQ((*writer)->uuid(), "u-1");
  EXPECT_EQ(Export(**writer), lines);
  EXPECT_EQ(Answers(**writer), answers);
  EXPECT_EQ((*writer)->GetStats()->records, 60);
  EXPECT_EQ(*(*writer)->RecordOf(records[4].candidate_id), 5);
  EXPECT_EQ((*writer)->ListTasks()->size(), 3u);
  // Known candidates are found again, new ones get the next id.
  const auto added = (*writer)->AddRecords(
      std::vector{records[3], RandomRecord(draw, 100, hash)});
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(*added, (std::vector<bool>{false, true}));
  EXPECT_EQ(Export(**writer).size(), 61u);
}

// People who read the file with SQL see the columns of before.
TEST(SeriesMigrationTest, TheViewHasTheTextsOfPackedColumns) {
  TempFolder folder;
  const std::string path = folder.File("tune.db");
  Record record = MakeRecord(std::string(64, 'b'));
  record.seconds = {0.5, 1.784187719622104e-05, 3e6, 0x1p-60, 1.0 / 3};
  record.code_digest = std::string(64, 'c');
  {
    auto store = Store::Open(path, Store::Mode::kReadWrite);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->AddRecords(std::vector{record}).ok());
  }
  auto db = Connection::Open(path, Connection::Access::kReadOnly);
  ASSERT_TRUE(db.ok()) << db.status();
  auto query = (*db)->Prepare(
      "SELECT candidate_id, code_digest, workload, device, job_id, seconds "
      "FROM records");
  ASSERT_TRUE(query.ok()) << query.status();
  ASSERT_TRUE(query->Step().value_or(false));
  EXPECT_EQ(query->Text(0), record.candidate_id);
  EXPECT_EQ(query->Text(1), record.code_digest);
  EXPECT_EQ(query->Text(2), record.workload_hash);
  EXPECT_EQ(query->Text(3), record.device);
  EXPECT_EQ(query->Text(4), record.job_id);
  const auto json = nlohmann::json::parse(query->Text(5));
  ASSERT_EQ(json.size(), record.seconds.size());
  for (size_t i = 0; i < record.seconds.size(); ++i) {
    // SQL prints 15 digits.
    EXPECT_NEAR(json[i].get<double>() / record.seconds[i], 1, 1e-14);
  }
}

}  // namespace
}  // namespace tilefarm::database
