// Damaged databases: every call gives an error or a right answer, and never
// crashes. What is right is known from the undamaged file: a best record is one
// of its records, and an export repeats its lines.
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "database/sqlite.h"
#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

constexpr size_t kPageBytes = 4096;

struct Damage {
  std::string name;
  std::function<void(std::string& bytes)> apply;
};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
}

BestQuery QueryOf(const char* program) {
  BestQuery query;
  query.program = *ir::ParseFunction(program);
  query.target = *target::Parse("x86-64:znver4,cores=1");
  query.fingerprint = "llvm-19.1.7+tf1";
  return query;
}

// A record's line without what re-measurements add, since damage may lose the
// index by which these are found.
std::string LineOf(Record record) {
  record.remeasured.clear();
  return RecordToJson(record);
}

class StoreDamageTest : public ::testing::Test {
 protected:
  StoreDamageTest() {
    auto store = Store::Open(path_, Store::Mode::kReadWrite);
    EXPECT_TRUE(store.ok()) << store.status();
    std::vector<Record> records;
    for (int i = 0; i < 120; ++i) {
      Record r = MakeRecord(
          i % 5 == 0 ? "c" + std::to_string(i)
                     : std::string(61, 'd') + std::to_string(100 + i),
          1e-3 + 1e-5 * i);
      r.program = i % 2 == 0 ? kProgram : kOtherProgram;
      r.workload_hash = ir::WorkloadHash(**ir::ParseFunction(r.program));
      records.push_back(r);
    }
    EXPECT_TRUE((*store)->AddRecords(records).ok());
    EXPECT_TRUE((*store)
                    ->ForEachRecord([&](const Record& record) {
                      lines_.insert(LineOf(record));
                      return true;
                    })
                    .ok());
    for (const char* program : {kProgram, kOtherProgram}) {
      const auto best = (*store)->FindBest(QueryOf(program));
      EXPECT_TRUE(best.ok()) << best.status();
      best_[program] = LineOf(best->record);
    }
    store->reset();
    bytes_ = Read(path_);
    EXPECT_GT(bytes_.size(), 20 * kPageBytes);
  }

  // Opens the file and asks everything. True: there was an error.
  bool Ask(const std::string& path) {
    auto store = Store::Open(path, Store::Mode::kReadOnly);
    if (!store.ok()) {
      EXPECT_NE(std::string(store.status().message()), "");
      return true;
    }
    bool failed = false;
    for (const char* program : {kProgram, kOtherProgram}) {
      for (const bool examine_all : {false, true}) {
        BestQuery query = QueryOf(program);
        query.examine_all = examine_all;
        const auto best = (*store)->FindBest(query);
        if (best.ok()) {
          EXPECT_EQ(LineOf(best->record), best_[program]);
        } else {
          failed = true;
        }
      }
    }
    size_t seen = 0;
    const absl::Status walked =
        (*store)->ForEachRecord([&](const Record& record) {
          ++seen;
          EXPECT_TRUE(lines_.contains(LineOf(record))) << LineOf(record);
          return true;
        });
    if (!walked.ok()) failed = true;
    if (walked.ok() && seen != lines_.size()) failed = true;
    failed |= !(*store)->GetStats().ok();
    failed |= !(*store)->ListTasks().ok();
    failed |= !(*store)->ListJobs().ok();
    return failed;
  }

  TempFolder folder_;
  std::string path_ = folder_.File("tune.db");
  std::string bytes_;
  std::set<std::string> lines_;
  std::map<std::string, std::string> best_;  // by program
};

