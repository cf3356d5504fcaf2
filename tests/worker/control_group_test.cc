// The meaning of control groups' files, and where groups can be created, on
// plain files; tests/fault/control_group_fault_test tests the kernel.
#include "worker/control_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/candidate_groups.h"

namespace tilefarm::worker {
namespace {

using testing::HasSubstr;

class ControlGroupFilesTest : public testing::Test {
 protected:
  ControlGroupFilesTest() {
    char path[] = "/tmp/tilefarm-control-group-test-XXXXXX";
    root_ = mkdtemp(path);
  }
  ~ControlGroupFilesTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string Read(const std::string& file) const {
    std::ifstream in(root_ + file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool Exists(const std::string& file) const {
    return std::filesystem::exists(root_ + file);
  }

  std::string root_;
};

TEST_F(ControlGroupFilesTest, ControllersAreThoseOfTheWholeWord) {
  Write("/both/cgroup.subtree_control", "cpu memory pids\n");
  Write("/memory/cgroup.subtree_control", "memory\n");
  Write("/neither/cgroup.subtree_control", "cpuset memory2\n");
  Write("/none/cgroup.subtree_control", "");
  const auto enabled = [&](const std::string& group) {
    const GroupControllers found = EnabledControllers(root_ + group);
    return std::pair(found.memory, found.pids);
  };
  EXPECT_EQ(enabled("/both"), std::pair(true, true));
  EXPECT_EQ(enabled("/memory"), std::pair(true, false));
  EXPECT_EQ(enabled("/neither"), std::pair(false, false));
  EXPECT_EQ(enabled("/none"), std::pair(false, false));
  EXPECT_EQ(enabled("/absent"), std::pair(false, false));
}

TEST_F(ControlGroupFilesTest, AnOrdinaryDirectoryIsNoGroup) {
  std::string error;
  EXPECT_EQ(ControlGroup::Make(root_, {}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("is no control group"));
  EXPECT_FALSE(Exists("/candidate-1"));
  EXPECT_EQ(ControlGroup::Make(root_ + "/absent", {}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("No such file or directory"));
}

TEST_F(ControlGroupFilesTest, OnlyGroupsOfCandidatesAreLeftovers) {
  for (const char* group :
       {"/candidate-1", "/candidate-7/inner", "/worker", "/other"}) {
    std::filesystem::create_directories(root_ + group);
  }
  std::string error;
  EXPECT_TRUE(RemoveLeftovers(root_, 100, &error)) << error;
  EXPECT_FALSE(Exists("/candidate-1"));
  EXPECT_FALSE(Exists("/candidate-7"));
  EXPECT_TRUE(Exists("/worker"));
  EXPECT_TRUE(Exists("/other"));
}

TEST_F(ControlGroupFilesTest, ALeftoverThatDoesNotEndIsNamed) {
  Write("/candidate-3/cgroup.events", "frozen 0\npopulated 1\n");
  std::string error;
  EXPECT_FALSE(RemoveLeftovers(root_, 20, &error));
  EXPECT_THAT(error, HasSubstr("/candidate-3: Device or resource busy"));
  // It was told to.
  Write("/candidate-3/cgroup.kill", "");
  EXPECT_FALSE(RemoveLeftovers(root_, 20, &error));
  EXPECT_EQ(Read("/candidate-3/cgroup.kill"), "1");
}

TEST(GroupEventsTest, TellWhyAProcessWasKilled) {
  GroupEvents events;
  EXPECT_EQ(events.WhyKilled(), "");
  EXPECT_EQ(events.Refusals(), "");
  events.limits = {uint64_t{256} << 20, 80};
  EXPECT_EQ(events.WhyKilled(), "");
  events.oom_kills = 1;
  EXPECT_EQ(events.WhyKilled(),
            "was killed since this machine ran out of memory");
  events.limit_hits = 3;
  EXPECT_EQ(events.WhyKilled(),
            "was killed since it needed more memory than its 256 MiB");
  events.refused_tasks = 2;
  EXPECT_EQ(events.Refusals(),
            ", after 2 processes or threads beyond the 80 that it may have "
            "were refused");
}

// A machine simulated by plain files: this process is in /unit.
class CandidateGroupsTest : public ControlGroupFilesTest {
 protected:
  CandidateGroupsTest() {
    Write("/proc/cgroup", "4:memory:/elsewhere\n0::/unit\n");
    MountAt("/");
    system_.own_groups = root_ + "/proc/cgroup";
    system_.mounts = root_ + "/proc/mountinfo";
    system_.is_delegated = [this](const std::string& directory) {
      return directory == delegated_;
    };
    system_.is_group = [this](const std::string& directory) {
      return directory.starts_with(root_ + "/cgroup");
    };
    MakeGroup("/cgroup/unit");
    // As the kernel does in each group that is created.
    Write("/cgroup/unit/worker/cgroup.procs", "");
  }

  // The part of the hierarchy that the mount shows.
  void MountAt(const std::string& shown) {
    Write("/proc/mountinfo",
          absl::StrCat("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                       "30 22 0:26 / ",
                       root_,
                       "/v1 rw - cgroup cgroup rw,memory\n"
                       "31 22 0:27 ",
                       shown, " ", root_,
                       "/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"));
  }
  void MakeGroup(const std::string& group,
                 const std::string& controllers = "cpu pids\n") {
    Write(group + "/cgroup.type", "domain\n");
    Write(group + "/cgroup.procs", "");
    Write(group + "/cgroup.controllers", controllers);
    Write(group + "/cgroup.subtree_control", "");
  }

  absl::StatusOr<CandidateGroups> Prepare(const std::string& option) {
    return CandidateGroups::Prepare(option, system_);
  }
  void ExpectNone(const std::string& why) {
    const auto groups = Prepare("auto");
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->directory(), "");
    EXPECT_THAT(groups->shortfall(),
                testing::AllOf(HasSubstr("candidates have no control groups"),
                               HasSubstr(why)));
  }
  void ExpectRefused(const std::string& option, absl::StatusCode code,
                     const std::string& why) {
    const auto groups = Prepare(option);
    EXPECT_EQ(groups.status().code(), code) << groups.status();
    EXPECT_THAT(std::string(groups.status().message()), HasSubstr(why));
  }

  CandidateGroups::System system_;
  std::string delegated_ = root_ + "/cgroup/unit";
};

TEST_F(CandidateGroupsTest, ADelegatedGroupIsUsedAndLeftForASubgroup) {
  const auto groups = Prepare("auto");
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_EQ(groups->directory(), root_ + "/cgroup/unit");
  EXPECT_EQ(Read("/cgroup/unit/worker/cgroup.procs"), "0");
  EXPECT_EQ(Read("/cgroup/unit/cgroup.subtree_control"), "+pids");
  EXPECT_THAT(groups->shortfall(), HasSubstr("do not limit memory: not among"));
  EXPECT_THAT(groups->shortfall(), testing::Not(HasSubstr("pids")));
}

TEST_F(CandidateGroupsTest, WhatIsNotOursIsLeftAlone) {
  delegated_ = "";
  ExpectNone("/cgroup/unit is not delegated to this worker");
  EXPECT_EQ(Read("/cgroup/unit/worker/cgroup.procs"), "");
  EXPECT_EQ(Read("/cgroup/unit/cgroup.subtree_control"), "");
  const auto off = Prepare("off");
  ASSERT_TRUE(off.ok());
  EXPECT_EQ(off->directory(), "");
  EXPECT_EQ(off->shortfall(), "");
}

TEST_F(CandidateGroupsTest, ThereIsNoCgroupV2) {
  Write("/proc/mountinfo", "30 22 0:26 / /sys/fs/cgroup rw - cgroup cgroup rw");
  ExpectNone("no cgroup v2 hierarchy");
  MountAt("/");
  Write("/proc/cgroup", "4:memory:/elsewhere\n");
  ExpectNone("no cgroup v2 hierarchy");
  // A mount that shows another part of the hierarchy than this process's.
  Write("/proc/cgroup", "0::/unit\n");
  MountAt("/un");
  ExpectNone("no cgroup v2 hierarchy");
}

TEST_F(CandidateGroupsTest, AContainersRootIsItsOwnAndAMachinesIsNot) {
  delegated_ = "";
  Write("/proc/cgroup", "0::/\n");
  MakeGroup("/cgroup");
  Write("/cgroup/worker/cgroup.procs", "");
  {
    const auto groups = Prepare("auto");
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->directory(), root_ + "/cgroup");
  }
  // A mount that shows the hierarchy from that group on.
  Write("/proc/cgroup", "0::/unit\n");
  MountAt("/unit");
  delegated_ = root_ + "/cgroup";
  {
    const auto groups = Prepare("auto");
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->directory(), root_ + "/cgroup");
  }
  delegated_ = "";
  Write("/proc/cgroup", "0::/\n");
  MountAt("/");
  std::filesystem::remove(root_ + "/cgroup/cgroup.type");
  ExpectNone("/cgroup is not delegated to this worker");
}

TEST_F(CandidateGroupsTest, AGroupThatCannotBeEnteredIsNotUsed) {
  std::filesystem::remove(root_ + "/cgroup/unit/worker/cgroup.procs");
  ExpectNone("worker/cgroup.procs: No such file or directory");
}

TEST_F(CandidateGroupsTest, AGroupIsForOneWorker) {
  {
    const auto first = Prepare("auto");
    ASSERT_EQ(first->directory(), root_ + "/cgroup/unit");
    ExpectNone("is used by another rpc-worker");
    ExpectRefused(root_ + "/cgroup/unit", absl::StatusCode::kFailedPrecondition,
                  "is used by another rpc-worker");
  }
  EXPECT_EQ(Prepare("auto")->directory(), root_ + "/cgroup/unit");
}

TEST_F(CandidateGroupsTest, ANamedGroupIsUsedWithoutBeingEntered) {
  MakeGroup("/cgroup/mine", "memory\n");
  std::filesystem::create_directories(root_ + "/cgroup/mine/candidate-4");
  {
    const auto groups = Prepare(root_ + "/cgroup/mine/");
    ASSERT_TRUE(groups.ok()) << groups.status();
    EXPECT_EQ(groups->directory(), root_ + "/cgroup/mine");
    EXPECT_EQ(Read("/cgroup/mine/cgroup.subtree_control"), "+memory");
    EXPECT_FALSE(Exists("/cgroup/mine/worker"));
  }
  // It cleans up at its end.
  EXPECT_FALSE(Exists("/cgroup/mine/candidate-4"));
  // First, this process leaves its own group.
  EXPECT_TRUE(Prepare(root_ + "/cgroup/unit").ok());
  EXPECT_EQ(Read("/cgroup/unit/worker/cgroup.procs"), "0");
}

TEST_F(CandidateGroupsTest, ANamedGroupThatCannotBeUsedIsAnError) {
  using enum absl::StatusCode;
  ExpectRefused("sometimes", kInvalidArgument, "neither auto, off nor");
  ExpectRefused(root_ + "/v1/group", kInvalidArgument, "no cgroup v2");
  ExpectRefused(root_ + "/cgroup/a/b", kNotFound, "mkdir");
  MakeGroup("/cgroup/root");
  std::filesystem::remove(root_ + "/cgroup/root/cgroup.type");
  ExpectRefused(root_ + "/cgroup/root", kFailedPrecondition,
                "is the root of a hierarchy");
  MakeGroup("/cgroup/busy");
  Write("/cgroup/busy/cgroup.procs", absl::StrCat(getpid(), "\n"));
  ExpectRefused(root_ + "/cgroup/busy", kFailedPrecondition,
                absl::StrCat("other processes are in it: ", getpid(), " ("));
}

}  // namespace
}  // namespace tilefarm::worker
