// Opening files: creation, locks, readers, versions, damage.
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <span>

#include "database/migrations.h"
#include "database/sqlite.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

using Mode = Store::Mode;
using ::testing::HasSubstr;

class StoreOpenTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> MustOpen(Mode mode) {
    auto store = Store::Open(path_, mode);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  absl::StatusCode CodeOfOpen(Mode mode) {
    return Store::Open(path_, mode).status().code();
  }
  void Sql(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr),
              SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
  std::string SqlText(const std::string& sql) {
    auto connection = Connection::Open(path_, Connection::Access::kReadOnly);
    EXPECT_TRUE(connection.ok()) << connection.status();
    auto query = (*connection)->Prepare(sql);
    EXPECT_TRUE(query.ok()) << query.status();
    EXPECT_TRUE(query->Step().value_or(false));
    return query->Text(0);
  }
  std::unique_ptr<Store> WithRecords(int n) {
    auto store = MustOpen(Mode::kReadWrite);
    std::vector<Record> records;
    for (int i = 0; i < n; ++i) {
      records.push_back(MakeRecord("c" + std::to_string(i)));
    }
    EXPECT_TRUE(store->AddRecords(records).ok());
    return store;
  }

  TempFolder folder_;
  std::string path_ = folder_.File("tune.db");
};

TEST_F(StoreOpenTest, AFileKeepsItsUuidAndContent) {
  std::string uuid;
  {
    auto store = WithRecords(1);
    uuid = store->uuid();
    EXPECT_EQ(uuid.size(), 36u);
    EXPECT_EQ(store->schema_version(), SchemaVersion());
  }
  auto again = MustOpen(Mode::kReadWrite);
  EXPECT_EQ(again->uuid(), uuid);
  EXPECT_EQ(again->GetStats()->records, 1);
  auto other = Store::Open(folder_.File("other.db"), Mode::kReadWrite);
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)->uuid(), uuid);
}

TEST_F(StoreOpenTest, UsesAWriteAheadLog) {
  auto store = WithRecords(1);
  EXPECT_EQ(SqlText("PRAGMA journal_mode"), "wal");
}

TEST_F(StoreOpenTest, AMissingFileIsNotFoundForReaders) {
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
  path_ = folder_.File("no/such/folder/tune.db");
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kNotFound);
}

TEST_F(StoreOpenTest, OddPathsAreInvalid) {
  path_ = "";
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kInvalidArgument);
  path_ = folder_.path();
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kInvalidArgument);
  path_ = ":memory:";
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreOpenTest, OneWriterAFileWhateverItsName) {
  auto store = MustOpen(Mode::kReadWrite);
  const auto second = Store::Open(path_, Mode::kReadWrite);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("(process " + std::to_string(getpid()) + ")"));
  std::filesystem::create_symlink(path_, folder_.File("link.db"));
  path_ = folder_.File("link.db");
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kUnavailable);
  store.reset();
  EXPECT_TRUE(Store::Open(path_, Mode::kReadWrite).ok());
}

TEST_F(StoreOpenTest, ReadersSeeWhatIsCommittedMeanwhile) {
  auto writer = WithRecords(1);
  auto reader = MustOpen(Mode::kReadOnly);
  EXPECT_EQ(reader->uuid(), writer->uuid());
  EXPECT_EQ(reader->GetStats()->records, 1);
  ASSERT_TRUE(writer->AddRecords(std::vector{MakeRecord("new")}).ok());
  EXPECT_EQ(reader->GetStats()->records, 2);
  EXPECT_EQ(reader->PutBlob("k", "v").code(),
            absl::StatusCode::kFailedPrecondition);
  writer.reset();
  EXPECT_EQ(reader->GetStats()->records, 2);
}

