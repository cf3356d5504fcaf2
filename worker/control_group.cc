#include "worker/control_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sanitizers.h"
#include "worker/monotonic.h"

namespace tilefarm::worker {

bool ReadGroupFile(const std::string& path, std::string* text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  text->clear();
  char bytes[4096];
  ssize_t n = 0;
  while ((n = read(fd, bytes, sizeof bytes)) > 0) {
    text->append(bytes, static_cast<size_t>(n));
  }
  const int error = errno;
  close(fd);
  errno = error;
  return n == 0;
}

bool WriteGroupFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = write(fd, text.data(), text.size());
  const int error = n < 0 ? errno : EIO;
  close(fd);
  errno = error;
  return n == static_cast<ssize_t>(text.size());
}

namespace {

constexpr std::string_view kPrefix = "candidate-";
constexpr int kMostGroups = 1000;
// How long the destructor waits for processes that it has killed.
constexpr int64_t kRemovalMs = 1000;

void Pause() {
  const timespec millisecond{0, 1000000};
  nanosleep(&millisecond, nullptr);
}

// The number after "KEY " at the beginning of a line; `otherwise`: there is
// none.
uint64_t ValueOf(const std::string& text, const std::string& key,
                 uint64_t otherwise) {
  const std::string start = key + " ";
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, start.size(), start) == 0) {
      return strtoull(text.c_str() + at + start.size(), nullptr, 10);
    }
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return otherwise;
}

bool HasWord(const std::string& text, const std::string& word) {
  const std::string padded = " " + text.substr(0, text.find('\n')) + " ";
  return padded.find(" " + word + " ") != std::string::npos;
}

std::vector<std::string> Subdirectories(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      names.push_back(name);
    }
  }
  closedir(dir);
  return names;
}

// Also kills the processes of the groups below.
bool Populated(const std::string& group) {
  std::string text;
  if (!ReadGroupFile(group + "/cgroup.events", &text)) return errno != ENOENT;
  return ValueOf(text, "populated", 1) != 0;
}

void KillEach(const std::string& group) {
  std::string text;
  if (ReadGroupFile(group + "/cgroup.procs", &text)) {
    const char* at = text.c_str();
    for (char* end = nullptr;; at = end) {
      const long pid = strtol(at, &end, 10);
      if (end == at) break;
      // 0: a process of another pid namespace.
      if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }
  for (const std::string& name : Subdirectories(group)) {
    KillEach(group + "/" + name);
  }
}

bool EndGroup(const std::string& group, int64_t milliseconds) {
  const int64_t deadline = MonotonicMs() + milliseconds;
  bool at_once = false;
  for (bool first = true; Populated(group); first = false) {
    if (first) at_once = WriteGroupFile(group + "/cgroup.kill", "1");
    if (!at_once) {
      // For Linux before 5.14: a frozen process makes no new ones, but can be
      // killed.
      WriteGroupFile(group + "/cgroup.freeze", "1");
      KillEach(group);
    }
    if (MonotonicMs() >= deadline) return false;
    Pause();
  }
  return true;
}

// Also removes the groups in it, which only a process of the group can have
// made.
bool RemoveTree(const std::string& group) {
  for (const std::string& name : Subdirectories(group)) {
    RemoveTree(group + "/" + name);
  }
  return rmdir(group.c_str()) == 0 || errno == ENOENT;
}

bool EndAndRemove(const std::string& group, int64_t milliseconds) {
  const int64_t deadline = MonotonicMs() + milliseconds;
  if (!EndGroup(group, milliseconds)) {
    errno = EBUSY;
    return false;
  }
  // The last process may still be ending.
  while (!RemoveTree(group)) {
    if (errno != EBUSY || MonotonicMs() >= deadline) return false;
    Pause();
  }
  return true;
}

// Sets a limit. Does nothing if the kernel lacks it, or it is switched off.
bool WriteWhereThere(const std::string& path, const std::string& text) {
  return WriteGroupFile(path, text) || errno == ENOENT;
}

bool SetLimits(const std::string& group, const GroupLimits& limits,
               std::string* error) {
  const auto failed = [&](const char* file) {
    *error = group + file + ": " + strerror(errno);
    return false;
  };
  if (limits.memory_bytes > 0) {
    if (!WriteGroupFile(group + "/memory.max",
                        std::to_string(limits.memory_bytes))) {
      return failed("/memory.max");
    }
    if (!WriteWhereThere(group + "/memory.swap.max", "0")) {
      return failed("/memory.swap.max");
    }
    if (!WriteWhereThere(group + "/memory.oom.group", "1")) {
      return failed("/memory.oom.group");
    }
  }
  if (limits.tasks > 0 &&
      !WriteGroupFile(group + "/pids.max", std::to_string(limits.tasks))) {
    return failed("/pids.max");
  }
  return true;
}

// The kernel's struct clone_args, as of Linux 5.7.
struct CloneArguments {
  uint64_t flags = 0, pidfd = 0, child_tid = 0, parent_tid = 0;
  uint64_t exit_signal = SIGCHLD, stack = 0, stack_size = 0, tls = 0;
  uint64_t set_tid = 0, set_tid_size = 0, cgroup = 0;
};
constexpr uint64_t kChildClearTid = 0x00200000;  // CLONE_CHILD_CLEARTID
constexpr uint64_t kChildSetTid = 0x01000000;    // CLONE_CHILD_SETTID
constexpr uint64_t kIntoGroup = 0x200000000;     // CLONE_INTO_CGROUP

// The address of the thread id in the C library, which must change in a forked
// child. The C library has told it to the kernel. 0: not known.
[[maybe_unused]] uint64_t ThreadIdAddress() {
#if defined(PR_GET_TID_ADDRESS)
  // The kernel writes a pointer of the kernel's size.
  uint64_t address = 0;
  if (prctl(PR_GET_TID_ADDRESS, &address, 0, 0, 0) != 0 || address == 0) {
    return 0;
  }
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (*reinterpret_cast<pid_t*>(static_cast<uintptr_t>(address)) == tid) {
    return address;
  }
#endif
  return 0;
}

// As fork() of the C library, but into a group. -1 with errno: failed; ENOSYS:
// not possible in this way.
pid_t ForkInto([[maybe_unused]] const std::string& group) {
  errno = ENOSYS;
  // Other C libraries keep more state of a process than that id, and a
  // sanitizer must see each fork.
#if defined(SYS_clone3) && defined(__GLIBC__) && !TILEFARM_SANITIZED
  CloneArguments arguments;
  arguments.child_tid = ThreadIdAddress();
  if (arguments.child_tid == 0) return errno = ENOSYS, -1;
  const int fd = open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  arguments.flags = kChildClearTid | kChildSetTid | kIntoGroup;
  arguments.cgroup = static_cast<uint64_t>(fd);
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  const int error = errno;
  close(fd);
  errno = error;
  return static_cast<pid_t>(child);
#else
  return -1;
#endif
}

}  // namespace

