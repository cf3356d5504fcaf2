#include "database/tilefarm_db.h"

#include <string>

#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

extern "C" int TilefarmDbOpensMissingFileFromC(const char* path);

namespace tilefarm::database {
namespace {

constexpr char kTarget[] = "x86-64:znver4,cores=1";

TEST(TilefarmDb, AMissingFileIsNotFound) {
  TempFolder folder;
  EXPECT_EQ(TilefarmDbOpensMissingFileFromC(folder.File("none.db").c_str()),
            TILEFARM_DB_NOT_FOUND);
}

TEST(TilefarmDb, FindsTheBestTrace) {
  TempFolder folder;
  const std::string path = folder.File("tune.db");
  auto store = Store::Open(path, Store::Mode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto program = ir::ParseFunction(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  Record record = MakeRecord("c1");
  record.workload_hash = ir::WorkloadHash(**program);
  record.target = target::Parse(kTarget)->Key();
  ASSERT_TRUE((*store)->AddRecords(std::vector{record}).ok());

  tilefarm_db* db = nullptr;
  char* error = nullptr;
  ASSERT_EQ(tilefarm_db_open(path.c_str(), &db, &error), TILEFARM_DB_OK);
  EXPECT_EQ(error, nullptr);
  tilefarm_db_match match;
  ASSERT_EQ(
      tilefarm_db_best(db, kSameProgram, kTarget, nullptr, &match, &error),
      TILEFARM_DB_OK)
      << error;
  EXPECT_STREQ(match.trace, kTrace);
  EXPECT_STREQ(match.program, kProgram);
  EXPECT_EQ(match.median_seconds, 1e-3);
  EXPECT_NE(std::string(match.reason), "");
  tilefarm_db_match_free(&match);

  EXPECT_EQ(
      tilefarm_db_best(db, kSameProgram, kTarget, "other", &match, &error),
      TILEFARM_DB_NOT_FOUND);
  EXPECT_NE(error, nullptr);
  tilefarm_db_free(error);
  EXPECT_EQ(
      tilefarm_db_best(db, "no program", kTarget, nullptr, &match, nullptr),
      TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_best(db, kProgram, "pdp-11", nullptr, &match, nullptr),
            TILEFARM_DB_INVALID);
  EXPECT_EQ(tilefarm_db_best(db, nullptr, kTarget, nullptr, &match, nullptr),
            TILEFARM_DB_INVALID);
  tilefarm_db_close(db);
}

}  // namespace
}  // namespace tilefarm::database
