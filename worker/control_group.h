// Control groups (cgroup v2) for untrusted processes.
//
//   DIRECTORY/        given; has no processes itself
//     candidate-1/    one for each candidate while it runs
//
// A process cannot leave its group by changing its parent, session or process
// group. The kernel's Documentation/admin-guide/cgroup-v2 describes the files.
//
// Knows the C and C++ standard libraries and Linux only: tune-runner links
// nothing else.
#ifndef TILEFARM_WORKER_CONTROL_GROUP_H_
#define TILEFARM_WORKER_CONTROL_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace tilefarm::worker {

// The variable in a runner's environment with the directory for its candidates'
// groups. Local runners get it whatever command starts them; ssh and adb do not
// pass it on.
inline constexpr char kCandidateGroupsVariable[] = "TUNE_RUNNER_CGROUP";

// A file of a group or of /proc: reads it whole, or writes to an existing one
// with one write. False: failed, with errno.
bool ReadGroupFile(const std::string& path, std::string* text);
bool WriteGroupFile(const std::string& path, const std::string& text);

// Which limits the groups in DIRECTORY can have.
struct GroupControllers {
  bool memory = false;
  bool pids = false;
};
GroupControllers EnabledControllers(const std::string& directory);

// 0: not limited.
struct GroupLimits {
  uint64_t memory_bytes = 0;  // of all its processes, without swap
  uint32_t tasks = 0;         // processes and threads
};

// How often the limits of a group took effect. All 0 if it has none.
struct GroupEvents {
  uint64_t oom_kills = 0;      // processes killed because memory ran out
  uint64_t limit_hits = 0;     // kills by its own limit, not the machine's
  uint64_t refused_tasks = 0;  // processes and threads that were refused
  GroupLimits limits;

  // Why SIGKILL ended a process; empty: memory was not the reason.
  std::string WhyKilled() const;
  // ", after 3 processes or threads beyond ..."; empty: none was refused.
  std::string Refusals() const;
};

// One group. Single-threaded. The destructor ends all processes in it, and
// removes it.
class ControlGroup {
 public:
  // Makes DIRECTORY/candidate-N with the first free N. Null, with the reason:
  // the system does not allow it, a limit cannot be set, or DIRECTORY is not in
  // a cgroup v2 hierarchy.
  static std::unique_ptr<ControlGroup> Make(const std::string& directory,
                                            const GroupLimits& limits,
                                            std::string* error);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // As fork, for a process with a single thread. The child is in the group
  // before its first instruction, or, if the system cannot do that, before this
  // returns in the child. For the child, `*joined` says whether it is in the
  // group; otherwise it must end.
  pid_t Fork(bool* joined);

  // Whether any process is in it.
  bool IsPopulated() const;
  // Kills every process in it, new ones included. False: some did not end in
  // time.
  bool End(int64_t milliseconds);
  // The events so far.
  GroupEvents Events() const;

  const std::string& path() const { return path_; }

 private:
  ControlGroup(std::string path, const GroupLimits& limits)
      : path_(std::move(path)), limits_(limits) {}

  const std::string path_;
  const GroupLimits limits_;
};

// Ends and removes every candidate-N in `directory`, whoever made it. False,
// with the reason: one still exists after the timeout.
bool RemoveLeftovers(const std::string& directory, int64_t milliseconds,
                     std::string* error);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CONTROL_GROUP_H_