// Runs `body` as a user who can read the folder but not write to it.
template <typename Body>
int AsNobody(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

TEST_F(StoreOpenTest, ReadersNeedNoPermissionToWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  chmod(folder_.path().c_str(), 0755);
  const auto count = [&] {
    const auto reader = Store::Open(path_, Mode::kReadOnly);
    if (!reader.ok()) return 50 + static_cast<int>(reader.status().code());
    return static_cast<int>((*reader)->GetStats()->records);
  };
  auto writer = WithRecords(3);
  EXPECT_EQ(AsNobody(count), 3) << "beside a writer";
  writer.reset();
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_EQ(AsNobody(count), 3) << "without a writer";
  EXPECT_EQ(
      AsNobody([&] { return static_cast<int>(CodeOfOpen(Mode::kReadWrite)); }),
      static_cast<int>(absl::StatusCode::kPermissionDenied));
}

TEST_F(StoreOpenTest, ANewerSchemaIsRefused) {
  WithRecords(1).reset();
  Sql("PRAGMA user_version = 999");
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreOpenTest, AForeignDatabaseIsLeftAlone) {
  Sql("CREATE TABLE t(x)");
  const std::string before = SqlText("PRAGMA journal_mode");
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SqlText("SELECT group_concat(name) FROM sqlite_master"), "t");
  EXPECT_EQ(SqlText("PRAGMA journal_mode"), before);
}

TEST_F(StoreOpenTest, AnEmptyFileHasNothingToRead) {
  std::ofstream(path_).flush();
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Store::Open(path_, Mode::kReadWrite).ok());
}

TEST_F(StoreOpenTest, GarbageIsDataLoss) {
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_EQ(CodeOfOpen(Mode::kReadOnly), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOfOpen(Mode::kReadWrite), absl::StatusCode::kDataLoss);
}

TEST_F(StoreOpenTest, ADamagedPageIsDataLoss) {
  WithRecords(400).reset();
  const auto size = std::filesystem::file_size(path_);
  ASSERT_GT(size, 40960u);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8192);
    file << std::string(size - 8192, '\x5a');
  }
  const auto store = Store::Open(path_, Mode::kReadOnly);
  if (!store.ok()) {
    EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
    return;
  }
  EXPECT_EQ((*store)->ForEachRecord([](const Record&) { return true; }).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(StoreOpenTest, SqlSeesRecordsAndTraces) {
  auto store = WithRecords(2);
  EXPECT_EQ(SqlText("SELECT count(*) FROM records WHERE status = 'ok'"), "2");
  EXPECT_EQ(SqlText("SELECT count(*) FROM sketches"), "1");
  EXPECT_EQ(SqlText("SELECT decisions FROM records"), "[4, 16];1");
  EXPECT_EQ(SqlText("SELECT trace FROM record_traces WHERE id = 2"), kTrace);
  EXPECT_EQ(SqlText("SELECT json_array_length(seconds) FROM records"), "3");
}

TEST(MigrateTest, AppliesEachVersionOnce) {
  TempFolder folder;
  auto db = Connection::Open(folder.File("x.db"),
                             Connection::Access::kReadWriteCreate);
  ASSERT_TRUE(db.ok()) << db.status();
  const Migration all[] = {
      {1, "CREATE TABLE a(x); INSERT INTO a VALUES (1)"},
      {2, "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1"},
      {3, "INSERT INTO a VALUES (5, 6)"},
  };
  ASSERT_TRUE(Migrate(**db, std::span(all, 1)).ok());
  ASSERT_TRUE(Migrate(**db, std::span(all, 1)).ok());
  EXPECT_EQ((*db)->QueryInt("PRAGMA user_version").value(), 1);
  ASSERT_TRUE(Migrate(**db, all).ok());
  EXPECT_EQ((*db)->QueryInt("PRAGMA user_version").value(), 3);
  EXPECT_EQ((*db)->QueryInt("SELECT sum(y) FROM a").value(), 8);
  EXPECT_EQ(Migrate(**db, std::span(all, 2)).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(MigrateTest, AFailedStepLeavesTheOldVersionWhole) {
  TempFolder folder;
  auto db = Connection::Open(folder.File("x.db"),
                             Connection::Access::kReadWriteCreate);
  ASSERT_TRUE(db.ok()) << db.status();
  const Migration all[] = {
      {1, "CREATE TABLE a(x)"},
      {2, "CREATE TABLE b(x); CREATE TABLE a(again)"},
  };
  EXPECT_FALSE(Migrate(**db, all).ok());
  EXPECT_EQ((*db)->QueryInt("PRAGMA user_version").value(), 1);
  EXPECT_EQ((*db)->QueryInt("SELECT count(*) FROM sqlite_master").value(), 1);
}

TEST(MigrateTest, VersionsHaveNoGaps) {
  int version = 0;
  for (const Migration& migration : Migrations()) {
    EXPECT_EQ(migration.version, ++version);
  }
  EXPECT_EQ(version, SchemaVersion());
}

}  // namespace
}  // namespace tilefarm::database
