#include "base/isolation.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace tilefarm {
namespace {

// All isolations.
std::vector<Isolation> Isolations() {
  std::vector<Isolation> all;
  for (const IsolationLevel level :
       {IsolationLevel::kNone, IsolationLevel::kRlimits,
        IsolationLevel::kSeccompLibraries, IsolationLevel::kSeccomp}) {
    for (int parts = 0; parts < 16; ++parts) {
      const Isolation one = {level, (parts & 1) != 0, (parts & 2) != 0,
                             (parts & 4) != 0, (parts & 8) != 0};
      if (one.cgroup || !(one.memory || one.pids)) all.push_back(one);
    }
  }
  return all;
}

TEST(IsolationTest, WordsMeanWhatTheyWereMadeOf) {
  std::set<std::string> texts;
  for (const Isolation& isolation : Isolations()) {
    Isolation parsed;
    EXPECT_TRUE(ParseIsolation(isolation.Text(), &parsed));
    EXPECT_EQ(parsed, isolation) << isolation.Text();
    EXPECT_TRUE(texts.insert(isolation.Text()).second);
  }
  EXPECT_EQ((Isolation{IsolationLevel::kSeccomp, true}.Text()),
            "seccomp+netns");
  EXPECT_EQ(
      (Isolation{IsolationLevel::kRlimits, false, true, true, true}.Text()),
      "rlimits+cgroup+memory+pids");
}

TEST(IsolationTest, OtherWordsMeanNothing) {
  Isolation parsed = {IsolationLevel::kRlimits};
  for (const char* text :
       {"", "+netns", "sandbox", "seccomp+", "seccomp+disk", "seccomp netns",
        "rlimits+netns+netns", "seccomp+memory", "seccomp+netns+pids",
        "seccomp+cgroup+netns", "seccomp+cgroup+pids+memory", "Seccomp"}) {
    EXPECT_FALSE(ParseIsolation(text, &parsed)) << text;
  }
  EXPECT_EQ(parsed, (Isolation{IsolationLevel::kRlimits}));
}

// A higher level, or more parts, covers; nothing else does.
TEST(IsolationTest, CoversIsAnOrderByLevelAndParts) {
  for (const Isolation& a : Isolations()) {
    for (const Isolation& b : Isolations()) {
      const bool covers = a.level >= b.level && a.netns >= b.netns &&
                          a.cgroup >= b.cgroup && a.memory >= b.memory &&
                          a.pids >= b.pids;
      EXPECT_EQ(a.Covers(b), covers) << a.Text() << " " << b.Text();
    }
  }
}

}  // namespace
}  // namespace tilefarm
