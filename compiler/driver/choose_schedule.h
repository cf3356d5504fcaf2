// Which schedule each function of a module is built with.
#ifndef TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_
#define TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "database/store.h"

namespace tilefarm::driver {

// What was decided for one function, and why.
struct Choice {
  std::string function;
  std::string schedule;  // "record", "default", "trace", "as-is"
  std::string reason;    // for people
  // Of a record:
  std::string candidate_id;
  double median_seconds = 0;
  // Kernels of libraries that it calls; the artifact needs them to load.
  std::vector<std::string> libraries;
};

// What the user permits beyond fresh records of our own code.
struct Permissions {
  bool allow_stale = false;     // records of other compilers
  bool allow_library = false;   // calls of libraries' kernels
  bool allow_emulated = false;  // where no record of a real device fits
};

struct ScheduledModule {
  ir::IRModule module;
  std::vector<Choice> choices;  // one a function
};

// The best record for a query; NotFound where nothing may be used. The
// database's or the server's.
using FindBest = std::function<absl::StatusOr<database::BestMatch>(
    const database::BestQuery&)>;

// The lookup names the device where the target was "host". Every function with
// its best record's trace, replayed on the program text that the record holds;
// names stay the user's. A function without a record gets the default schedule,
// and `choices` says so. Errors of the lookup itself, and of a record that does
// not replay, are returned.
absl::StatusOr<ScheduledModule> ScheduleFromRecords(
    const ir::IRModule& module, const target::Target& target,
    const std::string& fingerprint, const Permissions& permissions,
    const FindBest& find);

// The schedule that is chosen without records (draft_schedule.h) for every
// function.
absl::StatusOr<ScheduledModule> ScheduleByDefault(const ir::IRModule& module,
                                                  const target::Target& target,
                                                  const std::string& reason);

// One trace, as text, applied to the module. InvalidArgument where it names an
// intrinsic that the target lacks.
absl::StatusOr<ScheduledModule> ScheduleByTrace(const ir::IRModule& module,
                                                const target::Target& target,
                                                const std::string& trace_text);

// Fills in what the scheduled functions call of libraries. FailedPrecondition
// where they do and it is not permitted.
absl::Status CheckLibraries(const Permissions& permissions,
                            ScheduledModule& scheduled);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_
