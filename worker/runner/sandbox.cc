#include "worker/runner/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/device_libraries.h"
#include "worker/confinement.h"

namespace tilefarm::worker {
namespace {

constexpr int kPriority = -10;
// Limits of a control group: memory in addition to the candidate's, and threads
// of the candidate and of libraries that it calls.
constexpr uint64_t kMemoryBesideBuffers = uint64_t{32} << 20;
constexpr uint32_t kTasks = 64;
constexpr uint32_t kTasksOfACpu = 8;
// Of the child that uses a device. The driver opens a file for each mapping,
// and shares memory with its other processes in files of /dev/shm.
constexpr uint64_t kDeviceFileBytes = uint64_t{64} << 20;
constexpr uint64_t kDeviceFiles = 4096;
const std::vector<std::string> kDeviceFolders = {"/dev"};
// Of the folder for the files of its driver. PoCL keeps tens of KiB and about
// 10 files for each kernel.
constexpr uint64_t kFolderBytes = uint64_t{256} << 20;
constexpr uint64_t kFolderFiles = 1 << 16;
// An empty folder over which each child mounts its own, which ends with it. It
// stays.
constexpr char kMemoryFolder[] = "/tmp/tilefarm-device";
// What tells drivers where to make files.
constexpr const char* kFolderVariables[] = {"HOME", "POCL_CACHE_DIR", "TMPDIR",
                                            "XDG_CACHE_HOME"};

// Enters a directory without a name: it is empty, nothing can be made in it,
// and it need not be removed.
void EnterEmptyDirectory() {
  char path[] = "/tmp/tilefarm-runner-XXXXXX";
  if (mkdtemp(path) != nullptr) {
    const bool there = chdir(path) == 0;
    rmdir(path);
    if (there) return;
  }
  // Nobody can make a file here either.
  if (chdir("/proc/self/fdinfo") != 0 && chdir("/") != 0) return;
}

// Mounts the folder in memory, for user nobody if this process is root. False:
// the system does not allow it.
bool MakeMemoryFolder() {
  if (!EnterNamespaces(CLONE_NEWNS)) return false;
  mkdir(kMemoryFolder, 0755);
  if (!MountInMemory(kMemoryFolder, kFolderBytes, kFolderFiles)) return false;
  // Root that cannot become nobody keeps the folder, so failure is no error.
  const int unused =
      geteuid() == 0 ? chown(kMemoryFolder, kNobody, kNobody) : 0;
  static_cast<void>(unused);
  return true;
}

uint32_t CpuCount(const ChildLimits& limits) {
  if (!limits.cpus.empty()) return static_cast<uint32_t>(limits.cpus.size());
  return static_cast<uint32_t>(
      std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

bool CallsALibrary(const std::string& artifact) {
  return std::any_of(std::begin(kDeviceLibraries), std::end(kDeviceLibraries),
                     [&](const DeviceLibrary& library) {
                       return memmem(artifact.data(), artifact.size(),
                                     library.file,
                                     strlen(library.file)) != nullptr;
                     });
}

Sandbox::Sandbox(const Isolation& most, const std::string& groups,
                 bool for_device)
    : groups_(groups), for_device_(for_device) {
  EnterEmptyDirectory();
  isolation_.netns = most.netns && EnterNamespaces(CLONE_NEWNET);
  if (most.netns && !isolation_.netns) {
    AddShortfall("no network namespace may be made");
  }
  if (most.cgroup && !groups.empty()) {
    const GroupControllers enabled = EnabledControllers(groups);
    isolation_.cgroup = true;
    isolation_.memory = most.memory && enabled.memory;
    isolation_.pids = most.pids && enabled.pids;
    // A process that hangs in the kernel keeps its group; other groups are
    // free.
    std::string error;
    if (!RemoveLeftovers(groups, kReapMs, &error)) {
      AddShortfall("left by another runner: " + error);
    }
    error = TryGroup();
    if (!error.empty()) {
      isolation_.cgroup = isolation_.memory = isolation_.pids = false;
      AddShortfall("no control group: " + error);
    }
  }
  isolation_.level = std::min(most.level, IsolationLevel::kRlimits);
  device_confinement_ = isolation_.level == IsolationLevel::kNone
                            ? DeviceConfinement::kNone
                            : DeviceConfinement::kRlimits;
  if (most.level <= IsolationLevel::kRlimits) return;
  std::string error = loading_.Build(SyscallFilter::Kind::kLoading);
  if (error.empty()) error = running_.Build(SyscallFilter::Kind::kRunning);
  if (error.empty() && !Try(most.level)) error = "a filter cannot be installed";
  if (error.empty() && for_device) {
    error = device_.Build(SyscallFilter::Kind::kDevice);
    if (error.empty()) error = linker_.Build(SyscallFilter::Kind::kLinker);
  }
  if (error.empty()) {
    isolation_.level = most.level;
    device_confinement_ = DeviceConfinement::kSeccompLibraries;
  } else {
    AddShortfall("no system call filter: " + error);
  }
}

Isolation Sandbox::IsolationOf(bool calls_a_library) const {
  Isolation isolation = isolation_;
  if (isolation.level <= IsolationLevel::kSeccompLibraries) return isolation;
  // An artifact that names a library without need has the weaker filter, and
  // its record says so.
  if (calls_a_library) {
    isolation.level = IsolationLevel::kSeccompLibraries;
  }
  return isolation;
}

std::unique_ptr<ControlGroup> Sandbox::MakeGroup(const ChildLimits& limits,
                                                 std::string* error) const {
  error->clear();
  if (!isolation_.cgroup) return nullptr;
  GroupLimits group;
  if (isolation_.memory && limits.memory_bytes > 0) {
    // RLIMIT_AS counts addresses; the group counts memory, which includes page
    // tables, kernel stacks and copies of our pages.
    group.memory_bytes =
        limits.memory_bytes + limits.memory_bytes / 64 + kMemoryBesideBuffers;
  }
  if (isolation_.pids) {
    group.tasks = kTasks + kTasksOfACpu * CpuCount(limits);
  }
  return ControlGroup::Make(groups_, group, error);
}

bool Sandbox::Enter(const ChildLimits& limits, pid_t parent,
                    const std::vector<int>& kept_fds,
                    volatile int32_t* refused) const {
  setsid();
  if (!CloseAllBut(kept_fds)) return false;  // 1 is the pipe to the worker
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  // If permitted, takes precedence over other processes on this core.
  setpriority(PRIO_PROCESS, 0, kPriority);
  unsetenv("TILEFARM_NUM_THREADS");
  // RLIMIT_NPROC is not set: it does not limit root, and counts all processes
  // of our user. The filter refuses new processes, and the address space for
  // stacks limits threads.
  if (limits.memory_bytes > 0) {
    LowerLimit(RLIMIT_AS, MappedBytes() + limits.memory_bytes);
  }
  LowerLimit(RLIMIT_CORE, 0);
  LowerLimit(RLIMIT_FSIZE, 0);
  LowerLimit(RLIMIT_NOFILE, 64);
  // A limit for all threads together, in case the wall-clock limit fails.
  LowerLimit(RLIMIT_CPU,
             (uint64_t{limits.timeout_ms} / 1000 + 2) * CpuCount(limits));

  const bool filters = isolation_.level > IsolationLevel::kRlimits;
  if (isolation_.level >= IsolationLevel::kRlimits) {
    if (!GiveUpPrivileges()) return false;
  }
  // Set after the change of user, which resets it. It refers to the thread that
  // forked us, which is the only one of the runner.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  if (!filters) return true;
  NoteRefusedCalls(refused);
  return loading_.Install();
}

Isolation Sandbox::DeviceIsolation() const {
  Isolation isolation = isolation_;
  switch (device_confinement_) {
    case DeviceConfinement::kNone:
      isolation.level = IsolationLevel::kNone;
      break;
    case DeviceConfinement::kRlimits:
    case DeviceConfinement::kLinker:
      isolation.level = IsolationLevel::kRlimits;
      break;
    case DeviceConfinement::kSeccompLibraries:
      isolation.level = IsolationLevel::kSeccompLibraries;
      break;
  }
  return isolation;
}

void Sandbox::Confine(DeviceConfinement confinement, const std::string& why) {
  device_confinement_ = confinement;
  if (!why.empty()) AddShortfall(why);
}

std::string Sandbox::NewDeviceFolder() const {
  uint64_t name = 0;
  if (device_confinement_ == DeviceConfinement::kSeccompLibraries ||
      getrandom(&name, sizeof name, 0) != sizeof name) {
    return "";
  }
  char path[64];
  snprintf(path, sizeof path, "%s-%016llx", kMemoryFolder,
           static_cast<unsigned long long>(name));
  return path;
}

bool Sandbox::EnterForDevice(pid_t parent, const std::vector<int>& kept_fds,
                             const std::string& folder) const {
  setsid();
  if (!CloseAllBut(kept_fds)) return false;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  setpriority(PRIO_PROCESS, 0, kPriority);
  unsetenv("TILEFARM_NUM_THREADS");
  LowerLimit(RLIMIT_CORE, 0);
  LowerLimit(RLIMIT_FSIZE, kDeviceFileBytes);
  LowerLimit(RLIMIT_NOFILE, kDeviceFiles);
  std::string own_folder = folder;
  bool has_folder = folder.empty();
  if (!has_folder && device_confinement_ >= DeviceConfinement::kRlimits &&
      MakeMemoryFolder()) {
    own_folder = kMemoryFolder;
    has_folder = true;
  }
  if (device_confinement_ >= DeviceConfinement::kRlimits &&
      !GiveUpPrivileges()) {
    return false;
  }
  if (!has_folder && mkdir(folder.c_str(), 0700) != 0) return false;
  if (!own_folder.empty()) {
    for (const char* variable : kFolderVariables) {
      setenv(variable, own_folder.c_str(), 1);
    }
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  // Without Landlock, what user nobody may write is what it can write.
  if (device_confinement_ >= DeviceConfinement::kLinker) {
    ForbidWritingBut(kDeviceFolders, own_folder);
  }
  return true;
}

bool Sandbox::CloseForDevice() const {
  switch (device_confinement_) {
    case DeviceConfinement::kNone:
    case DeviceConfinement::kRlimits:
      return true;
    case DeviceConfinement::kLinker:
      return linker_.Install();
    case DeviceConfinement::kSeccompLibraries:
      return device_.Install();
  }
  return false;
}

bool Sandbox::Close(IsolationLevel level,
                    const std::vector<int>& kept_fds) const {
  for (const int fd : kept_fds) close(fd);
  return level != IsolationLevel::kSeccomp || running_.Install();
}

bool Sandbox::Try(IsolationLevel level) const {
  Sandbox trial = *this;
  trial.isolation_.level = level;
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return false;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    static volatile int32_t refused;
    bool ok = trial.Enter({}, parent, {ready[1]}, &refused);
    ok = ok && trial.Close(level, {});
    const char byte = 1;
    if (!ok || write(ready[1], &byte, 1) != 1) _exit(1);
    // The child waits until its parent ends it, as a process of another user.
    for (;;) {
      const timespec hour = {3600, 0};
      nanosleep(&hour, nullptr);
    }
  }
  close(ready[1]);
  char byte = 0;
  const bool entered = child > 0 && read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  if (child < 0) return false;
  const bool ended = kill(child, SIGKILL) == 0;
  int status = 0;
  while (ended && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return entered && ended && WIFSIGNALED(status);
}

std::string Sandbox::TryGroup() const {
  std::string error;
  const std::unique_ptr<ControlGroup> group = MakeGroup({}, &error);
  if (group == nullptr) return error;
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return strerror(errno);
  bool joined = false;
  const pid_t child = group->Fork(&joined);
  if (child == 0) {
    const char byte = joined ? 1 : 0;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      const timespec hour = {3600, 0};
      nanosleep(&hour, nullptr);
    }
  }
  if (child < 0) error = strerror(errno);
  close(ready[1]);
  char byte = 0;
  const bool entered = child > 0 && read(ready[0], &byte, 1) == 1 && byte == 1;
  close(ready[0]);
  if (child < 0) {
    return "no process can be made in " + group->path() + ": " + error;
  }
  // Ends the child by its group alone, as descendants of children are ended.
  const bool ended = entered && group->IsPopulated() && group->End(kReapMs);
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!entered) return "no process enters " + group->path();
  if (!ended) return "what is in " + group->path() + " cannot be ended";
  return "";
}

void Sandbox::AddShortfall(const std::string& what) {
  shortfall_ += (shortfall_.empty() ? "" : "; ") + what;
}

}  // namespace tilefarm::worker
