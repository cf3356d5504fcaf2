#include "database/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "database/store.h"
#include "tests/database/test_records.h"
#include "tests/support/process.h"

namespace tilefarm::database {
namespace {

using ::testing::IsEmpty;

class BackupTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open(const std::string& path, Store::Mode mode) {
    auto store = Store::Open(path, mode);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  // Files in the folder other than the database and the wanted one.
  std::vector<std::string> Strays(const std::string& wanted = "") {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
      const std::string name = file.path().filename().string();
      if (name.rfind("tune.db", 0) != 0 && name != wanted) {
        names.push_back(name);
      }
    }
    return names;
  }

  testing::TempDir dir_;
  const std::string from_ = dir_.File("tune.db");
  const std::string to_ = dir_.File("copy.db");
};

TEST_F(BackupTest, BackupsWhileTheServerWritesAreSoundAndOfOneMoment) {
  const auto store = Open(from_, Store::Mode::kReadWrite);
  std::atomic<int> written = 0;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      // Written in pairs: a backup has both records or neither.
      const std::vector<Record> pair = {MakeRecord(absl::StrCat("a", i)),
                                        MakeRecord(absl::StrCat("b", i))};
      ASSERT_TRUE(store->AddRecords(pair).ok());
      written = 2 * (i + 1);
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string to = dir_.File(absl::StrCat("tune.db.copy", i));
    const int before = written;
    const auto facts = Backup(from_, to);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_GE(facts->records, before);
    EXPECT_EQ(facts->records % 2, 0);
    struct stat info = {};
    ASSERT_EQ(stat(to.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(info.st_size, facts->bytes);
    // A server can start on the copy: the same database, fully readable.
    const auto copy = Open(to, Store::Mode::kReadWrite);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(copy->uuid(), store->uuid());
    EXPECT_EQ(copy->schema_version(), store->schema_version());
    int records = 0;
    ASSERT_TRUE(copy->ForEachRecord([&](const Record&) {
                      ++records;
                      return true;
                    })
                    .ok());
    EXPECT_EQ(records, facts->records);
  }
  stop = true;
  writer.join();
}

TEST_F(BackupTest, NothingIsOverwritten) {
  Open(from_, Store::Mode::kReadWrite);
  dir_.Write("copy.db", "precious");
  EXPECT_EQ(Backup(from_, to_).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(testing::ReadFile(to_), "precious");
  EXPECT_EQ(Backup(from_, from_).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Strays("copy.db"), IsEmpty());
}

TEST_F(BackupTest, WhereItFailsNothingIsLeft) {
  EXPECT_EQ(Backup(from_, to_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(from_));
  Open(from_, Store::Mode::kReadWrite);
  EXPECT_EQ(Backup(from_, dir_.File("no/copy.db")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(Strays(), IsEmpty());
}

TEST_F(BackupTest, ACorruptDatabaseIsNotCopied) {
  {
    const auto store = Open(from_, Store::Mode::kReadWrite);
    std::vector<Record> records;
    for (int i = 0; i < 300; ++i) {
      records.push_back(MakeRecord(absl::StrCat("c", i)));
    }
    ASSERT_TRUE(store->AddRecords(records).ok());
  }
  const auto size = std::filesystem::file_size(from_);
  std::fstream file(from_, std::ios::in | std::ios::out | std::ios::binary);
  // Every other page, from the third on.
  for (size_t at = 3 * 4096; at + 4096 < size; at += 2 * 4096) {
    file.seekp(static_cast<std::streamoff>(at));
    file << std::string(4096, '\xa5');
  }
  file.close();
  EXPECT_EQ(Backup(from_, to_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Strays(), IsEmpty());
}

}  // namespace
}  // namespace tilefarm::database
