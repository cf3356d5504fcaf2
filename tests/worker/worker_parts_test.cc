// Spool, cores and locks, and the cache of builds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "tests/support/until.h"
#include "worker/artifact_cache.h"
#include "worker/build_cache.h"
#include "worker/cpus.h"
#include "worker/device.h"
#include "worker/libraries.h"
#include "worker/spool.h"

namespace tilefarm::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

BuildRequest Request(const std::string& hash) {
  BuildRequest request;
  request.program = "program";
  request.trace = "trace";
  request.scheduled_hash = hash;
  request.target = "target";
  return request;
}

BuildReply Reply(const std::string& artifact) {
  BuildReply reply;
  reply.artifact = artifact;
  reply.symbol = "symbol";
  reply.code_digest = "digest of " + artifact;
  reply.compile_seconds = 0.5;
  return reply;
}

TEST(BuildCacheTest, FindsWhatWasBuiltForTheSameRequestAlone) {
  BuildCache cache(1 << 20);
  EXPECT_FALSE(cache.Find(Request("a")).has_value());
  cache.Add(Request("a"), Reply("A"));
  const std::optional<BuildReply> found = cache.Find(Request("a"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->artifact, "A");
  EXPECT_EQ(found->code_digest, "digest of A");
  EXPECT_EQ(found->compile_seconds, 0.5);
  EXPECT_FALSE(cache.Find(Request("b")).has_value());
  for (std::string BuildRequest::*part :
       {&BuildRequest::program, &BuildRequest::trace, &BuildRequest::target}) {
    BuildRequest other = Request("a");
    other.*part += "!";
    EXPECT_FALSE(cache.Find(other).has_value());
  }
  BuildRequest reference = Request("a");
  reference.reference = true;
  EXPECT_FALSE(cache.Find(reference).has_value());
}

TEST(BuildCacheTest, KeepsNoFailuresAndNothingWithoutAHash) {
  BuildCache cache(1 << 20);
  BuildReply failed = Reply("A");
  failed.status = BuildStatus::kCompileError;
  cache.Add(Request("a"), failed);
  EXPECT_FALSE(cache.Find(Request("a")).has_value());
  cache.Add(Request(""), Reply("A"));
  EXPECT_FALSE(cache.Find(Request("")).has_value());
}

TEST(BuildCacheTest, DropsTheLeastRecentlyUsedBeyondItsSize) {
  BuildCache cache(2500);
  cache.Add(Request("a"), Reply(std::string(1000, 'A')));
  cache.Add(Request("b"), Reply(std::string(1000, 'B')));
  EXPECT_TRUE(cache.Find(Request("a")).has_value());
  cache.Add(Request("c"), Reply(std::string(1000, 'C')));
  EXPECT_TRUE(cache.Find(Request("a")).has_value());
  EXPECT_FALSE(cache.Find(Request("b")).has_value());
  EXPECT_TRUE(cache.Find(Request("c")).has_value());
  // The same entry again takes no more space; one that is too large is not
  // kept.
  cache.Add(Request("c"), Reply(std::string(1000, 'D')));
  EXPECT_TRUE(cache.Find(Request("a")).has_value());
  EXPECT_EQ(cache.Find(Request("c"))->artifact[0], 'D');
  cache.Add(Request("d"), Reply(std::string(5000, 'E')));
  EXPECT_FALSE(cache.Find(Request("d")).has_value());
}

class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() {
    char path[] = "/tmp/tilefarm-spool-test-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~DirectoryTest() override { std::filesystem::remove_all(directory_); }
  std::string directory_;
};

class ArtifactCacheTest : public testing::Test {
 protected:
  ArtifactCacheTest() {
    std::string path = testing::TempDir() + "/artifacts-XXXXXX";
    directory_ = mkdtemp(path.data());
  }
  ~ArtifactCacheTest() override { std::filesystem::remove_all(directory_); }

  // Counts how often the bytes are fetched.
  absl::StatusOr<ArtifactCache::Bytes> Get(ArtifactCache& cache,
                                           const std::string& bytes) {
    return cache.Get(Sha256Hex(bytes), [&]() -> absl::StatusOr<std::string> {
      ++fetched_;
      return bytes;
    });
  }
  std::string File(const std::string& bytes) const {
    return directory_ + "/" + Sha256Hex(bytes);
  }

  std::string directory_;
  int fetched_ = 0;
};

TEST_F(ArtifactCacheTest, FetchesOnceAndKeepsItOnDisk) {
  {
    ArtifactCache cache(directory_, 1 << 20);
    const auto first = Get(cache, "artifact");
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(**first, "artifact");
    EXPECT_EQ(Get(cache, "artifact")->get(), first->get()) << "while in use";
    EXPECT_EQ(fetched_, 1);
  }
  ArtifactCache again(directory_, 1 << 20);
  EXPECT_EQ(**Get(again, "artifact"), "artifact");
  EXPECT_EQ(fetched_, 1);
}

TEST_F(ArtifactCacheTest, DamagedFilesAreFetchedAgain) {
  ArtifactCache cache(directory_, 1 << 20);
  ASSERT_TRUE(Get(cache, "artifact").ok());
  std::ofstream(File("artifact"), std::ios::app) << "x";
  EXPECT_EQ(**Get(cache, "artifact"), "artifact");
  EXPECT_EQ(fetched_, 2);
  EXPECT_EQ(std::filesystem::file_size(File("artifact")), 8u);
}

TEST_F(ArtifactCacheTest, OtherBytesThanAskedForAreDataLoss) {
  ArtifactCache cache(directory_, 1 << 20);
  const auto got = cache.Get(Sha256Hex("artifact"),
                             [] { return std::string("something else"); });
  EXPECT_TRUE(absl::IsDataLoss(got.status()));
  EXPECT_FALSE(std::filesystem::exists(File("artifact")));
  EXPECT_TRUE(absl::IsInvalidArgument(
      cache.Get("../../etc/passwd", [] { return std::string(); }).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      cache.Get(Sha256Hex("a"), [] { return absl::UnavailableError("away"); })
          .status()));
}

TEST_F(ArtifactCacheTest, TheLongestUnusedOnesAreDeleted) {
  ArtifactCache cache(directory_, 100);
  const std::string a(40, 'a'), b(40, 'b'), c(40, 'c'), large(200, 'd');
  ASSERT_TRUE(Get(cache, a).ok());
  ASSERT_TRUE(Get(cache, b).ok());
  // Older than any that is used now.
  std::filesystem::last_write_time(
      File(b),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(Get(cache, c).ok());
  EXPECT_TRUE(std::filesystem::exists(File(a)));
  EXPECT_FALSE(std::filesystem::exists(File(b)));
  EXPECT_TRUE(std::filesystem::exists(File(c)));
  EXPECT_EQ(**Get(cache, large), large) << "returned, but not kept";
  EXPECT_FALSE(std::filesystem::exists(File(large)));
}

TEST_F(ArtifactCacheTest, WithoutAFolderEverythingIsFetched) {
  ArtifactCache nowhere("", 100), forbidden("/proc/no/such/folder", 100);
  for (ArtifactCache* cache : {&nowhere, &forbidden}) {
    EXPECT_EQ(**Get(*cache, "artifact"), "artifact");
    EXPECT_EQ(**Get(*cache, "artifact"), "artifact");
  }
  EXPECT_EQ(fetched_, 4);
}

class SpoolTest : public DirectoryTest {
 protected:
  std::unique_ptr<Spool> Open() {
    absl::StatusOr<std::unique_ptr<Spool>> spool = Spool::Open(directory_);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }
  static v1::Result Result(const std::string& lease_id) {
    v1::Result result;
    result.set_lease_id(lease_id);
    result.mutable_measurement()->set_status("ok");
    return result;
  }
  static std::vector<std::string> Ids(const Spool& spool,
                                      const std::string& uuid) {
    std::vector<std::string> ids;
    for (const auto& result : spool.Pending(uuid)) {
      ids.push_back(result->lease_id());
    }
    return ids;
  }
  std::vector<std::filesystem::path> Files(const std::string& extension) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.path().extension() == extension) files.push_back(entry.path());
    }
    return files;
  }
};

