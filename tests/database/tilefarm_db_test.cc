#include "database/tilefarm_db.h"

#include <sys/wait.h>

#include <cstdio>
#include <string>
#include <utility>

#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTarget[] = "x86-64:znver4,cores=1";

std::string HashOf(const char* program) {
  const auto parsed = ir::ParseFunction(program);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return ir::WorkloadHash(**parsed);
}

// A database with two workloads: three records of one, the second best but
// failed, and one of the other.
class TilefarmDbTest : public ::testing::Test {
 protected:
  TilefarmDbTest() {
    auto store = Store::Open(path_, Store::Mode::kReadWrite);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    Add("slow", kProgram, 2e-3, Status::kOk);
    Add("wrong", kProgram, 1e-6, Status::kWrongResult);
    Add("fast", kProgram, 1e-3, Status::kOk);
    Add("other", kOtherProgram, 3e-3, Status::kOk);
    EXPECT_EQ(tilefarm_db_open(path_.c_str(), &db_, nullptr), TILEFARM_DB_OK);
  }
  ~TilefarmDbTest() override { tilefarm_db_close(db_); }

  void Add(const std::string& id, const char* program, double median,
           Status status) {
    Record record = MakeRecord(id, median);
    record.program = program;
    record.workload_hash = HashOf(program);
    record.target = target::Parse(kTarget)->Key();
    record.status = status;
    const auto added = store_->AddRecords(std::vector{record});
    EXPECT_TRUE(added.ok()) << added.status();
  }

  // The times of a cursor's records.
  std::vector<double> Drain(tilefarm_db_cursor* cursor) {
    std::vector<double> seconds;
    const tilefarm_db_record* record = nullptr;
    int code;
    while ((code = tilefarm_db_next(cursor, &record, nullptr)) ==
           TILEFARM_DB_OK) {
      seconds.push_back(record->median_seconds);
    }
    EXPECT_EQ(code, TILEFARM_DB_DONE);
    EXPECT_EQ(record, nullptr);
    EXPECT_EQ(tilefarm_db_next(cursor, &record, nullptr), TILEFARM_DB_DONE);
    tilefarm_db_cursor_close(cursor);
    return seconds;
  }

  TempFolder folder_;
  std::string path_ = folder_.File("tune.db");
  std::unique_ptr<Store> store_;  // stays open: readers work beside a writer
  tilefarm_db* db_ = nullptr;
};

TEST_F(TilefarmDbTest, FindsTheBestOfAProgram) {
  tilefarm_db_match match;
  char* error = nullptr;
  ASSERT_EQ(
      tilefarm_db_best(db_, kSameProgram, kTarget, nullptr, &match, &error),
      TILEFARM_DB_OK)
      << error;
  EXPECT_EQ(error, nullptr);
  EXPECT_STREQ(match.trace, kTrace);
  EXPECT_STREQ(match.program, kProgram);
  EXPECT_EQ(match.median_seconds, 1e-3);
  EXPECT_STREQ(match.reason,
               "same microarchitecture (znver4), stale (made by "
               "llvm-19.1.7+tf1)");
  tilefarm_db_match_free(&match);

  EXPECT_EQ(
      tilefarm_db_best(db_, kSameProgram, kTarget, "other", &match, &error),
      TILEFARM_DB_NOT_FOUND);
  EXPECT_NE(error, nullptr);
  tilefarm_db_free(error);
  EXPECT_EQ(
      tilefarm_db_best(db_, "no program", kTarget, nullptr, &match, nullptr),
      TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_best(db_, kProgram, "pdp-11", nullptr, &match, nullptr),
            TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_best(db_, nullptr, kTarget, nullptr, &match, nullptr),
            TILEFARM_DB_INVALID);
}

TEST_F(TilefarmDbTest, FindsTheBestOfAHash) {
  const std::string hash = HashOf(kProgram);
  tilefarm_db_match match;
  // The second time, the target is known already.
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(tilefarm_db_best_hash(db_, hash.c_str(), kTarget,
                                    "llvm-19.1.7+tf1", &match, nullptr),
              TILEFARM_DB_OK);
    EXPECT_STREQ(match.program, kProgram);
    EXPECT_STREQ(match.trace, kTrace);
    EXPECT_EQ(match.median_seconds, 1e-3);
    tilefarm_db_match_free(&match);
  }
  // What the server stores meanwhile counts.
  Add("faster", kProgram, 5e-4, Status::kOk);
  ASSERT_EQ(tilefarm_db_best_hash(db_, hash.c_str(), kTarget, nullptr, &match,
                                  nullptr),
            TILEFARM_DB_OK);
  EXPECT_EQ(match.median_seconds, 5e-4);
  tilefarm_db_match_free(&match);
}

