// Which cores do what: a measurement owns its cores, everything else keeps
// off them, and workers whose cores overlap take turns.
#ifndef TILEFARM_WORKER_CPUS_H_
#define TILEFARM_WORKER_CPUS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::worker {

using CpuList = std::vector<uint32_t>;  // sorted, no repeats

// "0-3,8". InvalidArgument where it is not such a list.
absl::StatusOr<CpuList> ParseCpuList(std::string_view text);
// Those the calling thread may run on.
CpuList AllowedCpus();
// Of the calling thread and those it starts. FailedPrecondition where the
// system has none of them for us.
absl::Status RunOnCpus(const CpuList& cpus);

// Of all threads of a process, and those they start. Quiet where the process
// is gone or has a thread that is not ours to move.
void KeepProcessOnCpus(pid_t pid, const CpuList& cpus);

// The last `cores` of `all`: where measurements run. All where there are not
// more.
CpuList MeasurementCpus(const CpuList& all, uint32_t cores);
// `all` without its last one, which single-core measurements use; all of
// them where there is one only.
CpuList OtherCpus(const CpuList& all);
// Those of `all` that are not in `taken`; both sorted.
CpuList Without(const CpuList& all, const CpuList& taken);

// Holds one lock file per core, so that measurements of all workers of this
// machine on a core take turns. Released by the destructor, and by the system
// when the process dies.
class CpuLock {
 public:
  CpuLock() = default;
  CpuLock(CpuLock&& other) noexcept : fds_(std::move(other.fds_)) {
    other.fds_.clear();
  }
  CpuLock& operator=(CpuLock&&) = delete;
  ~CpuLock();

  // Waits until `cpus` are free; in ascending order, so that two workers
  // never wait for each other. `directory` is made where it is missing.
  // Cancelled where `give_up` became true while waiting.
  static absl::StatusOr<CpuLock> Acquire(const std::string& directory,
                                         const CpuList& cpus,
                                         const std::function<bool()>& give_up);

  // Whether someone waits in Acquire for one of `cpus`.
  static bool Wanted(const std::string& directory, const CpuList& cpus);

 private:
  std::vector<int> fds_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_CPUS_H_
