// Full disks, directories that cannot be written, files that are damaged or
// belong to another user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/fault/fault_farm.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A small file system, removed by the destructor.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, const char* size) : path_(path) {
    std::filesystem::create_directories(path);
    const std::string options = std::string("size=") + size;
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                     options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

  // Fills it to the last byte.
  void Fill() {
    std::ofstream file(path_ + "/ballast", std::ios::binary | std::ios::app);
    for (const size_t size : {size_t{1} << 16, size_t{256}, size_t{1}}) {
      const std::string bytes(size, 'x');
      while (file.write(bytes.data(), static_cast<int>(size)) && file.flush()) {
      }
      file.clear();
    }
  }
  void Free() { std::filesystem::remove(path_ + "/ballast"); }

 private:
  const std::string path_;
  bool mounted_ = false;
};

constexpr char kNoMount[] =
    "a file system cannot be mounted here (root is needed)";

class DiskFaultTest : public FaultFarm {
 protected:
  // Results are counted here, and a canary's result is not a record.
  DiskFaultTest() { server_options_.push_back("--no-canary"); }
};

TEST_F(DiskFaultTest, FullDiskOfTheServerRefusesClearlyAndRecovers) {
  SmallDisk disk(dir_.File("disk"), "4m");
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  database_ = dir_.File("disk") + "/tune.db";
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  const std::string id = Submit(60);
  ASSERT_TRUE(WaitForTrials(id, 10)) << server_->errors();
  disk.Fill();
  // The client gets the reason, and so does the log.
  ASSERT_TRUE(Until([&] {
    return Count(server_->errors(), "results cannot be stored") > 0;
  })) << server_->errors();
  const auto watch = Process::Spawn(
      {Bin("tune"), "watch", id, "--json", "--server", address_});
  EXPECT_TRUE(Until([&] {
    return Count(watch->output(), "results cannot be stored") > 0;
  })) << watch->output();
  EXPECT_THAT(watch->output(), HasSubstr("free space"));
  const CommandResult refused =
      Tune({"submit", program_, "--target", "host,cores=1", "--trials", "3"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr("free space"));
  EXPECT_EQ(TuneJson({"jobs"}).size(), 1u);
  // Acknowledged results are stored; the others wait in the worker.
  const auto acknowledged = Logged(*worker, "acknowledged");
  const auto stored = Records();
  for (const std::string& candidate : acknowledged) {
    // The unscheduled program is measured, too, but is not a record.
    if (stored.contains(candidate)) continue;
    EXPECT_EQ(Measured()[candidate], 1);
    EXPECT_LT(acknowledged.size(), stored.size() + 2);
  }
  EXPECT_THAT(Spooled("w0"), Not(IsEmpty()));
  EXPECT_TRUE(
      Until([&] { return Job(id)["trials_done"] == Records().size(); }));
  // It recovers by itself once there is space.
  disk.Free();
  ExpectDone(id, 60, *worker);
  EXPECT_TRUE(Until([&] { return Spooled("w0").empty(); }));
  auto now = Records();
  for (const auto& [candidate, record] : stored) {
    EXPECT_EQ(now[candidate], record);
  }
  EXPECT_THAT(server_->errors(), HasSubstr("results are stored again"));
  watch->Wait();
}

TEST_F(DiskFaultTest, FullDiskOfTheWorkerTakesNoNewWorkAndLosesNothing) {
  constexpr int kTrials = 200;  // more than finish while the disk fills up
  SmallDisk disk(state("w0"), "1m");
  if (!disk.mounted()) GTEST_SKIP() << kNoMount;
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  const std::string id = Submit(kTrials);
  ASSERT_TRUE(WaitForTrials(id, 10)) << worker->errors();
  disk.Fill();
  // Results are still sent; then no more leases come.
  ASSERT_TRUE(Until([&] {
    return Count(worker->errors(), "kept in memory alone") > 0;
  })) << worker->errors();
  const auto watch = Process::Spawn(
      {Bin("tune"), "watch", id, "--json", "--server", address_});
  EXPECT_TRUE(Until([&] {
    return Count(watch->output(), "w0 takes no leases now") > 0;
  })) << watch->output();
  // Results of earlier leases are still sent and stored.
  EXPECT_TRUE(
      Until([&] { return Job(id)["trials_done"] == Records().size(); }));
  EXPECT_LT(Records().size(), static_cast<size_t>(kTrials));
  disk.Free();
  ExpectDone(id, kTrials, *worker);
  EXPECT_THAT(worker->errors(), HasSubstr("can be written again"));
  EXPECT_THAT(Measured(), ::testing::Each(::testing::Pair(::testing::_, 1)));
}

TEST_F(DiskFaultTest, StateDirectoryThatCannotBeMadeIsAnError) {
  dir_.Write("file", "in the way");
  const CommandResult worker =
      RunCommand({Bin("rpc-worker"), "--server", "127.0.0.1:1", "--state-dir",
                  dir_.File("file") + "/state"});
  EXPECT_EQ(worker.exit_code, 1);
  EXPECT_THAT(worker.errors, HasSubstr(dir_.File("file") + "/state"));
}

TEST_F(DiskFaultTest, CorruptDatabaseIsRefusedAndLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  const std::string id = Submit(5);
  ExpectDone(id, 5, *worker);
  server_->Kill(SIGTERM);
  ASSERT_EQ(server_->Wait(), 0);
  std::string bytes = ReadFile(db());
  std::fill(bytes.begin(), bytes.begin() + 64, 'x');
  for (const std::string& content : {bytes, std::string("not a database\n")}) {
    std::ofstream(db(), std::ios::binary) << content;
    const CommandResult server = RunCommand(
        {Bin("tune-server"), "--db", db(), "--listen", "127.0.0.1:0"});
    EXPECT_EQ(server.exit_code, 1);
    EXPECT_THAT(server.errors, HasSubstr(db()));
    EXPECT_THAT(server.errors, HasSubstr("not a database"));
    EXPECT_EQ(ReadFile(db()), content);
  }
}

TEST_F(DiskFaultTest, SecondServerOnOneDatabaseIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const CommandResult second =
      RunCommand({Bin("tune-server"), "--db", db(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.errors, HasSubstr(db()));
  EXPECT_EQ(TuneJson({"jobs"}).size(), 0u);
}

}  // namespace
}  // namespace tilefarm::testing