TEST_F(SpoolTest, KeepsOrderOverRestarts) {
  {
    const auto spool = Open();
    for (const char* id : {"c", "a", "b"}) {
      ASSERT_TRUE(spool->Put("db", Result(id)).ok());
    }
  }
  const auto spool = Open();
  EXPECT_THAT(Ids(*spool, "db"), ElementsAre("c", "a", "b"));
  ASSERT_TRUE(spool->Put("db", Result("d")).ok());
  spool->Acknowledge("db", "a");
  spool->Acknowledge("db", "unknown");
  EXPECT_THAT(Ids(*spool, "db"), ElementsAre("c", "b", "d"));
  EXPECT_THAT(Ids(*spool, "other"), IsEmpty());
}

TEST_F(SpoolTest, DatabasesAreKeptApart) {
  const auto spool = Open();
  ASSERT_TRUE(spool->Put("one", Result("a")).ok());
  ASSERT_TRUE(spool->Put("two", Result("a")).ok());
  spool->Acknowledge("one", "a");
  EXPECT_THAT(Ids(*spool, "one"), IsEmpty());
  EXPECT_THAT(Ids(*spool, "two"), ElementsAre("a"));
}

TEST_F(SpoolTest, NamesFromTheWireStayInTheDirectory) {
  const auto spool = Open();
  const std::string evil = "../../../../tmp/evil";
  ASSERT_TRUE(spool->Put(evil, Result(evil)).ok());
  EXPECT_THAT(Files(".result"), testing::SizeIs(1));
  EXPECT_THAT(Ids(*spool, evil), ElementsAre(evil));
  spool->Acknowledge(evil, evil);
  EXPECT_THAT(Files(".result"), IsEmpty());
}