std::vector<Damage> Damages(size_t size) {
  std::vector<Damage> all;
  const size_t pages = size / kPageBytes;
  // Cut off, in the header, in pages and between them.
  for (const size_t keep :
       {size_t{1}, size_t{15}, size_t{99}, size_t{100}, size_t{512},
        kPageBytes - 1, kPageBytes, 2 * kPageBytes, 5 * kPageBytes + 17,
        size / 4, size / 2, size - kPageBytes, size - 1}) {
    all.push_back({"cut to " + std::to_string(keep),
                   [keep](std::string& bytes) { bytes.resize(keep); }});
  }
  // The header: magic, page size, versions, schema cookie, encoding, ids.
  for (const size_t at : {0,  6,  16, 17, 18, 19, 20, 21, 24, 28, 32,
                          40, 44, 47, 52, 56, 60, 63, 68, 71, 96}) {
    all.push_back({"header byte " + std::to_string(at),
                   [at](std::string& bytes) { bytes[at] ^= 0x55; }});
  }
  for (size_t page = 0; page < pages; page += pages / 16 + 1) {
    const size_t at = page * kPageBytes;
    all.push_back(
        {"zeroed page " + std::to_string(page), [at](std::string& bytes) {
           bytes.replace(at, kPageBytes, kPageBytes, '\0');
         }});
    all.push_back(
        {"page header " + std::to_string(page), [at](std::string& bytes) {
           for (size_t i = at == 0 ? 100 : 0; i < 12; ++i) {
             bytes[at + i] ^= 0xff;
           }
           bytes[at + 3] ^= 0x7f;
         }});
    all.push_back(
        {"garbage in page " + std::to_string(page), [at](std::string& bytes) {
           uint32_t state = 12345;
           for (size_t i = 0; i < kPageBytes; ++i) {
             state = state * 1664525 + 1013904223;
             bytes[at + i] = static_cast<char>(state >> 24);
           }
         }});
  }
  // One bit anywhere.
  uint64_t state = 99;
  for (int i = 0; i < 60; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const size_t at = (state >> 16) % size;
    const char bit = static_cast<char>(1 << (state >> 13 & 7));
    all.push_back({"bit " + std::to_string(at),
                   [at, bit](std::string& bytes) { bytes[at] ^= bit; }});
  }
  for (size_t page = 1; page + 3 < pages; page += pages / 8 + 1) {
    const size_t a = page * kPageBytes, b = (page + 3) * kPageBytes;
    all.push_back(
        {"swapped pages " + std::to_string(page), [a, b](std::string& bytes) {
           const std::string first = bytes.substr(a, kPageBytes);
           bytes.replace(a, kPageBytes, bytes.substr(b, kPageBytes));
           bytes.replace(b, kPageBytes, first);
         }});
  }
  return all;
}

TEST_F(StoreDamageTest, TheUndamagedFileIsRight) { EXPECT_FALSE(Ask(path_)); }

TEST_F(StoreDamageTest, DamagedBytesGiveErrorsOrRightAnswers) {
  const std::vector<Damage> damages = Damages(bytes_.size());
  EXPECT_GE(damages.size(), 50u);
  int noticed = 0;
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::string bytes = bytes_;
    damage.apply(bytes);
    const std::string path = folder_.File("damaged.db");
    Write(path, bytes);
    if (Ask(path)) ++noticed;
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(path + end);
    }
  }
  // Some bytes do not matter, such as the count of changes in the header.
  EXPECT_GT(noticed, 40);
}

// Changes that are sound for SQLite, but not for us.
TEST_F(StoreDamageTest, DamagedContentIsAnError) {
  for (const char* sql :
       {"DROP TABLE devices",
        "DROP TABLE series",
        "DROP TABLE sketches",
        "DROP TABLE programs",
        "DROP TABLE workloads",
        "DROP TABLE meta",
        "DROP TABLE measurements",
        "DROP TABLE stored_records",
        "DELETE FROM meta",
        "DELETE FROM programs",
        "DELETE FROM sketches",
        "DELETE FROM devices",
        "DELETE FROM series",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = 3",
        "PRAGMA user_version = 77",
        "PRAGMA application_id = 1",
        "UPDATE stored_records SET status = 'great'",
        "UPDATE stored_records SET samples = x'00'",
        "UPDATE stored_records SET samples = x'0000000000000000'",
        "UPDATE stored_records SET samples = '{}'",
        "UPDATE stored_records SET decisions = '7;7;7;7;7'",
        "UPDATE sketches SET text = 'no decisions'",
        "UPDATE workloads SET canonical = 'no program'",
        "ALTER TABLE stored_records DROP COLUMN error"}) {
    SCOPED_TRACE(sql);
    const std::string path = folder_.File("damaged.db");
    Write(path, bytes_);
    {
      auto db = Connection::Open(path, Connection::Access::kReadWriteCreate);
      ASSERT_TRUE(db.ok()) << db.status();
      ASSERT_TRUE((*db)->Execute("PRAGMA foreign_keys = OFF").ok());
      ASSERT_TRUE((*db)->Execute("DROP VIEW record_traces").ok());
      if (std::string_view(sql).starts_with("ALTER")) {
        ASSERT_TRUE((*db)->Execute("DROP VIEW records").ok());
      }
      const absl::Status changed = (*db)->Execute(sql);
      ASSERT_TRUE(changed.ok()) << changed;
    }
    EXPECT_TRUE(Ask(path));
    for (const char* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path + end);
    }
  }
}

TEST_F(StoreDamageTest, SwappedRowsAreNoWrongAnswer) {
  // Two programs exchange their texts: a lookup by program compares them.
  const std::string path = folder_.File("damaged.db");
  Write(path, bytes_);
  {
    auto db = Connection::Open(path, Connection::Access::kReadWriteCreate);
    ASSERT_TRUE(db.ok()) << db.status();
    ASSERT_TRUE((*db)
                    ->Execute("UPDATE workloads SET canonical = (SELECT "
                              "w.canonical FROM workloads w WHERE w.id <> "
                              "workloads.id) WHERE id = 1")
                    .ok());
  }
  auto store = Store::Open(path, Store::Mode::kReadOnly);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->FindBest(QueryOf(kProgram)).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tilefarm::database
