// Assigns cores: a measurement has its cores for itself, everything else runs
// on other cores, and workers whose cores overlap take turns.
#ifndef TILEFARM_WORKER_CPUS_H_
#define TILEFARM_WORKER_CPUS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::worker {

using CpuList = std::vector<uint32_t>;  // sorted, no repeats

// "0-3,8". InvalidArgument: not such a list.
absl::StatusOr<CpuList> ParseCpuList(std::string_view text);
// The cores that the calling thread may run on.
CpuList AllowedCpus();
// Restricts the calling thread, and those that it starts. FailedPrecondition:
// the system permits none of the cores.
absl::Status RunOnCpus(const CpuList& cpus);

// Restricts all threads of a process, and those that they start. Ignores a
// process that has ended, and threads of other users.
void KeepProcessOnCpus(pid_t pid, const CpuList& cpus);

// The cores for a measurement: the last `cores` of `all`, or all of them.
CpuList MeasurementCpus(const CpuList& all, uint32_t cores);
// `all` without the last core, which single-core measurements use; all if there
// is only one.
CpuList OtherCpus(const CpuList& all);
// The cores of `all` that are not in `taken`. Both are sorted.
CpuList Without(const CpuList& all, const CpuList& taken);

// Locks one file per core or GPU, so that measurements of all workers on this
// machine take turns on a core. Released by the destructor, or by the system
// when the process ends.
class CpuLock {
 public:
  CpuLock() = default;
  CpuLock(CpuLock&& other) noexcept : fds_(std::move(other.fds_)) {
    other.fds_.clear();
  }
  CpuLock& operator=(CpuLock&& other) noexcept {
    std::swap(fds_, other.fds_);
    return *this;
  }
  ~CpuLock();

  // Waits until `cpus` are free, in ascending order, so that two workers never
  // wait for each other. Makes `directory` if it is missing. Cancelled:
  // `give_up` became true while waiting.
  static absl::StatusOr<CpuLock> Acquire(const std::string& directory,
                                         const CpuList& cpus,
                                         const std::function<bool()>& give_up);

  // Locks the GPU with this bus id for as long as the lock lives. Does not
  // wait. AlreadyExists: another worker measures on it.
  static absl::StatusOr<CpuLock> AcquireGpu(const std::string& directory,
                                            const std::string& bus_id);

  // Whether another worker waits in Acquire for one of `cpus`.
  static bool Wanted(const std::string& directory, const CpuList& cpus);

 private:
  std::vector<int> fds_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CPUS_H_