TEST_F(SpoolTest, DamagedFileIsSetAside) {
  {
    const auto spool = Open();
    ASSERT_TRUE(spool->Put("db", Result("a")).ok());
    ASSERT_TRUE(spool->Put("db", Result("b")).ok());
  }
  ASSERT_THAT(Files(".result"), testing::SizeIs(2));
  for (const auto& path : Files(".result")) {
    if (path.string().find("-a.result") == std::string::npos) continue;
    std::ofstream(path, std::ios::app) << "x";
  }
  const auto spool = Open();
  EXPECT_THAT(Ids(*spool, "db"), ElementsAre("b"));
  EXPECT_THAT(Files(".corrupt"), testing::SizeIs(1));
}

TEST_F(SpoolTest, WhatCannotBeWrittenIsKeptAndWrittenLater) {
  auto spool = Open();
  // A file in place of the database's directory.
  const std::string blocked = directory_ + "/spool/uuid";
  std::ofstream(blocked) << "x";
  EXPECT_FALSE(spool->Put("uuid", Result("a")).ok());
  EXPECT_FALSE(spool->writable());
  EXPECT_THAT(Ids(*spool, "uuid"), ElementsAre("a"));
  EXPECT_FALSE(spool->Retry().ok());
  EXPECT_FALSE(spool->writable());
  std::filesystem::remove(blocked);
  EXPECT_TRUE(spool->Retry().ok());
  EXPECT_TRUE(spool->writable());
  spool.reset();
  spool = Open();
  EXPECT_THAT(Ids(*spool, "uuid"), ElementsAre("a"));
  spool->Acknowledge("uuid", "a");
  EXPECT_THAT(Files(".result"), testing::IsEmpty());
}

TEST_F(SpoolTest, OddFilesAreLeftAloneAndHalfWrittenOnesRemoved) {
  auto spool = Open();
  ASSERT_TRUE(spool->Put("uuid", Result("a")).ok());
  spool.reset();
  const std::string folder = directory_ + "/spool/uuid/";
  const auto whole = Files(".result").front();
  // Numbers that would overflow, or that are in use.
  std::filesystem::copy_file(whole, folder + "18446744073709551615-b.result");
  std::filesystem::copy_file(whole, folder + "000000000001-c.result");
  std::ofstream(folder + "000000000002-d.result.tmp") << "half";
  std::ofstream(directory_ + "/spool/file") << "x";
  spool = Open();
  EXPECT_THAT(Ids(*spool, "uuid"), ElementsAre("a"));
  ASSERT_TRUE(spool->Put("uuid", Result("e")).ok());
  EXPECT_THAT(Ids(*spool, "uuid"), ElementsAre("a", "e"));
  EXPECT_THAT(Files(".tmp"), testing::IsEmpty());
}

