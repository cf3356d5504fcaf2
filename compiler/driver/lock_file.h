// Lock files: what tunec chose for every function, so that a later build makes
// the same choices without a database.
//
//   tunec program.py --target T --db tune.db --write-lock kernels.lock -o a.so
//   tunec program.py --target T --locked kernels.lock -o a.so
//
// A record's program and trace stand in the file. Of a default schedule only
// the digest of its result does: the same compiler makes the same one.
// docs/formats.md describes the format.
#ifndef TILEFARM_COMPILER_DRIVER_LOCK_FILE_H_
#define TILEFARM_COMPILER_DRIVER_LOCK_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

struct LockEntry {
  std::string function;   // name; with `workload`, what it is an entry of
  std::string workload;   // hash
  std::string schedule;   // "record" or "default"
  std::string reason;     // why it was chosen
  std::string scheduled;  // ir::ProgramHash of the scheduled function
  // Of records:
  std::string candidate_id;
  double median_seconds = 0;
  std::string program, trace;
};

struct LockFile {
  std::string target;       // key
  std::string fingerprint;  // of the compiler
  std::vector<LockEntry> entries;
};

// `scheduled` is what was chosen for `module`.
LockFile MakeLock(const ir::IRModule& module, const target::Target& target,
                  const std::string& fingerprint,
                  const ScheduledModule& scheduled);

// The same lock gives the same text.
std::string PrintLock(const LockFile& lock);
// InvalidArgument, with `name`: not a lock file, or one that was edited.
absl::StatusOr<LockFile> ParseLock(std::string_view text,
                                   const std::string& name);

// Schedules every function as the lock says. FailedPrecondition: the lock is of
// another target or compiler, has no entry for a function, needs a permission
// that was not given, or its schedule does not come out as it did then.
absl::StatusOr<ScheduledModule> ScheduleFromLock(const ir::IRModule& module,
                                                 const target::Target& target,
                                                 const std::string& fingerprint,
                                                 const Permissions& permissions,
                                                 const LockFile& lock);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_LOCK_FILE_H_
