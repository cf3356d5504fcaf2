// Control groups (cgroup v2) around processes that are not to be trusted.
//
//   DIRECTORY/        given; nothing runs in it itself
//     candidate-1/    one for each candidate, for as long as it runs
//
// A process cannot leave its group by changing its parent, session or process
// group. What the files mean: the kernel's Documentation/admin-guide/cgroup-v2.
//
// Knows the C and C++ standard libraries and Linux only: tune-runner links
// nothing else.
#ifndef TILEFARM_WORKER_CONTROL_GROUP_H_
#define TILEFARM_WORKER_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tilefarm::worker {

// In a runner's environment: the directory for its candidates' groups. Local
// runners are given it whatever command starts them; ssh and adb pass it to
// none.
inline constexpr char kCandidateGroupsVariable[] = "TUNE_RUNNER_CGROUP";

// A file of a group or of /proc: read whole, or written to as one write where
// it is there. False, with errno.
bool ReadGroupFile(const std::string& path, std::string* text);
bool WriteGroupFile(const std::string& path, const std::string& text);

// What DIRECTORY lets the groups in it limit.
struct GroupControllers {
  bool memory = false;
  bool pids = false;
};
GroupControllers EnabledControllers(const std::string& directory);

// 0: not limited.
struct GroupLimits {
  uint64_t memory_bytes = 0;  // of all its processes; swap: none
  uint32_t tasks = 0;         // processes and threads
};

// What the limits of a group did. All 0 where it has none.
struct GroupEvents {
  uint64_t oom_kills = 0;      // processes ended since memory ran out
  uint64_t limit_hits = 0;     // that its own limit was why; else the machine's
  uint64_t refused_tasks = 0;  // processes and threads that were not made
  GroupLimits limits;

  // What it means for whom SIGKILL ended; empty where memory was not why.
  std::string WhyKilled() const;
  // ", after 3 processes or threads beyond ..."; empty where none was refused.
  std::string Refusals() const;
};

// One group. Single-threaded. The destructor ends what is in it, and removes
// it.
class ControlGroup {
 public:
  // DIRECTORY/candidate-N with the first N that is free. Null, and why, where
  // the system does not let us, a limit cannot be set, or DIRECTORY is none of
  // a cgroup v2 hierarchy.
  static std::unique_ptr<ControlGroup> Make(const std::string& directory,
                                            const GroupLimits& limits,
                                            std::string* error);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // As fork, for a process of a single thread, with the child in the group
  // before its first instruction, or where the system cannot do that, before
  // this returns in it. Only the child looks at `*joined`: false where it is
  // not in the group, so that it must end.
  pid_t Fork(bool* joined);

  // Whether any process in it runs.
  bool IsPopulated() const;
  // Ends every process in it at once, new ones included. False where some do
  // not end in time.
  bool End(int64_t milliseconds);
  // What happened so far.
  GroupEvents Events() const;

  const std::string& path() const { return path_; }

 private:
  ControlGroup(std::string path, const GroupLimits& limits)
      : path_(std::move(path)), limits_(limits) {}

  const std::string path_;
  const GroupLimits limits_;
};

// Ends and removes every candidate-N in `directory`, whoever made it. False,
// and why, where one is still there after so long.
bool RemoveLeftovers(const std::string& directory, int64_t milliseconds,
                     std::string* error);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CONTROL_GROUP_H_