TEST_F(SpoolTest, SecondOwnerIsRefused) {
  const auto spool = Open();
  EXPECT_EQ(Spool::Open(directory_).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CpusTest, ParsesLists) {
  EXPECT_THAT(*ParseCpuList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseCpuList("8,0-2,1"), ElementsAre(0, 1, 2, 8));
  for (const char* bad :
       {"", "a", "1-", "-1", "3-1", "1,,2", "1-2-3", "99999"}) {
    EXPECT_EQ(ParseCpuList(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

TEST(CpusTest, MeasurementsHaveCoresOfTheirOwn) {
  EXPECT_THAT(MeasurementCpus({0, 1, 2, 3}, 1), ElementsAre(3));
  EXPECT_THAT(MeasurementCpus({0, 1, 2, 3}, 2), ElementsAre(2, 3));
  EXPECT_THAT(MeasurementCpus({0, 1}, 8), ElementsAre(0, 1));
  EXPECT_THAT(OtherCpus({0, 1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(OtherCpus({5}), ElementsAre(5));
  EXPECT_THAT(Without({0, 1, 2, 3}, {2, 3}), ElementsAre(0, 1));
  EXPECT_THAT(Without({0, 1}, {0, 1}), IsEmpty());
  EXPECT_THAT(AllowedCpus(), testing::Not(IsEmpty()));
}

TEST(CpusTest, ProcessesAreMovedWithAllTheirThreads) {
  const CpuList all = AllowedCpus();
  if (all.size() < 2) GTEST_SKIP() << "one core only";
  CpuList seen;
  std::atomic<bool> moved = false;
  std::thread thread([&] {
    while (!moved) absl::SleepFor(absl::Milliseconds(1));
    seen = AllowedCpus();
  });
  KeepProcessOnCpus(getpid(), {all.back()});
  moved = true;
  thread.join();
  EXPECT_THAT(seen, ElementsAre(all.back()));
  EXPECT_THAT(AllowedCpus(), ElementsAre(all.back()));
  KeepProcessOnCpus(getpid(), all);
  KeepProcessOnCpus(-5, all);  // no such process: nothing happens
}

class CpuLockTest : public DirectoryTest {};

TEST_F(CpuLockTest, OverlappingCoresTakeTurns) {
  auto first = CpuLock::Acquire(directory_, {0, 1}, [] { return false; });
  ASSERT_TRUE(first.ok()) << first.status();
  // Other locks can be acquired meanwhile.
  EXPECT_TRUE(CpuLock::Acquire(directory_, {2}, [] { return false; }).ok());
  EXPECT_EQ(
      CpuLock::Acquire(directory_, {1, 2}, [] { return true; }).status().code(),
      absl::StatusCode::kCancelled);
  std::atomic<bool> acquired = false;
  std::thread waiter([&] {
    EXPECT_TRUE(
        CpuLock::Acquire(directory_, {1, 2}, [] { return false; }).ok());
    acquired = true;
  });
  EXPECT_TRUE(Until([this] { return CpuLock::Wanted(directory_, {1}); }));
  EXPECT_FALSE(acquired);
  { CpuLock released(*std::move(first)); }
  waiter.join();
  EXPECT_TRUE(acquired);
}

TEST_F(CpuLockTest, WhoWaitsIsNoticed) {
  EXPECT_FALSE(CpuLock::Wanted(directory_, {0, 1}));
  auto held = CpuLock::Acquire(directory_, {0, 1}, [] { return false; });
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_FALSE(CpuLock::Wanted(directory_, {0, 1}));
  std::thread waiter([this] {
    EXPECT_TRUE(CpuLock::Acquire(directory_, {1}, [] { return false; }).ok());
  });
  EXPECT_TRUE(Until([this] { return CpuLock::Wanted(directory_, {0, 1}); }));
  EXPECT_FALSE(CpuLock::Wanted(directory_, {0}));
  { CpuLock released(*std::move(held)); }
  waiter.join();
  EXPECT_FALSE(CpuLock::Wanted(directory_, {0, 1}));
}

TEST(DeviceTest, StateIsJson) {
  RunReply reply;
  reply.canary_seconds = 1e-5;
  reply.retaken = 2;
  reply.shared = 3;
  const std::string state = DeviceState({0}, reply);
  EXPECT_THAT(state, testing::StartsWith("{\""));
  EXPECT_THAT(state, testing::HasSubstr("\"canary_seconds\":0.000010000"));
  EXPECT_THAT(state, testing::EndsWith("\"retaken\":2,\"shared\":3}"));
  EXPECT_GT(MemoryBytes(), 0u);
}

TEST(LibrariesTest, AreWhatTheRunnerSays) {
  EXPECT_THAT(
      ParseLibraries("openblas 0.3.21\nsome noise here\n\nonednn 2.6\n"),
      ElementsAre(testing::Pair("onednn", "2.6"),
                  testing::Pair("openblas", "0.3.21")));
  EXPECT_THAT(RunnersLibraries({"echo", "openblas"}),
              ElementsAre(testing::Pair("openblas", "--libraries")));
  EXPECT_THAT(RunnersLibraries({"/no/such/runner"}), IsEmpty());
}

}  // namespace
}  // namespace tilefarm::worker
