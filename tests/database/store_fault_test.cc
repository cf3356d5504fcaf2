// A full disk and a killed writer.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "database/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/test_records.h"

namespace tilefarm::database {
namespace {

// While it lives, files of this process cannot grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    // By default the process would die; with the signal ignored, the write
    // fails as on a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(StoreFaultTest, AFullDiskIsUnavailableAndPasses) {
  TempFolder folder;
  const std::string path = folder.File("tune.db");
  auto store = Store::Open(path, Store::Mode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->AddRecords(std::vector{MakeRecord("before")}).ok());
  std::vector<Record> many;
  for (int i = 0; i < 200; ++i) {
    many.push_back(MakeRecord("c" + std::to_string(i)));
  }
  absl::Status full;
  {
    const FileSizeLimit limit(std::filesystem::file_size(path + "-wal") +
                              10000);
    full = (*store)->AddRecords(many).status();
  }
  EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable) << full;
  // No record of the batch is stored, and the same batch succeeds afterwards.
  EXPECT_EQ((*store)->GetStats()->records, 1);
  const auto added = (*store)->AddRecords(many);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_THAT(*added, ::testing::Each(true));
  EXPECT_EQ((*store)->GetStats()->records, 201);
}

TEST(StoreFaultTest, AcknowledgedRecordsSurviveAKilledWriter) {
  TempFolder folder;
  const std::string path = folder.File("tune.db");
  int acks[2];
  ASSERT_EQ(pipe(acks), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(acks[0]);
    auto store = Store::Open(path, Store::Mode::kReadWrite);
    if (!store.ok()) _exit(1);
    for (int i = 0;; ++i) {
      const Record r = MakeRecord("c" + std::to_string(i));
      if (!(*store)->AddRecords(std::vector{r}).ok()) _exit(2);
      if (write(acks[1], "+", 1) != 1) _exit(3);
    }
  }
  close(acks[1]);
  int acknowledged = 0;
  char byte;
  while (acknowledged < 25 && read(acks[0], &byte, 1) == 1) ++acknowledged;
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  while (read(acks[0], &byte, 1) == 1) ++acknowledged;
  close(acks[0]);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  ASSERT_GE(acknowledged, 25);

  // A reader sees them before any writer has recovered the file.
  auto reader = Store::Open(path, Store::Mode::kReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_GE((*reader)->GetStats()->records, acknowledged);
  auto store = Store::Open(path, Store::Mode::kReadWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  for (int i = 0; i < acknowledged; ++i) {
    EXPECT_TRUE((*store)->HasCandidate("c" + std::to_string(i)).value()) << i;
  }
}

}  // namespace
}  // namespace tilefarm::database
