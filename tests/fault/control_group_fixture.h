// A real control group (cgroup v2) for a test, if this machine can create one.
#ifndef TILEFARM_TESTS_FAULT_CONTROL_GROUP_FIXTURE_H_
#define TILEFARM_TESTS_FAULT_CONTROL_GROUP_FIXTURE_H_

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/until.h"
#include "worker/control_group.h"

namespace tilefarm::worker {

inline std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The cgroup v2 group of a process, as a path in the hierarchy.
inline std::string GroupOf(const std::string& pid) {
  std::istringstream lines(TextOf("/proc/" + pid + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return "";
}

// 0: there is no such process.
inline pid_t ParentOf(pid_t pid) {
  const std::string stat = TextOf("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(") ");
  // After the name: the state, then the parent.
  return name_end == std::string::npos ? 0
                                       : std::stoi(stat.substr(name_end + 4));
}

// An empty group for this test, at the top of the hierarchy, where controllers
// are available. The destructor ends all processes in it and removes it.
class TestGroup {
 public:
  TestGroup() {
    std::ifstream mounts("/proc/self/mountinfo");
    std::string mount;
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream fields(line);
      std::string id, parent, device, root, point;
      fields >> id >> parent >> device >> root >> point;
      if (line.find(" - cgroup2 ") != std::string::npos) mount = point;
    }
    if (mount.empty()) {
      why_not_ = "no cgroup v2 hierarchy is mounted";
      return;
    }
    static int count = 0;
    const std::string path = mount + "/tilefarm-test-" +
                             std::to_string(getpid()) + "-" +
                             std::to_string(++count);
    if (mkdir(path.c_str(), 0755) == 0) {
      path_ = path;
    } else {
      why_not_ = path + ": " + std::strerror(errno);
    }
  }
  ~TestGroup() {
    if (path_.empty()) return;
    std::string error;
    EXPECT_TRUE(RemoveLeftovers(path_, 20000, &error)) << error;
    Write("cgroup.kill", "1");
    EXPECT_TRUE(Until([&] {
      rmdir((path_ + "/worker").c_str());
      return rmdir(path_.c_str()) == 0;
    })) << path_
        << ": " << std::strerror(errno);
  }
  TestGroup(const TestGroup&) = delete;
  TestGroup& operator=(const TestGroup&) = delete;

  // Empty: there is none, and why_not() gives the reason.
  const std::string& path() const { return path_; }
  const std::string& why_not() const { return why_not_; }
  // Enables a controller for groups inside it, if the machine can.
  bool Enable(const std::string& controller) const {
    if (path_.empty()) return false;
    Write("cgroup.subtree_control", "+" + controller);
    const GroupControllers enabled = EnabledControllers(path_);
    return controller == "memory" ? enabled.memory : enabled.pids;
  }
  std::vector<std::string> Candidates() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with("candidate-")) {
        found.push_back(entry.path());
      }
    }
    return found;
  }
  // The processes in all candidates' groups.
  std::vector<pid_t> Processes() const {
    std::vector<pid_t> pids;
    for (const std::string& group : Candidates()) {
      std::istringstream procs(TextOf(group + "/cgroup.procs"));
      for (pid_t pid; procs >> pid;) pids.push_back(pid);
    }
    return pids;
  }

 private:
  bool Write(const std::string& file, const std::string& text) const {
    std::ofstream out(path_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }

  std::string path_;
  std::string why_not_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_TESTS_FAULT_CONTROL_GROUP_FIXTURE_H_
