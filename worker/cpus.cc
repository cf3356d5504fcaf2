#include "worker/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tilefarm::worker {
namespace {

constexpr uint32_t kMaxCpu = 4095;
constexpr absl::Duration kLockPoll = absl::Milliseconds(1);

// A set of any number of CPUs, in the form of the system call.
class CpuMask {
 public:
  CpuMask() : set_(CPU_ALLOC(kMaxCpu + 1)) { CPU_ZERO_S(bytes(), set_); }
  ~CpuMask() { CPU_FREE(set_); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;
  cpu_set_t* get() { return set_; }
  static size_t bytes() { return CPU_ALLOC_SIZE(kMaxCpu + 1); }

 private:
  cpu_set_t* set_;
};

}  // namespace

absl::StatusOr<CpuList> ParseCpuList(std::string_view text) {
  const absl::string_view view(text.data(), text.size());
  CpuList cpus;
  for (absl::string_view part : absl::StrSplit(view, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    uint32_t low = 0, high = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &low) ||
        !absl::SimpleAtoi(ends.back(), &high) || low > high || high > kMaxCpu) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", view, "\" is not a list of cores such as 0-3,8"));
    }
    for (uint32_t cpu = low; cpu <= high; ++cpu) cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

CpuList AllowedCpus() {
  CpuMask mask;
  CpuList cpus;
  if (sched_getaffinity(0, CpuMask::bytes(), mask.get()) != 0) return {0};
  for (uint32_t cpu = 0; cpu <= kMaxCpu; ++cpu) {
    if (CPU_ISSET_S(cpu, CpuMask::bytes(), mask.get())) cpus.push_back(cpu);
  }
  return cpus;
}

absl::Status RunOnCpus(const CpuList& cpus) {
  CpuMask mask;
  for (uint32_t cpu : cpus) CPU_SET_S(cpu, CpuMask::bytes(), mask.get());
  if (sched_setaffinity(0, CpuMask::bytes(), mask.get()) != 0) {
    return absl::FailedPreconditionError("none of these cores is ours");
  }
  return absl::OkStatus();
}

void KeepProcessOnCpus(pid_t pid, const CpuList& cpus) {
  CpuMask mask;
  for (uint32_t cpu : cpus) CPU_SET_S(cpu, CpuMask::bytes(), mask.get());
  std::error_code error;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(task.path().filename().string(), &thread)) {
      sched_setaffinity(thread, CpuMask::bytes(), mask.get());
    }
  }
}

CpuList MeasurementCpus(const CpuList& all, uint32_t cores) {
  if (cores >= all.size()) return all;
  return CpuList(all.end() - std::max<uint32_t>(cores, 1), all.end());
}

CpuList OtherCpus(const CpuList& all) {
  if (all.size() < 2) return all;
  return CpuList(all.begin(), all.end() - 1);
}

CpuList Without(const CpuList& all, const CpuList& taken) {
  CpuList rest;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(),
                      std::back_inserter(rest));
  return rest;
}

namespace {

void MakeLockDirectory(const std::string& directory) {
  // Workers of other users use the same files.
  if (mkdir(directory.c_str(), 0777) == 0) chmod(directory.c_str(), 01777);
}

// Opens one of the lock files of a core, and makes it if it is missing.
int OpenLockFile(const std::string& path) {
  // An existing file is opened without O_CREAT: in a sticky directory the
  // kernel may refuse that for another user's file.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 || errno != ENOENT) return fd;
  return open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
}

std::string LockPath(const std::string& directory, uint32_t cpu) {
  return absl::StrCat(directory, "/cpu", cpu, ".lock");
}

// A lock that all workers that wait for the core hold as shared.
std::string WaitPath(const std::string& directory, uint32_t cpu) {
  return absl::StrCat(directory, "/cpu", cpu, ".wanted");
}

}  // namespace

CpuLock::~CpuLock() {
  for (int fd : fds_) close(fd);
}

absl::StatusOr<CpuLock> CpuLock::AcquireGpu(const std::string& directory,
                                            const std::string& bus_id) {
  MakeLockDirectory(directory);
  std::string name = bus_id;
  // It is what a runner said.
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !absl::ascii_isalnum(c); },
      '-');
  const std::string path = absl::StrCat(directory, "/gpu-", name, ".lock");
  const int fd = OpenLockFile(path);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  CpuLock lock;
  lock.fds_.push_back(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("another worker measures on it (", path, " is locked)"));
  }
  return lock;
}

absl::StatusOr<CpuLock> CpuLock::Acquire(const std::string& directory,
                                         const CpuList& cpus,
                                         const std::function<bool()>& give_up) {
  MakeLockDirectory(directory);
  CpuLock lock;
  for (uint32_t cpu : cpus) {
    const std::string path = LockPath(directory, cpu);
    const int fd = OpenLockFile(path);
    if (fd < 0) return absl::ErrnoToStatus(errno, path);
    lock.fds_.push_back(fd);
    CpuLock wanted;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return absl::ErrnoToStatus(errno, path);
      }
      if (give_up()) return absl::CancelledError("waiting for the cores");
      if (wanted.fds_.empty()) {
        const int wait_fd = OpenLockFile(WaitPath(directory, cpu));
        if (wait_fd >= 0) {
          wanted.fds_.push_back(wait_fd);
          flock(wait_fd, LOCK_SH | LOCK_NB);
        }
      }
      absl::SleepFor(kLockPoll);
    }
  }
  return lock;
}

bool CpuLock::Wanted(const std::string& directory, const CpuList& cpus) {
  for (uint32_t cpu : cpus) {
    const int fd = open(WaitPath(directory, cpu).c_str(),
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    const bool waited = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    if (waited) return true;
  }
  return false;
}

}  // namespace tilefarm::worker