TEST_F(TilefarmDbTest, AHashMustBeOneThatIsKnown) {
  tilefarm_db_match match;
  char* error = nullptr;
  const auto code = [&](const std::string& hash) {
    tilefarm_db_free(std::exchange(error, nullptr));
    return tilefarm_db_best_hash(db_, hash.c_str(), kTarget, nullptr, &match,
                                 &error);
  };
  EXPECT_EQ(code(std::string(64, '0')), TILEFARM_DB_NOT_FOUND);
  EXPECT_THAT(error, HasSubstr("000000000000"));
  EXPECT_EQ(code(""), TILEFARM_DB_INVALID);
  EXPECT_EQ(code(std::string(63, '0')), TILEFARM_DB_INVALID);
  EXPECT_EQ(code(std::string(64, 'A')), TILEFARM_DB_INVALID);
  EXPECT_THAT(error, HasSubstr("64 digits"));
  tilefarm_db_free(error);
  EXPECT_EQ(
      tilefarm_db_best_hash(db_, nullptr, kTarget, nullptr, &match, nullptr),
      TILEFARM_DB_INVALID);
}

TEST_F(TilefarmDbTest, WalksRecordsAndBestRecords) {
  tilefarm_db_cursor* cursor = nullptr;
  ASSERT_EQ(tilefarm_db_records(db_, nullptr, &cursor, nullptr),
            TILEFARM_DB_OK);
  EXPECT_THAT(Drain(cursor), ElementsAre(2e-3, 1e-6, 1e-3, 3e-3));
  ASSERT_EQ(
      tilefarm_db_records(db_, HashOf(kOtherProgram).c_str(), &cursor, nullptr),
      TILEFARM_DB_OK);
  EXPECT_THAT(Drain(cursor), ElementsAre(3e-3));
  ASSERT_EQ(
      tilefarm_db_records(db_, std::string(64, '0').c_str(), &cursor, nullptr),
      TILEFARM_DB_OK);
  EXPECT_THAT(Drain(cursor), ElementsAre());
  ASSERT_EQ(tilefarm_db_all_best(db_, "llvm-19.1.7+tf1", &cursor, nullptr),
            TILEFARM_DB_OK);
  EXPECT_THAT(Drain(cursor), ::testing::UnorderedElementsAre(1e-3, 3e-3));
  ASSERT_EQ(tilefarm_db_all_best(db_, "another", &cursor, nullptr),
            TILEFARM_DB_OK);
  EXPECT_THAT(Drain(cursor), ElementsAre());
}

TEST_F(TilefarmDbTest, WalksMoreRecordsThanAPage) {
  for (int i = 0; i < 600; ++i) {
    Add("c" + std::to_string(i), kProgram, 1e-3, Status::kOk);
  }
  tilefarm_db_cursor* cursor = nullptr;
  ASSERT_EQ(
      tilefarm_db_records(db_, HashOf(kProgram).c_str(), &cursor, nullptr),
      TILEFARM_DB_OK);
  EXPECT_EQ(Drain(cursor).size(), 603u);
}

TEST_F(TilefarmDbTest, BadArgumentsOfIterationAreReported) {
  tilefarm_db_cursor* cursor = nullptr;
  const tilefarm_db_record* record = nullptr;
  EXPECT_EQ(tilefarm_db_records(db_, "short", &cursor, nullptr),
            TILEFARM_DB_INVALID);
  EXPECT_EQ(cursor, nullptr);
  EXPECT_EQ(tilefarm_db_records(nullptr, nullptr, &cursor, nullptr),
            TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_all_best(db_, nullptr, nullptr, nullptr),
            TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_next(nullptr, &record, nullptr), TILEFARM_DB_INVALID);
  tilefarm_db_cursor_close(nullptr);
}

// Runs the C99 program, which links the shared library and nothing else.
std::pair<int, std::string> RunC(const std::string& arguments) {
  const std::string command =
      std::string(TILEFARM_READ_DATABASE) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c; (c = fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST_F(TilefarmDbTest, WorksFromC99) {
  const std::string hash = HashOf(kOtherProgram);
  EXPECT_EQ(
      RunC(path_ + " " + kTarget + " " + hash),
      std::make_pair(0,
                     "best x86-64:znver4,cores=1 0.003 same microarchitecture "
                     "(znver4), stale (made by llvm-19.1.7+tf1)\nrecord " +
                         hash.substr(0, 8) +
                         " x86-64:znver4,cores=1 box#0123 ok 0.003 1\n"));
  const auto [code, output] = RunC(path_ + " " + kTarget);
  EXPECT_EQ(code, 0) << output;
  EXPECT_THAT(output, HasSubstr("best " + hash.substr(0, 8)));
  const auto missing = RunC(folder_.File("none.db") + " " + kTarget);
  EXPECT_EQ(missing.first, TILEFARM_DB_NOT_FOUND) << missing.second;
  EXPECT_THAT(missing.second, HasSubstr("none.db"));
}

}  // namespace
}  // namespace tilefarm::database