GroupControllers EnabledControllers(const std::string& directory) {
  std::string text;
  if (!ReadGroupFile(directory + "/cgroup.subtree_control", &text)) return {};
  return {HasWord(text, "memory"), HasWord(text, "pids")};
}

std::string GroupEvents::WhyKilled() const {
  if (oom_kills == 0) return "";
  if (limit_hits == 0) return "was killed since this machine ran out of memory";
  return "was killed since it needed more memory than its " +
         std::to_string(limits.memory_bytes >> 20) + " MiB";
}

std::string GroupEvents::Refusals() const {
  if (refused_tasks == 0) return "";
  return ", after " + std::to_string(refused_tasks) +
         " processes or threads beyond the " + std::to_string(limits.tasks) +
         " that it may have were refused";
}

std::unique_ptr<ControlGroup> ControlGroup::Make(const std::string& directory,
                                                 const GroupLimits& limits,
                                                 std::string* error) {
  for (int n = 1; n <= kMostGroups; ++n) {
    std::string path =
        directory + "/" + std::string(kPrefix) + std::to_string(n);
    if (mkdir(path.c_str(), 0755) != 0) {
      // The name of a group that could not be removed yet.
      if (errno == EEXIST) continue;
      *error = path + ": " + strerror(errno);
      return nullptr;
    }
    std::unique_ptr<ControlGroup> group(
        new ControlGroup(std::move(path), limits));
    if (access((group->path_ + "/cgroup.procs").c_str(), F_OK) != 0) {
      *error = directory + " is no control group";
      return nullptr;
    }
    if (!SetLimits(group->path_, limits, error)) return nullptr;
    return group;
  }
  *error = directory + " is full of groups that cannot be removed";
  return nullptr;
}

ControlGroup::~ControlGroup() { EndAndRemove(path_, kRemovalMs); }

pid_t ControlGroup::Fork(bool* joined) {
  *joined = true;
  pid_t child = ForkInto(path_);
  if (child >= 0) return child;
  // For systems that lack the call or the argument, or do not permit it. Moving
  // a process takes milliseconds; creating one in the group does not.
  if (errno != ENOSYS && errno != EINVAL && errno != E2BIG && errno != EPERM) {
    return -1;
  }
  child = fork();
  if (child == 0) *joined = WriteGroupFile(path_ + "/cgroup.procs", "0");
  return child;
}

bool ControlGroup::IsPopulated() const { return Populated(path_); }

bool ControlGroup::End(int64_t milliseconds) {
  return EndGroup(path_, milliseconds);
}

GroupEvents ControlGroup::Events() const {
  GroupEvents events;
  events.limits = limits_;
  std::string text;
  if (limits_.memory_bytes > 0 &&
      ReadGroupFile(path_ + "/memory.events", &text)) {
    events.oom_kills = ValueOf(text, "oom_kill", 0);
    events.limit_hits = ValueOf(text, "oom", 0);
  }
  if (limits_.tasks > 0 && ReadGroupFile(path_ + "/pids.events", &text)) {
    events.refused_tasks = ValueOf(text, "max", 0);
  }
  return events;
}

bool RemoveLeftovers(const std::string& directory, int64_t milliseconds,
                     std::string* error) {
  const int64_t deadline = MonotonicMs() + milliseconds;
  bool all = true;
  for (const std::string& name : Subdirectories(directory)) {
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    const std::string group = directory + "/" + name;
    if (EndAndRemove(group, std::max<int64_t>(0, deadline - MonotonicMs())))
      continue;
    *error = group + ": " + strerror(errno);
    all = false;
  }
  return all;
}

}  // namespace tilefarm::worker
